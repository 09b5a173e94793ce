# SPDX-License-Identifier: Apache-2.0
"""Pools on the calendar: their attributes, and which of them can be registered.

Nobody can name a pool in a request for a volume: a volume type leads there. So a pool of the calendar is a pool of
Cinder with the one private type that leads only there. Whatever else leads to the pool could take what is promised.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.clouds.ports.volumes import VolumePool, Volumes, VolumeType
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.base.json_text import Json
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import PropertyValue
from blazar.resources.contract.parameters import MOST, quote, text_of, whole_number

POOL, TYPE, TYPE_ID, BACKUPS, OPEN_TO = "pool", "volume_type", "volume_type_id", "backups", "open_to"
SIZE, COUNT = "gigabytes", "volumes"
"""The attributes of a pool on the calendar, and what the API calls them."""

ATTRIBUTES = frozenset({POOL, TYPE, TYPE_ID, BACKUPS, OPEN_TO, SIZE, COUNT})
ASKED_FOR = frozenset({"id", TYPE, BACKUPS, SIZE, COUNT})
"""Properties that requirements of users may name; never the pool, whose name has that of a host."""

GIGABYTES, VOLUMES = "GIGABYTES", "VOLUMES"
"""The resource classes of which a pool has a capacity."""

LONGEST_POOL = 255


def read_pool(given: Json) -> Mapping[str, PropertyValue]:
    """Return what a request to register says of a pool. InvalidInput."""
    missing = [key for key in (POOL, TYPE, SIZE) if given.get(key) is None]
    if missing:
        raise InvalidInput(
            f"Missing parameter {', '.join(missing)}; give {POOL} (as host@backend#pool), {TYPE} (the private volume "
            f"type that leads to it) and {SIZE} (how many GiB of it reservations may have)"
        )
    pool, type_name = text_of(given, POOL), text_of(given, TYPE)
    if not pool or "@" not in pool:
        raise InvalidInput(
            f"{POOL} is {quote(pool)}; give the name of a pool as Cinder has it: host@backend#pool", at=f"/{POOL}"
        )
    if not type_name:
        raise InvalidInput(f"{TYPE} is empty; give the name or the id of a volume type", at=f"/{TYPE}")
    size = whole_number(given[SIZE], SIZE, least=1, what="a whole number of GiB")
    # The smallest volume has 1 GiB.
    count = size if given.get(COUNT) is None else whole_number(given[COUNT], COUNT, least=1, what="a whole number")
    return {POOL: pool, TYPE: type_name, SIZE: size, COUNT: min(count, MOST)}


def capacity_of(attributes: Mapping[str, PropertyValue]) -> Amounts:
    """Return the capacity of a pool with these attributes."""
    return Amounts.of({GIGABYTES: int(attributes[SIZE] or 0), VOLUMES: int(attributes[COUNT] or 0)})


def find_misdirection(found: VolumeType | None, pool: VolumePool, pools: Collection[VolumePool]) -> str | None:
    """Return why volumes of a type would not be in this pool alone, and of nobody else; None if they would."""
    if found is None:
        return "does not exist in Cinder"
    if found.public:
        return "is public, so that every project could use it; make it private"
    if not found.is_specific:
        return "has no extra spec volume_backend_name, so that it leads to any pool; set that of the pool"
    if not found.leads_to(pool):
        return f"does not lead to the pool, whose backend is {pool.backend_name}; correct its extra specs"
    if others := sorted(p.name for p in pools if p.name != pool.name and found.leads_to(p)):
        return f"leads to {', '.join(others)}, too; add the extra spec pool_name: {pool.pool_name}"
    return None


def find_rival_types(types: Collection[VolumeType], own: str, pool: VolumePool) -> tuple[str, ...]:
    """Return the other types that name the backend of a pool and lead there; ``own`` is the id of its type."""
    return tuple(sorted(t.name for t in types if t.id != own and t.is_specific and t.leads_to(pool)))


def find_public_types(types: Collection[VolumeType], pool: VolumePool) -> str:
    """Return the types of everybody that name no backend and so lead to this pool, too; separated by commas.

    Cinder has one from the beginning, ``__DEFAULT__``.
    """
    return ", ".join(sorted(t.name for t in types if t.public and not t.is_specific and t.leads_to(pool)))


class PoolRegistration:
    """Checks whether a pool can be reserved, at its registration."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the pools of Cinder with what registers them, as far as that is clear."""
        pools, types = self._volumes.volume_pools(), self._volumes.volume_types()
        return tuple(
            Candidate(pool.name, pool.name, "up", 0, registration=_propose_fields(pool, pools, types)) for pool in pools
        )

    def complete_attributes(self, attributes: Mapping[str, PropertyValue]) -> Mapping[str, PropertyValue]:
        """Return the attributes of a pool with those that Cinder knows. InvalidInput, NotFound."""
        pools, types = self._volumes.volume_pools(), self._volumes.volume_types()
        pool = next((pool for pool in pools if pool.name == attributes[POOL]), None)
        if pool is None:
            raise NotFound(
                f"Cinder has no pool {quote(attributes[POOL])}; see its list of pools (get_pools)", at=f"/{POOL}"
            )
        named = attributes[TYPE]
        found = next((volume_type for volume_type in types if named in (volume_type.id, volume_type.name)), None)
        if found is None:
            raise NotFound(f"Cinder has no volume type {quote(named)}; give the name or id of one", at=f"/{TYPE}")
        if wrong := find_misdirection(found, pool, pools):
            raise InvalidInput(f"{TYPE} {found.name} {wrong}", at=f"/{TYPE}")
        if others := find_rival_types(types, found.id, pool):
            raise InvalidInput(
                f"{POOL} {pool.name} is used by volume type {', '.join(others)}, too, which could take what is "
                f"promised; let only {found.name} lead to it",
                at=f"/{POOL}",
            )
        given, room = int(attributes[SIZE] or 0), pool.unprovisioned_gb(found.specs)
        if room is not None and given > room:
            raise InvalidInput(
                f"{SIZE} is {given}, and pool {pool.name} has room for {room} GiB: {pool.capacity_gb(found.specs)} GiB "
                f"by its size, the part that is kept free and its over-subscription, of which {pool.provisioned_gb} "
                f"GiB are provisioned; give at most {room}",
                at=f"/{SIZE}",
            )
        return {
            **attributes,
            TYPE: found.name,
            TYPE_ID: found.id,
            BACKUPS: self._volumes.has_backups(),
            OPEN_TO: find_public_types(types, pool),
        }


def _propose_fields(
    pool: VolumePool, pools: Collection[VolumePool], types: Collection[VolumeType]
) -> Mapping[str, PropertyValue]:
    """Return the fields that register a pool: the type only if one leads there alone, the size if known."""
    fit = [t for t in types if find_misdirection(t, pool, pools) is None and not find_rival_types(types, t.id, pool)]
    own = fit[0] if fit else None
    room = pool.unprovisioned_gb(own.specs if own else {})
    given: dict[str, PropertyValue] = {POOL: pool.name}
    if own is not None:
        given[TYPE] = own.name
    if room:
        given[SIZE] = min(room, MOST)
    return given
