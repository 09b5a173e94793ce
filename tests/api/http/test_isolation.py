# SPDX-License-Identifier: Apache-2.0
"""Who may do what to whose lease, in both versions; the same tables hold on a real OpenStack (``tests/cloud``)."""

from __future__ import annotations

import re

import pytest
from oslo_policy import policy as oslo

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import BUILTIN, all_parts
from blazar.model.resources.resource import DEVICE, FLOATING_IP, HOST, NETWORK
from tests.api.conftest import app_of, client_of, token
from tests.isolation import (
    NEW,
    ON_A_LEASE,
    ON_ADDRESSES,
    ON_CALENDAR,
    ON_DEVICES,
    ON_FEEDS,
    ON_HOSTS,
    ON_MORE,
    ON_NETWORKS,
    ON_RESOURCES,
    ON_SUBSCRIPTIONS,
    QUERIES,
    SEEN,
    SERIES,
    SUBSCRIPTION,
    WHO,
    for_hosts,
    ids_in,
    lease_in,
)
from tests.world import World, copied

IN_LISTS = {("GET", "/v1/leases"), ("GET", "/v2/leases")}
"""Routes of which ``SEEN`` says who sees what."""

TOKENS = {
    "admin": token("root", "demo", "admin"),
    # In Keystone a member is a reader as well; here nobody is what the token does not say.
    "member": token("curie", "physics", "member", "reader"),
    "reader": token("pierre", "physics", "reader"),
    "stranger": token("frida", "art", "member", "reader"),
    "foreign reader": token("diego", "art", "reader"),
    "service": token("nova", "art", "service"),
    "nobody": {"X-Auth-Token": "nobody"},
}

SERVED = Served(BUILTIN, newest=(1, 1))
"""What is served of a service at 1.1, whose routes are made once."""

both = pytest.mark.parametrize("root", ["/v1", "/v2"])


def booked(world: World) -> dict:
    return client_of(app_of(world.manager)).post("/v1/leases", json=NEW, headers=TOKENS["member"]).json["lease"]


@pytest.fixture
def with_lease(sqlite) -> tuple[World, dict]:
    return copied(sqlite, booked)


@pytest.fixture
def world(request, sqlite) -> World:
    return request.getfixturevalue("with_lease")[0] if "lease" in request.fixturenames else World(sqlite)


FROM_1_1 = (ON_RESOURCES, ON_MORE, ON_FEEDS, ON_SUBSCRIPTIONS)


@pytest.fixture
def lease(with_lease) -> dict:
    return with_lease[1]


def as_operators_see_it(http, lease: dict) -> dict:
    return http.get(f"/v1/leases/{lease['id']}").json["lease"]


def test_the_tables_cover_every_route_that_needs_a_token():
    tables = (
        *((method, root + path) for root, method, path, *_ in (*ON_A_LEASE, *ON_HOSTS)),
        *(
            (method, f"/v1{path}")
            for table in (
                ON_ADDRESSES,
                ON_NETWORKS,
                ON_DEVICES,
                ON_CALENDAR,
                ON_RESOURCES,
                ON_MORE,
                ON_FEEDS,
                ON_SUBSCRIPTIONS,
            )
            for method, path, *_ in table
        ),
    )
    for row in Served(BUILTIN).routes:
        url = re.sub(r"\{\w+\}", "[^/]+", row.url)
        there = [1 for method, path in tables if method == row.method and re.fullmatch(url, path)]
        assert there or row.is_open or (row.method, row.url) in IN_LISTS, row.name


@pytest.mark.share(3)
@pytest.mark.sample(28)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("root", "method", "path", "body", "statuses"), ON_A_LEASE)
def test_leases(http, lease, root, method, path, body, statuses, number):
    url = root + path.format(lease=lease["id"])
    answer = http.open(url, method=method, json=body, headers=TOKENS[WHO[number]])
    assert answer.status_code == statuses[number], answer.text
    if statuses[number] >= 400:
        assert "own plan" not in answer.text
        assert as_operators_see_it(http, lease) == lease
        assert len(http.get("/v1/leases").json["leases"]) == 1


