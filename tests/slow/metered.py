# SPDX-License-Identifier: Apache-2.0
"""Managers of a site that measures its hosts, some by a Prometheus and the others by their adapters."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from blazar.clouds import energy, prometheus_hosts
from blazar.clouds.simulated import Durations, FileStorage, of_size
from blazar.cmd import config
from blazar.manager.power.energy import EnergyWork
from blazar.model.reports.periods import ReportSettings
from blazar.model.resources.regions import Regions
from blazar.store.sql.engine import make_engine
from blazarconformance.clock import ManualClock
from tests.manager.power.nights import MINUTE
from tests.manager.power.nights import work as switch
from tests.people import PeopledCloud
from tests.world import World

BEGIN = datetime(2030, 3, 30, 12, tzinfo=UTC)
METERED, ASKED = ("node-1", "node-2", "node-3"), ("node-4", "node-5", "node-6")
"""Hosts that Prometheus measures, and those whose adapters are asked."""
PUE = Fraction(5, 4)


def watts_of(host: str, at: int) -> int:
    """Return what Prometheus says that a host draws."""
    return 150 + 10 * int(host.removeprefix("node-")) + at // 300 * 7919 % 97


def grams_at(hour: int) -> Fraction:
    return Fraction(100 + hour // 3600 % 13 * 25)


class Prometheus(BaseHTTPRequestHandler):
    """Answers range queries of hosts that it measures."""

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        start, end, step = (int(sent[name][0]) for name in ("start", "end", "step"))
        found = [
            {
                "metric": {"node_name": host},
                "values": [[at, str(watts_of(host, at))] for at in range(start, end + 1, step)],
            }
            for host in re.findall(r"node-\d+", sent["query"][0])
            if host in METERED
        ]
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of it."""


@contextmanager
def measuring() -> Iterator[str]:
    """Run a Prometheus; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def write_configuration(folder: Path, url: str) -> None:
    first, count = int(BEGIN.timestamp()) - 48 * 3600, 120
    hours = [first + number * 3600 for number in range(count)]
    curve = [f"{datetime.fromtimestamp(hour, UTC):%Y-%m-%dT%H:%M:%SZ},{grams_at(hour)}" for hour in hours]
    (folder / "carbon.csv").write_text("\n".join(["start,value", *curve, ""]))
    lines = (
        *("[energy]", "enabled = true", "ask_adapters = true", f"prometheus_url = {url}"),
        'prometheus_query = sum by (node_name) (kepler_platform_watts{node_name=~"{host}"})',
        *(f"carbon_file = {folder / 'carbon.csv'}", f"pue = {float(PUE)}"),
        *("[power]", "mode = on", "spare = 0", "min_off = 1800", "cycles_per_day = 20"),
    )
    (folder / "blazar.conf").write_text("\n".join([*lines, ""]))


def a_world(url: str, folder: Path, now: datetime) -> World:
    """Return the world of a process."""
    conf = config.load(["--config-file", str(folder / "blazar.conf")], program="blazar-test")
    usual = config.manager_settings(conf)
    clock = ManualClock(now)
    cloud = PeopledCloud(
        FileStorage(folder / "cloud.json", of_size(6)),
        clock=clock,
        durations=Durations(shutdown=timedelta(seconds=90), wake=6 * MINUTE),
    )
    world = World(
        make_engine(url),
        hosts=6,
        register=False,
        clock=clock,
        cloud=cloud,
        settings=replace(usual, claim_ttl=timedelta(seconds=30), promises=0, reports=ReportSettings("Europe/Berlin")),
        energy=energy.read_terms(conf.energy),
    )
    meters = prometheus_hosts.meters(conf.energy, None, Regions())
    tellers = {"meters": meters, "carbon": energy.read_carbon(conf.energy, None)}
    world.manager.energy_work = EnergyWork(replace(world.manager.energy_work._runtime, **tellers))
    return world


def do(world: World, what: str) -> None:
    """Do what a manager is told."""
    match what:
        case "run":
            world.run()
            switch(world.manager)
        case "read":
            world.manager.energy_work.run_once()
        case "close":
            while world.manager.closing.run_once():
                pass
