# SPDX-License-Identifier: Apache-2.0
"""The example of another package that brings a kind of resource, with port, adapters, options, type and routes."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import BUILTIN
from blazar.clouds.ports import Cloud
from blazar.enforcement import limits
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotEnoughResources, NotFound, UsageDenied
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.use import resource_hours
from tests.api.conftest import client_of, token
from tests.cmd.conftest import Program
from tests.world import NOON, World, kinds_of

PACKAGE = Path(__file__).parents[2] / "examples" / "instruments"
HOUR = timedelta(hours=1)
OURS = "physical.host.plugin, virtual.instance.plugin, flavor.instance.plugin, virtual.floatingip.plugin"


@pytest.fixture
def package(monkeypatch) -> None:
    """Make the package importable, not installed: nothing but what the tests make of it is found."""
    monkeypatch.syspath_prepend(str(PACKAGE))


@pytest.fixture
def service(package) -> Any:
    from blazar_instruments.simulated import SimulatedControl

    return SimulatedControl(cfg.ConfigOpts())


@pytest.fixture
def world(sqlite, service) -> World:
    from blazar_instruments.kind import INSTRUMENT, Instruments
    from blazar_instruments.type import LabInstrument

    world = World(
        sqlite,
        hosts=0,
        types=[lambda *_: LabInstrument(service)],
        kinds=lambda *site: {**kinds_of(*site), INSTRUMENT: Instruments(service)},
    )
    for name in ("microscope-1", "analyser-1"):
        world.manager.resources.register(INSTRUMENT, Registration({"name": name}))
    return world


def channels(number: object, needs: str = "") -> ReservationRequest:
    return ReservationRequest("lab:instrument", {"channels": number, "resource_properties": needs})


def test_leases_share_an_instrument_while_its_channels_last(world, service):
    first = world.lease(channels(3), start=HOUR)
    second = world.lease(channels(2), start=HOUR)
    assert [world.hosts_of(lease) for lease in (first, second)] == [{"microscope-1"}, {"analyser-1"}]
    with pytest.raises(NotEnoughResources, match="instrument"):
        world.lease(channels(2, needs='["=", "$model", "confocal"]'), start=HOUR)
    assert service.grants() == {}
    world.run_to(NOON + HOUR)
    assert service.grants() == {first.reservations[0].id: "m-1", second.reservations[0].id: "s-1"}
    active = world.now(first)
    assert (active.status, active.reservations[0].shown["instrument"]) == (LeaseStatus.ACTIVE, "microscope-1")
    world.run_to(NOON + 3 * HOUR)
    assert service.grants() == {}
    assert world.now(first).event(EventType.END).reason is None


def test_samples_come_from_another_reservation_of_the_lease(world, service):
    wanted = ReservationRequest("lab:instrument", {"channels": 1, "samples_from": {"reservation": 1}})
    lease = world.lease(wanted, channels(1), start=HOUR)
    analyser, microscope = lease.reservations
    assert analyser.parameters.values["samples_from"] == {"reservation": microscope.id}
    granted = []
    grant = service.grant
    service.grant = lambda reservation_id, **more: (granted.append(reservation_id), grant(reservation_id, **more))
    world.run_to(NOON + HOUR)
    assert granted == [microscope.id, analyser.id]
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Missing parameter channels"),
        ({"channels": 0}, "channels is 0; give a whole number of channels, at least 1"),
        ({"channels": 1, "resource_properties": '["=", "$vcpus", "1"]'}, r"asks for \$vcpus, which no instrument has"),
    ],
)
def test_a_bad_reservation_is_refused_with_a_sentence(world, given, words):
    with pytest.raises(InvalidInput, match=words):
        world.lease(ReservationRequest("lab:instrument", given))


def test_what_operators_register_is_what_the_laboratory_has(world):
    from blazar_instruments.kind import INSTRUMENT

    resources = world.manager.resources
    assert [each.name for each in resources.all(INSTRUMENT)] == ["microscope-1", "analyser-1"]
    with pytest.raises(Conflict, match="instrument microscope-1 is registered already"):
        resources.register(INSTRUMENT, Registration({"name": "microscope-1"}))
    with pytest.raises(NotFound, match="the laboratory has no instrument telescope-1"):
        resources.register(INSTRUMENT, Registration({"name": "telescope-1"}))
    with pytest.raises(NotFound, match="no instrument x-1 is registered; see the list of instruments for their ids"):
        resources.one(INSTRUMENT, "x-1")
    lease = world.lease(channels(1, needs='["=", "$model", "confocal"]'), start=HOUR)
    resources.change(INSTRUMENT, "m-1", ResourceChange({"room": "12"}))
    with pytest.raises(Conflict, match="the instrument is allocated to lease"):
        resources.unregister(INSTRUMENT, "m-1")
    (held,) = resources.allocations(INSTRUMENT, lease_id=lease.id)[:1]
    assert [allocation.lease_id for allocation in held.allocations] == [lease.id]
    world.manager.leases.delete(lease.id)
    resources.unregister(INSTRUMENT, "m-1")
    assert [each.name for each in resources.all(INSTRUMENT)] == ["analyser-1"]


def test_a_lease_on_an_instrument_that_fails_gets_another_one(world, service):
    lease = world.lease(channels(1), start=HOUR)
    service.break_down("m-1", "its laser is off")
    for _ in range(world.settings.failures_before_healing):
        world.manager.monitor.run_once()
    assert world.hosts_of(lease) == {"analyser-1"}
    service.break_down("m-1", None)
    world.run_to(NOON + HOUR)
    assert service.grants() == {lease.reservations[0].id: "s-1"}


def test_an_operator_refreshes_an_instrument_at_once(world, service):
    from blazar_instruments.kind import INSTRUMENT

    service.break_down("m-1", "its laser is off")
    assert world.manager.resources.refresh(INSTRUMENT, "m-1").failure == "its laser is off"
    service.break_down("m-1", None)
    assert world.manager.resources.refresh(INSTRUMENT, "m-1").failure is None


def test_leftovers_of_it_are_swept(world, service):
    lease = world.lease(channels(1), start=HOUR, hours=1)
    world.run_to(NOON + 3 * HOUR)
    service.grant(lease.reservations[0].id, instrument_id="m-1", project_id="physics", channels=1)
    world.manager.sweep.run_once()
    world.run()
    assert service.grants() == {}


def test_a_project_has_no_more_of_it_than_its_limit(sqlite, service, monkeypatch):
    from blazar_instruments.kind import INSTRUMENT, Instruments
    from blazar_instruments.type import LabInstrument

    monkeypatch.setattr(limits, "measures", lambda: (*resource_hours.MEASURES, INSTRUMENT))
    world = World(
        sqlite,
        hosts=0,
        types=[lambda *_: LabInstrument(service)],
        kinds=lambda *site: {**kinds_of(*site), INSTRUMENT: Instruments(service)},
        filters=[limits.MaxUnitsFilter(None, of={"instrument": 1})],
    )
    world.manager.resources.register(INSTRUMENT, Registration({"name": "analyser-1"}))
    world.lease(channels(1), start=HOUR)
    with pytest.raises(UsageDenied, match="the lease would have 1 instrument, and of the 1 that the project may have"):
        world.lease(channels(1), start=HOUR)


MODERN = {"OpenStack-API-Version": f"reservation {as_text(MAX_VERSION)}"}


@pytest.fixture
def client(world) -> Any:
    from blazar_instruments.api import PART

    parts = (*BUILTIN, PART)
    served, policy = Served(parts), Policy(parts=parts)
    return client_of(create_app(world.manager, identity=StandaloneIdentity(), policy=policy, served=served))


def test_without_routes_of_its_own_its_list_has_pages_and_filters_as_every_list(client):
    def asked(query: str) -> Any:
        return client.get(f"/v1/resources/instrument{query}", headers=MODERN).json

    assert client.get("/v1/resources/instrument").status_code == 404
    first = asked("?limit=1&with_count=true&fields=name")
    assert (first["resources"], first["count"]) == ([{"id": "s-1", "name": "analyser-1"}], 2)
    _, following = first["links"]
    assert following["rel"] == "next"
    second = asked("?" + following["href"].partition("?")[2])
    assert [each["name"] for each in second["resources"]] == ["microscope-1"]
    assert len(second["links"]) == 1
    assert [each["name"] for each in asked("?property=model:confocal")["resources"]] == ["microscope-1"]
    assert asked("?colour=red")["errors"][0]["code"] == "reservation.unknown_query_parameter"


def test_without_routes_of_its_own_it_is_described(client):
    kinds = client.get("/v1/resources", headers={**MODERN, **token()}).json["kinds"]
    (instrument,) = [each for each in kinds if each["name"] == "instrument"]
    assert (instrument["noun"], instrument["nouns"]) == ("instrument", "instruments")
    assert instrument["resource_types"] == ["lab:instrument"]
    assert instrument["registration"]["required"] == ["name"]
    assert instrument["registration"]["properties"].keys() == {"name", "properties", "disabled", "authorized_projects"}
    assert instrument["attributes"] == {"model": {"type": "string"}}
    parameters = instrument["parameters"]["lab:instrument"]["properties"]
    assert parameters.keys() == {"channels", "resource_properties", "samples_from"}
    assert not instrument["has_candidates"]
    none = client.get("/v1/resources/instrument/candidates", headers=MODERN)
    assert (none.status_code, none.json["candidates"]) == (200, [])


@pytest.mark.slow
def test_without_routes_of_its_own_it_is_registered_changed_shown_and_unregistered(client):
    url = "/v1/resources/instrument/m-1"
    assert client.delete(url, headers=MODERN).status_code == 204
    unknown = client.post("/v1/resources/instrument", json={"name": "telescope-1"}, headers=MODERN)
    assert (unknown.status_code, unknown.json["errors"][0]["code"]) == (400, "reservation.unknown_reference")
    refused = client.post("/v1/resources/instrument", json={"nome": "microscope-1"}, headers=MODERN)
    assert [fault.get("pointer") for fault in refused.json["errors"]] == ["/nome", "/name"]
    body = {"name": "microscope-1", "properties": {"room": "12"}, "authorized_projects": ["physics"]}
    made = client.post("/v1/resources/instrument", json=body, headers=MODERN)
    assert (made.status_code, made.headers["Location"]) == (201, f"http://localhost{url}")
    shown = client.get(url, headers=MODERN)
    assert (shown.json, shown.headers["ETag"]) == (made.json, made.headers["ETag"])
    resource = shown.json["resource"]
    assert (resource["kind"], resource["capacity"]) == ("instrument", {"CHANNEL": 4})
    assert (resource["attributes"], resource["properties"]) == ({"model": "confocal"}, {"room": "12"})
    disabled = {"disabled": {"reason": "lens", "until": "+P1D"}}
    changed = client.put(url, json=disabled, headers={**MODERN, "If-Match": made.headers["ETag"]})
    assert changed.json["resource"]["disabled"]["reason"] == "lens"
    stale = client.put(url, json={"disabled": None}, headers={**MODERN, "If-Match": made.headers["ETag"]})
    assert (stale.status_code, stale.json["errors"][0]["data"]["etag"]) == (412, changed.headers["ETag"])
    assert client.post(f"{url}/refresh", headers=MODERN).json["resource"]["id"] == "m-1"
    (room,) = client.get("/v1/resources/instrument/properties", headers=MODERN).json["properties"]
    assert room == {"name": "room", "private": False, "values": ["12"]}
    seen = client.get(url, headers={**MODERN, **token()}).json["resource"]
    assert seen.keys() == {"id", "kind", "name", "attributes", "capacity", "properties", "reservable", "links"}
    assert client.get(url, headers={**MODERN, **token("frida", "art")}).status_code == 404


def test_without_routes_of_its_own_its_allocations_are_listed(world, client):
    lease = world.lease(channels(2, '["==", "$model", "confocal"]'), start=HOUR)
    found = client.get("/v1/resources/instrument/allocations", headers=MODERN).json["allocations"]
    assert {each["resource_id"]: [one["lease_id"] for one in each["reservations"]] for each in found} == {
        "m-1": [lease.id],
        "s-1": [],
    }
    one = client.get(f"/v1/resources/instrument/m-1/allocations?lease_id={lease.id}", headers=MODERN).json
    assert one["allocation"]["reservations"][0]["id"] == lease.reservations[0].id
    refused = client.delete("/v1/resources/instrument/m-1", headers=MODERN)
    assert (refused.status_code, refused.json["errors"][0]["code"]) == (409, "reservation.resource_in_use")


class Laboratory(http.server.BaseHTTPRequestHandler):
    """A control service over HTTP: answers with what a test says, and keeps what it was asked."""

    answers: dict[str, tuple[int, object]] = {}
    asked: list[tuple[str, str, object]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, json.loads(body) if body else self.headers["X-Auth-Token"]))
        status, answer = self.answers.get(self.command, (200, None))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    do_GET = do_PUT = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def laboratory(package) -> Iterator[tuple[Any, type[Laboratory]]]:
    from blazar_instruments.http import HttpControl
    from blazar_instruments.options import OPTIONS, SECTION

    handler = type("Handler", (Laboratory,), {"answers": {}, "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        conf = cfg.ConfigOpts()
        conf.register_opts(OPTIONS, group=SECTION)
        conf([])
        conf.set_override("url", f"http://127.0.0.1:{server.server_port}", group=SECTION)
        conf.set_override("token", "secret", group=SECTION)
        yield HttpControl(conf), handler
        server.shutdown()


@pytest.mark.slow
def test_the_real_control_service_is_called_over_http(laboratory):
    control, handler = laboratory
    handler.answers["GET"] = (200, {"instruments": [{"id": "m", "name": "m-1", "model": "x", "channels": 4}]})
    assert [(each.name, each.channels, each.fault) for each in control.instruments()] == [("m-1", 4, None)]
    control.grant("r/1", instrument_id="m", project_id="p", channels=2)
    handler.answers["DELETE"] = (404, None)
    control.revoke("r/1")
    assert handler.asked == [
        ("GET", "/instruments", "secret"),
        ("PUT", "/grants/r%2F1", {"instrument": "m", "project": "p", "channels": 2}),
        ("DELETE", "/grants/r%2F1", "secret"),
    ]
    handler.answers["PUT"] = (503, None)
    with pytest.raises(CloudUnavailable, match="the control service answers 503"):
        control.grant("r", instrument_id="m", project_id="p", channels=2)


def test_without_its_port_it_tells_what_is_missing(package):
    from blazar_instruments.type import LabInstrument

    ports = dict.fromkeys(
        ("compute", "placement", "network", "segments", "projects", "volumes", "stacks", "booting", "evacuation")
    )
    with pytest.raises(InvalidInput, match="no package offers the port instruments by an entry point of blazar.clouds"):
        LabInstrument.configured(cfg.ConfigOpts(), Cloud(**ports))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Install the package as a user would, into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "instruments"
    # A build leaves files beside its sources.
    subprocess.run(["cp", "-r", str(PACKAGE), str(source)], check=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(source)]
    subprocess.run(command, check=True, timeout=300)
    return folder


class Process:
    """``make run`` with the package installed."""

    def __init__(self, site: Path, folder: Path, *lines: str) -> None:
        file = folder / "blazar.conf"
        file.write_text("\n".join(["[manager]", f"plugins = {OURS}, lab.instrument", *lines, ""]), encoding="utf-8")
        arguments = ("--port", "0", "--data", str(folder / "data"), "--config-file", str(file))
        path = os.pathsep.join([str(site), str(PACKAGE.parents[1])])
        self.program = Program("-m", "blazar.cmd.standalone", *arguments, HOME=str(folder), PYTHONPATH=path)

    def __enter__(self) -> Process:
        self._url = self.program.says("on http://").partition(" on ")[2].partition(";")[0]
        self.program.says("Ctrl-C stops")
        return self

    def __exit__(self, *_: object) -> None:
        assert self.program.stop() == 0

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path,
            data=data,
            method=method,
            headers={"Content-Type": "application/json", **(MODERN if "/resources" in path else {})},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


def waits_for(condition: Callable[[], bool]) -> None:
    """Wait until a process has done its work in the background."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_installed_it_is_driven_as_any_other_kind(site, tmp_path):
    with Process(site, tmp_path) as process:
        assert process.call("GET", "/v1/resources/instrument")[1]["resources"] == []
        status, made = process.call("POST", "/v1/resources/instrument", {"name": "microscope-1"})
        shown = {"id": "m-1", "name": "microscope-1", "capacity": {"CHANNEL": 4}, "reservable": True}
        assert (status, made["resource"] | shown) == (201, made["resource"])
        reservation = {"resource_type": "lab:instrument", "channels": 3}
        asked = {"name": "cells", "start_date": "now", "end_date": "2100-01-01 00:00", "reservations": [reservation]}
        status, made = process.call("POST", "/v1/leases", asked)
        lease = made["lease"]
        assert (status, lease["reservations"][0]["channels"]) == (201, 3)
        status, refused = process.call("POST", "/v1/leases", asked)
        assert (status, "instrument" in refused["error_message"]) == (409, True)
        url = f"/v1/leases/{lease['id']}"
        waits_for(lambda: process.call("GET", url)[1]["lease"]["status"] == "ACTIVE")
        assert process.call("GET", url)[1]["lease"]["reservations"][0]["instrument"] == "microscope-1"
        status, refused = process.call("DELETE", "/v1/resources/instrument/m-1")
        assert (status, f"allocated to lease {lease['id']}" in refused["errors"][0]["detail"]) == (409, True)
        assert process.call("DELETE", url)[0] in (200, 204)
        waits_for(lambda: process.call("GET", url)[0] == 404)
        assert process.call("DELETE", "/v1/resources/instrument/m-1") == (204, None)
        document = process.call("GET", "/openapi.json")[1]
        assert "InstrumentReservation" in document["components"]["schemas"]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_wrong_value_of_its_options_stops_the_start_with_its_name(site, tmp_path):
    process = Process(site, tmp_path, "[instruments]", "timeout = soon")
    assert process.program.ended() != 0
    assert "[instruments] timeout cannot be 'soon'" in process.program.said
