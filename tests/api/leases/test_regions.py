# SPDX-License-Identifier: Apache-2.0
"""Two regions over HTTP: what each version of the API says of them, and takes."""

from __future__ import annotations

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.manager.regions.world import TwoRegions, hosts_in, kill
from tests.world import World

OPERATOR = token("root", "service", "admin")
HOST = {"resource_type": "physical:host", "min": 1}
TIMES = {"start_date": "2030-04-02T18:00:00Z", "end_date": "2030-04-02T20:00:00Z"}


@pytest.fixture
def two(sqlite):
    return TwoRegions(sqlite)


@pytest.fixture
def http(two, http_of):
    return http_of(two)


def at(version, who=None):
    return {**(who or token()), "OpenStack-API-Version": f"reservation {version}"}


def book(http, version="1.1", **more):
    body = {"name": "a lease", **TIMES, "reservations": [{**HOST, **more}]}
    return http.post("/v1/leases", json=body, headers=at(version))


def test_from_1_1_on_a_reservation_names_its_region_and_shows_it(http):
    booked = book(http, region="R2")
    assert booked.status_code == 201, booked.text
    lease = booked.json["lease"]
    assert [each["region"] for each in lease["reservations"]] == ["R2"]
    (shown,) = http.get("/v1/leases", headers=at("1.1")).json["leases"]
    assert [each["region"] for each in shown["reservations"]] == ["R2"]
    earlier = http.get(f"/v1/leases/{lease['id']}", headers=at("1.0"))
    assert ["region" in each for each in earlier.json["lease"]["reservations"]] == [False]


def test_a_region_that_is_not_there_is_refused_with_those_that_are(http):
    (fault,) = book(http, region="R9").json["errors"]
    assert (fault["status"], fault["pointer"]) == (400, "/reservations/0/region")
    assert 'region is "R9"; give one of R1, R2' in fault["detail"]
    for wrong in ("", 7, None, "x" * 65, ["R1"]):
        assert book(http, region=wrong).status_code == 400


def test_openings_take_the_region_and_say_it(two, http):
    def openings(**more):
        body = {"reservations": [{**HOST, **more}], "duration": "PT1H", "limit": 1}
        answer = http.post("/v1/availability", json=body, headers=at("1.1"))
        assert answer.status_code == 200, answer.text
        return [each["reservations"] for each in answer.json["availability"]["openings"]]

    assert openings(region="R2") == [[{"count": 1, "region": "R2"}]]
    assert openings() == [[{"count": 1, "region": "R1"}]]


def test_leases_are_listed_by_region(two, http):
    there = two.lease(hosts_in("R2"))
    two.lease(hosts_in("R1"))
    listed = http.get("/v1/leases?region=R2", headers=at("1.1"))
    assert [each["id"] for each in listed.json["leases"]] == [there.id]
    (fault,) = http.get("/v1/leases?region=in:R2,R9", headers=at("1.1")).json["errors"]
    assert fault["detail"] == "region is 'R9', which this service does not have; its regions are R1, R2"


@pytest.mark.parametrize(
    ("url", "version"), [("/v1/os-hosts", "1.0"), ("/v1/resources/host", "1.1"), ("/v2/os-hosts", None)]
)
def test_a_host_of_a_further_region_is_registered_listed_shown_changed_and_deleted(sqlite, http_of, url, version):
    two = TwoRegions(sqlite, register=False)
    http = http_of(two)
    headers = OPERATOR if version is None else at(version, OPERATOR)

    def one(answer):
        return answer.json.get("host", answer.json.get("resource", answer.json))

    def name(answer):
        return one(answer).get("hypervisor_hostname") or one(answer)["name"]

    made = http.post(url, json={"id": "R2:2"}, headers=headers)
    assert made.status_code == 201, made.text
    assert (one(made)["id"], name(made)) == ("R2:2", "node-2")
    listed = http.get(url, headers=headers).json
    assert [
        each["id"] for each in (listed if isinstance(listed, list) else listed.get("hosts") or listed["resources"])
    ] == ["R2:2"]
    assert name(http.get(f"{url}/R2:2", headers=headers)) == "node-2"
    change = {"1.0": {"rack": "r7"}, "1.1": {"properties": {"rack": "r7"}}, None: {"extra_capas": {"rack": "r7"}}}
    assert http.put(f"{url}/R2:2", json=change[version], headers=headers).status_code == 200
    assert two.manager.resources.one("host", "R2:2").capabilities == {"rack": "r7"}
    assert http.get(f"{url}/2", headers=headers).status_code == 404
    assert http.delete(f"{url}/R2:2", headers=headers).status_code == 204
    assert http.get(f"{url}/R2:2", headers=headers).status_code == 404
    assert two.free_in_second() == frozenset()


