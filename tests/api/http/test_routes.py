# SPDX-License-Identifier: Apache-2.0
"""Every route of the table: it needs a token, checks its rule, validates its body, and is documented."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import pytest

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.microversion import CONVENTIONS, MAX_VERSION, MIN_VERSION, as_text
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.http.routes import Part, Root, Route
from blazar.api.leases.v1_0.routes import GET as SEE_LEASES
from blazar.api.parts import BUILTIN, list_rules
from blazar.api.series.routes import GET as SEE_SERIES
from blazar.api.subscriptions.routes import GET as SEE_SUBSCRIPTIONS
from blazar.model.base.clock import zulu
from blazar.model.feeds import FeedKind, FeedOwner, FeedRequest
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.subscriptions.details import Channel, SubscriptionRequest
from tests.api.conftest import token
from tests.api.http.test_policy import policy
from tests.prices import a_document
from tests.world import a_series

ROUTES = Served(BUILTIN).routes
GUARDED = [row for row in ROUTES if not row.is_open]
NEW = [row for row in GUARDED if row.since >= CONVENTIONS and row.root is Root.V1]
RANGED = [row for row in NEW if {"from", "to"} <= {parameter.name for parameter in row.parameters}]
WITH_BODY = [row for row in ROUTES if row.body]
SERVED = Served([Part("all", routes=ROUTES, controller="leases")])
SECRET = "s" * 43
ADMIN = token("root", "demo", "admin")
SERVICE = token("nova", "physics", "service")


def asked(row: Route) -> dict[str, str]:
    """Return the header that asks for the first version of a route."""
    return {"OpenStack-API-Version": f"reservation {as_text(row.since)}"}


def sentence(answer) -> str:
    """Return the sentence of an error in the shape of its version."""
    return answer.json["error_message"] if "error_message" in answer.json else answer.json["errors"][0]["detail"]


def each(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


@pytest.fixture
def url(world):
    """Return the URL of a route for objects that exist: those that it names are made."""

    def a_feed() -> str:
        hashed = hashlib.sha256(SECRET.encode()).hexdigest()
        feed = FeedRequest(FeedKind.USER, "a feed", FeedOwner("root", "demo"))
        return world.manager.feeds.create(feed, hashed).id

    def a_subscription() -> str:
        # Of mail, so that there is a link in it.
        world.people.addresses["root"] = "root@demo.example"
        request = SubscriptionRequest("demo", "root", None, ("lease.*",), channel=Channel.MAIL)
        return world.manager.subscriptions.create(request).subscription.id

    def a_secret() -> str:
        a_feed()
        return SECRET

    made = {
        "series_id": lambda: world.manager.series.create(a_series(project="demo")).series.id,
        "lease_id": lambda: world.lease(start=timedelta(days=1)).id,
        "floating_ip_id": lambda: world.register_addresses(10)[0].external_id,
        "network_id": lambda: world.register_segments(101)[0].external_id,
        "pool_id": lambda: world.register_pools(1)[0].external_id,
        "device_id": lambda: world.register_device().external_id,
        "reservation_id": lambda: "none",
        "version": lambda: a_price_list(world),
        "month": lambda: "2030-04",
        "feed_id": a_feed,
        "subscription_id": a_subscription,
        "maintenance_id": lambda: a_window(world),
        "secret": a_secret,
        "link_secret": lambda: "s" * 43,
        "problem_id": lambda: a_problem(world),
    }
    there = {"action": "retry", "kind": "host", "resource_id": "1", "host_id": "1", "name": "gpu"}

    class Objects(dict[str, str]):
        def __missing__(self, key: str) -> str:
            self[key] = made[key]()
            return self[key]

    objects = Objects(there)
    return lambda row: row.url.format_map(objects)


def a_problem(world) -> str:
    """Make a lease whose start is due for long, and return the id of that problem."""
    lease = world.lease(start=timedelta(minutes=1))
    world.clock.to(lease.window.start + timedelta(minutes=2))
    return f"event:{lease.event(EventType.START).id}"


def a_price_list(world) -> str:
    """Publish a price list, and return its version."""
    return world.manager.price_lists.publish(a_document(), Actor("root", "demo")).new.id


def a_window(world) -> str:
    """Open a maintenance window, and return its id."""
    now = world.clock.now()
    request = MaintenanceRequest("new disks", now + timedelta(hours=1), now + timedelta(hours=2), hosts=("1",))
    made = world.manager.maintenances.create(request).maintenance
    return made.id


def client(world, *, policy: Policy | None = None, routes: tuple[Route, ...] = ROUTES):
    served = SERVED if routes is ROUTES else Served([Part("all", routes=routes, controller="leases")])
    return create_app(world.manager, identity=StandaloneIdentity(), policy=policy, served=served).test_client()


@pytest.fixture
def plain(app):
    return app.test_client()


@pytest.fixture(scope="module")
def operations():
    """Return the operations of the document, by path and method."""
    return json.loads(SERVED.document(""))["paths"]


@pytest.mark.sample(38)
@each(NEW)
def test_the_document_lists_with_each_operation_the_query_parameters_that_it_takes(plain, url, operations, row):
    answer = plain.open(url(row), method=row.method, query_string="no_such=1", headers={**ADMIN, **asked(row)})
    (fault,) = answer.json["errors"]
    assert (answer.status_code, fault["parameter"]) == (400, "no_such")
    taken = fault["detail"].partition("is allowed: ")[2]
    described = operations[row.url][row.method.lower()]["parameters"]
    assert {each["name"] for each in described if each["in"] == "query"} == set(filter(None, taken.split(", ")))


@each([row for row in NEW if row.method in ("POST", "PUT") and not row.body])
def test_a_route_that_takes_no_body_refuses_one(plain, url, row):
    def ask(body: str):
        return plain.open(url(row), method=row.method, data=body, headers={**ADMIN, **asked(row)})

    (fault,) = ask('{"colour": "red"}').json["errors"]
    assert (fault["code"], "leave it out" in fault["detail"]) == ("reservation.unknown_field", True)
    assert "unknown_field" not in ask(" {}").text


@each([row for row in NEW if any(parameter.name == "region" for parameter in row.parameters)])
def test_a_region_that_there_is_not_is_refused(plain, url, row):
    (fault,) = plain.get(url(row), query_string="region=nowhere", headers={**ADMIN, **asked(row)}).json["errors"]
    assert (fault["code"], fault["parameter"]) == ("reservation.unknown_reference", "region")
    assert "it has none; leave it out" in fault["detail"]


@pytest.mark.parametrize("row", RANGED, ids=lambda row: row.url)
@pytest.mark.parametrize("hours", [-1, 0])
def test_a_period_that_does_not_end_after_its_begin_is_refused(plain, url, world, row, hours):
    begin = world.clock.now() + timedelta(hours=2)
    asks = {"from": zulu(begin), "to": zulu(begin + timedelta(hours=hours))}
    answer = plain.get(url(row), query_string=asks, headers={**ADMIN, **asked(row)})
    (fault,) = answer.json["errors"]
    assert (answer.status_code, fault["code"], fault["parameter"]) == (400, "reservation.invalid_window", "to")
    assert "which is not after from" in fault["detail"]


def test_the_periods_are_known():
    assert len(RANGED) > 6


@pytest.mark.sample(38)
@each(GUARDED)
def test_a_route_needs_a_token(plain, url, row):
    assert plain.open(url(row), method=row.method, headers={"X-Auth-Token": "nobody"}).status_code == 401


@each([row for row in ROUTES if row.is_open])
def test_an_open_route_needs_no_token(plain, url, row):
    answer = plain.open(url(row), method=row.method, headers={"X-Auth-Token": "nobody"})
    assert answer.status_code == row.status


@pytest.mark.sample(14)
@each(GUARDED)
def test_a_route_is_refused_by_its_rule(world, url, tmp_path, row):
    http = client(world, policy=policy(tmp_path, f'"{row.rule.name}": "!"'))
    answer = http.open(url(row), method=row.method, headers={**ADMIN, **asked(row)})
    if row.rule in (SEE_LEASES, SEE_SERIES, SEE_SUBSCRIPTIONS) and row.on_target and row.is_new:
        # A lease, series or subscription that the caller may not see does not exist.
        assert answer.status_code == 404
        return
    expected = f"Policy doesn't allow {row.rule.name} to be performed."
    assert (answer.status_code, sentence(answer)) == (403, expected)


@pytest.mark.sample(8)
@each(GUARDED)
def test_a_route_needs_no_other_rule_than_its_own(world, url, tmp_path, row):
    # A link to leases is for those who may list them.
    sees = row.on_target or row.name == "create_feed"
    needed = {row.rule.name, *((SEE_LEASES.name, SEE_SERIES.name) if sees else ())}
    rules = [f'"{rule.name}": "{"@" if rule.name in needed else "!"}"' for rule in list_rules()]
    http = client(world, policy=policy(tmp_path, "\n".join(rules)))
    body = row.body.examples[0] if row.body else None
    answer = http.open(url(row), method=row.method, headers={**SERVICE, **asked(row)}, json=body)
    assert answer.status_code not in (401, 403), answer.text


@pytest.mark.sample(5)
@each(WITH_BODY)
def test_a_route_validates_its_body_by_the_schema_of_its_row(world, url, row):
    strict = replace(row, body=replace(row.body, schema={"not": {}, "description": "nothing at all"}))
    http = client(world, routes=(strict,))
    answer = http.open(url(row), method=row.method, headers={**ADMIN, **asked(row)}, json=row.body.examples[0])
    assert answer.status_code == 400
    assert sentence(answer) == "The body is invalid; send nothing at all."


@pytest.mark.sample(58)
@each(ROUTES)
def test_a_route_is_served_with_the_suffix_json_if_its_row_says_so(app, row):
    path = re.sub(r"\{\w+\}", "1", row.url) + ".json"
    rules = {rule.rule: rule for rule in app.url_map.iter_rules()}
    twin = rules.get(row.url.replace("{", "<").replace("}", ">") + ".json")
    has_twin = any(each.json_twin for each in ROUTES if (each.method, each.url) == (row.method, row.url))
    assert (twin is not None and row.method in twin.methods) == has_twin, path


def test_a_name_belongs_to_one_method_of_one_url():
    names = {row.name: (row.method, row.url) for part in BUILTIN for row in part.routes}
    assert all(names[row.name] == (row.method, row.url) for part in BUILTIN for row in part.routes)
    assert len(set(names.values())) == len(names)


def test_the_rows_of_a_method_have_disjoint_versions():
    for one, other in combinations([row for part in BUILTIN for row in part.routes], 2):
        if (one.method, one.url) == (other.method, other.url):
            first, second = sorted((one, other), key=lambda row: row.since)
            assert first.until is not None
            assert first.until < second.since


def test_every_route_has_a_rule_of_its_part_and_every_rule_has_a_route():
    for part in BUILTIN:
        assert {row.rule for row in part.routes if not row.is_open} == set(part.rules)
        assert all(row.rule is None for row in part.routes if row.is_open)


def test_the_policy_document_names_every_route():
    def nameless(path: str) -> str:
        return re.sub(r"\{\w+\}", "{}", path)

    documented = {
        (rule.name, operation["method"], nameless(operation["path"]))
        for rule in list_rules()
        for operation in getattr(rule, "operations", ())
    }
    assert documented == {(row.rule.name, row.method, nameless(row.url)) for row in GUARDED}


def test_a_path_describes_each_of_its_parameters():
    for row in ROUTES:
        described = {each.name for each in row.parameters if each.place == "path"}
        assert set(re.findall(r"\{(\w+)\}", row.url)) == described


def test_every_version_up_to_the_newest_is_served():
    assert MAX_VERSION == (1, 1)
    assert {row.since for row in ROUTES if row.has_versions} == {MIN_VERSION, (1, 1)}
