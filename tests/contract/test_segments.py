# SPDX-License-Identifier: Apache-2.0
"""What reservations of networks rely on: networks on chosen segments, and the order in which they can be cleared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blazar.clouds.ports.segments import (
    NewSubnet,
    Port,
    RouterRoute,
    Segment,
    SegmentInUse,
    SegmentRange,
    SegmentRefused,
)
from blazar.model.base.errors import CloudError, CloudRefused, CloudUnavailable, Conflict, NotFound
from tests.contract.builders import NAME, Builder, SimulatedBuilder, builder_on, made, nowhere

VNI = 70123


@pytest.fixture(params=["memory", "file", pytest.param("openstack", marks=pytest.mark.cloud)])
def builder(request, tmp_path) -> Iterator[Builder]:
    yield from builder_on(request.param, tmp_path)


@pytest.fixture(params=["memory", "file"])
def simulated(request, tmp_path) -> Iterator[SimulatedBuilder]:
    """The clouds that have quotas, floating IPs and distributed routers on these networks."""
    yield from builder_on(request.param, tmp_path)


@pytest.fixture
def segments(builder):
    return builder.cloud.segments


@pytest.fixture
def vlan(builder) -> Segment:
    return Segment("vlan", builder.physical, 777)


def test_a_network_is_on_the_segment_and_of_the_project_that_were_asked_for(builder, segments, vlan):
    found = made(builder, vlan)
    assert (found.name, found.project_id, found.segments) == (NAME, builder.project, (vlan,))
    assert (found.description, found.tags) == ("reservation:x", frozenset())
    assert segments.segment_networks(segment=vlan) == (found,)
    assert segments.segment_networks(id=found.id) == (found,)
    assert found in segments.segment_networks(description="reservation:x")
    assert found in segments.segment_networks()
    assert segments.segment_networks(segment=Segment("vlan", builder.physical, 778)) == ()
    assert found.id not in {each.id for each in builder.cloud.network.external_networks()}
    assert segments.segment_networks(id=found.id, segment=Segment("vxlan", None, 777)) == ()


def test_a_vxlan_has_no_physical_network(builder, segments):
    found = made(builder, Segment("vxlan", None, VNI))
    assert found.segments == (Segment("vxlan", None, VNI),)
    assert segments.segment_networks(segment=Segment("vxlan", None, VNI)) == (found,)


@pytest.mark.parametrize("kind", ["vlan", "vxlan"])
def test_a_segment_has_one_network(builder, segments, vlan, kind):
    segment = vlan if kind == "vlan" else Segment("vxlan", None, VNI)
    first = made(builder, segment)
    with pytest.raises(SegmentInUse):
        made(builder, segment)
    assert segments.segment_networks(segment=segment) == (first,)


@pytest.mark.parametrize(
    "wrong",
    [
        Segment("vlan", "nowhere", 777),
        Segment("vlan", None, 777),
        Segment("vlan", "physnet1", 5000),
        Segment("geneva", None, 7),
    ],
    ids=["physical network", "no physical network", "number", "type"],
)
def test_a_segment_that_cannot_be_is_refused(builder, wrong):
    with pytest.raises(CloudError):
        made(builder, wrong)


def test_tags_and_descriptions_are_replaced_and_searched_for(builder, segments, vlan):
    found = made(builder, vlan)
    segments.set_network_tags(found.id, ["blazar", "reservation:a"])
    segments.set_description(found.id, "for the course")
    (seen,) = segments.segment_networks(tag="reservation:a")
    assert (seen.id, seen.tags, seen.description) == (found.id, {"blazar", "reservation:a"}, "for the course")
    assert segments.segment_networks(description="reservation:x", id=found.id) == ()


def test_what_does_not_exist_is_not_found(builder, segments):
    gone = nowhere()
    for call in (
        lambda: segments.set_description(gone, "x"),
        lambda: segments.delete_network(gone),
        lambda: segments.delete_port(gone),
        lambda: segments.clear_port_owner(gone),
        lambda: segments.remove_routes(gone, [RouterRoute("10.0.0.0/24", "10.9.0.9")]),
        lambda: segments.remove_interface(gone, gone),
        lambda: segments.delete_trunk(gone),
        lambda: segments.set_trunk_enabled(gone, enabled=True),
        lambda: segments.remove_sub_ports(gone, [gone]),
    ):
        with pytest.raises(NotFound):
            call()
    with pytest.raises((NotFound, CloudUnavailable)):
        segments.set_network_tags(gone, ["blazar"])
    assert segments.segment_networks(id=gone) == segments.ports_on(gone) == segments.routers([gone]) == ()
    assert segments.cidrs(gone) == segments.trunks_with([gone]) == ()


def test_an_empty_network_is_deleted_with_its_subnets_and_automatic_ports(builder, segments, vlan):
    found = made(builder, vlan)
    builder.subnet(found.id, "10.9.0.0/24")
    builder.port(found.id, "network:dhcp")
    assert segments.cidrs(found.id) == ("10.9.0.0/24",)
    segments.delete_network(found.id)
    assert segments.segment_networks(segment=vlan) == segments.ports_on(found.id) == ()
    assert made(builder, vlan).id != found.id


def test_a_network_with_a_port_is_deleted_after_the_port(builder, segments, vlan):
    found = made(builder, vlan)
    port = builder.port(found.id, "compute:nova")
    assert segments.ports_on(found.id) == (Port(port, "compute:nova"),)
    with pytest.raises(Conflict):
        segments.delete_network(found.id)
    segments.delete_port(port)
    with pytest.raises(NotFound):
        segments.delete_port(port)
    segments.delete_network(found.id)


def test_a_router_leaves_in_order_routes_interface_network_and_keeps_its_other_routes(builder, segments, vlan):
    found = made(builder, vlan)
    builder.subnet(found.id, "10.9.0.0/24")
    router = builder.router(found.id, (("10.50.0.0/24", "10.9.0.9"), ("10.51.0.0/24", "10.9.0.9")))
    (interface,) = segments.ports_on(found.id)
    assert (interface.owner, interface.device_id) == ("network:router_interface", router)
    (seen,) = segments.routers([router])
    assert set(seen.routes) == {RouterRoute("10.50.0.0/24", "10.9.0.9"), RouterRoute("10.51.0.0/24", "10.9.0.9")}
    for refused in (
        lambda: segments.delete_network(found.id),
        lambda: segments.delete_port(interface.id),
        lambda: segments.remove_interface(router, interface.id),
    ):
        with pytest.raises(Conflict):
            refused()
    first = [RouterRoute("10.50.0.0/24", "10.9.0.9")]
    for _ in range(2):
        segments.remove_routes(router, first)
        assert builder.routes_of(router) == [("10.51.0.0/24", "10.9.0.9")]
    segments.remove_routes(router, [RouterRoute("10.51.0.0/24", "10.9.0.9")])
    segments.remove_interface(router, interface.id)
    with pytest.raises(NotFound):
        segments.remove_interface(router, interface.id)
    segments.delete_network(found.id)
    assert segments.routers([router]) != ()


def test_ports_of_a_trunk_leave_after_it(builder, segments):
    here, other = (made(builder, Segment("vlan", builder.physical, number)).id for number in (777, 778))
    parent, sub, foreign = builder.port(here), builder.port(here), builder.port(other)
    trunk, far = builder.trunk(parent, foreign), builder.trunk(builder.port(other), sub)
    assert {t.id: (t.parent, set(t.sub_ports)) for t in segments.trunks_with([parent])} == {trunk: (parent, {foreign})}
    assert [t.id for t in segments.trunks_with([sub])] == [far]
    for port in (parent, sub):
        with pytest.raises(Conflict):
            segments.delete_port(port)
    segments.remove_sub_ports(far, [sub])
    with pytest.raises(NotFound):
        segments.remove_sub_ports(far, [sub])
    segments.delete_trunk(trunk)
    for port in (parent, sub):
        segments.delete_port(port)
    segments.delete_network(here)


def test_a_trunk_stays_while_it_is_disabled_or_its_parent_is_bound(builder, segments, vlan):
    here = made(builder, vlan).id
    parent, sub = builder.port(here, "compute:nova"), builder.port(here)
    trunk = builder.trunk(parent, sub, enabled=False, bound=True)
    for refused in (lambda: segments.delete_trunk(trunk), lambda: segments.remove_sub_ports(trunk, [sub])):
        with pytest.raises(Conflict):
            refused()
    segments.set_trunk_enabled(trunk, enabled=True)
    segments.remove_sub_ports(trunk, [sub])
    with pytest.raises(Conflict):
        segments.delete_trunk(trunk)
    segments.clear_port_owner(parent)
    segments.delete_trunk(trunk)


def test_a_floating_ip_holds_the_interface_until_its_port_is_deleted(simulated):
    segments, users = simulated.cloud.segments, simulated.simulated.network_users
    here = made(simulated, Segment("vlan", "physnet1", 11)).id
    users.subnet(here)
    router, port = users.router(here), users.port(here)
    with simulated.simulated.inspect() as state:
        (interface,) = [p.id for p in state.ports.values() if p.device_id == router]
    address = simulated.cloud.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address="203.0.113.9", project_id="p", description=""
    )
    simulated.simulated.users.attach(address.id, port)
    with pytest.raises(Conflict):
        segments.remove_interface(router, interface)
    segments.delete_port(port)
    assert not simulated.cloud.network.floating_ips()[0].attached
    segments.remove_interface(router, interface)


def test_a_distributed_router_takes_its_other_port_along(simulated):
    segments, users = simulated.cloud.segments, simulated.simulated.network_users
    here = made(simulated, Segment("vlan", "physnet1", 11)).id
    router = users.router(here, distributed=True)
    interface, snat = segments.ports_on(here)
    with pytest.raises(Conflict):
        segments.delete_port(snat.id)
    segments.remove_interface(router, interface.id)
    assert segments.ports_on(here) == ()


FEIGNED = (
    "network:router_interface_distributed",
    "network:router_gateway",
    "network:router_centralized_snat",
    "network:floatingip_agent_gateway",
)


@pytest.mark.parametrize("owner", FEIGNED)
def test_a_port_that_says_it_is_of_a_router_leaves_without_its_owner(simulated, owner):
    segments, users = simulated.cloud.segments, simulated.simulated.network_users
    here, other = (made(simulated, Segment("vlan", "physnet1", number)).id for number in (11, 12))
    port = users.port(here, owner, device_id=users.router(other))
    for refused in (lambda: segments.delete_port(port), lambda: segments.delete_network(here)):
        with pytest.raises(Conflict):
            refused()
    segments.clear_port_owner(port)
    assert segments.ports_on(here) == (Port(port),)
    segments.delete_port(port)
    segments.delete_network(here)


def test_ranges_are_told_where_the_cloud_has_them(builder, segments):
    everybodys = SegmentRange("vlan", builder.physical, 1100, 1109, shared=True)
    ours = SegmentRange("vxlan", None, 200001, 200009, shared=False, project_id=builder.project)
    builder.offer(everybodys, ours)
    assert everybodys in segments.segment_ranges("vlan")
    assert ours not in segments.segment_ranges("vlan")
    assert ours in segments.segment_ranges("vxlan")


def test_a_cloud_without_ranges_says_so(simulated):
    assert simulated.cloud.segments.segment_ranges("vlan") is None


def test_a_quota_is_the_users_to_mend(simulated):
    with simulated.simulated.change_state() as state:
        state.most_networks = 0
    with pytest.raises(Conflict) as raised:
        made(simulated, Segment("vlan", "physnet1", 11))
    assert raised.value.cause.code == "quota_exceeded"


def test_a_physical_network_that_is_not_configured_is_told_apart_from_other_refusals(builder, segments, vlan):
    with pytest.raises(SegmentRefused):
        segments.create_segment_network(
            Segment("vlan", "nowhere", 11), name="x", project_id=builder.project, description=""
        )


def test_a_subnet_is_made_once(builder, segments, vlan):
    network = made(builder, vlan)
    wanted = NewSubnet("10.77.0.0/24", 4, ("192.0.2.53",), enable_dhcp=False)
    subnet = segments.create_subnet(network.id, wanted, project_id=builder.project)
    (found,) = builder.cloud.network.network(network.id).subnets
    assert (found.id, found.cidr) == (subnet, "10.77.0.0/24")
    with pytest.raises(CloudRefused):
        segments.create_subnet(network.id, wanted, project_id=builder.project)
    with pytest.raises(NotFound):
        segments.create_subnet(nowhere(), wanted, project_id=builder.project)
