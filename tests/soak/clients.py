# SPDX-License-Identifier: Apache-2.0
"""Users: they book, change, use and give back reservations of every type, over HTTP and in the cloud."""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.clouds.simulated.server_state import ServerState
from blazar.model.base.errors import BlazarError, Conflict, NotFound
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.resources.floating_ips.registration import reservation_tag
from blazar.store.store import Store
from tests.people import PeopledCloud
from tests.soak.plan import OFFERED
from tests.soak.watch import Watch
from tests.world import (
    a_host,
    a_network,
    addresses,
    devices,
    flavored,
    instances,
    servers,
    stacks,
    things,
    units,
    volumes,
)

PROJECTS = ("physics", "chemistry", "biology", "history")
MOST = 6
"""Leases of a project at a time that its users care for; beyond, they rather delete."""

OPERATOR = "admin:demo:admin,member,reader"
NEWEST = f"reservation {as_text(MAX_VERSION)}"

TIES: Mapping[str, tuple[str, Callable[[int], object]]] = {
    "virtual:volume": ("volumes", lambda index: [{"reservation": index}]),
    "virtual:floatingip": ("floating_ip", lambda index: {"reservation": index}),
}
"""What servers of a lease use of what it reserves beside them: the parameter, and how it names the reservation.

Networks are not among them: these requests are of versions that know no subnets, without which no server boots.
"""

VERBS = ("swap", "split", "merge", "end", "keep", "confirm")
"""The last parts of paths that say what is done."""

PATIENCE = 90
"""Seconds that a user waits for an answer."""


