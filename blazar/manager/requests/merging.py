# SPDX-License-Identifier: Apache-2.0
"""Two leases become one. Only the calendar changes: what is in use is neither handed over again nor taken back.

The second lease is deleted with the same write, without resources; its deletion removes what was made for reservations
of which nothing is left, as an empty aggregate.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.common.notifications import UPDATED, WARNING_OFF
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import lifecycle, timetable
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.flags import flagged
from blazar.manager.lease.joining import Joined, one_after_the_other, side_by_side
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.operating import LIVE, Patient, is_waiting, other_patient, patient, written
from blazar.manager.requests.swapping import as_changed
from blazar.model.amounts import Amounts
from blazar.model.errors import Conflict, InvalidInput, UsageDenied
from blazar.model.lease import Content, EndReason, Event, EventStatus, EventType, Lease, LeaseStatus, Reservation
from blazar.model.surgery import MergeRequest, Terms
from blazar.model.usage import OutboxMessage
from blazar.store.surgery import Move, Operated, Operation, Passing

_COUNTS = ("min", "max")
"""The parameters in which reservations that become one may differ."""


@dataclass(frozen=True, slots=True)
class _Merge:
    first: Patient
    second: Patient
    joined: Joined
    warning_off: bool
    operation: Operation


class Merging:
    """Merges leases."""

    def __init__(self, runtime: Runtime, booking: Booking, outbox: Outbox) -> None:
        self._runtime = runtime
        self._booking = booking
        self._outbox = outbox

    def merge(self, lease_id: str, request: MergeRequest, terms: Terms) -> tuple[Operated, ...]:
        """Merge another lease into a lease; for a dry run return what would come of it.

        NotFound, InvalidInput, Conflict, WrongState, UsageDenied, PreconditionFailed, KeyTaken.
        """
        enforcement_check = EnforcementCheck(self._outbox.enforcement, self._runtime.store, self._runtime.clock)

        def check(found: _Merge) -> None:
            first, second = found.first, found.second
            self._outbox.catch_up(first.lease.id)
            self._outbox.catch_up(second.lease.id)
            try:
                enforcement_check.check(
                    terms.asked_by,
                    found.joined.lease,
                    found.joined.allocations,
                    before=(first.lease, first.allocations),
                    instead_of=second.lease,
                )
            except UsageDenied as error:
                # What it points at, as the end of the lease, is no part of this request.
                error.pointer = "/with"
                raise

        def write(found: _Merge) -> tuple[_Merge, Operated]:
            messages = partial(self._messages, found, terms)
            changed = written(self._runtime, found.operation, terms, checks=[enforcement_check], messages=messages)
            return found, changed[0]

        enabled = self._outbox.enforcement.enabled
        found, done = self._booking.until_it_holds(
            lambda attempt: self._decided(lease_id, request, terms), write, check if enabled else None
        )
        if not terms.dry_run:
            self._outbox.wake()
            if found.warning_off:
                self._runtime.notifier.notify(WARNING_OFF, done.after)
            self._runtime.notifier.notify(UPDATED, done.after)
        return (done,)

    def _messages(self, found: _Merge, terms: Terms) -> list[OutboxMessage]:
        first, second, of = found.first, found.second, self._outbox.of
        gone = replace(found.operation.changed[1].after, reservations=second.lease.reservations)
        joined, by = found.joined, terms.asked_by
        before = (first.lease, first.allocations)
        return [
            *of(Occasion.ENDED, gone, second.allocations, by=by),
            *of(Occasion.UPDATED, joined.lease, joined.allocations, by=by, before=before),
        ]

    def _decided(self, lease_id: str, request: MergeRequest, terms: Terms) -> _Merge:
        if request.other == lease_id:
            raise InvalidInput("with names the same lease; name another one", pointer="/with")
        first = patient(self._runtime, lease_id, terms.revisions)
        second = other_patient(self._runtime, request.other, "/with")
        _check_alike(first.lease, second.lease)
        touching = first.lease.window != second.lease.window
        joined = self._one_after_the_other(first, second) if touching else self._side_by_side(first, second)
        lease, warning_off = self._armed(joined.lease, first, second, touching=touching)
        lease = as_changed(lease, first.lease, first.now)
        lease = flagged(lease, joined.allocations, (*first.tasks, *second.tasks), now=first.now)
        if not self._outbox.enforcement.exempts(lease.project_id):
            self._runtime.settings.bounds.check_lease(len(lease.reservations))
        joined = replace(joined, lease=lease)
        return _Merge(first, second, joined, warning_off, self._operation(first, second, joined, terms, touching))

    def _operation(self, first: Patient, second: Patient, joined: Joined, terms: Terms, touching: bool) -> Operation:
        left = replace(
            second.lease, reservations=tuple(r for r in second.lease.reservations if r.id not in joined.moved)
        )
        going = lifecycle.begin_deletion(left, event_id=str(uuid.uuid4()), now=second.now, reason=EndReason.MERGED)
        passing = []
        if not touching:
            passing = [
                Passing(
                    origin,
                    target,
                    first.lease.id,
                    frozenset(a.resource_id for a in second.allocations if a.reservation_id == origin),
                )
                for origin, target in joined.into.items()
            ]
        return Operation(
            [Operated(first.lease, joined.lease, joined.allocations), Operated(second.lease, going, ())],
            key=terms.key,
            key_of=first.lease.id,
            moves=[Move(id_, first.lease.id) for id_ in sorted(joined.moved)],
            passing=passing,
            plans_from={first.lease.id: second.lease.id},
        )

    def _side_by_side(self, first: Patient, second: Patient) -> Joined:
        one, other = first.lease, second.lease
        if one.status is not other.status:
            raise Conflict(
                f"the lease is {one.status}, and the other one {other.status}; leases with the same window are merged "
                "before both have started, or when both have",
                pointer="/with",
                data={"status": str(other.status)},
            )
        into: dict[str, str] = {}
        parameters: dict[str, Content] = {}
        if one.status is LeaseStatus.PENDING and one.window.start > first.now:
            for each in other.reservations:
                like = next((r for r in one.reservations if r.id not in parameters and _are_like(r, each)), None)
                if like is not None:
                    into[each.id] = like.id
                    parameters[like.id] = _added(like.parameters, each.parameters)
        return side_by_side(one, other, first.allocations, second.allocations, into, parameters, first.now)

    def _one_after_the_other(self, first: Patient, second: Patient) -> Joined:
        one, other = first.lease, second.lease
        if other.window.end == one.window.start:
            raise Conflict(
                "the other lease ends where this one begins; merge this one into that one instead", pointer="/with"
            )
        if one.window.end != other.window.start:
            raise Conflict(
                "the leases have neither the same window, nor does the other one begin where this one ends; change "
                "the dates of one of them first",
                pointer="/with",
            )
        if other.status is not LeaseStatus.PENDING:
            raise Conflict(f"the other lease is {other.status}, and has to begin only after this one", pointer="/with")
        into: dict[str, str] = {}
        for each in other.reservations:
            like = next(
                (
                    r
                    for r in one.reservations
                    if r.id not in into.values()
                    and r.status in LIVE
                    and _kind_of(r) == _kind_of(each)
                    and r.parameters == each.parameters
                    and _held(first, r.id) == _held(second, each.id)
                ),
                None,
            )
            if like is None or each.parent is not None or self._runtime.references(each):
                raise Conflict(
                    f"reservation {each.id} has no counterpart in this lease with the same type, parameters and "
                    "resources, or refers to others; swap hosts or change the parameters first",
                    pointer="/with",
                )
            into[each.id] = like.id
        if {r.id for r in one.reservations} != set(into.values()):
            raise Conflict(
                "this lease has reservations without a counterpart in the other one, which would get more time; split "
                "them off first",
                pointer="/with",
            )
        return one_after_the_other(one, other, first.allocations, into, first.now)

    def _armed(self, lease: Lease, first: Patient, second: Patient, *, touching: bool) -> tuple[Lease, bool]:
        """Return the merged lease with its events armed for its window, and whether an earlier warning is void."""
        known, others = first.lease.event(EventType.BEFORE_END), second.lease.event(EventType.BEFORE_END)
        asked = None if touching else _warning(lease, known, others)
        saves = any(self._runtime.type_of(r).action(r.parameters).saves_work for r in lease.reservations)
        events, void = timetable.changed_events(
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
        return replace(lease, events=events, extend=extend), void


def _warning(lease: Lease, known: Event | None, other: Event | None) -> datetime | None:
    """Return when to warn of an end that both leases have: at the earlier time that is still to come."""
    ahead = [e.time for e in (known, other) if e is not None and e.status is EventStatus.UNDONE and e.time is not None]
    inside = [at for at in ahead if lease.window.start < at < lease.window.end]
    if not inside or (known is not None and known.time == min(inside)):
        return None
    return min(inside)


def _check_alike(one: Lease, other: Lease) -> None:
    if one.project_id != other.project_id:
        raise Conflict(
            "the leases belong to different projects; only leases of one project are merged", pointer="/with"
        )


def _kind_of(reservation: Reservation) -> tuple[str, str]:
    return reservation.resource_type, reservation.region


def _are_like(one: Reservation, other: Reservation) -> bool:
    """Tell whether two reservations of whole hosts can become one: neither has started, and they ask for the same."""
    waits = is_waiting(one) and is_waiting(other)
    return (
        waits
        and one.resource_type == "physical:host"
        and _kind_of(one) == _kind_of(other)
        and one.parent is None
        and other.parent is None
        and _beside_counts(one.parameters) == _beside_counts(other.parameters)
    )


def _beside_counts(parameters: Content) -> Mapping[str, object]:
    return {key: value for key, value in parameters.values.items() if key not in _COUNTS}


def _added(one: Content, other: Content) -> Content:
    counts = {key: int(str(one.values[key])) + int(str(other.values[key])) for key in _COUNTS}
    return Content({**one.values, **counts})


def _held(found: Patient, reservation_id: str) -> Collection[tuple[int, int, Amounts | None]]:
    return {(a.resource_id, a.count, a.per_instance) for a in found.allocations if a.reservation_id == reservation_id}
