# SPDX-License-Identifier: Apache-2.0
"""Reservations of floating IPs, from registration to release."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports import FloatingIp
from blazar.manager.lease.tasks import tasks_with
from blazar.model.errors import (
    CloudRefused,
    CloudUnavailable,
    Conflict,
    InvalidInput,
    NotEnoughResources,
    NotFound,
)
from blazar.model.lease import NO_CONTENT, EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.requests import LeaseChange, ReservationChange
from blazar.model.resource import FLOATING_IP, HOST, ResourceKind
from blazar.resources.base import Unusable
from blazar.resources.floating_ips.registration import AddressRegistration
from blazar.resources.floating_ips.type import VirtualFloatingIp
from blazar.resources.hosts.type import HostSettings
from tests.world import NOON, PROJECT, World, a_host, address_request, addresses

DOWN = CloudUnavailable("the cloud does not answer")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
KIND = ResourceKind.FLOATING_IP


def ip(number: int) -> str:
    return f"203.0.113.{number}"


def promised(world: World, lease) -> set[int]:
    """The last numbers of the addresses that are promised to a lease."""
    found = world.store.resources.by_ids({a.resource_id for a in world.store.calendar.of_lease(lease.id)})
    return {int(r.attributes["floating_ip_address"].rpartition(".")[2]) for r in found.values() if r.kind is KIND}


def in_cloud(world: World) -> dict[int, FloatingIp]:
    """All floating IPs that there are, by the last number."""
    with world.simulated.inspect() as state:
        ids = {found.address: found.id for found in state.floating_ips.values()}
    found = {f.address: f for f in world.simulated.network.floating_ips()} if ids else {}
    return {int(address.rpartition(".")[2]): f for address, f in found.items()}


def created(world: World, number: int, *, project: str = PROJECT, description: str = "") -> FloatingIp:
    """A floating IP that somebody has without us."""
    return world.simulated.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address=ip(number), project_id=project, description=description
    )


def resized(world: World, lease, index: int = 0, **values):
    if "required" in values:
        values["required_floatingips"] = [ip(n) for n in values.pop("required")]
    change = ReservationChange(lease.reservations[index].id, values)
    return world.manager.leases.update(lease.id, LeaseChange(reservations=(change,)))


def start_of(world: World, lease):
    """Start the first reservation of a lease as a manager would, and let every error out."""
    (task, *_) = tasks_with(world.store, world.now(lease), world.store.calendar.of_lease(lease.id))
    return VirtualFloatingIp(world.simulated.cloud, HostSettings()).start(task)


@pytest.fixture
def world(a_world):
    """Ten addresses, .10 to .19, and no hosts."""
    made = a_world(hosts=0)
    made.register_addresses(*range(10, 20))
    return made


# Registration


def test_an_address_is_registered_with_its_subnet_and_an_id_of_its_own(a_world):
    world = a_world(hosts=0)
    (found,) = world.register_addresses(10)
    assert found.attributes == {
        "floating_network_id": "public",
        "subnet_id": "public-subnet",
        "floating_ip_address": "203.0.113.10",
    }
    assert (found.reservable, found.capabilities, found.kind) == (True, {}, KIND)
    assert world.manager.resources.all(FLOATING_IP) == (found,)
    assert world.manager.resources.one(FLOATING_IP, found.external_id) == found
    assert world.simulated.network.floating_ips() == ()


def test_the_same_address_is_registered_once_however_it_is_written(a_world):
    world = a_world(hosts=0)
    with world.simulated.change_state() as state:
        state.networks["public"].subnets[0].cidr = "2001:db8::/64"
        state.networks["public"].subnets[0].gateway = "2001:db8::1"
        state.networks["public"].subnets[0].pools = []
    found = world.manager.resources.register(FLOATING_IP, address_request("public", "2001:DB8:0:0::0010"))
    assert found.attributes["floating_ip_address"] == "2001:db8::10"
    with pytest.raises(Conflict, match="registered already"):
        world.manager.resources.register(FLOATING_IP, address_request("public", "2001:db8::10"))


@pytest.mark.parametrize(
    ("network", "address", "error", "says"),
    [
        ("public", "203.0.113.300", InvalidInput, "floating_ip_address"),
        ("public", "", InvalidInput, "give an IP address"),
        ("public", "fe80::1%eth0", InvalidInput, "give an IP address"),
        ("public", "203.0.113.010", InvalidInput, "give an IP address"),
        ("nowhere", "203.0.113.10", InvalidInput, "there is no such network"),
        ("private", "10.0.0.10", InvalidInput, "not external"),
        ("public", "198.51.100.10", NotFound, "its subnets are: 203.0.113.0/24"),
        ("public", "203.0.113.1", InvalidInput, "gateway"),
        ("public", "203.0.113.0", InvalidInput, "subnet public-subnet itself"),
        ("public", "203.0.113.255", InvalidInput, "broadcast"),
        ("public", "203.0.113.128", InvalidInput, "allocation pool"),
        ("public", "203.0.113.254", InvalidInput, "allocation pool"),
        ("public", "203.0.113.66", Conflict, "port .* .network:router_gateway"),
        ("public", "203.0.113.77", Conflict, "floating IP of project art"),
    ],
)
def test_an_address_that_cannot_be_promised_is_not_registered(a_world, network, address, error, says):
    world = a_world(hosts=0)
    with world.simulated.change_state() as state:
        public = state.networks["public"]
        state.networks["private"] = type(public)(
            "private", "private", False, [type(public.subnets[0])("s", "10.0.0.0/8")]
        )
    world.simulated.operators.take_address("public", ip(66))
    created(world, 77, project="art")
    with pytest.raises(error, match=says):
        world.manager.resources.register(FLOATING_IP, address_request(network, address))
    assert world.manager.resources.all(FLOATING_IP) == ()


def test_a_subnet_without_a_gateway_has_addresses_all_the_same(a_world):
    world = a_world(hosts=0)
    with world.simulated.change_state() as state:
        state.networks["public"].subnets[0].gateway = None
    world.register_addresses(1)


def test_an_address_is_forgotten_only_while_it_is_promised_to_nobody(world):
    lease = world.lease(addresses(required=[10]), start=HOUR)
    address = next(a for a in world.manager.resources.all(FLOATING_IP) if a.attributes["floating_ip_address"] == ip(10))
    with pytest.raises(Conflict, match=f"the floating IP is allocated to lease {lease.id}"):
        world.manager.resources.unregister(FLOATING_IP, address.external_id)
    assert world.manager.resources.one(FLOATING_IP, address.external_id).reservable
    world.run_to(NOON + HOUR)
    with pytest.raises(Conflict):
        world.manager.resources.unregister(FLOATING_IP, address.external_id)
    world.run_to(NOON + 3 * HOUR)
    # The lease is still there, as it is after its end; its allocations are not.
    assert world.now(lease).status is LeaseStatus.TERMINATED
    world.manager.resources.unregister(FLOATING_IP, address.external_id)
    with pytest.raises(NotFound, match=f"Floating IP {address.external_id} not found"):
        world.manager.resources.one(FLOATING_IP, address.external_id)
    with pytest.raises(NotFound):
        world.manager.resources.unregister(FLOATING_IP, address.external_id)
    world.register_addresses(10)


def test_what_is_promised_of_addresses_is_told_by_address(world):
    lease = world.lease(addresses(required=[12]), start=HOUR)
    by_address = {
        p.resource.attributes["floating_ip_address"]: p for p in world.manager.resources.allocations(FLOATING_IP)
    }
    assert len(by_address) == 10
    (only,) = by_address[ip(12)].allocations
    assert (only.lease_id, only.window) == (lease.id, lease.window)
    id_ = by_address[ip(12)].resource.external_id
    assert world.manager.resources.allocations(FLOATING_IP, resource_id=id_) == (by_address[ip(12)],)
    assert world.manager.resources.allocations(HOST) == ()


# Parameters


def test_the_parameters_are_kept_as_clients_know_them(world):
    lease = world.lease(addresses("2", required=["203.0.113.10"]), start=HOUR)
    assert lease.reservations[0].parameters.values == {
        "network_id": "public",
        "amount": 2,
        "required_floatingips": ["203.0.113.10"],
        "before_end": "default",
    }
    assert lease.reservations[0].cloud_ids == NO_CONTENT
    assert (lease.status, promised(world, lease) >= {10}) == (LeaseStatus.PENDING, True)
    assert in_cloud(world) == {}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"amount": 0}, "amount is 0"),
        ({"amount": -1}, "amount is -1"),
        ({"amount": ""}, "amount"),
        ({"amount": None}, "amount"),
        ({"amount": 1.5}, "amount"),
        ({"amount": 2**31}, "amount"),
        ({"network": ""}, "network_id"),
        ({"network": 5}, "network_id"),
        ({"network": None}, "network_id"),
        ({"network": "n" * 256}, "network_id"),
        ({"required": "203.0.113.10"}, "give a list"),
        ({"required": {"203.0.113.10": 1}}, "give a list"),
        ({"required": None}, "give a list"),
        ({"required": ["203.0.113"]}, r"required_floatingips\[0\]"),
        ({"amount": 2, "required": [10, "x"]}, r"required_floatingips\[1\]"),
        ({"amount": 2, "required": [10, None]}, r"required_floatingips\[1\]"),
        ({"amount": 2, "required": [3405803786]}, "required_floatingips"),
        ({"amount": 1, "required": [10, 11]}, "2 addresses, and amount is 1"),
        ({"amount": 3, "required": [10, 11, 10]}, "203.0.113.10 more than once"),
        ({"amount": 1, "required": ["198.51.100.1"]}, "198.51.100.1 .*no such floating IP is registered"),
        ({"amount": 1, "required": [99]}, "203.0.113.99 on network public: no such floating IP is registered"),
        ({"amount": 1, "required": [10], "network": "other"}, "203.0.113.10 on network other: no such"),
        ({"before_end": "snapshot"}, "before_end"),
        ({"before_end": "migration"}, "before_end"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_the_field_named(world, wrong, says):
    with pytest.raises(InvalidInput, match=says):
        world.lease(addresses(**wrong), start=HOUR)
    assert world.manager.leases.all(None) == ()


def test_a_request_for_too_many_is_refused_with_the_number_available(world):
    world.lease(addresses(7), start=HOUR)
    with pytest.raises(NotEnoughResources, match="at least 4 requested, 10 match, 3 of them free"):
        world.lease(addresses(4), start=2 * HOUR)
    with pytest.raises(NotEnoughResources, match="Not enough floating IPs available"):
        world.lease(addresses(2**31 - 1), start=HOUR)
    with pytest.raises(NotEnoughResources, match="0 match"):
        world.lease(addresses(network="elsewhere"), start=HOUR)


@pytest.mark.parametrize("default", ["snapshot", "migration", "", "none"])
def test_an_operators_default_that_saves_servers_comes_to_a_notification(a_world, default):
    world = a_world(hosts=0, host_settings=HostSettings(before_end=default))
    world.register_addresses(10)
    lease = world.lease(addresses())
    world.run_to(NOON + HOUR)
    told = "lease.event.before_end_lease" in world.notifier.types
    assert (told, world.now(lease).status) == (default != "none", LeaseStatus.ACTIVE)


# The calendar


def test_an_address_is_promised_once_at_a_time_and_again_afterwards(world):
    one = world.lease(addresses(required=[10]), start=HOUR)
    with pytest.raises(NotEnoughResources, match="203.0.113.10 .* is promised to another lease"):
        world.lease(addresses(2, required=[10]), start=2 * HOUR)
    two = world.lease(addresses(required=[10]), start=3 * HOUR)
    assert promised(world, one) == promised(world, two) == {10}


def test_the_cleaning_time_is_kept_between_two_users_of_an_address(a_world):
    world = a_world(hosts=0, cleaning_time=10 * MINUTE)
    world.register_addresses(10)
    lease = world.lease(addresses(required=[10]), start=HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(addresses(required=[10]), start=3 * HOUR + 9 * MINUTE)
    world.lease(addresses(required=[10]), start=3 * HOUR + 10 * MINUTE)
    with pytest.raises(NotEnoughResources):
        world.change(lease, end=NOON + 3 * HOUR + MINUTE)


def test_several_reservations_of_a_lease_never_share_an_address(world):
    lease = world.lease(addresses(4, required=[10, 11]), addresses(4, required=[12]), addresses(2), start=HOUR)
    held = [
        {a.resource_id for a in world.store.calendar.of_lease(lease.id) if a.reservation_id == r.id}
        for r in lease.reservations
    ]
    assert [len(part) for part in held] == [4, 4, 2]
    assert promised(world, lease) == set(range(10, 20))
    with pytest.raises(NotEnoughResources, match="required or in use by another reservation of the lease"):
        world.lease(addresses(required=[10]), addresses(required=[10]), start=9 * HOUR)


def test_what_one_reservation_requires_is_left_to_it_by_the_others(world):
    lease = world.lease(addresses(9), addresses(required=[10]), start=HOUR)
    names = {r.id: r.name for r in world.store.resources.of_kind(KIND)}
    (last,) = [a for a in world.store.calendar.of_lease(lease.id) if a.reservation_id == lease.reservations[1].id]
    assert names[last.resource_id] == "203.0.113.10 on network public"


def test_an_address_that_is_not_reservable_is_neither_taken_nor_required(world):
    broken = world.store.resources.of_kind(KIND)[0]
    world.store.resources.set_reservable(broken.id, False, at=world.clock.now())
    assert promised(world, world.lease(addresses(9), start=HOUR)) == set(range(11, 20))
    with pytest.raises(NotEnoughResources, match="203.0.113.10 on network public is not reservable"):
        world.lease(addresses(required=[10]), start=9 * HOUR)


def test_hosts_and_addresses_of_one_lease_come_and_go_together(a_world):
    world = a_world()
    world.register_addresses(10, 11)
    lease = world.lease(a_host(), addresses(2))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(world.pool(lease.reservations[0].id)) == 1
    assert set(in_cloud(world)) == {10, 11}
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(), addresses(1))
    assert len(world.manager.leases.all(None)) == 1
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


# The start


def test_from_the_start_on_the_project_has_the_addresses_with_the_tags_that_others_know(world):
    lease = world.lease(addresses(2, required=[10]))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert set(in_cloud(world)) == promised(world, lease)
    for found in in_cloud(world).values():
        assert (found.project_id, found.network_id, found.attached) == (PROJECT, "public", False)
        assert found.tags == {"blazar", f"reservation:{lease.reservations[0].id}"}


@pytest.mark.parametrize("call", ["create_floating_ip", "tag_floating_ip", "floating_ips", "network", "used_addresses"])
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


@pytest.mark.parametrize("call", ["create_floating_ip", "tag_floating_ip"])
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
        if (name, phase) == ("tag_floating_ip", "before") and not deleted:
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
    faults = registration.faults(world.store.resources.of_kind(KIND), world.store.calendar.resource_names)
    assert world.faults.calls.total() - before == 3
    names = {r.id: r.name.split()[0] for r in world.store.resources.of_kind(KIND)}
    assert {names[id_]: reason for id_, reason in faults.items()} == {
        ip(12): f"{ip(12)} is a floating IP of project art",
        ip(13): f"{ip(13)} is in use by {world.simulated.network.used_addresses('public', [ip(13)])[ip(13)]}",
    }
    world.simulated.operators.change_subnet("public", pools=[[ip(14), ip(15)]])
    assert len(registration.faults(world.store.resources.of_kind(KIND), world.store.calendar.resource_names)) == 4
    with world.simulated.change_state() as state:
        state.networks["public"].external = False
    faults = registration.faults(world.store.resources.of_kind(KIND), world.store.calendar.resource_names)
    assert all("is no longer external" in reason for reason in faults.values())
    with world.simulated.change_state() as state:
        del state.networks["public"]
    faults = registration.faults(world.store.resources.of_kind(KIND), world.store.calendar.resource_names)
    assert (len(faults), all("network is gone" in reason for reason in faults.values())) == (10, True)
    assert registration.faults((), world.store.calendar.resource_names) == {}
    assert world.now(lease).status is LeaseStatus.ACTIVE


# The end


def test_at_the_end_every_address_is_detached_and_gone_and_free_for_the_next(world):
    lease = world.lease(addresses(2, required=[10, 11]))
    world.run()
    world.simulated.users.attach(in_cloud(world)[10].id)
    following = world.lease(addresses(required=[10]), start=2 * HOUR, project="art")
    other = created(world, 50, project="art")
    world.run_to(NOON + 2 * HOUR)
    ended = world.now(lease)
    assert (ended.status, ended.event(EventType.END).status) == (LeaseStatus.TERMINATED, EventStatus.DONE)
    assert world.now(following).status is LeaseStatus.ACTIVE
    assert {n: f.project_id for n, f in in_cloud(world).items()} == {10: "art", 50: "art"}
    assert in_cloud(world)[50] == other


def test_addresses_that_their_users_deleted_keep_no_end_waiting(world):
    lease = world.lease(addresses(2))
    world.run()
    gone, stays = in_cloud(world).values()
    world.simulated.network.delete_floating_ip(gone.id)
    world.simulated.network.tag_floating_ip(stays.id, [])
    world.run_to(NOON + 2 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


@pytest.mark.parametrize("call", ["floating_ips", "detach_floating_ip", "delete_floating_ip"])
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("error", [DOWN, CloudRefused("not now")], ids=["down", "refused"])
def test_an_end_is_tried_again_until_nothing_is_left(world, call, phase, error):
    lease = world.lease(addresses(3))
    world.run()
    for found in in_cloud(world).values():
        world.simulated.users.attach(found.id)
    getattr(world.faults, f"fail_{phase}")(call, error, times=2)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    world.faults.clear()
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})


def test_one_address_that_cannot_be_deleted_keeps_the_others_not_waiting(world):
    world.lease(addresses(3))
    world.run()
    world.faults.fail_before("delete_floating_ip", CloudRefused("not this one"))
    world.clock.to(NOON + 2 * HOUR)
    world.run()
    assert len(in_cloud(world)) == 1


def test_a_pending_lease_that_is_deleted_deletes_nothing_of_the_one_before(world):
    active = world.lease(addresses(required=[10]), project="art")
    world.run()
    pending = world.lease(addresses(required=[10]), start=3 * HOUR)
    before = in_cloud(world)
    world.manager.leases.delete(pending.id)
    world.run()
    assert in_cloud(world) == before
    assert before[10].project_id == "art"
    # The same of one and the same project.
    own = world.lease(addresses(required=[10]), start=3 * HOUR, project="art")
    world.manager.leases.delete(own.id)
    world.run()
    assert in_cloud(world) == before
    assert world.now(active).status is LeaseStatus.ACTIVE


# Changes


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


@pytest.mark.parametrize("call", ["create_floating_ip", "tag_floating_ip"])
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
