# SPDX-License-Identifier: Apache-2.0
"""The pages offer what the policy allows: every rule they ask for exists, and is that of the route they call."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.api.parts import all_parts, list_rules

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "web" / "src"
METHOD = re.compile(r"""["'](POST|PUT|PATCH|DELETE)["']|\bpostOnce<""")
NOT_OF_THE_POLICY = {"api/sign-in.ts", "api/ask.ts", "api/client.ts"}
"""What signs in, and what sends for others."""

CALLS: dict[str, tuple[str, ...]] = {
    "api/offers.ts": ("POST /v1/availability",),
    "api/change.ts": ("PUT /v1/leases/{lease_id}", "DELETE /v1/leases/{lease_id}"),
    "api/maintenance.ts": (),
    "pages/search/room.tsx": ("POST /v1/leases",),
    "pages/search/sending.ts": ("POST /v1/leases", "POST /v1/series"),
    "pages/series/change.tsx": ("PUT /v1/series/{series_id}",),
    "pages/series/series.tsx": ("DELETE /v1/series/{series_id}",),
    "pages/surgery/operation.tsx": (
        "POST /v1/leases/{lease_id}/reservations/{reservation_id}/swap",
        "POST /v1/leases/{lease_id}/split",
        "POST /v1/leases/{lease_id}/merge",
        "POST /v1/leases/{lease_id}/transfer",
        "POST /v1/transfers/{lease_id}/accept",
    ),
    "pages/surgery/surgery.tsx": ("PUT /v1/leases/{lease_id}",),
    "pages/surgery/transfer.tsx": ("DELETE /v1/leases/{lease_id}/transfer",),
    "pages/feeds.tsx": ("POST /v1/feeds", "DELETE /v1/feeds/{feed_id}"),
    "pages/leases/cost.tsx": ("PUT /v1/leases/{lease_id}",),
    "pages/leases/confirm.tsx": ("POST /v1/leases/{lease_id}/confirm",),
    "pages/leases/standing.tsx": (
        "POST /v1/leases/{lease_id}/keep",
        "PUT /v1/leases/{lease_id}/hold",
        "DELETE /v1/leases/{lease_id}/hold",
    ),
    "pages/surgery/offers.tsx": ("POST /v1/transfers/{lease_id}/decline",),
    "pages/hosts/power.tsx": (
        "PUT /v1/power/hosts/{host_id}",
        "POST /v1/power/hosts/{host_id}/wake",
        "PUT /v1/power/pools/{pool_id}",
        "POST /v1/power/pools/{pool_id}/wake",
    ),
    "pages/hosts/switch.tsx": ("PUT /v1/power/hosts/{host_id}", "PUT /v1/power/pools/{pool_id}"),
    "pages/hosts/register.tsx": ("POST /v1/resources/{kind}",),
    "pages/notifications/acts.tsx": (
        "POST /v1/subscriptions/{subscription_id}/test",
        "POST /v1/subscriptions/{subscription_id}/replay",
        "PATCH /v1/subscriptions/{subscription_id}",
        "DELETE /v1/subscriptions/{subscription_id}",
    ),
    "pages/notifications/new-hook.tsx": ("POST /v1/subscriptions",),
    "pages/notifications/mine.tsx": ("PATCH /v1/subscriptions/mine",),
    "pages/prices/publish.tsx": ("POST /v1/price-lists",),
    "pages/spending/correct.tsx": ("POST /v1/charges",),
    "pages/problems/problems.tsx": ("POST /v1/problems/{problem_id}/{action}",),
    "pages/maintenance/plan.tsx": ("POST /v1/maintenances",),
    "pages/maintenance/dialogs.tsx": (
        "PATCH /v1/maintenances/{maintenance_id}",
        "POST /v1/maintenances/{maintenance_id}/end",
        "DELETE /v1/maintenances/{maintenance_id}",
    ),
    "pages/resources/register.tsx": ("POST /v1/resources/{kind}",),
    "pages/resources/dialogs.tsx": (
        "PUT /v1/resources/{kind}/{resource_id}",
        "DELETE /v1/resources/{kind}/{resource_id}",
    ),
}
"""Which routes the code of a file calls that change something, or ask at length; a new file needs its line."""

UNASKED = {"blazar:availability:get"}
"""Every page is about free time: without this rule there is nothing to find, and the answer says so."""


def _texts() -> dict[str, str]:
    files = [*PAGES.rglob("*.ts"), *PAGES.rglob("*.tsx")]
    return {str(file.relative_to(PAGES)): file.read_text(encoding="utf-8") for file in files}


def _rules_asked(texts: dict[str, str]) -> set[str]:
    return {name for text in texts.values() for name in re.findall(r"blazar:[a-z_]+:[a-z_]+", text)}


def test_every_rule_that_the_pages_ask_for_exists():
    assert _rules_asked(_texts()) - {rule.name for rule in list_rules()} == set()


def test_every_file_that_changes_something_says_which_routes_it_calls():
    found = {file for file, text in _texts().items() if METHOD.search(text)} - NOT_OF_THE_POLICY
    assert found == CALLS.keys()


@pytest.mark.sample(15)
@pytest.mark.parametrize("call", [call for calls in CALLS.values() for call in calls])
def test_a_page_asks_for_the_rule_of_the_route_that_its_button_calls(call):
    rules = {
        f"{row.method} {row.url}": row.rule.name for part in all_parts() for row in part.routes if row.rule is not None
    }
    assert rules[call] in _rules_asked(_texts()) | UNASKED


def test_the_pages_ask_for_the_newest_microversion():
    client = (PAGES / "api" / "client.ts").read_text(encoding="utf-8")
    assert f'const VERSION = "reservation {as_text(MAX_VERSION)}";' in client


def test_nothing_names_a_microversion_that_is_not_served():
    # The page for contributors and the tests of the framework make up the next one.
    makes_up = {"docs/contributing/add-a-microversion.md", "tests/api/http/test_microversions.py"}
    makes_up |= {"tests/house/test_contributing.py"}
    words = "microversions?|reservation|since|until|newest|VERSION"
    later = "|".join(str(minor) for minor in range(MAX_VERSION[1] + 1, 10))
    named = re.compile(rf"(?:{words})\W{{0,12}}(?:1\.|\(1, ?)(?:{later})\b")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [path for path in listed if path.endswith((".py", ".md", ".ts", ".tsx", ".mjs", ".yaml"))]
    assert len(paths) > 1000
    texts = {path: (ROOT / path).read_text("utf-8") for path in paths if path not in makes_up}
    assert [(path, found[0]) for path, text in texts.items() if (found := named.search(text))] == []
