# SPDX-License-Identifier: Apache-2.0
"""What reservations rely on in Nova's aggregates and servers."""

from __future__ import annotations

import pytest

from blazar.clouds.ports.compute import Migration, MigrationState
from blazar.model.base.errors import CloudRefused, Conflict, NotFound


@pytest.fixture
def compute(site):
    return site.cloud.compute


@pytest.fixture
def host(site):
    return site.hosts[0]


def pool(compute, name="pool", zone=None):
    return compute.create_aggregate(name, zone, {"blazar:owner": "physics"})


def hosts(compute, name):
    return set(compute.aggregate(name).hosts)


def test_a_hypervisor_is_found_by_its_exact_name_or_id(site, compute, host):
    found = compute.hypervisor(hostname=host)
    assert (found.hypervisor_hostname, found.service_name) == (host, host)
    assert found.id.isdigit()
    assert found.up
    assert found.enabled
    assert min(found.vcpus, found.memory_mb, found.local_gb) > 0
    assert compute.hypervisor(id=found.id) == found
    assert found in compute.hypervisors()
    for wrong in ({"hostname": host[:-1]}, {"hostname": host[:4]}, {"hostname": "%"}, {"hostname": ""}, {"id": "4711"}):
        with pytest.raises(NotFound):
            compute.hypervisor(**wrong)


def test_a_hypervisor_shows_the_zone_of_its_aggregate(site, compute, host):
    assert compute.hypervisor(hostname=host).availability_zone == site.zone
    compute.remove_host(compute.aggregate(site.zone).id, host)
    assert compute.hypervisor(hostname=host).availability_zone == "nova"


def test_a_hypervisor_shows_no_zone_while_it_is_disabled(site, compute, host):
    compute.disable_service(host, "contract")
    shown = compute.hypervisor(hostname=host)
    compute.enable_service(host)
    assert (shown.availability_zone, shown.disabled_reason) == ("", "contract")
    assert compute.hypervisor(hostname=host).availability_zone == site.zone


def test_an_aggregate_has_a_zone_metadata_and_hosts(compute):
    made = pool(compute, zone="blazar_x")
    assert (made.name, made.availability_zone, made.hosts) == ("pool", "blazar_x", ())
    assert made.metadata == {"blazar:owner": "physics"}
    assert compute.aggregate("pool") == made
    assert compute.aggregate("poo") is None
    assert made in compute.aggregates()


def test_the_name_of_an_aggregate_is_its_own(compute):
    first = pool(compute)
    with pytest.raises(Conflict):
        pool(compute, zone="blazar_x")
    assert compute.aggregate("pool") == first


def test_metadata_is_set_and_taken_away_key_by_key(compute):
    made = pool(compute)
    compute.set_aggregate_metadata(made.id, {"a": "1", "b": "2"})
    compute.set_aggregate_metadata(made.id, {"a": None, "nothing": None})
    assert compute.aggregate("pool").metadata == {"blazar:owner": "physics", "b": "2"}


def test_a_host_may_be_in_several_aggregates_without_a_zone(compute, host):
    one, other = pool(compute, "one"), pool(compute, "other")
    compute.add_host(one.id, host)
    compute.add_host(other.id, host)
    assert hosts(compute, "one") == hosts(compute, "other") == {host}


def test_a_host_joins_and_leaves_once(compute, host):
    made = pool(compute)
    compute.add_host(made.id, host)
    with pytest.raises(Conflict):
        compute.add_host(made.id, host)
    compute.remove_host(made.id, host)
    with pytest.raises(NotFound):
        compute.remove_host(made.id, host)
    with pytest.raises(NotFound):
        compute.add_host(made.id, "no-such-node")


def test_a_host_has_one_zone(site, compute, host):
    made = pool(compute, zone="blazar_x")
    with pytest.raises(Conflict):
        compute.add_host(made.id, host)
    compute.remove_host(compute.aggregate(site.zone).id, host)
    compute.add_host(made.id, host)


def test_a_host_with_servers_keeps_its_zone(site, compute):
    host, other = site.hosts[:2]
    made, plain = pool(compute, zone="blazar_x"), pool(compute, "plain")
    zone = compute.aggregate(site.zone).id
    site.boot(host)
    with pytest.raises(Conflict):
        compute.remove_host(zone, host)
    compute.add_host(plain.id, host)
    compute.remove_host(plain.id, host)
    compute.remove_host(zone, other)
    site.boot(other)
    with pytest.raises(Conflict):
        compute.add_host(made.id, other)


