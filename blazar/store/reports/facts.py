# SPDX-License-Identifier: Apache-2.0
"""Reads what became of uses: what looks at leases have found, and when resources had failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.window import Window
from blazar.model.journal.entries import ObjectType, Verb
from blazar.model.reports.sums import Span, UsageFacts
from blazar.model.use.policy import Usage
from blazar.store.sql.tables import journal, leases, resources, usage_changes


def read_facts(connection: Connection, window: Window, *, now: datetime, project_id: str | None = None) -> UsageFacts:
    """Return what is known of the leases and resources of a window; in three statements."""
    return UsageFacts(_read_looks(connection, window, project_id), _read_failures(connection, window, now))


def _read_looks(
    connection: Connection, window: Window, project_id: str | None
) -> Mapping[str, Sequence[tuple[int, Usage]]]:
    """Return when looks found another usage than before, by lease, in their order."""
    u = usage_changes.c
    query = (
        sa.select(u.lease_id, u.at, u.usage)
        .join(leases, leases.c.id == u.lease_id)
        .where(u.at < window.end, leases.c.ends_at > window.start)
        .order_by(u.lease_id, u.at)
    )
    if project_id is not None:
        query = query.where(leases.c.project_id == project_id)
    found: dict[str, list[tuple[int, Usage]]] = defaultdict(list)
    for lease_id, at, usage in connection.execute(query):
        found[lease_id].append((int(at.timestamp()), Usage(usage)))
    return found


def _read_failures(connection: Connection, window: Window, now: datetime) -> Mapping[int, Sequence[Span]]:
    """Return when resources had failed, by resource: from the journal since the begin of the window, and as it is now.

    A resource whose first entry says that it has recovered had failed before.
    """
    j, r = journal.c, resources.c
    query = (
        sa.select(r.id, j.at, j.verb)
        .join_from(
            journal,
            resources,
            sa.and_(
                j.object_id == r.kind + "/" + r.external_id,
                r.created_at <= j.at,
                sa.or_(r.retired_at.is_(None), r.retired_at >= j.at),
            ),
        )
        .where(
            j.object_type == str(ObjectType.RESOURCE),
            j.verb.in_([str(Verb.FAILED), str(Verb.RECOVERED)]),
            j.at >= window.start,
        )
        .order_by(j.seq)
    )
    told: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for resource_id, at, verb in connection.execute(query):
        told[resource_id].append((int(at.timestamp()), verb))
    failed = connection.execute(sa.select(r.id).where(r.failed_since.is_not(None), r.failed_since < now)).scalars()
    first, last = int(window.start.timestamp()), int(now.timestamp())
    found = {resource_id: _pair_entries(entries, first, last) for resource_id, entries in told.items()}
    # Of what has failed and is not told of since, it is so since before.
    return {**{resource_id: [(first, last)] for resource_id in failed}, **found}


def _pair_entries(entries: Iterable[tuple[int, str]], first: int, last: int) -> list[Span]:
    """Return the spans between failures and recoveries, from the first to the last instant of what is known."""
    spans: list[Span] = []
    since: int | None = None
    for number, (at, verb) in enumerate(entries):
        if verb == Verb.FAILED:
            since = at if since is None else since
        elif number == 0 or since is not None:
            spans.append((first if since is None else since, at))
            since = None
    return spans if since is None else [*spans, (since, last)]
