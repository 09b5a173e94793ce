# SPDX-License-Identifier: Apache-2.0
"""Segments on the calendar: their attributes, which of them can be registered, and whose network is on one.

Neutron accepts a request for any free segment, also outside of its own ranges, and hands out segments of its ranges to
requests that name none. So a reservable segment is free, and in no range from which others are served.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from blazar.clouds.ports.segments import Segment, SegmentNetwork, SegmentRange, Segments
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.resources.resource import PropertyValue, Resource
from blazar.resources.contract.parameters import may_be_reservation, quote, text_of, whole_number

NETWORK_TYPE, PHYSICAL_NETWORK, SEGMENT_ID = "network_type", "physical_network", "segment_id"
"""The attributes of a segment on the calendar, and what the API calls them."""

ATTRIBUTES = frozenset({NETWORK_TYPE, PHYSICAL_NETWORK, SEGMENT_ID})

LAST_IDS: Mapping[str, int] = {"vlan": 4094, "vxlan": 2**24 - 1}
"""The types of segments, and the last id of each; the first one is 1."""

LONGEST_PHYSICAL = 64

BLAZAR = "blazar"
"""The tag of every network that Blazar creates."""


def reservation_tag(reservation_id: str) -> str:
    """Return the tag of a reservation's network, and the description that it is created with."""
    return f"reservation:{reservation_id}"


def reservations_of(found: SegmentNetwork) -> frozenset[str]:
    """Return the ids of the reservations that a network is marked for: one, unless its users changed its tags.

    What cannot be an id is left out.
    """
    ids = (
        text.removeprefix(reservation_tag(""))
        for text in (*found.tags, found.description)
        if text.startswith(reservation_tag(""))
    )
    return frozenset(id_ for id_ in ids if may_be_reservation(id_))


def segment_from(given: Json) -> Segment:
    """Return the segment that a request to register names. InvalidInput."""
    missing = [key for key in (NETWORK_TYPE, SEGMENT_ID) if given.get(key) is None]
    if missing:
        raise InvalidInput(
            f"Missing parameter {', '.join(missing)}; give {NETWORK_TYPE} (vlan or vxlan), {SEGMENT_ID} and, for a "
            f"vlan, {PHYSICAL_NETWORK}"
        )
    network_type = given[NETWORK_TYPE]
    if not isinstance(network_type, str) or network_type not in LAST_IDS:
        raise InvalidInput(
            f"{NETWORK_TYPE} is {quote(network_type)}; use one of {', '.join(LAST_IDS)}", at=f"/{NETWORK_TYPE}"
        )
    what = f"the id of a {network_type}, a whole number"
    number = whole_number(given[SEGMENT_ID], SEGMENT_ID, least=1, what=what, most=LAST_IDS[network_type])
    return Segment(network_type, _checked_physical_network(network_type, given), number)


def name_of(segment: Segment) -> str:
    """Return the name of a segment on the calendar: there is one of each."""
    where = f" on {segment.physical_network}" if segment.physical_network is not None else ""
    return f"{segment.network_type} {segment.segment_id}{where}"


def attributes_of(segment: Segment) -> Mapping[str, PropertyValue]:
    """Return the attributes of a segment on the calendar."""
    return {
        NETWORK_TYPE: segment.network_type,
        PHYSICAL_NETWORK: segment.physical_network,
        SEGMENT_ID: segment.segment_id,
    }


def segment_of(attributes: Mapping[str, PropertyValue]) -> Segment:
    """Return the segment that has these attributes on the calendar."""
    physical, number = attributes[PHYSICAL_NETWORK], attributes[SEGMENT_ID]
    return Segment(str(attributes[NETWORK_TYPE]), None if physical is None else str(physical), int(str(number)))


def occupied_sentence(resource: Resource, found: SegmentNetwork) -> str:
    """Return the sentence that a network of somebody else is on a segment."""
    return f"{resource.name} is in use by network {found.id} of project {found.project_id}"


_NO_NETWORK = "cannot have a network"


def is_refused(resource: Resource) -> bool:
    """Return whether a segment has failed as Neutron makes no network on it, by the sentence that is kept of that."""
    return (resource.failure or "").startswith(f"{resource.name} {_NO_NETWORK} ")


def refusal_sentence(resource: Resource, said: str) -> str:
    """Return the sentence that Neutron makes no network on a segment; ``said`` is what it says."""
    return (
        f"{resource.name} {_NO_NETWORK} ({said}); correct network_vlan_ranges in Neutron's configuration, or "
        f"unregister the segment and register it with the physical network that it is on"
    )


class SegmentRegistration:
    """Checks whether a segment can be reserved, at its registration."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    def check_registrable(self, segment: Segment) -> None:
        """Raise Conflict if a network is on the segment, InvalidInput if Neutron may hand it out to others."""
        found = self._segments.segment_networks(segment=segment)
        if found:
            raise Conflict(
                f"{name_of(segment)} is in use by network {found[0].id} of project {found[0].project_id}; delete that "
                f"network first, or register another segment"
            )
        ranges = self._segments.segment_ranges(segment.network_type)
        own = self._segments.service_project() if ranges else ""
        for range in ranges or ():
            if _is_in_range(range, segment) and (range.shared or range.project_id != own):
                others = "all projects" if range.shared else f"project {range.project_id}"
                raise InvalidInput(
                    f"{SEGMENT_ID} {segment.segment_id} is in a range ({range.minimum} to {range.maximum}) from which "
                    f"Neutron serves {others}; take it out of that range, or give it to a range that is not shared and "
                    f"belongs to project {own}, that of this service",
                    at=f"/{SEGMENT_ID}",
                )


def _is_in_range(found: SegmentRange, segment: Segment) -> bool:
    return (
        found.physical_network == segment.physical_network
        and found.minimum <= (segment.segment_id or 0) <= found.maximum
    )


def _checked_physical_network(network_type: str, given: Json) -> str | None:
    found = text_of(given, PHYSICAL_NETWORK)
    if network_type == "vxlan":
        if found is not None:
            raise InvalidInput(
                f"{PHYSICAL_NETWORK} is {quote(found)}, and a vxlan has none; leave it out, or give null",
                at=f"/{PHYSICAL_NETWORK}",
            )
        return None
    # Neutron's configuration separates names by these.
    if found is None or not re.fullmatch(r"[^\s,:\x00-\x1f\x7f]+", found) or len(found) > LONGEST_PHYSICAL:
        raise InvalidInput(
            f"{PHYSICAL_NETWORK} is {quote(found)}; give the name of the physical network that has the vlan, at most "
            f"{LONGEST_PHYSICAL} characters without blanks, commas and colons",
            at=f"/{PHYSICAL_NETWORK}",
        )
    return found
