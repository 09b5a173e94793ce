# SPDX-License-Identifier: Apache-2.0
"""Leases without reservations, of a second, of 15 years, of most reservations: every page with them can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.api.every_shape import SHAPES, Json, Shape
from tests.web.conftest import ADMIN, ALICE, standalone
from tests.web.service import asked
from tests.web.test_lists import settled

START = (datetime.now(UTC) + timedelta(days=2)).replace(minute=0, second=0, microsecond=0)
# What stands where a value was missing or was not thought of.
NONSENSE = re.compile(r"\bNaN\b|\bundefined\b|\bnull\b|Invalid Date|Infinity|\[object")
TROUBLE = "main [role=alert], main .banner.error, main .field-error"


def made(pages: str, shape: Shape, start: str) -> Json:
    """Book a lease of a shape; at 1.0 there is one without reservations."""
    body: Json = {"name": f"{shape.name}, {start}", "reservations": list(shape.reservations)}
    if shape.reservations:
        dates = {"start_date": start, "end_date": shape.until}
        return dict(asked(pages, ALICE, "POST", "v1/leases", {**body, **dates})["lease"])
    begins = datetime.now(UTC) if start == "now" else START
    dates = {
        "start_date": start if start == "now" else f"{START:%Y-%m-%d %H:%M}",
        "end_date": f"{begins + timedelta(hours=2):%Y-%m-%d %H:%M}",
    }
    earlier = {"OpenStack-API-Version": "reservation 1.0"}
    return dict(asked(pages, ALICE, "POST", "v1/leases", {**body, **dates}, **earlier)["lease"])


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[Json]]]:
    """The address of a service with leases of every shape: booked, running and past."""
    folder = tmp_path_factory.mktemp("shaped")
    settings = folder / "blazar.conf"
    settings.write_text("[enforcement]\nreservations_per_lease = 100\n", encoding="utf-8")
    for pages in standalone(folder, "--config-file", str(settings)):
        starts = (f"{START:%Y-%m-%dT%H:%M:%SZ}", "now")
        few = [shape for shape in SHAPES if len(shape.reservations) < 10]
        leases = [made(pages, shape, start) for shape in few for start in starts]
        # At once, as there are few hosts.
        for shape in few:
            leases.append(made(pages, shape, starts[0]))
            asked(pages, ALICE, "DELETE", f"v1/leases/{leases[-1]['id']}")
        # The most reservations need the hosts that are left, and some seconds.
        leases += [made(pages, shape, starts[0]) for shape in SHAPES if shape not in few]
        yield pages, leases


def is_readable(page: Page, address: str) -> None:
    page.goto(address)
    settled(page)
    expect(page.locator("[role=treegrid][aria-busy=true]")).to_have_count(0)
    troubles = [one for one in page.locator(TROUBLE).all_inner_texts() if one.strip()]
    assert troubles == [], address
    # As the API has it, there may be anything.
    shown = page.locator("main").inner_text()
    assert NONSENSE.search(shown) is None, f"{address}: {shown}"


@pytest.mark.parametrize("who", [ALICE, ADMIN], ids=["owner", "operator"])
def test_pages_with_leases_of_every_shape_are_readable_and_without_errors(shaped, page_of, who):
    pages, leases = shaped
    views = ["leases?whose=project", "leases?state=past&whose=project", "calendar", "calendar?view=table"]
    views += [f"calendar?at={START:%Y-%m-%dT%H:%M:%SZ}&zoom={zoom}" for zoom in ("6h", "quarter")]
    views += ["usage", "usage?step=day"]
    views += ["calendar?type=virtual:instance", "all-leases", "overview"][: 1 if who == ALICE else 3]
    page = page_of(pages + "leases", who)
    for view in views + [f"lease?id={lease['id']}" for lease in leases]:
        is_readable(page, pages + view)
