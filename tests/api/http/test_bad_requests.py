# SPDX-License-Identifier: Apache-2.0
"""Nothing that a user can send makes the service fail, and every answer says how to mend it."""

from __future__ import annotations

import io
import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.clouds.ports.compute import Flavor
from blazar.model.base.moments import NOW
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import FLOATING_IP, HOST
from blazar.store.sql.tables import metadata
from tests.api import bad_requests
from tests.api.bad_requests import resources, since_1_1, v2
from tests.api.bad_requests.builders import Bad
from tests.api.conftest import client_of
from tests.tables import new_sqlite
from tests.world import World, a_host, addresses, flavored, instances

FLAVORS = (
    Flavor("small", "m1.small", 1, 512, 1, public=True),
    Flavor("foreign", "x1.foreign", 1, 512, 1),
    Flavor("huge", "x1.huge", 2**31 - 1, 512, 1, public=True),
    *(
        Flavor(name, f"x1.{name}", 1, 512, 1, extra_specs=specs, public=True)
        for name, specs in {
            "nothing": {f"resources:{resource}": "0" for resource in ("VCPU", "MEMORY_MB", "DISK_GB")},
            "grouped": {"resources1:VGPU": "1"},
            "undecided": {"trait:HW_X": "maybe"},
            "endless": {"resources:VCPU": "9" * 100_000},
            "negative": {"resources:VCPU": "-1"},
            "ours": {"aggregate_instance_extra_specs:reservation": "x"},
            "rare": {"trait:CUSTOM_RARE": "required"},
        }.items()
    ),
)

ALL = [*bad_requests.ALL, *v2.ALL, *since_1_1.ALL, *resources.ALL]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> tuple[World, Any, dict[str, str]]:
    engine = new_sqlite(tmp_path_factory.mktemp("bad") / "blazar.sqlite")
    world = World(engine, hosts=6, register=False)
    for number in (1, 2, 4, 5, 6):
        world.register(f"node-{number}")
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100"}))
    ended = world.lease(hours=1)
    world.run_to(world.clock.now() + timedelta(hours=1))
    active = world.lease(a_host(2, needs='["in", "$hypervisor_hostname", ["node-5", "node-6"]]'), hours=24 * 400)
    world.run()
    for host in world.hosts_of(active):
        world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    lease = world.lease(a_host(needs='["==", "$gpu", "A100"]'), start=timedelta(days=40))
    on_one = '["==", "$hypervisor_hostname", "node-2"]'
    used = world.lease(instances(3, vcpus=1, memory_mb=512, disk_gb=1, needs=on_one), hours=24 * 400)
    world.run()
    for _ in range(2):
        world.simulated.users.boot_reserved(used.reservations[0].id, project_id="physics")
    pending = world.lease(instances(), start=timedelta(days=40))
    for flavor in FLAVORS:
        world.simulated.operators.offer_flavor(flavor, projects=() if flavor.public else ["art"])
    of_flavor = world.lease(flavored(), start=timedelta(days=40))
    foreign = world.lease(start=timedelta(days=80), project="art")
    free, *_ = world.register_addresses(*range(10, 16))
    with world.simulated.change_state() as state:
        private = replace(state.networks["public"], id="private", name="private", external=False)
        state.networks["private"] = private
    world.simulated.operators.take_address("public", "203.0.113.66")
    holding = world.lease(addresses(3, required=[11, 12]), hours=24 * 400)
    world.run()
    for found in world.simulated.network.floating_ips():
        world.simulated.users.attach(found.id)
    planned = world.lease(addresses(2, required=[13]), start=timedelta(days=40))
    names = {
        "lease": lease.id,
        "active": active.id,
        "ended": ended.id,
        "foreign": foreign.id,
        "reservation": lease.reservations[0].id,
        "running": active.reservations[0].id,
        "host": "1",
        "instances": pending.id,
        "servers": pending.reservations[0].id,
        "used": used.id,
        "booted": used.reservations[0].id,
        "of_flavor": of_flavor.id,
        "flavored": of_flavor.reservations[0].id,
        "address": free.external_id,
        "taken": next(
            a.external_id
            for a in world.manager.resources.all(FLOATING_IP)
            if a.attributes["floating_ip_address"] == "203.0.113.11"
        ),
        "addresses": planned.id,
        "planned": planned.reservations[0].id,
        "holding": holding.id,
        "attached": holding.reservations[0].id,
    }
    assert NOW is not None
    return world, client_of(create_app(world.manager, identity=StandaloneIdentity())), names


def filled(value: Any, names: dict[str, str]) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    for name, known in names.items():
        text = text.replace("{" + name + "}", known)
    return text


