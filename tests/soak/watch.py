# SPDX-License-Identifier: Apache-2.0
"""The watcher: looks at the calendar and at the cloud as they are, past the service, and tells what must never be."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from blazar.clouds.ports.stacks import COMPLETE, CREATE
from blazar.clouds.simulated import State
from blazar.model.base.errors import BlazarError
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EndReason, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import GENERIC, KINDS, VOLUME
from blazar.resources.floating_ips.registration import reservation_tag
from blazar.resources.instances.reservation_flavor import flavor_name
from blazar.store.store import Store
from tests.oracle import ADDRESS, NETWORK, PHYSICAL_HOST, SERVER, STACK, THINGS
from tests.oracle import VOLUME as VOLUMES
from tests.promises import check
from tests.soak.plan import POOL_GB, WRONG, Plan
from tests.soak.turns import Turns

LIVE = (LeaseStatus.ACTIVE, LeaseStatus.UPDATING)
AT_ONCE = timedelta(seconds=40)
"""Between the look that releases a lease and its end; the clocks of managers are wrong by up to 15 seconds."""


class Watch(threading.Thread):
    """Looks several times a second. ``findings`` are sentences, each with the instant at which it was seen first."""

    def __init__(self, plan: Plan, store: Store) -> None:
        super().__init__(name="watch", daemon=True)
        self.findings: dict[str, datetime] = {}
        self.looks = 0
        self.turns = Turns(self.found)
        self.stopping = threading.Event()
        self._plan = plan
        self._store = store
        self._lock = threading.Lock()
        self._servers: dict[str, tuple[str, datetime]] = {}
        self._projects: dict[str, str] = {}

    def found(self, what: str) -> None:
        """Note what must never be."""
        with self._lock:
            self.findings.setdefault(what, datetime.now(UTC))

    def expect(self, reservation_id: str, servers: Collection[str]) -> None:
        """Keep an eye on servers that users have booted into a reservation: they stay while its lease goes on.

        Which lease that is may change. One that is used is not released as if nobody used it.
        """
        now = datetime.now(UTC)
        with self._lock:
            self._servers.update(dict.fromkeys(servers, (reservation_id, now)))

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
        held: dict[str, Counter[str]] = defaultdict(Counter)
        promised: list[object] = []
        for kind in (*KINDS, GENERIC, VOLUME):
            resources = {resource.id: resource for resource in self._store.resources.of_kind(kind)}
            allocations = self._store.calendar.load_live(kind)
            check(allocations, resources, since=datetime.now(UTC))
            promised += allocations
            for allocation in allocations:
                held[allocation.reservation_id][resources[allocation.resource_id].name] += allocation.count
        after = {lease.id: lease for lease in self._store.leases.of_project(None)}
        by_lease = {lease.id: sum(held[r.id].total() for r in lease.reservations) for lease in before.values()}
        self.turns.look(before, by_lease, after)
        self._look_at_servers(state, servers, after)
        self._look_at_pools(state)
        self._look_at_volume_pools(state)
        self._look_at_addresses(state, {**before, **after})
        for lease in before.values():
            now = after.get(lease.id)
            same = now is not None and now.revision == lease.revision
            # A change that could not be undone before the end is left to that.
            ends = lease.window.end <= datetime.now(UTC) + WRONG
            if same and not ends and lease.status is LeaseStatus.ACTIVE:
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

    def _look_at_servers(
        self, state: State, servers: Mapping[str, tuple[str, datetime]], after: Mapping[str, Lease]
    ) -> None:
        """A server is deleted only when its lease has been on its way out before."""
        leases = {reservation.id: lease for lease in after.values() for reservation in lease.reservations}
        for server_id, (reservation_id, since) in servers.items():
            found = state.servers.get(server_id)
            if found is not None and found.gone_at is None:
                continue
            lease = leases.get(reservation_id)
            named = f"server {server_id} of reservation {reservation_id}"
            if lease is not None and lease.status in LIVE:
                self.found(f"{named} of lease {lease.id}, which is {lease.status}, was deleted")
            if lease is not None and lease.end_reason is EndReason.UNUSED and lease.window.end > since + AT_ONCE:
                self.found(f"{named} was there since {since}, and lease {lease.id} was released at {lease.window.end}")
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

    def _look_at_volume_pools(self, state: State) -> None:
        """What is in a pool is at no time more than all that can be promised of it."""
        now = datetime.now(UTC)
        taken: Counter[str] = Counter()
        for volume in state.block.volumes.values():
            if not volume.is_gone(now):
                taken[volume.pool or "nowhere"] += volume.taken_gb
        for pool, gigabytes in taken.items():
            if gigabytes > POOL_GB:
                self.found(f"pool {pool} has volumes of {gigabytes} GiB")

    def _look_at_addresses(self, state: State, leases: Mapping[str, Lease]) -> None:
        for lease in leases.values():
            self._projects.update((reservation_tag(r.id), lease.project_id) for r in lease.reservations)
        for found in state.floating_ips.values():
            for sign in {*found.tags, found.description}:
                project = self._projects.get(sign)
                if project not in (None, found.project_id):
                    self.found(f"{found.address} of {sign}, which is project {project}'s, is of {found.project_id}")

    def _look_at_reservation(self, state: State, lease: Lease, reservation: Reservation, held: Counter[str]) -> None:
        """A lease that is ACTIVE has in the cloud what is promised to it, but for what has failed."""
        partly = reservation.missing_resources or reservation.unassigned
        if reservation.status is not ReservationStatus.ACTIVE or partly:
            return
        named = f"reservation {reservation.id} of lease {lease.id}"
        if reservation.resource_type == ADDRESS:
            # Its users may delete floating IPs themselves; these here do not.
            has = sum(reservation_tag(reservation.id) in found.tags for found in state.floating_ips.values())
            if has != len(held):
                self.found(
                    f"reservation {reservation.id} of lease {lease.id} has {has} addresses instead of {len(held)}"
                )
            return
        if reservation.resource_type == NETWORK:
            has = sum(reservation_tag(reservation.id) in found.tags for found in state.networks.values())
            if has != len(held):
                self.found(f"{named} has {has} networks instead of {len(held)}")
            return
        if reservation.resource_type in THINGS:
            has = sum(reservation.id in thing.users for thing in state.things.values())
            if has != len(held):
                self.found(f"{named} has {has} things or devices instead of {len(held)}")
            return
        if reservation.resource_type == VOLUMES:
            self._look_at_volumes(state, lease, reservation, held, named)
            return
        if reservation.resource_type == STACK:
            now = datetime.now(UTC)
            there = [
                s for s in state.stacks.values() if reservation_tag(reservation.id) in s.tags and not s.is_gone(now)
            ]
            if [(s.action, s.state_at(now)) for s in there] != [(CREATE, COMPLETE)]:
                self.found(f"{named} has the stacks {there}")
            return
        pool = next((a for a in state.aggregates.values() if a.name == reservation.id), None)
        hosts = set(pool.hosts) if pool else set()
        if hosts != held.keys():
            self.found(f"{named} has {sorted(hosts)} instead of {sorted(held)}")
        if reservation.resource_type == SERVER:
            now, name = datetime.now(UTC), flavor_name(reservation.id)
            mine = (s for s in state.servers.values() if s.flavor_name == name and not s.is_gone(now))
            if (where := Counter(server.location(now) for server in mine)) != held:
                self.found(f"{named} has servers on {dict(where)} instead of {dict(held)}")
        if reservation.resource_type != PHYSICAL_HOST:
            # The service has booted the servers itself, and lets nobody boot others.
            projects = [] if reservation.resource_type == SERVER else [lease.project_id]
            flavor = state.flavors.get(reservation.id)
            if flavor is None or flavor.projects != projects:
                self.found(f"{named} is ACTIVE, and its flavor is {flavor}")

    def _look_at_volumes(
        self, state: State, lease: Lease, reservation: Reservation, held: Counter[str], named: str
    ) -> None:
        """Their project has access to the pools, quota at least for them, and the volumes unless it makes its own."""
        size, now = int(str(reservation.parameters.values["size"])), datetime.now(UTC)
        types = {each.specs["pool_name"]: each for each in state.block.types.values()}
        for pool in state.block.pools:
            if not (count := held[pool.name]):
                continue
            type_ = types[pool.pool_name]
            limits = state.block.quotas.get(lease.project_id, {})
            quota = [limits.get(f"{what}_{type_.name}", 0) for what in ("gigabytes", "volumes")]
            if lease.project_id not in type_.projects or quota[0] < count * size or quota[1] < count:
                self.found(f"{named} has {count} x {size} GiB of {pool.name}, quota {quota}, access {type_.projects}")
        mine = [v for v in state.block.volumes.values() if v.metadata.get("blazar:reservation") == reservation.id]
        where = Counter(v.pool for v in mine if v.size_gb == size and v.gone_at is None and not v.is_gone(now))
        if reservation.parameters.values["mode"] == "volume" and where != held:
            self.found(f"{named} has volumes in {dict(where)} instead of {dict(held)}")
