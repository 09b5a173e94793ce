# SPDX-License-Identifier: Apache-2.0
"""What is left in the cloud of leases that are over is found and ended; what nobody knows is reported and stays."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.segments import Segment
from blazar.manager.common.settings import Settings
from blazar.manager.events import sweep
from blazar.manager.events.sweep import Sweep
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.resources.resource import FLOATING_IP, HOST
from blazar.resources.floating_ips.registration import BLAZAR, reservation_tag
from blazar.resources.hosts.aggregates.reservations import CLOSED
from blazar.resources.instances.reservation_flavor import flavor_name, resource_class
from blazar.store.problems import findings
from tests.world import NOON, PROJECT, World, a_host, a_network, addresses, instances, volumes

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def swept(world: World) -> int:
    found = world.manager.sweep.run_once()
    world.run()
    return found


def a_lease_that_is_over(world: World, *rooms, deleted: bool = False):
    lease = world.lease(*rooms)
    world.run()
    if deleted:
        world.manager.leases.delete(lease.id)
        world.run()
    else:
        world.run_to(lease.window.end + MINUTE)
        assert world.now(lease).status is LeaseStatus.TERMINATED
    return world.now(lease)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_host_in_the_aggregate_of_a_lease_that_is_over_returns_to_the_freepool(world, deleted):
    lease = a_lease_that_is_over(world, a_host(), deleted=deleted)
    reservation = lease.reservations[0].id
    cloud = world.simulated
    made = cloud.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    zone = next(a for a in cloud.compute.aggregates() if a.name.startswith("az-") and "node-1" in a.hosts)
    cloud.compute.remove_host(zone.id, "node-1")
    cloud.compute.add_host(made.id, "node-1")
    cloud.compute.remove_host(cloud.compute.aggregate("freepool").id, "node-1")
    assert swept(world) == 1
    assert world.pool() == {"node-1", "node-2", "node-3"}
    assert cloud.compute.aggregate(reservation) is None
    assert world.now(lease).event(EventType.CLEAN_UP).status is EventStatus.DONE
    assert world.now(lease).status is lease.status
    assert swept(world) == 0


def test_flavor_group_class_slots_and_aggregate_of_a_lease_that_is_over_go(world):
    lease = a_lease_that_is_over(world, instances(2))
    reservation = lease.reservations[0].id
    (host,) = world.store.calendar.ever_assigned(lease.id)[reservation]
    name = world.store.resources.by_ids([host])[host].name
    cloud = world.simulated
    cloud.compute.create_flavor(Flavor(reservation, flavor_name(reservation), 1, 1, 1))
    cloud.compute.create_server_group(flavor_name(reservation), "affinity", "physics")
    cloud.compute.create_aggregate(reservation, None, {"reservation": reservation})
    cloud.placement.create_resource_class(resource_class(reservation))
    cloud.placement.set_inventory(name, resource_class(reservation), 2)
    assert swept(world) == 1
    assert cloud.compute.flavor(reservation) is None
    assert cloud.compute.aggregate(reservation) is None
    assert cloud.compute.server_groups() == ()
    assert cloud.placement.resource_classes() == frozenset()
    assert cloud.placement.reserved_capacity(name, resource_class(reservation)) is None


@pytest.mark.parametrize("tagged", [True, False])
def test_floating_ips_of_a_lease_that_is_over_go(world, tagged):
    world.register_addresses(10)
    lease = a_lease_that_is_over(world, addresses())
    sign = reservation_tag(lease.reservations[0].id)
    cloud = world.simulated
    made = cloud.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address="203.0.113.10", project_id="physics", description=sign
    )
    if tagged:
        cloud.network.set_address_tags(made.id, {BLAZAR, sign})
    assert swept(world) == 1
    assert cloud.network.floating_ips() == ()


def test_what_is_of_a_live_lease_or_of_nobody_here_stays(world, caplog):
    world.register_addresses(10)
    pending, active = world.lease(instances(), start=HOUR), world.lease(a_host(), addresses())
    world.run()
    cloud = world.simulated
    unknown = "0" * 36
    cloud.compute.create_flavor(Flavor(unknown, flavor_name(unknown), 1, 1, 1))
    before = (
        cloud.compute.aggregates(),
        cloud.compute.flavor_names(),
        cloud.network.floating_ips(),
        cloud.placement.resource_classes(),
    )
    with caplog.at_level(logging.WARNING):
        assert swept(world) == 0
        assert swept(world) == 0
    assert (
        cloud.compute.aggregates(),
        cloud.compute.flavor_names(),
        cloud.network.floating_ips(),
        cloud.placement.resource_classes(),
    ) == before
    told = [record.getMessage() for record in caplog.records if unknown in record.getMessage()]
    assert len(told) == 1
    assert {world.now(lease).status for lease in (pending, active)} == {LeaseStatus.PENDING, LeaseStatus.ACTIVE}


def test_a_dry_run_reports_and_leaves_everything(a_world, caplog):
    world = a_world(settings=Settings(sweep_dry_run=True))
    lease = a_lease_that_is_over(world, a_host())
    reservation = lease.reservations[0].id
    world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    with caplog.at_level(logging.WARNING):
        assert swept(world) == 1
    assert lease.id in caplog.text
    assert world.simulated.compute.aggregate(reservation) is not None


def test_what_cannot_be_ended_now_is_tried_again(world):
    lease = a_lease_that_is_over(world, a_host(), deleted=True)
    reservation = lease.reservations[0].id
    world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    world.faults.fail_before("delete_aggregate", ConnectionError("no"))
    assert swept(world) == 1
    # A second sweep meanwhile makes no second event.
    assert swept(world) == 1
    world.run_to(world.clock.now() + MINUTE)
    assert world.simulated.compute.aggregate(reservation) is None
    events = [e for e in world.now(lease).events if e.event_type == EventType.CLEAN_UP]
    assert [e.status for e in events] == [EventStatus.DONE]


def test_a_service_that_does_not_answer_keeps_nobody_from_what_is_left_elsewhere(world, caplog):
    """Each type lists its own: while Heat is down for days, hosts return and quotas go."""
    lease = a_lease_that_is_over(world, a_host())
    reservation = lease.reservations[0].id
    world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    world.register_pools(1)
    world.faults.fail_before("service_volumes", CloudUnavailable("Cinder is down"))
    assert swept(world) == 1
    assert world.simulated.compute.aggregate(reservation) is None
    assert "Leftovers of virtual:volume cannot be listed" in caplog.text


def test_what_is_left_is_ended_although_the_lease_is_deleted_before_that_is_done(world):
    lease = a_lease_that_is_over(world, a_host())
    reservation = lease.reservations[0].id
    world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    world.faults.fail_before("delete_aggregate", ConnectionError("no"))
    assert swept(world) == 1
    world.manager.leases.delete(lease.id)
    world.run_to(world.clock.now() + MINUTE)
    assert world.now(lease).deleted_at is not None
    swept(world)
    assert world.simulated.compute.aggregate(reservation) is None
    assert swept(world) == 0


def test_what_is_left_again_and_again_makes_no_longer_record(world):
    lease = a_lease_that_is_over(world, a_host())
    reservation = lease.reservations[0].id
    for _ in range(3):
        world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
        assert swept(world) == 1
        assert world.simulated.compute.aggregate(reservation) is None
    events = [e for e in world.now(lease).events if e.event_type == EventType.CLEAN_UP]
    assert [e.status for e in events] == [EventStatus.DONE]


def test_a_host_that_was_closed_to_preemptible_servers_for_a_lease_that_is_over_is_opened(world):
    lease = a_lease_that_is_over(world, a_host(), deleted=True)
    cloud = world.simulated
    freepool = cloud.compute.aggregate("freepool")
    cloud.compute.set_aggregate_metadata(freepool.id, {CLOSED + "node-1": lease.reservations[0].id})
    assert swept(world) == 1
    assert CLOSED + "node-1" not in cloud.compute.aggregate("freepool").metadata
    assert swept(world) == 0


def test_a_host_that_could_not_return_to_its_zone_does_so_as_soon_as_nova_lets_it(world):
    zones = {a.name: set(a.hosts) for a in world.aggregates()}
    cloud = world.simulated
    lease = world.lease(a_host(3))
    world.run()
    cloud.operators.host_returns(cloud.operators.host_vanishes("node-1"))
    stranger = cloud.users.boot_server("stranger", project_id="art", user_id="frida", host="node-1")
    world.run_to(lease.window.end)
    for _ in range(2):
        assert swept(world) == 1
        assert world.pool() == {"node-1", "node-2", "node-3"}
        assert CLOSED + "node-1" in cloud.compute.aggregate("freepool").metadata
    cloud.compute.begin_server_deletion(stranger.id)
    assert swept(world) == 1
    assert {a.name: set(a.hosts) for a in world.aggregates()} == zones
    assert cloud.compute.aggregate("freepool").metadata == {}
    assert swept(world) == 0
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_work_that_is_taken_over_brings_a_sweep_soon(world, monkeypatch):
    lease = world.lease(start=HOUR)
    world.clock.to(NOON + HOUR)
    woken = []
    monkeypatch.setattr(Sweep, "wake", lambda sweep: woken.append(sweep))
    other = world.another_manager()

    def stop_here(name, phase):
        raise KeyboardInterrupt

    world.faults.on_call = stop_here
    with pytest.raises(KeyboardInterrupt):
        world.run()
    world.faults.on_call = None
    world.clock.by(seconds=31)
    other.engine.run_due()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert woken == [other.sweep]


def test_a_host_is_well_only_in_the_aggregate_of_a_reservation_that_holds_it(world):
    lease = world.lease(a_host())
    world.run()
    world.manager.monitor.run_once()
    assert all(host.failure is None for host in world.manager.resources.all(HOST))
    (held,) = world.hosts_of(lease)
    other = next(host.name for host in world.manager.resources.all(HOST) if host.name != held)
    cloud = world.simulated
    pool = cloud.compute.aggregate(lease.reservations[0].id)
    for aggregate in cloud.compute.aggregates():
        if other in aggregate.hosts:
            cloud.compute.remove_host(aggregate.id, other)
    cloud.compute.add_host(pool.id, other)
    for _ in range(2):
        world.manager.monitor.run_once()
    failures = {host.name: host.failure for host in world.manager.resources.all(HOST)}
    assert "does not hold it" in failures[other]
    assert failures[held] is None


def test_an_address_is_well_only_as_a_floating_ip_of_a_reservation_that_holds_it(world):
    world.register_addresses(10, 11)
    lease = world.lease(addresses())
    world.run()
    (held,) = world.hosts_of(lease)
    free = next(a for a in world.manager.resources.all(FLOATING_IP) if a.name != held)
    sign = reservation_tag(lease.reservations[0].id)
    cloud = world.simulated
    stray = cloud.network.create_floating_ip(
        network_id="public",
        subnet_id="public-subnet",
        address=free.name.split()[0],
        project_id="physics",
        description=sign,
    )
    cloud.network.set_address_tags(stray.id, {BLAZAR, sign})
    for _ in range(2):
        world.manager.monitor.run_once()
    failures = {address.name: address.failure for address in world.manager.resources.all(FLOATING_IP)}
    assert failures[free.name]
    assert failures[held] is None


def access(world: World) -> list[str]:
    """Return the projects that can use the type of the one pool."""
    with world.simulated.inspect() as state:
        return [project for each in state.block.types.values() for project in each.projects]


@pytest.mark.parametrize("deleted", [False, True])
def test_access_to_volume_types_of_leases_that_are_over_goes_though_it_has_no_mark(world, deleted):
    world.register_pools(1)
    lease = a_lease_that_is_over(world, volumes(2, mode="quota"), deleted=deleted)
    other = world.lease(volumes(1, mode="quota"), start=10 * HOUR)
    (type_,) = world.simulated.cloud.volumes.volume_types()
    world.simulated.cloud.volumes.grant_volume_type(type_.id, PROJECT)
    world.simulated.volume_users.limit(PROJECT, **{"gigabytes_disks-1": 5, "volumes_disks-1": 5})
    made = world.simulated.volume_users.create(PROJECT, type_.id, 1)
    assert swept(world) == 1
    assert access(world) == []
    assert world.simulated.cloud.volumes.volume(made.id) is None
    assert swept(world) == 0
    assert world.now(lease).event(EventType.CLEAN_UP).status is EventStatus.DONE
    world.run_to(other.window.start)
    assert access(world) == [PROJECT]
    assert swept(world) == 0
    assert access(world) == [PROJECT]


def test_access_that_no_lease_ever_gave_stays(world):
    world.register_pools(1)
    (type_,) = world.simulated.cloud.volumes.volume_types()
    world.simulated.cloud.volumes.grant_volume_type(type_.id, PROJECT)
    assert swept(world) == 0
    assert access(world) == [PROJECT]


@pytest.mark.slow
def test_a_forged_mark_of_a_past_reservation_is_cleaned_up_less_and_less_often(world, caplog):
    """A network of another project bears the mark: it is not ours, and no clean-up removes it."""
    world.register_segments(101)
    lease = a_lease_that_is_over(world, a_network())
    users = world.simulated.network_users
    forged = users.network(Segment("vlan", "physnet1", 900), project_id="art")
    users.rename(forged.id, tags=["blazar", f"reservation:{lease.reservations[0].id}"])
    interval, began = world.settings.sweep_interval, []
    for number in range(6 * 24):
        before = world.now(lease).revision
        assert swept(world) == 1
        if world.now(lease).revision != before:
            began.append(number)
        world.clock.by(seconds=interval.total_seconds())
    assert began[:5] == [0, 1, 2, 4, 8]
    assert len(began) <= 12
    assert caplog.text.count("still bears the mark") == 1
    (left,) = world.simulated.segments.segment_networks(id=forged.id)
    assert left.project_id == "art"
    # When it is gone for a while, it counts as something new.
    users.rename(forged.id)
    assert swept(world) == 0
    users.rename(forged.id, tags=["blazar", f"reservation:{lease.reservations[0].id}"])
    before = world.now(lease).revision
    assert (swept(world), world.now(lease).revision > before) == (1, True)


def test_what_is_left_of_more_leases_than_findings_are_kept_goes_too(world, monkeypatch):
    monkeypatch.setattr(findings, "MOST", 1)
    left = [a_lease_that_is_over(world, a_host()).reservations[0].id for _ in range(3)]
    for reservation in left:
        world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    assert swept(world) == 3
    assert [world.simulated.compute.aggregate(reservation) for reservation in left] == [None] * 3


def test_marks_for_which_there_is_no_finding_have_their_turns(world, monkeypatch):
    """Networks of another project bear the marks: no clean-up removes them, and none keeps the others from theirs."""
    monkeypatch.setattr(findings, "MOST", 0)
    monkeypatch.setattr(sweep, "UNRECORDED", 1)
    world.register_segments(101)
    users = world.simulated.network_users
    leases = [a_lease_that_is_over(world, a_network()) for _ in range(3)]
    for number, lease in enumerate(leases):
        forged = users.network(Segment("vlan", "physnet1", 900 + number), project_id="art")
        users.rename(forged.id, tags=["blazar", f"reservation:{lease.reservations[0].id}"])
    for number in range(3):
        assert [world.now(lease).event(EventType.CLEAN_UP) for lease in leases].count(None) == 3 - number
        assert swept(world) == 3
    assert all(world.now(lease).event(EventType.CLEAN_UP).status is EventStatus.DONE for lease in leases)


def test_a_type_that_tells_nothing_the_second_time_keeps_its_findings_and_their_tries(world, monkeypatch):
    lease = a_lease_that_is_over(world, a_host())
    reservation = lease.reservations[0].id
    world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    world.manager.sweep.run_once()
    of_type, asked = Sweep._of_type, []

    def tell_once(sweep, kind):
        asked.append(kind.resource_type)
        return of_type(sweep, kind) if asked.count(kind.resource_type) == 1 else None

    monkeypatch.setattr(Sweep, "_of_type", tell_once)
    assert world.manager.sweep.run_once() == 0
    assert asked.count("physical:host") == 2
    with world.engine.connect() as connection:
        (finding,) = findings.read_findings(connection)
    assert (finding.key, finding.tries) == (reservation, 1)


@pytest.mark.slow
def test_pauses_of_a_year_of_sweeps_that_are_far_apart_can_be_counted(a_world):
    world = a_world(settings=Settings(sweep_interval=timedelta(days=7)))
    world.register_segments(101)
    lease = a_lease_that_is_over(world, a_network())
    users = world.simulated.network_users
    forged = users.network(Segment("vlan", "physnet1", 900), project_id="art")
    users.rename(forged.id, tags=["blazar", f"reservation:{lease.reservations[0].id}"])
    for _ in range(52):
        assert swept(world) == 1
        world.clock.by(seconds=timedelta(days=7).total_seconds())