class Contents:
    """All rows of a database, read again only after somebody has written."""

    def __init__(self, world: World) -> None:
        self._engine = world.engine
        # Its version of the data changes with each commit of another connection.
        self._watching = sqlite3.connect(str(world.engine.url.database))
        self._version: object = None
        self._rows: dict[str, list[str]] = {}

    def rows(self) -> dict[str, list[str]]:
        version = self._watching.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            with self._engine.connect() as connection:
                tables = metadata.sorted_tables
                self._rows = {t.name: sorted(map(repr, connection.execute(sa.select(t)).all())) for t in tables}
            self._version = version
        return self._rows

    def close(self) -> None:
        self._watching.close()


@pytest.fixture(scope="module")
def contents(place) -> Iterator[Contents]:
    world, _, _ = place
    found = Contents(world)
    yield found
    found.close()


@pytest.mark.slow
def test_a_write_is_seen_in_the_contents(contents, place):
    world, _, _ = place
    before = contents.rows()
    assert contents.rows() is before
    world.manager.resources.change(HOST, "2", ResourceChange({"rack": "r1"}))
    assert contents.rows() != before


def test_there_are_at_least_150_of_them():
    assert min(len(bad_requests.ALL), len(v2.ALL)) >= 150
    assert len({bad.name for bad in ALL}) == len(ALL)


@pytest.mark.share(3)
@pytest.mark.sample(253)
@pytest.mark.parametrize("bad", ALL, ids=lambda bad: bad.name)
def test_a_bad_request_is_refused_with_a_sentence_and_changes_nothing(place, contents: Contents, bad: Bad):
    world, http, names = place
    before = contents.rows(), world.simulated.compute.aggregates(), world.simulated.network.floating_ips()
    data = bad.raw if bad.raw is not None else (None if bad.body is None else filled(bad.body, names))
    headers = {"Content-Type": "application/json", **bad.headers} if data is not None else bad.headers
    answer = http.open(filled(bad.path, names), method=bad.method, data=data, headers=headers)

    assert answer.status_code == bad.status, answer.text
    body = answer.json
    if answer.status_code == 401:
        assert body["error"]["message"] == "The request you have made requires authentication."
    elif bad.path.startswith("/v2") and "error_message" not in body:
        assert bad.status in (404, 405)
        assert (body["code"], body["title"]) == (bad.status, HTTPStatus(bad.status).phrase)
        assert bad.says in body["description"]
    elif "errors" in body and "error" not in body:
        first, *_ = body["errors"]
        place = next((first[key] for key in ("pointer", "parameter", "header") if key in first), "")
        assert {fault["status"] for fault in body["errors"]} == {bad.status}
        assert f"{first['code']} {place}".startswith(f"reservation.{bad.says}"), answer.text
    elif "error" in body:
        assert not bad.path.startswith("/v2")
        assert body["error"] == bad.status
        assert bad.says in body["error_message"]
    else:
        assert (body["error_code"], body["error_name"]) == (bad.status, bad.status)
        assert bad.says in body["error_message"]
        assert len(body["error_message"]) < 600
    assert "Traceback" not in answer.text
    assert (contents.rows(), world.simulated.compute.aggregates(), world.simulated.network.floating_ips()) == before


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"reservations": [1] * 300_000}),
        json.dumps({"name": "x", "start_date": "now", "end_date": "now", "events": [{"a": 1}] * 90_000}),
        "{" + "".join(f'"{n}":1,' for n in range(80_000)) + '"79999":1}',
    ],
    ids=["reservations", "events", "keys"],
)
def test_a_body_with_thousands_of_errors_is_refused_fast(place, body):
    _, http, _ = place
    begun = time.process_time()
    answer = http.post("/v1/leases", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert time.process_time() - begun < 3  # seconds, where it once were minutes


def in_chunks(data: bytes) -> dict[str, Any]:
    """Return what a server hands over of a body that came without its length."""
    return {
        "input_stream": io.BytesIO(data),
        "headers": {"Content-Type": "application/json", "Transfer-Encoding": "chunked"},
        "environ_overrides": {"wsgi.input_terminated": True},
    }


def test_a_chunked_body_is_accepted_and_limited_in_size(place):
    _, http, _ = place
    assert (
        "Missing parameter start_date" in http.post("/v1/leases", **in_chunks(b'{"name": "x"}')).json["error_message"]
    )
    answer = http.post("/v1/leases", **in_chunks(b'{"name": "x"}' + b" " * 2_000_000))
    assert (answer.status_code, answer.json["error"]) == (413, 413)
