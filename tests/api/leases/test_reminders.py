# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: reminders of leases and of series, what is refused, and where they are told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from icalendar import Calendar

from tests.api.leases.test_waiting import ask, fault
from tests.world import NOON

LEASE = {
    "name": "ours",
    "end_date": "+10h",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}
SAVE = {"at": "-PT2H", "text": "copy the results"}
SHOWN = {**SAVE, "from": "end", "time": "2030-04-01T20:00:00Z", "sent_at": None}
HOUR = timedelta(hours=1)


def made(http, *reminders, **more):
    answer = ask(http, body={**LEASE, "reminders": list(reminders), **more})
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"at": "-PT2H"}, ("-PT2H", "end", "2030-04-01T20:00:00Z")),
        ({"at": "-2h", "from": "end"}, ("-PT2H", "end", "2030-04-01T20:00:00Z")),
        ({"at": "+90m"}, ("+PT1H30M", "start", "2030-04-01T13:30:00Z")),
        ({"at": "+PT24M", "from": "start"}, ("+PT24M", "start", "2030-04-01T12:24:00Z")),
        ({"at": "2030-04-01T15:00:00+02:00"}, ("2030-04-01T13:00:00Z", None, "2030-04-01T13:00:00Z")),
        ({"at": "2030-04-01 15:00", "from": None}, ("2030-04-01T15:00:00Z", None, "2030-04-01T15:00:00Z")),
    ],
    ids=str,
)
def test_a_reminder_is_shown_with_the_date_that_it_counts_from_and_its_time(http, asked, shown):
    (found,) = made(http, {**asked, "text": "é ☕"})["reminders"]
    assert (found["at"], found["from"], found["time"]) == shown
    assert (found["text"], found["sent_at"]) == ("é ☕", None)


def test_a_day_has_24_hours_and_one_can_be_before_the_start(http):
    lease = made(
        http,
        {"at": "-PT1H", "from": "start", "text": "x"},
        {"at": "-P1DT1H", "text": "y"},
        start_date="2030-04-03T12:00:00Z",
    )
    assert [r["time"] for r in lease["reminders"]] == ["2030-04-03T11:00:00Z", "2030-04-02T21:00:00Z"]
    assert [r["at"] for r in lease["reminders"]] == ["-PT1H", "-P1DT1H"]


def test_a_lease_has_none_by_default_and_a_dry_run_shows_them(http):
    assert ask(http, body=LEASE).json["lease"]["reminders"] == []
    planned = ask(http, path="/v1/leases?dry_run=true", body={**LEASE, "reminders": [SAVE]})
    assert planned.json["lease"]["reminders"] == [SHOWN]


