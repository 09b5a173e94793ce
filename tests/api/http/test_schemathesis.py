# SPDX-License-Identifier: Apache-2.0
"""A machine that reads our OpenAPI document finds nothing that makes the service fail.

Requests that are made up are mostly refused at the door. So each operation is also asked for what is there, by an
operator, with a body of which a part is as in the examples: such requests get through, or nearly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from blazar.api.http.context import EXTENSION
from blazar.api.http.openapi import Served
from blazar.api.leases.services import Waiters
from blazar.api.leases.v1_0.routes import new_caches
from blazar.api.parts import all_parts
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.series.recurrence import LocalEnd
from tests.api.conftest import app_of, with_leases
from tests.manager.health.steps import ON_NODE_1
from tests.prices import a_document
from tests.rules import a_rule
from tests.tables import new_sqlite
from tests.world import NOON, ManualClock, World, a_host, a_series, device_request, segment_request
from tests.world import host_request as host

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("BLAZAR_FUZZ", "5"))
VERSIONS = ("1.0", "1.1")
"""The newest has all that those between have."""
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
]
REFUSED = {
    "POST /v1/subscriptions",
    "GET /unsubscribe/{subscription_id}/{link_secret}",
    "POST /unsubscribe/{subscription_id}/{link_secret}",
    "GET /v1/problems/{problem_id}",
    "POST /v1/problems/{problem_id}/{action}",
    "POST /v1/charges",
    "GET /v1/statements/{month}",
    "PUT /v1/os-hosts/{host_id}/allocation",
    "PUT /v1/devices/{device_id}/allocation",
    "PUT /v1/resources/{kind}/{resource_id}/allocations",
    "POST /v1/leases/{lease_id}/keep",
    "POST /v1/leases/{lease_id}/confirm",
    "PUT /v1/leases/{lease_id}/hold",
    "DELETE /v1/leases/{lease_id}/hold",
    "POST /v1/maintenances/{maintenance_id}/end",
    "PUT /v1/power/hosts/{host_id}",
    "POST /v1/power/hosts/{host_id}/wake",
    "PUT /v1/power/pools/{pool_id}",
    "POST /v1/power/pools/{pool_id}/wake",
    "POST /v1/leases/{lease_id}/reservations/{reservation_id}/swap",
    "POST /v1/leases/{lease_id}/split",
    "POST /v1/leases/{lease_id}/merge",
    "DELETE /v1/leases/{lease_id}/transfer",
    "GET /v1/transfers/{lease_id}",
    "POST /v1/transfers/{lease_id}/accept",
    "POST /v1/transfers/{lease_id}/decline",
}
"""The reservation of their examples is not on the resource that is there; the use of leases is not looked at; the
maintenance has not begun; the reservation has one host, and needs that one; a
lease is not merged with itself, and is offered to nobody. Nothing is a problem there, nothing is charged
yet, no mail can be sent, and the subscription is none by mail. No host is switched there, least of all by a BMC.
"""
ON_THINGS = {"PUT /v1/resources/{kind}/{resource_id}"}
"""The capacity and the hook of a host cannot be changed, those of a generic resource can."""
NOT_FOUND = {"GET /openapi.json"}
"""The document is read from there; it is not asked for once more."""


class Fuzzed:
    """An application that serves another world for each operation, so that each finds what others have deleted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._worlds = 0
        self.app: Flask = app_of(self._world().manager)
        self.schema = schemathesis.openapi.from_wsgi("/openapi.json", self.app)
        self.document = json.loads(Served(all_parts()).document(""))
        self._replaced: dict[str, str] = {}

    def _world(self) -> World:
        self._worlds += 1
        engine = new_sqlite(self._folder / f"{self._worlds}.sqlite")
        return World(engine, hosts=4, clock=ManualClock(NOON - timedelta(hours=5)), register=False)

    def start_over(self) -> Mapping[str, str]:
        """Serve a new world; return what may stand in paths, and remember what the examples mean by their ids."""
        world = self._world()
        for name in ("node-1", "node-2", "node-3"):
            world.manager.resources.register("host", host(name=name, capabilities={"gpu": "A100", "rack": "r7"}))
        (address, *_) = world.register_addresses(11)
        more = {"usage_type": "storage", "rack": "r7"}
        (pool,) = world.register_pools(1)
        segment = world.manager.resources.register("network", segment_request(102, capabilities=more))
        device = world.manager.resources.register("device", device_request("board-1", capabilities=more))
        # Only that host: another one must be free to be removed.
        weekly = a_series(
            a_host(needs=ON_NODE_1),
            project="demo",
            rule="FREQ=WEEKLY;BYDAY=MO,WE;COUNT=12",
            start=datetime(2030, 5, 6, 9),
            length=LocalEnd(time(12, 30)),
        )
        series = world.manager.series.create(weekly)
        begin = datetime(2030, 5, 1, tzinfo=UTC)
        disks = MaintenanceRequest("new disks", begin, begin + timedelta(days=1), hosts=("2",))
        maintenance = world.manager.maintenances.create(disks).maintenance
        lease = world.lease(a_host(needs=ON_NODE_1), start=timedelta(hours=1), hours=4, project="demo")

        # A request that waits for an immediate lease lets time pass in the world, and the manager work.
        def pass_time(seconds: float) -> None:
            world.run_to(world.clock.now() + timedelta(seconds=seconds))

        waiters = Waiters(sleep=pass_time, clock=world.clock.elapsed)
        services = replace(self.app.extensions[EXTENSION], manager=world.manager)
        self.app.extensions = {EXTENSION: with_leases(services, rendered=new_caches(), waiters=waiters)}
        asked = {"kind": "project", "name": "mine"}
        version = {"OpenStack-API-Version": "reservation 1.1"}
        feed = self.app.test_client().post("/v1/feeds", json=asked, headers=version).json["feed"]
        told = {"url": "https://ci.example/x", "events": ["lease.*"]}
        subscription = self.app.test_client().post("/v1/subscriptions", json=told, headers=version).json["subscription"]
        prices = self.app.test_client().post("/v1/price-lists", json=a_document(), headers=version).json["price_list"]
        asleep = {**a_rule(), "active": False}
        self.app.test_client().put("/v1/rules/rack", json=asleep, headers=version)
        self._replaced = {
            "1b2c3d4e-0a1b-4c2d-8e3f-405162738495": lease.reservations[0].id,
            "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d": lease.id,
            "cn12.example": "node-4",
            "88889999-aaaa-4bbb-8ccc-ddddeeeeffff": "public",
            '["12", "13"]': '["2", "3"]',
        }
        thing = world.register_thing(capabilities=more)
        self._things = {"kind": thing.kind, "resource_id": thing.external_id}
        names = {"lease_id": lease.id, "floating_ip_id": address.external_id, "host_id": "3", "name": "rack"}
        names |= {"kind": "host", "resource_id": "3", "network_id": segment.external_id}
        names |= {"device_id": device.external_id, "pool_id": pool.external_id, "series_id": series.series.id}
        names |= {"subscription_id": subscription["id"], "link_secret": "s" * 43}
        names |= {"problem_id": "event:0", "action": "retry", "version": str(prices["version"]), "month": "2030-04"}
        names |= {"maintenance_id": maintenance.id, "reservation_id": lease.reservations[0].id}
        return {**names, "feed_id": feed["id"], "secret": feed["url"].rpartition("/")[2].removesuffix(".ics")}

    def paths(self, label: str, names: Mapping[str, str]) -> Mapping[str, str]:
        """Return what stands in the path of an operation: hosts, or what has all that its examples change."""
        return {**names, **self._things} if label in ON_THINGS else names

    def examples(self, label: str, version: str) -> list[Any]:
        """Return the bodies that the document gives as examples of an operation in a version."""
        method, path = label.split(" ")
        described = self.document["paths"][path][method.lower()]
        if "requestBody" not in described:
            return []
        schema = described["requestBody"]["content"]["application/json"]["schema"]
        # The earlier version comes first.
        chosen = schema.get("anyOf", [schema])[0 if version == VERSIONS[0] else -1]
        text = json.dumps(self.document["components"]["schemas"][chosen["$ref"].rpartition("/")[2]]["examples"])
        for given_, meant in self._replaced.items():
            text = text.replace(given_, meant)
        found: list[Any] = json.loads(text)
        return found


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return Fuzzed(tmp_path_factory.mktemp("fuzzed"))