@pytest.mark.share(3)
@pytest.mark.sample(52)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_CALENDAR)
def test_what_came_with_1_1(http, lease, method, path, body, statuses, number):
    headers = {**TOKENS[WHO[number]], "OpenStack-API-Version": "reservation 1.1"}
    answer = http.open("/v1" + path.format(lease=lease["id"]), method=method, json=body, headers=headers)
    assert answer.status_code == statuses[number], answer.text
    if WHO[number] not in ("admin", "member", "reader"):
        assert "own plan" not in answer.text
        # What the caller has sent may come back.
        assert lease["id"] not in answer.text or lease["id"] in answer.request.path


@pytest.mark.share(3)
@pytest.mark.sample(38)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_RESOURCES)
def test_resources_are_for_operators_and_members_see_some_of_them(http, world, method, path, body, statuses, number):
    headers = {**TOKENS[WHO[number]], "OpenStack-API-Version": "reservation 1.1"}
    label = world.manager.resources.one(HOST, "1").label
    answer = http.open("/v1" + path.format(label=label), method=method, json=body, headers=headers)
    assert answer.status_code == statuses[number], answer.text
    assert WHO[number] == "admin" or "node-" not in answer.text


@pytest.mark.share(3)
@pytest.mark.sample(34)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_MORE)
def test_series_surgery_transfers_and_maintenance(http, lease, method, path, body, statuses, number):
    headers = {**TOKENS[WHO[number]], "OpenStack-API-Version": "reservation 1.1"}
    series = ""
    if "{series}" in path:
        made = http.post("/v1/series", json=SERIES, headers={**headers, **TOKENS["member"]})
        series = made.json["series"]["id"]
    url = "/v1" + path.format(lease=lease["id"], series=series)
    answer = http.open(url, method=method, json=body, headers=headers)
    assert answer.status_code == statuses[number], answer.text
    if statuses[number] >= 400:
        assert "own plan" not in answer.text


@pytest.mark.share(3)
@pytest.mark.sample(23)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(("root", "method", "path", "body", "status"), ON_HOSTS)
def test_hosts_are_for_operators(http, root, method, path, body, status, who):
    http.put("/v1/os-hosts/1", json={"rack": "r0"})
    answer = http.open(root + path.format(host=1), method=method, json=body, headers=TOKENS[who])
    assert answer.status_code == for_hosts(who, status), answer.text
    if who != "admin":
        assert http.get("/v1/os-hosts/1").json["host"]["rack"] == "r0"


@pytest.mark.share(3)
@pytest.mark.sample(10)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_ADDRESSES)
def test_readers_see_addresses_and_only_operators_change_them(http, world, method, path, body, statuses, number):
    (address,) = world.register_addresses(10)
    url = "/v1" + path.format(address=address.external_id)
    answer = http.open(url, method=method, json=body, headers=TOKENS[WHO[number]])
    assert answer.status_code == statuses[number], answer.text
    assert world.manager.resources.all(FLOATING_IP) == (() if answer.status_code == 204 else (address,))


@pytest.mark.share(3)
@pytest.mark.sample(28)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_NETWORKS)
def test_network_segments_are_for_operators(http, world, method, path, body, statuses, number):
    (segment,) = world.register_segments(101)
    url = "/v1" + path.format(segment=segment.external_id)
    answer = http.open(url, method=method, json=body, headers=TOKENS[WHO[number]])
    assert answer.status_code == statuses[number], answer.text
    kept = [(each.external_id, dict(each.capabilities)) for each in world.manager.resources.all(NETWORK)]
    if WHO[number] != "admin":
        assert kept == [(segment.external_id, {})]


@pytest.mark.share(3)
@pytest.mark.sample(29)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_DEVICES)
def test_devices_are_for_operators(http, world, method, path, body, statuses, number):
    device = world.register_device()
    url = "/v1" + path.format(device=device.external_id)
    answer = http.open(url, method=method, json=body, headers=TOKENS[WHO[number]])
    assert answer.status_code == statuses[number], answer.text
    kept = [(each.external_id, dict(each.capabilities)) for each in world.manager.resources.all(DEVICE)]
    if WHO[number] != "admin":
        assert kept == [(device.external_id, {})]


@both
def test_a_list_shows_the_leases_of_the_own_project_and_operators_all(http, lease, root):
    foreign = lease_in(http.post(f"{root}/leases", json=NEW, headers=TOKENS["stranger"]).json)
    assert foreign["project_id"] == "art"
    names = {lease["id"]: "own", foreign["id"]: "foreign"}
    for who, seen in SEEN.items():
        for _ in ("cold", "kept"):
            body = http.get(f"{root}/leases", headers=TOKENS[who]).json
            assert {names[found] for found in ids_in(body)} == seen, who


