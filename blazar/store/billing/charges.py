# SPDX-License-Identifier: Apache-2.0
"""The store of charges: pages of them, their sums by month, and what corrects one. Rows are added, never changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import NotFound
from blazar.model.base.paging import Page, Position, unknown_marker
from blazar.model.base.window import Window
from blazar.model.billing.booked_prices import AccountTotals
from blazar.model.billing.charges import (
    NANO,
    CarbonState,
    Charge,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    LineEnergy,
)
from blazar.model.billing.statements import (
    ChargePage,
    ChargeQuestion,
    CorrectionRequest,
    MonthCharges,
    MonthPage,
    StatementQuestion,
    StatementTotal,
    check_given_back,
    draft_correction,
    parse_month,
    sort_totals,
)
from blazar.model.energy.consumption import EnergySource
from blazar.model.journal.object_entries import tell_correction
from blazar.model.leases.requests import IdempotencyKey
from blazar.store.billing.accounts import ACCOUNT_COLUMNS, look_again, parse_account
from blazar.store.journal.rows import write_entry
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import accounts, charges, leases, planned
from blazar.store.sql.transactions import Transactions
from blazar.store.work import idempotency

_C = charges.c
# What somebody else who has taken a lease over calls it is none of the business of who gave it away.
_OWN = sa.and_(leases.c.id == _C.lease_id, leases.c.project_id == _C.project_id)
CHARGE_COLUMNS = (
    *(_C.id, _C.lease_id, _C.project_id, _C.user_id, _C.month, _C.reservation_id, _C.region, _C.sku, _C.category),
    *(_C.status, _C.starts_at, _C.ends_at, _C.resource_seconds, _C.unit_nano, _C.factor, _C.nano, _C.wh, _C.gco2),
    *(_C.energy_source, _C.carbon_state, _C.currency, _C.version, _C.corrects, _C.reason, _C.at),
)
_NAMED = sa.select(*CHARGE_COLUMNS, leases.c.name.label("lease_name")).outerjoin_from(charges, leases, _OWN)


def sum_apart(nano: sa.ColumnElement[int]) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    """Return the sums of the whole units of some amounts in 10⁻⁹, and of the rest; ``join_sums`` makes one of them.

    An amount fits into 64 bits, many of them together need not: SQLite refuses to add such, and with it all that a
    statement reads.
    """
    # Databases round a quotient below 0 in different ways: it is one without a rest.
    rest = nano % NANO
    return sa.func.sum((nano - rest) // NANO), sa.func.sum(rest)


def join_sums(units: Any, rest: Any) -> int:
    """Return the sum in 10⁻⁹, of the two that the database has added; 0 if there was nothing to add."""
    return int(units or 0) * NANO + int(rest or 0)


class ChargeStore:
    """Reads charges, and adds corrections."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def page(self, question: ChargeQuestion) -> ChargePage:
        """Return a page of charges in the order of their ids; InvalidInput for an unknown marker. Two statements."""
        where, page = _select_wanted(question), question.page
        order = _C.id.desc() if page.descending else _C.id
        query = _NAMED.where(*where, *_follow(page)).order_by(order).limit(page.limit + 1)
        with self._transactions.reading() as connection:
            rows = connection.execute(query).all()
            count = _count(connection, where) if page.with_count else None
        shown = tuple(map(parse_charge, rows[: page.limit]))
        following = Position(str(shown[-1].id), str(shown[-1].id)) if len(rows) > page.limit else None
        return ChargePage(shown, following, count)

    def one(self, charge_id: int) -> Charge:
        """Return a charge; NotFound."""
        with self._transactions.reading() as connection:
            return _read_charge(connection, charge_id)

    def page_months(self, question: StatementQuestion) -> MonthPage:
        """Return a page of the sums of charges by project and month; InvalidInput for an unknown marker.

        In the order of months, and of projects in them. Three statements, and one more to count.
        """
        page = question.page
        where = [] if question.project_id is None else [_C.project_id == question.project_id]
        of_months = sa.select(_C.month, _C.project_id).where(*where).group_by(_C.month, _C.project_id)
        order = (_C.month.desc(), _C.project_id.desc()) if page.descending else (_C.month, _C.project_id)
        query = of_months.where(*_follow_month(page)).order_by(*order).limit(page.limit + 1)
        with self._transactions.reading() as connection:
            found = [(month, project_id) for month, project_id in connection.execute(query)]
            shown = found[: page.limit]
            months = {(one.month, one.project_id): one for one in _read_months(connection, shown)}
            count = _count_rows(connection, of_months) if page.with_count else None
        items = tuple(months[place] for place in shown)
        following = Position(shown[-1][0].isoformat(), shown[-1][1]) if len(found) > page.limit else None
        return MonthPage(items, following, count)

    def find_month(self, project_id: str, month: date) -> MonthCharges | None:
        """Return the sums of the charges of a project in a month; None if there are none. Two statements."""
        with self._transactions.reading() as connection:
            return next(iter(_read_months(connection, [(month, project_id)])), None)

    def sum_leases(self, lease_ids: Collection[str]) -> Mapping[tuple[str, str], AccountTotals]:
        """Return what the accounts of leases were charged, and what is planned for them, by lease and project.

        In one statement for each few thousand leases.
        """
        with self._transactions.reading() as connection:
            return read_totals(connection, lease_ids)

    def correct(self, request: CorrectionRequest, key: IdempotencyKey | None = None, *, now: datetime) -> Charge:
        """Add the answer to a charge, and return it; NotFound, InvalidInput, KeyTaken. Ten statements at most."""
        return self._transactions.write(lambda connection: _correct(connection, request, key, now))


