# SPDX-License-Identifier: Apache-2.0
"""From 1.1 on the answer of a GET of any object can be sent back by what changes it: all routes, all kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blazar.api.http.routes import Root, Route
from blazar.api.parts import BUILTIN
from blazar.model.resources.resource import VOLUME
from tests.api.conftest import token
from tests.api.http.test_sending_back import world  # noqa: F401 (a fixture that the tests take)
from tests.api.leases.test_put_of_an_answer import SERIES, Caller, lease_of
from tests.world import World

OPERATOR = token("root", "demo", "admin")
ACTIONS = {"move_reservation", "move_resource_reservation", "write_rule"}
"""Routes that do something by PUT, and change no object that is shown there; a rule is written as a whole."""


def _with_get() -> dict[str, list[Route]]:
    """Return the routes that change an object of which there is a GET, from 1.1 on, by their path."""
    rows = [route for part in BUILTIN for route in part.routes if route.root is Root.V1]
    shown = {route.path for route in rows if route.method == "GET"}
    found: dict[str, list[Route]] = {}
    for route in rows:
        if route.name in ACTIONS:
            continue
        if route.method in ("PUT", "PATCH") and route.path in shown and (route.until is None or route.until > (1, 0)):
            found.setdefault(route.path, []).append(route)
    return found


def _maintenance(service: World) -> str:
    asked = {"name": "m", "start_date": "2030-04-02T08:00:00Z", "end_date": "+PT1H", "hosts": ["1"]}
    made = Caller(service, "1.1", OPERATOR).ask("POST", "/v1/maintenances", asked)
    assert made.status_code == 201, made.text
    return f"/v1/maintenances/{made.json['maintenance']['id']}"


def _series(service: World) -> str:
    made = Caller(service, "1.1", token()).ask("POST", "/v1/series", SERIES)
    return f"/v1/series/{made.json['series']['id']}"


def _resources(service: World) -> list[str]:
    """Return the path of a resource of each kind."""
    kinds = [each.kind for each in service.manager.resources.kinds().items]
    found = {kind: service.manager.resources.all(kind)[0] for kind in kinds}
    return [f"/v1/resources/{kind}/{resource.external_id}" for kind, resource in found.items()]


def _subscription(service: World) -> str:
    asked = {"url": "https://ci.example/", "events": ["lease.*"]}
    made = Caller(service, "1.1", token()).ask("POST", "/v1/subscriptions", asked)
    return f"/v1/subscriptions/{made.json['subscription']['id']}"


PATHS: dict[str, Callable[[World], list[str]]] = {
    "/leases/{lease_id}": lambda service: [lease_of(service, "physical:host", "2030-04-01T13:00:00Z")],
    "/series/{series_id}": lambda service: [_series(service)],
    "/subscriptions/{subscription_id}": lambda service: [_subscription(service)],
    "/subscriptions/mine": lambda service: ["/v1/subscriptions/mine"],
    "/resources/{kind}/{resource_id}": _resources,
    "/maintenances/{maintenance_id}": lambda service: [_maintenance(service)],
    "/power/hosts/{host_id}": lambda service: ["/v1/power/hosts/1"],
    "/power/pools/{pool_id}": lambda service: [
        f"/v1/power/pools/{service.manager.resources.all(VOLUME)[0].external_id}"
    ],
}
"""What makes objects of each path and returns their paths."""
WITHOUT_REVISION = {"/power/hosts/{host_id}", "/power/pools/{pool_id}"}
"""What changes by itself, so that nobody can insist on a tag."""


def test_every_object_that_can_be_shown_and_changed_is_sent_back_here():
    assert _with_get().keys() == PATHS.keys()


def _versions(routes: list[Route]) -> list[str]:
    served = lambda version: any(r.since <= version and (r.until is None or version <= r.until) for r in routes)  # noqa: E731
    return [f"{major}.{minor}" for major, minor in ((1, 1),) if served((major, minor))]


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", PATHS)
def test_the_answer_of_each_object_changes_nothing(world, path):  # noqa: F811
    routes = _with_get()[path]
    assert _versions(routes)
    for place in PATHS[path](world):
        for version in _versions(routes):
            caller = Caller(world, version, OPERATOR)
            before = caller.ask("GET", place)
            ((_, value),) = before.json.items()
            after = caller.ask(routes[0].method, place, value)
            assert after.status_code == 200, (place, version, after.text)
            assert (after.json, after.headers.get("ETag")) == (before.json, before.headers.get("ETag"))
            assert ("ETag" in after.headers) is (path not in WITHOUT_REVISION)
            if path in WITHOUT_REVISION:
                continue
            stale = {**caller.headers, "If-Match": '"12345"'}
            outdated = {**value, "created_at": "2029-01-01T00:00:00Z"}
            # A misspelt change needs no look at the object.
            for body, status in ((value, 412), (outdated, 412), ({"nme": "x"}, 400)):
                refused = caller.http.open(place, method=routes[0].method, json=body, headers=stale)
                assert refused.status_code == status, (place, version, refused.text)


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", PATHS)
def test_what_cannot_be_changed_of_each_object_is_named_all_at_once(world, path):  # noqa: F811
    routes = _with_get()[path]
    for place in PATHS[path](world):
        for version in _versions(routes):
            caller = Caller(world, version, OPERATOR)
            ((_, value),) = caller.ask("GET", place).json.items()
            fixed = [key for key in value if all(key not in route.body.schema["properties"] for route in routes)]
            changed = {key: "another" if value[key] != "another" else None for key in fixed}
            refused = caller.ask(routes[0].method, place, {**value, **changed})
            assert refused.status_code == 400, (place, version, refused.text)
            faults = {each["pointer"]: each["code"] for each in refused.json["errors"]}
            assert faults == {f"/{key}": "reservation.read_only_field" for key in fixed}, (place, version)
            after = caller.ask("GET", place).json
            assert [*after.values()] == [value]


DISABLED = {"reason": "fan", "until": "2030-05-01T00:00:00Z"}
SET = {"properties": {"rack": "r7", "gpu": "A100"}, "disabled": DISABLED, "authorized_projects": ["physics", "art"]}


@pytest.fixture
def places(world) -> list[str]:  # noqa: F811
    """Return the paths of a resource of each kind, whose properties, projects and state are set."""
    found = _resources(world)
    for place in found:
        assert Caller(world, "1.1", OPERATOR).ask("PUT", place, SET).status_code == 200
    return found


@pytest.mark.slow
def test_of_a_resource_that_is_sent_back_what_differs_is_changed(world, places):  # noqa: F811
    caller = Caller(world, "1.1", OPERATOR)
    for place in places:
        ((key, value),) = caller.ask("GET", place).json.items()
        assert caller.ask("PUT", place, value).json == {key: value}
        other = {**value["disabled"], "reason": "disk"}
        sent = {**value, "disabled": other, "properties": {"rack": "r8", "gpu": "A100", "new": "1"}}
        after = caller.ask("PUT", place, sent)
        assert after.status_code == 200, (place, after.text)
        assert (after.json[key]["disabled"], after.json[key]["authorized_projects"]) == (other, ["art", "physics"])
        assert after.json[key]["properties"] == {"rack": "r8", "gpu": "A100", "new": "1"}
        refused = caller.ask("PUT", place, {**sent, "disabled": {**other, "since": "2029-01-01T00:00:00Z"}})
        (error,) = refused.json["errors"]
        assert (error["code"], error["pointer"]) == ("reservation.read_only_field", "/disabled/since")


def test_an_attribute_is_changed_beside_those_that_stay(world):  # noqa: F811
    caller = Caller(world, "1.1", OPERATOR)
    (place,) = (each for each in _resources(world) if "/generic/" in each)
    value = caller.ask("GET", place).json["resource"]
    changed = {**value["attributes"], "hook_url": "https://lab.example/other"}
    after = caller.ask("PUT", place, {**value, "attributes": changed})
    assert (after.status_code, after.json["resource"]["attributes"]) == (200, changed)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "body",
    [
        {"properties": {"rack": "r7"}},
        {"properties": {"nothing": None}},
        {"disabled": DISABLED},
        {"authorized_projects": ["art", "physics"]},
        SET,
    ],
)
def test_the_same_value_alone_is_no_change_of_a_resource(world, places, body):  # noqa: F811
    caller = Caller(world, "1.1", OPERATOR)
    for place in places:
        before = caller.ask("GET", place)
        after = caller.ask("PUT", place, body)
        assert (after.status_code, after.json, after.headers["ETag"]) == (200, before.json, before.headers["ETag"])


def test_the_same_value_alone_is_no_change_of_a_window(world):  # noqa: F811
    caller, place = Caller(world, "1.1", OPERATOR), _maintenance(world)
    before = caller.ask("GET", place)
    for body in ({"name": "m"}, {"end_date": before.json["maintenance"]["end_date"]}):
        after = caller.ask("PATCH", place, body)
        assert (after.status_code, after.json, after.headers["ETag"]) == (200, before.json, before.headers["ETag"])
