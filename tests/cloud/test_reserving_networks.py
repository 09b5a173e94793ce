# SPDX-License-Identifier: Apache-2.0
"""A lease of a network from the registration of its segment to its end on a real OpenStack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blazar.clouds.ports import Segment
from tests.cloud.deployment import Deployment
from tests.contract.builders import RealBuilder
from tests.openstack import eventually

VLANS = (871, 872)


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
    other = next(each for each in VLANS if each != number)
    taken = segments.create_segment_network(
        Segment("vlan", builder.physical, other), name="test-segments", project_id=builder.project, description=""
    )
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert eventually(lambda: segments.segment_networks(id=network.id), lambda left: not left) == ()
    assert segments.ports_on(network.id) == ()
    assert (builder.routes_of(router), segments.segment_networks(id=taken.id)) == ([], (taken,))
