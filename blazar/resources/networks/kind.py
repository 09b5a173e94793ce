# SPDX-License-Identifier: Apache-2.0
"""The kind ``network``: segments that operators register, and how they are polled. It never changes the cloud."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.segments import SegmentNetwork, Segments
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import NETWORK, KindShape, Resource, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CalendarReads, CloudResource, InUse, Kind, Polled
from blazar.resources.networks.registration import (
    ATTRIBUTES,
    LAST_IDS,
    LONGEST_PHYSICAL,
    NETWORK_TYPE,
    PHYSICAL_NETWORK,
    SEGMENT_ID,
    SegmentRegistration,
    attributes_of,
    is_refused,
    name_of,
    occupied_sentence,
    reservations_of,
    segment_from,
    segment_of,
)

SHAPE = KindShape(
    "network segment",
    "network segments",
    registration={
        "type": "object",
        "description": "an object",
        "required": [NETWORK_TYPE, SEGMENT_ID],
        "additionalProperties": False,
        "properties": {
            NETWORK_TYPE: {"enum": list(LAST_IDS), "description": "how its networks are kept apart"},
            PHYSICAL_NETWORK: {
                "type": ["string", "null"],
                "maxLength": LONGEST_PHYSICAL,
                "description": "the physical network of a vlan; a vxlan has none",
            },
            SEGMENT_ID: {
                "type": "integer",
                "minimum": 1,
                "maximum": max(LAST_IDS.values()),
                "description": "a whole number: 1 to 4094 for a vlan, 1 to 16777215 for a vxlan",
            },
        },
    },
    attributes={
        NETWORK_TYPE: {"type": "string"},
        PHYSICAL_NETWORK: {"type": ["string", "null"]},
        SEGMENT_ID: {"type": "integer"},
    },
    public=(NETWORK_TYPE, PHYSICAL_NETWORK),
    shown=(NETWORK_TYPE, PHYSICAL_NETWORK),
)


class NetworkSegments(Kind):
    """Segments of the cloud's networks."""

    kind = NETWORK
    usual_type = "network"
    shape = SHAPE
    own_properties = ATTRIBUTES

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> NetworkSegments:
        """Return the kind; it has no options."""
        return cls(cloud.segments)

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._registration = SegmentRegistration(segments)

    def find(self, request: Registration) -> CloudResource:
        """Return the segment with a new id. InvalidInput."""
        segment = segment_from(request.given)
        return CloudResource(str(uuid.uuid4()), name_of(segment), attributes_of(segment))

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes of a segment that can be reserved. InvalidInput, Conflict."""
        self._registration.check_registrable(segment_of(in_cloud.attributes))
        return ResourceDetails(in_cloud.attributes, ResourceInventory())

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return whether each segment is free, or has the network of its reservation: one call, of all networks.

        Users can change the marks of their network. So any other network on a segment in use is reported: the start of
        the reservation knows its network by id, and marks it again.
        """
        if not registered:
            return Polled({})
        networks = {segment: found for found in self._segments.segment_networks() for segment in found.segments}
        here = {r.name: found for r in registered if (found := networks.get(segment_of(r.attributes))) is not None}
        marked = _segments_by_network(here.values(), uses)
        in_use = _by_resource(uses.in_use()) if here.keys() - marked.keys() else {}
        failures: dict[str, str | None] = {}
        for resource in registered:
            found = here.get(resource.name)
            failures[resource.name] = None
            if found is None or resource.name in marked.get(found.id, ()):
                continue
            if in_use.get(resource.name):
                uses.report_lacking(resource, in_use[resource.name])
                # What the start has found out stays.
                failures[resource.name] = resource.failure
            else:
                failures[resource.name] = occupied_sentence(resource, found)
        # Neutron tells nobody its physical networks: what the start has found out lasts.
        unseen = frozenset(r.name for r in registered if is_refused(r) and failures[r.name] is None)
        return Polled(failures, unseen=unseen)


def _segments_by_network(found: Collection[SegmentNetwork], uses: CalendarReads) -> Mapping[str, frozenset[str]]:
    """Return the names of the segments on which each network may be, by its marks, by the ids of the networks.

    Anybody can mark a network of his own with the id of a reservation: marks count within its project only.
    """
    ids = {network.id: reservations_of(network) for network in found}
    named = frozenset().union(*ids.values())
    held, projects = (uses.holders(named), uses.projects(named)) if named else ({}, {})
    return {
        network.id: frozenset(
            name for id_ in ids[network.id] if projects.get(id_) == network.project_id for name in held.get(id_, ())
        )
        for network in found
    }


def _by_resource(in_use: InUse) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for reservation_id, names in in_use.items():
        for name in names:
            found.setdefault(name, []).append(reservation_id)
    return found
