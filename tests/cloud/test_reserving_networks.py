# SPDX-License-Identifier: Apache-2.0
"""A lease of a network from the registration of its segment to its end on a real OpenStack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blazar.clouds.ports.segments import Segment, SegmentRange, Trunk
from tests import openstack
from tests.cloud.deployment import Deployment
from tests.contract.builders import RealBuilder
from tests.openstack import eventually

# Ids below are in the range from which Neutron serves everybody.
VLANS = (1871, 1872)


@pytest.fixture
def builder() -> Iterator[RealBuilder]:
    """The users of the project ``demo``, who build on its networks."""
    made = RealBuilder()
    yield made
    made.clean()


@pytest.fixture(autouse=True)
def nothing_left(service: Deployment):
    """Each test begins without leases and registered segments."""
    yield
    service.forget_leases()
    for segment in service.call("admin", "GET", "/networks")["networks"]:
        assert service.call("admin", "DELETE", f"/networks/{segment['id']}").status == 200


def test_a_segment_that_neutron_gives_to_others_is_refused(service: Deployment, builder: RealBuilder):
    own = str(openstack.access("blazar").session.get_project_id())
    for project in (None, builder.project, own):
        number = 1881 if project is None else 1882 if project == builder.project else 1883
        shared = project is None
        builder.offer(SegmentRange("vlan", builder.physical, number, number, shared=shared, project_id=project))
        body = {"network_type": "vlan", "physical_network": builder.physical, "segment_id": number}
        answer = service.call("admin", "POST", "/networks", body)
        assert answer.status == (201 if project == own else 400), answer
        assert ("range" in str(answer.body)) is (project != own)
    body = {"network_type": "vxlan", "physical_network": None, "segment_id": 77}
    answer = service.call("admin", "POST", "/networks", body)
    assert (answer.status, "from which Neutron serves all projects" in str(answer.body)) == (400, True)


def test_a_network_from_registration_to_release(service: Deployment, builder: RealBuilder):
    segments = builder.cloud.segments
    for number in VLANS:
        body = {"network_type": "vlan", "physical_network": builder.physical, "segment_id": number}
        assert service.call("admin", "POST", "/networks", body).status == 201
    assert service.call("admin", "POST", "/networks", body).status == 409
    room = {"resource_type": "network", "network_name": "lab", "network_description": "for the course"}
    lease = service.create(body={"reservations": [room]})
    active = service.reaches(lease["id"], "ACTIVE")
    (reservation,) = active["reservations"]
    (network,) = segments.segment_networks(id=reservation["network_id"])
    ((kind, physical, number),) = [(s.network_type, s.physical_network, s.segment_id) for s in network.segments]
    assert (kind, physical, number in VLANS) == ("vlan", builder.physical, True)
    assert (network.name, network.project_id, network.description) == ("lab", builder.project, "for the course")
    assert network.tags == {"blazar", f"reservation:{reservation['id']}"}

    builder.subnet(network.id, "10.9.0.0/24")
    router = builder.router(network.id, (("10.50.0.0/24", "10.9.0.9"),))
    builder.port(network.id, "compute:nova")
    # There is no load balancer in this cloud: one of its ports is all that Neutron knows of it.
    builder.port(network.id, "Octavia")
    other = next(each for each in VLANS if each != number)
    taken = segments.create_segment_network(
        Segment("vlan", builder.physical, other), name="test-segments", project_id=builder.project, description=""
    )
    # A trunk of theirs with a sub-port elsewhere, whose server still holds the parent; and one from elsewhere to here.
    kept, elsewhere = builder.port(taken.id), builder.port(taken.id)
    builder.trunk(builder.port(network.id, "compute:nova"), kept, enabled=False, bound=True)
    far = builder.trunk(elsewhere, builder.port(network.id))
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert eventually(lambda: segments.segment_networks(id=network.id), lambda left: not left) == ()
    assert segments.ports_on(network.id) == ()
    assert (builder.routes_of(router), segments.segment_networks(id=taken.id)) == ([], (taken,))
    assert segments.trunks_with([kept]) == ()
    assert segments.trunks_with([elsewhere]) == (Trunk(far, elsewhere),)
    assert {kept, elsewhere} == {port.id for port in segments.ports_on(taken.id)}
