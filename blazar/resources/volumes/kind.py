# SPDX-License-Identifier: Apache-2.0
"""The kind ``volume``: pools that operators register, and how they are polled, and closed while they sleep."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.volumes import VolumePool, Volumes, VolumeService, VolumeType, service_of
from blazar.model.base.errors import Conflict, NotFound
from blazar.model.resources.changes import Registration
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import VOLUME, KindShape, Resource, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CalendarReads, CloudResource, Glance, Kind, Polled
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

    def close(self, resources: Collection[Resource], mark: str) -> None:
        """Ensure that the cinder-volumes of pools are disabled; those that were enabled get the mark as the reason."""
        for name, service in self._find_services(resources).items():
            if service.mark is None:
                self._volumes.disable_volume_service(name, mark)

    def reopen(self, resources: Collection[Resource], mark: str, others: Mapping[int, str]) -> None:
        """Ensure that no cinder-volume is disabled for this reason: it is enabled, or has another mark as reason."""
        wanted = {service_of(resource.name): others.get(resource.id) for resource in resources}
        for name, service in self._find_services(resources).items():
            if service.mark != mark:
                continue
            if (other := wanted[name]) is None:
                self._volumes.enable_volume_service(name)
            else:
                self._volumes.disable_volume_service(name, other)

    def occupants(self, resources: Collection[Resource]) -> Mapping[int, int]:
        """Return, by calendar id, how much else than reservations needs the service of each pool.

        That are its volumes, of whomever, counted as one, and its other pools; a call for all and one for each.
        """
        pools = [pool.name for pool in self._volumes.volume_pools()]
        return {resource.id: self._count_on(resource, pools) for resource in resources}

    def check_switch(self, resource: Resource) -> None:
        """Raise Conflict if the cinder-volume of a pool serves other pools, too."""
        others = _find_beside(resource, [pool.name for pool in self._volumes.volume_pools()])
        if others:
            raise Conflict(
                f"the cinder-volume {service_of(resource.name)} serves {', '.join(sorted(others))}, too, so that the "
                f"pool {resource.name} cannot be switched off alone; give each pool a backend of its own"
            )

    def look(self, resource: Resource) -> Glance:
        """Return how the service of a pool is now; NotFound if Cinder does not know it."""
        name = service_of(resource.name)
        service = self._find_services((resource,)).get(name)
        if service is None:
            raise NotFound(f"Cinder knows no cinder-volume {name}")
        # The volumes last: none comes to a service that is disabled.
        pools = [pool.name for pool in self._volumes.volume_pools()]
        return Glance(service.up, service.mark, self._count_on(resource, pools))

    def list_awake(self, resources: Collection[Resource]) -> frozenset[int]:
        """Return the pools whose cinder-volume is up."""
        up = {name for name, service in self._find_services(resources).items() if service.up}
        return frozenset(resource.id for resource in resources if service_of(resource.name) in up)

    def _find_services(self, resources: Collection[Resource]) -> Mapping[str, VolumeService]:
        names = {service_of(resource.name) for resource in resources}
        return {service.name: service for service in self._volumes.volume_services() if service.name in names}

    def _count_on(self, resource: Resource, pools: Collection[str]) -> int:
        return len(_find_beside(resource, pools)) + self._volumes.has_volumes(service_of(resource.name))

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


def _find_beside(resource: Resource, pools: Collection[str]) -> Collection[str]:
    """Return the pools that the service of a pool serves besides it. Of a disabled service Cinder lists none."""
    return [name for name in pools if name != resource.name and service_of(name) == service_of(resource.name)]


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