@pytest.mark.parametrize(
    ("asked", "pointer", "says"),
    [
        ({"at": "-PT2H"}, "/text", "text"),
        ({"text": "x"}, "/at", "at"),
        ({"at": "PT2H", "text": "x"}, "/at", "such as -PT2H, one from the start such as +P1D, or a date"),
        ({"at": "now", "text": "x"}, "/at", "such as -PT2H, one from the start such as +P1D, or a date"),
        ({"at": "2030-13-01T08:00Z", "text": "x"}, "/at", "such as -PT2H, one from the start such as +P1D, or a date"),
        ({"at": "-PT1.5H", "text": "x"}, "/at", "in whole units such as P3D, PT90M"),
        ({"at": "-P1M", "text": "x"}, "/at", "months differ in length"),
        ({"at": "-P9000W", "text": "x"}, "/at", "at most 5 years"),
        ({"at": "-" + "9" * 60 + "h", "text": "x"}, "/at", "at most 5 years"),
        ({"at": "+PT1H", "from": "end", "text": "x"}, "/at", "begins with -"),
        ({"at": "-PT1H", "from": "middle", "text": "x"}, "/from", "start"),
        ({"at": "2030-04-01T15:00:00Z", "from": "end", "text": "x"}, "/from", "of a date leave it out"),
        ({"at": "-PT11H", "text": "x"}, "/at", "give a time to come"),
        ({"at": "-PT10H", "from": "start", "text": "x"}, "/at", "give a time to come"),
        ({"at": "+PT10H", "text": "x"}, "/at", "give a time before its end"),
        ({"at": "-PT1H", "text": ""}, "/text", "one line"),
        ({"at": "-PT1H", "text": "  "}, "/text", "give one line"),
        ({"at": "-PT1H", "text": "a\nb"}, "/text", "give one line"),
        ({"at": "-PT1H", "text": "a\u202eb"}, "/text", "give one line"),
        ({"at": "-PT1H", "text": "a\u2028b"}, "/text", "give one line"),
        ({"at": "-PT1H", "text": "a\x7fb"}, "/text", "give one line"),
        ({"at": "-PT1H", "text": "\u00a0\u200d"}, "/text", "give one line"),
        ({"at": "-PT1H", "text": "x" * 256}, "/text", "255"),
        ({"at": "-PT1H", "text": 5}, "/text", "one line"),
        ({"at": "-PT1H", "text": "x", "sent_at": None}, "/sent_at", "sent_at"),
        ("-PT1H", "", "object"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_with_its_place(http, asked, pointer, says):
    answer = ask(http, body={**LEASE, "reminders": [asked]})
    status, _, where = fault(answer)
    assert (status, where) == (400, f"/reminders/0{pointer}"), answer.text
    assert says in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    "text",
    ["\u00e0 10\u00a0h\u202f30", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f52c"],
    ids=ascii,
)
def test_one_line_is_any_text_as_people_type_it(http, text):
    asked = ask(http, body={**LEASE, "reminders": [{"at": "-PT1H", "text": text}]})
    assert [r["text"] for r in asked.json["lease"]["reminders"]] == [text]


def test_a_series_is_offered_no_date_for_its_reminders(http):
    series = {"name": "x", "start": "2030-04-02T09:00", "duration": "PT2H", "rule": "FREQ=DAILY;COUNT=2"}
    asked = {**series, "reservations": LEASE["reservations"], "reminders": [{"at": "now", "text": "x"}]}
    answer = ask(http, path="/v1/series", body=asked)
    assert fault(answer)[0] == 400
    assert answer.json["errors"][0]["detail"].endswith("such as -PT2H, or from the start such as +P1D")


def test_there_are_at_most_ten_and_each_once(http):
    many = [{"at": f"-PT{n}M", "text": "x"} for n in range(1, 12)]
    assert len(made(http, *many[:10])["reminders"]) == 10
    assert fault(ask(http, body={**LEASE, "reminders": many}))[::2] == (400, "/reminders")
    twice = ask(http, body={**LEASE, "reminders": [SAVE, {**SAVE, "from": "end"}]})
    assert fault(twice)[::2] == (400, "/reminders/1")


def test_a_change_takes_the_place_of_all_of_them_and_what_was_shown_can_be_sent_back(http, world):
    lease = made(http, SAVE, {"at": "+1h", "text": "look"})
    path = f"/v1/leases/{lease['id']}"
    world.run_to(NOON + 2 * HOUR)
    before = ask(http, "GET", path).json["lease"]
    assert [r["sent_at"] for r in before["reminders"]] == [None, "2030-04-01T13:00:00Z"]
    assert ask(http, "PUT", path, {"reminders": before["reminders"]}).json["lease"] == before
    assert ask(http, "PUT", path, before).json["lease"] == before
    more = [*before["reminders"], {"at": "-PT1H", "text": "really"}]
    after = ask(http, "PUT", path, {"reminders": more}).json["lease"]
    assert after["reminders"][:2] == before["reminders"]
    assert after["reminders"][2]["time"] == "2030-04-01T21:00:00Z"
    moved = ask(http, "PUT", path, {"end_date": "+12h"}).json["lease"]
    assert moved["reminders"][0]["time"] == "2030-04-01T22:00:00Z"
    refused = ask(http, "PUT", path, {"reminders": [{"at": "+1m", "text": "x"}]})
    assert fault(refused)[::2] == (400, "/reminders/0/at")
    assert ask(http, "PUT", path, {"reminders": []}).json["lease"]["reminders"] == []


def test_1_0_neither_takes_nor_shows_them(http, world):
    lease = made(http, SAVE)
    shown = http.get(f"/v1/leases/{lease['id']}").json["lease"]
    assert "reminders" not in shown
    assert {e["event_type"] for e in shown["events"]} == {"start_lease", "before_end_lease", "end_lease"}
    assert http.put(f"/v1/leases/{lease['id']}", json={"reminders": [SAVE]}).status_code == 400
    seen = ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]
    assert {e["event_type"] for e in seen["events"]} == {"start_lease", "before_end_lease", "end_lease"}


def test_the_history_has_the_text_of_what_was_told(http, world):
    lease = made(http, SAVE)
    world.run_to(NOON + 8 * HOUR)
    last = ask(http, "GET", f"/v1/leases/{lease['id']}/history").json["history"][-1]
    assert (last["verb"], last["at"]) == ("reminded", "2030-04-01T20:00:00Z")
    assert last["by"]["kind"] == "service"
    assert last["changes"] == [
        {"field": "reminder", "reservation_id": None, "before": None, "after": "copy the results"}
    ]


def test_programs_for_calendars_get_them_as_alarms(http):
    made(
        http,
        SAVE,
        {"at": "+PT3H", "text": "look"},
        {"at": "2030-04-01T18:00:00Z", "text": "call"},
    )
    feed = ask(http, path="/v1/feeds", body={"kind": "user", "name": "mine"}).json["feed"]
    text = http.get(feed["url"].removeprefix("http://localhost")).text.replace("\r\n ", "")
    (event,) = Calendar.from_ical(text).walk("VEVENT")
    alarms = {str(alarm["description"]): alarm["trigger"] for alarm in event.walk("VALARM")}
    assert alarms["copy the results"].dt == -2 * HOUR
    assert alarms["copy the results"].params["RELATED"] == "END"
    assert (alarms["look"].dt, alarms["look"].params["RELATED"]) == (3 * HOUR, "START")
    assert alarms["call"].dt == NOON + 6 * HOUR


SERIES = {
    "name": "course",
    "rule": "FREQ=DAILY;COUNT=3",
    "start": "2030-04-01T13:00",
    "duration": "PT4H",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}


def leases_of(http, series: dict) -> list[dict]:
    ids = [each["lease_id"] for each in series["occurrences"] if each["lease_id"]]
    return [ask(http, "GET", f"/v1/leases/{id_}").json["lease"] for id_ in ids]


def test_each_lease_of_a_series_has_its_own_and_those_past_are_not_told(http, world):
    early = {"at": "-PT2H", "from": "start", "text": "prepare"}
    answer = ask(http, path="/v1/series", body={**SERIES, "reminders": [early, SAVE]})
    assert answer.status_code == 201, answer.text
    series = answer.json["series"]
    assert series["reminders"] == [early, {**SAVE, "from": "end"}]
    first, second, _ = leases_of(http, series)
    assert [r["time"][8:13] for r in first["reminders"]] == ["01T11", "01T15"]
    assert [r["time"][8:13] for r in second["reminders"]] == ["02T11", "02T15"]
    world.run_to(NOON + 24 * HOUR)
    first, second, _ = leases_of(http, series)
    assert [r["sent_at"] for r in first["reminders"]] == [None, "2030-04-01T15:00:00Z"]
    assert [r["sent_at"] for r in second["reminders"]] == ["2030-04-02T11:00:00Z", None]


def test_a_change_of_a_series_changes_those_of_its_leases_to_come(http, world):
    series = ask(http, path="/v1/series", body={**SERIES, "reminders": [SAVE]}).json["series"]
    path = f"/v1/series/{series['id']}"
    longer = ask(http, "PUT", path, {"duration": "PT5H"})
    assert [lease["reminders"][0]["time"][8:13] for lease in leases_of(http, longer.json["series"])] == [
        "01T16",
        "02T16",
        "03T16",
    ]
    other = ask(http, "PUT", path, {"reminders": [{"at": "+PT1H", "text": "look"}]}).json["series"]
    assert [r["text"] for lease in leases_of(http, other) for r in lease["reminders"]] == ["look"] * 3
    world.run_to(NOON + 3 * HOUR)
    assert world.notifier.reminded == ["look"]
    none = ask(http, "PUT", path, {"reminders": []}).json["series"]
    assert none["reminders"] == []
    dated = ask(http, path="/v1/series", body={**SERIES, "reminders": [{"at": "2030-04-01T15:00Z", "text": "x"}]})
    assert fault(dated)[::2] == (400, "/reminders/0/at")


def test_one_that_no_lease_of_a_series_would_tell_is_refused_also_if_the_leases_become_that_short(http):
    late = {"at": "+PT4H", "text": "look"}
    answer = ask(http, path="/v1/series", body={**SERIES, "reminders": [SAVE, late]})
    assert fault(answer) == (400, "invalid_window", "/reminders/1/at"), answer.text
    assert answer.json["errors"][0]["detail"].endswith("which lasts PT4H; give a time before its end")
    longer = {**SERIES, "duration": "PT5H", "reminders": [late]}
    series = ask(http, path="/v1/series", body=longer).json["series"]
    path = f"/v1/series/{series['id']}"
    shorter = ask(http, "PUT", path, {"duration": "PT4H"})
    assert fault(shorter)[::2] == (400, "/duration"), shorter.text
    assert fault(ask(http, "PUT", path, {"reminders": [{**late, "at": "+PT5H"}]}))[::2] == (400, "/reminders/0/at")
    assert ask(http, "PUT", path, {"name": "other"}).status_code == 200


def test_another_project_gets_none_of_them_with_a_lease(http, world):
    lease = made(http, SAVE)
    path = f"/v1/leases/{lease['id']}"
    offered = ask(http, "POST", f"{path}/transfer", {"project_id": "chemistry"})
    assert offered.status_code in (200, 201), offered.text
    taker = {"X-Auth-Token": "pierre:chemistry:member"}
    taken = http.post(
        f"/v1/transfers/{lease['id']}/accept",
        headers={**taker, "OpenStack-API-Version": "reservation 1.1"},
        json={},
    )
    assert taken.status_code == 200, taken.text
    assert taken.json["lease"]["reminders"] == []
    history = http.get(f"{path}/history", headers={**taker, "OpenStack-API-Version": "reservation 1.1"})
    assert "copy the results" not in history.text
