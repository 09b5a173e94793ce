# SPDX-License-Identifier: Apache-2.0
"""The store of recomputations: whose turn it is, which accounts are looked at, and where charges differ from facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.clock import END_OF_TIME
from blazar.model.base.values import dataclass
from blazar.model.billing.accounts import AccountState, LeaseAccount
from blazar.model.billing.charges import Charge
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.recomputation import ChargeDifference, CheckedLease
from blazar.store.billing.accounts import (
    ACCOUNT_COLUMNS,
    ARE_DIFFERENCES,
    LEDGER,
    difference_row,
    parse_account,
)
from blazar.store.billing.charges import CHARGE_COLUMNS, parse_charge
from blazar.store.billing.facts import read_facts
from blazar.store.billing.price_lists import PriceListCache
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import accounts, charges, findings, leases
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work.claims import TURNS, TurnStore

MOST = 1000
"""Differences that are kept."""

_A, _C, _F = accounts.c, charges.c, findings.c
# Of one of which energy is still to be told nothing is said.
_CLOSED = sa.and_(_A.due_at.is_(None), _A.state == str(AccountState.CLOSED))


@dataclass(frozen=True, slots=True)
class AccountSlice:
    """Closed accounts that are looked at together, and the first of them that nobody had looked at before."""

    ids: tuple[str, ...]
    lease_ids: frozenset[str]
    after: str


@dataclass(frozen=True, slots=True)
class CheckedSlice:
    """Leases that are looked at together, and the price lists that there are."""

    leases: tuple[CheckedLease, ...]
    lists: Sequence[PriceList]


class RecomputationStore(TurnStore):
    """Reads closed accounts, those first that nobody has looked at, and writes where their charges differ."""

    turn = LEDGER

    def __init__(self, transactions: Transactions, prices: PriceListCache) -> None:
        super().__init__(transactions)
        self._prices = prices

    def list_next(self, before: datetime, limit: int, *, after: str = "") -> AccountSlice:
        """Return the accounts to look at next: those that nobody has, then the ones not looked at for longest.

        ``after`` is that of the slice before in this turn, which began ``before``. At most two statements.
        """
        columns = sa.select(_A.id, _A.lease_id).where(_CLOSED)
        new = columns.where(_A.checked_at.is_(None), _A.id > after).order_by(_A.id).limit(limit)
        found = list(self._transactions.select(new))
        last = found[-1].id if found else after
        if len(found) < limit:
            old = columns.where(_A.checked_at < before).order_by(_A.checked_at, _A.id).limit(limit - len(found))
            found += self._transactions.select(old)
        return AccountSlice(tuple(row.id for row in found), frozenset(row.lease_id for row in found), last)

    def list_charged(self, month: date, limit: int) -> tuple[str, ...]:
        """Return leases that were charged something for a month, of which this is the first day; one statement."""
        query = sa.select(_C.lease_id).distinct().where(_C.month == month, _C.corrects.is_(None))
        return tuple(self._transactions.scalars(query.order_by(_C.lease_id).limit(limit)))

    def read(self, lease_ids: Collection[str]) -> CheckedSlice:
        """Return leases with their accounts, charges and facts; eight statements for each few thousand."""
        with self._transactions.reading() as connection:
            owned: dict[str, list[LeaseAccount]] = defaultdict(list)
            charged: dict[str, list[Charge]] = defaultdict(list)
            known: set[str] = set()
            for part in chunks(sorted(lease_ids)):
                for row in connection.execute(sa.select(*ACCOUNT_COLUMNS).where(_A.lease_id.in_(part))):
                    account = parse_account(row)
                    owned[account.lease_id].append(account)
                unnamed = sa.null().label("lease_name")
                query = sa.select(*CHARGE_COLUMNS, unnamed).where(_C.lease_id.in_(part)).order_by(_C.id)
                for charge in map(parse_charge, connection.execute(query)):
                    charged[charge.lease_id].append(charge)
                known |= set(connection.execute(sa.select(leases.c.id).where(leases.c.id.in_(part))).scalars())
            facts = read_facts(connection, known)
            found = (CheckedLease(id_, owned[id_], charged[id_], facts.get(id_)) for id_ in sorted(lease_ids))
            return CheckedSlice(tuple(found), self._prices.read(connection))

    @atomic
    def record(
        self,
        connection: Connection,
        token: str,
        looked_at: AccountSlice,
        checked: CheckedSlice,
        differences: Sequence[ChargeDifference],
        *,
        at: datetime,
    ) -> None:
        """Write what was found of leases, instead of what was; ClaimLost. Six statements.

        A difference that is on record is looked at again in the next turn, and those beyond ``MOST`` in their time.
        """
        TURNS.write_claimed(connection, LEDGER, token)
        known = {
            row.key: row for row in connection.execute(sa.select(_F.key, _F.lease_id, _F.since).where(ARE_DIFFERENCES))
        }
        for part in chunks(sorted(looked_at.lease_ids)):
            connection.execute(findings.delete().where(ARE_DIFFERENCES, _F.lease_id.in_(part)))
        room = MOST - sum(row.lease_id not in looked_at.lease_ids for row in known.values())
        prices = checked.lists[-1]
        rows = [
            difference_row(one, prices, since=known[one.key].since if one.key in known else at, at=at)
            for one in differences[: max(0, room)]
        ]
        if rows:
            connection.execute(findings.insert(), rows)
        wrong = {row["lease_id"] for row in rows}
        gone = {lease.id for lease in checked.leases if lease.facts is None}
        # Of one that was purged there is nothing any more to compute it from.
        when = sa.case(
            (_A.lease_id.in_(sorted(wrong)), sa.null()),
            (_A.lease_id.in_(sorted(gone)), sa.literal(END_OF_TIME, _A.checked_at.type)),
            else_=sa.literal(at, _A.checked_at.type),
        )
        for part in chunks(looked_at.ids):
            connection.execute(accounts.update().where(_A.id.in_(part)).values(checked_at=when))
