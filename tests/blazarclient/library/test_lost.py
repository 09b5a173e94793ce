# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the way: each is one exception with one sentence, and no lease is booked twice."""

from __future__ import annotations

import socket
import ssl

import pytest
import requests
from blazarclient import exception
from blazarclient.library.connections import NoAnswer, NotTrusted, Unreachable, of_session
from keystoneauth1 import exceptions as keystone

from tests.blazarclient.library.stub import REQUEST_ID, Hangs, Says, lease, refused

HOST = {"resource_type": "physical:host", "min": 1}
BOOKED = Says(201, {"lease": lease()}, {"ETag": '"1.1.a"'})
PROXY = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"


def create(reservations, **more):
    return reservations.leases.create("training", reservations=[HOST], end_date="+P3D", **more)


def keys(stub):
    return [asked.headers["Idempotency-Key"] for asked in stub.asked]


def test_a_creation_whose_answer_is_lost_is_sent_again_with_its_key(reservations, stub, pauses):
    stub.says(Hangs(), BOOKED)
    made = create(reservations)
    assert (made.name, made.etag) == ("training", '"1.1.a"')
    assert len(keys(stub)) == 2
    assert len(set(keys(stub))) == 1
    assert pauses == [0.5]


def test_an_answer_that_is_cut_off_is_a_lost_one(reservations, stub):
    stub.says(Says(201, {"lease": lease()}, cut=True), BOOKED)
    assert create(reservations).id == lease()["id"]
    assert len(set(keys(stub))) == 1


def test_two_creations_have_two_keys(reservations, stub):
    stub.says(BOOKED)
    create(reservations)
    create(reservations)
    assert len(set(keys(stub))) == 2


def test_a_creation_without_any_answer_is_uncertain_and_tells_its_key(reservations, stub, pauses):
    stub.says(Hangs())
    with pytest.raises(exception.Uncertain, match=r"^It is not known whether lease training was booked: ") as told:
        create(reservations, idempotency_key="mine")
    assert told.value.idempotency_key == "mine"
    assert set(keys(stub)) == {'"mine"'}
    assert pauses == [0.5, 1.0, 2.0, 4.0]


def test_a_creation_that_never_left_is_not_uncertain(at, pauses):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        # Bound, and nobody listens.
        with pytest.raises(Unreachable, match=rf"^No connection to http://127.0.0.1:{port}: Connection refused$"):
            create(at(f"http://127.0.0.1:{port}/v1"))
    assert pauses == []


def test_a_service_that_goes_away_after_the_request_leaves_it_uncertain(reservations, stub):
    stub.says(lambda asked: (stub.stop(), Says(503))[1])
    with pytest.raises(exception.Uncertain):
        create(reservations)
    assert len(stub.asked) == 1


