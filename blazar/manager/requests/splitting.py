# SPDX-License-Identifier: Apache-2.0
"""One lease becomes two, by units or by time. Only the calendar changes: nothing is handed over, nothing taken back."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.common.notifications import CREATED, UPDATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.cutting import Cut, Parts, by_time, by_units
from blazar.manager.lease.flags import flagged
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.operating import LIVE, Patient, is_waiting, named, patient, written
from blazar.manager.requests.swapping import as_changed
from blazar.model.clock import to_second
from blazar.model.demand import Allocation
from blazar.model.errors import Conflict, InvalidInput, pointing_at
from blazar.model.lease import Lease, LeaseStatus
from blazar.model.surgery import PartRequest, SplitRequest, Terms
from blazar.model.usage import OutboxMessage
from blazar.resources.base import Task
from blazar.store.surgery import Move, Operated, Operation, Passing

WHOLE_HOSTS = "physical:host"


@dataclass(frozen=True, slots=True)
class _Split:
    found: Patient
    parts: Parts
    operation: Operation


class Splitting:
    """Splits leases."""

    def __init__(self, runtime: Runtime, booking: Booking, outbox: Outbox) -> None:
        self._runtime = runtime
        self._booking = booking
        self._outbox = outbox

    def split(self, lease_id: str, request: SplitRequest, terms: Terms) -> tuple[Operated, ...]:
        """Split a lease; for a dry run return what would come of it.

        NotFound, InvalidInput, Conflict, WrongState, UsageDenied, PreconditionFailed, KeyTaken.
        """
        checks = [EnforcementCheck(self._outbox.enforcement, self._runtime.store, self._runtime.clock) for _ in "12"]

        def check(found: _Split) -> None:
            lease, parts = found.found.lease, found.parts
            self._outbox.catch_up(lease.id)
            before = (lease, found.found.allocations)
            checks[0].check(terms.asked_by, parts.first, parts.first_allocations, before=before)
            checks[1].check(terms.asked_by, parts.second, parts.second_allocations, part_of=parts.first)

        def write(found: _Split) -> tuple[Operated, ...]:
            messages = partial(self._messages, found, terms)
            return written(self._runtime, found.operation, terms, checks=checks, messages=messages)

        enabled = self._outbox.enforcement.enabled
        done = self._booking.until_it_holds(
            lambda attempt: self._decided(lease_id, request, terms), write, check if enabled else None
        )
        if not terms.dry_run:
            self._outbox.wake()
            for kind, each in zip((UPDATED, CREATED), done, strict=True):
                self._runtime.notifier.notify(kind, each.after)
        return done

    def _messages(self, found: _Split, terms: Terms) -> list[OutboxMessage]:
        parts, before = found.parts, (found.found.lease, found.found.allocations)
        of, by = self._outbox.of, terms.asked_by
        return [
            *of(Occasion.UPDATED, parts.first, parts.first_allocations, by=by, before=before),
            *of(Occasion.CREATED, parts.second, parts.second_allocations, by=by),
        ]

    def _decided(self, lease_id: str, request: SplitRequest, terms: Terms) -> _Split:
        found = patient(self._runtime, lease_id, terms.revisions)
        name = found.lease.name if request.name is None else request.name
        if request.at is None:
            parts = self._by_units(found, request, terms, name)
        else:
            parts = self._by_time(found, request, name)
        parts = replace(
            parts,
            first=self._flagged(as_changed(parts.first, found.lease, found.now), parts.first_allocations, found),
            second=self._flagged(_ordinary(parts.second), parts.second_allocations, found),
        )
        return _Split(found, parts, self._operation(found, parts, request, terms))

    def _operation(self, found: Patient, parts: Parts, request: SplitRequest, terms: Terms) -> Operation:
        second = parts.second
        moves = [Move(id_, second.id) for id_ in sorted(parts.moved)]
        passing = []
        if request.at is None:
            passing = [
                Passing(
                    origin,
                    target,
                    second.id,
                    frozenset(a.resource_id for a in parts.second_allocations if a.reservation_id == target),
                )
                for origin, target in parts.renamed.items()
            ]
        exempt = self._outbox.enforcement.exempts(second.project_id)
        return Operation(
            [
                Operated(found.lease, parts.first, parts.first_allocations),
                Operated(None, second, parts.second_allocations),
            ],
            key=terms.key,
            key_of=second.id,
            moves=moves,
            passing=passing,
            bounds=None if exempt else self._runtime.settings.bounds,
            more=len(parts.renamed),
            plans_from={second.id: found.lease.id},
        )

    def _flagged(self, lease: Lease, allocations: tuple[Allocation, ...], found: Patient) -> Lease:
        return flagged(lease, allocations, found.tasks, now=found.now)

    def _by_units(self, found: Patient, request: SplitRequest, terms: Terms, name: str) -> Parts:
        whole: set[str] = set()
        cuts: dict[str, Cut] = {}
        for number, each in enumerate(request.parts):
            with pointing_at(f"/reservations/{number}"):
                task = self._asked(found, each)
                if each.reservation_id in whole or each.reservation_id in cuts:
                    sentence = f"reservation {each.reservation_id} is named twice"
                    raise InvalidInput(sentence, pointer="/id")
                gone = self._gone(task, each, terms)
                if gone is None or len(gone) == len(task.resources):
                    whole.add(each.reservation_id)
                else:
                    cuts[each.reservation_id] = self._cut(found, task, gone)
        live = {r.id for r in found.lease.asked_for if r.status in LIVE}
        if live <= whole:
            raise InvalidInput(
                "nothing would be left of the lease; leave a reservation, or some of its hosts, with it",
                pointer="/reservations",
            )
        self._check_references(found.lease, whole, cuts)
        return by_units(
            found.lease, found.allocations, whole, cuts, name=name, new_id=lambda: str(uuid.uuid4()), now=found.now
        )

    def _asked(self, found: Patient, part: PartRequest) -> Task:
        known = next((t for t in found.tasks if t.reservation.id == part.reservation_id), None)
        if known is None or known.reservation.status not in LIVE:
            raise InvalidInput(
                f"the lease has no reservation {part.reservation_id[:80]} that could go to another one",
                code="unknown_reference",
                pointer="/id",
            )
        return found.task(part.reservation_id)

    def _gone(self, task: Task, part: PartRequest, terms: Terms) -> frozenset[int] | None:
        """Return which resources go, None for all that there is."""
        if part.resources:
            what = f"resource of reservation {part.reservation_id}"
            found = [named(task.resources, each, terms, pointer="/resources", what=what) for each in part.resources]
            return frozenset(each.id for each in found)
        if part.count is None:
            return None
        total = sum(task.counts.values())
        if part.count > total:
            raise InvalidInput(f"count is {part.count}, and the reservation has {total}", pointer="/count")
        if part.count == total:
            return None
        if len(task.resources) != total:
            # Several of its instances are on one resource.
            raise _not_cut(task)
        # What has failed goes last: each part should be of use.
        by_health = sorted(task.resources, key=lambda each: (bool(each.failure), each.id))
        return frozenset(each.id for each in by_health[: part.count])

    def _cut(self, found: Patient, task: Task, gone: frozenset[int]) -> Cut:
        reservation = task.reservation
        if not is_waiting(reservation) or found.lease.window.start <= found.now:
            raise Conflict(
                f"reservation {reservation.id} is in use, and what it has bears its name in the cloud; it goes to "
                "the second lease as a whole, or stays",
                pointer="/id",
            )
        kept = [each for each in task.resources if each.id not in gone]
        going = [each for each in task.resources if each.id in gone]
        both = self._runtime.type_of(reservation).divided(reservation.parameters, kept, going)
        if both is None:
            raise _not_cut(task)
        return Cut(gone, *both)

    def _check_references(self, lease: Lease, whole: set[str], cuts: Mapping[str, Cut]) -> None:
        """Raise Conflict if a reservation would refer to one of the other lease."""
        for each in lease.reservations:
            for reference in self._runtime.references(each):
                other = str(reference.reservation)
                apart = _goes(lease, each.id, whole) != _goes(lease, other, whole)
                if apart or each.id in cuts or other in cuts:
                    raise Conflict(
                        f"reservation {each.id} refers to reservation {other}; the two stay in one lease",
                        pointer="/reservations",
                    )

    def _by_time(self, found: Patient, request: SplitRequest, name: str) -> Parts:
        assert request.at is not None
        lease, at = found.lease, to_second(request.at)
        if lease.status is not LeaseStatus.PENDING or lease.window.start <= found.now:
            raise Conflict(
                "the lease has started; at the seam its servers would end and its resources be handed over again. A "
                "lease is split by time before its start only: shorten this one and book another instead",
                pointer="/at",
            )
        if not lease.window.start < at < lease.window.end:
            raise InvalidInput(
                f"at has to lie between the start {lease.window.start:%Y-%m-%d %H:%M:%S} and the end "
                f"{lease.window.end:%Y-%m-%d %H:%M:%S} UTC of the lease",
                code="invalid_window",
                pointer="/at",
            )
        if cleaning := self._runtime.store.calendar.cleaning_time:
            raise Conflict(
                f"{cleaning.total_seconds() / 60:g} minutes are kept free for cleaning between two leases, so that the "
                "second could not begin where the first ends; book it as a lease of its own",
                pointer="/at",
            )
        for each in lease.reservations:
            kind = self._runtime.type_of(each)
            if each.resource_type != WHOLE_HOSTS or kind.expands:
                raise Conflict(
                    f"reservation {each.id} is of type {each.resource_type}, which has something made before its start "
                    "or for its whole time; only reservations of whole hosts (physical:host) are split by time",
                    pointer="/at",
                )
        lead = self._runtime.lead_before_end(lease)
        return by_time(
            lease, found.allocations, at, name=name, lead=lead, new_id=lambda: str(uuid.uuid4()), now=found.now
        )


def _not_cut(task: Task) -> Conflict:
    return Conflict(
        f"reservation {task.reservation.id} is of type {task.reservation.resource_type}, which is made as a whole, "
        "or has several on one resource; it goes as a whole, or stays"
    )


def _ordinary(lease: Lease) -> Lease:
    """Return a second part as a lease whose start is not moved any more."""
    return lease if lease.wait is None else replace(lease, wait=replace(lease.wait, advance=False))


def _goes(lease: Lease, reservation_id: str, whole: Collection[str]) -> bool:
    found = lease.reservation(reservation_id)
    return found is not None and (found.id in whole or found.parent in whole)