def read_totals(connection: Connection, lease_ids: Collection[str]) -> Mapping[tuple[str, str], AccountTotals]:
    """Return what the accounts of leases were charged, and what is planned for them, by lease and project."""
    found: dict[tuple[str, str], AccountTotals] = {}
    for part in chunks(sorted(lease_ids)):
        of_these = (_TOTALS_OF_ONE, {"id": part[0]}) if len(part) == 1 else (_TOTALS, {"ids": part})
        for *columns, units, rest, plan, estimated in connection.execute(*of_these):
            account, charged = parse_account(columns), join_sums(units, rest)
            key = account.lease_id, account.project_id
            known = found.get(key)
            if known is None or known.account.id != account.id:
                # The last of several: a project may have given a lease away, and got it back.
                known = AccountTotals(account, 0, 0)
            found[key] = replace(
                known,
                charged=known.charged + charged,
                planned=known.planned + int(plan),
                estimated=known.estimated + int(estimated),
            )
    return found


def _select_totals(are_wanted: Callable[[sa.ColumnElement[str]], sa.ColumnElement[bool]]) -> sa.Select[Any]:
    """Return what selects the accounts of leases in order, each with an amount of each of its months.

    ``are_wanted`` returns the condition that a column with the id of the lease has to meet. What was charged is in two
    columns, for ``join_sums``.
    """
    none = sa.literal(0, sa.BigInteger)
    of_month = _C.lease_id, _C.project_id, _C.month
    units, rest = sum_apart(_C.nano)
    plans = none.label("planned"), none.label("estimated")
    charged = sa.select(*of_month[:2], units.label("units"), rest.label("rest"), *plans)
    plan = sa.select(planned.c.lease_id, planned.c.project_id, none, none, planned.c.nano, planned.c.estimated_nano)
    amounts = sa.union_all(
        charged.where(are_wanted(_C.lease_id)).group_by(*of_month), plan.where(are_wanted(planned.c.lease_id))
    ).subquery()
    of_plan = (sa.func.coalesce(column, 0) for column in (amounts.c.planned, amounts.c.estimated))
    columns = (amounts.c.units, amounts.c.rest, *of_plan)
    same = sa.and_(amounts.c.lease_id == accounts.c.lease_id, amounts.c.project_id == accounts.c.project_id)
    query = sa.select(*ACCOUNT_COLUMNS, *columns).select_from(accounts.outerjoin(amounts, same))
    return query.where(are_wanted(accounts.c.lease_id)).order_by(accounts.c.opened_at, accounts.c.id)


