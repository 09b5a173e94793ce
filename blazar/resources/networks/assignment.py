# SPDX-License-Identifier: Apache-2.0
"""Creates the networks of reservations, finds them, and deletes them.

The network of a reservation is recognized by the id that was recorded, by the reservation's tag, or by the description
that it is created with: tags are set by a later call, its users can change both, and a crash may happen between any
two steps. No other network is changed, whatever its segment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.clouds.ports.network import Network
from blazar.clouds.ports.segments import (
    AUTOMATIC,
    NewSubnet,
    Segment,
    SegmentInUse,
    SegmentNetwork,
    SegmentRefused,
    Segments,
)
from blazar.model.base.errors import CloudUnavailable, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import Task, Unusable
from blazar.resources.networks.registration import (
    BLAZAR,
    occupied_sentence,
    refusal_sentence,
    reservation_tag,
    reservations_of,
    segment_of,
)
from blazar.resources.networks.teardown import Teardown

NETWORK_ID, SUBNET_ID = "network_id", "subnet_id"


class NetworkAssignment:
    """Ensures the networks of reservations."""

    def __init__(self, segments: Segments, network: Network) -> None:
        self._segments = segments
        self._network = network
        self._teardown = Teardown(segments)

    def ensure_network(self, task: Task, resource: Resource, *, name: str) -> SegmentNetwork:
        """Ensure that the project has the network of the reservation on a segment; return it.

        Unusable if somebody else's network is on the segment, or Neutron does not have that; Conflict if the
        project may have no more networks.
        """
        segment = segment_of(resource.attributes)
        return self._find_network_on(task, segment) or self._create_network(task, resource, segment, name)

    def mark_network(self, task: Task, found: SegmentNetwork, *, description: str) -> None:
        """Ensure the tags of the reservation's network, and that the description it was created with is replaced."""
        wanted = {BLAZAR, reservation_tag(task.reservation.id)}
        try:
            if not wanted <= found.tags:
                self._segments.set_network_tags(found.id, found.tags | wanted)
            if found.description == reservation_tag(task.reservation.id):
                self._segments.set_description(found.id, description)
        except NotFound as error:
            # Its user deleted it; a retry creates it again.
            raise CloudUnavailable(f"network {found.id} was deleted while it was being created") from error

    def ensure_subnet(self, found: SegmentNetwork, wanted: NewSubnet) -> str:
        """Ensure that the reservation's network has a subnet; return its id. CloudRefused, Conflict."""
        network = self._network.network(found.id)
        there = next((subnet.id for subnet in network.subnets if subnet.cidr == wanted.cidr), None) if network else None
        try:
            return there or self._segments.create_subnet(found.id, wanted, project_id=found.project_id)
        except NotFound as error:
            raise CloudUnavailable(f"network {found.id} was deleted while it was being created") from error

    def delete_networks(self, task: Task, *, but: Resource | None = None) -> Mapping[str, str]:
        """Delete the networks of the reservation, except the one on this segment; return what holds others, by id."""
        kept = None if but is None else segment_of(but.attributes)
        leaving = [network.id for network in self._networks_of_reservation(task) if kept not in network.segments]
        return {id_: held for id_ in leaving if (held := self._teardown.clear_network(id_)) is not None}

    def is_used(self, task: Task, *, beside: NewSubnet | None = None) -> bool:
        """Return whether there is anything on the network of the reservation that users have made.

        ``beside`` is the subnet that it has from the start; what Neutron makes there of itself is nobody's use.
        """
        own = frozenset() if beside is None else frozenset({beside.cidr})
        automatic = frozenset() if beside is None else AUTOMATIC
        return any(
            any(port.owner not in automatic for port in self._segments.ports_on(found.id))
            or not own.issuperset(self._segments.cidrs(found.id))
            for found in self._networks_of_reservation(task)
        )

    def reservations_with_networks(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations that have networks: those that are tagged, or not tagged yet."""
        registered = {segment_of(resource.attributes) for resource in resources}
        found = self._segments.segment_networks()
        ours = (n for n in found if BLAZAR in n.tags or registered & frozenset(n.segments))
        return frozenset(id_ for network in ours for id_ in reservations_of(network))

    def _create_network(self, task: Task, resource: Resource, segment: Segment, name: str) -> SegmentNetwork:
        self._check_segment_free(resource, segment)
        project = task.lease.project_id
        try:
            return self._segments.create_segment_network(
                segment, name=name, project_id=project, description=reservation_tag(task.reservation.id)
            )
        except SegmentInUse as error:
            # Perhaps a call of an earlier attempt took effect late.
            if (late := self._find_network_on(task, segment)) is not None:
                return late
            self._check_segment_free(resource, segment)
            raise CloudUnavailable(f"{resource.name} was in use a moment ago") from error
        except SegmentRefused as error:
            # Nothing tells before: no call but this one asks Neutron for its physical networks.
            raise Unusable({resource.id: refusal_sentence(resource, error.message)}) from error
        except Conflict as error:
            if error.cause.code is not ReasonCode.QUOTA_EXCEEDED:
                raise
            sentence = "may have no more networks; delete one, or ask for a larger quota"
            raise Conflict(f"project {project} {sentence} ({error.message})", public=f"the project {sentence}").because(
                error.cause
            ) from error

    def _check_segment_free(self, resource: Resource, segment: Segment) -> None:
        for found in self._segments.segment_networks(segment=segment):
            raise Unusable({resource.id: occupied_sentence(resource, found)})

    def _find_network_on(self, task: Task, segment: Segment) -> SegmentNetwork | None:
        return next((network for network in self._networks_of_reservation(task) if segment in network.segments), None)

    def _networks_of_reservation(self, task: Task) -> tuple[SegmentNetwork, ...]:
        recorded, sign = task.reservation.cloud_ids.values.get(NETWORK_ID), reservation_tag(task.reservation.id)
        found = [*self._segments.segment_networks(tag=sign), *self._segments.segment_networks(description=sign)]
        if isinstance(recorded, str):
            found += self._segments.segment_networks(id=recorded)
        by_id = {network.id: network for network in found if network.project_id == task.lease.project_id}
        return tuple(by_id.values())
