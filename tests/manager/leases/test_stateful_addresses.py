# SPDX-License-Identifier: Apache-2.0
"""Any sequence of requests for addresses, of what users and operators do with them, and of trouble in the cloud."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from blazar.clouds.ports.network import FloatingIp
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.model.base.moments import NOW
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import FLOATING_IP
from blazar.resources.contract.values import Unusable
from tests.manager.leases.test_stateful_life import Crash
from tests.tables import new_sqlite
from tests.world import World, addresses

FIRST, LAST = 10, 13
numbers = st.integers(FIRST, LAST)


class AddressLife(RuleBasedStateMachine):
    """A world of four addresses and two projects, in which everything can happen."""

    leases = Bundle("leases")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.engine = new_sqlite(Path(self.folder.name) / "blazar.sqlite")
        # What waits for a start that a stranger keeps from success is looked at for hours: not four times a second.
        patient = Settings(claim_ttl=timedelta(seconds=30), recheck_interval=timedelta(minutes=1))
        self.world = World(self.engine, hosts=0, settings=patient)
        self.world.register_addresses(*range(FIRST, LAST + 1))
        self.strangers: dict[str, FloatingIp] = {}

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.everything_ends_well()
            self.engine.dispose()
            self.folder.cleanup()

    @rule(
        target=leases,
        amount=st.integers(1, 3),
        required=st.sets(numbers, max_size=2),
        second=st.booleans(),
        project=st.sampled_from(["physics", "art"]),
        start=st.integers(0, 3),
        minutes=st.integers(5, 200),
    )
    def create(self, amount: int, required: set[int], second: bool, project: str, start: int, minutes: int) -> object:
        rooms = [addresses(amount, required=sorted(required))] + ([addresses(1)] if second else [])
        when = timedelta(hours=start) if start else NOW
        lease = self.attempt(lambda: self.world.lease(*rooms, start=when, hours=minutes / 60, project=project))
        return multiple() if lease is None else lease.id

    @rule(lease=leases, amount=st.none() | st.integers(1, 4), required=st.none() | st.sets(numbers, max_size=3))
    def resize(self, lease: str, amount: int | None, required: set[int] | None) -> None:
        values: dict[str, Any] = {} if amount is None else {"amount": amount}
        if required is not None:
            values["required_floatingips"] = [f"203.0.113.{number}" for number in sorted(required)]
        before = self.world.now_of(lease)
        in_use = {f.id for f in self.floating_ips() if f.attached}
        change = ReservationChange(before.reservations[0].id, values)
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(reservations=(change,))))
        # Whatever came of it: nobody's connection was cut.
        assert in_use <= {f.id for f in self.floating_ips()}

    @rule(lease=leases, minutes=st.integers(-60, 200))
    def change_the_end(self, lease: str, minutes: int) -> None:
        end = self.world.now_of(lease).window.end + timedelta(minutes=minutes)
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(end=end)))

    @rule(lease=leases)
    def delete(self, lease: str) -> None:
        self.attempt(lambda: self.world.manager.leases.delete(lease))

    @rule(number=numbers, attached=st.booleans())
    def use(self, number: int, attached: bool) -> None:
        for found in self.at(number):
            if attached:
                self.world.simulated.users.attach(found.id)
            else:
                self.quietly(lambda found=found: self.world.simulated.network.detach_floating_ip(found.id))

    @rule(number=numbers)
    def give_up(self, number: int) -> None:
        for found in self.at(number):
            if found.id not in self.strangers:
                self.quietly(lambda found=found: self.world.simulated.network.delete_floating_ip(found.id))

    @rule(number=numbers, project=st.sampled_from(["physics", "art"]))
    def come_between(self, number: int, project: str) -> None:
        def take() -> None:
            with suppress(Conflict):
                made = self.world.simulated.network.create_floating_ip(
                    network_id="public",
                    subnet_id="public-subnet",
                    address=f"203.0.113.{number}",
                    project_id=project,
                    description="",
                )
                self.strangers[made.id] = made

        self.quietly(take)

    @rule()
    def strangers_go(self) -> None:
        for id_ in self.strangers:
            self.quietly(lambda id_=id_: self.world.simulated.network.delete_floating_ip(id_))
        self.strangers.clear()

    @rule(seconds=st.sampled_from([0, 1, 45, 600, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.attempt(lambda: self.world.run_to(self.world.clock.now() + timedelta(seconds=seconds)))

    @rule(
        nth=st.integers(1, 8),
        phase=st.sampled_from(["before", "after"]),
        kind=st.sampled_from([CloudUnavailable, CloudRefused, Crash]),
    )
    def trouble_at_a_call(self, nth: int, phase: str, kind: type[BaseException]) -> None:
        left = [nth]

        def strike(name: str, when: str) -> None:
            if left[0] == 0 and kind is Crash:
                raise Crash  # the dead make no calls
            if when == phase:
                left[0] -= 1
                if left[0] == 0:
                    raise kind(f"{name} went wrong") if kind is not Crash else Crash()

        self.world.faults.on_call = strike

    @rule()
    def trouble_ends(self) -> None:
        self.world.faults.on_call = None

    def attempt(self, act: Callable[[], Any]) -> Any:
        """Do something that may be refused, or during which the manager may die; then another one goes on."""
        try:
            return act()
        except BlazarError as error:
            if error.status not in (400, 404, 409, 503):
                raise
        except Unusable:
            return None
        except Crash:
            self.world.faults.on_call = None
            self.world.manager = self.world.another_manager()
        return None

    def quietly(self, act: Callable[[], Any]) -> Any:
        """Do something in the cloud as others do, past the trouble that is ours."""
        planned, self.world.faults.on_call = self.world.faults.on_call, None
        try:
            with suppress(NotFound):
                return act()
        finally:
            self.world.faults.on_call = planned

    def floating_ips(self) -> tuple[FloatingIp, ...]:
        found: tuple[FloatingIp, ...] = self.quietly(self.world.simulated.network.floating_ips)
        return found

    def at(self, number: int) -> list[FloatingIp]:
        return [found for found in self.floating_ips() if found.address == f"203.0.113.{number}"]

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        if not hasattr(self, "world"):
            return
        now = self.world.clock.now()
        live = [a for a in self.world.store.calendar.load_live(FLOATING_IP) if a.window.end > now]
        for index, one in enumerate(live):
            for other in live[index + 1 :]:
                assert one.resource_id != other.resource_id or not one.window.overlaps(other.window), (one, other)

    @invariant()
    def strangers_keep_what_they_have(self) -> None:
        if not hasattr(self, "world"):
            return
        there = {found.id: found.tags for found in self.floating_ips()}
        assert all(there.get(id_) == frozenset() for id_ in self.strangers)

    @invariant()
    def what_is_ours_in_the_cloud_is_promised(self) -> None:
        if not hasattr(self, "world"):
            return
        names = {r.id: r.attributes["floating_ip_address"] for r in self.world.store.resources.of_kind(FLOATING_IP)}
        promised = {
            (names[a.resource_id], f"reservation:{a.reservation_id}")
            for a in self.world.store.calendar.load_live(FLOATING_IP)
        }
        for found in self.floating_ips():
            if found.id not in self.strangers:
                assert (found.address, found.description) in promised, found

    def everything_ends_well(self) -> None:
        """When the trouble is over and time has passed, every lease is over, and the cloud is as it was."""
        world = self.world
        world.faults.on_call = None
        world.manager = world.another_manager()
        world.run_to(world.clock.now() + timedelta(days=3))
        for lease in world.manager.leases.all(None):
            over = {ReservationStatus.DELETED}
            assert (lease.status, {r.status for r in lease.reservations}) == (LeaseStatus.TERMINATED, over), lease
            assert lease.event(EventType.END).due_at is None
        assert {found.id for found in world.simulated.network.floating_ips()} == self.strangers.keys()
        assert world.store.calendar.load_live(FLOATING_IP) == ()


AddressLife.TestCase.settings = settings(
    max_examples=int(os.environ.get("BLAZAR_LIVES", "6")), stateful_step_count=30, deadline=None
)
TestAddressLife = AddressLife.TestCase