def asked(case: Case, version: str) -> int:
    """Send a request in a version, check the answer and return its status."""
    case.headers["OpenStack-API-Version"] = f"reservation {version}"
    # This transport does not unpack what is compressed.
    case.headers["Accept-Encoding"] = "identity"
    answer = case.call()
    assert answer.status_code < 500
    case.validate_response(answer, checks=CHECKS)
    return int(answer.status_code)


def operations(fuzzed: Fuzzed) -> Iterator[Any]:
    return (found.ok() for found in fuzzed.schema.get_all_operations())


def labels(version: str) -> set[str]:
    """Return the operations that there are in a version."""
    number = tuple(int(part) for part in version.split("."))
    return {f"{row.method} {row.url}" for row in Served(all_parts()).routes if row.serves(number)}


def as_is_there(case: Case, names: Mapping[str, str]) -> None:
    """Let an operator ask for what is there."""
    case.headers.pop("X-Auth-Token", None)
    case.path_parameters = {name: names[name] for name in case.path_parameters or ()}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_operation_does_what_its_examples_ask(fuzzed, version):
    served, found = labels(version) - NOT_FOUND, set()
    for operation in operations(fuzzed):
        if operation.label not in served:
            continue
        found.add(operation.label)
        names = fuzzed.paths(operation.label, fuzzed.start_over())
        paths = {each.name: names[each.name] for each in operation.path_parameters}
        for body in fuzzed.examples(operation.label, version) or [None]:
            more = {} if body is None else {"body": body, "media_type": "application/json"}
            status = asked(operation.Case(path_parameters=paths, headers={}, **more), version)
            assert status < 400 or operation.label in REFUSED, (operation.label, version, more)
    assert found == served