# Built once: building it costs as much as executing it. A list of ids is put into its text each time, one is not.
_TOTALS = _select_totals(lambda lease_id: lease_id.in_(sa.bindparam("ids", expanding=True)))
_TOTALS_OF_ONE = _select_totals(lambda lease_id: lease_id == sa.bindparam("id"))


def _select_wanted(question: ChargeQuestion) -> list[sa.ColumnElement[bool]]:
    wanted = {
        _C.project_id: question.project_id,
        _C.lease_id: question.lease_id,
        _C.month: question.month,
        _C.category: None if question.category is None else str(question.category),
    }
    found = [column == value for column, value in wanted.items() if value is not None]
    return found if question.last_id is None else [*found, _C.id <= question.last_id]


def _follow(page: Page) -> list[sa.ColumnElement[bool]]:
    if page.after is None:
        return []
    text = page.after.id if isinstance(page.after, Position) else page.after
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise unknown_marker()
    return [_C.id < int(text) if page.descending else _C.id > int(text)]


def _count(connection: Connection, where: Sequence[sa.ColumnElement[bool]]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(charges).where(*where)).scalar_one())


def _count_rows(connection: Connection, query: sa.Select[Any]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one())


def _follow_month(page: Page) -> list[sa.ColumnElement[bool]]:
    """Return the condition for what follows the marker of a page: a month and a project, as in ids of statements."""
    if page.after is None:
        return []
    if isinstance(page.after, str):
        month, _, project_id = page.after.partition("/")
    else:
        month, project_id = (page.after.value or "")[:7], page.after.id
    first = parse_month(month)
    if first is None:
        raise unknown_marker()
    in_month = _C.project_id < project_id if page.descending else _C.project_id > project_id
    return [sa.or_(_C.month < first if page.descending else _C.month > first, sa.and_(_C.month == first, in_month))]


def _read_months(connection: Connection, places: Sequence[tuple[date, str]]) -> tuple[MonthCharges, ...]:
    """Return the sums of the charges of months and projects, with the month from which on more is planned.

    Two statements for each few thousand.
    """
    group = _C.project_id, _C.month, _C.currency, _C.category, _C.status, _C.sku
    sums = (*(sa.func.sum(column) for column in (_C.resource_seconds, _C.wh, _C.gco2)), *sum_apart(_C.nano))
    found: list[MonthCharges] = []
    for part in chunks(places):
        query = sa.select(*group, sa.func.count(), *sums, sa.func.max(_C.id)).group_by(*group)
        rows = connection.execute(query.where(sa.tuple_(_C.month, _C.project_id).in_(part))).all()
        found += _group_months(rows, _read_planned(connection, {row[0] for row in rows}))
    return tuple(found)


def _read_charge(connection: Connection, charge_id: int) -> Charge:
    row = connection.execute(_NAMED.where(_C.id == charge_id)).one_or_none()
    if row is None:
        raise NotFound(f"charge {charge_id} not found", code="charge_not_found")
    return parse_charge(row)


def _read_planned(connection: Connection, projects: Collection[str]) -> dict[str, date]:
    """Return the first month for which more is planned, of projects of which something is still to be charged."""
    first = sa.func.min(planned.c.month, type_=planned.c.month.type).label("first")
    query = sa.select(planned.c.project_id, first).where(planned.c.project_id.in_(sorted(projects)))
    return {row.project_id: row.first for row in connection.execute(query.group_by(planned.c.project_id))}


