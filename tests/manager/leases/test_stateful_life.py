# SPDX-License-Identifier: Apache-2.0
"""Any sequence of requests, passing time and trouble in the cloud: what must always hold, holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import of_size
from blazar.clouds.simulated.state import HostState
from blazar.manager.common.settings import Settings
from blazar.manager.leases import lifecycle
from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.model.base.moments import NOW
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, PartRequest, SplitRequest, SwapRequest, Terms
from blazar.resources.hosts.preemptibles import SPEC, is_preemptible
from blazar.resources.instances.reservation_flavor import resource_class
from tests.promises import check_promises
from tests.tables import new_sqlite
from tests.world import PROJECT, World, a_host, flavored, instances

T = TypeVar("T")
HOSTS = 3
FLAVORS = (
    Flavor("plain", "plain", 3, 1024, 5, public=True),
    Flavor("pinned", "pinned", 2, 1024, 0, extra_specs={"hw:cpu_policy": "dedicated"}, public=True),
    Flavor("picky", "picky", 1, 4096, 0, 1, 1, {"trait:CUSTOM_A": "forbidden", "resources:VCPU": "9"}, public=True),
)
TTL = timedelta(seconds=30)
TERMS = Terms(Actor("root", "admin", operator=True))


class Crash(BaseException):
    """The manager dies on the spot."""


class Life(RuleBasedStateMachine):
    """A world in which everything can happen."""

    leases = Bundle("leases")

    @initialize(heal_active=st.booleans())
    def begin(self, heal_active: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.engine = new_sqlite(Path(self.folder.name) / "blazar.sqlite")
        state = of_size(HOSTS + 1)
        # Hosts of several kinds: with reserved memory and a ratio, with dedicated CPUs alone, with a trait.
        state.hosts["1"].inventories = {"VCPU": {"allocation_ratio": 1.5}, "MEMORY_MB": {"reserved": 512}}
        state.hosts["2"].inventories = {"VCPU": {"total": 0}, "PCPU": {"total": 8}}
        state.hosts["3"].traits = ["CUSTOM_A"]
        # A request that has to wait, for preemptible servers to go, gives up at once: the clock stands still meanwhile.
        limit = timedelta(seconds=1)
        settings = Settings(claim_ttl=TTL, request_limit=limit, heal_active=heal_active, healing_interval=timedelta(0))
        self.world = World(self.engine, hosts=HOSTS, settings=settings, state=state)
        for flavor in FLAVORS:
            self.world.simulated.operators.offer_flavor(flavor)
        self.seen: dict[str, LeaseStatus] = {}
        self.away: dict[str, HostState] = {}
        self.ever_away: set[str] = set()
        self.unsettled: set[str] = set()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.everything_ends_well()
            self.engine.dispose()
            self.folder.cleanup()

    @rule(
        target=leases,
        minimum=st.integers(1, 2),
        more=st.integers(0, 2),
        second=st.booleans(),
        start=st.integers(0, 4),
        minutes=st.integers(5, 200),
        action=st.sampled_from(["default", "none", "snapshot", "migration"]),
        kind=st.sampled_from(LeaseKind),
    )
    def create(
        self, minimum: int, more: int, second: bool, start: int, minutes: int, action: str, kind: LeaseKind
    ) -> object:
        rooms = [a_host(minimum, minimum + more, before_end=action)] + ([a_host(1)] if second else [])
        when = timedelta(hours=start) if start and kind is LeaseKind.SCHEDULED else NOW
        lease = self.attempt(lambda: self.world.lease(*rooms, start=when, hours=minutes / 60, kind=kind))
        return multiple() if lease is None else lease.id

    @rule(
        target=leases,
        amount=st.integers(1, 4),
        size=st.sampled_from([1, 7, 16, "plain", "pinned", "picky"]),
        affinity=st.sampled_from([None, True, False]),
        with_host=st.booleans(),
        start=st.integers(0, 4),
        minutes=st.integers(5, 200),
        action=st.sampled_from(["default", "none", "snapshot"]),
    )
    def create_instances(
        self,
        amount: int,
        size: int | str,
        affinity: bool | None,
        with_host: bool,
        start: int,
        minutes: int,
        action: str,
    ) -> object:
        if isinstance(size, int):
            servers = instances(amount, vcpus=size, affinity=affinity, before_end=action)
        else:
            servers = flavored(amount, size, affinity=affinity, before_end=action)
        rooms = [servers, a_host(1)] if with_host else [servers]
        when = timedelta(hours=start) if start else NOW
        lease = self.attempt(lambda: self.world.lease(*rooms, start=when, hours=minutes / 60))
        return multiple() if lease is None else lease.id

    @rule(
        lease=leases,
        amount=st.integers(1, 5),
        more=st.dictionaries(
            st.sampled_from(["vcpus", "memory_mb", "affinity", "flavor_id"]),
            st.sampled_from([1, 2, 9, True, False, None, "plain", "pinned", "picky"]),
            max_size=1,
        ),
    )
    def resize_instances(self, lease: str, amount: int, more: dict[str, object]) -> None:
        reservation = self.first_of(lease)
        change = ReservationChange(reservation, {"amount": amount, **more})
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(reservations=(change,))))

    @rule(lease=leases, shelved=st.booleans())
    def boot_with_the_flavor(self, lease: str, shelved: bool) -> None:
        # Users boot servers whenever they can, at any moment.
        for reservation in self.world.now_of(lease).reservations:
            with suppress(NotFound, Conflict):
                server = self.world.simulated.users.boot_reserved(reservation.id, project_id=PROJECT)
                if shelved:
                    self.world.simulated.users.shelve(server.id)

    @rule(lease=leases, minutes=st.integers(-60, 200))
    def change_the_end(self, lease: str, minutes: int) -> None:
        end = self.world.now_of(lease).window.end + timedelta(minutes=minutes)
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(end=end)))

    @rule(lease=leases, minutes=st.integers(-60, 200))
    def move(self, lease: str, minutes: int) -> None:
        window = self.world.now_of(lease).window
        shift = timedelta(minutes=minutes)
        change = LeaseChange(start=window.start + shift, end=window.end + shift)
        self.attempt(lambda: self.world.manager.leases.update(lease, change))

    @rule(target=leases, lease=leases, count=st.none() | st.integers(1, 2), minutes=st.none() | st.integers(1, 100))
    def split(self, lease: str, count: int | None, minutes: int | None) -> object:
        """By units or by time, whatever the lease is."""
        parts = (PartRequest(self.first_of(lease), count=count),)
        at = self.world.now_of(lease).window.start + timedelta(minutes=minutes) if minutes else None
        request = SplitRequest(() if at else parts, at)
        found = self.attempt(lambda: self.world.manager.surgery.split(lease, request, TERMS))
        return multiple() if found is None else found.leases[1].lease.id

    @rule(lease=leases, other=leases)
    def merge(self, lease: str, other: str) -> None:
        self.attempt(lambda: self.world.manager.surgery.merge(lease, MergeRequest(other), TERMS))

    @rule(lease=leases, host=st.integers(1, HOSTS), wanted=st.none() | st.integers(1, HOSTS))
    def swap(self, lease: str, host: int, wanted: int | None) -> None:
        request = SwapRequest(self.first_of(lease), f"node-{host}", f"node-{wanted}" if wanted else None)
        self.attempt(lambda: self.world.manager.surgery.swap(lease, request, TERMS))

    def first_of(self, lease: str) -> str:
        """Return the first reservation of a lease; one that was merged into another may have none."""
        reservations = self.world.now_of(lease).reservations
        return reservations[0].id if reservations else "none"

    @rule(lease=leases, minimum=st.integers(1, 3), more=st.integers(0, 2))
    def resize(self, lease: str, minimum: int, more: int) -> None:
        reservation = self.first_of(lease)
        change = ReservationChange(reservation, {"min": minimum, "max": minimum + more})
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(reservations=(change,))))

    @rule(lease=leases)
    def end_now(self, lease: str) -> None:
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(end=NOW)))

    @rule(lease=leases)
    def delete(self, lease: str) -> None:
        self.attempt(lambda: self.world.manager.leases.delete(lease))

    @rule(lease=leases, action=st.sampled_from(["none", "snapshot", "migration"]))
    def choose_an_action(self, lease: str, action: str) -> None:
        change = ReservationChange(self.first_of(lease), {"before_end_action": action})
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(reservations=(change,))))

    @rule(lease=leases, locked=st.booleans(), status=st.sampled_from(["ACTIVE", "SHUTOFF", "ERROR"]))
    def boot(self, lease: str, locked: bool, status: str) -> None:
        now = self.world.now_of(lease)
        if now.status is LeaseStatus.ACTIVE:
            if now.reservations[0].resource_type != "physical:host":
                return
            for host in sorted(self.world.pool(now.reservations[0].id)):
                self.world.simulated.users.boot_server(
                    "work", project_id="p", user_id="u", host=host, locked=locked, status=status
                )

    @rule(host=st.integers(1, HOSTS), vcpus=st.sampled_from([1, 8, 20]), hours=st.integers(0, 3))
    def boot_preemptible(self, host: int, vcpus: int, hours: int) -> None:
        created = (self.world.clock.now() - timedelta(hours=hours)).isoformat()
        with suppress(Conflict):
            self.world.simulated.users.boot_preemptible("spot", host=f"node-{host}", vcpus=vcpus, created_at=created)

    @rule(seconds=st.sampled_from([0, 1, 20, 45, 600, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.attempt(lambda: self.world.run_to(self.world.clock.now() + timedelta(seconds=seconds)))

    @rule(
        nth=st.integers(1, 8),
        phase=st.sampled_from(["before", "after"]),
        kind=st.sampled_from([CloudUnavailable, CloudRefused, Crash]),
    )
    def trouble_at_a_call(self, nth: int, phase: str, kind: type[BaseException]) -> None:
        """Let the n-th call to the cloud from now on go wrong, whatever it is."""
        left = [nth]

        def strike(name: str, when: str) -> None:
            if left[0] == 0 and kind is Crash:
                raise Crash  # the dead make no calls
            if when == phase:
                left[0] -= 1
                if left[0] == 0:
                    raise kind(f"{name} went wrong") if kind is not Crash else Crash()

        self.world.faults.on_call = strike

    @rule(host=st.sampled_from(["1", "2", "3"]), vcpus=st.sampled_from([8, 16, 64]))
    def a_host_is_rebuilt(self, host: str, vcpus: int) -> None:
        """It never shrinks below what it had at first: then promises would be more than it has, as is known."""
        with self.world.simulated.change_state() as state:
            if host in state.hosts:
                state.hosts[host].vcpus = max(vcpus, state.hosts[host].vcpus)
        self.attempt(self.world.refresh_hosts)

    @rule()
    def trouble_ends(self) -> None:
        self.world.faults.on_call = None

    @precondition(lambda self: self.world.faults.on_call is None)
    @rule(minutes=st.sampled_from([0, 2]))
    def deletions_take(self, minutes: int) -> None:
        self.world.simulated.durations.deletion = timedelta(minutes=minutes)
        self.world.simulated.durations.snapshot = self.world.simulated.durations.migration = timedelta(minutes=minutes)

    @rule(
        number=st.integers(1, HOSTS),
        trouble=st.sampled_from(["host_down", "host_up", "host_disabled", "host_enabled"]),
    )
    def something_happens_to_a_host(self, number: int, trouble: str) -> None:
        if f"node-{number}" not in self.away:
            getattr(self.world.simulated.operators, trouble)(f"node-{number}")

    # A list with none of the registered hosts does not count: one is always left.
    @precondition(lambda self: len(self.away) < HOSTS - 1)
    @rule(number=st.integers(1, HOSTS))
    def the_cloud_loses_a_host(self, number: int) -> None:
        name = f"node-{number}"
        # Nova forgets no host that has servers, and an operator takes none away in the middle of a move.
        if name not in self.away and self.nothing_is_going_on():
            with suppress(Conflict):
                self.away[name] = self.world.simulated.operators.host_vanishes(name)
                self.ever_away.add(name)
                self.unsettled.add(name)

    @precondition(lambda self: self.away and self.world.faults.on_call is None)
    @rule()
    def a_lost_host_is_back(self) -> None:
        name, state = self.away.popitem()
        self.world.simulated.operators.host_returns(state)
        number = name.removeprefix("node-")
        self.attempt(lambda: self.world.manager.resources.refresh(HOST, number))

    @rule(name=st.sampled_from(["", "node-1", "node-2"]))
    def the_monitor_looks(self, name: str) -> None:
        if name:
            self.world.manager.monitor.hint(name)
        self.attempt(self.world.manager.monitor.run_once)

    @rule()
    def a_pass_of_healing(self) -> None:
        self.attempt(self.world.manager.monitor.heal)

    @precondition(lambda self: self.world.faults.on_call is None)
    @rule()
    def all_is_quiet(self) -> None:
        """When nothing is going on any more, leases say what is missing: no more and no less."""
        world = self.world
        world.run()
        for _ in range(3):
            world.manager.monitor.run_once()
        world.manager.monitor.heal()
        self.unsettled &= self.away.keys()
        sick = self.failing()
        for lease in world.manager.leases.all(None):
            if lease.status not in (LeaseStatus.PENDING, LeaseStatus.ACTIVE):
                continue
            if lifecycle.live_claim(lease, world.clock.now()) is not None:
                continue
            for reservation in lease.reservations:
                held = self.hosts_of(lease.id, reservation.id)
                assert reservation.missing_resources == bool(held & sick), (lease, held, sick)
            flags = [r.missing_resources or r.resources_changed for r in lease.reservations]
            assert lease.degraded == any(flags)

    def failing(self) -> set[str]:
        """Return the hosts that are of no use, by what the cloud itself knows."""
        with self.world.simulated.inspect() as state:
            well = {host.name for host in state.hosts.values() if host.up and host.enabled}
            pooled = {
                host
                for a in state.aggregates.values()
                if a.name == "freepool" or (a.zone or "").startswith("blazar_")
                for host in a.hosts
            }
        return {f"node-{n}" for n in range(1, HOSTS + 1)} - (well & pooled)

    def nothing_is_going_on(self) -> bool:
        calm = (LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.TERMINATED)
        return all(lease.status in calm for lease in self.world.manager.leases.all(None))

    def attempt(self, act: Callable[[], T]) -> T | None:
        """Do something that may be refused, or during which the manager may die; then another one goes on."""
        try:
            return act()
        except BlazarError as error:
            if error.status not in (400, 404, 409, 503):
                raise
        except Crash:
            self.world.faults.on_call = None
            self.world.manager = self.world.another_manager()
        return None

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        if not hasattr(self, "world"):
            return
        check_promises(self.world.store, since=self.world.clock.now())

    @invariant()
    def nobody_has_slots_that_are_not_promised(self) -> None:
        if not hasattr(self, "world"):
            return
        names = {r.id: r.name for r in self.world.store.resources.of_kind(HOST)}
        promised = {
            (names[a.resource_id], resource_class(a.reservation_id)): a.count
            for a in self.world.store.calendar.load_live(HOST)
        }
        with self.world.simulated.inspect() as state:
            for host, totals in state.inventories.items():
                for name, total in totals.items():
                    assert total <= promised.get((host, name), 0), (host, name)

    @invariant()
    def preemptible_servers_are_in_nobodys_way(self) -> None:
        if not hasattr(self, "world"):
            return
        active = {
            reservation.id
            for lease in self.world.manager.leases.all(None)
            if lease.status is LeaseStatus.ACTIVE
            for reservation in lease.reservations
        }
        kept = {host for a in self.world.aggregates() if (a.zone or "").startswith("blazar_") for host in a.hosts}
        with self.world.simulated.inspect() as state:
            there = [s for s in state.servers.values() if s.extra_specs.get(SPEC) and s.gone_at is None]
            assert not [server for server in there if server.host in kept]
            for host in state.hosts.values():
                slots = state.inventories.get(host.name, {})
                promised = [
                    slots.get(resource_class(f.id), 0) * f.vcpus for f in state.flavors.values() if f.id in active
                ]
                spots = sum(server.vcpus for server in there if server.host == host.service_name)
                capacity = host.vcpus * host.inventories.get("VCPU", {}).get("allocation_ratio", 1)
                assert not any(promised) or sum(promised) + spots <= capacity, (host, promised, spots)

    @invariant()
    def every_host_is_in_exactly_one_pool(self) -> None:
        if not hasattr(self, "world"):
            return
        pools = [a for a in self.world.aggregates() if a.name == "freepool" or (a.zone or "").startswith("blazar_")]
        for number in range(1, HOSTS + 1):
            if f"node-{number}" in self.away:
                continue
            inside = [a.name for a in pools if f"node-{number}" in a.hosts]
            assert inside, f"node-{number} is in no pool"
            assert len([name for name in inside if name != "freepool"]) <= 1, f"node-{number} is in two reservations"

    @invariant()
    def leases_move_as_the_table_says(self) -> None:
        if not hasattr(self, "world"):
            return
        for lease in self.world.manager.leases.all(None):
            before = self.seen.get(lease.id)
            if before is not None and before is not lease.status:
                assert lease.status in reachable(before), (before, lease.status)
            self.seen[lease.id] = lease.status
            if lease.status is LeaseStatus.ACTIVE:
                assert {r.status for r in lease.reservations} == {ReservationStatus.ACTIVE}
                for reservation in lease.reservations:
                    inside, held = self.world.pool(reservation.id), self.hosts_of(lease.id, reservation.id)
                    assert inside <= held
                    assert held - inside <= self.unsettled

    def hosts_of(self, lease_id: str, reservation_id: str) -> frozenset[str]:
        mine = [a for a in self.world.store.calendar.of_lease(lease_id) if a.reservation_id == reservation_id]
        return frozenset(r.name for r in self.world.store.resources.by_ids({a.resource_id for a in mine}).values())

    def everything_ends_well(self) -> None:
        """When the trouble is over and time has passed, every lease is over and the cloud is as it was."""
        world = self.world
        world.faults.on_call = None
        world.manager = world.another_manager()
        for name, state in self.away.items():
            world.simulated.operators.host_returns(state)
            world.manager.resources.refresh(HOST, name.removeprefix("node-"))
        for number in range(1, HOSTS + 1):
            world.simulated.operators.host_up(f"node-{number}")
            world.simulated.operators.host_enabled(f"node-{number}")
        self.away.clear()
        world.run_to(world.clock.now() + timedelta(minutes=10))
        self.all_is_quiet()
        assert all(host.reservable for host in world.manager.resources.all(HOST))
        self.leases_move_as_the_table_says()
        world.run_to(world.clock.now() + timedelta(days=3))
        for lease in world.manager.leases.all(None):
            assert lease.status is LeaseStatus.TERMINATED, (lease.status, lease.events)
            assert lease.event(EventType.END).status is EventStatus.DONE
        for lease in (*world.store.leases.load_past(), *world.manager.leases.all(None)):
            whole = world.store.leases.one(lease.id, including_deleted=True)
            assert all(e.status is not EventStatus.IN_PROGRESS and e.due_at is None for e in whole.events), whole
            assert whole.end_reason is not None
            # Handed over, or refused at its time, or deleted or undone before that.
            assert not whole.is_undecided or whole.end_reason in (EndReason.DELETED, EndReason.REFUSED)
        assert world.reservation_aggregates() == []
        assert world.pool() == {f"node-{n}" for n in range(1, HOSTS + 1)}
        with world.simulated.inspect() as state:
            assert set(state.flavors) == {flavor.id for flavor in FLAVORS}
            assert (state.groups, state.classes) == ({}, [])
            assert all(not totals for totals in state.inventories.values())
            assert {a.name for a in state.aggregates.values()} == {"freepool", "az-1", "az-2"}
            assert not any(a.metadata for a in state.aggregates.values() if a.name == "freepool")
        zones = [a.hosts for a in world.aggregates() if a.zone]
        at_home = sorted(host for hosts in zones for host in hosts)
        # Who has been away has lost its zone, unless a reservation remembered it.
        assert {f"node-{n}" for n in range(1, HOSTS + 2)} - self.ever_away <= set(at_home)
        assert len(at_home) == len(set(at_home))
        # Who was moved out in time lives on, on the one host that nobody can reserve.
        left = [server for server in world.simulated.operators.list_servers() if not is_preemptible(server)]
        assert {server.host for server in left} <= {f"node-{HOSTS + 1}"}
        assert world.store.calendar.load_live(HOST) == ()


def reachable(status: LeaseStatus) -> frozenset[LeaseStatus]:
    """Return every status that a lease can get to, in any number of moves."""
    found: set[LeaseStatus] = set()
    left = [status]
    while left:
        for following in lifecycle.MOVES[left.pop()] - found:
            found.add(following)
            left.append(following)
    return frozenset(found)


Life.TestCase.settings = settings(
    max_examples=int(os.environ.get("BLAZAR_LIVES", "6")), stateful_step_count=30, deadline=None
)
TestLife = Life.TestCase
