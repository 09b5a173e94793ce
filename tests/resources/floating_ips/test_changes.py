# SPDX-License-Identifier: Apache-2.0
"""Changes of amounts and required addresses, before the start and in use."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import (
    CloudRefused,
    CloudUnavailable,
    Conflict,
    InvalidInput,
    NotEnoughResources,
    WrongState,
)
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests.resources.floating_ips.steps import DOWN, HOUR, created, in_cloud, ip, promised
from tests.world import NOON, PROJECT, World, addresses


def resized(world: World, lease, index: int = 0, **values):
    if "required" in values:
        values["required_floatingips"] = [ip(n) for n in values.pop("required")]
    change = ReservationChange(lease.reservations[index].id, values)
    return world.manager.leases.update(lease.id, LeaseChange(reservations=(change,)))


def test_before_the_start_amount_and_required_addresses_change_in_every_direction(world):
    lease = world.lease(addresses(3, required=[10]), start=HOUR)
    assert promised(world, resized(world, lease, amount=5)) >= {10}
    assert len(promised(world, lease)) == 5
    resized(world, lease, amount=2, required=[18, 19])
    assert promised(world, lease) == {18, 19}
    resized(world, lease, required=[18])
    assert promised(world, lease) == {18, 19}
    resized(world, lease, required=[])
    resized(world, lease, required=[11])
    assert promised(world, lease) > {11}
    resized(world, lease, amount=10, required=list(range(10, 20)))
    resized(world, lease, amount=1, required=[])
    assert len(promised(world, lease)) == 1
    assert in_cloud(world) == {}


def test_a_change_that_cannot_be_leaves_the_lease_as_it_was(world):
    lease = world.lease(addresses(3, required=[10]), start=HOUR)
    other = world.lease(addresses(required=[15]), start=HOUR)
    for error, says, values in [
        (InvalidInput, "network_id cannot be changed", {"network_id": "other"}),
        (InvalidInput, "1 addresses, and amount is 0|amount is 0", {"amount": 0}),
        (InvalidInput, "2 addresses, and amount is 1", {"amount": 1, "required": [10, 11]}),
        (InvalidInput, "no such floating IP", {"required": [99]}),
        (InvalidInput, "give a list", {"required_floatingips": "203.0.113.10"}),
        (NotEnoughResources, "203.0.113.15 .* promised to another", {"required": [15]}),
        (NotEnoughResources, "at least 10 requested", {"amount": 10}),
        (InvalidInput, "before_end", {"before_end": "snapshot"}),
    ]:
        with pytest.raises(error, match=says):
            resized(world, lease, **values)
    assert world.now(lease) == lease
    assert world.now(other) == other
    assert resized(world, lease, network_id="public", resource_type_of_another="x").status is LeaseStatus.PENDING


def test_an_active_reservation_with_required_addresses_grows(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    before = in_cloud(world)
    grown = resized(world, lease, amount=4)
    assert (grown.status, grown.reservations[0].parameters.values["amount"]) == (LeaseStatus.ACTIVE, 4)
    assert set(in_cloud(world)) == promised(world, lease)
    assert {number: found for number, found in in_cloud(world).items() if number in before} == before
    resized(world, lease, amount=5, required=[10, 19])
    assert promised(world, lease) >= {10, 11, 19}
    assert set(in_cloud(world)) == promised(world, lease)
    assert all(found.project_id == PROJECT and len(found.tags) == 2 for found in in_cloud(world).values())


def test_an_active_reservation_shrinks_by_addresses_that_are_neither_attached_nor_required(world):
    lease = world.lease(addresses(4, required=[10, 11, 12, 13]))
    world.run()
    world.simulated.users.attach(in_cloud(world)[12].id)
    before = in_cloud(world)
    resized(world, lease, amount=2, required=[11])
    assert promised(world, lease) == {11, 12}
    assert in_cloud(world) == {11: before[11], 12: before[12]}
    # What was given back is there for others.
    world.lease(addresses(8), project="art")


def test_an_active_reservation_does_not_shrink_below_what_is_attached_or_required(world):
    lease = world.lease(addresses(4, required=[10, 11, 12, 13]))
    world.run()
    for number in (10, 11, 12):
        world.simulated.users.attach(in_cloud(world)[number].id)
    before = in_cloud(world)
    with pytest.raises(Conflict, match="3 are attached to ports; detach 1 of them first"):
        resized(world, lease, amount=2, required=[])
    with pytest.raises(Conflict, match="3 are attached to ports, and 1 more are required; detach 1 of them first"):
        resized(world, lease, amount=3, required=[13])
    after = world.now(lease)
    assert (after.status, after.reservations[0].parameters) == (LeaseStatus.ACTIVE, lease.reservations[0].parameters)
    assert in_cloud(world) == before
    resized(world, lease, amount=3, required=[])
    assert set(in_cloud(world)) == {10, 11, 12}


def test_an_active_reservation_changes_an_address_that_is_not_attached_for_one_that_is_required(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    world.simulated.users.attach(in_cloud(world)[10].id)
    resized(world, lease, required=[19])
    assert promised(world, lease) == set(in_cloud(world)) == {10, 19}
    with pytest.raises(Conflict, match="detach 1 of them first"):
        resized(world, lease, required=[18, 19])
    assert set(in_cloud(world)) == {10, 19}
    resized(world, lease, required=[])
    assert set(in_cloud(world)) == {10, 19}


def test_an_address_that_is_attached_while_it_is_given_back_stays_and_the_change_is_refused(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    before = in_cloud(world)
    looks = []

    def sneak(name, phase):
        looks.append(name)
        if (name, phase) == ("floating_ips", "after") and len(looks) < 4:
            with world.simulated.change_state() as state:
                for found in state.floating_ips.values():
                    found.port_id = "just now"

    world.faults.on_call = sneak
    with pytest.raises(Conflict, match="is attached to a port and would be deleted; detach it first"):
        resized(world, lease, amount=1, required=[])
    world.faults.on_call = None
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert promised(world, lease) == set(before) == set(in_cloud(world))
    assert {found.id for found in in_cloud(world).values()} == {found.id for found in before.values()}


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["create_floating_ip", "set_address_tags"])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_growth_that_the_cloud_refuses_is_undone(world, call, phase):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    before = in_cloud(world)
    getattr(world.faults, f"fail_{phase}")(call, CloudRefused("no"))
    with pytest.raises(CloudRefused):
        resized(world, lease, amount=4)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert promised(world, lease) == {10, 11}
    assert in_cloud(world) == before


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_shrinkage_that_the_cloud_does_not_finish_is_undone(world, phase):
    lease = world.lease(addresses(3, required=[10, 11, 12]))
    world.run()
    getattr(world.faults, f"fail_{phase}")("delete_floating_ip", DOWN)
    with pytest.raises(CloudUnavailable):
        resized(world, lease, amount=1, required=[])
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert promised(world, lease) == set(in_cloud(world)) == {10, 11, 12}
    assert all(len(found.tags) == 2 for found in in_cloud(world).values())


def test_an_undone_change_does_not_wait_for_an_address_that_is_lost(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    world.simulated.network.delete_floating_ip(in_cloud(world)[10].id)
    theirs = created(world, 10, project="art")
    world.faults.fail_before("create_floating_ip", DOWN)
    with pytest.raises(CloudUnavailable):
        resized(world, lease, amount=3)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert in_cloud(world)[10] == theirs
    assert set(in_cloud(world)) == {10, 11}


def test_an_active_reservation_is_prolonged_with_its_addresses_or_not_at_all(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    world.lease(addresses(required=[11]), start=5 * HOUR)
    assert world.change(lease, end=NOON + 5 * HOUR).window.end == NOON + 5 * HOUR
    with pytest.raises(
        NotEnoughResources, match="203.0.113.11 .* is in use by the reservation, and promised to another"
    ):
        world.change(lease, end=NOON + 6 * HOUR)
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


def test_many_reservations_of_a_lease_shrink_together(world):
    lease = world.lease(*[addresses(2) for _ in range(5)])
    world.run()
    changes = tuple(ReservationChange(r.id, {"amount": 1}) for r in lease.reservations)
    assert world.change(lease, reservations=changes).status is LeaseStatus.ACTIVE
    assert set(in_cloud(world)) == promised(world, lease)
    assert len(in_cloud(world)) == 5


def test_what_a_start_that_failed_has_made_is_not_let_go_by_a_change(world):
    lease = world.lease(addresses(3))
    world.faults.fail_before("set_address_tags", CloudRefused("no"))
    world.run()
    assert world.now(lease).status is LeaseStatus.ERROR
    assert len(in_cloud(world)) == 3
    with pytest.raises(WrongState, match="could not be started, and gets no other resources; try again with new dates"):
        resized(world, lease, amount=1)
    assert promised(world, lease) == set(in_cloud(world))
    world.run_to(NOON + 3 * HOUR)
    assert in_cloud(world) == {}


def test_a_start_takes_back_what_an_earlier_one_made_and_could_not_tag(world):
    lease = world.lease(addresses(2, required=[10, 11]), start=HOUR)
    world.simulated.network.create_floating_ip(
        network_id="public",
        subnet_id="public-subnet",
        address=ip(12),
        project_id=PROJECT,
        description=f"reservation:{lease.reservations[0].id}",
    )
    world.run_to(NOON + HOUR)
    assert set(in_cloud(world)) == promised(world, lease) == {10, 11}
