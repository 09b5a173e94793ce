# SPDX-License-Identifier: Apache-2.0
"""The store of accounts that are to be closed: each up to an instant, once, by whichever manager is first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType

import sqlalchemy as sa

from blazar.model.base.clock import to_second
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.accounts import LeaseAccount
from blazar.model.billing.energy import list_hosts
from blazar.model.billing.ledger import Closing, Planned
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.uses import LeaseFacts
from blazar.model.energy.book import NO_ENERGY, EnergyBook, EnergyTerms
from blazar.model.journal.object_entries import tell_reached
from blazar.model.use.resource_hours import SpendLimit
from blazar.store.billing import accounts as rows
from blazar.store.billing.facts import read_facts
from blazar.store.billing.price_lists import PriceListCache
from blazar.store.billing.spending import SpendGuard
from blazar.store.energy.book import read_book
from blazar.store.journal.rows import write_once
from blazar.store.sql.tables import accounts
from blazar.store.sql.transactions import Transactions
from blazar.store.work.claims import ACCOUNTS

_A = accounts.c


@dataclass(frozen=True, slots=True)
class ClaimedAccounts:
    """Accounts that are claimed, with all that is known of their leases, and the price lists that there are.

    ``book`` is what is known of the energy of their hosts; None if the site records none.
    """

    accounts: Sequence[LeaseAccount]
    facts: Mapping[str, LeaseFacts]
    lists: Sequence[PriceList]
    book: EnergyBook | None = None


@dataclass(frozen=True, slots=True)
class ClosedAccount:
    """An account as it was read, what it is charged up to an instant, and what the rest of it will cost."""

    before: LeaseAccount
    closing: Closing
    planned: Planned


class ClosingStore:
    """Reads, claims and closes accounts."""

    def __init__(self, transactions: Transactions, prices: PriceListCache, energy: EnergyTerms = NO_ENERGY) -> None:
        self._transactions = transactions
        self._prices = prices
        self._energy = energy

    def due(self, now: datetime, limit: int) -> tuple[LeaseAccount, ...]:
        """Return at most ``limit`` accounts of which more is to be charged, the longest waiting first."""
        query = sa.select(*rows.ACCOUNT_COLUMNS).where(_A.due_at <= now).order_by(_A.due_at, _A.id).limit(limit)
        return tuple(map(rows.parse_account, self._transactions.select(query)))

    def next_due(self) -> datetime | None:
        """Return when the next account is due, which may be in the past; None if there is none."""
        found: datetime | None = self._transactions.scalar(ACCOUNTS.select_next_due())
        return found

    def claim(
        self, due: Sequence[LeaseAccount], token: str, *, now: datetime, until: datetime
    ) -> ClaimedAccounts | None:
        """Claim accounts until then, and read what they are charged by; None if others were faster with all of them.

        Seven statements, and three more where energy is recorded, however many there are.
        """
        ids = [account.id for account in due]
        if not self._transactions.write(lambda c: ACCOUNTS.claim_all(c, ids, token, _A.due_at <= now, until=until)):
            return None
        with self._transactions.reading() as connection:
            # As they are now: a booking may have changed one since it was seen to be due.
            mine = sa.select(*rows.ACCOUNT_COLUMNS).where(_A.id.in_(ids), _A.claimed_by == token).order_by(_A.id)
            claimed = tuple(map(rows.parse_account, connection.execute(mine)))
            facts = read_facts(connection, {account.lease_id for account in claimed})
            book = _read_book(connection, claimed, facts, now, self._energy)
            return ClaimedAccounts(claimed, facts, self._prices.read(connection), book)

    def close(
        self,
        claimed: ClaimedAccounts,
        token: str,
        closed: Sequence[ClosedAccount],
        *,
        at: datetime,
        limits: Mapping[str, SpendLimit] = MappingProxyType({}),
    ) -> None:
        """Write that claimed accounts are closed up to an instant each, and what is charged and planned since.

        But for those that were closed or changed since they were claimed: a booking ends the claim, and looks itself.
        What of the ``limits`` of projects is reached by that is told. Seven statements, however many there are, two
        more with limits, and two if a share is reached.
        """
        currency = claimed.lists[-1].currency if claimed.lists else ""
        regions = {one.reservation_id: one.region for account in claimed.accounts for one in account.untold_shares}
        regions |= {id_: region for facts in claimed.facts.values() for id_, region in facts.regions.items()}

        def work(connection: sa.Connection) -> None:
            mine = ACCOUNTS.lock_claimed(connection, [one.before.id for one in closed], token)
            ours = [one for one in closed if one.before.id in mine]
            if not ours:
                return
            guard = SpendGuard.begin(connection, limits, _find_first_month(ours), changes=True)
            # No booking has changed one since it was claimed; another claim would have its own token.
            rows.write_accounts(connection, [one.closing.account for one in ours])
            rows.insert_charges(connection, [one.closing for one in ours], regions, currency=currency, at=at)
            plans = [(one.closing.account, one.planned) for one in ours]
            rows.replace_planned(connection, [one.before for one in ours], plans)
            if limits and (reached := guard.list_reached(connection, claimed.lists[-1])):
                write_once(connection, [tell_reached(one, at=at) for one in reached])

        self._transactions.write(work)

    def postpone(self, waiting: Sequence[LeaseAccount], token: str, until: datetime) -> None:
        """Write that there is nothing to charge yet for accounts that are claimed; one statement."""
        mine = (_A.id.in_(sorted(account.id for account in waiting)), _A.claimed_by == token)
        change = accounts.update().where(*mine).values(claimed_by=None, due_at=until)
        self._transactions.write(lambda connection: connection.execute(change))

    def read_facts(self, lease_ids: Sequence[str]) -> Mapping[str, LeaseFacts]:
        """Return the facts of leases, by id."""
        with self._transactions.reading() as connection:
            return read_facts(connection, lease_ids)


def _find_first_month(closed: Iterable[ClosedAccount]) -> date:
    """Return the first month for which anything is charged by these, or was planned."""
    days = [one.before.closed_until.date() for one in closed]
    days += [line.month for one in closed for line in one.closing.lines]
    return min(days).replace(day=1)


def _read_book(
    connection: sa.Connection,
    known: Sequence[LeaseAccount],
    facts: Mapping[str, LeaseFacts],
    until: datetime,
    terms: EnergyTerms,
) -> EnergyBook | None:
    """Return what is known of the energy of accounts that are closed by an instant; None if a site records none.

    Three statements.
    """
    end = to_second(until)
    untold = [one for account in known for one in account.untold_shares]
    since = min((*(account.closed_until for account in known), *(one.window.start for one in untold)), default=end)
    hosts = {id_ for one in facts.values() for id_ in list_hosts(one)} | {id_ for one in untold for id_ in one.hosts}
    if not terms.records or not hosts or since >= end:
        return None
    return read_book(connection, hosts, Window(since, end), terms)