def test_an_aggregate_with_hosts_cannot_be_deleted(compute, host):
    made = pool(compute)
    compute.add_host(made.id, host)
    with pytest.raises(Conflict):
        compute.delete_aggregate(made.id)
    compute.remove_host(made.id, host)
    compute.delete_aggregate(made.id)
    for call in (
        lambda: compute.delete_aggregate(made.id),
        lambda: compute.add_host(made.id, host),
        lambda: compute.set_aggregate_metadata(made.id, {}),
    ):
        with pytest.raises(NotFound):
            call()


def test_servers_are_listed_by_host_and_deleted_whatever_their_state(site, compute):
    host, other = site.hosts[:2]
    servers = [site.boot(host), site.boot(host, locked=True), site.boot(host, status="ERROR")]
    site.boot(other)
    assert {server.id for server in compute.servers_on(host)} == {server.id for server in servers}
    assert [server.id for server in compute.servers_on(host) if server.locked] == [servers[1].id]
    assert {server.project_id for server in compute.servers_on(host)} == {site.project}
    counts = compute.count_servers()
    assert (counts[host], counts[other]) == (3, 1)
    for server in servers:
        compute.begin_server_deletion(server.id)
        compute.begin_server_deletion(server.id)
    site.soon(lambda: compute.servers_on(host), lambda left: left == ())
    assert len(compute.servers_on(other)) == 1
    compute.begin_server_deletion("3e5e19b5-4ee1-4d0c-b1ee-000000000000")


def test_the_servers_of_a_project_are_listed_with_their_states_on_hosts_or_on_none(site, compute):
    host, other = site.hosts[:2]
    running, stopped, broken = site.boot(host), site.boot(other, status="SHUTOFF"), site.boot(other, status="ERROR")
    found = {server.id: server for server in compute.servers_of_project(site.project)}
    assert {id_: (s.status, s.host) for id_, s in found.items()} == {
        running.id: ("ACTIVE", host),
        stopped.id: ("SHUTOFF", other),
        broken.id: ("ERROR", other),
    }
    # Known, and none: what is shelved later can be told from what belongs to a reservation.
    assert found[running.id].hints == frozenset()
    site.shelve(running.id)
    shelved = next(server for server in compute.servers_of_project(site.project) if server.id == running.id)
    assert (shelved.status, shelved.host) == ("SHELVED_OFFLOADED", None)
    assert compute.servers_of_project("3e5e19b54ee14d0cb1ee000000000000") == ()


def test_a_snapshot_belongs_to_the_servers_project_and_is_found_by_reservation(site, compute, host):
    server = site.boot(host)
    name, reservation = "reserved_work", f"r-{server.id}"
    compute.begin_snapshot(server.id, name, {"blazar:reservation": reservation, "blazar:server": server.id})
    (image,) = site.soon(
        lambda: compute.images_of_reservation(reservation), lambda found: all(i.status == "active" for i in found)
    )
    assert (image.name, image.project_id) == ("reserved_work", site.project)
    assert image.metadata["blazar:server"] == server.id
    assert compute.images_of_reservation("r2") == ()
    compute.set_image_owner(image.id, "somebody-else")
    assert compute.images_of_reservation(reservation)[0].project_id == "somebody-else"
    for call in (
        lambda: compute.begin_snapshot("3e5e19b5-4ee1-4d0c-b1ee-000000000000", "x", {}),
        lambda: compute.set_image_owner("3e5e19b5-4ee1-4d0c-b1ee-000000000000", "p"),
    ):
        with pytest.raises(NotFound):
            call()


def test_a_server_has_keys_of_ours_until_they_are_removed(site, compute):
    host = site.hosts[0]
    server = site.boot(host)
    compute.set_server_metadata(server.id, {"blazar:ends_at": "then", "blazar:other": "x", "color": "red"})
    compute.set_server_metadata(server.id, {"blazar:ends_at": "later", "blazar:none": None})
    (found,) = compute.servers_on(host)
    assert found.metadata == {"blazar:ends_at": "later", "blazar:other": "x"}
    compute.set_server_metadata(server.id, {"blazar:ends_at": None, "blazar:other": None})
    (found,) = compute.servers_on(host)
    assert found.metadata == {}
    with pytest.raises(NotFound):
        compute.set_server_metadata("3e5e19b5-4ee1-4d0c-b1ee-000000000000", {"blazar:ends_at": "then"})


