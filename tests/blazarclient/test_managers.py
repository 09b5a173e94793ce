# SPDX-License-Identifier: Apache-2.0
"""The managers of version 1: the interface that programs have used, in dicts, at microversion 1.0."""

from __future__ import annotations

import traceback

import pytest
import requests_mock
from blazarclient import client, exception
from blazarclient.utils import sort
from keystoneauth1 import adapter, session, token_endpoint

URL = "https://cloud.example/reservation/v1"
LEASE = {"id": "1", "name": "x", "start_date": "2030-05-01T09:00:00.000000", "end_date": "2030-05-02T09:00:00.000000"}


@pytest.fixture
def cloud():
    with requests_mock.Mocker() as cloud:
        cloud.get(f"{URL}/leases/1", json={"lease": LEASE})
        cloud.put(f"{URL}/leases/1", json={"lease": LEASE})
        yield cloud


def login():
    return session.Session(auth=token_endpoint.Token(URL, "token"))


@pytest.fixture
def v1(cloud):
    return client.Client("1", session=login())


def sent(cloud):
    return [(request.method, request.path.removeprefix("/reservation/v1")) for request in cloud.request_history]


@pytest.mark.parametrize("version", [1, "1", "1a0"])
def test_versions(version):
    assert client.Client(version, session=login()).version == "1"


def test_an_unknown_version_is_told():
    with pytest.raises(exception.UnsupportedVersion, match="choose one of: 1, 1a0"):
        client.Client("2", session=login())


def test_a_client_without_any_login_is_refused():
    with pytest.raises(exception.InsufficientAuthInformation):
        client.Client()


def test_requests_go_out_as_those_of_the_client_and_without_a_microversion(cloud, v1):
    v1.lease.get("1")
    headers = cloud.last_request.headers
    assert (headers["User-Agent"], headers["Accept"]) == ("python-blazarclient", "application/json")
    assert headers["X-Auth-Token"] == "token"
    assert "OpenStack-API-Version" not in headers


def test_options_go_to_the_adapter(cloud):
    made = client.Client(session=login(), default_microversion="1.1", global_request_id="req-9")
    made.lease.get("1")
    headers = cloud.last_request.headers
    assert headers["OpenStack-API-Version"] == "reservation 1.1"
    assert headers["X-OpenStack-Request-ID"] == "req-9"
    with pytest.raises(TypeError):
        client.Client(session=login(), bogus=1)


def test_an_adapter_serves_as_a_session(cloud):
    chosen = adapter.Adapter(login(), service_type="reservation", interface="internal")
    assert client.Client(session=chosen).lease.get("1") == LEASE


def test_a_url_and_a_token_still_serve_with_a_warning(cloud, caplog):
    made = client.Client(blazar_url=URL, auth_token="old")
    assert caplog.text.count("give a keystoneauth session") == 1
    assert made.lease.get("1") == LEASE
    assert cloud.last_request.headers["X-Auth-Token"] == "old"
    cloud.delete(f"{URL}/leases/1", status_code=404, json={"error_message": "lease not found"})
    with pytest.raises(exception.NotFound, match="^ERROR: lease not found$"):
        made.lease.delete("1")


def test_a_lease_is_created_with_all_keys(cloud, v1):
    cloud.post(f"{URL}/leases", json={"lease": LEASE}, status_code=201)
    assert v1.lease.create("x", "now", "2030-05-02 09:00", [{"min": 1}], []) == LEASE
    assert cloud.last_request.json() == {
        "name": "x",
        "start_date": "now",
        "end_date": "2030-05-02 09:00",
        "reservations": [{"min": 1}],
        "events": [],
        "before_end_date": None,
    }


