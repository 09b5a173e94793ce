# SPDX-License-Identifier: Apache-2.0
"""Calls to a cloud: what is sent, what is tried again, and what comes of answers that nobody wants."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from http.client import RemoteDisconnected
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import requests
import requests_mock
import tenacity
from keystoneauth1 import fixture
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from blazar.clouds.openstack import Access, Credentials, OpenStackCompute
from blazar.clouds.openstack.placement import OpenStackPlacement
from blazar.clouds.openstack.service import ENDPOINT_SECONDS, CloudService, VersionMissing
from blazar.clouds.openstack.volumes import OpenStackVolumes
from blazar.context import scope
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import ClaimLost, CloudRefused, CloudUnavailable, Conflict, NotFound

KEYSTONE = "http://keystone.test:5000/v3"
NOVA = "http://nova.test:8774/v2.1"
CINDER = "http://cinder.test:8776/v3"
FAR_NOVA = "http://nova.far.test/v2.1"
PLACEMENT = "http://placement.test"
REFUSED = requests.ConnectionError(MaxRetryError(None, NOVA, NewConnectionError(None, "Connection refused")))
CLOSED = requests.ConnectionError(ProtocolError("Connection aborted.", RemoteDisconnected("without response")))

V1 = {
    "versions": [
        {
            "id": "v1.0",
            "status": "CURRENT",
            "max_version": "1.39",
            "min_version": "1.0",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


class Web(requests_mock.Mocker):
    """Answers with JSON say so."""

    def register_uri(self, method, url, response_list=None, **answer):
        listed = [self.complete(one) for one in response_list or [answer]]
        return super().register_uri(method, url, listed)

    def complete(self, answer):
        headers = {"Content-Type": "application/json"} if "json" in answer else {}
        return {**answer, "headers": headers | answer.get("headers", {})} if "exc" not in answer else answer


def catalog() -> fixture.V3Token:
    token = fixture.V3Token(user_name="blazar", project_name="service")
    nova = token.add_service("compute", name="nova")
    nova.add_standard_endpoints(
        public="http://nova.public.test/v2.1", internal=NOVA, admin="http://nova.admin.test", region="RegionOne"
    )
    nova.add_standard_endpoints(
        public=FAR_NOVA, internal="http://nova.far.internal.test", admin=FAR_NOVA, region="RegionTwo"
    )
    token.add_service("placement").add_standard_endpoints(
        public=PLACEMENT, internal=PLACEMENT, admin=PLACEMENT, region="RegionOne"
    )
    return token


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setattr(tenacity.nap.time, "sleep", lambda _: None)
    with Web() as mock:
        mock.get(KEYSTONE, json=fixture.V3Discovery(KEYSTONE))
        mock.post(f"{KEYSTONE}/auth/tokens", json=catalog(), headers={"X-Subject-Token": "very-secret-token"})
        yield mock


def an_access(**requests):
    auth = v3.Password(auth_url=KEYSTONE, username="blazar", password="very-secret-password", project_name="service")
    return Access(Credentials(auth=auth, **{"region": "RegionOne", "interfaces": {"compute": "internal"}, **requests}))


def test_a_service_that_the_catalog_does_not_have_is_not_looked_at(web):
    looks = an_access().list_looks()
    web.get(NOVA, status_code=401)
    looks["nova"]()
    looks["heat"]()
    web.get(NOVA, exc=requests.ConnectionError("refused"))
    with pytest.raises(CloudUnavailable, match="Nova does not answer"):
        looks["nova"]()


@pytest.mark.parametrize(
    "url", ["http://neutron.test:9696", "http://neutron.test:9696/", "http://neutron.test:9696/v2.0"]
)
def test_neutron_is_called_at_its_version_without_a_list_of_versions(web, url):
    token = catalog()
    token.add_service("network").add_standard_endpoints(public=url, internal=url, admin=url, region="RegionOne")
    web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "very-secret-token"})
    web.get("http://neutron.test:9696/v2.0/networks", json={"networks": []})
    assert an_access().network.get("/networks") == {"networks": []}
    assert [call.url for call in web.request_history if "neutron" in call.url] == [
        "http://neutron.test:9696/v2.0/networks"
    ]


@pytest.fixture
def nova(web):
    return an_access().compute


def sent(web, part="/servers"):
    return [request for request in web.request_history if part in request.url]


def test_a_call_says_who_asks_and_which_microversion_it_speaks(web, nova):
    web.get(f"{NOVA}/servers/1", json={"server": {"id": "1"}})
    with scope(request_id="req-11111111-2222-3333-4444-555555555555"):
        assert nova.get("/servers/1", microversion="2.67") == {"server": {"id": "1"}}
    (call,) = sent(web)
    assert call.headers["X-OpenStack-Request-ID"] == "req-11111111-2222-3333-4444-555555555555"
    assert call.headers["OpenStack-API-Version"] == "compute 2.67"
    assert call.headers["X-Auth-Token"] == "very-secret-token"


def test_an_endpoint_that_has_moved_is_found_with_the_next_login(web, nova):
    web.delete(f"{NOVA}/servers/1", status_code=401)
    web.delete(f"{FAR_NOVA}/servers/1", status_code=204)
    web.get(f"{NOVA}/servers/2", json={})
    assert nova.get("/servers/2") == {}
    moved = fixture.V3Token(user_name="blazar", project_name="service")
    moved.add_service("compute", name="nova").add_standard_endpoints(
        public=FAR_NOVA, internal=FAR_NOVA, admin=FAR_NOVA, region="RegionOne"
    )
    web.post(f"{KEYSTONE}/auth/tokens", json=moved, headers={"X-Subject-Token": "another-token"})
    nova.call("DELETE", "/servers/1")
    assert [call.hostname for call in sent(web)] == ["nova.test", "nova.test", "nova.far.test"]


def test_the_catalog_is_read_again_after_a_while(web, nova, monkeypatch):
    web.get(f"{NOVA}/servers/1", json={})
    nova.get("/servers/1")
    looks = []
    look = Adapter.get_endpoint
    monkeypatch.setattr(Adapter, "get_endpoint", lambda adapter: looks.append(adapter) or look(adapter))
    for _ in range(3):
        nova.get("/servers/1")
    assert looks == []
    later = monotonic() + ENDPOINT_SECONDS
    monkeypatch.setattr("blazar.clouds.openstack.service.monotonic", lambda: later)
    nova.get("/servers/1")
    assert len(looks) == 1


def test_proxies_of_the_environment_are_used_for_those_that_they_are_for(web, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "placement.test,keystone.test")
    web.get(f"{NOVA}/servers/1", json={})
    web.get(f"{PLACEMENT}/", json=V1)
    web.get(f"{PLACEMENT}/resource_classes", json={})
    access = an_access()
    for _ in range(2):
        access.compute.get("/servers/1")
        access.placement.get("/resource_classes")
    assert [call.proxies.get("http") for call in sent(web)] == ["http://proxy.test:3128"] * 2
    assert [call.proxies.get("http") for call in sent(web, "/resource_classes")] == [None] * 2


class Ended:
    """A hold that is over; by and by, if it is told so."""

    longest_call = 5.0

    def __init__(self, *left: float) -> None:
        self._left = list(left) or [0.0]

    def remaining(self) -> float:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_is_changed_after_the_claim_on_the_work_has_ended(web, nova, method):
    web.register_uri(requests_mock.ANY, f"{NOVA}/servers/1", json={})
    with scope(fence=Ended()):
        nova.get("/servers/1")
        with pytest.raises(ClaimLost):
            nova.call(method, "/servers/1")
    assert [request.method for request in sent(web)] == ["GET"]


def test_a_repetition_is_checked_like_the_first_call(web, nova):
    web.put(f"{NOVA}/servers/1", status_code=503)
    with scope(fence=Ended(20.0, 4.0)), pytest.raises(ClaimLost):
        nova.call("PUT", "/servers/1")
    assert len(sent(web)) == 1


def test_a_changing_call_may_take_no_longer_than_the_claim_allows(web, nova):
    web.post(f"{NOVA}/servers/1", json={})
    web.get(f"{NOVA}/servers/1", json={})
    with scope(fence=Ended(20.0)):
        nova.call("POST", "/servers/1")
        nova.get("/servers/1")
    assert [request.timeout for request in sent(web)] == [5.0, 20.0]


def test_a_changing_call_with_an_old_token_is_sent_once_more_after_another_check(web, nova):
    web.post(f"{NOVA}/servers/1", [{"status_code": 401, "json": {}}, {"json": {"made": 1}}])
    with scope(fence=Ended(20.0)):
        assert nova.call("POST", "/servers/1") == {"made": 1}
    assert len(sent(web, "/auth/tokens")) == 2
    web.post(f"{NOVA}/servers/1", [{"status_code": 401, "json": {}}, {"json": {"made": 1}}])
    with scope(fence=Ended(20.0, 4.0)), pytest.raises(ClaimLost):
        nova.call("POST", "/servers/1")


@pytest.mark.parametrize(
    ("wishes", "where"),
    [
        ({}, NOVA),
        ({"interfaces": {"compute": "public"}}, "http://nova.public.test/v2.1"),
        ({"region": "RegionTwo", "interfaces": {"compute": "public"}}, FAR_NOVA),
    ],
)
def test_region_and_interface_are_those_of_the_configuration(web, wishes, where):
    web.get(f"{where}/servers/1", json={"server": {}})
    an_access(**wishes).compute.get("/servers/1")
    assert sent(web)[0].url == f"{where}/servers/1"


def test_of_many_hosts_only_what_has_changed_is_read_again(web):
    web.get(f"{PLACEMENT}/", json=V1)

    def listed(**generations):
        providers = [
            {"name": name, "uuid": name, "root_provider_uuid": name, "generation": generation}
            for name, generation in generations.items()
        ]
        ours = {"name": "blazar_a", "uuid": "x", "root_provider_uuid": "a", "generation": 1}
        web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": [*providers, ours]})

    for name in "ab":
        path = f"{PLACEMENT}/resource_providers/{name}"
        web.get(f"{path}/inventories", json={"inventories": {"VCPU": {"total": 4}}, "resource_provider_generation": 1})
        web.get(f"{path}/traits", json={"traits": ["T"], "resource_provider_generation": 1})
    placement = OpenStackPlacement(an_access())
    counts = []
    for generations in ({"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1}):
        listed(**generations)
        before = len(sent(web, "/resource_providers"))
        found = placement.inventories(["a", "b"])
        assert found.keys() == generations.keys()
        assert {inventory.capacity.get("VCPU") for inventory in found.values()} == {4}
        counts.append(len(sent(web, "/resource_providers")) - before)
    assert counts == [5, 1, 3, 1]


def test_a_provider_that_goes_while_it_is_read_leaves_its_host_out(web):
    web.get(f"{PLACEMENT}/", json=V1)
    gone = {"name": "a", "uuid": "a", "root_provider_uuid": "a", "generation": 1}
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": [gone]})
    web.get(f"{PLACEMENT}/resource_providers/a/inventories", status_code=404, json={})
    assert OpenStackPlacement(an_access()).inventories(["a", "b"]) == {}


def test_a_host_that_is_closed_has_the_same_traits_as_before(web):
    """Each host that sleeps would be another one to all requests, and all processes would read all hosts again."""
    web.get(f"{PLACEMENT}/", json=V1)
    provider = {"name": "a", "uuid": "a", "root_provider_uuid": "a", "generation": 1}
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": [provider]})
    path = f"{PLACEMENT}/resource_providers/a"
    web.get(f"{path}/inventories", json={"inventories": {}, "resource_provider_generation": 1})
    traits = ["COMPUTE_STATUS_DISABLED", "HW_CPU_X86_AVX2"]
    web.get(f"{path}/traits", json={"traits": traits, "resource_provider_generation": 1})
    assert OpenStackPlacement(an_access()).inventories(["a"])["a"].traits == {"HW_CPU_X86_AVX2"}


def test_devices_that_await_cleaning_are_those_that_are_reserved_and_in_no_server(web):
    web.get(f"{PLACEMENT}/", json=V1)
    traits = {"h": [], "used": ["HW_PCI_ONE_TIME_USE"], "dirty": ["HW_PCI_ONE_TIME_USE"], "broken": []}
    tree = [{"name": name, "uuid": name, "root_provider_uuid": "h", "generation": 1} for name in traits]
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": tree})
    for name, had in traits.items():
        path = f"{PLACEMENT}/resource_providers/{name}"
        there = {"GPU": {"total": 1, "reserved": 1}} if name != "h" else {}
        web.get(f"{path}/inventories", json={"inventories": there, "resource_provider_generation": 1})
        web.get(f"{path}/traits", json={"traits": had, "resource_provider_generation": 1})
        web.get(f"{path}/usages", json={"usages": {"GPU": int(name == "used")}})
    placement = OpenStackPlacement(an_access())
    assert placement.uncleaned("h") == Amounts.of({"GPU": 1})
    assert placement.inventories(["h"])["h"].capacity == Amounts.of({"GPU": 2})
    assert [request.path for request in sent(web, "/usages")] == [
        f"/resource_providers/{name}/usages" for name in ("used", "dirty")
    ]


def test_one_login_serves_many_calls(web):
    web.get(f"{NOVA}/servers/1", json={})
    web.get(f"{PLACEMENT}/", json=V1)
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": []})
    access = an_access()
    placement = OpenStackPlacement(access)
    for _ in range(5):
        access.compute.get("/servers/1")
        placement.reservation_provider("node-1")
    assert len(sent(web, "/auth/tokens")) == 1


SERVICES = sorted(name for name, member in vars(an_access()).items() if isinstance(member, CloudService))


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("region", ["RegionOne", "RegionTwo"])
def test_every_service_is_called_in_the_region_of_the_configuration(web, service, region):
    """Threads that watch over hosts work for nobody's request; their calls go the same way."""
    token = fixture.V3Token(user_name="blazar", project_name="service")
    for kind in SERVICES:
        offered = token.add_service(kind)
        for name in ("RegionOne", "RegionTwo"):
            here = f"http://{kind}.{name.lower()}.test/v2"
            offered.add_standard_endpoints(public=here, internal=here, admin=here, region=name)
    web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t"})
    v2 = {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": ""}]}]}
    web.get(requests_mock.ANY, json=V1 if service in ("baremetal", "orchestration", "placement") else v2)
    web.get(KEYSTONE, json=fixture.V3Discovery(KEYSTONE))
    called = []
    access = an_access(region=region, interfaces={})

    def call() -> None:
        getattr(access, service).get("/things")
        called.extend(request.url for request in sent(web, "/things"))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert called
    assert all(f"http://{service}.{region.lower()}.test/" in url for url in called)


def test_nobodys_trust_is_needed_or_made(web):
    web.get(f"{NOVA}/servers/1", json={})
    web.get(f"{PLACEMENT}/", json=V1)
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": []})
    access = an_access()
    access.compute.get("/servers/1")
    OpenStackPlacement(access).reservation_provider("node-1")
    (login,) = sent(web, "/auth/tokens")
    assert login.json()["auth"]["identity"]["password"]["user"]["name"] == "blazar"
    assert login.json()["auth"]["scope"].keys() == {"project"}
    assert not sent(web, "OS-TRUST")


def test_servers_are_deleted_by_force_and_found_in_the_recycle_bin(web):
    web.post(f"{NOVA}/servers/1/action", status_code=202)
    web.get(f"{NOVA}/servers/detail", json={"servers": [a_server("1")]})
    compute = OpenStackCompute(an_access())
    compute.begin_server_deletion("1")
    assert sent(web)[-1].json() == {"forceDelete": None}
    assert [server.id for server in compute.servers_on("compute-1")] == ["1"]
    asked = sent(web)[-1].qs
    assert (asked["soft_deleted"], asked["all_tenants"], asked["host"]) == (["1"], ["1"], ["compute-1"])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(web, nova, status):
    web.get(f"{NOVA}/servers/1", [{"status_code": status}, {"status_code": status}, {"json": {"server": {}}}])
    assert nova.get("/servers/1") == {"server": {}}
    assert len(sent(web)) == 3


def test_a_lasting_failure_is_told_after_a_few_attempts(web, nova):
    web.get(f"{NOVA}/servers/1", status_code=503, reason="Service Unavailable")
    with pytest.raises(CloudUnavailable, match="Nova failed with 503"):
        nova.get("/servers/1")
    assert len(sent(web)) == 3


@pytest.mark.parametrize(
    "failure", [{"status_code": 500}, {"exc": requests.ReadTimeout}, {"exc": requests.ConnectionError}, {"exc": CLOSED}]
)
def test_what_may_have_been_done_is_not_sent_again(web, nova, failure):
    web.post(f"{NOVA}/servers/1/action", **failure)
    with pytest.raises(CloudUnavailable):
        nova.call("POST", "/servers/1/action", body={})
    assert len(sent(web)) == 1


@pytest.mark.parametrize("failure", [{"status_code": 503}, {"exc": REFUSED}])
def test_what_was_certainly_not_done_is_sent_again(web, nova, failure):
    web.post(f"{NOVA}/servers/1/action", [failure, {"json": {}}])
    assert nova.call("POST", "/servers/1/action", body={}) == {}
    assert len(sent(web)) == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_does_the_same_twice_is_sent_again_when_its_answer_is_lost(web, nova, method):
    web.register_uri(method, f"{NOVA}/servers/1", [{"exc": CLOSED}, {"json": {}}])
    assert nova.call(method, "/servers/1") == {}
    assert len(sent(web)) == 2


def test_a_login_whose_answer_is_lost_is_repeated_whatever_it_is_for(web, nova):
    web.post(f"{NOVA}/servers/1/action", json={})
    login = {"json": catalog(), "headers": {"X-Subject-Token": "very-secret-token"}}
    web.post(f"{KEYSTONE}/auth/tokens", [{"exc": CLOSED}, login])
    assert nova.call("POST", "/servers/1/action", body={}) == {}
    assert len(sent(web)) == 1


@contextmanager
def a_real_nova(web: Web, answers: list[Callable[[BaseHTTPRequestHandler], None]]) -> Iterator[HTTPServer]:
    """Open a server that the catalog names as Nova, and that takes no connections yet; each request has an answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answers.pop(0)(self)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.server_bind()
    url = f"http://127.0.0.1:{server.server_port}/v2.1"
    token = fixture.V3Token(user_name="blazar", project_name="service")
    token.add_service("compute").add_standard_endpoints(internal=url, region="RegionOne")
    web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "very-secret-token"})
    requests_mock.Mocker.register_uri(web, "POST", f"{url}/servers/1/action", real_http=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def done(request: BaseHTTPRequestHandler) -> None:
    request.send_response(202)
    request.end_headers()


def done_without_an_answer(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True


def test_a_connection_that_is_closed_after_a_post_does_not_have_it_sent_again(web):
    answers = [done_without_an_answer, done]
    with a_real_nova(web, answers) as server:
        server.server_activate()
        with pytest.raises(CloudUnavailable, match="cannot be reached"):
            an_access().compute.call("POST", "/servers/1/action", body={})
    assert answers == [done]


def test_a_post_is_sent_when_a_service_that_refused_it_is_back(web, monkeypatch):
    answers = [done]
    with a_real_nova(web, answers) as server:
        monkeypatch.setattr(tenacity.nap.time, "sleep", lambda _: server.server_activate())
        assert an_access().compute.call("POST", "/servers/1/action", body={}) == {}
    assert answers == []


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ({"status_code": 404, "json": {"itemNotFound": {"message": "no such server"}}}, NotFound, "no such"),
        ({"status_code": 409, "json": {"conflictingRequest": {"message": "is being moved"}}}, Conflict, "being moved"),
        ({"status_code": 400, "json": {"badRequest": {"message": "nonsense"}}}, CloudRefused, "nonsense"),
        ({"status_code": 403, "json": {"forbidden": {"message": "Quota exceeded"}}}, CloudRefused, "Quota"),
        ({"status_code": 413, "json": {"overLimit": {"message": "Quota is used up"}}}, CloudRefused, "Quota"),
        ({"status_code": 413, "json": {"overLimit": {"message": "slower"}}}, CloudUnavailable, "slower"),
        ({"status_code": 406, "json": {"errors": [{"detail": "unsupported version"}]}}, VersionMissing, "too old"),
        ({"status_code": 418, "text": "<html>teapot"}, CloudRefused, "418"),
        ({"exc": requests.exceptions.ConnectTimeout}, CloudUnavailable, "within 20 s"),
        ({"exc": requests.exceptions.SSLError("certificate verify failed")}, CloudUnavailable, "certificate"),
    ],
)  # fmt: skip
def test_answers_become_errors_of_ours_with_the_sentence_of_the_service(web, nova, answer, error, says):
    web.get(f"{NOVA}/servers/1", **answer)
    with pytest.raises(error, match=says) as raised:
        nova.get("/servers/1")
    assert (raised.value.cause.code == "quota_exceeded") == (says == "Quota")


def test_an_answer_that_is_no_json_is_told_of(web, nova):
    web.get(f"{NOVA}/servers/1", text="<html>a proxy's own page", headers={"Content-Type": "application/json"})
    with pytest.raises(CloudUnavailable, match="the body is not JSON"):
        nova.get("/servers/1")


def test_a_concurrent_update_in_placement_is_tried_again(web):
    conflict = {"errors": [{"status": 409, "code": "placement.concurrent_update", "detail": "generation"}]}
    web.get(f"{PLACEMENT}/", json=V1)
    web.put(f"{PLACEMENT}/x", [{"status_code": 409, "json": conflict}, {"json": {"ok": True}}])
    assert an_access().placement.call("PUT", "/x", body={}) == {"ok": True}


def provider_that(web, *answers, inventories=None):
    """A reservation provider of one host whose inventories are written with these answers."""
    web.get(f"{PLACEMENT}/", json=V1)
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": [{"name": "blazar_h", "uuid": "u"}]})
    path = f"{PLACEMENT}/resource_providers/u/inventories"
    web.get(path, json={"inventories": inventories or {}, "resource_provider_generation": 7})
    web.put(path, list(answers))
    return OpenStackPlacement(an_access(), sleep=lambda _: None)


LOST = {"errors": [{"status": 409, "code": "placement.concurrent_update", "detail": "generation"}]}
IN_USE = {"errors": [{"status": 409, "code": "placement.inventory.inuse", "detail": "in use"}]}


def test_an_inventory_is_read_again_when_somebody_else_has_changed_the_provider(web):
    other = {"OTHER": {"total": 3}}
    placement = provider_that(web, *[{"status_code": 409, "json": LOST}] * 3, {"json": {}}, inventories=other)
    placement.set_inventory("h", "CLASS", 2)
    writes = [request for request in web.request_history if request.method == "PUT"]
    assert len(writes) == 4, "each with what was read just before, and none of them twice"
    assert writes[-1].json()["inventories"]["OTHER"] == {"total": 3}
    assert writes[-1].json()["inventories"]["CLASS"] == {
        "total": 2,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 1,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }


def test_a_provider_that_changes_all_the_time_is_given_up_for_now(web):
    placement = provider_that(web, {"status_code": 409, "json": LOST})
    with pytest.raises(CloudUnavailable, match="others kept changing"):
        placement.set_inventory("h", "CLASS", 2)


def test_an_inventory_in_use_is_a_conflict_at_once(web):
    placement = provider_that(web, {"status_code": 409, "json": IN_USE}, inventories={"CLASS": {"total": 1}})
    with pytest.raises(Conflict):
        placement.delete_inventory("h", "CLASS")
    assert len([request for request in web.request_history if request.method == "PUT"]) == 1


def calls_of(web, before=0):
    """The calls to Placement after so many, without the one for its versions."""
    made = [(request.method, request.path) for request in sent(web, f"{PLACEMENT}/resource_providers")]
    return made[before:]


def test_a_start_reads_the_inventories_of_a_host_once_and_the_next_one_knows_its_provider(web):
    placement = provider_that(web, {"json": {}})
    path = "/resource_providers/u/inventories"
    assert placement.reserved_capacity("h", "ONE") is None
    placement.set_inventory("h", "ONE", 2)
    assert calls_of(web) == [("GET", "/resource_providers"), ("GET", path), ("PUT", path)]
    assert placement.reserved_capacity("h", "TWO") is None
    placement.set_inventory("h", "TWO", 1)
    assert calls_of(web, 3) == [("GET", path), ("PUT", path)]
    write = sent(web, path)[-1].json()
    assert (write["resource_provider_generation"], write["inventories"]["TWO"]["total"]) == (7, 1)


def test_what_was_read_for_one_class_is_not_believed_of_another_that_it_has(web):
    placement = provider_that(web, {"json": {}}, inventories={"TWO": {"total": 1}})
    assert placement.reserved_capacity("h", "ONE") is None
    reads = len(calls_of(web))
    placement.set_inventory("h", "TWO", 5)
    assert [method for method, _ in calls_of(web, reads)] == ["GET", "PUT"]


def test_what_was_read_is_read_again_if_somebody_has_changed_the_provider_since(web):
    placement = provider_that(web, {"status_code": 409, "json": LOST}, {"json": {}})
    assert placement.reserved_capacity("h", "ONE") is None
    reads = len(calls_of(web))
    web.get(
        f"{PLACEMENT}/resource_providers/u/inventories",
        json={"inventories": {"OTHER": {"total": 3}}, "resource_provider_generation": 8},
    )
    placement.set_inventory("h", "ONE", 2)
    assert [method for method, _ in calls_of(web, reads)] == ["PUT", "GET", "PUT"]
    write = sent(web, "/inventories")[-1].json()
    assert (write["resource_provider_generation"], write["inventories"].keys()) == (8, {"OTHER", "ONE"})


@pytest.mark.parametrize("made_again", [True, False])
def test_a_provider_that_was_deleted_is_looked_up_by_its_name_again(web, made_again):
    placement = provider_that(web, {"json": {}}, inventories={"CLASS": {"total": 4}})
    web.get(f"{PLACEMENT}/resource_providers/u/usages", json={"usages": {"CLASS": 1}})
    assert placement.reserved_capacity("h", "CLASS").used == 1
    web.get(f"{PLACEMENT}/resource_providers/u/inventories", status_code=404, json={})
    others = [{"name": "blazar_h", "uuid": "v"}] if made_again else []
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": others})
    path = f"{PLACEMENT}/resource_providers/v/inventories"
    web.get(path, json={"inventories": {}, "resource_provider_generation": 1})
    web.put(path, json={})
    assert placement.reserved_totals("h") == {}
    if made_again:
        placement.set_inventory("h", "CLASS", 4)
        assert sent(web, path)[-1].method == "PUT"
    else:
        with pytest.raises(NotFound):
            placement.set_inventory("h", "CLASS", 4)
    with pytest.raises(NotFound):
        placement.delete_inventory("h", "CLASS")


def test_no_call_goes_beyond_the_time_of_its_request(web, nova):
    web.get(f"{NOVA}/servers/1", json={})
    with scope(limit=timedelta(seconds=7)):
        nova.get("/servers/1")
        assert sent(web)[0].timeout <= 7
    with scope(limit=timedelta(0)), pytest.raises(CloudUnavailable, match="too long"):
        nova.get("/servers/1")
    assert len(sent(web)) == 1


def test_all_pages_of_a_listing_are_read_whatever_host_their_links_name(web):
    def page(request, context):
        marker = request.qs.get("marker", [""])[0]
        items = {"": ("a", "b"), "b": ("c", "d"), "d": ()}[marker]
        link = [{"rel": "next", "href": f"http://unreachable.test/servers?marker={items[-1]}"}] if items else []
        assert request.qs["host"] == ["compute-1"]
        return {"servers": [a_server(name) for name in items], "servers_links": link}

    web.get(f"{NOVA}/servers/detail", json=page)
    servers = OpenStackCompute(an_access()).servers_on("compute-1")
    assert [server.id for server in servers] == ["a", "b", "c", "d"]


def a_server(name: str) -> dict[str, object]:
    return {"id": name, "name": name, "tenant_id": "p", "user_id": "u", "status": "ACTIVE", "locked": False}


def test_a_name_that_only_begins_alike_is_not_taken_for_a_host(web):
    names = ("node-1", "node-10", "node-100")
    web.get(
        f"{NOVA}/os-hypervisors/node-1/search",
        json={"hypervisors": [{"id": i, "hypervisor_hostname": name} for i, name in enumerate(reversed(names))]},
    )
    web.get(f"{NOVA}/os-availability-zone/detail", json={"availabilityZoneInfo": []})
    detail = {
        "id": 2, "hypervisor_hostname": "node-1", "service": {"host": "node-1"}, "hypervisor_type": "QEMU",
        "hypervisor_version": 1, "vcpus": 1, "memory_mb": 1, "local_gb": 1, "cpu_info": "", "state": "up",
        "status": "enabled",
    }  # fmt: skip
    web.get(f"{NOVA}/os-hypervisors/2", json={"hypervisor": detail})
    assert OpenStackCompute(an_access()).hypervisor(hostname="node-1").id == "2"


def test_a_resource_provider_is_found_by_its_exact_name(web):
    web.get(f"{PLACEMENT}/", json=V1)
    web.get(f"{PLACEMENT}/resource_providers", json={"resource_providers": [{"name": "blazar_node-10", "uuid": "x"}]})
    assert OpenStackPlacement(an_access()).reservation_provider("node-1") is None


@pytest.mark.parametrize("status", ["enabled", "disabled"])
def test_a_cinder_that_only_says_that_it_enables_a_service_is_not_believed(web, monkeypatch, status):
    told = catalog()
    told.add_service("block-storage").add_standard_endpoints(internal=CINDER, public=CINDER, region="RegionOne")
    web.post(f"{KEYSTONE}/auth/tokens", json=told, headers={"X-Subject-Token": "very-secret-token"})
    web.get(CINDER, json={"versions": [{"id": "v3.0", "status": "CURRENT", "version": "3.71", "min_version": "3.0"}]})
    web.put(f"{CINDER}/os-services/enable", json={"status": "enabled", "disabled": False})
    service = {"host": "node@disks", "status": status, "state": "up", "disabled_reason": "blazar power"}
    web.get(f"{CINDER}/os-services", json={"services": [service]})
    with nullcontext() if status == "enabled" else pytest.raises(CloudRefused, match="and it is still disabled"):
        OpenStackVolumes(an_access()).enable_volume_service("node@disks")


def test_an_old_nova_tells_no_hints_and_that_is_no_failure(web):
    web.get(f"{NOVA}/servers/detail", status_code=406, json={"errors": [{"detail": "2.100 is not supported"}]})
    assert OpenStackCompute(an_access()).stranded_servers("r", "p") == ()


def test_a_wrong_password_is_told_as_such(web):
    web.post(f"{KEYSTONE}/auth/tokens", status_code=401, json={"error": {"message": "Requires authentication."}})
    with pytest.raises(CloudRefused, match="does not accept the service user"):
        an_access().log_in()
    with pytest.raises(CloudUnavailable, match="no way into Nova"):
        an_access().compute.get("/servers/1")


def test_a_keystone_that_is_away_is_told_as_such(web):
    web.get(KEYSTONE, exc=requests.exceptions.ConnectionError)
    web.post(f"{KEYSTONE}/auth/tokens", exc=requests.exceptions.ConnectionError)
    with pytest.raises(CloudUnavailable, match="Keystone cannot be reached"):
        an_access().log_in()


def test_no_secret_reaches_the_log(web, nova, caplog):
    caplog.set_level(logging.DEBUG)
    web.get(f"{NOVA}/servers/1", status_code=404)
    with pytest.raises(NotFound):
        nova.get("/servers/1")
    assert "very-secret" not in caplog.text
