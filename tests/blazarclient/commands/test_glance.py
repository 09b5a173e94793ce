# SPDX-License-Identifier: Apache-2.0
"""``lease list`` for people: what each lease has, how it stands and how long it lasts, in 80 columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from blazarclient import text_columns
from blazarclient.commands import glance
from blazarclient.library.values import Allocation, Lease, Reservation, Resource

from tests.blazarclient.commands.conftest import ID, LEASE, NEW, URL, Run, says, sent

NOW = datetime(2026, 11, 23, 10, 15, 42, tzinfo=UTC)


def host(*names: str) -> dict[str, Any]:
    allocations = [
        {"resource": {"id": name, "type": "host", "name": name}, "count": 1, "used": None, "status": "in_use"}
        for name in names
    ]
    return {"resource_type": "physical:host", "id": "r", "status": "active", "max": 9, "allocations": allocations}


LEASES = [
    {**LEASE, "reservations": [host("compute-17")]},
    {**LEASE, "id": "2" + ID[1:], "name": "summer school for the whole of the faculty", "status": "PENDING",
     "start_date": "2026-11-25T10:15:42Z", "end_date": "2026-11-28T22:15:42Z", "reservations": [host("a", "b", "c")]},
    {**LEASE, "id": "3" + ID[1:], "name": "line", "status": "WAITING",
     "reservations": [{"resource_type": "virtual:floatingip", "amount": 2}, {"resource_type": "virtual:stack"}]},
    {**LEASE, "id": "4" + ID[1:], "name": "over", "status": "TERMINATED", "end_date": "2026-11-23T10:00:00Z"},
]  # fmt: skip


@pytest.fixture
def leases(service: Any) -> Any:
    service.get(f"{URL}/leases", **says("leases", LEASES))
    return service


def test_a_list_tells_what_a_lease_has_and_how_long_it_lasts(run: Run, leases: Any) -> None:
    code, out, err = run("lease", "list", "--max-width", "80")
    assert (code, err) == (0, "")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line[0] == "|"]
    assert cells[0] == ["id", "name", "what", "status", "remaining"]
    # They are sorted by name.
    rows = {row[0]: row[1:] for row in cells[1:] if row[0]}
    assert list(rows) == ["31111111", "41111111", "21111111", "11111111"]
    assert rows["11111111"] == ["training", "compute-17", "ACTIVE", "3d"]
    assert rows["21111111"][1:3] == ["3 hosts", "PENDING"]
    assert "2 addresses" in out
    assert "1 stack" in out
    assert max(map(len, out.splitlines())) <= 80
    # A name or two may need a second line; ids do not.
    assert len(cells) <= 8


def test_a_wide_terminal_has_room_for_whole_ids(run: Run, leases: Any) -> None:
    assert ID in run("lease", "list", "--max-width", "160")[1]
    assert ID in run("lease", "list")[1]


def test_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(run: Run, leases: Any) -> None:
    def found(request: Any, context: Any) -> dict[str, Any]:
        return {"leases": [] if "name" in request.qs else [{"id": each["id"]} for each in LEASES]}

    leases.get(f"{URL}/leases", json=found, headers=NEW)
    assert run("lease", "show", "11111111", "-f", "value", "-c", "name") == (0, "training\n", "")
    code, _, err = run("lease", "show", "99999999", "-f", "value", "-c", "name")
    assert (code, err) == (3, "There is no lease 99999999\n")


@pytest.mark.parametrize("form", ["json", "csv", "value", "yaml"])
def test_programs_get_the_columns_that_they_have_always_had(run: Run, leases: Any, form: str) -> None:
    assert run("lease", "list", "-f", form)[0] == 0
    assert "OpenStack-API-Version" not in sent(leases, "GET")[0].headers
    _, out, _ = run("lease", "list", "-f", "json")
    assert list(json.loads(out)[0]) == ["id", "name", "start_date", "end_date"]


def test_a_program_may_ask_for_what_people_see(run: Run, leases: Any) -> None:
    _, out, _ = run("lease", "list", "-f", "json", "-c", "what", "-c", "remaining")
    assert json.loads(out)[0] == {"what": "compute-17", "remaining": "3d"}


def test_a_list_has_what_has_ended_and_was_not_deleted(run: Run, service: Any) -> None:
    """Microversion 1.0 lists it, with dates of its own; later ones tell more of what lasts, and list that only."""
    dates = {"start_date": "2026-11-20T10:00:00.000000", "end_date": "2026-11-21T10:00:00.000000"}
    reserved = [{"id": "r", "resource_type": "physical:host", "min": 1, "max": 2, "hypervisor_properties": ""}]
    ended = {"id": "5" + ID[1:], "name": "ended", "status": "TERMINATED", "reservations": reserved, **dates}
    waiting = {**ended, "id": LEASES[2]["id"], "name": "line", "status": "CREATING"}

    def found(request: Any, context: Any) -> dict[str, Any]:
        is_new = "OpenStack-API-Version" in request.headers
        context.headers.update(NEW if is_new else {})
        return {"leases": LEASES[:3] if is_new else [waiting, ended]}

    service.get(f"{URL}/leases", json=found)
    lines = run("lease", "list", "--max-width", "80")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[0] == "|"]
    assert cells[1:] == [
        ["51111111", "ended", "2 hosts", "TERMINATED", ""],
        ["31111111", "line", "2 addresses, 1 stack", "WAITING", "waits, 3d"],
    ]
    assert [each.qs for each in sent(service, "GET") if "OpenStack-API-Version" not in each.headers] == [{}]
    by_status = run("lease", "list", "--max-width", "160", "--sort-by", "status")[1]
    assert by_status.index("TERMINATED") < by_status.index("WAITING")
    assert "ended" not in run("lease", "list", "--state", "current", "--max-width", "160")[1]


def test_an_old_service_has_the_list_of_old(run: Run, old_service: Any) -> None:
    code, out, err = run("lease", "list")
    assert (code, err) == (0, "")
    assert "start_date" in out
    assert "training" in out


def test_a_sort_that_only_the_client_can_do_has_the_list_of_old(run: Run, leases: Any) -> None:
    assert "start_date" in run("lease", "list", "--sort-by", "id")[1]


def a_lease(status: str, start: timedelta, length: timedelta) -> Lease:
    return Lease(id=ID, name="x", status=status, start_date=NOW + start, end_date=NOW + start + length)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("status", "start", "length", "text"),
    [
        ("ACTIVE", timedelta(0), timedelta(seconds=1), "1s"),
        ("ACTIVE", timedelta(hours=-1), timedelta(hours=2, minutes=5), "1h 5min"),
        ("ACTIVE", timedelta(hours=-1), timedelta(days=400, hours=4, minutes=3), "400d 3h"),
        ("ACTIVE", timedelta(hours=-2), timedelta(hours=1), ""),
        ("PENDING", timedelta(minutes=90), timedelta(days=1), "1d, in 1h 30min"),
        ("WAITING", timedelta(0), timedelta(days=1), "waits, 1d"),
        ("TERMINATED", timedelta(0), timedelta(days=1), ""),
        ("ERROR", timedelta(0), timedelta(days=1), ""),
    ],
)
def test_what_remains_is_told_in_two_units(status: str, start: timedelta, length: timedelta, text: str) -> None:
    assert glance.time_left_of(a_lease(status, start, length), NOW) == text


def test_names_of_hosts_are_told_while_they_are_few() -> None:
    def reservation(kind: str, *names: str | None, **parameters: Any) -> Reservation:
        found = tuple(
            Allocation(resource=Resource(id="i", type="host", name=name), count=1, status="x")  # type: ignore[call-arg]
            for name in names
        )
        return Reservation(resource_type=kind, allocations=found, parameters=parameters)

    def what(*reservations: Reservation) -> str:
        return glance.contents_of(Lease(id=ID, name="x", reservations=reservations))  # type: ignore[call-arg]

    assert what() == ""
    assert what(reservation("physical:host", "b", "a", max=2)) == "a, b"
    assert what(reservation("physical:host", "b", "a", "c", max=9)) == "3 hosts"
    assert what(reservation("physical:host", None, None, max=2)) == "2 hosts"
    assert what(reservation("virtual:instance", amount=1), reservation("virtual:floatingip", amount=3)) == (
        "1 instance, 3 addresses"
    )
    assert what(reservation("telescope", count=2)) == "2 telescopes"
    assert text_columns.harmless(what(reservation("physical:host", "a\x1b"))) == "a?"
