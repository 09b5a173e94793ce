# SPDX-License-Identifier: Apache-2.0
"""Reservations of every type on the same hosts, in any order: never is more promised than there is.

Beside ``test_stateful_life``, which has trouble of all sorts, this one has no trouble at all but many more bookings.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from sqlalchemy.engine import Engine

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import BlazarError
from blazar.model.base.moments import NOW
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, ReservationChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources import resource
from blazar.store.sql import tables
from tests.promises import check_promises
from tests.tables import new_sqlite
from tests.uses import TYPES_WITH_USES, using
from tests.world import (
    World,
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

HOSTS = 4
SIZES = st.sampled_from([1, 3, 8, 16, 31])
AMOUNTS = st.integers(1, 5)
OFFERED = [Flavor(f"of-{n}", f"c1.of-{n}", n, 1024, 10, public=True) for n in (1, 8, 31)]
FLAVORS = st.sampled_from([flavor.id for flavor in OFFERED])
AFFINITIES = st.sampled_from([None, True, False])


@dataclass(frozen=True, slots=True)
class Kind:
    """What can be asked of a type, at first and as a change."""

    rooms: st.SearchStrategy[ReservationRequest]
    changes: st.SearchStrategy[dict[str, object]]


def changes(**values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=values)


KINDS: Mapping[str, Kind] = {
    "physical:host": Kind(st.builds(a_host, st.integers(1, 2), st.integers(2, 4)), changes(min=AMOUNTS, max=AMOUNTS)),
    "virtual:instance": Kind(
        st.builds(instances, AMOUNTS, vcpus=SIZES, affinity=AFFINITIES),
        changes(amount=AMOUNTS, vcpus=SIZES, affinity=AFFINITIES),
    ),
    "flavor:instance": Kind(
        st.builds(flavored, AMOUNTS, FLAVORS, affinity=AFFINITIES),
        changes(amount=AMOUNTS, flavor_id=FLAVORS, affinity=AFFINITIES),
    ),
    "virtual:floatingip": Kind(st.builds(addresses, st.integers(1, 3)), changes(amount=AMOUNTS)),
    "network": Kind(
        st.builds(a_network, needs=st.sampled_from(["", '[">", "$segment_id", "101"]'])),
        changes(network_description=st.sampled_from(["", "for all"]), before_end=st.sampled_from(["none", "default"])),
    ),
    "device": Kind(st.builds(devices, st.integers(1, 2), st.integers(2, 3)), changes(min=AMOUNTS, max=AMOUNTS)),
    "virtual:volume": Kind(
        st.builds(volumes, st.integers(1, 3), size=st.sampled_from([5, 10]), mode=st.sampled_from(["volume", "quota"])),
        changes(amount=AMOUNTS, size=st.sampled_from([5, 10, 15, 40])),
    ),
    "virtual:server": Kind(
        st.builds(servers, AMOUNTS, vcpus=SIZES, affinity=AFFINITIES, user_data=st.sampled_from([None, "IyE="])),
        changes(amount=AMOUNTS, vcpus=SIZES, affinity=AFFINITIES),
    ),
    "virtual:stack": Kind(
        st.builds(
            lambda flavors, disks, outside, more: stacks(*flavors, disks=disks, outside=outside, **more),
            st.lists(FLAVORS, min_size=1, max_size=3),
            st.integers(0, 2),
            st.integers(0, 1),
            changes(before_end=st.sampled_from(["none", "snapshot"])),
        ),
        # Only dates of it change: this is refused.
        changes(before_end=st.just("notification")),
    ),
    "generic": Kind(
        st.one_of(st.builds(things, st.integers(1, 2), st.integers(2, 3)), st.builds(units, AMOUNTS)),
        st.one_of(changes(amount=AMOUNTS), changes(min=AMOUNTS, max=AMOUNTS)),
    ),
}
"""Every type that there is; another one is one more line."""

ROOMS = st.lists(st.one_of(*(kind.rooms for kind in KINDS.values())), min_size=1, max_size=3)
STATUSES = sa.select(tables.leases.c.status).where(tables.leases.c.deleted_at.is_(None)).distinct()
SHIFTS = st.integers(-8, 8).map(lambda quarters: timedelta(minutes=15 * quarters))


class Mixed(RuleBasedStateMachine):
    """Users who book, change and delete while time passes."""

    leases = Bundle("leases")

    @initialize(shared=st.lists(st.builds(instances, AMOUNTS, vcpus=SIZES, affinity=AFFINITIES), max_size=2))
    def begin(self, shared: list[ReservationRequest]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.engine = new_sqlite(Path(self.folder.name) / "blazar.sqlite")
        self.world = self.new_world(self.engine)
        self.world.register_addresses(*range(10, 14))
        self.world.register_segments(101, 102, 103)
        self.world.register_pools(1, 2)
        for number, capacity in enumerate((1, 1, 4)):
            self.world.register_thing(f"microscope-{number}", capacity=capacity)
        for number in range(2):
            self.world.register_device(f"edge-{number}")
        for flavor in OFFERED:
            self.world.simulated.operators.offer_flavor(flavor)
        for room in shared:
            self.attempt(lambda room=room: self.world.lease(room, hours=9))

    def new_world(self, engine: Engine) -> World:
        return World(engine, hosts=HOSTS, types=TYPES_WITH_USES)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.run_to(self.world.clock.now() + timedelta(days=2))
        assert {lease.status for lease in self.world.manager.leases.all(None)} <= {LeaseStatus.TERMINATED}
        assert not any(
            self.world.store.calendar.load_live(kind) for kind in (*resource.KINDS, resource.GENERIC, resource.VOLUME)
        )
        with self.world.simulated.inspect() as state:
            assert not any(thing.users for thing in state.things.values())
            assert not state.block.volumes
            assert not any(each.projects for each in state.block.types.values())
            assert all(stack.is_gone(self.world.clock.now()) for stack in state.stacks.values())
            assert not state.floating_ips
        assert self.world.pool() == {f"node-{number}" for number in range(1, HOSTS + 1)}
        assert self.world.reservation_aggregates() == []
        assert self.world.simulated.network_users.calls.segment_networks(tag="blazar") == ()
        self.engine.dispose()
        self.folder.cleanup()

    @rule(target=leases, rooms=ROOMS, start=st.integers(0, 12), quarters=st.integers(1, 16))
    def create(self, rooms: list[ReservationRequest], start: int, quarters: int) -> object:
        when = timedelta(minutes=30 * start) if start else NOW
        lease = self.attempt(lambda: self.world.lease(*using(rooms), start=when, hours=quarters / 4))
        return multiple() if lease is None else lease.id

    @rule(lease=leases, shift=SHIFTS, longer=SHIFTS)
    def move(self, lease: str, shift: timedelta, longer: timedelta) -> None:
        window = self.world.now_of(lease).window
        self.change(lease, start=window.start + shift, end=window.end + shift + longer)

    @rule(lease=leases, longer=SHIFTS)
    def prolong(self, lease: str, longer: timedelta) -> None:
        self.change(lease, end=self.world.now_of(lease).window.end + longer)

    @rule(lease=leases, data=st.data(), longer=st.one_of(st.none(), SHIFTS))
    def reshape(self, lease: str, data: st.DataObject, longer: timedelta | None) -> None:
        now = self.world.now_of(lease)
        mine = [r for r in now.reservations if r.parent is None]
        wanted = tuple(ReservationChange(r.id, data.draw(KINDS[r.resource_type].changes)) for r in mine)
        self.change(lease, reservations=wanted, end=None if longer is None else now.window.end + longer)

    @rule(lease=leases)
    def end_now(self, lease: str) -> None:
        self.change(lease, end=NOW)

    @rule(lease=leases)
    def delete(self, lease: str) -> None:
        self.attempt(lambda: self.world.manager.leases.delete(lease))

    @rule(minutes=st.sampled_from([0, 1, 15, 30, 60, 180]))
    def time_passes(self, minutes: int) -> None:
        self.world.run_to(self.world.clock.now() + timedelta(minutes=minutes))

    @invariant()
    def nothing_is_promised_beyond_capacity(self) -> None:
        if hasattr(self, "world"):
            check_promises(self.world.store, since=self.world.clock.now())

    @invariant()
    def no_lease_is_spoiled(self) -> None:
        if hasattr(self, "world"):
            # After every step, so not by reading all leases whole.
            with self.engine.connect() as connection:
                assert LeaseStatus.ERROR not in connection.execute(STATUSES).scalars().all()

    def change(self, lease: str, **values: object) -> None:
        self.attempt(lambda: self.world.manager.leases.update(lease, LeaseChange(**values)))

    def attempt(self, act: object) -> Lease | None:
        """Do what may be refused, as a user's mistake or for want of room, and for nothing else."""
        try:
            return act()
        except BlazarError as error:
            if error.status not in (400, 404, 409):
                raise
        return None


class ManyMixed(Mixed):
    """The same, far longer."""


Mixed.TestCase.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)
ManyMixed.TestCase.settings = settings(
    max_examples=int(os.environ.get("BLAZAR_LIVES", "200")), stateful_step_count=60, deadline=None
)
TestMixed = Mixed.TestCase
TestManyMixed = pytest.mark.slow(ManyMixed.TestCase)