def _group_months(rows: Sequence[AnyRow], planned_from: dict[str, date]) -> tuple[MonthCharges, ...]:
    totals: dict[tuple[str, date, str], list[StatementTotal]] = {}
    last: dict[tuple[str, date, str], int] = {}
    for project_id, month, currency, category, status, sku, count, seconds, wh, gco2, units, rest, last_id in rows:
        key = project_id, month, currency
        energy = (None if sum_ is None else int(sum_) for sum_ in (wh, gco2))
        of = ChargeCategory(category), ChargeStatus(status), sku
        total = StatementTotal(*of, count, int(seconds), join_sums(units, rest), *energy)
        totals.setdefault(key, []).append(total)
        last[key] = max(last.get(key, 0), int(last_id))
    return tuple(
        MonthCharges(*key, sort_totals(found), last[key], planned_from.get(key[0])) for key, found in totals.items()
    )


def _correct(connection: Connection, request: CorrectionRequest, key: IdempotencyKey | None, now: datetime) -> Charge:
    drafted = draft_correction(_read_charge(connection, request.charge_id), request, now=now)
    check_given_back(drafted, _sum_corrected(connection, drafted))
    line = drafted.line
    done = connection.execute(
        charges.insert().values(
            lease_id=drafted.lease_id,
            project_id=drafted.project_id,
            user_id=drafted.user_id,
            month=drafted.month,
            reservation_id=line.reservation_id,
            region=drafted.region,
            sku=line.sku,
            category=str(line.category),
            status=str(line.status),
            starts_at=line.window.start,
            ends_at=line.window.end,
            resource_seconds=0,
            unit_nano=0,
            factor="1",
            nano=line.nano,
            currency=drafted.currency,
            version=None,
            corrects=drafted.corrects,
            reason=drafted.reason,
            at=drafted.at,
        )
    )
    made = done.inserted_primary_key
    assert made is not None
    corrected = replace(drafted, id=int(made[0]))
    if key is not None:
        idempotency.insert(connection, key, str(corrected.id), now)
    write_entry(connection, tell_correction(corrected, by=current().actor))
    look_again(connection, corrected.lease_id, now=now)
    return corrected


def _sum_corrected(connection: Connection, drafted: Charge) -> int:
    """Return what a correction is added to; its lease is locked, so that two give nothing back twice."""
    connection.execute(sa.select(accounts.c.id).where(accounts.c.lease_id == drafted.lease_id).with_for_update()).all()
    own = sa.and_(_C.project_id == drafted.project_id, _C.lease_id == drafted.lease_id)
    return join_sums(*connection.execute(sa.select(*sum_apart(_C.nano)).where(own)).one())


def parse_charge(row: AnyRow) -> Charge:
    """Return a charge, of the columns of ``CHARGE_COLUMNS`` and the name of its lease."""
    # A long bill has a hundred thousand of these: to take a row apart is faster than to ask it for each column.
    id_, lease_id, project_id, user_id, month, reservation_id, region, sku, category, status, *left = row
    starts_at, ends_at, seconds, unit_nano, factor, nano, *energy, currency, version, corrects, reason, at, name = left
    window = Window(starts_at, ends_at)
    head = window, _CATEGORIES[category], _STATUSES[status], nano, reservation_id, sku, version, unit_nano
    told = None if energy[0] is None else _parse_energy(*energy)
    line = ChargeLine(*head, _parse_factor(factor), seconds, told)
    of = lease_id, project_id, user_id, line, currency, at, region
    return Charge(id_, *of, corrects, reason, month, name)


_CATEGORIES = {str(category): category for category in ChargeCategory}
_STATUSES = {str(status): status for status in ChargeStatus}
# A long bill has a few factors, and parsing one takes longer than all else of its line.
_parse_factor = lru_cache(maxsize=1024)(Fraction)


def _parse_energy(wh: int, gco2: int | None, source: str, state: str | None) -> LineEnergy:
    return LineEnergy(wh, EnergySource(source), gco2, None if state is None else CarbonState(state))
