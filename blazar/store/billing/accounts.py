# SPDX-License-Identifier: Apache-2.0
"""Rows of accounts, of what is planned for them, what they are charged, and where that is not what it should be.

In the transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.billing.accounts import AccountState, LeaseAccount
from blazar.model.billing.charges import ChargeLine, LineEnergy, format_factor
from blazar.model.billing.ledger import Closing, Planned
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.rating import BookedPart
from blazar.model.billing.recomputation import ChargeDifference
from blazar.model.journal.object_entries import tell_closing
from blazar.model.problems.problems import ProblemKind
from blazar.store.billing.power_shares import parse_shares, spell_shares
from blazar.store.journal.rows import write_entries
from blazar.store.sql.prepared import insert_rows
from blazar.store.sql.rows import AnyRow, chunks
from blazar.store.sql.tables import accounts, charges, findings, planned, turns

LEDGER = "ledger"
"""The turn of the recomputation."""

ARE_DIFFERENCES = findings.c.what == str(ProblemKind.CHARGE)

_A = accounts.c
ACCOUNT_COLUMNS = (
    *(_A.id, _A.lease_id, _A.project_id, _A.user_id, _A.opened_at),
    *(_A.closed_until, _A.booked_until, _A.terms, _A.state),
)
_OPEN = _A.state == str(AccountState.OPEN)
_SAVED = (*(column.name for column in ACCOUNT_COLUMNS), "due_at", "claimed_by")
_SAVE = (
    accounts.update()
    .where(_A.id == sa.bindparam("new_id"))
    .values({name: sa.bindparam(f"new_{name}", type_=_A[name].type) for name in _SAVED if name != "id"})
)


def read_open_accounts(connection: Connection, lease_ids: Collection[str]) -> Mapping[str, LeaseAccount]:
    """Return the accounts of leases of which more is to be charged, by lease; one statement for each few thousand."""
    found: dict[str, LeaseAccount] = {}
    for part in chunks(sorted(lease_ids)):
        for row in connection.execute(sa.select(*ACCOUNT_COLUMNS).where(_A.lease_id.in_(part), _OPEN)):
            account = parse_account(row)
            found[account.lease_id] = account
    return found


def parse_account(row: AnyRow | Sequence[Any]) -> LeaseAccount:
    """Return an account, of the columns of ``ACCOUNT_COLUMNS``."""
    id_, lease_id, project_id, user_id, opened_at, closed_until, booked_until, terms, state = row
    return LeaseAccount(
        id=id_,
        lease_id=lease_id,
        project_id=project_id,
        user_id=user_id,
        opened_at=opened_at,
        closed_until=closed_until,
        booked_until=booked_until,
        parts=_parse_parts(terms["parts"]),
        has_fee=terms["fee"],
        state=AccountState(state),
        joined={
            (id_, None if booked_at is None else datetime.fromisoformat(booked_at)): _parse_parts(parts)
            for id_, booked_at, parts in terms.get("joined", ())
        },
        is_mixed=terms.get("mixed", False),
        charged=_parse_charged(terms.get("charged")),
        untold=tuple(map(parse_shares, terms.get("untold", ()))),
    )


def _parse_charged(charged: Mapping[str, int] | None) -> Mapping[date, int] | None:
    return None if charged is None else {date.fromisoformat(month): nano for month, nano in charged.items()}


def _parse_parts(parts: Iterable[tuple[str, str, str | None, list[tuple[str, str]]]]) -> tuple[BookedPart, ...]:
    parse = datetime.fromisoformat
    return tuple(
        BookedPart(
            parse(since),
            parse(booked_at),
            None if listed_at is None else parse(listed_at),
            tuple((parse(at), parse(begin)) for at, begin in moved),
        )
        for since, booked_at, listed_at, moved in parts
    )


def insert_accounts(connection: Connection, new: Iterable[LeaseAccount]) -> None:
    """Insert accounts, in one statement."""
    rows = [{**_account_row(account), "due_at": account.due_at} for account in new]
    if rows:
        insert_rows(connection, accounts, rows)


def save_accounts(connection: Connection, changed: Sequence[tuple[LeaseAccount, LeaseAccount]]) -> bool:
    """Write accounts that are closed or changed; return whether each was as it is here before. At most two statements.

    Who closes one of them at the same time has to look once more.
    """
    if len(changed) == 1:
        ((before, after),) = changed
        row = {**_account_row(after), "due_at": after.due_at, "claimed_by": None}
        as_read = (_A.id == before.id, _A.closed_until == before.closed_until, _OPEN)
        return bool(connection.execute(accounts.update().where(*as_read).values(**row)).rowcount)
    for part in chunks(sorted(changed, key=lambda pair: pair[0].id)):
        ids = [before.id for before, _ in part]
        query = sa.select(_A.id, _A.closed_until).where(_A.id.in_(ids), _OPEN).order_by(_A.id).with_for_update()
        found = {row.id: row.closed_until for row in connection.execute(query)}
        if any(found.get(before.id) != before.closed_until for before, _ in part):
            return False
    write_accounts(connection, [after for _, after in changed])
    return True


def write_accounts(connection: Connection, changed: Iterable[LeaseAccount]) -> None:
    """Write accounts that the caller has locked, in one statement; that ends claims."""
    rows = [{**_account_row(after), "due_at": after.due_at, "claimed_by": None} for after in changed]
    if rows:
        connection.execute(_SAVE, [{f"new_{name}": value for name, value in row.items()} for row in rows])


def delete_accounts(connection: Connection, ids: Collection[str]) -> None:
    """Delete accounts that were never charged anything."""
    for part in chunks(sorted(ids)):
        connection.execute(accounts.delete().where(_A.id.in_(part)))


def replace_planned(
    connection: Connection, old: Iterable[LeaseAccount], new: Iterable[tuple[LeaseAccount, Planned]]
) -> None:
    """Write what is planned for accounts, instead of what was for these ones; two statements."""
    for part in chunks(sorted([(account.lease_id, account.id) for account in old])):
        lease_ids, ids = zip(*part, strict=True)
        # In the order of the key, which begins with the lease.
        connection.execute(planned.delete().where(planned.c.lease_id.in_(lease_ids), planned.c.account_id.in_(ids)))
    insert_planned(connection, new)


def insert_planned(connection: Connection, new: Iterable[tuple[LeaseAccount, Planned]]) -> None:
    """Insert what is planned for accounts, in one statement."""
    rows = [
        {
            "account_id": account.id,
            "lease_id": account.lease_id,
            "project_id": account.project_id,
            "month": month,
            "nano": one.nano,
            "estimated_nano": one.estimated or None,
        }
        for account, months in new
        for month, one in months.items()
    ]
    if rows:
        insert_rows(connection, planned, rows)


def insert_charges(
    connection: Connection, closings: Iterable[Closing], regions: Mapping[str, str], *, currency: str, at: datetime
) -> None:
    """Insert what accounts are charged, and tell it, in two statements; ``regions`` are those of reservations."""
    charged = list(closings)
    told = (tell_closing(closing, currency, at=at) for closing in charged)
    write_entries(connection, [entry for entry in told if entry is not None])
    rows = [
        {
            "lease_id": closing.account.lease_id,
            "project_id": closing.account.project_id,
            "user_id": closing.account.user_id,
            "region": regions.get(line.reservation_id or "", ""),
            "currency": currency,
            "at": at,
            **line_row(line),
        }
        for closing in charged
        for line in closing.lines
    ]
    if rows:
        connection.execute(charges.insert(), rows)


def line_row(line: ChargeLine) -> dict[str, Any]:
    """Return the columns of a charge that its line has."""
    return {
        "month": line.month,
        "reservation_id": line.reservation_id,
        "sku": line.sku,
        "category": str(line.category),
        "status": str(line.status),
        "starts_at": line.window.start,
        "ends_at": line.window.end,
        "resource_seconds": line.resource_seconds,
        "unit_nano": line.unit_nano,
        "factor": format_factor(line.factor),
        "nano": line.nano,
        "version": line.version,
        **_energy_row(line.energy),
    }


def _energy_row(energy: LineEnergy | None) -> dict[str, Any]:
    if energy is None:
        return dict.fromkeys(("wh", "gco2", "energy_source", "carbon_state"))
    state = None if energy.carbon is None else str(energy.carbon)
    return {"wh": energy.wh, "gco2": energy.gco2, "energy_source": str(energy.source), "carbon_state": state}


def look_again(connection: Connection, lease_id: str, *, now: datetime) -> None:
    """Forget where the charges of a lease differ, and have it looked at again soon. One statement if they do not."""
    if connection.execute(findings.delete().where(ARE_DIFFERENCES, findings.c.lease_id == lease_id)).rowcount:
        connection.execute(accounts.update().where(accounts.c.lease_id == lease_id).values(checked_at=None))
        idle = (turns.c.id == LEDGER, turns.c.claimed_by.is_(None))
        connection.execute(turns.update().where(*idle).values(due_at=now))


def difference_row(one: ChargeDifference, prices: PriceList, *, since: datetime, at: datetime) -> dict[str, Any]:
    """Return the columns of a finding; what was known keeps its ``since``."""
    return {
        "what": str(ProblemKind.CHARGE),
        "region": "",
        "key": one.key,
        "resource_type": "",
        "lease_id": one.lease_id,
        "since": since,
        "seen_at": at,
        "detail": one.describe(prices.currency, prices.decimals),
        "tries": 0,
        "next_at": None,
    }


def _spell_parts(parts: Iterable[BookedPart]) -> list[list[Any]]:
    return [
        [
            part.since.isoformat(),
            part.booked_at.isoformat(),
            None if part.listed_at is None else part.listed_at.isoformat(),
            [[at.isoformat(), begin.isoformat()] for at, begin in part.moved],
        ]
        for part in parts
    ]


def _account_row(account: LeaseAccount) -> dict[str, Any]:
    terms: dict[str, Any] = {"parts": _spell_parts(account.parts), "fee": account.has_fee}
    if account.joined:
        terms["joined"] = [
            [id_, booked_at and booked_at.isoformat(), _spell_parts(parts)]
            for (id_, booked_at), parts in account.joined.items()
        ]
    if account.is_mixed:
        terms["mixed"] = True
    if account.charged is not None:
        terms["charged"] = {month.isoformat(): nano for month, nano in account.charged.items()}
    if account.untold:
        terms["untold"] = [spell_shares(shares) for shares in account.untold]
    return {
        "id": account.id,
        "lease_id": account.lease_id,
        "project_id": account.project_id,
        "user_id": account.user_id,
        "opened_at": account.opened_at,
        "closed_until": account.closed_until,
        "booked_until": account.booked_until,
        "terms": terms,
        "state": str(account.state),
    }
