# SPDX-License-Identifier: Apache-2.0
"""The kind ``volume``: pools that operators register, and how they are polled. It never changes the cloud."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.volumes import VolumePool, Volumes, VolumeType
from blazar.model.resources.changes import Registration
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import VOLUME, KindShape, Resource, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CalendarReads, CloudResource, Kind, Polled
from blazar.resources.contract.parameters import MOST
from blazar.resources.volumes.registration import (
    ATTRIBUTES,
    BACKUPS,
    COUNT,
    LONGEST_POOL,
    OPEN_TO,
    POOL,
    SIZE,
    TYPE,
    TYPE_ID,
    PoolRegistration,
    capacity_of,
    find_misdirection,
    find_public_types,
    find_rival_types,
    read_pool,
)

_TEXT = {"type": "string", "minLength": 1, "maxLength": LONGEST_POOL}
_NUMBER = {"type": "integer", "minimum": 1, "maximum": MOST}

SHAPE = KindShape(
    "volume pool",
    "volume pools",
    registration={
        "type": "object",
        "description": "an object",
        "required": [POOL, TYPE, SIZE],
        "additionalProperties": False,
        "properties": {
            POOL: {**_TEXT, "description": "the name of a pool of Cinder, as host@backend#pool"},
            TYPE: {**_TEXT, "description": "the name or the id of the private volume type that leads only there"},
            SIZE: {**_NUMBER, "description": "how many GiB of the pool reservations may have, a whole number"},
            COUNT: {**_NUMBER, "description": "how many volumes they may have; by default as many as GiB"},
        },
    },
    attributes={
        POOL: {"type": "string"},
        TYPE: {"type": "string"},
        TYPE_ID: {"type": "string"},
        SIZE: {"type": "integer"},
        COUNT: {"type": "integer"},
        BACKUPS: {"type": "boolean"},
        OPEN_TO: {"type": "string"},
    },
    public=(TYPE, SIZE, COUNT, BACKUPS),
    shown=(TYPE, SIZE),
)


class VolumePools(Kind):
    """Pools of Cinder, each with a private volume type."""

    kind = VOLUME
    shape = SHAPE
    own_properties = ATTRIBUTES

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> VolumePools:
        """Return the kind; it has no options."""
        return cls(cloud.volumes)

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes
        self._registration = PoolRegistration(volumes)

    def find(self, request: Registration) -> CloudResource:
        """Return the pool that a request names, with a new id: its name has characters that a path cannot have."""
        given = read_pool(request.given)
        return CloudResource(str(uuid.uuid4()), str(given[POOL]), given)

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return the pools of Cinder, each with the private type that leads only there, if there is one; two calls."""
        return self._registration.candidates()

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes and the capacity of a pool that can be reserved. InvalidInput, NotFound."""
        found = self._registration.complete_attributes(in_cloud.attributes)
        return ResourceDetails(found, ResourceInventory(capacity_of(found)))

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return whether each pool is there, has the size that is promised, and is led to by its type alone.

        Three calls, however many pools there are.
        """
        if not registered:
            return Polled({})
        pools, backups = self._volumes.volume_pools(), self._volumes.has_backups()
        types = {volume_type_.id: volume_type_ for volume_type_ in self._volumes.volume_types()}
        details: dict[int, ResourceDetails] = {}
        failures: dict[str, str | None] = {}
        for resource in registered:
            found = types.get(str(resource.attributes.get(TYPE_ID)))
            pool = next((pool for pool in pools if pool.name == resource.attributes[POOL]), None)
            if pool is None:
                failures[resource.name] = f"Cinder does not report the pool {resource.name}; its service may be down"
                continue
            failures[resource.name] = _failure_of_pool(resource, found, pool, pools)
            if failures[resource.name] is None and (
                others := find_rival_types(types.values(), found.id if found else "", pool)
            ):
                failures[resource.name] = f"volume type {', '.join(others)} leads to the pool {resource.name}, too"
            name = resource.attributes[TYPE] if found is None else found.name
            fresh = {
                **resource.attributes,
                TYPE: name,
                BACKUPS: backups,
                OPEN_TO: find_public_types(types.values(), pool),
            }
            if fresh != dict(resource.attributes):
                details[resource.id] = ResourceDetails(fresh, resource.details.inventory)
        return Polled(failures, details)


def _failure_of_pool(
    resource: Resource, found: VolumeType | None, pool: VolumePool, pools: Collection[VolumePool]
) -> str | None:
    """Return what is wrong with a registered pool; None if nothing is."""
    if wrong := find_misdirection(found, pool, pools):
        return f"volume type {resource.attributes[TYPE]} {wrong}"
    capacity, promised = pool.capacity_gb(found.specs if found else {}), int(resource.attributes[SIZE] or 0)
    if capacity is not None and capacity < promised:
        return f"the pool {resource.name} lets volumes have {capacity} GiB, and reservations were given {promised}"
    if capacity is not None and pool.provisioned_gb > capacity:
        return f"volumes of the pool {resource.name} have {pool.provisioned_gb} GiB, and it has {capacity}"
    return None
