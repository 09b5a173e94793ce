# SPDX-License-Identifier: Apache-2.0
"""One line in the log for each change of the state of a lease, written after the commit of the change."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.lease import Lease, LeaseStatus
from blazar.model.log_text import printable
from blazar.model.state_change import StateChange, state_change
from blazar.store.tables import leases

LOG = logging.getLogger("blazar.leases")

_KEY = "blazar_states"


def forget(connection: Connection) -> None:
    """Begin a transaction: what an earlier attempt has noted did not happen."""
    connection.info.pop(_KEY, None)


def note(connection: Connection, before: Lease | None, after: Lease) -> None:
    """Note what a write does to a lease."""
    if (change := state_change(before, after, current().operation)) is not None:
        _add(connection, (change,))


def note_pending(connection: Connection, which: Sequence[sa.ColumnElement[bool]], why: str) -> None:
    """Note that the next statement makes all leases PENDING that are CREATING now; in one statement."""
    creating, pending = str(LeaseStatus.CREATING), str(LeaseStatus.PENDING)
    found = connection.execute(sa.select(leases.c.id, leases.c.project_id).where(*which))
    _add(connection, (StateChange(id_, project_id, creating, pending, why) for id_, project_id in found))


def _add(connection: Connection, changes: Iterable[StateChange]) -> None:
    connection.info.setdefault(_KEY, []).extend(changes)


def noted(connection: Connection) -> list[StateChange]:
    """Return what the transaction does to leases."""
    changes: list[StateChange] = connection.info.pop(_KEY, [])
    return changes


def say(changes: Iterable[StateChange]) -> None:
    """Log changes that are committed."""
    request_id = current().request_id or "-"
    for each in changes:
        LOG.info(
            "Lease %s of project %s: %s -> %s (%s), request %s",
            each.lease_id,
            printable(each.project_id),
            each.before,
            each.after,
            printable(each.why, 200),
            request_id,
        )