@pytest.mark.parametrize(
    ("mode", "version"),
    [
        pytest.param(mode, version, id=f"{mode.value}-{version}", marks=[pytest.mark.nightly] * by_night)
        for mode, version, by_night in (
            (GenerationMode.POSITIVE, VERSIONS[0], True),
            (GenerationMode.POSITIVE, VERSIONS[-1], False),
            (GenerationMode.NEGATIVE, VERSIONS[0], False),
            (GenerationMode.NEGATIVE, VERSIONS[-1], True),
        )
    ],
)
def test_no_request_makes_the_service_fail(fuzzed, mode, version):
    tried, there = set(), (labels(version) | labels(VERSIONS[-1])) - NOT_FOUND
    for operation in operations(fuzzed):
        if operation.label not in there:
            # The document says what an earlier version answers; this one does not have it.
            continue
        if mode is GenerationMode.NEGATIVE and not operation.body:
            # Headers and parameters are texts: without a body there is nothing that could be wrong.
            continue
        tried.add(operation.label)
        names = fuzzed.start_over()
        examples = fuzzed.examples(operation.label, version)

        @settings(max_examples=CASES, deadline=None)
        @given(
            case=operation.as_strategy(generation_mode=mode),
            names=st.sampled_from([names, None]),
            example=st.sampled_from(examples or [{}]),
            kept=st.sets(st.integers(0, 7)),
        )
        def check(case, names, example, kept):
            if names is not None:
                as_is_there(case, names)
                if mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
                    part = {key: value for number, (key, value) in enumerate(example.items()) if number in kept}
                    case.body = {**case.body, **part}
            asked(case, version)

        check()
    assert tried == {each for each in there if mode is GenerationMode.POSITIVE or fuzzed.examples(each, version)}