@both
@pytest.mark.parametrize("query", QUERIES)
def test_no_query_parameter_shows_leases_of_other_projects(http, lease, root, query):
    answer = http.get(f"{root}/leases" + query.format(project="physics"), headers=TOKENS["stranger"])
    assert ids_in(answer.json) == set()


@both
@pytest.mark.parametrize("key", ["project_id", "user_id", "id", "status", "trust_id"])
def test_a_lease_cannot_be_created_for_or_given_to_another_project(http, lease, root, key):
    made = http.post(f"{root}/leases", json={**NEW, key: "physics"}, headers=TOKENS["stranger"])
    assert (made.status_code, key in made.json["error_message"]) == (400, True)
    given = http.put(f"{root}/leases/{lease['id']}", json={key: "art"}, headers=TOKENS["member"])
    assert (given.status_code, key in given.json["error_message"]) == (400, True)


@both
def test_a_reservation_can_be_changed_through_its_own_lease_only(http, lease, root):
    theirs = lease_in(http.post(f"{root}/leases", json=NEW, headers=TOKENS["stranger"]).json)
    change = {"reservations": [{"id": lease["reservations"][0]["id"], "max": 2}]}
    answer = http.put(f"{root}/leases/{theirs['id']}", json=change, headers=TOKENS["stranger"])
    assert (answer.status_code, "has no reservation" in answer.json["error_message"]) == (400, True)
    assert as_operators_see_it(http, lease) == lease


@both
def test_a_relaxed_get_rule_does_not_allow_changes(world, root):
    policy = Policy(parts=all_parts())
    rules = {rule.name: rule.check_str for rule in policy._enforcer.registered_rules.values()}
    relaxed = oslo.Rules.from_dict({**rules, "blazar:leases:get": "@"})
    policy._enforcer.set_rules(relaxed, overwrite=True, use_conf=False)
    http = client_of(create_app(world.manager, identity=StandaloneIdentity(), policy=policy))
    url = f"{root}/leases/{lease_in(http.post(f'{root}/leases', json=NEW, headers=TOKENS['member']).json)['id']}"
    frida = TOKENS["stranger"]
    assert http.get(url, headers=frida).status_code == 200
    for refused in (http.put(url, json={"name": "hers"}, headers=frida), http.delete(url, headers=frida)):
        assert refused.status_code == 403
    assert lease_in(http.get(url, headers=frida).json)["name"] == "own plan"


@pytest.mark.share(3)
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_FEEDS)
def test_feeds(world, method, path, body, statuses, number):
    http = client_of(app_of(world.manager, served=SERVED))
    version = {"OpenStack-API-Version": "reservation 1.1"}
    mine = {"kind": "user", "name": "a feed"}
    feed = http.post("/v1/feeds", json=mine, headers={**version, **TOKENS["member"]}).json["feed"]
    host = world.manager.resources.all("host")[0]
    if body is not None and "resource" in body:
        body = {**body, "resource": body["resource"].format(host=host.label)}
    headers = {**version, **TOKENS[WHO[number]]}
    answer = http.open("/v1" + path.format(feed=feed["id"]), method=method, json=body, headers=headers)
    assert answer.status_code == statuses[number]


@pytest.mark.share(3)
@pytest.mark.sample(10)
@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_SUBSCRIPTIONS)
def test_subscriptions(world, method, path, body, statuses, number):
    http = client_of(app_of(world.manager, served=SERVED))
    version = {"OpenStack-API-Version": "reservation 1.1"}
    made = {
        name: http.post("/v1/subscriptions", json=asked, headers={**version, **TOKENS[who]}).json["subscription"]["id"]
        for name, who, asked in (
            ("subscription", "member", SUBSCRIPTION),
            ("operators", "admin", {**SUBSCRIPTION, "project_id": None}),
        )
    }
    headers = {**version, **TOKENS[WHO[number]]}
    answer = http.open("/v1" + path.format(**made), method=method, json=body, headers=headers)
    assert answer.status_code == statuses[number], answer.text
    if WHO[number] in ("stranger", "foreign reader", "service", "nobody") and method != "POST":
        assert "ci.example" not in answer.text
