# SPDX-License-Identifier: Apache-2.0
"""The watcher: looks at the calendar and at the cloud as they are, past the service, and tells what must never be."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from blazar.clouds.simulated import State
from blazar.model.errors import BlazarError
from blazar.model.lease import Lease, LeaseStatus, Reservation, ReservationStatus
from blazar.model.resource import GENERIC, KINDS
from blazar.resources.floating_ips.registration import mark
from blazar.store.store import Store
from tests.oracle import ADDRESS, NETWORK, PHYSICAL_HOST, THINGS
from tests.promises import check
from tests.soak.plan import Plan

LIVE = (LeaseStatus.ACTIVE, LeaseStatus.UPDATING)


class Watch(threading.Thread):
    """Looks several times a second. ``findings`` are sentences, each with the instant at which it was seen first."""

    def __init__(self, plan: Plan, store: Store) -> None:
        super().__init__(name="watch", daemon=True)
        self.findings: dict[str, datetime] = {}
        self.looks = 0
        self.stopping = threading.Event()
        self._plan = plan
        self._store = store
        self._lock = threading.Lock()
        self._servers: dict[str, str] = {}
        self._projects: dict[str, str] = {}

    def found(self, what: str) -> None:
        """Note what must never be."""
        with self._lock:
            self.findings.setdefault(what, datetime.now(UTC))

    def expect(self, lease_id: str, servers: Collection[str]) -> None:
        """Keep an eye on servers that users have booted into a lease: they stay while it goes on."""
        with self._lock:
            self._servers.update(dict.fromkeys(servers, lease_id))

    def run(self) -> None:
        """Look until told to stop."""
        while not self.stopping.is_set():
            begun = time.monotonic()
            try:
                self.look()
            except BlazarError:
                # The database is busy, or away for a moment.
                pass
            except AssertionError as error:
                self.found(f"more is promised than there is: {error}")
            except Exception as error:
                self.found(f"the watcher was surprised: {error!r}")
            # A quarter of a processor at most.
            self.stopping.wait(max(0.1, 3 * (time.monotonic() - begun)))

    def look(self) -> None:
        """Look once."""
        before = {lease.id: lease for lease in self._store.leases.of_project(None)}
        with self._lock:
            servers = dict(self._servers)
        known = len(self.findings)
        # The file is replaced as a whole: reading it needs no lock.
        state = State.from_json(json.loads(self._plan.cloud_file.read_text(encoding="utf-8")))
        held: dict[str, set[str]] = defaultdict(set)
        promised: list[object] = []
        for kind in (*KINDS, GENERIC):
            resources = {resource.id: resource for resource in self._store.resources.of_kind(kind)}
            allocations = self._store.calendar.live(kind)
            check(allocations, resources, since=datetime.now(UTC))
            promised += allocations
            for allocation in allocations:
                held[allocation.reservation_id].add(resources[allocation.resource_id].name)
        after = {lease.id: lease for lease in self._store.leases.of_project(None)}
        self._look_at_servers(state, servers, after)
        self._look_at_pools(state)
        self._look_at_addresses(state, {**before, **after})
        for lease in before.values():
            now = after.get(lease.id)
            if now is not None and now.revision == lease.revision and lease.status is LeaseStatus.ACTIVE:
                for reservation in lease.reservations:
                    self._look_at_reservation(state, lease, reservation, held[reservation.id])
        self.looks += 1
        if len(self.findings) > known:
            self._keep(state, before.values(), promised)

    def _keep(self, state: State, leases: Iterable[Lease], promised: Iterable[object]) -> None:
        """Write down what there was when something was found: a moment later it is gone."""
        with (self._plan.folder / f"look-{self.looks}.txt").open("w", encoding="utf-8") as file:
            print(f"{datetime.now(UTC):%H:%M:%S.%f}", *self.findings, sep="\n", file=file)
            for part in (leases, promised, state.aggregates.values(), state.servers.values()):
                print("", *part, sep="\n", file=file)
            print("", *state.inventories.items(), sep="\n", file=file)

    def _look_at_servers(self, state: State, servers: Mapping[str, str], after: Mapping[str, Lease]) -> None:
        """A server is deleted only when its lease has been on its way out before."""
        for server_id, lease_id in servers.items():
            found = state.servers.get(server_id)
            if found is not None and found.gone_at is None:
                continue
            lease = after.get(lease_id)
            if lease is not None and lease.status in LIVE:
                self.found(f"server {server_id} of lease {lease_id}, which is {lease.status}, was deleted")
            with self._lock:
                self._servers.pop(server_id, None)

    def _look_at_pools(self, state: State) -> None:
        pools: dict[str, list[str]] = defaultdict(list)
        for aggregate in state.aggregates.values():
            if (aggregate.zone or "").startswith("blazar_"):
                for host in aggregate.hosts:
                    pools[host].append(aggregate.name)
        for host, names in pools.items():
            if len(names) > 1:
                self.found(f"host {host} is in the pools of reservations {', '.join(sorted(names))}")
            if classes := state.inventories.get(host):
                self.found(f"host {host} is in the pool of reservation {names[0]} and shared: {sorted(classes)}")

    def _look_at_addresses(self, state: State, leases: Mapping[str, Lease]) -> None:
        for lease in leases.values():
            self._projects.update((mark(r.id), lease.project_id) for r in lease.reservations)
        for found in state.floating_ips.values():
            for sign in {*found.tags, found.description}:
                project = self._projects.get(sign)
                if project not in (None, found.project_id):
                    self.found(f"{found.address} of {sign}, which is project {project}'s, is of {found.project_id}")

    def _look_at_reservation(self, state: State, lease: Lease, reservation: Reservation, held: set[str]) -> None:
        """A lease that is ACTIVE has in the cloud what is promised to it, but for what has failed."""
        partly = reservation.missing_resources or reservation.unassigned
        if reservation.status is not ReservationStatus.ACTIVE or partly:
            return
        named = f"reservation {reservation.id} of lease {lease.id}"
        if reservation.resource_type == ADDRESS:
            # Its users may delete floating IPs themselves; these here do not.
            has = sum(mark(reservation.id) in found.tags for found in state.floating_ips.values())
            if has != len(held):
                self.found(
                    f"reservation {reservation.id} of lease {lease.id} has {has} addresses instead of {len(held)}"
                )
            return
        if reservation.resource_type == NETWORK:
            has = sum(mark(reservation.id) in found.tags for found in state.networks.values())
            if has != len(held):
                self.found(f"{named} has {has} networks instead of {len(held)}")
            return
        if reservation.resource_type in THINGS:
            has = sum(reservation.id in thing.users for thing in state.things.values())
            if has != len(held):
                self.found(f"{named} has {has} things or devices instead of {len(held)}")
            return
        pool = next((a for a in state.aggregates.values() if a.name == reservation.id), None)
        hosts = set(pool.hosts) if pool else set()
        if hosts != held:
            self.found(
                f"reservation {reservation.id} of lease {lease.id} has {sorted(hosts)} instead of {sorted(held)}"
            )
        if reservation.resource_type != PHYSICAL_HOST:
            flavor = state.flavors.get(reservation.id)
            if flavor is None or flavor.projects != [lease.project_id]:
                self.found(f"{named} is ACTIVE, and its flavor is {flavor}")