@pytest.mark.parametrize(
    ("url", "version", "body"),
    [
        ("/v1/os-hosts", "1.0", {"name": "node-1", "region": "R2"}),
        ("/v1/resources/host", "1.1", {"name": "node-1", "region": "R2"}),
        ("/v1/resources/host", "1.1", {"id": "R2:1"}),
        ("/v2/os-hosts", None, {"name": "node-1", "extra_capas": {"region": "R2"}}),
    ],
)
def test_a_host_is_registered_by_name_in_the_region_that_is_named_where_it_is_shown(
    sqlite, http_of, url, version, body
):
    two = TwoRegions(sqlite, register=False)
    headers = OPERATOR if version is None else at(version, OPERATOR)
    made = http_of(two).post(url, json=body, headers=headers)
    assert made.status_code == 201, made.text
    (host,) = two.manager.resources.all("host")
    assert (host.external_id, host.region, host.capabilities) == ("R2:1", "R2", {})
    assert two.free_in_second() == {"node-1"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"id": "R9:1"}, "give a number in one of R1, R2"),
        ({"id": "R2:1", "region": "R1"}, "id is of the region R2"),
        ({"id": "R2:77"}, "77"),
        ({"id": ":1"}, "id"),
        ({"id": "R2:"}, "id"),
        ({"name": "node-1", "region": "R9"}, "give one of R1, R2"),
        ({"name": "node-1", "region": ""}, "give one of R1, R2"),
    ],
)
def test_a_host_of_a_region_that_cannot_be_is_refused(sqlite, http_of, body, said):
    http = http_of(TwoRegions(sqlite, register=False))
    for url in ("/v1/os-hosts", "/v1/resources/host"):
        answer = http.post(url, json=body, headers=at("1.1" if "resources" in url else "1.0", OPERATOR))
        assert answer.status_code in (400, 404), answer.text
        assert said in answer.text


def test_the_region_of_a_host_cannot_be_changed(http):
    answer = http.put("/v1/os-hosts/R2:1", json={"region": "R1"}, headers=at("1.0", OPERATOR))
    assert answer.status_code == 400
    assert "region is read from the cloud and cannot be set" in answer.text


def test_allocations_of_a_host_of_a_further_region_are_shown_by_its_id(two, http):
    lease = two.lease(hosts_in("R2"))
    (held,) = two.store.calendar.of_lease(lease.id)
    host = two.store.resources.by_ids({held.resource_id})[held.resource_id].external_id
    shown = http.get(f"/v1/os-hosts/{host}/allocation", headers=at("1.0", OPERATOR)).json["allocation"]
    assert (shown["resource_id"], len(shown["reservations"])) == (host, 1)


@pytest.mark.parametrize(("url", "version"), [("/v1/os-hosts", "1.0"), ("/v2/os-hosts", "1.0")])
def test_the_number_of_a_host_is_taken_in_every_form_that_json_has_for_it(sqlite, http_of, url, version):
    two = TwoRegions(sqlite, register=False)
    made = http_of(two).post(
        url, data='{"id": 1.0}', headers={**at(version, OPERATOR), "Content-Type": "application/json"}
    )
    assert made.status_code == 201, made.text
    (host,) = two.manager.resources.all("host")
    assert host.external_id == "1"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "requirement", [["not", []], ["and", ["not", []]], ["and", ["==", "$region", "R1"], ["not", []]]]
)
def test_what_no_resource_can_meet_is_had_in_no_region(http, requirement):
    assert book(http, resource_properties=requirement).status_code in (400, 409)
    assert book(http, region="R2", resource_properties=requirement).status_code in (400, 409)
    lease = book(http).json["lease"]
    change = {"reservations": [{"id": lease["reservations"][0]["id"], "resource_properties": requirement}]}
    answer = http.put(f"/v1/leases/{lease['id']}", json=change, headers=at("1.1"))
    assert answer.status_code in (400, 409), answer.text
    question = {"duration": "PT1H", "reservations": [{**HOST, "resource_properties": requirement}]}
    assert http.post("/v1/availability", json=question, headers=at("1.1")).status_code in (200, 400)


def test_who_asks_for_what_a_dead_region_has_to_do_learns_which_one_it_is(two, http):
    kill(two.second)
    refused = book_instances(http, region="R2")
    assert refused.status_code == 503, refused.text
    (fault,) = refused.json["errors"]
    assert fault["code"] == "reservation.cloud_unavailable"
    assert fault["detail"].startswith("The cloud of the region R2 does not do what this needs at present")
    assert book_instances(http, region="R1").status_code == 201


def test_what_has_to_be_done_in_a_region_that_is_taken_out_says_so(two, http):
    path = f"/v1/leases/{book(http, region='R2').json['lease']['id']}"
    two.configured_for("R1")
    later = {"end_date": "2030-04-02T21:00:00Z"}
    (fault,) = client_of(app_of(two.manager)).put(path, json=later, headers=at("1.1")).json["errors"]
    assert fault["detail"] == "the region R2 is not configured any more; an operator can add it again"


def test_the_only_cloud_has_no_name(sqlite, http_of):
    world = World(sqlite)
    kill(world.simulated)
    (fault,) = book_instances(http_of(world)).json["errors"]
    assert fault["detail"].startswith("The cloud does not do what this needs at present")


def book_instances(http, **more):
    wanted = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": 1, **more}
    body = {"name": "servers", **TIMES, "reservations": [wanted]}
    return http.post("/v1/leases", json=body, headers=at("1.1"))
