# SPDX-License-Identifier: Apache-2.0
"""What a service should not answer, and what a program should not give: each is told in a sentence."""

from __future__ import annotations

import copy
import os
import pickle
import traceback
from datetime import date, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from blazarclient import exception
from blazarclient.library import Reservations
from keystoneauth1 import adapter, noauth, session, token_endpoint
from openstack import exceptions

from tests.blazarclient.library.stub import Says, lease, refused

ID = lease()["id"]
HOST = {"resource_type": "physical:host", "min": 1}
ODD = [None, 1, "x", True, [1], [None], {"a": 1}]


def asked_for(stub, key):
    return [parse_qs(urlsplit(asked.path).query).get(key) for asked in stub.asked]


def next_page(href):
    return Says(200, {"leases": [lease()], "links": [{"rel": "next", "href": href}]})


@pytest.mark.sample(16)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    ("body", "read"),
    [
        (lambda odd: {"host": odd}, lambda library: library.hosts.get("1")),
        (lambda odd: {"leases": odd}, lambda library: list(library.leases.list())),
        (lambda odd: {"hosts": odd}, lambda library: list(library.hosts.list())),
        (lambda odd: {"calendar": odd}, lambda library: list(library.calendar())),
        (lambda odd: {"calendar": {"resources": odd}}, lambda library: list(library.calendar())),
        (lambda odd: {"capacity": odd}, Reservations.capacity),
        (lambda odd: {"properties": odd}, Reservations.properties),
        (lambda odd: {"info": odd}, Reservations.info),
    ],
)
def test_an_answer_that_is_another_than_it_should_be_is_told_as_such(reservations, stub, odd, body, read):
    stub.says(Says(200, body(odd)))
    with pytest.raises(exception.BlazarClientException, match="The service answered with") as error:
        read(reservations)
    assert error.value.code == 502


@pytest.mark.parametrize("odd", [*ODD, {}, []])
def test_a_refusal_is_told_whatever_its_parts_are(reservations, stub, odd):
    keys = ("status", "code", "title", "pointer", "parameter", "header", "data")
    stub.says(Says(409, {"errors": [{"detail": "The lease is busy.", **dict.fromkeys(keys, odd)}]}))
    with pytest.raises(exception.Conflict, match="The lease is busy"):
        reservations.leases.get(ID)


@pytest.mark.parametrize("links", [None, [], [None], ["x"], [{"rel": "self"}], {"rel": "next"}])
def test_a_list_without_a_link_to_the_next_page_ends(reservations, stub, links):
    stub.says(Says(200, {"leases": [lease()], "links": links}))
    assert len(list(reservations.leases.list())) == 1


@pytest.mark.parametrize("href", [None, "", "http://[", "/v1/leases", "/v1/leases?marker="])
def test_a_link_that_does_not_lead_to_the_next_page_is_not_the_end_of_the_list(reservations, stub, href):
    stub.says(next_page(href))
    with pytest.raises(exception.BlazarClientException, match="without a marker"):
        list(reservations.leases.list())


def test_a_page_that_leads_to_itself_is_not_read_for_ever(reservations, stub):
    stub.says(next_page("/v1/leases?marker=a"))
    with pytest.raises(exception.BlazarClientException, match="the same one again"):
        list(reservations.leases.list())
    assert len(stub.asked) == 2


@pytest.mark.parametrize("name", ["in:one,two", "neq:one", "eq:one"])
def test_a_name_like_an_operator_is_that_name_and_never_another(reservations, stub, name):
    stub.says(Says(200, {"leases": [lease(name)], "links": []}), Says(200, {"lease": lease(name)}))
    assert reservations.leases.find(name).name == name
    stub.says(Says(200, {"resources": [{"id": "1"}], "links": []}), Says(200, {"resource": {"id": "1"}}))
    reservations.hosts.find(name)
    assert asked_for(stub, "name")[0] == [f"eq:{name}"]
    assert asked_for(stub, "name")[2] == [f"eq:{name}"]


