# SPDX-License-Identifier: Apache-2.0
"""What reservations have made in their project, by the ids that are recorded of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

_IDS_OF: Mapping[str, str] = {
    "network": "network_id",
    "virtual:volume": "volume_ids",
    "virtual:server": "server_ids",
}
"""The cloud id that has the ids of what is made, by resource type."""

TYPES = frozenset(_IDS_OF)
"""The resource types that make what users can delete."""


@dataclass(frozen=True, slots=True)
class Gone:
    """What was made and is not in the cloud any more; ``since`` is when that was seen first."""

    id: str
    since: datetime


def made_of(resource_type: str, cloud_ids: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of what a reservation of a type has made, in the order in which they are recorded."""
    found = cloud_ids.get(_IDS_OF.get(resource_type, ""))
    if isinstance(found, str):
        return (found,)
    return tuple(str(id_) for id_ in found) if isinstance(found, list | tuple) else ()
