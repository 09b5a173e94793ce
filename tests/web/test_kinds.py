# SPDX-License-Identifier: Apache-2.0
"""Kinds of leases: now or not at all, in line, and longer as long as nobody else wants it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.web.conftest import ADMIN, ALICE, query_of, serious, standalone
from tests.web.service import PATIENCE, asked, emptied

BOB = "bob:chemistry:member"
CAROL = "carol:biology:member"
KEEP_ON = "Keep it as long as nobody else wants it"


def hosts_of(pages: str) -> int:
    return int(asked(pages, ALICE, "GET", "v1/capacity")["capacity"]["series"][0]["total"][0])


def leased(pages: str, who: str, name: str, count: int = 1, **body: object) -> dict[str, object]:
    """Ask for hosts; return the lease."""
    hosts = {"resource_type": "physical:host", "min": count, "max": count}
    wanted = {"name": name, "end_date": "+PT5H", "reservations": [hosts], **body}
    return dict(asked(pages, who, "POST", "v1/leases", wanted)["lease"])


def shown(pages: str, lease_id: object, who: str = ALICE) -> dict[str, object]:
    return dict(asked(pages, who, "GET", f"v1/leases/{lease_id}")["lease"])


def of_name(pages: str, name: str, who: str = ALICE) -> dict[str, object]:
    """Return the lease of a name."""
    (found,) = asked(pages, who, "GET", f"v1/leases?name={name}&state=all")["leases"]
    return dict(found)


def page_of_lease(pages: str, lease: dict[str, object], **more: str) -> str:
    return f"{pages}lease?id={lease['id']}" + "".join(f"&{name}={value}" for name, value in more.items())


def state(page: Page) -> Locator:
    return page.locator(".lease-title .state-word")


def whole(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:00Z")


@pytest.fixture(scope="module")
def without_promises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("lined")
    settings = folder / "blazar.conf"
    settings.write_text("[api]\npromises = 0\n", encoding="utf-8")
    yield from standalone(folder, "--config-file", str(settings))


@pytest.fixture
def lined(without_promises: str) -> Iterator[str]:
    """The pages of a service that promises no starts: who waits has a place in line until the turn comes."""
    yield without_promises
    emptied(without_promises, ADMIN)


def test_what_is_needed_now_or_not_at_all_is_in_use_with_the_answer(shared, page_of):
    page = page_of(shared, ALICE)
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill("ci-2041")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Handed over").select_option("immediate")
    expect(dialog.get_by_text("The answer comes when it can be used")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Get it now").click()
    expect(page.get_by_role("heading", name="ci-2041", exact=True)).to_be_visible()
    # No waiting here: the answer was the handing over.
    expect(state(page)).to_have_text("active", timeout=1_000)
    lease = of_name(shared, "ci-2041")
    assert (lease["kind"], lease["status"]) == ("immediate", "ACTIVE")
    page.goto(shared + "leases")
    page.get_by_role("button", name="Scheduled").click()
    expect(page.get_by_role("heading", name="None of your leases is like that")).to_be_visible()
    page.get_by_role("button", name="Scheduled").click()
    page.get_by_role("button", name="Immediate").click()
    expect(page.get_by_role("row", name=re.compile("ci-2041"))).to_be_visible()
    page.wait_for_url(lambda _: query_of(page)["kind"] == ["immediate"])


def is_asked_for_now(page: Page, name: str) -> Locator:
    """Ask for a host now or not at all; return the dialog."""
    page.get_by_role("button", name=re.compile("^Book now until")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Handed over").select_option("immediate")
    return dialog


def test_a_refusal_says_why_and_what_was_typed_stays(shared, page_of, complaints):
    complaints.expected.add("status of 409")
    sentence = "it was not handed over in 45 seconds, and nothing is booked: the host is not ready yet"
    held: list[Route] = []
    page = page_of(shared, ALICE)
    page.route(re.compile("/v1/leases$"), lambda route: held.append(route))
    dialog = is_asked_for_now(page, "too late")
    dialog.get_by_role("button", name="Get it now").click()
    expect(dialog.get_by_role("status")).to_have_text("It is being handed over. The answer comes within a minute.")
    expect(dialog.get_by_role("button", name="Handing over…")).to_be_visible()
    assert serious(page) == []
    fault = {"status": 409, "code": "reservation.not_handed_over", "title": "", "detail": sentence}
    held[0].fulfill(status=409, json={"errors": [fault]})
    # The page begins its sentences with a capital letter.
    expect(dialog.get_by_role("alert")).to_have_text(sentence[0].upper() + sentence[1:])
    expect(dialog.get_by_role("status")).to_have_count(0)
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("too late")
    page.unroute(re.compile("/v1/leases$"))
    dialog.get_by_role("button", name="Get it now").click()
    expect(state(page)).to_have_text("active", timeout=60_000)


def test_while_the_cloud_fails_nothing_is_left_of_what_was_wanted_now(small, tmp_path, page_of, complaints):
    down = tmp_path / "data" / ".down"
    complaints.expected.add("status of 503")
    page = page_of(small, ALICE)
    dialog = is_asked_for_now(page, "no answer")
    down.touch()
    dialog.get_by_role("button", name="Get it now").click()
    expect(dialog.get_by_role("alert")).to_contain_text("try again later", timeout=60_000)
    down.unlink()
    # What was begun is undone as soon as the cloud answers again.
    for _ in range(PATIENCE):
        if not (left := asked(small, ALICE, "GET", "v1/leases?state=all")["leases"]):
            break
        page.wait_for_timeout(500)
    assert left == []
    dialog.get_by_role("button", name="Get it now").click()
    expect(state(page)).to_have_text("active", timeout=60_000)


def test_where_nothing_is_free_one_waits_in_line_and_starts_at_ones_turn(lined, page_of):
    theirs = leased(lined, BOB, "theirs", hosts_of(lined))
    page = page_of(lined + "?min=2", ALICE)
    offer = page.get_by_role("region", name="Wait in line")
    expect(offer).to_contain_text("You get it when it is your turn")
    assert serious(page) == []
    offer.get_by_role("button", name="Wait in line").click()
    page.wait_for_url(lambda _: query_of(page)["book"] == ["wait"])
    dialog = page.get_by_role("dialog", name="Wait in line")
    expect(dialog).to_contain_text("1 day, as soon as possible")
    dialog.get_by_label("Name", exact=True).fill("in line")
    # By keyboard: a date that is emptied on the way to another one is not gone.
    dialog.get_by_label("Wait until", exact=True).fill("2026-11-01T08:00")
    dialog.get_by_label("Wait until", exact=True).fill(whole(datetime.now(UTC) + timedelta(days=3))[:16])
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label(KEEP_ON).check()
    expect(dialog.get_by_text("It is prolonged by itself shortly before its end")).to_be_visible()
    assert serious(page) == []
    dialog.get_by_role("button", name="Wait in line").click()
    expect(page.get_by_role("heading", name="in line", exact=True)).to_be_visible()
    expect(state(page)).to_have_text("waiting in line")
    expect(page.get_by_role("region", name="Its place in line")).to_contain_text("It is the next in line.")
    expect(page.get_by_role("button", name="Extend")).to_have_count(0)
    expect(page.get_by_role("button", name="Change", exact=True)).to_have_count(0)
    expect(page.get_by_text("It goes on by itself until")).to_be_visible()
    assert serious(page) == []
    lease = of_name(lined, "in%20line")
    assert (lease["status"], lease["wait"]["position"]) == ("WAITING", 1)  # type: ignore[index]
    page.goto(lined + "leases")
    page.get_by_role("button", name="Waiting in line").click()
    expect(page.get_by_role("row", name=re.compile("in line"))).to_contain_text("1st, probably from")
    page.goto(page_of_lease(lined, lease))
    asked(lined, BOB, "DELETE", f"v1/leases/{theirs['id']}")
    expect(state(page)).to_have_text("active", timeout=60_000)
    expect(page.get_by_role("region", name="Its place in line")).to_have_count(0)


def test_a_promised_start_is_said_and_becomes_earlier(shared, page_of):
    theirs = leased(shared, BOB, "theirs", hosts_of(shared))
    lease = leased(shared, ALICE, "promised", 2, wait={"until": "+P2D"})
    page = page_of(page_of_lease(shared, lease), ALICE)
    expect(state(page)).to_have_text("booked", timeout=60_000)
    expect(page.get_by_text("starts in 5 h, or earlier")).to_be_visible()
    expect(page.get_by_role("region", name="Its promised start")).to_contain_text("at the latest")
    assert serious(page) == []
    asked(shared, BOB, "DELETE", f"v1/leases/{theirs['id']}")
    expect(state(page)).to_have_text("active", timeout=60_000)
    expect(page.get_by_role("region", name="Its promised start")).to_have_count(0)


def test_who_waits_says_what_start_and_how_little_time_will_do(lined, page_of, complaints):
    complaints.expected.add("status of 400")
    leased(lined, BOB, "theirs", hosts_of(lined))
    page = page_of(lined + "?min=2&book=wait", ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Wait in line")
    dialog.get_by_label("Name", exact=True).fill("flexible")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("It is of no use if it starts too late").check()
    dialog.get_by_label("Start by", exact=True).fill(whole(datetime.now(UTC) + timedelta(days=2))[:16])
    dialog.get_by_label("Less time will do").check()
    expect(dialog.get_by_text("You get as long as is free at that start, up to 1 day.")).to_be_visible()
    # More than all of it is no least, says the page, and asks nothing.
    dialog.get_by_label("At least: how many").fill("36")
    expect(dialog.get_by_text("That is more than the 1 day that you ask for.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Wait in line")).to_be_disabled()
    expect(dialog.get_by_label("At least: how many")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("At least: how many").fill("6")
    assert serious(page) == []
    dialog.get_by_role("button", name="Wait in line").click()
    place = page.get_by_role("region", name="Its place in line")
    expect(place).to_contain_text("For at least6 hours")
    expect(place).to_contain_text("Starts by")
    wait = of_name(lined, "flexible")["wait"]
    assert wait["at_least"] == "PT6H"  # type: ignore[index]


def test_who_does_not_want_to_attend_to_it_lets_it_be_tried_again(lined, page_of):
    leased(lined, BOB, "theirs", hosts_of(lined))
    page = page_of(lined + "?min=2&book=wait", ALICE)
    dialog = page.get_by_role("dialog", name="Wait in line")
    dialog.get_by_label("Name", exact=True).fill("again")
    dialog.get_by_text("More", exact=True).click()
    dialog.get_by_label("Try again if it cannot be handed over").check()
    dialog.get_by_label("How many tries may fail").fill("5")
    assert serious(page) == []
    dialog.get_by_role("button", name="Wait in line").click()
    expect(page.get_by_role("region", name="Tries")).to_contain_text("No try has failed; up to 5 tries may.")
    assert serious(page) == []
    lease = of_name(lined, "again")
    assert (lease["kind"], lease["wait"]["tries"]) == ("retries", 5)  # type: ignore[index]
    page.goto(lined + "leases")
    page.get_by_role("button", name="Tried again").click()
    expect(page.get_by_role("row", name=re.compile("again"))).to_be_visible()


def test_who_would_delay_others_is_told_how_many_and_takes_the_opening_with_a_click(lined, page_of, complaints):
    complaints.expected.add("status of 409")
    hosts = hosts_of(lined)
    free = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=5)
    leased(lined, BOB, "theirs", hosts, end_date=whole(free))
    leased(lined, CAROL, "before", hosts - 1, end_date="+PT3H", wait={"until": "+P2D"})
    window = f"start={whole(free)}&end={whole(free + timedelta(hours=2))}"
    page = page_of(f"{lined}?min=2&{window}", ALICE, timezone_id="UTC")
    page.get_by_role("button", name=re.compile("^Book ")).click()
    dialog = page.get_by_role("dialog", name="Book")
    dialog.get_by_label("Name", exact=True).fill("mine")
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(dialog.get_by_text("1 lease waits in line for the same, and would get it later")).to_be_visible()
    assert serious(page) == []
    expect(dialog.get_by_role("button", name="Wait in line")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^Start .* instead$")).click()
    expect(dialog.get_by_text("1 lease waits in line")).to_have_count(0)
    dialog.get_by_role("button", name="Book", exact=True).click()
    expect(page.get_by_role("heading", name="mine", exact=True)).to_be_visible()
    assert of_name(lined, "mine")["start_date"] == whole(free + timedelta(hours=3))


def test_who_does_not_need_it_any_more_leaves_the_line(lined, page_of):
    leased(lined, BOB, "theirs", hosts_of(lined))
    lease = leased(lined, ALICE, "patient", wait={"until": "+P2D"})
    page = page_of(lined + "leases", ALICE)
    page.get_by_role("button", name="Leave the line: patient").click()
    dialog = page.get_by_role("dialog", name="Leave the line: patient")
    expect(dialog.get_by_role("button", name="Stay in line")).to_be_focused()
    expect(dialog).to_contain_text("It has nothing yet.")
    assert serious(page) == []
    dialog.get_by_role("button", name="Leave the line").click()
    expect(page.get_by_role("heading", name="You have no leases")).to_be_visible()
    assert shown(lined, lease["id"])["deleted_at"] is not None


def test_who_waited_in_vain_sees_that_and_asks_again(lined, page_of):
    leased(lined, BOB, "theirs", hosts_of(lined))
    lease = leased(lined, ALICE, "in vain", 2, wait={"until": "+PT1S"})
    page = page_of(page_of_lease(lined, lease), ALICE)
    expect(state(page)).to_have_text("timed out", timeout=60_000)
    expect(page.get_by_role("region", name="Its place in line")).to_contain_text("It waited in vain")
    assert serious(page) == []
    page.get_by_role("link", name="Ask again").click()
    dialog = page.get_by_role("dialog", name="Wait in line")
    expect(dialog).to_contain_text("2 hosts")
    expect(dialog).to_contain_text("5 hours, as soon as possible")
    dialog.get_by_role("button", name="Wait in line").click()
    expect(state(page)).to_have_text("waiting in line")


def test_a_lease_is_set_to_go_on_by_itself_and_stopped(shared, page_of):
    lease = leased(shared, ALICE, "goes on", end_date="+P2D")
    page = page_of(page_of_lease(shared, lease, do="change"), ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Change goes on")
    dialog.get_by_label(KEEP_ON).check()
    until = whole(datetime.now(UTC) + timedelta(days=6))
    dialog.get_by_label("But not after", exact=True).fill(until[:16])
    assert serious(page) == []
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_text("as long as nobody else wants what it has")).to_be_visible()
    assert shown(shared, lease["id"])["extend_if_free"] == {"until": until, "reason": None}
    page.goto(shared + "leases")
    expect(page.get_by_role("row", name=re.compile("goes on"))).to_contain_text("goes on by itself until")
    page.goto(page_of_lease(shared, lease, do="change"))
    dialog.get_by_label(KEEP_ON).uncheck()
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog).to_have_count(0)
    assert shown(shared, lease["id"])["extend_if_free"] is None


def test_what_cannot_be_is_refused_beside_its_field(shared, page_of, complaints):
    complaints.expected.add("status of 400")
    lease = leased(shared, ALICE, "goes on", end_date="+P2D")
    page = page_of(page_of_lease(shared, lease, do="change"), ALICE, timezone_id="UTC")
    dialog = page.get_by_role("dialog", name="Change goes on")
    dialog.get_by_label(KEEP_ON).check()
    dialog.get_by_label("But not after", exact=True).fill("2039-01-01T08:00")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog.get_by_label("But not after", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_text("give an earlier date")).to_be_visible()


def test_a_lease_on_its_last_day_is_offered_the_longest_end_in_one_click(shared, page_of):
    hosts = hosts_of(shared)
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    ends, taken = now + timedelta(hours=5), now + timedelta(hours=8)
    lease = leased(shared, ALICE, "last day", end_date=whole(ends))
    leased(shared, ALICE, "other day", end_date="+P3D")
    leased(shared, BOB, "theirs", hosts, start_date=whole(now + timedelta(days=4)), end_date="+P1D")
    leased(shared, BOB, "next", hosts - 1, start_date=whole(taken), end_date="+PT4H")
    page = page_of(page_of_lease(shared, lease), ALICE, timezone_id="UTC")
    offer = page.locator(".banner.offer")
    expect(offer).to_contain_text("then what it has is booked")
    assert serious(page) == []
    offer.get_by_role("button", name=re.compile("^Extend until")).click()
    expect(offer).to_contain_text("It cannot go on: what it has is booked from then on.")
    assert shown(shared, lease["id"])["end_date"] == whole(taken)
    row = leased(shared, CAROL, "short", hosts - 2, end_date=whole(ends))
    page = page_of(shared + "leases", CAROL, timezone_id="UTC")
    expect(page.get_by_role("row", name=re.compile("short"))).to_contain_text("Extend until")
    assert serious(page) == []
    page.get_by_role("button", name=re.compile("^Extend until .*: short$")).click()
    expect(page.get_by_role("row", name=re.compile("short"))).to_contain_text("It cannot go on")
    assert shown(shared, row["id"], CAROL)["end_date"] == whole(taken)


def test_operators_see_how_many_wait_and_the_longest_wait(lined, page_of):
    leased(lined, BOB, "theirs", hosts_of(lined))
    leased(lined, ALICE, "first", wait={"until": "+P2D"})
    leased(lined, CAROL, "second", wait={"until": "+P2D"})
    page = page_of(lined + "overview", ADMIN)
    tile = page.locator(".tile").filter(has_text="Waiting in line")
    expect(tile.get_by_role("heading")).to_have_text("Waiting in line 2")
    expect(tile).to_contain_text("The longest wait:")
    assert serious(page) == []
    page.goto(lined + "all-leases")
    page.get_by_role("button", name="waiting in line").click()
    expect(page.get_by_role("row", name=re.compile("first"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("second"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("theirs"))).to_have_count(0)


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_pages_of_leases_in_line_are_accessible(lined, page_of, look):
    options = {"color_scheme": "dark"} if look == "dark" else {"viewport": {"width": 390, "height": 844}}
    leased(lined, BOB, "theirs", hosts_of(lined))
    lease = leased(lined, ALICE, "patient", wait={"until": "+P2D"})
    vain = leased(lined, ALICE, "in vain", wait={"until": "+PT1S"})
    page = page_of(page_of_lease(lined, vain), ALICE, **options)
    expect(state(page)).to_have_text("timed out", timeout=60_000)
    for address in (page_of_lease(lined, lease), lined + "leases", lined + "?min=1", lined + "?min=1&book=wait"):
        assert serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        page.goto(address)
        # On a phone the filter of that name is behind a button.
        expect(page.get_by_text(re.compile("in line", re.I)).filter(visible=True).first).to_be_visible()
    assert serious(page) == []
