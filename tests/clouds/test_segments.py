# SPDX-License-Identifier: Apache-2.0
"""What is sent to Neutron for networks on segments, where the test cloud has no such service, and its refusals."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import requests_mock

from blazar.clouds.openstack.segments import OpenStackSegments
from blazar.clouds.ports.segments import Port, Segment, SegmentInUse, SegmentRange, SegmentRefused, Trunk
from blazar.model.base.errors import CloudRefused, Conflict
from tests.clouds.test_access import NOVA as NEUTRON
from tests.clouds.test_access import an_access, sent, web

__all__ = ["web"]

VLAN = Segment("vlan", "physnet1", 101)


@pytest.fixture
def segments(web):
    # The catalog of these tests has one compute service; any will do.
    return OpenStackSegments(SimpleNamespace(network=an_access().compute))


def create(segments):
    return segments.create_segment_network(VLAN, name="n", project_id="p", description="d")


@pytest.mark.parametrize("word", ["VlanIdInUse", "TunnelIdInUse"])
def test_a_segment_in_use_is_told_by_the_type_of_the_error(web, segments, word):
    web.post(f"{NEUTRON}/networks", status_code=409, json={"NeutronError": {"type": word, "message": "x"}})
    with pytest.raises(SegmentInUse):
        create(segments)


def test_a_quota_is_told_by_the_type_of_the_error_and_asked_for_once(web, segments):
    web.post(f"{NEUTRON}/networks", status_code=409, json={"NeutronError": {"type": "OverQuota", "message": "x"}})
    with pytest.raises(Conflict) as raised:
        create(segments)
    assert (type(raised.value) is SegmentInUse, raised.value.cause.code) == (False, "quota_exceeded")
    assert len(sent(web, "/networks")) == 1


@pytest.mark.parametrize(("word", "of_segment"), [("InvalidInput", True), ("HTTPBadRequest", False), ("", False)])
def test_a_segment_that_is_not_configured_is_told_by_the_type_of_the_error(web, segments, word, of_segment):
    web.post(f"{NEUTRON}/networks", status_code=400, json={"NeutronError": {"type": word, "message": "x"}})
    with pytest.raises(CloudRefused) as raised:
        create(segments)
    assert isinstance(raised.value, SegmentRefused) is of_segment


def test_another_conflict_is_neither(web, segments):
    web.post(f"{NEUTRON}/networks", status_code=409, json={"NeutronError": "odd"})
    with pytest.raises(Conflict) as raised:
        create(segments)
    assert not isinstance(raised.value, SegmentInUse)
    assert raised.value.cause.code == "cloud_refused"


def test_a_network_of_several_segments_has_all_of_them(web, segments):
    several = [
        {"provider:network_type": "vlan", "provider:physical_network": "physnet1", "provider:segmentation_id": 101},
        {"provider:network_type": "flat", "provider:physical_network": "physnet2", "provider:segmentation_id": None},
    ]
    web.get(f"{NEUTRON}/networks", json={"networks": [{"id": "1", "name": "n", "segments": several}]})
    (found,) = segments.segment_networks(segment=VLAN)
    assert found.segments == (VLAN, Segment("flat", "physnet2", None))
    assert "provider%3Asegmentation_id=101" in sent(web, "/networks")[0].url


def test_ranges_are_read(web, segments):
    shared = {"network_type": "vlan", "physical_network": "physnet1", "minimum": 1, "maximum": 9, "shared": True}
    own = {**shared, "shared": False, "project_id": "service"}
    path = f"{NEUTRON}/network_segment_ranges"
    vxlan = {"network_type": "vxlan", "physical_network": "", "minimum": 1, "maximum": 9, "shared": True}
    web.get(path, json={"network_segment_ranges": [shared, own, vxlan]})
    assert segments.segment_ranges("vlan") == (
        SegmentRange("vlan", "physnet1", 1, 9, True),
        SegmentRange("vlan", "physnet1", 1, 9, False, "service"),
        SegmentRange("vxlan", None, 1, 9, True),
    )
    web.get(path, status_code=404, json={"message": "The resource could not be found."})
    assert segments.segment_ranges("vlan") is None


def test_trunks_are_found_by_parent_and_sub_port_and_lose_sub_ports(web, segments):
    trunks = [
        {"id": "t1", "port_id": "a", "sub_ports": [{"port_id": "b"}]},
        {"id": "t2", "port_id": "c", "sub_ports": [{"port_id": "d"}, {"port_id": "e"}]},
        {"id": "t3", "port_id": "f", "sub_ports": [], "admin_state_up": False},
    ]
    web.get(f"{NEUTRON}/trunks", json={"trunks": trunks})
    assert segments.trunks_with(["a", "e"]) == (Trunk("t1", "a", frozenset("b")), Trunk("t2", "c", frozenset("de")))
    assert segments.trunks_with(["f"]) == (Trunk("t3", "f", enabled=False),)
    assert segments.trunks_with([]) == ()
    web.put(f"{NEUTRON}/trunks/t2/remove_subports", json={})
    segments.remove_sub_ports("t2", ["e", "d"])
    (request,) = sent(web, "/remove_subports")
    assert request.json() == {"sub_ports": [{"port_id": "d"}, {"port_id": "e"}]}
    web.delete(f"{NEUTRON}/trunks/t2", status_code=204)
    segments.delete_trunk("t2")
    web.get(f"{NEUTRON}/trunks", status_code=404, json={"message": "The resource could not be found."})
    assert segments.trunks_with(["a"]) == ()


def test_every_page_of_ports_is_read(web, segments):
    ports = [{"id": name, "device_owner": "", "device_id": None} for name in "ab"]
    following = {"ports": ports[:1], "ports_links": [{"rel": "next", "href": "http://elsewhere/v2.0/ports?marker=a"}]}
    web.get(f"{NEUTRON}/ports", [{"json": following}, {"json": {"ports": ports[1:]}}])
    assert segments.ports_on("n") == (Port("a"), Port("b"))


def test_a_device_that_users_made_up_is_not_part_of_the_path(web, segments):
    web.put(requests_mock.ANY, json={})
    segments.remove_interface("../../identity/v3/projects/p/users/u/roles/admin?", "port")
    (request,) = web.request_history[-1:]
    assert request.url == (
        f"{NEUTRON}/routers/..%2F..%2Fidentity%2Fv3%2Fprojects%2Fp%2Fusers%2Fu%2Froles%2Fadmin%3F"
        "/remove_router_interface"
    )


def test_a_port_loses_owner_device_and_host(web, segments):
    web.put(f"{NEUTRON}/ports/a", json={})
    segments.clear_port_owner("a")
    (request,) = sent(web, "/ports/a")
    assert request.json() == {"port": {"device_owner": "", "device_id": "", "binding:host_id": None}}


def test_a_trunk_is_enabled(web, segments):
    web.put(f"{NEUTRON}/trunks/t", json={})
    segments.set_trunk_enabled("t", enabled=True)
    (request,) = sent(web, "/trunks/t")
    assert request.json() == {"trunk": {"admin_state_up": True}}
