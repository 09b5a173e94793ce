# SPDX-License-Identifier: Apache-2.0
"""The store of what is not used: how much of all leases that is, and a report for operators."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from blazar.model.leases.states import EndReason, EventType, LeaseStatus
from blazar.model.leases.stored import saved_state_of
from blazar.model.use.policy import UseReport, UseStep
from blazar.store.sql.tables import events, leases
from blazar.store.sql.transactions import Transactions

HOUR = timedelta(hours=1)


class UnusedStore:
    """Reads the use of leases."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def count_releases(self, now: datetime) -> tuple[int, int]:
        """Return how many leases are released in the hours before and after, really or by a dry run, and of how many.

        Those are the leases in use and those that were released in the hour before; in one statement, by the index of
        ends.
        """
        soon = [
            sa.and_(column >= now - HOUR, column <= now + HOUR)
            for column in (leases.c.release_at, leases.c.would_release_at)
        ]
        current = (leases.c.status == str(LeaseStatus.ACTIVE)) & (leases.c.ends_at > now)
        gone = (leases.c.end_reason == str(EndReason.UNUSED)) & (leases.c.ends_at >= now - HOUR)
        query = sa.select(
            sa.func.count(sa.case((sa.or_(gone, sa.and_(current, sa.or_(*soon))), 1))),
            # With the released ones: else the last of several would not be released when the first ones are gone.
            sa.func.count(sa.case((sa.or_(gone, current), 1))),
        ).where(leases.c.deleted_at.is_(None), leases.c.ends_at >= now - HOUR)
        with self._transactions.reading() as connection:
            due, in_use = connection.execute(query).one()
            return int(due), int(in_use)

    def load_report(self, *, after: str = "", limit: int = 1000) -> tuple[UseReport, ...]:
        """Return the leases that are or were looked at, deleted ones left out, by id from the one ``after``."""
        query = (
            sa.select(
                leases.c.id,
                leases.c.name,
                leases.c.project_id,
                leases.c.user_id,
                leases.c.release_at,
                leases.c.would_release_at,
                events.c.saved_state,
            )
            .join(events, events.c.lease_id == leases.c.id)
            .where(
                leases.c.deleted_at.is_(None), events.c.event_type == str(EventType.USAGE_CHECK), leases.c.id > after
            )
            .order_by(leases.c.id)
            .limit(limit)
        )
        rows = self._transactions.select(query)
        return tuple(report for row in rows if (report := _read_report(row)) is not None)


def _read_report(row: sa.Row[*tuple[Any, ...]]) -> UseReport | None:
    state = saved_state_of(row.saved_state)
    if state is None or (watch := state.watch) is None:
        return None
    return UseReport(
        id=row.id,
        name=row.name,
        project_id=row.project_id,
        user_id=row.user_id,
        mode=watch.policy.mode,
        usage=watch.usage,
        since=watch.since,
        used_at=watch.used_at,
        release_at=row.release_at,
        would_release_at=row.would_release_at,
        would_have_released_at=watch.would_at,
        used_later=any(look.step is UseStep.USED_LATER for look in watch.looks),
        kept_at=watch.kept_at,
        held=watch.held,
        looks=watch.looks,
    )