@pytest.mark.parametrize("key", ["a b", 'a"b', "ä", "x" * 256, "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent(reservations, stub, key):
    with pytest.raises(exception.InvalidRequest, match="1 to 255 ASCII characters"):
        create(reservations, idempotency_key=key)
    assert stub.asked == []


def test_503_and_then_success(reservations, stub, pauses):
    busy = refused(503, "database_unavailable", "The database does not answer.", headers={"Retry-After": "5"})
    stub.says(busy, Says(200, {"lease": lease()}))
    assert reservations.leases.get("x").name == "training"
    assert pauses == [5]


def test_429_waits_as_long_as_the_service_asks(reservations, stub, pauses):
    busy = refused(429, "too_many_requests", "Two searches are running.", headers={"Retry-After": "1"})
    stub.says(busy, busy, Says(200, {"availability": {"as_of": "2030-04-01T12:00:00Z"} | RANGE}))
    assert reservations.availability([HOST], duration="P1D").complete
    assert pauses == [1, 1]


RANGE = {"earliest": "2030-04-01T12:00:00Z", "latest": "2030-05-01T12:00:00Z"}


def test_a_service_that_asks_for_an_hour_is_not_waited_for(reservations, stub, pauses):
    stub.says(refused(429, "too_many_requests", "Later.", headers={"Retry-After": "3600"}))
    with pytest.raises(exception.TooManyRequests, match="Later") as told:
        reservations.leases.get("x")
    assert (told.value.retry_after, told.value.code, pauses) == (3600, 429, [])


@pytest.mark.parametrize("code", ["contention", "lease_busy", "request_in_progress"])
def test_a_conflict_that_passes_by_itself_is_tried_again(reservations, stub, code):
    stub.says(refused(409, code, "In a moment."), BOOKED)
    assert create(reservations).name == "training"


def test_other_conflicts_are_told_at_once(reservations, stub, pauses):
    reasons = {"reasons": [{"message": "1 free"}], "alternatives": []}
    stub.says(refused(409, "not_enough_resources", "Not enough hosts.", pointer="/reservations/0", data=reasons))
    with pytest.raises(exception.NotEnoughResources, match=r"Not enough hosts\.") as told:
        create(reservations)
    assert told.value.fault.data == reasons
    assert (told.value.code, told.value.kwargs["code"], told.value.request_id) == (409, 409, REQUEST_ID)
    assert pauses == []


def test_registering_a_host_is_not_repeated_since_it_has_no_key(reservations, stub):
    stub.says(Hangs())
    with pytest.raises(NoAnswer, match=r"^The connection was lost before the answer came to http://127"):
        reservations.hosts.register("node-1")
    assert len(stub.asked) == 1


def test_a_change_with_a_tag_is_not_repeated_since_the_tag_would_have_changed(reservations, stub):
    stub.says(Hangs())
    with pytest.raises(NoAnswer):
        reservations.leases.change("x", name="y", if_match='"1.1.a"')
    with pytest.raises(NoAnswer):
        reservations.leases.delete("x", if_match='"1.1.a"')
    with pytest.raises(NoAnswer):
        reservations.hosts.change("1", properties={"gpu": "A100"}, if_match='"1"')
    assert [asked.method for asked in stub.asked] == ["PUT", "DELETE", "PUT"]


def test_a_deletion_that_was_made_although_its_answer_was_lost_is_a_success(reservations, stub):
    stub.says(Hangs(), refused(404, "host_not_found", "There is no host 1."))
    reservations.hosts.delete("1")
    with pytest.raises(exception.NotFound, match="There is no host 1"):
        reservations.hosts.delete("1")


def test_ending_a_lease_that_is_over_returns_it(reservations, stub):
    over = refused(409, "lease_ended", "The lease has ended.")
    stub.says(Hangs(), over, Says(200, {"lease": lease(status="TERMINATED")}))
    assert reservations.leases.end("x").status == "TERMINATED"


def test_the_page_of_a_proxy_is_told_in_one_line(reservations, stub):
    stub.says(Says(502, PROXY, {"Content-Type": "text/html", "OpenStack-API-Version": ""}))
    with pytest.raises(exception.ServiceUnavailable, match=r"^HTTP 502: 502 Bad Gateway nginx$"):
        reservations.leases.get("x")


def test_a_page_where_the_service_should_be_is_a_wrong_address(reservations, stub):
    stub.says(Says(200, "<html>Welcome</html>", {"Content-Type": "text/html", "OpenStack-API-Version": ""}))
    with pytest.raises(exception.NoBlazarEndpoint, match=r"/v1/leases/x answered with something that is not JSON"):
        reservations.leases.get("x")
    stub.says(Says(404, "<html>Not here</html>", {"Content-Type": "text/html", "OpenStack-API-Version": ""}))
    with pytest.raises(exception.NoBlazarEndpoint, match=r"/v1/leases/x is not the reservation service, .*: Not here$"):
        reservations.leases.get("x")


def test_json_of_something_else_is_told(reservations, stub):
    stub.says(Says(200, {"servers": []}))
    with pytest.raises(exception.BlazarClientException, match="answered without leases: is it the reservation service"):
        list(reservations.leases.list())
    with pytest.raises(exception.BlazarClientException, match="answered without lease: is it the reservation service"):
        reservations.leases.get("x")


@pytest.mark.parametrize(
    "answer",
    [
        Says(406, {"error_message": "This version is not supported by the API."}, {"OpenStack-API-Version": ""}),
        Says(404, {"error_code": 404, "error_message": "Not found"}, {"OpenStack-API-Version": "reservation 1.0"}),
        Says(200, {"lease": lease()}, {"OpenStack-API-Version": ""}),
        Says(200, {"lease": lease()}, {"OpenStack-API-Version": "reservation 1.0"}),
        refused(406, "version_unsupported", "The highest version is 1.0.", headers={"OpenStack-API-Version": ""}),
    ],
)
def test_a_service_of_microversion_1_0_is_told_of(reservations, stub, answer):
    stub.says(answer)
    with pytest.raises(exception.UnsupportedVersion, match="does not speak microversion .*, which this needs: "):
        reservations.leases.get("x")


def test_a_missing_lease_of_a_new_service_is_only_missing(reservations, stub):
    stub.says(refused(404, "lease_not_found", "There is no lease x."))
    with pytest.raises(exception.NotFound, match=r"^There is no lease x\.$"):
        reservations.leases.get("x")


def test_a_certificate_that_is_not_trusted_is_told_and_not_tried_again(reservations, monkeypatch, pauses):
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message = "self-signed certificate"

    def request(*_, **__):
        raise requests.exceptions.SSLError(cause)

    monkeypatch.setattr(requests.Session, "request", request)
    with pytest.raises(NotTrusted, match=r"^No secure connection: self-signed certificate\. .* --os-cacert"):
        reservations.leases.get("x")
    assert pauses == []


def test_no_answer_in_time_is_told(reservations, monkeypatch):
    def request(*_, **__):
        raise requests.exceptions.ReadTimeout("read timed out")

    monkeypatch.setattr(requests.Session, "request", request)
    with pytest.raises(NoAnswer, match="^No answer in time"):
        reservations.leases.get("x")


def test_a_password_in_a_url_is_not_told():
    try:
        requests.get("http://curie:radium@127.0.0.1:1/v1", timeout=1)
    except requests.exceptions.ConnectionError as lost:
        told = keystone.ConnectFailure(f"Unable to connect: {lost}")
        told.__context__ = lost
    assert str(of_session(told)) == "No connection to http://127.0.0.1:1: Connection refused"


def test_a_certificate_that_is_not_where_it_should_be_is_told(reservations, monkeypatch):
    def request(*_, **__):
        raise OSError("Could not find a suitable TLS CA certificate bundle, invalid path: /nope.pem")

    monkeypatch.setattr(requests.Session, "request", request)
    with pytest.raises(NotTrusted, match="^No secure connection: Could not find .*/nope.pem$"):
        reservations.leases.get("x")


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1:99999/v1", "http://no-such-host.invalid/v1"])
def test_what_is_no_address_is_told_at_once(at, pauses, url):
    with pytest.raises(Unreachable, match="^No connection"):
        at(url).leases.get("x")
    assert pauses == []
