# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it: the warning before a release, and who keeps it off."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from blazar.manager.leases import lifecycle
from blazar.model.leases.lease import SavedState
from blazar.model.leases.states import EventType
from blazar.model.use.policy import LeaseUse, Usage
from blazar.store.sql.engine import make_engine
from blazar.store.store import Store
from tests.web.conftest import ADMIN, ALICE, serious, standalone
from tests.web.service import PATIENCE, asked
from tests.web.test_kinds import leased, page_of_lease, shown, state


class Strict:
    """A service that releases leases that nobody uses."""

    def __init__(self, pages: str, database: Path) -> None:
        self.pages = pages
        self._store = Store(make_engine(f"sqlite:///{database}"))

    def warn(self, lease: dict[str, object]) -> None:
        """Warn its owner two hours before its release, as a look six hours after its start does."""
        now = datetime.now(UTC).replace(microsecond=0)
        at = now + timedelta(hours=2)
        known = self._store.leases.one(str(lease["id"]))
        look = known.event(EventType.USAGE_CHECK)
        assert look is not None
        assert look.saved_state is not None
        assert look.saved_state.watch is not None
        watch = replace(look.saved_state.watch, release_at=at)
        warned = lifecycle.with_event(known, replace(look, saved_state=SavedState(watch=watch), updated_at=now))
        use = LeaseUse(Usage.UNUSED, release_at=at)
        self._store.leases.save(known, replace(warned, use=use), at=now)


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Strict]:
    settings = tmp_path / "blazar.conf"
    settings.write_text("[unused]\nmode = on\n", encoding="utf-8")
    for pages in standalone(tmp_path, "--config-file", str(settings)):
        yield Strict(pages, tmp_path / "data" / "blazar.sqlite")


def in_use(strict: Strict, page_of, who: str):
    """Return a lease in use, and its page."""
    lease = leased(strict.pages, ALICE, "idle one", end_date="+P5D")
    page = page_of(page_of_lease(strict.pages, lease), who)
    expect(state(page)).to_have_text("active", timeout=60_000)
    return lease, page


def test_an_owner_is_warned_and_keeps_a_lease_once(strict, page_of, complaints):
    complaints.expected.add("status of 409")
    lease, page = in_use(strict, page_of, ALICE)
    strict.warn(lease)
    page.reload()
    bar = page.locator(".banner.warning")
    expect(bar).to_contain_text(re.compile("It is released (today|tomorrow) .* because nothing is in it."))
    expect(bar.get_by_role("button", name="Hold")).to_have_count(0)
    expect(page.get_by_role("region", name="Use")).to_contain_text("Nothing was started in it yet.")
    assert serious(page) == []
    page.goto(strict.pages + "leases")
    expect(page.get_by_role("row", name=re.compile("idle one"))).to_contain_text("nothing is in it")
    assert serious(page) == []
    page.goto(page_of_lease(strict.pages, lease))
    bar.get_by_role("button", name="Keep").press("Enter")
    expect(bar).to_have_count(0)
    assert shown(strict.pages, lease["id"])["release_at"] is None
    strict.warn(lease)
    page.reload()
    bar.get_by_role("button", name="Keep").click()
    expect(bar.get_by_role("alert")).to_contain_text("kept once already")


def test_an_operator_holds_a_lease_and_lets_it_go(strict, page_of):
    lease, page = in_use(strict, page_of, ADMIN)
    strict.warn(lease)
    page.goto(strict.pages + "overview")
    tile = page.locator(".tile").filter(has_text="Will be released")
    expect(tile.get_by_role("heading")).to_have_text("Will be released 1")
    assert serious(page) == []
    tile.get_by_role("link", name="idle one").click()
    bar = page.locator(".banner.warning")
    bar.get_by_role("button", name="Hold").click()
    expect(bar).to_have_count(0)
    assert serious(page) == []
    report = asked(strict.pages, ADMIN, "GET", f"v1/leases/{lease['id']}")
    assert report["lease"]["release_at"] is None
    assert report["lease"]["held"] is True
    use = page.get_by_role("region", name="Use")
    expect(use).to_contain_text("An operator holds it")
    expect(use.get_by_role("button", name="Hold")).to_have_count(0)
    use.get_by_role("button", name="Let go").click()
    expect(page.locator(".note").filter(has_text="is held no longer")).to_be_visible()
    expect(use.get_by_role("button", name="Hold")).to_be_visible()
    expect(use).not_to_contain_text("An operator holds it")


def test_the_page_of_usage_tells_what_was_idle(strict, page_of):
    lease, page = in_use(strict, page_of, ALICE)
    strict.warn(lease)
    until = time.monotonic() + PATIENCE
    while not (rows := asked(strict.pages, ALICE, "GET", "v1/reports/usage")["report"]["rows"]) or not rows[0]["idle"]:
        assert time.monotonic() < until, rows
        time.sleep(0.5)
    page.goto(strict.pages + "usage")
    expect(page.get_by_text(re.compile(r"host hours reserved: 0 % used, (> |< )?\d+ % idle"))).to_be_visible()
    expect(page.locator(".usage-chart .legend")).to_contain_text("idle")
    expect(page.locator(".usage-chart .chart-idle")).not_to_have_count(0)
    expect(page.get_by_role("columnheader", name="Idle").first).to_be_visible()
    assert serious(page) == []
