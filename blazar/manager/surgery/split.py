# SPDX-License-Identifier: Apache-2.0
"""One lease becomes two, by units or by time. Only the calendar changes: nothing is handed over, nothing taken back."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.changing.named_hosts import find_named
from blazar.manager.common.notifications import CREATED, UPDATED
from blazar.manager.common.runtime import Runtime, with_capabilities
from blazar.manager.leases.flags import set_flags
from blazar.manager.outbox.enforcement_check import Examined
from blazar.manager.outbox.messages import make_messages
from blazar.manager.surgery.common import LIVE, LeaseToChange, is_pending, load_changeable
from blazar.manager.surgery.parts import Parts, ReservationCut, divide_by_time, divide_by_units
from blazar.manager.surgery.swap import mark_changed
from blazar.model.base.clock import to_second
from blazar.model.base.errors import Conflict, InvalidInput, pointing_at
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import PartRequest, SplitRequest, Terms
from blazar.model.use.resource_hours import OutboxMessage
from blazar.resources.contract.values import Task
from blazar.store.booking.commit import Commit, LeaseWrite, ReservationMove, ResourcePassing


class Splitter:
    """Splits leases."""

    def __init__(self, runtime: Runtime, booker: Booker) -> None:
        self._runtime = runtime
        self._booker = booker

    def split(self, lease_id: str, request: SplitRequest, terms: Terms) -> Commit:
        """Split a lease, and return what is written; for a dry run what would be.

        NotFound, InvalidInput, Conflict, WrongState, UsageDenied, PreconditionFailed, KeyTaken.
        """
        done = self._booker.book(lambda attempt: self._propose(lease_id, request, terms), dry_run=terms.dry_run)
        if not terms.dry_run:
            self._runtime.signals.messages_written()
            for kind, lease in zip((UPDATED, CREATED), done.leases, strict=True):
                self._runtime.notifier.notify(kind, lease)
        assert done.commit is not None
        return done.commit

    def _messages(self, found: LeaseToChange, parts: Parts, terms: Terms) -> list[OutboxMessage]:
        before = (found.lease, found.allocations)
        make, by = partial(make_messages, self._runtime), terms.asked_by
        return [
            *make(Occasion.UPDATED, parts.first, parts.first_allocations, by=by, before=before),
            *make(Occasion.CREATED, parts.second, parts.second_allocations, by=by),
        ]

    def _propose(self, lease_id: str, request: SplitRequest, terms: Terms) -> Proposal[Parts]:
        found = load_changeable(self._runtime, lease_id, terms.revisions)
        name = found.lease.name if request.name is None else request.name
        if request.at is None:
            parts = self._by_units(found, request, terms, name)
        else:
            parts = self._by_time(found, request, name)
        parts = replace(
            parts,
            first=self._flagged(mark_changed(parts.first, found.lease, found.now), parts.first_allocations, found),
            second=self._flagged(_end_advance(parts.second), parts.second_allocations, found),
        )
        examined = (
            Examined(terms.asked_by, parts.first, parts.first_allocations, before=(found.lease, found.allocations)),
            Examined(terms.asked_by, parts.second, parts.second_allocations, part_of=parts.first),
        )
        commit = self._commit(found, parts, request, terms)
        return Proposal(parts, commit, examined, messages=partial(self._messages, found, parts, terms))

    def _commit(self, found: LeaseToChange, parts: Parts, request: SplitRequest, terms: Terms) -> Commit:
        second = parts.second
        moves = [ReservationMove(id_, second.id) for id_ in sorted(parts.moved)]
        passing = []
        if request.at is None:
            passing = [
                ResourcePassing(
                    origin,
                    target,
                    second.id,
                    frozenset(a.resource_id for a in parts.second_allocations if a.reservation_id == target),
                )
                for origin, target in parts.renamed.items()
            ]
        return Commit(
            [
                LeaseWrite(found.lease, parts.first, parts.first_allocations),
                LeaseWrite(None, second, parts.second_allocations),
            ],
            at=found.now,
            joint=True,
            key=terms.key,
            key_of=second.id,
            moves=moves,
            passing=passing,
            bounds=self._runtime.bounds_of(second.project_id),
            more=len(parts.renamed),
            plans_from={second.id: found.lease.id},
        )

    def _flagged(self, lease: Lease, allocations: tuple[Allocation, ...], found: LeaseToChange) -> Lease:
        return set_flags(lease, allocations, found.tasks, now=found.now)

    def _by_units(self, found: LeaseToChange, request: SplitRequest, terms: Terms, name: str) -> Parts:
        whole: set[str] = set()
        cuts: dict[str, ReservationCut] = {}
        for number, part in enumerate(request.parts):
            with pointing_at(f"/reservations/{number}"):
                task = self._find_live_task(found, part)
                if part.reservation_id in whole or part.reservation_id in cuts:
                    sentence = f"reservation {part.reservation_id} is named twice"
                    raise InvalidInput(sentence, at="/id")
                gone = self._gone(task, part, terms)
                if gone is None or len(gone) == len(task.resources):
                    whole.add(part.reservation_id)
                else:
                    cuts[part.reservation_id] = self._cut(found, task, gone)
        live = {r.id for r in found.lease.asked_for if r.status in LIVE}
        if live <= whole:
            raise InvalidInput(
                "nothing would be left of the lease; leave a reservation, or some of its hosts, with it",
                at="/reservations",
            )
        self._check_references(found.lease, whole, cuts)
        return divide_by_units(
            found.lease, found.allocations, whole, cuts, name=name, new_id=lambda: str(uuid.uuid4()), now=found.now
        )

    def _find_live_task(self, found: LeaseToChange, part: PartRequest) -> Task:
        known = next((t for t in found.tasks if t.reservation.id == part.reservation_id), None)
        if known is None or known.reservation.status not in LIVE:
            raise InvalidInput(
                f"the lease has no reservation {part.reservation_id[:80]} that could go to another one",
                code="unknown_reference",
                at="/id",
            )
        return found.task(part.reservation_id)

    def _gone(self, task: Task, part: PartRequest, terms: Terms) -> frozenset[int] | None:
        """Return which resources go, None for all that there is."""
        if part.resources:
            what = f"resource of reservation {part.reservation_id}"
            found = [find_named(task.resources, r, terms, pointer="/resources", what=what) for r in part.resources]
            return frozenset(resource.id for resource in found)
        if part.count is None:
            return None
        total = sum(task.counts.values())
        if part.count > total:
            raise InvalidInput(f"count is {part.count}, and the reservation has {total}", at="/count")
        if part.count == total:
            return None
        if len(task.resources) != total:
            # Several of its instances are on one resource.
            raise _indivisible(task)
        # What has failed goes last: each part should be of use.
        by_health = sorted(task.resources, key=lambda resource: (bool(resource.failure), resource.id))
        return frozenset(resource.id for resource in by_health[: part.count])

    def _cut(self, found: LeaseToChange, task: Task, gone: frozenset[int]) -> ReservationCut:
        reservation = task.reservation
        if not is_pending(reservation) or found.lease.window.start <= found.now:
            raise Conflict(
                f"reservation {reservation.id} is in use, and what it has bears its name in the cloud; it goes to "
                "the second lease as a whole, or stays",
                at="/id",
            )
        kind = self._runtime.type_of(reservation)
        # How they lie to each other is told by capabilities.
        resources = with_capabilities(task, self._runtime.store.resources.catalog(kind.kind)).resources
        kept = [resource for resource in resources if resource.id not in gone]
        going = [resource for resource in resources if resource.id in gone]
        both = kind.divided(reservation.parameters, kept, going)
        if both is None:
            raise _indivisible(task)
        return ReservationCut(gone, *both)

    def _check_references(self, lease: Lease, whole: set[str], cuts: Mapping[str, ReservationCut]) -> None:
        """Raise Conflict if a reservation would refer to one of the other lease."""
        for reservation in lease.reservations:
            for reference in self._runtime.references(reservation):
                other = str(reference.reservation)
                apart = _goes_along(lease, reservation.id, whole) != _goes_along(lease, other, whole)
                if apart or reservation.id in cuts or other in cuts:
                    raise Conflict(
                        f"reservation {reservation.id} refers to reservation {other}; the two stay in one lease",
                        at="/reservations",
                    )

    def _by_time(self, found: LeaseToChange, request: SplitRequest, name: str) -> Parts:
        assert request.at is not None
        lease, at = found.lease, to_second(request.at)
        if lease.status is not LeaseStatus.PENDING or lease.window.start <= found.now:
            raise Conflict(
                "the lease has started; at the seam its servers would end and its resources be handed over again. A "
                "lease is split by time before its start only: shorten this one and book another instead",
                at="/at",
            )
        if not lease.window.start < at < lease.window.end:
            raise InvalidInput(
                f"at has to lie between the start {lease.window.start:%Y-%m-%d %H:%M:%S} and the end "
                f"{lease.window.end:%Y-%m-%d %H:%M:%S} UTC of the lease",
                code="invalid_window",
                at="/at",
            )
        if cleaning := self._runtime.store.calendar.cleaning_time:
            raise Conflict(
                f"{cleaning.total_seconds() / 60:g} minutes are kept free for cleaning between two leases, so that the "
                "second could not begin where the first ends; book it as a lease of its own",
                at="/at",
            )
        types = ", ".join(name for name, kind in self._runtime.types.items() if kind.splits_by_time)
        for reservation in lease.reservations:
            if not self._runtime.type_of(reservation).splits_by_time:
                raise Conflict(
                    f"reservation {reservation.id} is of type {reservation.resource_type}, which has something made "
                    f"before its start or for its whole time; only reservations of whole hosts ({types}) are "
                    f"split by time",
                    at="/at",
                )
        lead = self._runtime.lead_before_end(lease)
        return divide_by_time(
            lease, found.allocations, at, name=name, lead=lead, new_id=lambda: str(uuid.uuid4()), now=found.now
        )


def _indivisible(task: Task) -> Conflict:
    return Conflict(
        f"reservation {task.reservation.id} is of type {task.reservation.resource_type}, which is made as a whole, "
        "or has several on one resource; it goes as a whole, or stays"
    )


def _end_advance(lease: Lease) -> Lease:
    """Return a second part as a lease whose start is not moved any more."""
    return lease if lease.wait is None else replace(lease, wait=replace(lease.wait, advance=False))


def _goes_along(lease: Lease, reservation_id: str, whole: Collection[str]) -> bool:
    found = lease.reservation(reservation_id)
    return found is not None and (found.id in whole or found.parent in whole)
