# SPDX-License-Identifier: Apache-2.0
"""Leases by the library: what is sent, what is read, and how it waits."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

import pytest
from blazarclient import exception
from blazarclient.library.leases import CHANGES

from tests.blazarclient.library.stub import REQUEST_ID, SPOKEN, Hangs, Says, lease, refused

ID = lease()["id"]
HOST = {"resource_type": "physical:host", "min": 1}
MISSING = refused(404, "lease_not_found", "There is no lease.")


def told(**values):
    return Says(200, {"lease": lease(**values)}, {"ETag": f'"{values.get("revision", 1)}.1.a"'})


def listed(*leases, **more):
    return Says(200, {"leases": list(leases), "links": [], **more})


def query(asked):
    return {key: values[0] for key, values in parse_qs(urlsplit(asked.path).query).items()}


def test_a_creation_sends_what_is_given_and_no_more(reservations, stub):
    stub.says(told())
    start = datetime(2030, 5, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    reservations.leases.create("x", reservations=[HOST], start_date=start, end_date="+P3D", time_zone="Europe/Paris")
    [asked] = stub.asked
    assert (asked.method, asked.path) == ("POST", "/v1/leases")
    assert asked.headers["OpenStack-API-Version"] == SPOKEN
    assert asked.body == {
        "name": "x",
        "start_date": "2030-05-01T10:00:00Z",
        "end_date": "+P3D",
        "time_zone": "Europe/Paris",
        "reservations": [HOST],
    }


def test_an_immediate_lease_is_asked_for(reservations, stub):
    stub.says(Says(201, {"lease": {**lease(), "kind": "immediate", "end_reason": None}}))
    made = reservations.leases.create("x", reservations=[HOST], end_date="+P3D", kind="immediate")
    [asked] = stub.asked
    assert asked.body["kind"] == "immediate"
    assert (made.kind, made.end_reason) == ("immediate", None)


def test_a_date_without_a_zone_is_refused_before_it_is_sent(reservations, stub):
    with pytest.raises(ValueError, match="has no time zone"):
        reservations.leases.create("x", reservations=[HOST], end_date=datetime(2030, 5, 1))
    assert stub.asked == []


def test_a_lease_is_read_into_typed_values(reservations, stub):
    reason = {"code": "resource_failed", "message": "1 of 2 hosts has failed"}
    condition = {"type": "missing_resources", "since": "2030-05-01T11:00:00Z", "count": 1, "reason": reason}
    reservation = {
        "id": "r",
        "resource_type": "physical:host",
        "status": "active",
        "min": 2,
        "max": 2,
        "resource_properties": ["==", "$gpu", "A100"],
        "allocations": [{"resource": {"id": "h-1", "type": "host", "name": None}, "count": 1, "status": "in_use"}],
        "use": {"scheduler_hints": {"reservation": "r"}, "flavor_id": None, "server_group_id": None, "addresses": []},
    }
    stub.says(told(conditions=[condition], reservations=[reservation], a_key_of_later="x"))
    seen = reservations.leases.get(ID)
    assert seen.start_date == datetime(2030, 5, 1, 10, tzinfo=UTC)
    assert seen.etag == '"1.1.a"'
    assert seen.reason.message == "1 of 2 hosts has failed"
    [one] = seen.reservations
    assert one.allocations[0].resource.id == "h-1"
    assert one.use.scheduler_hints == {"reservation": "r"}
    assert one.parameters == {"min": 2, "max": 2, "resource_properties": ["==", "$gpu", "A100"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_date": "tomorrow"},
        {"start_date": 5},
        {"revision": "1"},
        {"revision": True},
        {"degraded": 1},
        {"events": {}},
        {"events": [{"event_type": "start_lease"}]},
        {"reservations": ["x"]},
    ],
)
def test_an_answer_that_is_no_lease_is_told_as_such(reservations, stub, wrong):
    stub.says(told(**wrong))
    with pytest.raises(exception.BlazarClientException, match="The service answered with no Lease: ") as error:
        reservations.leases.get(ID)
    assert error.value.code == 502


def test_filters_are_written_as_the_service_reads_them(reservations, stub):
    stub.says(listed())
    since = datetime(2030, 5, 1, tzinfo=UTC)
    filters = {"status": ["ACTIVE", "ERROR"], "fields": ("id", "name"), "overlapping": (since, "+P3D")}
    list(reservations.leases.list(state="all", degraded=True, limit=7, **filters))
    assert query(stub.asked[0]) == {
        "state": "all",
        "status": "in:ACTIVE,ERROR",
        "fields": "id,name",
        "from": "2030-05-01T00:00:00Z",
        "to": "+P3D",
        "degraded": "true",
        "limit": "7",
    }


def test_the_next_page_is_asked_of_the_address_that_is_known(reservations, stub):
    link = {"rel": "next", "href": "http://inside.invalid:9999/v1/leases?limit=1&marker=c.eyJrIjo%3D"}
    stub.says(listed(lease("a"), links=[{"rel": "self", "href": "x"}, link]), listed(lease("b")))
    assert [each.name for each in reservations.leases.list(limit=1, text="x")] == ["a", "b"]
    assert query(stub.asked[1]) == {"limit": "1", "text": "x", "marker": "c.eyJrIjo="}


@pytest.mark.slow
def test_ten_thousand_leases_are_read_in_bounded_memory(reservations, stub):
    size = 100

    def page(asked):
        first = int(query(asked).get("marker", 0))
        leases = [{"id": str(number), "name": f"lease-{number}"} for number in range(first, first + size)]
        more = [{"rel": "next", "href": f"/v1/leases?marker={first + size}"}] if first + size < 10_000 else []
        return listed(*leases, links=more)

    stub.says(page)
    count, settled = 0, 0
    tracemalloc.start()
    try:
        for count, each in enumerate(reservations.leases.list(state="all", limit=size), start=1):
            assert each.name == f"lease-{count - 1}"
            if count == 10 * size:
                settled = tracemalloc.get_traced_memory()[1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 10_000
    # Of the nine tenths that came later, nothing was kept: a tenth of them would be more than this.
    assert peak - settled < 1_000_000


def test_a_name_is_found_through_the_service_and_an_id_without_a_list(reservations, stub):
    stub.says(listed({"id": ID, "name": "training"}), told())
    assert reservations.leases.find("training").etag
    assert query(stub.asked[0]) == {"name": "training", "fields": "id,name", "limit": "10"}
    stub.says(told())
    reservations.leases.find(ID)
    assert stub.asked[-1].path == f"/v1/leases/{ID}"


def test_a_name_that_looks_like_an_id_is_found_too(reservations, stub):
    stub.says(MISSING, listed({"id": "other", "name": ID}), told(name=ID))
    assert reservations.leases.find(ID).name == ID


def test_a_name_of_several_leases_is_refused_with_their_ids(reservations, stub):
    stub.says(listed({"id": "one", "name": "x"}, {"id": "two", "name": "x"}))
    with pytest.raises(exception.NoUniqueMatch, match="Several leases are called x; give an id: one, two"):
        reservations.leases.find("x")


@pytest.mark.parametrize("name", ["a/b", "../os-hosts", "x?state=all", "ä b", "%2e%2e", "#"])
def test_whatever_an_id_contains_it_stays_one_part_of_the_path(reservations, stub, name):
    stub.says(MISSING)
    with pytest.raises(exception.NotFound):
        reservations.leases.get(name)
    path = stub.asked[0].path
    assert path.startswith("/v1/leases/")
    assert path.count("/") == 3
    assert "?" not in path


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_part_of_a_path_is_refused(reservations, stub, name):
    with pytest.raises(exception.InvalidRequest, match="is neither an id nor a name"):
        reservations.leases.delete(name)
    assert stub.asked == []


def test_a_change_sends_only_what_changes_and_the_tag(reservations, stub):
    stub.says(told(revision=2))
    changed = reservations.leases.change(ID, end_date="+P4D", if_match='"1.1.a"', dry_run=True)
    [asked] = stub.asked
    assert (asked.method, asked.path, asked.body) == ("PUT", f"/v1/leases/{ID}?dry_run=true", {"end_date": "+P4D"})
    assert asked.headers["If-Match"] == '"1.1.a"'
    assert changed.etag == '"2.1.a"'


MOVED = refused(412, "precondition_failed", "The lease has changed.")
DAY = timedelta(days=1)


def test_extending_keeps_what_others_changed_meanwhile(reservations, stub):
    stub.says(told(), MOVED, told(revision=2, name="renamed"), told(revision=3, end_date="2030-05-05T10:00:00Z"))
    assert reservations.leases.extend(ID, DAY).revision == 3
    first, second = [asked for asked in stub.asked if asked.method == "PUT"]
    assert first.body == second.body == {"end_date": "2030-05-05T10:00:00Z"}
    assert [first.headers["If-Match"], second.headers["If-Match"]] == ['"1.1.a"', '"2.1.a"']


def test_extending_gives_way_to_somebody_who_moved_the_end(reservations, stub):
    stub.says(told(), MOVED, told(revision=2, end_date="2030-05-09T10:00:00Z"))
    with pytest.raises(exception.PreconditionFailed) as error:
        reservations.leases.extend(ID, DAY)
    assert str(error.value) == (
        "Lease training has been changed meanwhile: it lasts from 2030-05-01T10:00:00Z to 2030-05-09T10:00:00Z. "
        "Nothing was done; look at it and try again"
    )
    assert error.value.request_id == REQUEST_ID


def test_an_extension_by_the_same_time_of_somebody_else_is_not_taken_for_ones_own(reservations, stub):
    stub.says(told(), MOVED, told(revision=2, end_date="2030-05-05T10:00:00Z"))
    with pytest.raises(exception.PreconditionFailed, match="to 2030-05-05T10:00:00Z. Nothing was done"):
        reservations.leases.extend(ID, DAY)


def test_an_extension_whose_answer_was_lost_is_not_made_twice(reservations, stub):
    stub.says(told(), Hangs(), told(revision=2, end_date="2030-05-05T10:00:00Z"))
    assert reservations.leases.extend(ID, DAY).revision == 2
    assert [asked.method for asked in stub.asked] == ["GET", "PUT", "GET"]


START = datetime(2030, 5, 1, 12, tzinfo=UTC)


def test_a_lease_is_moved_as_a_whole_or_not_at_all(reservations, stub):
    stub.says(told(), MOVED, told(revision=2, start_date="2030-05-01T11:00:00Z"))
    read = reservations.leases.get(ID)
    with pytest.raises(exception.PreconditionFailed, match="has been changed meanwhile"):
        reservations.leases.change_dates(read, start_date=START, end_date=read.end_date + DAY)
    assert [asked.method for asked in stub.asked] == ["GET", "PUT", "GET"]


def test_only_dates_that_are_to_be_changed_have_to_be_as_they_were_read(reservations, stub):
    stub.says(told(), MOVED, told(revision=2, start_date="2030-05-01T11:00:00Z"), told(revision=3))
    assert reservations.leases.extend(ID, DAY).revision == 3


def test_fractions_of_seconds_do_not_hide_that_a_change_was_made(reservations, stub):
    stub.says(told(), Hangs(), told(revision=2, start_date="2030-05-01T12:00:00Z"))
    read = reservations.leases.get(ID)
    assert reservations.leases.change_dates(read, start_date=START.replace(microsecond=9)).revision == 2


def test_of_a_change_without_an_answer_it_is_not_said_that_nothing_was_done(reservations, stub):
    stub.says(told(), Hangs(), told(revision=3, end_date="2030-05-09T10:00:00Z"))
    with pytest.raises(exception.PreconditionFailed, match=r"T10:00:00Z\. Look at it and try again$"):
        reservations.leases.extend(ID, DAY)


def test_a_service_that_cannot_change_now_is_asked_again_after_a_pause(reservations, stub, pauses):
    busy = refused(503, "database_unavailable", "Later.", headers={"Retry-After": "3"})
    stub.says(told(), busy, told(), told(revision=2))
    assert reservations.leases.extend(ID, DAY).revision == 2
    assert pauses == [3]


def test_a_change_that_others_come_before_each_time_is_given_up(reservations, stub):
    stub.says(told(), *[MOVED, told()] * CHANGES)
    with pytest.raises(exception.PreconditionFailed, match="The lease has changed"):
        reservations.leases.extend(ID, DAY)
    assert [asked.method for asked in stub.asked].count("PUT") == CHANGES


def test_when_a_change_is_only_tried_the_wanted_dates_are_somebody_elses(reservations, stub):
    later = told(end_date="2030-05-05T10:00:00Z")
    stub.says(told(), MOVED, later, later)
    read = reservations.leases.get(ID)
    with pytest.raises(exception.PreconditionFailed):
        reservations.leases.change_dates(read, end_date=read.end_date + DAY, dry_run=True)


def test_waiting_ends_with_the_status_and_tells_each_state(reservations, stub, pauses):
    seen = []
    stub.says(told(), told(), told(status="ACTIVE"))
    assert reservations.leases.wait(ID, timeout=60, progress=seen.append).status == "ACTIVE"
    assert len(seen) == 3
    assert pauses == [2, 2]


@pytest.mark.parametrize(
    "over", [{"status": "ERROR"}, {"status": "TERMINATED"}, {"deleted_at": "2030-05-01T10:00:00Z"}]
)
def test_waiting_ends_when_the_lease_fails_or_is_over(reservations, stub, over):
    stub.says(told(**over))
    assert reservations.leases.wait(ID, timeout=60).name == "training"


def test_waiting_looks_once_more_at_the_end_of_its_time(reservations, stub, pauses):
    stub.says(told())
    with pytest.raises(exception.Timeout, match=f"Lease {ID} was not ACTIVE within 5 s"):
        reservations.leases.wait(ID, timeout=5)
    assert pauses == [2, 2, 1]
    assert len(stub.asked) == 4


def test_watching_tells_a_state_once(reservations, stub):
    same = Says(304, None, {"ETag": '"1.1.a"'})
    stub.says(told(), same, same, told(revision=2, status="ACTIVE"))
    watched = reservations.leases.watch(ID)
    assert [next(watched).status, next(watched).status] == ["PENDING", "ACTIVE"]
    assert [asked.headers["If-None-Match"] for asked in stub.asked] == [None, '"1.1.a"', '"1.1.a"', '"1.1.a"']


def test_the_warning_goes_back_to_the_usual_one(reservations, stub):
    stub.says(told())
    reservations.leases.change(ID, reset_before_end=True)
    assert stub.asked[0].body == {"before_end_date": None}
    with pytest.raises(ValueError, match="exclude each other"):
        reservations.leases.change(ID, before_end_date="-PT2H", reset_before_end=True)


IN_LINE = {"queued_at": "2030-04-01T12:00:00Z", "until": "2030-04-04T12:00:00Z", "position": 1}


def waits(status="WAITING", **wait):
    more = {"kind": "scheduled", "wait": {**IN_LINE, **wait}}
    return Says(200, {"lease": lease(status=status, **more)}, {"ETag": '"1.1.a"'})


def test_a_lease_in_line_is_told_as_such_with_its_tag(reservations, stub):
    stub.says(waits())
    seen = reservations.leases.get(ID)
    assert (seen.status, seen.wait.position, seen.etag) == ("WAITING", 1, '"1.1.a"')


def test_waiting_ends_when_the_lease_has_waited_for_its_turn_in_vain(reservations, stub):
    stub.says(told(status="CREATING"), waits(), waits("TIMED_OUT"))
    assert reservations.leases.wait(ID).status == "TIMED_OUT"
