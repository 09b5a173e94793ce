# SPDX-License-Identifier: Apache-2.0
"""The store of what resources cannot do for a time: their failures, and until when operators disabled them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.journal.entries import JournalEntry
from blazar.model.journal.object_entries import tell_failure, tell_resource
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.store.journal.rows import write_entries
from blazar.store.resources.resource_rows import ENABLED, resource_of
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import resources
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.sql.versions import raise_version


class ResourceHealthStore:
    """Reads and writes which resources have failed, and enables those whose time has come."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def set_failed(self, kind: ResourceKind, failures: Mapping[int, str], *, at: datetime) -> frozenset[int]:
        """Mark resources as failed, by calendar id and reason: they take no new allocation. Return those newly failed.

        Any number of processes may report the same: only one of them gets the resource returned. One statement for
        each reason, and a few more.
        """
        return self._write_failures(kind, failures, at) if failures else frozenset()

    @atomic
    def _write_failures(
        self, connection: Connection, kind: ResourceKind, failures: Mapping[int, str], at: datetime
    ) -> frozenset[int]:
        found = _lock_failures(connection, failures)
        known = {id_: resource.failure for id_, resource in found.items()}
        by_reason: dict[str, list[int]] = defaultdict(list)
        for id_, reason in failures.items():
            if id_ in known and known[id_] != reason:
                by_reason[reason].append(id_)
        since = sa.func.coalesce(resources.c.failed_since, sa.literal(at, resources.c.updated_at.type))
        # The generation is raised, so that no booking succeeds that assumed the resource to be healthy.
        for reason, ids in by_reason.items():
            _set_condition(connection, ids, at=at, failure=reason, failed_since=since)
        raise_version(connection, kind)
        new = [id_ for id_ in failures if id_ in known and known[id_] is None]
        write_entries(connection, [tell_failure(found[id_], failures[id_], at=at) for id_ in new])
        return frozenset(new)

    def set_recovered(self, kind: ResourceKind, ids: Collection[int], *, at: datetime) -> frozenset[int]:
        """Mark resources as recovered: they take allocations as before. Return those that had failed."""
        return self._remove_failures(kind, ids, at) if ids else frozenset()

    @atomic
    def _remove_failures(
        self, connection: Connection, kind: ResourceKind, ids: Collection[int], at: datetime
    ) -> frozenset[int]:
        found = _lock_failures(connection, ids)
        changed = sorted(id_ for id_, resource in found.items() if resource.failure is not None)
        _set_condition(connection, changed, at=at, failure=None, failed_since=None)
        if changed:
            raise_version(connection, kind)
            write_entries(connection, [tell_failure(found[id_], None, at=at) for id_ in changed])
        return frozenset(changed)

    def find_failed(self, kinds: Collection[ResourceKind], instant: datetime) -> Mapping[int, ResourceKind]:
        """Return the resources of some kinds that failed by an instant and have not recovered, with their kinds."""
        query = sa.select(resources.c.id, resources.c.kind).where(
            resources.c.failed_since <= instant, resources.c.live == 1, resources.c.kind.in_(sorted(kinds))
        )
        return {id_: ResourceKind(kind) for id_, kind in self._transactions.select(query)}

    def find_next_enabling(self) -> datetime | None:
        """Return the earliest instant until which a resource is disabled; None if there is none."""
        query = sa.select(sa.func.min(resources.c.disabled_until)).where(resources.c.live == 1)
        found: datetime | None = self._transactions.scalar(query)
        return found

    @atomic
    def enable_due(self, connection: Connection, *, at: datetime) -> tuple[Resource, ...]:
        """Enable the resources that are disabled until then or earlier; return those enabled, without capabilities."""
        due = (resources.c.live == 1, resources.c.disabled_until <= at)
        rows = connection.execute(sa.select(resources).where(*due).order_by(resources.c.id).with_for_update()).all()
        enabled = tuple(resource_of(row, {}) for row in rows)
        _set_condition(connection, [resource.id for resource in enabled], at=at, disabled=False, **ENABLED)
        for kind in sorted({resource.kind for resource in enabled}):
            raise_version(connection, kind)
        write_entries(connection, [_tell_enabling(resource, at) for resource in enabled])
        return enabled


def _tell_enabling(resource: Resource, at: datetime) -> JournalEntry:
    after = replace(resource, disabled=False, disabled_reason=None, disabled_until=None)
    told = tell_resource(resource, after, at=at, by=current().actor)
    assert told is not None
    return told


def _lock_failures(connection: Connection, ids: Collection[int]) -> Mapping[int, Resource]:
    """Return registered resources without their capabilities, locked against changes until the transaction ends."""
    found: dict[int, Resource] = {}
    for part in chunks(sorted(ids)):
        rows = connection.execute(
            sa.select(resources)
            .where(resources.c.id.in_(part), resources.c.live == 1)
            .order_by(resources.c.id)
            .with_for_update()
        )
        found.update((row.id, resource_of(row, {})) for row in rows)
    return found


def _set_condition(connection: Connection, ids: Collection[int], *, at: datetime, **columns: object) -> None:
    """Write the condition of resources, and raise their generations."""
    for part in chunks(ids):
        connection.execute(
            resources.update()
            .where(resources.c.id.in_(part), resources.c.live == 1)
            .values(updated_at=at, generation=resources.c.generation + 1, revision=resources.c.revision + 1, **columns)
        )
