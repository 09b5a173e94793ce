# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases: another host, two of one, one of two; each after it was shown what comes of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import ALICE, serious
from tests.web.test_kinds import hosts_of, leased, of_name, page_of_lease, shown, whole

START = (datetime.now(UTC) + timedelta(days=3)).replace(minute=0, second=0, microsecond=0)
END = START + timedelta(days=2)
LATER = {"start_date": whole(START), "end_date": whole(END)}


def opened(page: Page, what: str) -> Locator:
    page.get_by_role("button", name="More for training").click()
    page.get_by_role("button", name=what).click()
    return page.get_by_role("dialog", name=re.compile("training"))


def labels(lease: dict[str, object]) -> set[str]:
    return {one["resource"]["id"] for each in lease["reservations"] for one in each["allocations"]}  # type: ignore[attr-defined]


def test_a_host_is_swapped_for_another_one_that_fits(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    (host,) = labels(lease)
    page = page_of(page_of_lease(shared, lease), ALICE)
    dialog = opened(page, "Swap a host")
    dialog.get_by_label("Give up").select_option(host)
    expect(dialog.get_by_role("status")).to_contain_text(f"It gives up {host}, and gets h-")
    assert serious(page) == []
    assert labels(shown(shared, lease["id"])) == {host}
    dialog.get_by_role("button", name="Swap", exact=True).click()
    expect(dialog).to_have_count(0)
    (now,) = labels(shown(shared, lease["id"]))
    assert now != host
    expect(page.get_by_role("list", name="The hosts")).to_contain_text(now)


def test_a_lease_in_use_gives_up_a_host(shared, page_of):
    lease = leased(shared, ALICE, "training", 2)
    page = page_of(page_of_lease(shared, lease), ALICE)
    host, other = sorted(labels(lease))
    dialog = opened(page, "Give up hosts")
    dialog.get_by_label(host).check()
    expect(dialog.get_by_role("status")).to_contain_text(f"It gives up {host}, and keeps 1 host.")
    assert serious(page) == []
    assert labels(shown(shared, lease["id"])) == {host, other}
    dialog.get_by_role("button", name="Give up", exact=True).click()
    expect(dialog).to_have_count(0)
    assert labels(shown(shared, lease["id"])) == {other}


def test_where_no_other_host_is_free_the_reason_is_said(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    lease = leased(shared, ALICE, "training", hosts_of(shared), **LATER)
    page = page_of(page_of_lease(shared, lease, do="swap"), ALICE)
    dialog = page.get_by_role("dialog", name=re.compile("training"))
    dialog.get_by_label("Give up").select_option(index=1)
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_role("button", name="Swap", exact=True)).to_be_disabled()
    assert serious(page) == []


def test_a_lease_is_split_by_hosts_and_merged_again(shared, page_of):
    lease = leased(shared, ALICE, "training", 2, **LATER)
    page = page_of(page_of_lease(shared, lease), ALICE)
    dialog = opened(page, "Split it into two")
    dialog.get_by_label("How many go").fill("1")
    dialog.get_by_label("Name of the second").fill("evaluation")
    expect(dialog.get_by_role("status").get_by_role("listitem")).to_have_count(2)
    expect(dialog.get_by_role("status")).to_contain_text("evaluation: 1 host")
    assert serious(page) == []
    dialog.get_by_role("button", name="Split", exact=True).click()
    expect(dialog).to_have_count(0)
    other = of_name(shared, "evaluation")
    assert labels(other) | labels(shown(shared, lease["id"])) == labels(lease)
    dialog = opened(page, "Merge it with another")
    dialog.get_by_label("Take over").select_option(label="evaluation: 1 host")
    expect(dialog.get_by_role("status")).to_contain_text("training: 2 hosts")
    assert serious(page) == []
    dialog.get_by_role("button", name="Merge", exact=True).click()
    expect(dialog).to_have_count(0)
    assert labels(shown(shared, lease["id"])) == labels(lease)
    page.goto(page_of_lease(shared, other))
    expect(page.get_by_text("It was merged with another lease, which has what it had.")).to_be_visible()


def test_a_lease_is_split_by_time(shared, page_of):
    lease = leased(shared, ALICE, "training", **LATER)
    page = page_of(page_of_lease(shared, lease, do="split"), ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Split training")
    dialog.get_by_role("button", name="by time").click()
    seam = START + timedelta(days=1)
    dialog.get_by_label("The second begins", exact=True).fill(f"{seam:%Y-%m-%dT%H:%M}")
    expect(dialog.get_by_role("status").get_by_role("listitem")).to_have_count(2)
    dialog.get_by_role("button", name="Split", exact=True).click()
    expect(dialog).to_have_count(0)
    assert shown(shared, lease["id"])["end_date"] == whole(seam)
    assert of_name(shared, "training%202")["start_date"] == whole(seam)


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_dialogs_of_surgery_are_accessible(shared, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {"viewport": {"width": 390, "height": 844}}
    lease = leased(shared, ALICE, "training", 2, **LATER)
    # Without another one of these dates there is nothing to merge it with, and no dialog for it.
    leased(shared, ALICE, "evaluation", 1, **LATER)
    page = page_of(page_of_lease(shared, lease), ALICE, **options)
    for what in ("Swap a host", "Give up hosts", "Split it into two", "Merge it with another"):
        dialog = opened(page, what)
        expect(dialog).to_be_visible()
        assert serious(page) == []
        dialog.get_by_role("button", name="Cancel").click()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
