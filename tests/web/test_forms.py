# SPDX-License-Identifier: Apache-2.0
"""Forms: whatever is typed, nothing can be sent but what the fields show at that moment."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.web.conftest import ADMIN, ALICE, Open, drawn, query_of, serious
from tests.web.service import asked, booked, leases_of

BOB = "bob:chemistry:member"
START = (datetime.now(UTC) + timedelta(days=20)).replace(hour=9, minute=0, second=0, microsecond=0)
END = START + timedelta(days=2)
EDITS = 24 if os.environ.get("FULL") else 14
"""How many random edits of a form are made, with each change and each night."""
DIALOG = "dialog[open]"


def text(at: datetime) -> str:
    """Return an instant as the pages show it, in UTC."""
    return f"{at.day} {at:%b %Y %H:%M}"


def wire(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def read(typed: str) -> str | None:
    """Return what a text means as it is sent; None if a person would not know."""
    for form in ("%d %b %Y %H:%M", "%Y-%m-%dT%H:%M"):
        try:
            return wire(datetime.strptime(typed, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    return None


# Reads all fields and presses the button, if it may be pressed, at one moment: nothing can change in between.
PRESS = """
([scope, name]) => {
  const around = document.querySelector(scope);
  if (!around) return null;
  const fields = {};
  // What a dialog covers may have fields of the same names.
  for (const input of (around.matches("dialog") ? around : document).querySelectorAll("input, select")) {
    const label = input.labels?.[0]?.textContent ?? input.getAttribute("aria-label");
    if (label && input.getClientRects().length) fields[label.trim()] = input.value;
  }
  const button = [...around.querySelectorAll("button")].find(
    (one) => new RegExp(name).test((one.getAttribute("aria-label") ?? one.textContent).trim()));
  if (!button || button.matches(":disabled") || button.getAttribute("aria-disabled") === "true") return null;
  if (getComputedStyle(button).visibility !== "visible") return null;
  button.click();
  return fields;
}
"""


class Sent(list[dict[str, Any]]):
    """What the page has sent to change something; each is refused, so that the form stays."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        page.route("**/v1/**", self._refuse)

    def _refuse(self, route: Route) -> None:
        request = route.request
        reads = request.method == "GET" or "dry_run" in request.url or "availability" in request.url
        if reads:
            # A form may have answers of its own.
            route.fallback()
            return
        self.append(json.loads(request.post_data or "{}"))
        error = {"status": 409, "code": "reservation.test", "title": "", "detail": "not in this test"}
        route.fulfill(status=409, content_type="application/json", body=json.dumps({"errors": [error]}))

    def next(self, page: Page) -> dict[str, Any] | None:
        """Return what was sent just now; None if nothing was."""
        for _ in range(20):
            if self:
                return self.pop(0)
            page.wait_for_timeout(25)
        return None


@dataclass(frozen=True)
class Form:
    """How a form is opened, which of its fields are edited, what sends it, and what of its body they are.

    ``texts`` are those that may be typed into fields of texts, beside those of ``TEXTS``.
    """

    address: Callable[[str], str]
    fields: tuple[str, ...]
    scope: str
    button: str
    body: Mapping[str, Callable[[dict[str, Any]], object]]
    who: str = ALICE
    prepare: Callable[[Page], None] = lambda page: None
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    edits: int = EDITS

    def field(self, page: Page, label: str) -> Locator:
        """Return a field: of the dialog, if the form is one."""
        return (page.locator(DIALOG) if self.scope == DIALOG else page).get_by_label(label, exact=True)


def lease_of(pages: str, **more: Any) -> dict[str, Any]:
    return booked(pages, ALICE, "edited", start=wire(START), end=wire(END), **more)


def of_lease(what: str, **more: Any) -> Callable[[str], str]:
    return lambda pages: f"{pages}lease?id={lease_of(pages, **more)['id']}&do={what}"


def host_chosen(page: Page) -> None:
    page.get_by_role("list", name="Hosts").get_by_role("checkbox").first.check()
    page.get_by_label("Name", exact=True).fill("firmware")


def weekly(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Book now")).click()
    page.get_by_role("dialog").get_by_text("More", exact=True).click()
    page.get_by_label("Repeat").select_option("week")


def split_by_time(page: Page) -> None:
    page.get_by_role("button", name="by time").click()


def series_of(pages: str) -> str:
    """Make a series of four weeks, and return where all of it is changed."""
    rule = {"rule": "FREQ=WEEKLY;COUNT=4", "start": f"{START:%Y-%m-%dT%H:%M}", "until_local": "12:00"}
    hosts = {"resource_type": "physical:host", "min": 1, "max": 1}
    body = {"name": "edited", "reservations": [hosts], **rule}
    made = asked(pages, ALICE, "POST", "v1/series", body)["series"]
    return f"{pages}series?id={made['id']}&do=change"


def renamed(page: Page) -> None:
    """Change the name, so that there is something to send all the time."""
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("renamed")


def full(pages: str) -> str:
    """Take all hosts for a week, and return where to wait in line."""
    hosts = len(asked(pages, ADMIN, "GET", "v1/resources/host")["resources"])
    booked(pages, BOB, "all of it", end="+P7D", min=hosts, max=hosts)
    start, end = (wire(datetime.now(UTC) + timedelta(days=days)) for days in (1, 2))
    return f"{pages}?min=1&book=wait&start={start}&end={end}"


def until_of(rule: str) -> str:
    """Return the last day of a rule."""
    return "-".join(re.findall(r"UNTIL=(....)(..)(..)", rule)[0])


GO = "How many go, of 3 hosts"
FORMS = {
    "extend": Form(of_lease("extend"), ("New end",), DIALOG, "^(Extend|Shorten)", {"New end": lambda b: b["end_date"]}),
    "change": Form(
        of_lease("change"),
        ("Start", "End"),
        DIALOG,
        "^Change$",
        {"Start": lambda b: b.get("start_date", wire(START)), "End": lambda b: b.get("end_date", wire(END))},
    ),
    "split": Form(
        of_lease("split", max=1),
        ("The second begins",),
        DIALOG,
        "^Split$",
        {"The second begins": lambda b: b["at"]},
        prepare=split_by_time,
    ),
    "wait in line": Form(full, ("Wait until",), DIALOG, "^Wait in line$", {"Wait until": lambda b: b["wait"]["until"]}),
    "maintenance": Form(
        lambda pages: pages + "maintenance?do=plan",
        ("From", "Until"),
        "main",
        "^Book the maintenance$",
        {"From": lambda b: b["start_date"], "Until": lambda b: b["end_date"]},
        who=ADMIN,
        prepare=host_chosen,
    ),
    "give away": Form(
        of_lease("give"),
        ("Project", "Message"),
        DIALOG,
        "^Offer it$",
        {"Project": lambda b: b["project_id"], "Message": lambda b: b.get("message")},
    ),
    "series": Form(
        lambda pages: pages,
        ("Until the day",),
        DIALOG,
        "^Book the series$",
        {"Until the day": lambda b: until_of(b["rule"])},
        prepare=weekly,
    ),
    "split by hosts": Form(
        of_lease("split", min=3, max=3),
        (GO,),
        DIALOG,
        "^Split$",
        {GO: lambda b: b["reservations"][0].get("count", 3)},
    ),
    "change of a series": Form(
        series_of,
        ("First day", "Until the day", "How many hosts"),
        DIALOG,
        "^Change$",
        {
            "First day": lambda b: b.get("start", wire(START))[:10],
            "Until the day": lambda b: until_of(b.get("rule", f"UNTIL={START + timedelta(days=21):%Y%m%d}")),
            "How many hosts": lambda b: b.get("reservations", [{"min": 1}])[0]["min"],
        },
        prepare=renamed,
    ),
    "exactly": Form(
        lambda pages: f"{pages}?start={wire(START)}&end={wire(END)}",
        ("Start", "End", "How many"),
        ".results",
        "^Book ",
        {
            "Start": lambda b: b["start_date"],
            "End": lambda b: b["end_date"],
            "How many": lambda b: b["reservations"][0]["min"],
        },
    ),
}


NUMBERS = ("How many", "How many hosts", GO)
DAYS = ("First day", "Until the day")
TEXTS = ("Project", "Message")


def typed(form: Form, label: str, chance: random.Random) -> list[str]:
    """Return texts that may be typed or pasted into a field and mean something."""
    other = START + timedelta(hours=chance.randrange(-48, 24 * 6))
    if label in NUMBERS:
        return ["2", str(chance.randrange(1, 9))]
    if label in form.texts or label in TEXTS:
        return list(form.texts.get(label, ("chemistry", "biology")))
    if label in DAYS:
        return [f"{other.day} {other:%b %Y}", f"{other:%Y-%m-%d}"]
    return [text(other), text(other), f"{other:%Y-%m-%dT%H:%M}"]


def meant(form: Form, label: str, shown: str) -> object:
    """Return what is sent of what a field shows; None: it shows nothing."""
    if label in NUMBERS:
        return int(shown)
    if label in form.texts or label in TEXTS:
        return shown.strip() or None
    if label in DAYS:
        found = read(f"{shown} 00:00") or read(f"{shown}T00:00")
        return None if found is None else found[:10]
    # Nothing is sent of what is no instant: not even that there is none.
    return read(shown) or shown.strip() or None


def is_choice(field: Locator) -> bool:
    return bool(field.evaluate("(one) => one.tagName === 'SELECT'"))


def edit(page: Page, form: Form, label: str, chance: random.Random) -> None:
    """Type, clear, paste, use arrow keys, choose, or leave the field."""
    field = form.field(page, label)
    if is_choice(field):
        field.select_option(index=chance.randrange(field.locator("option").count()))
        return
    match chance.randrange(7):
        case 0:
            field.fill("")
        case 1 | 2 | 3:
            field.fill(chance.choice(typed(form, label, chance)))
        case 4:
            field.focus()
            page.keyboard.press("End")
            page.keyboard.press("Backspace")
            page.keyboard.type(chance.choice("0123456789" if label in NUMBERS else "05:9 x"))
        case 5:
            field.focus()
            page.keyboard.press(chance.choice(["ArrowUp", "ArrowDown"]))
        case _:
            page.keyboard.press("Tab")
    if chance.random() < 0.5:
        page.wait_for_timeout(chance.choice([0, 100, 500]))


def walk(pages: str, page_of: Open, form: Form) -> None:
    """Edit a form at random; whenever it can be sent, what is sent is what its fields show."""
    page = page_of(form.address(pages), form.who, timezone_id="UTC")
    form.prepare(page)
    expect(form.field(page, form.fields[0])).to_be_visible()
    sent = Sent(page)
    chance = random.Random(29)
    for turn in range(form.edits):
        edit(page, form, chance.choice(form.fields), chance)
        check(page, form, sent, turn)
    # In the end something sensible is typed, and just that is sent.
    for label in form.fields:
        if is_choice(form.field(page, label)):
            form.field(page, label).select_option(index=1)
            continue
        last = f"{START + timedelta(days=28):%Y-%m-%d}"
        good = {"End": END + timedelta(days=1), "Until": END, "New end": END + timedelta(hours=5)}
        middle = START + timedelta(hours=24 if label in ("The second begins", "Wait until") else 0)
        known = (*NUMBERS, *DAYS, *TEXTS, *form.texts)
        end = typed(form, label, chance)[0] if label in known else text(good.get(label, middle))
        end = last if label == "Until the day" else end
        form.field(page, label).fill(end)
    expect(page.locator(form.scope).get_by_role("button", name=re.compile(form.button)).first).to_be_enabled()
    assert check(page, form, sent, form.edits)


@pytest.mark.parametrize("name", FORMS)
def test_random_edits_never_leave_a_button_that_sends_something_else(shared, page_of, complaints, name):
    complaints.expected |= {"status of 409", "status of 400"}
    walk(shared, page_of, FORMS[name])


def check(page: Page, form: Form, sent: Sent, turn: int) -> bool:
    """Press what sends the form, if it can be pressed: what is sent is what the fields show."""
    shown = page.evaluate(PRESS, [form.scope, form.button])
    if shown is None:
        return False
    asks = form.scope != DIALOG and "Book" in form.button
    if asks:
        page.evaluate(PRESS, [DIALOG, "^Book$"])
    body = sent.next(page)
    if asks:
        page.keyboard.press("Escape")
    for label, of in form.body.items() if body is not None else ():
        assert of(body or {}) == meant(form, label, shown[label]), f"turn {turn}: {shown} sent {body}"
    return body is not None


def test_what_comes_of_it_is_said_of_what_the_fields_show(shared, page_of):
    lease = lease_of(shared, min=3, max=3)
    for address, label, good, bad in (
        (f"{shared}lease?id={lease['id']}&do=split", GO, "1", ""),
        (series_of(shared), "First day", text(START + timedelta(days=7))[:-6], "7 D"),
    ):
        page = page_of(address, ALICE, timezone_id="UTC")
        dialog = page.get_by_role("dialog")
        field = dialog.get_by_label(label, exact=True)
        field.fill(good)
        button = dialog.locator("button[type=submit]")
        expect(button).to_be_enabled()
        expect(dialog.get_by_role("status")).not_to_be_empty()
        field.fill(bad)
        expect(button).to_be_disabled()
        expect(dialog.get_by_role("status")).to_be_empty()
        field.fill(good)
        expect(button).to_be_enabled()
        expect(dialog.get_by_role("status")).not_to_be_empty()


def test_an_end_before_the_start_is_said_and_takes_the_answer_away(shared, page_of):
    page = page_of(f"{shared}?start={wire(START)}&end={wire(END)}", ALICE, timezone_id="UTC")
    book = page.get_by_role("button", name=re.compile("^Book "))
    expect(book).to_be_enabled()
    page.get_by_label("End", exact=True).fill(text(START - timedelta(days=1)))
    expect(page.get_by_text("The end has to be after the start.")).to_be_visible()
    expect(book).to_have_count(0)
    assert serious(page) == []
    page.get_by_label("End", exact=True).fill(text(END))
    expect(book).to_be_enabled()


def test_typing_in_the_start_moves_the_end_only_when_it_is_left(shared, page_of):
    page = page_of(f"{shared}?start={wire(START)}&end={wire(END)}", ALICE, timezone_id="UTC")
    start, end = page.get_by_label("Start", exact=True), page.get_by_label("End", exact=True)
    start.fill("")
    start.type(text(END + timedelta(days=1)), delay=5)
    expect(end).to_have_value(text(END))
    start.press("Tab")
    # As long as it was before.
    expect(end).to_have_value(text(END + timedelta(days=3)))
    page.wait_for_url(lambda _: query_of(page)["end"] == [wire(END + timedelta(days=3))])


def test_who_waits_for_a_window_sees_no_end_and_waits_beyond_its_start(shared, page_of):
    hosts = len(asked(shared, ADMIN, "GET", "v1/resources/host")["resources"])
    booked(shared, BOB, "all of it", start=wire(START - timedelta(days=1)), end=wire(END), min=hosts, max=hosts)
    page = page_of(f"{shared}?start={wire(START)}&end={wire(END)}", ALICE, timezone_id="UTC")
    page.get_by_role("button", name="Wait in line").click()
    dialog = page.get_by_role("dialog", name="Wait in line")
    expect(dialog.locator(".summary")).to_contain_text(re.compile(r"2 days, from .* 09:00 on, as soon as possible"))
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("1 host")
    until = dialog.get_by_label("Wait until", exact=True)
    expect(until).to_have_value(text(START + timedelta(days=7)))
    until.fill(text(START - timedelta(hours=1)))
    expect(dialog.get_by_text("It would give up before its earliest start")).to_be_visible()
    expect(dialog.get_by_role("button", name="Wait in line")).to_be_disabled()
    # It waits to the end: with a later one its turn would come at once, and a start be promised.
    until.fill(text(START + timedelta(days=1)))
    dialog.get_by_role("button", name="Wait in line").click()
    expect(page.locator(".lease-title")).to_contain_text("on, as soon as possible; it waits until")
    # Nothing can be booted for days.
    expect(page.get_by_text("openstack server create")).to_have_count(0)
    expect(page.get_by_text("Its hosts are chosen at its turn.")).to_be_visible()
    assert serious(page) == []


def test_an_operator_books_exactly_the_hosts_that_are_drawn(shared, page_of):
    page = page_of(shared + "calendar?zoom=month", ADMIN)
    lines = drawn(page).locator(".line:not(.line-group)")
    names = [lines.nth(number).locator(".line-name strong, .line-name span").first.inner_text() for number in (1, 2)]
    box = lines.nth(1).bounding_box()
    page.mouse.move(800, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(900, box["y"] + 10, steps=3)
    page.mouse.move(960, box["y"] + box["height"] + 10, steps=3)
    page.mouse.up()
    dialog = page.get_by_role("dialog", name="Book these hosts")
    for name in names:
        expect(dialog).to_contain_text(name)
    assert serious(page) == []
    dialog.get_by_role("button", name="Book exactly these").click()
    page.get_by_role("dialog", name="Book").get_by_role("button", name="Book", exact=True).click()
    expect(page.locator(".lease-title")).to_be_visible()
    (lease,) = leases_of(shared, ADMIN)
    given = {one["resource"]["name"] for one in lease["reservations"][0]["allocations"]}
    assert given == set(names)
    expect(page.get_by_text("You marked")).to_have_count(0)


def test_all_hosts_are_free_now_though_one_is_taken_within_the_hour(shared, page_of):
    page = page_of(shared, ALICE)
    count = page.locator(".count").first
    expect(count).to_contain_text("free now")
    hosts = len(asked(shared, ADMIN, "GET", "v1/resources/host")["resources"])
    booked(shared, BOB, "soon", start=wire(datetime.now(UTC) + timedelta(minutes=20)), end="+P1D")
    page.reload()
    expect(count).to_contain_text(f"{hosts} free now")
