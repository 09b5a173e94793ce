# SPDX-License-Identifier: Apache-2.0
"""What the project gets at the start, and what is checked before."""

from __future__ import annotations

import pytest

from blazar.manager.common.runtime import tasks_of
from blazar.model.base.errors import Conflict
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.resources.contract.values import Unusable
from blazar.resources.floating_ips.registration import AddressRegistration
from blazar.resources.floating_ips.type import VirtualFloatingIp
from tests.resources.floating_ips.steps import (
    DOWN,
    HOUR,
    KIND,
    MINUTE,
    created,
    in_cloud,
    ip,
    promised,
)
from tests.world import NOON, PROJECT, World, addresses


def start_of(world: World, lease):
    """Start the first reservation of a lease as a manager would, and let every error out."""
    allocations = world.store.calendar.of_lease(lease.id)
    resources = world.store.resources.by_ids({a.resource_id for a in allocations})
    (task, *_) = tasks_of(world.now(lease), allocations, resources)
    return VirtualFloatingIp(world.simulated.cloud).start(task)


def test_from_the_start_on_the_project_has_the_addresses_with_the_tags_that_others_know(world):
    lease = world.lease(addresses(2, required=[10]))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert set(in_cloud(world)) == promised(world, lease)
    for found in in_cloud(world).values():
        assert (found.project_id, found.network_id, found.attached) == (PROJECT, "public", False)
        assert found.tags == {"blazar", f"reservation:{lease.reservations[0].id}"}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "call", ["create_floating_ip", "set_address_tags", "floating_ips", "network", "used_addresses"]
)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_start_is_tried_again_until_all_is_there_and_once(world, call, phase):
    lease = world.lease(addresses(3), start=HOUR)
    getattr(world.faults, f"fail_{phase}")(call, DOWN, times=2)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert set(in_cloud(world)) == promised(world, lease)
    sign = f"reservation:{lease.reservations[0].id}"
    assert all(found.tags == {"blazar", sign} for found in in_cloud(world).values())
    world.run_to(NOON + 3 * HOUR)
    assert in_cloud(world) == {}


@pytest.mark.sample(3)
@pytest.mark.parametrize("call", ["create_floating_ip", "set_address_tags"])
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_lease_that_is_deleted_after_a_crash_in_its_start_leaves_nothing(world, call, phase, number):
    lease = world.lease(addresses(3))
    calls = []

    class Killed(BaseException):
        """The manager is gone."""

    def kill(name, when):
        if (name, when) == (call, phase):
            calls.append(name)
            if len(calls) == number:
                raise Killed

    world.faults.on_call = kill
    with pytest.raises(Killed):
        world.run()
    world.faults.on_call = None
    assert len(in_cloud(world)) >= number - 1
    world.clock.by(minutes=1)
    world.manager = world.another_manager()
    world.manager.leases.delete(lease.id)
    world.run()
    world.clock.by(minutes=1)
    world.run()
    assert (world.manager.leases.all(None), in_cloud(world)) == ((), {})


def test_an_address_that_another_project_has_is_not_touched_and_the_others_are_there(world):
    lease = world.lease(addresses(3, required=[10, 11, 12]), start=HOUR)
    theirs = created(world, 11, project="art")
    with pytest.raises(Unusable) as raised:
        start_of(world, lease)
    (reason,) = raised.value.reasons.values()
    assert reason == "203.0.113.11 is a floating IP of project art"
    assert set(in_cloud(world)) == {10, 11, 12}
    assert in_cloud(world)[11] == theirs
    names = {r.id: r.name for r in world.store.resources.of_kind(KIND)}
    assert [names[id_] for id_ in raised.value.reasons] == ["203.0.113.11 on network public"]
    world.manager.leases.delete(lease.id)
    world.run()
    assert set(in_cloud(world).values()) == {theirs}


def test_an_address_that_the_project_has_by_other_means_is_not_touched_either(world):
    lease = world.lease(addresses(required=[10]), start=HOUR)
    theirs = created(world, 10)
    with pytest.raises(Unusable):
        start_of(world, lease)
    world.manager.leases.delete(lease.id)
    world.run()
    assert in_cloud(world) == {10: theirs}