@pytest.mark.parametrize("nobody", [None, "", 7])
def test_what_is_no_name_finds_nothing(reservations, stub, nobody):
    for find in (reservations.leases.find, reservations.hosts.find, reservations.leases.get, reservations.hosts.delete):
        with pytest.raises(exception.InvalidRequest, match="is neither an id nor a name"):
            find(nobody)
    assert stub.asked == []


def test_texts_that_cannot_be_sent_are_told_and_not_taken_for_a_lost_connection(reservations, stub):
    with pytest.raises(exception.InvalidRequest, match="neither an id nor a name"):
        reservations.leases.get("\ud800")
    with pytest.raises(exception.InvalidRequest, match="cannot be sent"):
        list(reservations.leases.list(text="\ud800"))
    for tag in ('"a"\r\nX-Other: b', '"\u20ac"'):
        with pytest.raises(exception.InvalidRequest, match="cannot be sent"):
            reservations.leases.change(ID, name="x", if_match=tag)
    assert stub.asked == []


@pytest.mark.parametrize("token", ["s3cret\r\n", "s3cret\u20ac"])
def test_a_token_that_cannot_be_sent_is_not_shown(stub, token):
    library = Reservations(session.Session(auth=token_endpoint.Token(stub.url, token)))
    with pytest.raises(exception.InvalidRequest, match="such as the token") as error:
        library.leases.get(ID)
    assert "s3cret" not in "".join(traceback.format_exception(error.value))
    assert stub.asked == []


@pytest.mark.parametrize("no_date", [None, date(2030, 5, 1), timedelta(days=1), 5])
def test_what_is_no_date_is_told(reservations, stub, no_date):
    with pytest.raises(TypeError, match="is no date; give a datetime with a time zone, or a text such as"):
        reservations.leases.create("x", reservations=[HOST], end_date=no_date)
    assert stub.asked == []


@pytest.mark.parametrize("statuses", ["ACTIVE", "active", ["active"], iter(["Active"])])
def test_one_status_is_waited_for_however_it_is_written(reservations, stub, statuses):
    stub.says(Says(200, {"lease": lease(status="PENDING")}), Says(200, {"lease": lease(status="ACTIVE")}))
    assert reservations.leases.wait(ID, statuses, timeout=60).status == "ACTIVE"


def test_what_was_waited_for_is_named_when_the_time_is_over(reservations, stub):
    stub.says(Says(200, {"lease": lease(status="PENDING")}))
    with pytest.raises(exception.Timeout, match="was not ACTIVE or ERROR within 3 s"):
        reservations.leases.wait(ID, iter(["active", "error"]), timeout=3)


@pytest.mark.parametrize("status", [500, 507])
def test_a_service_that_failed_may_have_booked_and_the_key_tells(reservations, stub, status):
    stub.says(refused(status, "internal", "Something went wrong."))
    with pytest.raises(exception.Uncertain, match="not known whether lease x was booked: Something") as lost:
        reservations.leases.create("x", reservations=[HOST], end_date="+1h")
    stub.says(Says(201, {"lease": lease("x")}))
    reservations.leases.create("x", reservations=[HOST], end_date="+1h", idempotency_key=lost.value.idempotency_key)
    assert len({asked.headers["Idempotency-Key"] for asked in stub.asked}) == 1


def test_an_old_service_that_did_it_all_the_same_is_told_of(reservations, stub):
    stub.says(Says(201, {"lease": lease()}, {"OpenStack-API-Version": ""}))
    with pytest.raises(exception.UnsupportedVersion, match="may have done what was asked"):
        reservations.leases.create("x", reservations=[HOST], end_date="2030-01-01 10:00")


def test_a_lease_is_waited_for_while_the_service_is_restarted(reservations, stub):
    down = Says(503, "<html>no service</html>", {"Content-Type": "text/html"})
    pending, active = (Says(200, {"lease": lease(status=status)}) for status in ("PENDING", "ACTIVE"))
    stub.says(pending, *[down] * 7, refused(429, "too_many_requests", "Slow down."), active)
    assert reservations.leases.wait(ID, timeout=600).status == "ACTIVE"
    stub.says(pending, down)
    with pytest.raises(exception.Timeout):
        reservations.leases.wait(ID, timeout=30)


