# SPDX-License-Identifier: Apache-2.0
"""Resources, their capabilities and properties."""

from __future__ import annotations

import secrets
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotFound
from blazar.model.resources.pools import DECLARED, declared_cards
from blazar.model.resources.resource import Resource, ResourceKind, unknown_resource
from blazar.store.resources.resource_rows import resource_of
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import (
    resource_capabilities,
    resource_properties,
    resources,
)
from blazar.store.sql.versions import raise_version

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without letters that are easily mistaken for others."""

_LENGTH = 6


def new_label(kind: ResourceKind) -> str:
    """Return a label such as ``h-4kq2mz``, which users see of a resource whose name is for operators.

    It is random, so that it tells neither the id nor the order of registration, and stays with the resource until that
    is unregistered. It may be taken: the database refuses it then.
    """
    return f"{kind[0]}-" + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


IS_DECLARATION = resource_properties.c.name.startswith(DECLARED, autoescape=True)
"""The condition for properties that may declare cards: some databases take capital letters for the same."""


def load_resources(
    connection: Connection, kind: ResourceKind, *conditions: sa.ColumnElement[bool]
) -> tuple[Resource, ...]:
    """Return registered resources with their capabilities, oldest first, in two statements."""
    where = (resources.c.kind == str(kind), resources.c.live == 1, *conditions)
    rows = connection.execute(sa.select(resources).where(*where).order_by(resources.c.id)).all()
    if not rows:
        return ()
    pairs = connection.execute(
        sa.select(resource_capabilities.c.resource_id, resource_properties.c.name, resource_capabilities.c.value)
        .join(resource_properties, resource_properties.c.id == resource_capabilities.c.property_id)
        .join(resources, resources.c.id == resource_capabilities.c.resource_id)
        .where(*where)
    ).all()
    capabilities: dict[int, dict[str, str]] = defaultdict(dict)
    for resource_id, name, value in pairs:
        capabilities[resource_id][name] = value
    return tuple(resource_of(row, dict(sorted(capabilities[row.id].items()))) for row in rows)


_BY_IDS = sa.select(resources).where(resources.c.id.in_(sa.bindparam("ids", expanding=True)))


def load_by_ids(connection: Connection, ids: Collection[int]) -> Mapping[int, Resource]:
    """Return resources, retired ones too, without their capabilities."""
    found: dict[int, Resource] = {}
    for part in chunks(sorted(ids)):
        found.update((row.id, resource_of(row, {})) for row in connection.execute(_BY_IDS, {"ids": part}))
    return found


def load_resource(connection: Connection, kind: ResourceKind, external_id: str) -> Resource:
    """Return one registered resource; NotFound."""
    found = load_resources(connection, kind, resources.c.external_id == external_id)
    if not found:
        raise unknown_resource(kind, external_id)
    return found[0]


def lock_resource(connection: Connection, resource_id: int) -> Resource | None:
    """Return a registered resource without its capabilities, which nobody else changes until the transaction ends."""
    query = sa.select(resources).where(resources.c.id == resource_id, resources.c.live == 1).with_for_update()
    row = connection.execute(query).one_or_none()
    return None if row is None else resource_of(row, {})


def new_row(kind: ResourceKind, external_id: str, name: str, at: datetime) -> dict[str, object]:
    """Return the columns of a resource that is registered, with a new label; without what the cloud says about it."""
    return {
        "kind": str(kind),
        "external_id": external_id,
        "name": name,
        "label": new_label(kind),
        "revision": 0,
        "reservable": True,
        "generation": 0,
        "live": 1,
        "created_at": at,
    }


def insert_resource(
    connection: Connection, kind: ResourceKind, row: Mapping[str, object], capabilities: Mapping[str, str], at: datetime
) -> int:
    """Insert a resource with its capabilities; return its key."""
    result = connection.execute(resources.insert().values(**row))
    key = result.inserted_primary_key
    assert key is not None
    set_capabilities(connection, kind, key[0], capabilities, at)
    return int(key[0])


def set_capabilities(
    connection: Connection, kind: ResourceKind, resource_id: int, changes: Mapping[str, str | None], at: datetime
) -> None:
    """Set and remove capabilities of one resource."""
    if not changes:
        return
    known = _read_property_ids(connection, kind, changes)
    new = [name for name, value in changes.items() if value is not None and name not in known]
    if new:
        rows = [
            {"id": str(uuid.uuid4()), "kind": str(kind), "name": name, "private": False, "created_at": at}
            for name in new
        ]
        connection.execute(resource_properties.insert(), rows)
        known |= {row["name"]: row["id"] for row in rows}  # type: ignore[misc]
    touched = [known[name] for name in changes if name in known]
    connection.execute(
        resource_capabilities.delete().where(
            resource_capabilities.c.resource_id == resource_id, resource_capabilities.c.property_id.in_(touched)
        )
    )
    values = [
        {"resource_id": resource_id, "property_id": known[name], "value": value}
        for name, value in changes.items()
        if value is not None
    ]
    if values:
        connection.execute(resource_capabilities.insert(), values)


def read_capabilities(connection: Connection, resource_id: int) -> Mapping[str, str]:
    """Return the capabilities of one resource."""
    rows = connection.execute(
        sa.select(resource_properties.c.name, resource_capabilities.c.value)
        .join(resource_properties, resource_properties.c.id == resource_capabilities.c.property_id)
        .where(resource_capabilities.c.resource_id == resource_id)
    )
    return dict(tuple(row) for row in rows)


def read_declared(connection: Connection, ids: Collection[int] | None = None) -> Mapping[int, Amounts]:
    """Return the cards that the operators of resources declare, by calendar id, which no row of a resource has.

    One statement.
    """
    query = (
        sa.select(resource_capabilities.c.resource_id, resource_properties.c.name, resource_capabilities.c.value)
        .join(resource_properties, resource_properties.c.id == resource_capabilities.c.property_id)
        .where(IS_DECLARATION)
    )
    if ids is not None:
        query = query.where(resource_capabilities.c.resource_id.in_(sorted(ids)))
    found: dict[int, Amounts] = defaultdict(Amounts)
    for resource_id, name, value in connection.execute(query):
        found[resource_id] += declared_cards({name: value})
    return found


def change_resource(connection: Connection, resource_id: int, at: datetime, **columns: object) -> ResourceKind:
    """Write columns of one resource, invalidate every process's cache, and return its kind; NotFound if not registered.

    Its generation is raised, too: a booking that was decided on the previous values must not succeed.
    """
    result = connection.execute(
        resources.update()
        .where(resources.c.id == resource_id, resources.c.live == 1)
        .values(updated_at=at, generation=resources.c.generation + 1, revision=resources.c.revision + 1, **columns)
    )
    if not result.rowcount:
        raise NotFound("the resource is no longer registered", code="resource_not_found")
    kind = ResourceKind(_read_kind(connection, resource_id))
    raise_version(connection, kind)
    return kind


def read_private_names(connection: Connection, kind: ResourceKind) -> frozenset[str]:
    """Return the names of the properties that are for operators only."""
    where = (resource_properties.c.kind == str(kind), resource_properties.c.private.is_(True))
    return frozenset(connection.execute(sa.select(resource_properties.c.name).where(*where)).scalars())


def _read_kind(connection: Connection, resource_id: int) -> str:
    return str(connection.execute(sa.select(resources.c.kind).where(resources.c.id == resource_id)).scalar_one())


def _read_property_ids(connection: Connection, kind: ResourceKind, names: Collection[str]) -> dict[str, str]:
    rows = connection.execute(
        sa.select(resource_properties.c.name, resource_properties.c.id).where(
            resource_properties.c.kind == str(kind), resource_properties.c.name.in_(list(names))
        )
    )
    return {row.name: row.id for row in rows}
