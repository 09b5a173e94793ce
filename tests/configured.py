# SPDX-License-Identifier: Apache-2.0
"""A whole service as a configuration file says: manager, API and simulated cloud in this process."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy.engine import Engine

from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.clouds.simulated import Faults, MemoryStorage
from blazar.cmd import assemble, config, standalone
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.options import HostSettings
from blazar.store.store import Store
from blazarconformance.clock import ManualClock
from tests.people import PeopledCloud
from tests.tables import new_sqlite
from tests.world import RecordingNotifier, World, host_request, of_hosts

NEWEST = as_text(MAX_VERSION)
ALICE = "alice:physics"


def configured_world(engine: Engine, folder: Path, *lines: str, **more: Any) -> World:
    """Return a service that works as a ``blazar.conf`` of these lines says, with its surroundings."""
    file = folder / "blazar.conf"
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    conf = config.load(["--config-file", str(file)], program="blazar-test")
    return World(engine, settings=config.manager_settings(conf), host_settings=HostSettings.configured(conf), **more)


class Configured:
    """What runs with a ``blazar.conf`` of these lines. The clock stands at noon of 1 April 2030."""

    def __init__(self, folder: Path, *lines: str, hosts: int = 2, freepool: str = "freepool") -> None:
        file = folder / "blazar.conf"
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")
        self.conf = config.load(["--config-file", str(file)], program="blazar-test")
        self.clock = ManualClock()
        state = of_hosts(*[{}] * hosts)
        next(each for each in state.aggregates.values() if each.name == "freepool").name = freepool
        self.simulated = PeopledCloud(MemoryStorage(state), clock=self.clock, faults=Faults(sleep=lambda _: None))
        self.notifier = RecordingNotifier()
        engine = new_sqlite(folder / "blazar.sqlite")
        self.store = Store(engine)
        self.manager = assemble.manager(
            self.conf,
            engine=engine,
            clouds={"": self.simulated.cloud},
            clock=self.clock,
            notifier=self.notifier,
        )
        self.app = standalone.application(self.conf, self.manager, folder)
        for number in range(1, hosts + 1):
            self.manager.resources.register(HOST, host_request(f"node-{number}"))

    @property
    def http(self) -> FlaskClient:
        return self.app.test_client()

    def ask(self, method: str, path: str, body: Any = None, *, who: str = ALICE, version: str = NEWEST) -> Any:
        headers = {"X-Auth-Token": who, "OpenStack-API-Version": f"reservation {version}"}
        return self.http.open(path, method=method, json=body, headers=headers)

    def book(self, *, start: str = "now", end: str = "2030-04-01T14:00:00Z", hosts: int = 1, **more: Any) -> Any:
        """Ask for a lease; ``version`` and ``who`` as in ``ask``."""
        how = {name: more.pop(name) for name in ("version", "who") if name in more}
        room = {"resource_type": "physical:host", "min": hosts, "max": hosts}
        if how.get("version") == "1.0":
            room |= {"hypervisor_properties": "", "resource_properties": ""}
            start, end = (text.replace("T", " ").removesuffix(":00Z") for text in (start, end))
        body = {"name": "lab", "start_date": start, "end_date": end, "reservations": [room], **more}
        return self.ask("POST", "/v1/leases", body, **how)

    def pass_time(self, **span: float) -> None:
        """Let time pass, working on events as they fall due."""
        until, events = self.clock.now() + timedelta(**span), self.store.events
        while (due := events.next_due()) is not None and due <= until:
            self.clock.to(max(due, self.clock.now()))
            self.manager.engine.run_due()
        self.clock.to(until)
        self.manager.engine.run_due()