@pytest.mark.parametrize("name", ["before_end", "before_end_date"])
def test_the_time_of_the_warning_has_two_names(cloud, v1, name):
    cloud.post(f"{URL}/leases", json={"lease": LEASE}, status_code=201)
    v1.lease.create("x", "now", "2030-05-02 09:00", [{"min": 1}], [], **{name: "2030-05-02 08:00"})
    assert cloud.last_request.json()["before_end_date"] == "2030-05-02 08:00"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"prolong_for": "1h"}, {"end_date": "2030-05-02 10:00"}),
        ({"prolong_for": "1h30m"}, {"end_date": "2030-05-02 10:30"}),
        ({"prolong_for": "90s"}, {"end_date": "2030-05-02 09:02"}),
        ({"reduce_by": "90s"}, {"end_date": "2030-05-02 08:58"}),
        ({"reduce_by": "1d"}, {"end_date": "2030-05-01 09:00"}),
        ({"defer_by": "1h"}, {"start_date": "2030-05-01 10:00"}),
        ({"advance_by": "1h", "prolong_for": "1h"}, {"start_date": "2030-05-01 08:00", "end_date": "2030-05-02 10:00"}),
        ({"prolong_for": "1h", "reduce_by": "2h"}, {"end_date": "2030-05-02 10:00"}),
        ({"end_date": "2030-05-03 09:00", "prolong_for": "1h"}, {"end_date": "2030-05-03 09:00"}),
        ({"name": "y", "reservations": [{"id": "r"}]}, {"name": "y", "reservations": [{"id": "r"}]}),
    ],
)
def test_a_change_sends_only_what_changes(cloud, v1, change, expected):
    assert v1.lease.update("1", **change) == LEASE
    assert cloud.last_request.json() == expected


def test_a_change_of_nothing_returns_the_lease_and_sends_none(cloud, v1):
    assert v1.lease.update("1") == LEASE
    assert sent(cloud) == [("GET", "/leases/1")]


@pytest.mark.parametrize("wrong", [{"end_date": "tomorrow"}, {"prolong_for": "soon"}, {"prolong_for": "1h 5"}])
def test_a_date_or_time_that_is_none_is_told_before_it_is_sent(cloud, v1, wrong):
    with pytest.raises(exception.BlazarClientException, match="is no (date|length of time); write"):
        v1.lease.update("1", **wrong)
    assert ("PUT", "/leases/1") not in sent(cloud)


def test_hosts_and_their_properties(cloud, v1):
    cloud.post(f"{URL}/os-hosts", json={"host": {"id": "1"}})
    v1.host.create("node", gpu="A100")
    assert cloud.last_request.json() == {"name": "node", "gpu": "A100"}
    cloud.get(f"{URL}/os-hosts/1", json={"host": {"id": "1"}})
    assert v1.host.update("1", {}) == {"id": "1"}
    public, private = {"property": "gpu", "values": ["A100"]}, {"property": "rack", "values": ["r1"]}
    cloud.get(f"{URL}/os-hosts/properties?detail=True", json={"resource_properties": [public]})
    cloud.get(f"{URL}/os-hosts/properties?detail=True&all=True", json={"resource_properties": [public, private]})
    assert v1.host.list_properties(detail=True) == [{"property": "gpu", "property_values": ["A100"]}]
    assert v1.host.get_property("rack") == {"property": "rack", "property_values": ["r1"]}
    with pytest.raises(exception.ResourcePropertyNotFound, match="No host has a property nope"):
        v1.host.get_property("nope")


def test_segments_and_devices_have_the_methods_that_chameleon_s_programs_call(cloud, v1):
    cloud.post(f"{URL}/networks", json={"network": {"id": "n"}})
    assert v1.network.create("vlan", "physnet1", 101, usage_type="storage") == {"id": "n"}
    attributes = {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 101}
    assert cloud.last_request.json() == {**attributes, "usage_type": "storage"}
    cloud.put(f"{URL}/networks/n", json={"network": {"id": "n"}})
    assert v1.network.update(network_id="n", values={"usage_type": None}) == {"id": "n"}
    cloud.get(f"{URL}/devices", json={"devices": [{"id": "d", "name": "b"}, {"id": "e", "name": "a"}]})
    assert [device["id"] for device in v1.device.list(sort_by="name")] == ["e", "d"]
    for manager, path in ((v1.device, "devices"), (v1.network, "networks"), (v1.host, "os-hosts")):
        cloud.get(f"{URL}/{path}/d/allocation", json={"allocation": {"resource_id": "d"}})
        assert manager.get_allocation("d") == {"resource_id": "d"}
        cloud.get(f"{URL}/{path}/allocations", json={"allocations": [{"resource_id": "d"}]})
        assert manager.list_allocations() == [{"resource_id": "d"}]
    cloud.put(f"{URL}/devices/d/allocation", json={"allocation": {"resource_id": "d"}})
    assert v1.device.reallocate("d", {"lease_id": "l"}) == {"resource_id": "d"}
    assert cloud.last_request.json() == {"lease_id": "l"}


