# SPDX-License-Identifier: Apache-2.0
"""Reads what projects have to pay for months: what they were charged, and what is planned of what is booked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass
from blazar.model.billing.ledger import Planned
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.spending import find_growth, list_reached
from blazar.model.leases.limits import Growth, refuse_growth
from blazar.model.use.resource_hours import MonthSpending, ReachedShare, SpendingByMonth, SpendLimit
from blazar.store.billing.charges import join_sums, sum_apart
from blazar.store.sql.tables import charges, planned


def read_spending(
    connection: Connection, project_ids: Collection[str], since: date, *, until: date | None = None, besides: str = ""
) -> Mapping[str, SpendingByMonth]:
    """Return what projects have to pay for months from one on, without what is planned for a lease.

    One statement: an account that is closed meanwhile is either planned or charged.
    """
    parts = []
    for table, is_charged in ((planned, 0), (charges, 1)):
        where = [table.c.project_id.in_(sorted(project_ids)), table.c.month >= since]
        where += [] if until is None else [table.c.month <= until]
        where += [planned.c.lease_id != besides] if table is planned and besides else []
        charged: sa.ColumnElement[int] = sa.literal_column(str(is_charged), sa.Integer).label("charged")
        parts.append(sa.select(table.c.project_id, table.c.month, charged, table.c.nano).where(*where))
    both = sa.union_all(*parts).subquery()
    group = both.c.project_id, both.c.month, both.c.charged
    sums: dict[str, dict[date, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    query = sa.select(*group, *sum_apart(both.c.nano)).group_by(*group)
    for project_id, month, which, units, rest in connection.execute(query):
        sums[project_id][month][which] = join_sums(units, rest)
    return {
        project_id: {month: MonthSpending(charged=many[1], planned=many[0]) for month, many in months.items()}
        for project_id, months in sums.items()
    }


@dataclass(frozen=True, slots=True)
class SpendGuard:
    """Keeps a transaction to limits on what projects have to pay from a month on.

    ``before`` is what they had to pay without it; None: only what is planned newly comes to that.
    """

    limits: Mapping[str, SpendLimit]
    since: date
    before: Mapping[str, SpendingByMonth] | None = None

    @classmethod
    def begin(
        cls, connection: Connection, limits: Mapping[str, SpendLimit], since: date, *, changes: bool
    ) -> SpendGuard:
        """Return what is kept to; ``changes``: what was planned may become less. At most one statement."""
        before = read_spending(connection, limits, since) if limits and changes else None
        return cls(limits, since, before)

    def check(
        self, connection: Connection, new: Iterable[tuple[str, Planned]], prices: PriceList
    ) -> tuple[ReachedShare, ...]:
        """Raise UsageDenied if a project has to pay more than before and than it may; return what shares it reaches.

        ``new`` is what is planned newly, by project. One statement.
        """
        reached: list[ReachedShare] = []
        for project_id, was, totals in self._compare(connection, new):
            limit = self.limits[project_id]
            excess = find_growth(was, totals, limit.nano)
            if excess is not None:
                raise refuse_growth(Growth(limit, excess, prices))
            reached += list_reached(project_id, limit, was, totals, prices)
        return tuple(reached)

    def list_reached(self, connection: Connection, prices: PriceList) -> tuple[ReachedShare, ...]:
        """Return what shares are reached by what is charged, also beyond a limit. One statement."""
        return tuple(
            one
            for project_id, was, totals in self._compare(connection, ())
            for one in list_reached(project_id, self.limits[project_id], was, totals, prices)
        )

    def _compare(
        self, connection: Connection, new: Iterable[tuple[str, Planned]]
    ) -> Iterator[tuple[str, Mapping[date, int], Mapping[date, int]]]:
        """Yield each project with what it had to pay for each month, and what it has to pay now. One statement."""
        added: dict[str, Counter[date]] = defaultdict(Counter)
        for project_id, months in new:
            added[project_id].update({month: one.nano for month, one in months.items()})
        after = read_spending(connection, self.limits, self.since)
        for project_id in self.limits:
            totals = {month: one.total for month, one in after.get(project_id, {}).items()}
            if self.before is None:
                was = {month: total - added[project_id][month] for month, total in totals.items()}
            else:
                was = {month: one.total for month, one in self.before.get(project_id, {}).items()}
            yield project_id, was, totals