def test_a_service_that_was_never_there_is_not_waited_for(reservations, stub):
    stub.says(Says(503, "", {}))
    with pytest.raises(exception.ServiceUnavailable):
        reservations.leases.wait(ID, timeout=600)


def test_a_lease_serves_where_an_id_is_asked_for(reservations, stub):
    stub.says(Says(200, {"lease": lease(status="ACTIVE")}))
    one = reservations.leases.get(ID)
    reservations.leases.change(one, name="new")
    reservations.leases.extend(one, timedelta(hours=1))
    reservations.leases.wait(one, timeout=0)
    reservations.leases.end(one)
    reservations.leases.delete(one)
    assert {asked.path for asked in stub.asked} == {f"/v1/leases/{ID}"}
    stub.says(Says(200, {"lease": lease(id=None)}))
    tried = reservations.leases.create("x", reservations=[HOST], end_date="+1h", dry_run=True)
    with pytest.raises(exception.InvalidRequest, match="only tried has no id"):
        reservations.leases.delete(tried)


def test_a_length_of_time_beyond_all_years_is_told(reservations, stub):
    stub.says(Says(200, {"lease": lease()}))
    with pytest.raises(exception.InvalidRequest, match="is too long: there is no such year"):
        reservations.leases.extend(ID, timedelta(days=99_999_999))


def test_a_process_that_was_forked_makes_connections_of_its_own(at, stub, monkeypatch):
    library = at(stub.url)
    stub.says(Says(200, {"lease": lease()}))
    library.leases.get(ID)
    closed = []
    ours = library.transport._adapter.session.session
    monkeypatch.setattr(ours, "close", lambda: closed.append(os.getpid()))
    library.leases.get(ID)
    assert closed == []
    monkeypatch.setattr(os, "getpid", lambda: -1)
    library.leases.get(ID)
    library.leases.get(ID)
    assert closed == [-1]


@pytest.mark.parametrize(
    ("limit", "patience", "seconds"), [(None, None, 60), (7, None, 7), (600, None, 60), (600, 300, 300), (None, 2, 2)]
)
def test_an_answer_is_waited_for_as_long_as_the_session_or_the_program_says(
    requests_mock, limit, patience, seconds, pauses
):
    requests_mock.get("http://service.example/v1/leases/x", exc=requests.exceptions.ReadTimeout)
    connected = session.Session(auth=noauth.NoAuth(endpoint="http://service.example/v1"), timeout=limit)
    for login in (connected, adapter.Adapter(connected)):
        library = Reservations(login, patience=patience, sleep=pauses.append)
        with pytest.raises(exception.ServiceUnavailable, match="No answer in time"):
            library.leases.get("x")
        assert requests_mock.last_request.timeout == seconds


def test_values_are_kept_in_sets_and_go_from_process_to_process(reservations, stub):
    held = {"resource": {"id": "h-1", "type": "host"}, "count": 1, "used": {"VCPU": 2}, "status": "in_use"}
    stub.says(Says(200, {"lease": lease(reservations=[{**HOST, "allocations": [held]}])}))
    one, same = reservations.leases.get(ID), reservations.leases.get(ID)
    assert {one, same} == {one}
    for copied in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert copied == one
    host = {"id": "1", "capacity": {"VCPU": 8}, "attributes": {"cpu_info": "{}"}}
    stub.says(Says(200, {"resource": {**host, "properties": {"gpu": "A100"}}}))
    assert len({reservations.hosts.get("1"), reservations.hosts.get("1")}) == 1


def test_an_error_of_both_kinds_goes_from_process_to_process():
    from blazarclient.sdk.errors import told

    fault = exception.Fault(409, "No room.", code="reservation.not_enough_resources", data={"free": 2})
    with pytest.raises(exceptions.ConflictException) as error, told():
        raise exception.refusal(409, [fault], message="No room.", request_id="req-1")
    there = pickle.loads(pickle.dumps(error.value))
    assert type(there) is type(error.value)
    assert (str(there), vars(there)) == (str(error.value), vars(error.value))
    assert there.fault.data == {"free": 2}
