# SPDX-License-Identifier: Apache-2.0
"""Accounts: who pays for a lease from when on, and by when each part of it was booked. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum

from blazar.model.base.clock import later, to_second
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.billing.charges import ChargeLine, window_of_month
from blazar.model.billing.power import PowerShare
from blazar.model.billing.rating import BookedPart, JoinedParts, list_parts_of

_SECOND = timedelta(seconds=1)
SETTLED = timedelta(seconds=60)
"""How long after an instant what was until then is charged: all that is known of it is written by then."""
METERED = timedelta(minutes=10)
"""How long after the end of an hour it is on record what hosts drew in it, and what that emitted."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class BilledLease:
    """What an account needs to know of its lease: whose it is, and its dates."""

    id: str
    project_id: str
    user_id: str
    window: Window


class AccountState(StrEnum):
    """Whether more is to be charged."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAccount:
    """Who pays for a lease from ``opened_at`` on; until ``closed_until`` it is charged.

    ``booked_until`` is the end of all that it has. ``has_fee``: its fee is still to be charged. Of what was of
    another lease, ``joined`` has the parts of that one. ``is_mixed``: it was split or merged in use, so what it was
    charged for may be on record of another lease. ``charged`` is what it was by month, in 10⁻⁹ of the currency, without
    corrections: by that a line is missed that was lost. None: it was opened before that was kept. ``untold`` is what it
    had of hosts until ``closed_until`` whose energy is still to be told, as it was passed on, split or merged in use,
    by each time that it was: what hosts drew is known once the hour is metered. No other account has it.
    """

    id: str
    lease_id: str
    project_id: str
    user_id: str
    opened_at: datetime
    closed_until: datetime
    booked_until: datetime
    parts: tuple[BookedPart, ...]
    has_fee: bool = True
    state: AccountState = AccountState.OPEN
    joined: JoinedParts = field(default_factory=dict)
    is_mixed: bool = False
    charged: Mapping[date, int] | None = field(default_factory=dict)
    untold: tuple[tuple[PowerShare, ...], ...] = ()

    @property
    def due_at(self) -> datetime | None:
        """Return when more is to be charged: once a month is over, or all that it has; None if nothing is left.

        Of one that is closed it is when all is metered that is untold.
        """
        if self.state is AccountState.CLOSED:
            ends = [share.window.end for share in self.untold_shares]
            return find_metered_at(max(ends)) if ends else None
        return later(self._next_cut, SETTLED)

    @property
    def untold_shares(self) -> tuple[PowerShare, ...]:
        """Return all that is untold."""
        return tuple(share for shares in self.untold for share in shares)

    def find_cut(self, now: datetime) -> datetime:
        """Return until when it can be charged: at most to the end of a month, or of all that it has."""
        if self.state is AccountState.CLOSED:
            return self.closed_until
        return min(self._next_cut, to_second(now) - SETTLED)

    @property
    def _next_cut(self) -> datetime:
        """Return the end of the month to be charged next, or of all that there is; before its start there is none."""
        month = max(self.closed_until, self.parts[0].since).date()
        return min(window_of_month(month).end, self.booked_until)

    @property
    def first_booked_at(self) -> datetime:
        """Return when the first of what its lease has was booked."""
        return min(part.booked_at for part in self.parts)

    @property
    def has_paid_fee(self) -> bool:
        """Return whether its fee is charged, or was of a lease that it was split off in use."""
        return not self.has_fee and self.closed_until > self.parts[0].since

    def redate(self, before: Window, after: Window, at: datetime) -> LeaseAccount:
        """Return the account of a lease that has other dates since an instant: what it has more is booked then."""
        parts, *joined = (redate_parts(one, before, after, at) for one in (self.parts, *self.joined.values()))
        return replace(self, parts=parts, joined=dict(zip(self.joined, joined, strict=True)))

    def charge(self, lines: Iterable[ChargeLine]) -> LeaseAccount:
        """Return the account once it is charged these lines, too."""
        if self.charged is None:
            return self
        sums = Counter(self.charged)
        for line in lines:
            if line.nano:
                sums[line.month] += line.nano
        return replace(self, charged=dict(sums))

    def close(self) -> LeaseAccount:
        """Return the account with nothing left to charge but what is untold."""
        return replace(self, state=AccountState.CLOSED)


def find_metered(now: datetime) -> datetime:
    """Return until when what hosts draw is metered as it stays: to the end of an hour, and some minutes."""
    return (now - METERED).replace(minute=0, second=0, microsecond=0)


def find_metered_at(end: datetime) -> datetime:
    """Return from when on all is metered that hosts drew until an instant."""
    hour = end.replace(minute=0, second=0, microsecond=0)
    return later(hour if hour == end else later(hour, _HOUR), METERED)


def open_account(
    lease: BilledLease,
    account_id: str,
    at: datetime,
    *,
    has_started: bool = False,
    quoted_at: datetime | None = None,
) -> LeaseAccount:
    """Return the account of a lease that is booked at an instant; one that ``has_started`` before has no fee.

    Its prices are those of when it was ``quoted_at``; None: of its booking.
    """
    opened_at = to_second(at)
    booked_at = quoted_at or opened_at
    return LeaseAccount(
        id=account_id,
        lease_id=lease.id,
        project_id=lease.project_id,
        user_id=lease.user_id,
        opened_at=opened_at,
        # One that starts at once has started in the second in which it was asked for.
        closed_until=min(booked_at, lease.window.start),
        booked_until=lease.window.end,
        parts=(BookedPart(lease.window.start, booked_at),),
        has_fee=not has_started,
    )


def pass_account(account: LeaseAccount, lease: BilledLease, account_id: str, at: datetime) -> LeaseAccount:
    """Return the account of who takes a lease over: what was booked counts as before, by the prices of today."""
    second = to_second(at)
    return replace(
        account,
        id=account_id,
        project_id=lease.project_id,
        user_id=lease.user_id,
        # To the microsecond: it tells accounts of a project apart, which may give a lease away and get it back at once.
        # Where a clock has gone back, the time until which others were charged is nobody's to pay once more.
        opened_at=max(at, account.closed_until, account.opened_at + timedelta(microseconds=1)),
        closed_until=max(account.closed_until, second),
        parts=_list_at(account.parts, second),
        joined={key: _list_at(parts, second) for key, parts in account.joined.items()},
        state=AccountState.OPEN,
        charged={},
        untold=(),
    )


def _list_at(parts: Sequence[BookedPart], second: datetime) -> tuple[BookedPart, ...]:
    return tuple(replace(part, listed_at=second) for part in parts)


def part_account(
    account: LeaseAccount, lease: BilledLease, account_id: str, at: datetime, *, origins: Mapping[str, str]
) -> LeaseAccount:
    """Return the account of a lease that is split off: it has paid its fee.

    ``origins`` are the reservations of which its own are parts.
    """
    window = Window(account.parts[0].since, max(lease.window.end, account.booked_until))
    joined = {
        (id_, booked_at): parts
        for id_, origin in origins.items()
        for (known, booked_at), parts in account.joined.items()
        if known == origin
    }
    return replace(
        replace(account, joined=joined).redate(window, lease.window, at),
        id=account_id,
        lease_id=lease.id,
        opened_at=max(to_second(at), account.closed_until),
        has_fee=False,
        state=AccountState.OPEN,
        charged={},
        untold=(),
    )


def share_fee(kept: LeaseAccount, other: LeaseAccount) -> tuple[LeaseAccount, LeaseAccount]:
    """Return the accounts of two leases of one window that become one, with one fee in all.

    That is the fee of the one that was booked earlier, unless one of them is charged already.
    """
    if kept.has_paid_fee or other.has_paid_fee:
        return replace(kept, has_fee=False), replace(other, has_fee=False)
    if kept.has_fee and other.has_fee:
        is_kept = find_younger(kept, other) is other
        return replace(kept, has_fee=is_kept), replace(other, has_fee=not is_kept)
    return kept, other


Met = Mapping[str, Collection[tuple[str, str, datetime | None]]]
"""What reservations that become one have, by lease: which one, as which, and when it was booked (None: with its lease).
"""


def join_accounts(
    kept: LeaseAccount,
    other: LeaseAccount,
    *,
    own: Mapping[str, Collection[str]],
    met: Met,
    noted_at: datetime,
) -> LeaseAccount:
    """Return the account of a lease that another one of its window was merged into.

    What was booked earlier says how it is charged. ``own`` are the reservations that are as they were, by the lease
    that they are of: those of the younger one keep its parts, and so does what it had of those that are ``met``, which
    is known by ``noted_at``.
    """
    younger = find_younger(kept, other)
    older = other if younger is kept else kept
    joined: dict[tuple[str, datetime | None], tuple[BookedPart, ...]] = {}
    joined |= {(id_, None): younger.parts for id_ in own.get(younger.lease_id, ())}
    for account in (older, younger):
        alone = own.get(account.lease_id, ())
        joined |= {key: parts for key, parts in account.joined.items() if key[0] in alone}
    # Where both got something more in one second, it is charged as that of the older one.
    for account in (younger, older):
        for origin, target, booked_at in met.get(account.lease_id, ()):
            since = noted_at if account is younger and booked_at is None else booked_at
            parts = list_parts_of(account.joined, account.parts, origin, booked_at)
            joined.pop((target, since), None)
            if parts != older.parts:
                joined[target, since] = parts
    return replace(kept, parts=older.parts, has_fee=kept.has_fee or other.has_fee, joined=joined)


def choose_noted_at(younger: LeaseAccount, taken: Collection[datetime | None]) -> datetime:
    """Return by when all counts as booked that the younger of two leases was booked with, so that it is told apart.

    That is when the first of it was, or a little earlier if something else of the two was booked then, too: each part
    of it was booked later, and says itself when.
    """
    noted_at = younger.first_booked_at
    while noted_at in taken:
        noted_at -= _SECOND
    return noted_at


def find_younger(one: LeaseAccount, other: LeaseAccount) -> LeaseAccount:
    """Return the account of the lease of two that was booked later; in whatever order they come."""
    return max(one, other, key=lambda account: (account.parts[0].booked_at, account.id))


def redate_parts(parts: Sequence[BookedPart], before: Window, after: Window, at: datetime) -> tuple[BookedPart, ...]:
    """Return the parts of a lease that has other dates since an instant: what it has more is booked then."""
    if before == after:
        return tuple(parts)
    now = to_second(at)
    if not before.overlaps(after):
        return (BookedPart(after.start, now),)
    ends = [*(part.since for part in parts[1:]), before.end]
    met = [part for part, end in zip(parts, ends, strict=True) if part.since < after.end and end > after.start]
    if met[0] is not parts[0]:
        met[0] = met[0].lead_on(parts[: parts.index(met[0])], now)
    kept = [part.start_at(after.start, now) for part in met]
    first = [BookedPart(after.start, now)] if after.start < before.start else []
    last = [BookedPart(before.end, now)] if after.end > before.end else []
    return (*first, *kept, *last)