def test_a_running_server_moves_live(site, compute):
    host, other = site.hosts[:2]
    server = site.boot(host)
    assert compute.migrations_of(server.id) == ()
    compute.begin_migration(server.id, other, live=True)
    site.soon(lambda: [s.id for s in compute.servers_on(other)], lambda there: there == [server.id])
    (move,) = site.soon(
        lambda: compute.migrations_of(server.id), lambda moves: moves[-1].state is not MigrationState.RUNNING
    )
    assert move == Migration(other, live=True, state=MigrationState.DONE)
    (moved,) = site.soon(lambda: compute.servers_on(other), lambda there: there[0].status == "ACTIVE")
    assert compute.servers_on(host) == ()
    assert moved.id == server.id


def test_a_stopped_server_moves_cold_and_stays_when_that_is_confirmed(site, compute):
    host, other = site.hosts[:2]
    server = site.boot(host, status="SHUTOFF")
    with pytest.raises((Conflict, CloudRefused)):
        compute.begin_migration(server.id, other, live=True)
    with pytest.raises(Conflict):
        compute.confirm_migration(server.id)
    compute.begin_migration(server.id, other, live=False)
    site.soon(lambda: compute.servers_on(other), lambda there: [s.status for s in there] == ["VERIFY_RESIZE"])
    assert compute.migrations_of(server.id)[-1] == Migration(other, live=False, state=MigrationState.TO_CONFIRM)
    assert (compute.unfinished_moves_from(host), compute.unfinished_moves_from(other)) == (
        {server.id: MigrationState.TO_CONFIRM},
        {},
    )
    compute.confirm_migration(server.id)
    assert compute.unfinished_moves_from(host) == {}
    site.soon(lambda: compute.servers_on(other), lambda there: [s.status for s in there] == ["SHUTOFF"])
    assert compute.migrations_of(server.id)[-1].state is MigrationState.DONE


def test_a_server_cannot_move_to_a_host_that_does_not_exist(site, compute, host):
    server = site.boot(host)
    with pytest.raises((NotFound, CloudRefused, Conflict)):
        compute.begin_migration(server.id, "no-such-node", live=True)


def test_placement_knows_which_hosts_have_room_for_a_server(site, compute):
    server = site.boot(site.hosts[0])
    assert set(site.hosts) <= site.cloud.placement.hosts_with_room_for(server.id)
    assert site.cloud.placement.hosts_with_room_for("3e5e19b5-4ee1-4d0c-b1ee-000000000000") == frozenset()


def test_a_host_has_one_reservation_provider(site, host):
    placement = site.cloud.placement
    made = placement.reservation_provider(host) or placement.create_reservation_provider(host)
    assert placement.reservation_provider(host) == made
    with pytest.raises(Conflict):
        placement.create_reservation_provider(host)
    with pytest.raises(NotFound):
        placement.create_reservation_provider("no-such-node")
    assert placement.reservation_provider("no-such-node") is None


def test_a_host_that_is_down_or_disabled_says_so_and_can_still_be_moved_between_aggregates(site):
    compute, host = site.cloud.compute, site.hosts[0]

    def state() -> tuple[bool, bool]:
        found = next(h for h in compute.hypervisors() if h.service_name == host)
        return found.up, found.enabled

    assert state() == (True, True)
    site.service(host, up=False)
    site.soon(lambda: state() == (False, True))
    pool = compute.create_aggregate("contract-down", None, {})
    compute.add_host(pool.id, host)
    site.service(host, up=False, enabled=False)
    site.soon(lambda: state() == (False, False))
    compute.remove_host(pool.id, host)
    assert compute.servers_on(host) == ()
    site.service(host)
    site.soon(lambda: state() == (True, True))


def test_the_service_of_a_host_is_disabled_for_a_reason_and_enabled(site, compute, host):
    def state():
        found = compute.hypervisor(hostname=host)
        return found.enabled, found.disabled_reason

    compute.disable_service(host, "blazar: maintenance 1")
    site.soon(state, lambda seen: seen == (False, "blazar: maintenance 1"))
    compute.disable_service(host, "blazar: maintenance 2, for the fans")
    site.soon(state, lambda seen: seen == (False, "blazar: maintenance 2, for the fans"))
    assert {h.service_name: h.enabled for h in compute.hypervisors() if h.service_name in site.hosts} == {
        each: each != host for each in site.hosts
    }
    for _ in range(2):
        compute.enable_service(host)
        site.soon(state, lambda seen: seen == (True, None))
    for change in (
        lambda: compute.disable_service("no-such-node", "x"),
        lambda: compute.enable_service("no-such-node"),
    ):
        with pytest.raises(NotFound):
            change()
