# SPDX-License-Identifier: Apache-2.0
"""Two leases become one. Only the calendar changes: what is in use is neither handed over again nor taken back.

The second lease is deleted with the same write, without resources; its deletion removes what was made for reservations
of which nothing is left, as an empty aggregate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.common.notifications import UPDATED, WARNING_OFF
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import lifecycle, timetable
from blazar.manager.leases.flags import set_flags
from blazar.manager.outbox.enforcement_check import Examined
from blazar.manager.outbox.messages import make_messages
from blazar.manager.surgery.common import LIVE, LeaseToChange, is_pending, load_changeable, load_other_changeable
from blazar.manager.surgery.swap import mark_changed
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.topology import do_lie
from blazar.model.leases import reminders
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus
from blazar.model.surgery import MergeRequest, Terms
from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.booking.commit import Commit, LeaseWrite, ReservationMove, ResourcePassing


@dataclass(frozen=True, slots=True)
class Joined:
    """The first lease with what it has after it was joined, and the reservations that are ``left`` of the second.

    ``moved`` are the reservations that it has from the second; ``into`` says which of its reservations has what one of
    the second had.
    """

    lease: Lease
    allocations: tuple[Allocation, ...]
    moved: frozenset[str]
    into: Mapping[str, str]


def join_side_by_side(
    first: Lease,
    second: Lease,
    held: Collection[Allocation],
    added: Collection[Allocation],
    into: Mapping[str, str],
    parameters: Mapping[str, Content],
    now: datetime,
) -> Joined:
    """Return two leases of one window as one; ``into`` and ``parameters`` are of the reservations that become one."""
    merged = {
        r.id: replace(r, parameters=parameters[r.id], updated_at=now) for r in first.reservations if r.id in parameters
    }
    joining = {into[r.id]: r for r in second.reservations if r.id in into}
    kept = tuple(
        replace(
            reservation, unassigned=reservation.unassigned | other.unassigned, failed=reservation.failed | other.failed
        )
        if (other := joining.get(r.id)) is not None and (reservation := merged.get(r.id, r))
        else merged.get(r.id, r)
        for r in first.reservations
    )
    moved = tuple(r for r in second.reservations if r.id not in into)
    lease = replace(first, reservations=(*kept, *moved), updated_at=now)
    gained = tuple(
        replace(a, lease_id=first.id, reservation_id=into.get(a.reservation_id, a.reservation_id)) for a in added
    )
    return Joined(lease, (*held, *gained), frozenset(r.id for r in moved), dict(into))


def join_one_after_the_other(
    first: Lease, second: Lease, held: Collection[Allocation], into: Mapping[str, str], now: datetime
) -> Joined:
    """Return a lease with the time of another one that begins where it ends, with the same resources."""
    window = Window(first.window.start, second.window.end)
    return Joined(
        replace(first, window=window, updated_at=now),
        tuple(replace(allocation, window=window) for allocation in held),
        frozenset(),
        dict(into),
    )


_COUNTS = ("min", "max")
"""The parameters in which reservations that become one may differ."""


@dataclass(frozen=True, slots=True)
class _Merge:
    first: LeaseToChange
    second: LeaseToChange
    joined: Joined
    warning_off: bool


class Merger:
    """Merges leases."""

    def __init__(self, runtime: Runtime, booker: Booker) -> None:
        self._runtime = runtime
        self._booker = booker

    def merge(self, lease_id: str, request: MergeRequest, terms: Terms) -> Commit:
        """Merge another lease into a lease, and return what is written; for a dry run what would be.

        NotFound, InvalidInput, Conflict, WrongState, UsageDenied, PreconditionFailed, KeyTaken.
        """
        done = self._booker.book(lambda attempt: self._propose(lease_id, request, terms), dry_run=terms.dry_run)
        merged = done.writes[0]
        if not terms.dry_run:
            self._runtime.signals.messages_written()
            if done.found.warning_off:
                self._runtime.notifier.notify(WARNING_OFF, merged.after)
            self._runtime.notifier.notify(UPDATED, merged.after)
        assert done.commit is not None
        return done.commit

    def _messages(self, found: _Merge, going: Lease, terms: Terms) -> list[OutboxMessage]:
        first, second, make = found.first, found.second, partial(make_messages, self._runtime)
        gone = replace(going, reservations=second.lease.reservations)
        joined, by = found.joined, terms.asked_by
        before = (first.lease, first.allocations)
        return [
            *make(Occasion.ENDED, gone, second.allocations, by=by),
            *make(Occasion.UPDATED, joined.lease, joined.allocations, by=by, before=before),
        ]

    def _propose(self, lease_id: str, request: MergeRequest, terms: Terms) -> Proposal[_Merge]:
        if request.other == lease_id:
            raise InvalidInput("with names the same lease; name another one", at="/with")
        first = load_changeable(self._runtime, lease_id, terms.revisions)
        second = load_other_changeable(self._runtime, request.other, "/with")
        _check_alike(first.lease, second.lease)
        touching = first.lease.window != second.lease.window
        joined = self._one_after_the_other(first, second) if touching else self._side_by_side(first, second)
        lease, warning_off = self._armed(joined.lease, first, second, touching=touching)
        lease = mark_changed(lease, first.lease, first.now)
        lease = set_flags(lease, joined.allocations, (*first.tasks, *second.tasks), now=first.now)
        self._runtime.bounds_of(lease.project_id).check_lease(len(lease.reservations))
        joined = replace(joined, lease=lease)
        examined = Examined(
            terms.asked_by,
            lease,
            joined.allocations,
            before=(first.lease, first.allocations),
            instead_of=second.lease,
            # What a denial points at, as the end of the lease, is no part of this request.
            pointer="/with",
        )
        found = _Merge(first, second, joined, warning_off)
        commit = self._commit(found, terms, touching)
        messages = partial(self._messages, found, commit.leases[1].after, terms)
        return Proposal(found, commit, (examined,), messages=messages)

    def _commit(self, found: _Merge, terms: Terms, touching: bool) -> Commit:
        first, second, joined = found.first, found.second, found.joined
        left = replace(
            second.lease, reservations=tuple(r for r in second.lease.reservations if r.id not in joined.moved)
        )
        going = lifecycle.begin_deletion(left, now=second.now, reason=EndReason.MERGED)
        passing = []
        if not touching:
            passing = [
                ResourcePassing(
                    origin,
                    target,
                    first.lease.id,
                    frozenset(a.resource_id for a in second.allocations if a.reservation_id == origin),
                )
                for origin, target in joined.into.items()
            ]
        return Commit(
            [LeaseWrite(first.lease, joined.lease, joined.allocations), LeaseWrite(second.lease, going, ())],
            at=first.now,
            joint=True,
            key=terms.key,
            key_of=first.lease.id,
            moves=[ReservationMove(id_, first.lease.id) for id_ in sorted(joined.moved)],
            passing=passing,
            follows=joined.into if touching else {},
            plans_from={first.lease.id: second.lease.id},
        )

    def _side_by_side(self, first: LeaseToChange, second: LeaseToChange) -> Joined:
        one, other = first.lease, second.lease
        if one.status is not other.status:
            raise Conflict(
                f"the lease is {one.status}, and the other one {other.status}; leases with the same window are merged "
                "before both have started, or when both have",
                at="/with",
                data={"status": str(other.status)},
            )
        into: dict[str, str] = {}
        parameters: dict[str, Content] = {}
        if one.status is LeaseStatus.PENDING and one.window.start > first.now:
            for reservation in (r for r in other.reservations if self._runtime.type_of(r).splits_by_time):
                like = next((r for r in one.reservations if r.id not in parameters and _are_like(r, reservation)), None)
                if like is not None and self._do_lie(like, reservation, (*first.allocations, *second.allocations)):
                    into[reservation.id] = like.id
                    parameters[like.id] = _add_counts(like.parameters, reservation.parameters)
        return join_side_by_side(one, other, first.allocations, second.allocations, into, parameters, first.now)

    def _do_lie(self, one: Reservation, other: Reservation, allocations: Sequence[Allocation]) -> bool:
        """Return whether what two reservations have lies, all of it, as both ask."""
        kind = self._runtime.type_of(one)
        catalog = self._runtime.store.resources.catalog(kind.kind)
        try:
            topology = kind.demand(one.parameters, known=catalog.property_names()).topology
        except InvalidInput:
            # Where they are to lie nobody knows any more.
            return False
        ids = [a.resource_id for a in allocations if a.reservation_id in (one.id, other.id)]
        return not topology or do_lie(topology, [catalog.by_id[id_] for id_ in ids if id_ in catalog.by_id])

    def _one_after_the_other(self, first: LeaseToChange, second: LeaseToChange) -> Joined:
        one, other = first.lease, second.lease
        if other.window.end == one.window.start:
            raise Conflict(
                "the other lease ends where this one begins; merge this one into that one instead", at="/with"
            )
        if one.window.end != other.window.start:
            raise Conflict(
                "the leases have neither the same window, nor does the other one begin where this one ends; change "
                "the dates of one of them first",
                at="/with",
            )
        if other.status is not LeaseStatus.PENDING:
            raise Conflict(f"the other lease is {other.status}, and has to begin only after this one", at="/with")
        into: dict[str, str] = {}
        for reservation in other.reservations:
            like = _find_counterpart(reservation, first, second, besides=into.values())
            if like is None or reservation.parent is not None or self._runtime.references(reservation):
                raise Conflict(
                    f"reservation {reservation.id} has no counterpart in this lease with the same type, parameters and "
                    "resources, or refers to others; swap hosts or change the parameters first",
                    at="/with",
                )
            into[reservation.id] = like
        if {r.id for r in one.reservations} != set(into.values()):
            raise Conflict(
                "this lease has reservations without a counterpart in the other one, which would get more time; split "
                "them off first",
                at="/with",
            )
        return join_one_after_the_other(one, other, first.allocations, into, first.now)

    def _armed(
        self, lease: Lease, first: LeaseToChange, second: LeaseToChange, *, touching: bool
    ) -> tuple[Lease, bool]:
        """Return the merged lease with its events armed for its window, and whether an earlier warning is void."""
        known, others = first.lease.event(EventType.BEFORE_END), second.lease.event(EventType.BEFORE_END)
        asked = None if touching else _warning(lease, known, others)
        saves = any(self._runtime.type_of(r).action(r.parameters).saves_work for r in lease.reservations)
        events, void = timetable.change_events(
            first.lease,
            lease.window,
            asked,
            first.now,
            lead=self._runtime.lead_before_end(lease),
            newly_set=False,
            saves=saves,
            rearmed=False,
        )
        extend = second.lease.extend if touching else first.lease.extend
        reminding = reminders.join(first.lease.reminders, second.lease.reminders)
        keeps = first.lease.keep_hosts or second.lease.keep_hosts
        return replace(lease, events=events, extend=extend, reminders=reminding, keep_hosts=keeps), void


def _warning(lease: Lease, known: Event | None, other: Event | None) -> datetime | None:
    """Return when to warn of an end that both leases have: at the earlier time that is still to come."""
    ahead = [e.time for e in (known, other) if e is not None and e.status is EventStatus.UNDONE and e.time is not None]
    inside = [at for at in ahead if lease.window.start < at < lease.window.end]
    if not inside or (known is not None and known.time == min(inside)):
        return None
    return min(inside)


def _check_alike(one: Lease, other: Lease) -> None:
    if one.project_id != other.project_id:
        raise Conflict("the leases belong to different projects; only leases of one project are merged", at="/with")


def _find_counterpart(
    reservation: Reservation, first: LeaseToChange, second: LeaseToChange, *, besides: Collection[str]
) -> str | None:
    """Return the reservation of the first lease that is and has the same as one of the second; None if none is left."""
    holdings = _holdings_of(second, reservation.id)
    for one in first.lease.reservations:
        alike = _kind_of(one) == _kind_of(reservation) and one.parameters == reservation.parameters
        if alike and one.status in LIVE and one.id not in besides and _holdings_of(first, one.id) == holdings:
            return one.id
    return None


def _kind_of(reservation: Reservation) -> tuple[str, str]:
    return reservation.resource_type, reservation.region


def _are_like(one: Reservation, other: Reservation) -> bool:
    """Tell whether two reservations of whole hosts can become one: neither has started, and they ask for the same."""
    waits = is_pending(one) and is_pending(other)
    return (
        waits
        and _kind_of(one) == _kind_of(other)
        and one.parent is None
        and other.parent is None
        and _parameters_without_counts(one.parameters) == _parameters_without_counts(other.parameters)
    )


def _parameters_without_counts(parameters: Content) -> Mapping[str, object]:
    return {key: value for key, value in parameters.values.items() if key not in _COUNTS}


def _add_counts(one: Content, other: Content) -> Content:
    counts = {key: int(str(one.values[key])) + int(str(other.values[key])) for key in _COUNTS}
    return Content({**one.values, **counts})


def _holdings_of(found: LeaseToChange, reservation_id: str) -> Collection[tuple[int, int, Amounts | None]]:
    return {(a.resource_id, a.count, a.per_instance) for a in found.allocations if a.reservation_id == reservation_id}