def test_an_address_that_is_taken_while_it_is_being_created_is_reported(world):
    lease = world.lease(addresses(required=[10]), start=HOUR)

    def sneak(name, phase):
        if (name, phase) == ("create_floating_ip", "before"):
            world.faults.on_call = None
            created(world, 10, project="art")

    world.faults.on_call = sneak
    with pytest.raises(Unusable, match="project art"):
        start_of(world, lease)
    assert in_cloud(world)[10].tags == frozenset()


def test_a_floating_ip_that_its_user_deletes_at_once_is_made_again(world):
    lease = world.lease(addresses(required=[10]), start=HOUR)
    deleted = []

    def delete(name, phase):
        if (name, phase) == ("set_address_tags", "before") and not deleted:
            deleted.extend(world.simulated.network.floating_ips())
            world.simulated.network.delete_floating_ip(deleted[0].id)

    world.faults.on_call = delete
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert in_cloud(world)[10].id != deleted[0].id


def test_a_quota_that_is_used_up_is_told_as_the_cloud_tells_it(world):
    lease = world.lease(addresses(required=[10]))
    world.faults.fail_before("create_floating_ip", Conflict("Neutron: Quota exceeded for resources: ['floatingip']."))
    world.run()
    failed = world.now(lease)
    assert failed.reservations[0].status is ReservationStatus.ERROR
    assert "Quota exceeded" in failed.event(EventType.START).reason


CHANGES = {
    "gateway": ({"gateway": "203.0.113.10"}, "is the gateway of subnet"),
    "pool": ({"pools": [["203.0.113.2", "203.0.113.10"]]}, "is in an allocation pool of subnet"),
    "gone": ({"gone": True}, "its subnet public-subnet is gone"),
}


@pytest.mark.parametrize(("change", "says"), CHANGES.values(), ids=CHANGES)
def test_what_an_operator_has_changed_since_is_seen_before_anything_is_made(world, change, says):
    lease = world.lease(addresses(2, required=[10, 11]), start=HOUR)
    world.simulated.operators.change_subnet("public", **change)
    with pytest.raises(Unusable, match=says) as raised:
        start_of(world, lease)
    assert set(in_cloud(world)) == ({11} if "gone" not in change else set())
    assert len(raised.value.reasons) == (2 if "gone" in change else 1)


def test_a_port_at_an_address_is_seen_before_anything_is_made(world):
    lease = world.lease(addresses(required=[10]), start=HOUR)
    world.simulated.operators.take_address("public", ip(10))
    with pytest.raises(Unusable, match="203.0.113.10 is in use by port"):
        start_of(world, lease)
    assert in_cloud(world) == {}


def test_faults_tells_of_every_address_that_is_not_in_order_in_a_few_calls(world):
    lease = world.lease(addresses(2, required=[10, 11]), hours=9)
    world.run()
    created(world, 12, project="art")
    world.simulated.operators.take_address("public", ip(13))
    registration = AddressRegistration(world.simulated.cloud.network)
    before = world.faults.calls.total()
    faults = registration.find_faults(world.store.resources.of_kind(KIND), world.store.calendar.names_by_reservation)
    assert world.faults.calls.total() - before == 3
    names = {r.id: r.name.split()[0] for r in world.store.resources.of_kind(KIND)}
    assert {names[id_]: reason for id_, reason in faults.items()} == {
        ip(12): f"{ip(12)} is a floating IP of project art",
        ip(13): f"{ip(13)} is in use by {world.simulated.network.used_addresses('public', [ip(13)])[ip(13)]}",
    }
    world.simulated.operators.change_subnet("public", pools=[[ip(14), ip(15)]])
    assert (
        len(registration.find_faults(world.store.resources.of_kind(KIND), world.store.calendar.names_by_reservation))
        == 4
    )
    with world.simulated.change_state() as state:
        state.networks["public"].external = False
    faults = registration.find_faults(world.store.resources.of_kind(KIND), world.store.calendar.names_by_reservation)
    assert all("is no longer external" in reason for reason in faults.values())
    with world.simulated.change_state() as state:
        del state.networks["public"]
    faults = registration.find_faults(world.store.resources.of_kind(KIND), world.store.calendar.names_by_reservation)
    assert (len(faults), all("network is gone" in reason for reason in faults.values())) == (10, True)
    assert registration.find_faults((), world.store.calendar.names_by_reservation) == {}
    assert world.now(lease).status is LeaseStatus.ACTIVE
