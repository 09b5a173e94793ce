# SPDX-License-Identifier: Apache-2.0
"""``lease extend``, ``move``, ``end`` and ``delete``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import ID, LEASE, SPOKEN, URL, Run, refusal, says, sent

END = "2026-11-26T10:15:42Z"
STALE = refusal("precondition_failed", "It has changed.", status=412)


def changes(service: Any) -> list[dict[str, Any]]:
    return [request.json() for request in sent(service, "PUT")]


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("--by", "2d"), "2026-11-28T10:15:42Z"),
        (("--by", "90m"), "2026-11-26T11:45:42Z"),
        (("--until", "2026-12-01 09:00"), "2026-12-01T08:00:00Z"),
        (("--until", "+1d"), "2026-11-27T10:15:42Z"),
    ],
)
@pytest.mark.parametrize("lease", ["training", ID])
def test_a_lease_is_extended_from_the_end_that_was_read(
    run: Run, service: Any, words: tuple[str, ...], end: str, lease: str
) -> None:
    code, _, err = run("lease", "extend", lease, *words)
    assert (code, err) == (0, "")
    assert changes(service) == [{"end_date": end}]
    assert sent(service, "PUT")[0].headers["If-Match"] == '"3.1.m"'


def test_times_are_told_with_their_offset_and_to_programs_in_utc(run: Run, service: Any) -> None:
    _, table, _ = run("lease", "extend", "training", "--by", "2d")
    _, text, _ = run("lease", "extend", "training", "--by", "2d", "-f", "json")
    assert "2026-11-26 11:15:42+01:00" in table
    assert json.loads(text)["end_date"] == END


def test_a_lease_that_has_not_begun_is_not_ended_but_deleted(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", **says("lease", {**LEASE, "status": "PENDING"}))
    service.put(f"{URL}/leases/{ID}", **refusal("invalid_value", "End date must be later than start date.", status=400))
    code, out, err = run("lease", "end", "training")
    assert (code, out) == (1, "")
    assert err == "Lease training has not begun, and cannot be ended; use lease delete\n"


@pytest.mark.parametrize("words", [("extend", "training", "--by", "2d"), ("end", "training")])
def test_a_column_that_is_not_there_is_told_of_before_anything_is_changed(
    run: Run, service: Any, words: tuple[str, ...]
) -> None:
    code, out, err = run("lease", *words, "-c", "end")
    assert (code, out) == (1, "")
    assert err == "There is no column end; choose from end_date, id, name, start_date, status\n"
    assert not changes(service)


@pytest.mark.parametrize("words", [("--until", "2026-11-24 09:00"), ("--until", "now")])
def test_extending_never_ends_a_lease_sooner(run: Run, service: Any, words: tuple[str, ...]) -> None:
    code, _, err = run("lease", "extend", "training", *words)
    assert code == 1
    assert "lasts until 2026-11-26 11:15:42+01:00 already" in err
    assert not changes(service)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("extend", "--by", "long"), "--by: 'long' is no length of time"),
        (("extend", "--until", "soon"), "--until: 'soon' is no time"),
        (("move", "--later", "9999999d"), "--later: P9999999D is too long"),
        (("move", "--earlier", "3x"), "--earlier: '3x' is no length of time"),
        (("move", "--to", "25:00"), "--to: '25:00' is no time"),
    ],
)
def test_a_time_that_is_none_is_refused_by_the_name_of_its_option(
    run: Run, service: Any, words: tuple[str, ...], sentence: str
) -> None:
    command, *options = words
    code, _, err = run("lease", command, "training", *options)
    assert (code, err.startswith(sentence)) == (2, True), err
    assert not changes(service)


@pytest.mark.parametrize(
    ("extension", "code", "asked", "sentence"),
    [
        (
            {"open_until": "2026-12-04T15:00:00Z", "limited_by": "promised", "refusals": []},
            0,
            [{"end_date": "2026-12-04T15:00:00Z"}],
            "It can be extended until 2026-12-04 16:00+01:00: what it holds is promised to another lease",
        ),
        (
            {"open_until": None, "limited_by": None, "refusals": []},
            0,
            [{"end_date": "2027-01-22T10:15:42Z"}],
            "",
        ),
        (
            {"open_until": END, "limited_by": "promised", "refusals": []},
            5,
            [],
            "Lease training cannot be extended: what it holds is promised",
        ),
    ],
)
def test_as_far_as_possible_is_until_others_need_it(
    run: Run, service: Any, extension: dict[str, Any], code: int, asked: list[dict[str, Any]], sentence: str
) -> None:
    answer = {"as_of": END, "earliest": END, "latest": "2027-01-22T10:15:42Z", "extension": extension}
    service.post(f"{URL}/availability", **says("availability", answer))
    left, _, err = run("lease", "extend", "training", "--as-far-as-possible")
    assert left == code
    assert sentence in err
    assert changes(service) == asked


def test_if_there_is_no_room_it_is_told_how_far_it_can_be_extended(run: Run, service: Any) -> None:
    extension = {"open_until": "2026-12-04T15:00:00Z", "limited_by": "promised", "refusals": []}
    answer = {"as_of": END, "earliest": END, "latest": "2027-01-22T10:15:42Z", "extension": extension}
    service.post(f"{URL}/availability", **says("availability", answer))
    service.put(f"{URL}/leases/{ID}", **refusal("not_enough_resources", "None is free."))
    code, _, err = run("lease", "extend", "training", "--by", "30d")
    assert code == 5
    assert err == "None is free. It can be extended until 2026-12-04 16:00+01:00, with --as-far-as-possible.\n"


@pytest.mark.parametrize(
    ("command", "pointer", "sentence"),
    [
        (("move", "training", "--to", "+1d"), "/start_date", "the new start: It is past."),
        (("move", "training", "--later", "1d"), "/end_date", "the new end: It is past."),
        (("extend", "training", "--by", "1d"), "/end_date", "the new end: It is past."),
    ],
)
def test_a_refused_date_is_told_in_words(
    run: Run, service: Any, command: tuple[str, ...], pointer: str, sentence: str
) -> None:
    service.put(f"{URL}/leases/{ID}", **refusal("invalid_value", "It is past.", status=400, pointer=pointer))
    code, _, err = run("lease", *command)
    assert (code, err) == (1, f"{sentence}\n")


def test_a_refusal_is_told_also_if_nobody_knows_how_far(run: Run, service: Any) -> None:
    service.post(f"{URL}/availability", **refusal("forbidden", "It is not for you.", status=403))
    service.put(f"{URL}/leases/{ID}", **refusal("not_enough_resources", "None is free."))
    assert run("lease", "extend", "training", "--by", "30d")[::2] == (5, "None is free.\n")


def test_a_lease_of_which_something_else_has_changed_is_changed_all_the_same(run: Run, service: Any) -> None:
    service.get(
        f"{URL}/leases/{ID}",
        [says("lease", LEASE, headers={"ETag": f'"{revision}.1.m"'}) for revision in (3, 4)],
    )
    service.put(f"{URL}/leases/{ID}", [STALE, says("lease", LEASE)])
    code, _, err = run("lease", "extend", "training", "--by", "2d")
    assert (code, err) == (0, "")
    assert [request.headers["If-Match"] for request in sent(service, "PUT")] == ['"3.1.m"', '"4.1.m"']


def test_a_lease_whose_end_has_changed_meanwhile_is_left_alone(run: Run, service: Any) -> None:
    moved = {**LEASE, "end_date": "2026-11-30T10:15:42Z"}
    service.get(f"{URL}/leases/{ID}", [says("lease", LEASE), says("lease", moved)])
    service.put(f"{URL}/leases/{ID}", **STALE)
    code, _, err = run("lease", "extend", "training", "--by", "2d")
    assert code == 6
    assert "Lease training has been changed meanwhile" in err
    assert len(changes(service)) == 1


def test_trying_an_extension_out_changes_nothing(run: Run, service: Any) -> None:
    code, _, err = run("lease", "extend", "training", "--by", "2d", "--dry-run")
    assert (code, err) == (0, "Nothing was changed. It would be:\n")
    assert sent(service, "PUT")[0].qs == {"dry_run": ["true"]}


@pytest.mark.parametrize("words", [(), ("--by", "1d", "--until", "now")])
def test_there_is_one_way_to_say_how_far(run: Run, service: Any, words: tuple[str, ...]) -> None:
    code, _, _ = run("lease", "extend", "training", *words)
    assert code == 2


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        (("--later", "2d"), "2026-11-25T10:15:42Z", "2026-11-28T10:15:42Z"),
        (("--earlier", "15m"), "2026-11-23T10:00:42Z", "2026-11-26T10:00:42Z"),
        (("--to", "2026-12-01 09:00"), "2026-12-01T08:00:00Z", "2026-12-04T08:00:00Z"),
    ],
)
def test_a_lease_is_moved_as_a_whole(run: Run, service: Any, words: tuple[str, ...], start: str, end: str) -> None:
    code, _, err = run("lease", "move", "training", *words)
    assert (code, err) == (0, "")
    assert changes(service) == [{"start_date": start, "end_date": end}]


def test_a_day_over_a_change_of_clocks_is_a_day_of_the_calendar(run: Run, service: Any) -> None:
    lease = {**LEASE, "end_date": "2027-03-27T11:00:00Z"}
    service.get(f"{URL}/leases/{ID}", **says("lease", lease))
    run("lease", "extend", "training", "--by", "1d")
    run("lease", "extend", "training", "--by", "24h")
    assert changes(service) == [{"end_date": "2027-03-28T10:00:00Z"}, {"end_date": "2027-03-28T11:00:00Z"}]


def test_a_lease_is_ended_now_and_shown_as_it_is_then(run: Run, service: Any) -> None:
    over = says("lease", {**LEASE, "status": "TERMINATED"})
    service.get(f"{URL}/leases/{ID}", [says("lease", LEASE), says("lease", LEASE), over])
    code, out, err = run("lease", "end", "training", "-f", "value", "-c", "status")
    assert (code, out, err) == (0, "TERMINATED\n", "")
    assert changes(service) == [{"end_date": "now"}]


def test_an_end_that_takes_its_time_is_told_of(run: Run, service: Any) -> None:
    code, out, err = run("lease", "end", "training", "-f", "value", "-c", "status")
    assert (code, out) == (0, "ACTIVE\n")
    assert err == (
        "Lease training is ending: what it holds is given back; lease watch training tells when that is done.\n"
    )


def test_a_service_that_goes_away_after_the_end_was_asked_for_is_told_of(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", status_code=503, json={"error_message": "Later."})
    code, _, err = run("lease", "end", ID)
    assert code == 0
    assert err.startswith("Lease training is ending: what it holds is given back, but the service does not tell")


def test_who_stops_waiting_for_the_end_is_told_that_it_comes(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases/{ID}", exc=KeyboardInterrupt)
    code, _, err = run("lease", "end", ID)
    assert (code, err) == (130, "No longer waiting. Lease training is ending: what it holds is given back.\n")


def test_an_old_service_extends_and_ends_as_well(run: Run, old_service: Any) -> None:
    assert run("lease", "extend", "training", "--by", "2d")[0] == 0
    assert run("lease", "move", "training", "--later", "1d")[0] == 0
    assert run("lease", "end", "training")[0] == 0
    done = [request for request in sent(old_service, "PUT") if "OpenStack-API-Version" not in request.headers]
    assert [request.json() for request in done] == [
        {"end_date": "2026-11-28 10:15"},
        {"start_date": "2026-11-24 10:15", "end_date": "2026-11-27 10:15"},
        {"end_date": "now"},
    ]


def test_of_several_leases_each_outcome_is_told(run: Run, service: Any) -> None:
    other = "22222222-2222-4333-8444-000000000002"
    service.delete(f"{URL}/leases/{other}", **refusal("lease_not_found", "There is no such lease.", status=404))
    code, out, err = run("lease", "delete", other, "training")
    assert (code, out) == (3, "Deleted lease: training\n")
    assert err.startswith(f"{other}: ")


def test_a_name_that_several_leases_have_is_refused_with_their_ids(run: Run, service: Any) -> None:
    service.get(f"{URL}/leases", **says("leases", [{"id": "a"}, {"id": "b"}]))
    code, _, err = run("lease", "delete", "training")
    assert code == 3
    assert err.rstrip() == "Several leases are called training; give an id: a, b"
    assert not sent(service, "DELETE")


@pytest.mark.parametrize(
    ("word", "asked"),
    [
        ("2030-04-09 10:00Z", {"until": "2030-04-09T10:00:00Z"}),
        ("never", None),
        # From its end, as --until does.
        ("+3d", {"until": "2026-11-29T10:15:42Z"}),
        ("+30m", {"until": "2026-11-26T10:45:42Z"}),
    ],
)
def test_a_lease_is_extended_by_itself_while_nobody_wants_what_it_has(
    run: Run, service: Any, word: str, asked: Any
) -> None:
    answer = {"OpenStack-API-Version": SPOKEN, "Content-Type": "application/json"}
    service.put(f"{URL}/leases/{ID}", **says("lease", LEASE, headers=answer))
    code, _, err = run("lease", "extend", "training", "--if-free-until", word)
    (put,) = sent(service, "PUT")
    assert (code, put.json()) == (0, {"extend_if_free": asked}), err
    assert put.headers["OpenStack-API-Version"] == SPOKEN


def test_a_refusal_of_what_a_lease_is_extended_to_by_itself_names_the_option(run: Run, service: Any) -> None:
    detail = "extend_if_free.until is 2026-11-23T11:00:00Z, and the lease ends at 2026-11-26T10:15:42Z"
    service.put(f"{URL}/leases/{ID}", **refusal("invalid_value", detail, 400, pointer="/extend_if_free/until"))
    _, _, err = run("lease", "extend", "training", "--if-free-until", "2026-11-23 12:00")
    assert err.startswith("--if-free-until is 2026-11-23T11:00:00Z, and the lease ends at")
