"""What reservations rely on in Nova's aggregates and servers."""

from __future__ import annotations

import pytest

from blazar.model.errors import Conflict, NotFound


@pytest.fixture
def compute(cloud):
    return cloud.compute


def pool(compute, name="pool", zone=None):
    return compute.create_aggregate(name, zone, {"blazar:owner": "physics"})


def hosts(compute, name):
    return set(compute.aggregate(name).hosts)


def test_a_hypervisor_is_found_by_its_exact_name_or_id(compute):
    found = compute.hypervisor(hostname="node-1")
    assert (found.id, found.service_name) == ("1", "node-1")
    assert compute.hypervisor(id="10").hypervisor_hostname == "node-10"
    assert found in compute.hypervisors()
    for wrong in ({"hostname": "node"}, {"hostname": "node-"}, {"id": "4711"}):
        with pytest.raises(NotFound):
            compute.hypervisor(**wrong)


def test_a_hypervisor_shows_the_zone_of_its_aggregate(compute):
    assert compute.hypervisor(hostname="node-1").availability_zone == "az-2"
    compute.remove_host(compute.aggregate("az-2").id, "node-1")
    assert compute.hypervisor(hostname="node-1").availability_zone == "nova"


def test_an_aggregate_has_a_zone_metadata_and_hosts(compute):
    made = pool(compute, zone="blazar_x")
    assert (made.name, made.availability_zone, made.hosts) == ("pool", "blazar_x", ())
    assert made.metadata == {"blazar:owner": "physics"}
    assert compute.aggregate("pool") == made
    assert compute.aggregate("poo") is None
    assert made in compute.aggregates()


def test_two_aggregates_may_have_one_name_and_the_older_one_answers(compute):
    first, second = pool(compute), pool(compute)
    assert first.id < second.id
    assert compute.aggregate("pool").id == first.id
    compute.delete_aggregate(first.id)
    assert compute.aggregate("pool").id == second.id


def test_metadata_is_set_and_taken_away_key_by_key(compute):
    made = pool(compute)
    compute.set_aggregate_metadata(made.id, {"a": "1", "b": "2"})
    compute.set_aggregate_metadata(made.id, {"a": None, "nothing": None})
    assert compute.aggregate("pool").metadata == {"blazar:owner": "physics", "b": "2"}


def test_a_host_may_be_in_several_aggregates_without_a_zone(compute):
    one, other = pool(compute, "one"), pool(compute, "other")
    compute.add_host(one.id, "node-1")
    compute.add_host(other.id, "node-1")
    assert hosts(compute, "one") == hosts(compute, "other") == {"node-1"}


def test_a_host_joins_and_leaves_once(compute):
    made = pool(compute)
    compute.add_host(made.id, "node-1")
    with pytest.raises(Conflict):
        compute.add_host(made.id, "node-1")
    compute.remove_host(made.id, "node-1")
    with pytest.raises(NotFound):
        compute.remove_host(made.id, "node-1")
    with pytest.raises(NotFound):
        compute.add_host(made.id, "no-such-node")


def test_a_host_has_one_zone(compute):
    made = pool(compute, zone="blazar_x")
    with pytest.raises(Conflict):
        compute.add_host(made.id, "node-1")
    compute.remove_host(compute.aggregate("az-2").id, "node-1")
    compute.add_host(made.id, "node-1")


def test_a_host_with_servers_keeps_its_zone(compute, boot):
    made, plain = pool(compute, zone="blazar_x"), pool(compute, "plain")
    zone = compute.aggregate("az-2").id
    boot("node-1")
    with pytest.raises(Conflict):
        compute.remove_host(zone, "node-1")
    compute.add_host(plain.id, "node-1")
    compute.remove_host(plain.id, "node-1")
    compute.remove_host(zone, "node-3")
    boot("node-3")
    with pytest.raises(Conflict):
        compute.add_host(made.id, "node-3")


def test_an_aggregate_with_hosts_can_not_be_deleted(compute):
    made = pool(compute)
    compute.add_host(made.id, "node-1")
    with pytest.raises(Conflict):
        compute.delete_aggregate(made.id)
    compute.remove_host(made.id, "node-1")
    compute.delete_aggregate(made.id)
    for call in (
        lambda: compute.delete_aggregate(made.id),
        lambda: compute.add_host(made.id, "node-1"),
        lambda: compute.set_aggregate_metadata(made.id, {}),
    ):
        with pytest.raises(NotFound):
            call()


def test_servers_are_listed_by_host_and_deleted_whatever_their_state(compute, boot):
    servers = [boot("node-1"), boot("node-1", locked=True), boot("node-1", status="ERROR")]
    boot("node-2")
    assert {server.id for server in compute.servers_on("node-1")} == {server.id for server in servers}
    for server in servers:
        compute.delete_server(server.id)
        compute.delete_server(server.id)
    assert compute.servers_on("node-1") == ()
    assert len(compute.servers_on("node-2")) == 1
    compute.delete_server("no-such-server")


def test_a_snapshot_belongs_to_the_servers_project_and_is_found_by_reservation(compute, boot):
    server = boot("node-1")
    compute.snapshot_server(server.id, "reserved_work", {"blazar:reservation": "r1", "blazar:server": server.id})
    (image,) = compute.images_of_reservation("r1")
    assert (image.name, image.project_id, image.status) == ("reserved_work", "p", "active")
    assert image.metadata["blazar:server"] == server.id
    assert compute.images_of_reservation("r2") == ()
    with pytest.raises(NotFound):
        compute.snapshot_server("no-such-server", "x", {})


def test_a_reservation_provider_is_made_and_deleted_once(cloud):
    placement = cloud.placement
    assert placement.reservation_provider("node-1") is None
    made = placement.create_reservation_provider("node-1")
    assert placement.reservation_provider("node-1") == made
    with pytest.raises(Conflict):
        placement.create_reservation_provider("node-1")
    with pytest.raises(NotFound):
        placement.create_reservation_provider("no-such-node")
    placement.delete_reservation_provider("node-1")
    with pytest.raises(NotFound):
        placement.delete_reservation_provider("node-1")
