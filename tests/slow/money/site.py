# SPDX-License-Identifier: Apache-2.0
"""Managers of a simulated month that are killed at any statement or call, and what the API says of leases meanwhile.

Time stands still while they work, so that what a killed one has left behind is known to the second.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from flask.testing import FlaskClient

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import FileStorage, of_size
from blazar.manager.common.settings import Settings
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.store.sql.engine import make_engine
from blazarconformance.clock import ManualClock
from tests.api.conftest import app_of, token
from tests.people import PeopledCloud
from tests.slow.money.bill import Bill
from tests.slow.money.lists import PriceList, instant_of
from tests.slow.money.pieces import FOR_EVER, Sight, Unit
from tests.slow.money.power import TERMS, Power, sheet_of
from tests.world import World

USE = UsePolicy(
    UseMode.ON, unused_after=timedelta(hours=40), idle_after=timedelta(hours=30), warn_before=timedelta(hours=29)
)
SETTINGS = Settings(claim_ttl=timedelta(seconds=30), promises=0, patience=timedelta(0), use_policies=UsePolicies(USE))
VERSION = {"OpenStack-API-Version": "reservation 1.1"}
FLAVORS = (Flavor("id-tiny", "tiny", 1, 64, 0, public=True), Flavor("id-small", "small", 2, 512, 1, public=True))
"""Of the servers of stacks."""
OPERATOR = {**token("olga", "operators", "admin"), **VERSION}
HOLDING = ("PENDING", "STARTING", "ACTIVE")
ON_THE_WAY = ("CREATING", "UPDATING", "DELETING", "TERMINATING")
"""States in which a lease is being changed: if the manager dies, that is undone, or done by another one later."""
Json = dict[str, Any]


class Request(NamedTuple):
    """A request of somebody to the API."""

    who: str
    project: str
    method: str
    path: str
    body: Json | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {**token(self.who, self.project, "member"), **VERSION}


def date_of(instant: int) -> str:
    """Return an instant as the API takes it."""
    return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%dT%H:%M:%SZ}"


def parts_of(lease: Json) -> Iterator[Json]:
    """Return the reservations of a lease, and those that stacks are made of."""
    for part in lease["reservations"]:
        yield part
        yield from part.get("children", ())


def units_of(part: Json) -> Iterator[Unit]:
    """Return what a reservation has, as its allocations say."""
    for one in part["allocations"]:
        if one["status"] != "released":
            name, used = one["resource"]["name"], one["used"] or {}
            servers = {"instance": one["count"], "vcpu": used.get("VCPU", 0)}
            counts = {
                "physical:host": {"host": 1},
                "virtual:floatingip": {"floatingip": 1},
                "network": {"network": 1},
                "device": {"device": 1},
                "generic": {"generic": one["count"]},
                "virtual:instance": servers,
                "flavor:instance": servers,
                "virtual:volume": {"volume": one["count"], "gigabyte": used.get("GIGABYTES", 0)},
            }
            for measure, count in counts[part["resource_type"]].items():
                yield from (Unit(measure, name, number) for number in range(1, count + 1))


def a_world(url: str, cloud_file: Path, hosts: int, now: datetime) -> World:
    """Return the world of a process."""
    clock = ManualClock(now)
    cloud = PeopledCloud(FileStorage(cloud_file, of_size(hosts)), clock=clock)
    more = {"clock": clock, "cloud": cloud, "settings": SETTINGS, "energy": TERMS}
    return World(make_engine(url), hosts=hosts, register=False, **more)


def work(world: World, orders: Connection) -> None:
    """Be a manager that does what it is told, and kills itself before one of its next statements or calls."""
    left, client = 0, app_of(world.manager).test_client()

    def die_in_time(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(world.engine, "before_cursor_execute", die_in_time)
    sa.event.listen(world.engine, "commit", die_in_time)
    world.faults.on_call = die_in_time
    while True:
        instant, what, left = orders.recv()
        world.clock.to(instant)
        answer: tuple[int, Json | None] = 0, None
        match what:
            case Request():
                found = client.open(what.path, method=what.method, json=what.body, headers=what.headers)
                answer = found.status_code, found.json if found.data else None
            case "run":
                world.run()
            case "poll":
                world.manager.monitor.run_once()
                world.manager.monitor.run_once()
                world.run()
            case "close":
                while world.manager.closing.run_once():
                    pass
        orders.send(answer)


class Site:
    """Managers, members who ask them, and an observer who notes what the API says of leases at each instant."""

    def __init__(self, url: str, folder: Path, *, hosts: int, now: datetime, accelerated: int = 0, seed: int) -> None:
        self._new_world = lambda: a_world(url, folder / "cloud.json", hosts, self.world.clock.now())
        self.world = a_world(url, folder / "cloud.json", hosts, now)
        skus = self._register(hosts, accelerated)
        self.dice, self.killed, self.refused, self.done = random.Random(seed), Counter[str](), Counter[str](), 0
        self.lists: list[PriceList] = []
        known = self.world.store.resources.catalog("host").resources
        self.power = Power({host.name: host.capacity.get("VCPU") for host in known}, self.now - self.now % 3600)
        self.power.record(self.world)
        self.bill = Bill(self.lists, skus, watts=self.power.watts)
        self.leases: dict[str, Json] = {}
        self.down, self.polled = set[str](), set[str]()
        self.deadly, self._tag = False, ""
        self.created, self.deleted = dict[str, int](), dict[str, int]()
        self._http: FlaskClient = app_of(self.world.manager).test_client()
        self._worker: tuple[multiprocessing.process.BaseProcess, Connection] | None = None

    def _register(self, hosts: int, accelerated: int) -> dict[tuple[str, str], str]:
        """Register what members can have, and return the skus by measure and resource."""
        skus = {}
        for number in range(1, hosts + 1):
            gpu = {"gpu": "A100"} if number <= accelerated else {}
            self.world.register(f"node-{number}", **gpu, **sheet_of(number))
            skus["host", f"node-{number}"] = "host-a100" if gpu else "host"
            skus |= {(measure, f"node-{number}"): measure for measure in ("instance", "vcpu")}
        for address in self.world.register_addresses(*range(10, 40)):
            skus["floatingip", address.name] = "address"
        self.world.register_pools(1, 2, gigabytes=100)
        for pool in (1, 2):
            skus |= {(measure, f"node@disks#{pool}"): measure for measure in ("volume", "gigabyte")}
        segments = self.world.register_segments(*range(100, 110))
        skus |= {("network", segment.name): "network" for segment in segments}
        for number in range(1, 7):
            skus["device", self.world.register_device(f"edge-{number}").name] = "device"
            # Of some there are units, of which a lease has a few.
            units = {"capacity": 4} if number > 4 else {}
            skus["generic", self.world.register_thing(f"thing-{number}", **units).name] = "thing"
        for flavor in FLAVORS:
            self.world.simulated.operators.offer_flavor(flavor)
        return skus

    @property
    def now(self) -> int:
        return int(self.world.clock.now().timestamp())

    def close(self) -> None:
        if self._worker:
            self._worker[0].kill()
            self._worker[0].join()

    def publish(self, document: Json) -> None:
        """Publish a price list; it holds from the next second on."""
        found = self._http.post("/v1/price-lists", json=document, headers=OPERATOR)
        assert found.status_code == 201, found.text
        assert found.json is not None
        self.lists.append(PriceList(found.json["price_list"]["version"], self.now, document))
        self.pass_to(self.now + 1)

    def get(self, path: str) -> Any:
        found = self._http.get(path, headers=OPERATOR)
        assert found.status_code == 200, found.text
        return found.json

    def order(self, what: Request | str) -> tuple[int, Json | None] | None:
        """Have a manager do something; None if it died of that, and others have tidied up."""
        left = self.dice.choice((self.dice.randint(1, 12), self.dice.randint(1, 80))) if self.deadly else 0
        if self._worker is None:
            # What the new process has of our connections must not end them.
            self.world.engine.dispose()
            context = multiprocessing.get_context("fork")
            ours, theirs = context.Pipe()
            process = context.Process(target=lambda: work(self._new_world(), theirs), daemon=True)
            process.start()
            theirs.close()
            self._worker = process, ours
        process, orders = self._worker
        orders.send((self.world.clock.now(), what, left))
        try:
            return orders.recv()  # type: ignore[no-any-return]
        except EOFError:
            process.join()
            assert process.exitcode == -signal.SIGKILL
            self._worker = None
            self.killed[what if isinstance(what, str) else what.method] += 1
            return None

    def ask(self, request: Request, *, origins: Sequence[str] = ()) -> Json | None:
        """Send a request; return the answer unless it was refused, or its manager was killed."""
        answer = self.order(request)
        self.look(origins)
        if answer is None:
            self.settle(origins)
            return None
        status, body = answer
        if status >= 400:
            assert status < 500, body
            self.refused[(body or {}).get("code", str(status))] += 1
            return None
        self.done += 1
        return body or {}

    def work(self, what: str) -> None:
        """Have managers do something until one of them has done it; time stands still unless one dies."""
        if what == "poll":
            self.polled = set(self.down)
        deadly = self.deadly
        while self.order(what) is None:
            self.look()
            self.settle()
            # Who takes over lives, as polls have so many steps that nobody would survive one.
            self.deadly = False
        self.deadly = deadly
        self.look()

    def settle(self, origins: Sequence[str] = ()) -> None:
        """Let the claims of a dead manager end, and others finish or undo what it had begun."""
        deadly, self.deadly = self.deadly, False
        self.world.clock.by(seconds=61)
        self.order("run")
        self.look(origins)
        self.deadly = deadly

    def pass_to(self, until: int) -> None:
        """Let time pass; what falls due is worked on when it does."""
        while (due := self.world.store.events.next_due()) is not None and due.timestamp() <= until:
            self.world.clock.to(due)
            self.work("run")
        self.world.clock.to(datetime.fromtimestamp(until, UTC))

    def look(self, origins: Sequence[str] = ()) -> None:
        """Note what leases are now; ``origins`` are those on which an operation was tried."""
        if (listed := self._list()) is None:
            return
        found: dict[str, Json] = {one["id"]: one for one in listed}
        for lease_id in self.leases.keys() - found.keys():
            found[lease_id] = self.get(f"/v1/leases/{lease_id}")["lease"]
        changed = [one for one in found.values() if self._is_new(one)]
        known = set(self.leases)
        for one in changed:
            self.leases[one["id"]] = one
            if one["status"] not in HOLDING:
                del self.leases[one["id"]]
        sights = [self.sight(one) for one in changed]
        operated = [sight for sight in sights if sight.lease in origins or self._is_part(sight, known, origins)]
        if operated:
            # What was operated on is seen whether or not it has changed by that.
            seen = {sight.lease for sight in operated}
            operated += [self.sight(found[name]) for name in origins if name in found and name not in seen]
            self.bill.look([replace(sight, origins=tuple(origins)) for sight in operated])
        if others := [sight for sight in sights if sight not in operated]:
            self.bill.look(others)

    def _is_part(self, sight: Sight, known: set[str], origins: Sequence[str]) -> bool:
        """Return whether a lease is new, and has what one of these had."""
        if sight.lease in known:
            return False
        units = {unit for _, unit in sight.places}
        return any(
            piece.unit in units and piece.start < sight.end and sight.start < piece.end
            for name in origins
            for piece in self.bill.accounts[name].pieces
            if piece.end > self.now
        )

    def _list(self) -> list[Json] | None:
        """Return the leases that have not ended; None if nothing has changed since the last time."""
        headers = {**OPERATOR, "If-None-Match": self._tag} if self._tag else OPERATOR
        found = self._http.get("/v1/leases?limit=1000", headers=headers)
        if found.status_code == 304:
            return None
        assert found.status_code == 200, found.text
        assert found.json is not None
        assert not any(link["rel"] == "next" for link in found.json["links"])
        self._tag = found.headers.get("ETag", "")
        return list(found.json["leases"])

    def _is_new(self, lease: Json) -> bool:
        if lease["status"] in ON_THE_WAY:
            if lease["status"] == "CREATING":
                # If another manager completes it, it is booked since now: the lead is counted from then.
                self.created.setdefault(lease["id"], self.now)
            if lease["status"] == "DELETING":
                # What counts for the share is when it was asked for; what is used, until it is returned.
                self.deleted.setdefault(lease["id"], self.now)
            return False
        known = self.leases.get(lease["id"])
        return known != lease and (known is not None or lease["status"] in HOLDING)

    def sight(self, lease: Json) -> Sight:
        """Return what an answer says of a lease, and note what was handed over, and what is missing."""
        holds: Mapping[str, frozenset[Unit]] = {}
        if lease["status"] in HOLDING:
            holds = {part["id"]: frozenset(units_of(part)) for part in parts_of(lease)}
            for part in parts_of(lease):
                if part["status"] == "active":
                    self.bill.handed_over.setdefault(part["id"], self.now)
        for part in parts_of(lease):
            missing = part["missing_resources"] and lease["status"] in HOLDING
            had = {unit.resource for unit in holds.get(part["id"], ())}
            self._note_outage(part["id"], had & self.polled if missing else set())
        start, end = instant_of(lease["start_date"]), instant_of(lease["end_date"])
        at = self.created.pop(lease["id"], self.now)
        return Sight(
            at,
            lease["id"],
            lease["project_id"],
            start,
            end,
            holds,
            is_unused=None if lease["usage"] is None else lease["usage"] in ("unused", "idle"),
            asked=self.deleted.get(lease["id"]),
        )

    def _note_outage(self, reservation: str, missing: Collection[str]) -> None:
        for host in missing:
            spans = self.bill.outages[reservation, host]
            if not spans or spans[-1][1] <= self.now:
                spans.append((self.now, FOR_EVER))
        for (found, host), spans in self.bill.outages.items():
            if found == reservation and host not in missing and spans and spans[-1][1] > self.now:
                spans[-1] = (spans[-1][0], self.now)
