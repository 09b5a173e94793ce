# SPDX-License-Identifier: Apache-2.0
"""What a commit does to accounts, in its transaction: it opens, changes and passes them on, and says what that costs.

Nothing is read or written as long as no price list is published.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from blazar.model.base.clock import to_second
from blazar.model.base.errors import StaleCalendar, StaleLease
from blazar.model.base.values import dataclass, field, replace
from blazar.model.billing import accounts
from blazar.model.billing.accounts import AccountState, BilledLease, LeaseAccount, Met
from blazar.model.billing.booked_prices import AccountTotals, sum_account
from blazar.model.billing.following import append_account
from blazar.model.billing.ledger import (
    BilledChange,
    Closing,
    Planned,
    change_account,
    check_planned,
    close_account,
    fit_account,
    plan_account,
    plan_quoted,
)
from blazar.model.billing.price_lists import PriceList, find_list
from blazar.model.billing.prices import QuotedLease, choose_quote, sum_amounts
from blazar.model.billing.tags import NO_TAG, PriceTag
from blazar.model.billing.uses import LeaseFacts, choose_skus
from blazar.model.calendar.allocations import Allocation
from blazar.model.energy.book import NO_ENERGY, EnergyTerms
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, EventType, LeaseStatus
from blazar.model.use.resource_hours import ReachedShare, measure_amounts
from blazar.store.billing import accounts as rows
from blazar.store.billing.charges import read_totals
from blazar.store.billing.facts import read_facts
from blazar.store.billing.price_lists import PriceListCache
from blazar.store.billing.spending import SpendGuard
from blazar.store.booking.commit import Commit, LeaseWrite
from blazar.store.booking.joined_accounts import choose_noted, find_origins, keep_booked_at, list_follows
from blazar.store.resources.catalog import CatalogCache

_NOTHING = LeaseFacts()
_NOT_PROMISED = (LeaseStatus.CREATING, LeaseStatus.WAITING, LeaseStatus.IN_PROGRESS, LeaseStatus.TIMED_OUT)
"""What a lease is that has nothing, and has had nothing."""

GivesBack = Callable[[LeaseWrite], bool]
"""Whether what a lease has less after a write is given back by its owner."""


class Ledger:
    """Knows the prices of a database; the number of statements does not depend on how many there are."""

    def __init__(self, prices: PriceListCache, catalogs: CatalogCache, energy: EnergyTerms = NO_ENERGY) -> None:
        self._prices = prices
        self._catalogs = catalogs
        self._energy = energy

    def begin(self, connection: Connection, commit: Commit) -> LedgerWork | None:
        """Read the accounts of the leases of a commit, before they are written; None: they have none, and get none."""
        writes = [write for write in (*commit.leases, *commit.redated) if is_concerned(write, commit)]
        if not writes or not (lists := self._prices.read_known(connection, self._catalogs.price_version)):
            return None
        known = [write.after.id for write in writes if write.before is not None]
        found = rows.read_open_accounts(connection, known) if known else {}
        if found:
            # Nothing has read a catalog for this: another manager may have published a list since the last time.
            lists = self._prices.read(connection)
        facts = read_facts(connection, list(found)) if found else {}
        if commit.joint:
            keep_booked_at(connection, commit, found, facts)
        limits = {use.project_id: use.spend_limit for use in commit.uses if use.spend_limit is not None}
        guard = SpendGuard.begin(connection, limits, commit.at.date().replace(day=1), changes=bool(found))
        return LedgerWork(connection, self._catalogs, commit, lists, writes, found, facts, guard, self._energy.records)


@dataclass(slots=True)
class LedgerWork:
    """What a transaction does to accounts, between the read before its writes and the writes after them."""

    connection: Connection
    catalogs: CatalogCache
    commit: Commit
    lists: Sequence[PriceList]
    writes: Sequence[LeaseWrite]
    accounts: Mapping[str, LeaseAccount]
    facts: Mapping[str, LeaseFacts]
    guard: SpendGuard
    tells_energy: bool = False
    reached: tuple[ReachedShare, ...] = ()
    totals: Mapping[tuple[str, str], AccountTotals] = field(default_factory=dict)
    """What new leases cost, by lease and project, once that is written."""
    _new: dict[str, Lease] = field(init=False)
    _changed: list[tuple[LeaseAccount, LeaseAccount]] = field(default_factory=list)
    _opened: list[LeaseAccount] = field(default_factory=list)
    _removed: list[LeaseAccount] = field(default_factory=list)
    _closings: list[Closing] = field(default_factory=list)
    _booked: dict[str, QuotedLease] = field(default_factory=dict)
    _plans: dict[str, Planned] = field(default_factory=dict)
    """What is booked of new leases, by lease, and what is planned for their accounts, by account."""

    def __post_init__(self) -> None:
        self._new = {write.after.id: write.after for write in self.writes if write.before is None}

    def choose_prices(self, wanted: Sequence[Allocation]) -> list[PriceTag]:
        """Return by which prices each of the allocations of a lease is charged that are booked now."""
        if not wanted:
            return []
        at = to_second(self.commit.at)
        lease = self._new.get(wanted[0].lease_id)
        tags, today = self._choose_at(wanted, at, lease)
        if lease is None or today is None:
            return tags
        if lease.quoted_at is not None:
            held_tags, held = self._choose_at(wanted, lease.quoted_at, lease)
            if held is not None and choose_quote(held, today, self.lists) is held:
                tags, today = held_tags, held
        self._booked[lease.id] = today
        return tags

    def _choose_at(
        self, wanted: Sequence[Allocation], at: datetime, lease: Lease | None
    ) -> tuple[list[PriceTag], QuotedLease | None]:
        """Return the prices of allocations that count as booked at an instant, and what is priced of a new lease."""
        prices = find_list(self.lists, at, max(at, wanted[0].window.start))
        if prices is None:
            return [NO_TAG] * len(wanted), None
        # They were read for this booking a moment ago.
        known = {
            kind: (self.catalogs.latest(kind) or self.catalogs.read(self.connection, kind)).by_id
            for kind in sorted({allocation.kind for allocation in wanted})
        }
        booked = [(a.reservation_id, measure_amounts(a.kind, a.count, a.per_instance)) for a in wanted]
        chosen = choose_skus(booked, [known[a.kind].get(a.resource_id) for a in wanted], prices)
        tags = [PriceTag.of(skus) for skus in chosen]
        if lease is None:
            return tags, None
        return tags, QuotedLease(sum_amounts(booked, chosen, prices), lease.window, lease.project_id, at)

    def finish(self, gives_back: GivesBack) -> None:
        """Write what has become of the accounts. StaleLease if somebody has closed one meanwhile, UsageDenied.

        StaleCalendar if one costs more than it may.
        """
        # Those that are made, and are no parts of others: they were never charged anything.
        new = () if self.commit.joint else {write.after.id for write in self.writes if write.before is None}
        others = [write.after.id for write in self.writes if write.after.id not in new]
        became = read_facts(self.connection, others) if others else {}
        for write in self.writes:
            account = self.accounts.get(write.after.id)
            facts = became.get(write.after.id, _NOTHING)
            if self.commit.joint:
                self._join(write, account, facts)
            elif write.after.id in new:
                self._open_new(write.after)
            elif account is None:
                self._open(write, facts)
            elif _is_passed_on(write, self.accounts):
                self._pass_on(account, write.after, facts)
            else:
                self._change(account, write, facts, gives_back(write))
        if self.commit.joint and any(facts.is_handed_over for facts in self.facts.values()):
            self._changed = [(before, replace(after, is_mixed=True)) for before, after in self._changed]
            self._opened = [replace(account, is_mixed=True) for account in self._opened]
        self._write(became, new)

    def _open_new(self, lease: Lease) -> None:
        """Open the account of a lease that is made, unless nothing had a price as it was booked: it has one window."""
        if (quoted := self._booked.get(lease.id)) is not None:
            booked_at = quoted.booked_at
            account = accounts.open_account(_make_billed(lease), _new_id(), self.commit.at, quoted_at=booked_at)
            self._plans[account.id] = plan_quoted(quoted, self.lists)
            self._opened.append(account)

    def _open(self, write: LeaseWrite, facts: LeaseFacts) -> None:
        if any(use.is_live for use in facts.uses):
            # One that was booked before there were prices, and gets more in use, had none to pay when it started.
            billed, has_started = _make_billed(write.after), facts.is_handed_over
            account = accounts.open_account(billed, _new_id(), self.commit.at, has_started=has_started)
            self._opened.append(fit_account(account, facts))

    def _change(self, account: LeaseAccount, write: LeaseWrite, facts: LeaseFacts, is_given_back: bool) -> None:
        before, after = write.before, write.after
        assert before is not None
        was = self.facts[after.id]
        change = BilledChange(
            before=before.window,
            after=after.window,
            at=self.commit.at,
            given_back_at=_find_return(before, self.commit.at)
            if is_given_back and before.status is not LeaseStatus.CREATING
            else None,
        )
        closing = change_account(account, change, was, facts, self.lists)
        is_undone = after.end_reason is EndReason.REFUSED or (
            after.status in _NOT_PROMISED and not any(use.is_live for use in facts.uses)
        )
        is_undone |= before.is_unconfirmed and after.status is LeaseStatus.DELETING
        # A creation whose manager has died is undone as a deletion: nobody was told that there is such a lease.
        is_undone |= before.status is LeaseStatus.CREATING and after.deleted_at is not None
        if is_undone and not was.is_handed_over and not closing.lines and not account.untold:
            self._removed.append(account)
            return
        self._closings.append(closing)
        self._changed.append((account, closing.account))

    def _pass_on(self, account: LeaseAccount, after: Lease, facts: LeaseFacts) -> None:
        """Close the account of who gives a lease away, and open one of who takes it over."""
        closing = self._close(account)
        taken = accounts.pass_account(closing.account, _make_billed(after), _new_id(), self.commit.at)
        self._closings.append(closing)
        self._changed.append((account, closing.account.close()))
        self._opened.append(fit_account(taken, facts))

    def _close(self, account: LeaseAccount) -> Closing:
        """Close an account up to now. What its hosts drew in this hour is known, and told, once that is metered."""
        cut, facts = to_second(self.commit.at), self.facts[account.lease_id]
        return close_account(account, cut, facts, self.lists, keeps_energy=self.tells_energy)

    def _join(self, write: LeaseWrite, account: LeaseAccount | None, facts: LeaseFacts) -> None:
        """Close an account of an operation on two leases up to now; what passes from one to the other is not returned.

        The fee is that of the older one.
        """
        other = self._find_other(write)
        if account is None:
            if other is not None and write.before is None and facts.uses:
                closed = close_account(other, to_second(self.commit.at), _NOTHING, self.lists).account
                part = accounts.part_account(
                    closed,
                    _make_billed(write.after),
                    _new_id(),
                    self.commit.at,
                    origins=find_origins(facts, self.facts[other.lease_id]),
                )
                self._opened.append(fit_account(part, facts))
            return
        due, rest = self._share_fee(account, other)
        closing = self._close(due)
        self._closings.append(closing)
        if write.after.end_reason is EndReason.MERGED:
            self._changed.append((account, closing.account.close()))
            return
        kept = closing.account
        if rest is not None and write.before is not None:
            kept = self._merge(kept, rest, write.after)
        elif write.before is not None:
            kept = kept.redate(write.before.window, write.after.window, self.commit.at)
        self._changed.append((account, fit_account(replace(kept, state=AccountState.OPEN), facts)))

    def _merge(self, kept: LeaseAccount, rest: LeaseAccount, joined: Lease) -> LeaseAccount:
        """Return the account of a lease into which another one was merged."""
        if rest.has_fee and self.facts[rest.lease_id].is_handed_over:
            # It is charged as that one is closed.
            rest = replace(rest, has_fee=False)
        if self.commit.follows:
            return append_account(kept, rest, list_follows(kept, rest, self.commit.follows, self.facts))
        return accounts.join_accounts(
            *(kept, rest),
            own=self._list_own(joined),
            met=self._list_met(),
            noted_at=choose_noted(accounts.find_younger(kept, rest), self.facts),
        )

    def _share_fee(self, account: LeaseAccount, other: LeaseAccount | None) -> tuple[LeaseAccount, LeaseAccount | None]:
        """Return an account and that of the lease that becomes one with its own, with one fee in all."""
        if other is None or account.parts[0].since != other.parts[0].since:
            return account, other
        return accounts.share_fee(account, other)

    def _list_own(self, joined: Lease) -> Mapping[str, Collection[str]]:
        """Return which reservations of a lease that gets those of another one were of each, and are as they were."""
        changed = {passing.to_reservation_id for passing in self.commit.passing}
        left = {reservation.id for reservation in joined.reservations} - changed
        return {
            write.before.id: left & {reservation.id for reservation in write.before.reservations}
            for write in self.writes
            if write.before is not None
        }

    def _list_met(self) -> Met:
        """Return what reservations that become one have, by the lease that it is of."""
        into = {passing.reservation_id: passing.to_reservation_id for passing in self.commit.passing}
        into |= {target: target for target in into.values()}
        return {
            lease_id: {
                (use.reservation_id, into[use.reservation_id], use.booked_at)
                for use in facts.uses
                if use.reservation_id in into
            }
            for lease_id, facts in self.facts.items()
        }

    def _find_other(self, write: LeaseWrite) -> LeaseAccount | None:
        """Return the account of the lease that a new one is split off, or that is merged into this one."""
        others = [one for one in self.writes if one is not write and one.after.id in self.accounts]
        if write.before is not None and write.after.end_reason is not EndReason.MERGED:
            others = [one for one in others if one.after.end_reason is EndReason.MERGED]
        return self.accounts[others[0].after.id] if others else None

    def _write(self, became: Mapping[str, LeaseFacts], new: Collection[str]) -> None:
        connection, currency = self.connection, self.lists[-1].currency
        # A new lease has nothing but an account that is opened.
        if self._changed and not rows.save_accounts(connection, self._changed):
            raise StaleLease("the lease is being charged at the moment")
        if self._removed:
            rows.delete_accounts(connection, [account.id for account in self._removed])
        rows.insert_accounts(connection, self._opened)
        if self._closings:
            regions = {id_: region for facts in became.values() for id_, region in facts.regions.items()}
            rows.insert_charges(connection, self._closings, regions, currency=currency, at=self.commit.at)
        open_now = [*(after for _, after in self._changed), *self._opened]
        planned = [(account, self._plan(account, became)) for account in open_now]
        for _, months in planned:
            check_planned(months, self.lists)
        if self.accounts:
            rows.replace_planned(connection, self.accounts.values(), planned)
        else:
            rows.insert_planned(connection, planned)
        if self.guard.limits:
            planned_newly = [(account.project_id, months) for account, months in planned]
            self.reached = self.guard.check(connection, planned_newly, self.lists[-1])
        self.totals = {
            (account.lease_id, account.project_id): AccountTotals.plan(account, months)
            for account, months in planned
            if account.lease_id in new
        }
        if self.commit.most:
            self._check_most()

    def _plan(self, account: LeaseAccount, became: Mapping[str, LeaseFacts]) -> Planned:
        if (planned := self._plans.get(account.id)) is not None:
            return planned
        return plan_account(account, became.get(account.lease_id, _NOTHING), self.lists)

    def _check_most(self) -> None:
        """Raise StaleCalendar if a lease costs more than it may: it was quoted by other lists, or a moment earlier."""
        unknown = self.commit.most.keys() - {lease_id for lease_id, _ in self.totals}
        found = {**self.totals, **(read_totals(self.connection, unknown) if unknown else {})}
        for (lease_id, project_id), totals in found.items():
            price, most = sum_account(totals, self.lists), self.commit.most.get(lease_id)
            if most is not None and price is not None and price.value > most:
                raise StaleCalendar(f"the price of the lease has changed for project {project_id} in the meantime")


def _is_passed_on(write: LeaseWrite, known: Mapping[str, LeaseAccount]) -> bool:
    account = known.get(write.after.id)
    return account is not None and write.after.project_id != account.project_id


def is_concerned(write: LeaseWrite, commit: Commit) -> bool:
    """Return whether a write may change what a lease has, for how long, whose it is, or since when."""
    before, after = write.before, write.after
    if before is None:
        return bool(write.allocations) or commit.joint
    return (
        not write.keeps
        or before.window != after.window
        or before.project_id != after.project_id
        or before.deleted_at != after.deleted_at
        or write.hands_over_late(commit.at)
        or any(reservation.id in commit.released for reservation in before.reservations)
        or (after.status in _NOT_PROMISED and after.status is not before.status)
    )


def _find_return(lease: Lease, at: datetime) -> datetime:
    """Return when the owner of a lease gave something back: when its deletion was asked for, if it is deleted."""
    deletion = lease.event(EventType.DELETE)
    return at if deletion is None or deletion.time is None else deletion.time


def _make_billed(lease: Lease) -> BilledLease:
    return BilledLease(lease.id, lease.project_id, lease.user_id, lease.window)


def _new_id() -> str:
    return str(uuid.uuid4())