class Api:
    """The API as one user sees it. An answer that should never be is a finding."""

    def __init__(self, url: str, token: str, watch: Watch) -> None:
        self._url = url
        self._watch = watch
        self._session = requests.Session()
        self._session.headers["X-Auth-Token"] = token
        self.answers: Counter[str] = Counter()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        version: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Make a request, of a microversion if given; return the status and what came."""
        if path.startswith("/v1/resources"):
            version = NEWEST
        try:
            sent = {**({"OpenStack-API-Version": version} if version else {}), **(headers or {})}
            answer = self._session.request(method, self._url + path, json=body, headers=sent, timeout=PATIENCE)
        except requests.RequestException as error:
            self._watch.found(f"{method} {path}: no answer: {error}")
            return 0, None
        named = path.partition("?")[0].split("/")
        verb = f" {named[-1]}" if named[-1] in VERBS else ""
        self.answers[f"{method} {named[2]}{verb} {answer.status_code}"] += 1
        if answer.status_code not in (200, 201, 202, 204, 400, 404, 409, 503):
            self._watch.found(f"{method} {path} {body}: {answer.status_code} {answer.text}")
        return answer.status_code, answer.json() if answer.content and answer.status_code < 300 else None


class User(threading.Thread):
    """One of the users of a project."""

    def __init__(self, number: int, url: str, cloud: PeopledCloud, store: Store, watch: Watch, seed: int) -> None:
        super().__init__(name=f"user-{number}", daemon=True)
        self.project = PROJECTS[number % len(PROJECTS)]
        self.api = Api(url, f"user-{number}:{self.project}", watch)
        self.operator = Api(url, OPERATOR, watch)
        self.stopping = threading.Event()
        self._cloud = cloud
        self._store = store
        self._watch = watch
        self._dice = random.Random(f"{seed}:user:{number}")
        self._names = (f"lease {number}.{n}" for n in range(10**9))

    def run(self) -> None:
        """Wish one thing after the other."""
        while not self.stopping.wait(self._dice.uniform(0.1, 0.9)):
            try:
                self._one_wish()
            except BlazarError:
                # The database or the cloud of the user's own way; the service is asked over HTTP.
                continue
            except Exception as error:
                self._watch.found(f"a user was surprised: {error!r}")

    def _one_wish(self) -> None:
        if self._dice.random() < 0.04:
            self._move()
            return
        status, leases = self.api.ask("GET", "/v2/leases")
        if status != 200:
            return
        live = [lease for lease in leases if lease["status"] != "TERMINATED"]
        active = [lease for lease in live if lease["status"] == "ACTIVE"]
        pending = [lease for lease in live if lease["status"] == "PENDING"]
        for lease in leases:
            if lease not in live and self._dice.random() < 0.2:
                self.api.ask("DELETE", f"/v2/leases/{lease['id']}")
        dice = self._dice.random()
        if len(live) > MOST or (dice < 0.10 and live):
            self._give_back(self._dice.choice(live))
        elif dice < 0.36 or not live:
            self._create()
        elif dice < 0.58 and active:
            self._use(self._dice.choice(active)["id"])
        elif dice < 0.82 and active:
            self._change(self._dice.choice(active))
        elif pending:
            self._change(self._dice.choice(pending))
        elif active:
            self._now(self._dice.choice(active), "end_date")

    # Over HTTP

    def _room(self) -> dict[str, Any]:
        dice = self._dice
        affinity = dice.choice((None, True, False))
        saved = dice.choice(("snapshot", "none", "default"))
        asked = dice.choice(
            (
                lambda: a_host(1, dice.randint(1, 2), before_end=dice.choice(("snapshot", "migration", "default"))),
                lambda: instances(dice.randint(1, 3), vcpus=dice.randint(1, 6), affinity=affinity, before_end=saved),
                lambda: flavored(dice.randint(1, 3), dice.choice(OFFERED).id, affinity=affinity, before_end=saved),
                lambda: addresses(dice.randint(1, 3)),
                lambda: a_network(network_description="work"),
                lambda: units(dice.randint(1, 3)) if dice.random() < 0.5 else things(1, dice.randint(1, 2)),
                lambda: devices(1, dice.randint(1, 2)),
                lambda: volumes(dice.randint(1, 2), size=dice.choice((5, 10)), mode=dice.choice(("volume", "quota"))),
                lambda: servers(dice.randint(1, 2), vcpus=dice.randint(1, 4), affinity=affinity, before_end=saved),
                lambda: stacks(
                    *(dice.choice(OFFERED).id for _ in range(dice.randint(1, 2))),
                    disks=dice.randint(0, 1),
                    outside=dice.randint(0, 1),
                    before_end=saved,
                ),
            )
        )()
        return {"resource_type": asked.resource_type, **asked.parameters}

    def _create(self) -> None:
        rooms = [self._room() for _ in range(self._dice.choice((1, 1, 1, 2)))]
        _tie(rooms)
        now = datetime.now(UTC).replace(microsecond=0)
        end = now + timedelta(seconds=self._dice.choice((self._dice.randint(22, 60), 3600)))
        body: dict[str, Any] = {"name": next(self._names), "reservations": rooms}
        if self._dice.random() < 0.6:
            # A request that says now is of version 1, in minutes.
            version, form = "v1", "%Y-%m-%d %H:%M"
            body |= {"start_date": "now", "end_date": f"{end + timedelta(minutes=1):{form}}"}
        else:
            version, form = "v2", "%Y-%m-%dT%H:%M:%SZ"
            start = now + timedelta(seconds=self._dice.randint(2, 20))
            before_end = end - timedelta(seconds=self._dice.randint(1, 8))
            dates = {"start_date": start, "end_date": end, "before_end_date": max(before_end, start)}
            body |= {key: f"{value:{form}}" for key, value in dates.items()}
            for room in rooms:
                # Networks leave it to the operator.
                if "before_end" in room:
                    room["before_end_action"] = room.pop("before_end")
        status, _ = self.api.ask("POST", f"/{version}/leases", body)
        if status == 201:
            self.api.answers.update(f"made {room['resource_type']}" for room in rooms)
        if status != 503:
            return
        # Told that nobody answered: look, and ask again if there is none.
        status, leases = self.api.ask("GET", "/v2/leases")
        if status == 200 and not any(lease["name"] == body["name"] for lease in leases):
            self.api.ask("POST", f"/{version}/leases", body)

    def _change(self, lease: dict[str, Any]) -> None:
        dice = self._dice
        match dice.choice(("size", "size", "size", "longer", "now", "name", "before")):
            case "size":
                self._put(lease, {"reservations": [self._resized(r, lease) for r in lease["reservations"]]})
            case "longer":
                later = datetime.now(UTC) + timedelta(seconds=dice.randint(30, 120))
                self._put(lease, {"end_date": _second(later)})
            case "now":
                self._now(lease, "end_date" if lease["status"] == "ACTIVE" else "start_date")
            case "name":
                self._put(lease, {"name": lease["name"]})
            case "before":
                soon = datetime.now(UTC) + timedelta(seconds=dice.randint(1, 5))
                self._put(lease, {"before_end_date": _second(soon)})

    def _resized(self, reservation: dict[str, Any], lease: dict[str, Any]) -> dict[str, Any]:
        dice = self._dice
        changed: dict[str, Any] = {"id": reservation["id"]}
        match reservation["resource_type"]:
            case "physical:host":
                least = dice.randint(1, 2)
                changed |= {"min": least, "max": dice.randint(least, 3)}
            case "virtual:floatingip":
                changed |= {"amount": dice.randint(1, 4)}
            case "network":
                changed |= {"before_end": dice.choice(("none", "default"))}
            case "virtual:stack":
                # Only its dates change: this is refused.
                changed |= {"before_end": dice.choice(("none", "snapshot"))}
            case "virtual:volume" if dice.random() < 0.5:
                changed |= {"size": dice.choice((5, 10))}
            case "device" | "generic" if "amount" not in reservation or dice.random() < 0.1:
                changed |= {"max": dice.randint(1, 3)}
            case "virtual:instance" if lease["status"] == "PENDING" and dice.random() < 0.5:
                changed |= {"vcpus": dice.randint(1, 6)}
            case "flavor:instance" if lease["status"] == "PENDING" and dice.random() < 0.5:
                changed |= {"flavor_id": dice.choice(OFFERED).id}
            case _:
                changed |= {"amount": dice.randint(1, 5)}
        return changed

    def _put(self, lease: dict[str, Any], body: dict[str, Any]) -> None:
        self.api.ask("PUT", f"/v2/leases/{lease['id']}", body)

    def _now(self, lease: dict[str, Any], field: str) -> None:
        self.api.ask("PUT", f"/v1/leases/{lease['id']}", {field: "now"})

    def _give_back(self, lease: dict[str, Any]) -> None:
        self.api.ask("DELETE", f"/v2/leases/{lease['id']}")

    def _move(self) -> None:
        """Have an operator give a reservation another host."""
        status, answer = self.operator.ask("GET", "/v1/os-hosts/allocations")
        found = [a for a in answer["allocations"] if a["reservations"]] if status == 200 else []
        if found:
            host = self._dice.choice(found)
            reservation_id = self._dice.choice(host["reservations"])["id"]
            path = f"/v1/os-hosts/{host['resource_id']}/allocation"
            self.operator.ask("PUT", path, {"reservation_id": reservation_id})

    # In the cloud

    def _use(self, lease_id: str) -> None:
        before = self._settled(lease_id)
        if before is None:
            return
        for reservation in before.reservations:
            try:
                servers = self._booted(reservation)
            except NotFound as error:
                # The flavor, or access to it: that may be only if the lease has changed meanwhile.
                after = self._settled(lease_id)
                if after is not None and after.revision == before.revision:
                    self._watch.found(f"lease {lease_id} is ACTIVE and its users cannot boot servers: {error}")
                return
            after = self._settled(lease_id)
            if after is not None and _updates(after) == _updates(before):
                self._watch.expect(reservation.id, servers)

    def _settled(self, lease_id: str) -> Lease | None:
        with suppress(NotFound):
            lease = self._store.leases.one(lease_id)
            return lease if lease.status is LeaseStatus.ACTIVE else None
        return None

    def _booted(self, reservation: Reservation) -> list[str]:
        match reservation.resource_type:
            case "physical:host":
                return self._booted_on_a_host(reservation.id)
            case "virtual:floatingip":
                with suppress(NotFound):
                    for found in self._cloud.network.floating_ips(tag=reservation_tag(reservation.id))[:1]:
                        self._cloud.users.attach(found.id)
                return []
            case "network":
                with suppress(NotFound):
                    for network in self._cloud.network_users.calls.segment_networks(
                        tag=reservation_tag(reservation.id)
                    ):
                        self._cloud.network_users.port(network.id, "compute:nova")
                        self._cloud.network_users.router(network.id)
                return []
            case "virtual:volume":
                for volume_id in self._volumes(reservation.id)[:1]:
                    self._cloud.volume_users.attach(volume_id, "a server of theirs")
                return []
            case "device" | "generic" | "virtual:server" | "virtual:stack":
                return []
            case _:
                try:
                    return [self._cloud.users.boot_reserved(reservation.id, project_id=self.project).id]
                except Conflict:
                    return []

    def _volumes(self, reservation_id: str) -> list[str]:
        with self._cloud.inspect() as state:
            return [
                v.id
                for v in state.block.volumes.values()
                if v.metadata.get("blazar:reservation") == reservation_id and v.gone_at is None and not v.servers
            ]

    def _booted_on_a_host(self, reservation_id: str) -> list[str]:
        """Boot where the scheduler filter lets this project in, in one step with the look at the aggregates."""
        with self._cloud.change_state() as state:
            pool = next((a for a in state.aggregates.values() if a.name == reservation_id), None)
            if pool is None or not pool.hosts or pool.metadata.get("blazar:owner") != self.project:
                return []
            host = self._dice.choice(pool.hosts)
            server = ServerState(str(uuid.uuid4()), "work", self.project, "u", host, hint=reservation_id)
            state.servers[server.id] = server
            return [server.id]


def _tie(rooms: list[dict[str, Any]]) -> None:
    """Have servers use what their lease reserves beside them."""
    for index, room in enumerate(rooms):
        if room["resource_type"] == "virtual:volume" and (room["mode"] != "volume" or room["amount"] != 1):
            continue
        field, value = TIES.get(room["resource_type"], ("", lambda index: None))
        for other in rooms:
            if field and other["resource_type"] == "virtual:server" and field not in other:
                other |= {"amount": 1, field: value(index)}
                # What one reservation of servers has, no other one can name.
                break


def _updates(lease: Lease) -> set[tuple[str, datetime]]:
    return {(event.id, event.created_at) for event in lease.events if event.event_type == EventType.UPDATE}


def _second(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