def test_private_properties_are_for_those_who_may_see_them(cloud, v1):
    cloud.get(f"{URL}/os-hosts/properties?detail=True", json={"resource_properties": []})
    cloud.get(f"{URL}/os-hosts/properties?detail=True&all=True", status_code=403, json={"error_message": "no"})
    with pytest.raises(exception.ResourcePropertyNotFound):
        v1.host.get_property("rack")


def test_programs_make_requests_of_their_own(cloud, v1):
    cloud.get(f"{URL}/os-hosts/allocations", json={"allocations": []})
    response, body = v1.host.request_manager.get("/os-hosts/allocations")
    assert (response.status_code, body) == (200, {"allocations": []})


def test_sorting_takes_missing_values_first_and_numbers_before_texts():
    items = [{"n": "b"}, {"n": 2}, {"n": None}, {}, {"n": "a"}, {"n": 1}]
    assert [item.get("n") for item in sort(items, "n")] == [None, None, 1, 2, "a", "b"]
    assert sort(items, None) is items
    with pytest.raises(exception.BlazarClientException, match="Cannot sort by x; choose one of: n"):
        sort(items, "x")


@pytest.mark.parametrize("date", ["tomorrow", "2030-05-01T09:00:00"])
def test_a_text_that_is_no_date_is_an_error_of_ours_and_a_value_error_as_before(cloud, v1, date):
    with pytest.raises(exception.InvalidRequest, match="write YYYY-MM-DD HH:MM, in UTC") as error:
        v1.lease.update("1", end_date=date)
    assert isinstance(error.value, ValueError)
    assert cloud.call_count == 0


def test_a_date_is_sent_with_all_its_digits(cloud, v1):
    v1.lease.update("1", end_date="2030-5-1 9:5")
    assert cloud.last_request.json() == {"end_date": "2030-05-01 09:05"}


def test_a_length_of_time_beyond_all_years_is_told(v1):
    with pytest.raises(exception.InvalidDate, match="99999999d is too long"):
        v1.lease.update("1", prolong_for="99999999d")


def test_a_lease_without_the_date_that_is_to_be_moved_is_told(cloud, v1):
    cloud.get(f"{URL}/leases/1", json={"lease": {**LEASE, "end_date": None}})
    with pytest.raises(exception.BlazarClientException, match="The service tells None as a date") as error:
        v1.lease.update("1", prolong_for="1h")
    assert error.value.code == 502


def test_lists_are_sorted_as_before_where_that_works():
    items = [{"values": ["b"]}, {"values": []}, {"values": ["a", "c"]}]
    assert sort(items, "values") == [{"values": []}, {"values": ["a", "c"]}, {"values": ["b"]}]


def test_nothing_is_waited_for_without_end(cloud):
    limited = session.Session(auth=token_endpoint.Token(URL, "token"), timeout=7)
    for made, seconds in ((login(), 300), (limited, 7), (adapter.Adapter(limited), 7)):
        client.Client("1", session=made).lease.get("1")
        assert cloud.last_request.timeout == seconds


def test_an_empty_session_is_none():
    with pytest.raises(exception.InsufficientAuthInformation):
        client.Client(session="")


@pytest.mark.parametrize("token", ["s3cret\r\n", "s3cret\u20ac"])
def test_a_token_that_cannot_be_sent_is_not_shown(token):
    made = client.Client("1", session=session.Session(auth=token_endpoint.Token("http://127.0.0.1:1/v1", token)))
    with pytest.raises(exception.InvalidRequest, match="such as the token") as error:
        made.lease.list()
    assert "s3cret" not in "".join(traceback.format_exception(error.value))
