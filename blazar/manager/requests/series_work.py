# SPDX-License-Identifier: Apache-2.0
"""Work on series: their leases are booked in chunks, prepared, and become PENDING all at once.

A series is claimed while it is worked on. If its manager dies, another one takes it over and goes on: what is booked
already stays. Until the end each lease is CREATING, and undoing the series lets each of these creations fall due, as
that of any lease whose creation has failed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from blazar.calendar.series import PlannedOccurrence
from blazar.enforcement import Occasion
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import CREATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import lifecycle
from blazar.manager.lease.booking import Booking
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.deletion import Deletion
from blazar.manager.requests.new_leases import NewLease, NewLeases
from blazar.manager.requests.preparing import prepared
from blazar.manager.requests.series_leases import copied
from blazar.manager.requests.series_planning import Planned, Planner, SeriesCheck
from blazar.manager.requests.waiting_list import WaitingList
from blazar.model.clock import said, to_second, zulu
from blazar.model.demand import Allocation
from blazar.model.errors import (
    BlazarError,
    ClaimLost,
    CloudRefused,
    CloudUnavailable,
    Contention,
    EnforcementUnavailable,
    InvalidInput,
    NotEnoughResources,
    NotFound,
    OthersWait,
    RoleMissing,
    StoreUnavailable,
    UsageDenied,
)
from blazar.model.lease import EventType, Lease, LeaseStatus
from blazar.model.recurrence import Occurrence
from blazar.model.requests import Actor
from blazar.model.series import Fit
from blazar.model.series_details import OccurrenceState, Series, SeriesOccurrence, SeriesStatus
from blazar.model.usage import OutboxMessage
from blazar.model.window import Window

LOG = logging.getLogger(__name__)

CHUNK = 50
"""Leases that one transaction books."""

DAILY = timedelta(days=1)
"""How often the leases of a series without an end are booked further ahead."""

SOON = timedelta(minutes=1)
"""When it is looked again at a series whose last lease is just ending."""

ATTEMPTS = 12
"""How often work on a series is tried that fails for a reason that may pass; with the longest pauses, ten minutes."""

DUE = 20
"""Series that one round of a manager works on."""

MOST_NAMED = 50
"""Occurrences that a refusal names."""

_PASSING = (CloudUnavailable, StoreUnavailable, EnforcementUnavailable, RoleMissing, Contention, OthersWait)


class Unbooked(Exception):
    """A series that is booked as a whole cannot be, for an ``error``."""

    def __init__(self, error: BlazarError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(slots=True)
class _Attempt:
    """One attempt to book a chunk: what was planned, and who objects to what, by the id of the lease."""

    planned: Planned
    objections: Mapping[str, BlazarError] = field(default_factory=dict)


class SeriesWork(BackgroundThread):
    """Works on series that are due. Any number of managers may do so at a time."""

    def __init__(
        self, runtime: Runtime, booking: Booking, outbox: Outbox, deletion: Deletion, waiting_list: WaitingList
    ) -> None:
        super().__init__("series", work="Series cannot be worked on")
        self._runtime = runtime
        self._booking = booking
        self._outbox = outbox
        self._deletion = deletion
        self._new_leases = NewLeases(runtime, outbox.enforcement)
        self.planner = Planner(runtime, waiting_list, outbox.enforcement)

    def run_once(self) -> int:
        """Work on the series that are due; return on how many. One statement if there are none. StoreUnavailable."""
        done = 0
        for series_id in self._runtime.store.series.due(self._runtime.clock.now(), DUE):
            if self._stopping.is_set():
                break
            done += self.work_on(series_id)
        return done

    def work_on(self, series_id: str) -> bool:
        """Work on a series that is due; return False if another manager does. StoreUnavailable."""
        runtime, claim = self._runtime, self._runtime.claims.new()
        until = runtime.claims.begin(claim)
        series = runtime.store.series.claim(series_id, claim.token, now=runtime.clock.now(), until=until)
        if series is None:
            return False
        self.work(series, claim)
        return True

    def work(self, series: Series, claim: Claim) -> BlazarError | None:
        """Work on a claimed series; return why it could not be booked, if it was to be booked as a whole.

        What fails for a reason that may pass is tried again later, by any manager.
        """
        with self._runtime.claims.held(claim):
            try:
                self._work(series, claim)
            except ClaimLost as error:
                LOG.debug("Series %s: %s", series.id, error.message)
            except Unbooked as failed:
                return self._failed_for_good(series, claim, failed.error)
            except BlazarError as error:
                if isinstance(error, _PASSING) and series.attempts + 1 < ATTEMPTS:
                    self._later(series, claim, error.message)
                    return None
                return self._failed_for_good(series, claim, error)
            except Exception:
                # The edge of a thread: a bug must not stop the work on other series.
                LOG.exception("Work on series %s failed unexpectedly", series.id)
                self._later(series, claim, "internal error")
        return None

    def _later(self, series: Series, claim: Claim, why: str) -> None:
        settings, now = self._runtime.settings, self._runtime.clock.now()
        wait = min(settings.longest_retry, settings.first_retry * 2 ** min(series.attempts, 16))
        LOG.warning("Work on series %s is tried again in %s: %s", series.id, wait, why)
        try:
            self._runtime.store.series.release(series.id, claim.token, due_at=now + wait, now=now, failed=True)
        except BlazarError as error:
            # Its claim expires.
            LOG.debug("Series %s is not let go: %s", series.id, error.message)

    def _failed_for_good(self, series: Series, claim: Claim, error: BlazarError) -> BlazarError | None:
        """Undo a series that was to be booked as a whole, or go on without what could not be booked."""
        store, now = self._runtime.store.series, self._runtime.clock.now()
        whole = series.fit is Fit.ALL and series.status is SeriesStatus.CREATING
        why = error.public or error.message
        LOG.warning("Series %s cannot be booked%s: %s", series.id, "" if whole else " completely", error.message)
        try:
            if series.status is not SeriesStatus.DELETING:
                left = series.template.without_secrets if whole else None
                store.undo(series.id, claim.token, reason=why, now=now, left=left)
            if not whole:
                self._finish(series, claim, (), ())
        except ClaimLost as lost:
            LOG.debug("Series %s: %s", series.id, lost.message)
        self._runtime.wake()
        return error if whole else None

    def _work(self, series: Series, claim: Claim) -> None:
        if series.status is SeriesStatus.DELETING:
            self._delete(series, claim)
            return
        if series.status not in (SeriesStatus.CREATING, SeriesStatus.ACTIVE):
            self._runtime.store.series.release(series.id, claim.token, due_at=None, now=self._runtime.clock.now())
            return
        if series.status is SeriesStatus.ACTIVE and series.booked_until is not None:
            self._look_ahead(series, claim, series.booked_until)
        if planned := self._runtime.store.series.planned(series.id):
            self._book(series, claim, planned)
        ready = self._prepared(series, claim)
        messages = self._accepted(series, claim, ready)
        self._finish(series, claim, ready, messages)

    def _look_ahead(self, series: Series, claim: Claim, since: datetime) -> None:
        """Record the occurrences of a series without an end that have come near."""
        store, now = self._runtime.store.series, self._runtime.clock.now()
        until = to_second(now) + self._runtime.settings.series.horizon
        if until <= since:
            return
        # What has been booked before its end is known, and not recorded again.
        window = Window(to_second(max(since, now)), until)
        known = store.known(series.id, window.start)
        coming = [each for each in series.recurrence.occurrences(window) if each.recurrence_id not in known]
        found = [SeriesOccurrence(each.recurrence_id, each.start, each.end) for each in coming]
        most = self._runtime.settings.series.max_occurrences
        store.record(series.id, claim.token, found[:most], booked_until=until, now=now)

    # Booking.

    def _book(self, series: Series, claim: Claim, planned: Sequence[SeriesOccurrence]) -> None:
        """Book occurrences, a chunk at a time. Unbooked if that cannot be done as a whole."""
        window = first_to_come(planned, self._runtime.clock.now())
        if window is None:
            self._pass_by(series, claim, planned)
            return
        try:
            new = self._new_leases.of(series.request(window), claim)
        except (InvalidInput, NotFound, UsageDenied) as error:
            raise Unbooked(error) from error
        if new.choice is not None:
            # In one region, whichever has most room for all of them.
            new = self.planner.plan(new, [as_occurrence(each) for each in planned], series.fit).new
        for first in range(0, len(planned), CHUNK):
            self._book_chunk(series, claim, new, planned[first : first + CHUNK])

    def _pass_by(self, series: Series, claim: Claim, planned: Sequence[SeriesOccurrence]) -> None:
        """Record occurrences that can no longer be booked."""
        why = "its start has passed"
        if series.fit is Fit.ALL:
            raise Unbooked(InvalidInput(f"an occurrence cannot be booked: {why}"))
        unfit = [replace(each, state=OccurrenceState.UNFIT, reason=why) for each in planned]
        now = self._runtime.clock.now()
        self._runtime.store.series.book(series.id, claim.token, (), (), {}, unfit, now=now)

    def _book_chunk(self, series: Series, claim: Claim, new: NewLease, chunk: Sequence[SeriesOccurrence]) -> None:
        runtime = self._runtime
        occurrences = [as_occurrence(each) for each in chunk]
        copies = {
            each.recurrence_id: copied(runtime, series, new, each, each.window)
            for each in occurrences
            if each.window is not None
        }
        check = SeriesCheck(runtime, self._outbox.enforcement)

        def fitting(planned: Planned) -> Iterator[tuple[PlannedOccurrence, NewLease]]:
            return ((each, copies[each.occurrence.recurrence_id]) for each in planned.plan.occurrences if each.fits)

        def find(attempt: int) -> _Attempt:
            planned = self.planner.plan(new, occurrences, series.fit)
            if series.fit is Fit.ALL and (missed := next((e for e in planned.plan.occurrences if not e.fits), None)):
                raise Unbooked(NotEnoughResources(unfit_sentence(missed.occurrence.recurrence_id, missed.reason or "")))
            return _Attempt(planned)

        def judge(attempt: _Attempt) -> None:
            wanted = [(copy.lease, attempt.planned.allocations(copy, each)) for each, copy in fitting(attempt.planned)]
            actor = Actor(series.user_id, series.project_id)
            attempt.objections = check.objections(actor, wanted, attempt.planned.so_far)
            if series.fit is Fit.ALL and attempt.objections:
                raise Unbooked(next(iter(attempt.objections.values())))

        def book(attempt: _Attempt) -> None:
            planned = attempt.planned
            leases: list[Lease] = []
            allocations: list[Allocation] = []
            unfit = [
                replace(unfit_of(each), opening=each.opening) for each in planned.plan.occurrences if not each.fits
            ]
            for each, copy in fitting(planned):
                if (error := attempt.objections.get(copy.lease.id)) is not None:
                    unfit.append(unfit_of(each, error.public or error.message))
                    continue
                leases.append(copy.lease)
                allocations += planned.allocations(copy, each)
            taken = {each.resource_id for each in allocations}
            runtime.store.series.book(
                series.id,
                claim.token,
                leases,
                allocations,
                {id_: planned.generations[id_] for id_ in taken},
                unfit,
                now=runtime.clock.now(),
                use=check.use if leases else None,
                bounds=None if self._outbox.enforcement.exempts(series.project_id) else runtime.settings.bounds,
            )

        self._booking.until_it_holds(find, book, judge)

    # Preparing.

    def _prepared(self, series: Series, claim: Claim) -> tuple[Lease, ...]:
        """Make what the leases of a series need before their start; return those that are still being created."""
        ready = []
        for lease in self._runtime.store.series.leases(series.id, LeaseStatus.CREATING):
            try:
                ready.append(prepared(self._runtime, lease, {each.id for each in lease.reservations}))
            except (CloudRefused, InvalidInput, NotFound) as error:
                self._refuse(series, claim, lease, error)
        return tuple(ready)

    def _accepted(self, series: Series, claim: Claim, ready: Sequence[Lease]) -> tuple[OutboxMessage, ...]:
        """Send leases to the filters that must accept them; return the outbox messages to write with them.

        Those that one does not accept are undone. The messages are written before they are sent: so a manager that
        takes over sends the same ones, by which a service knows them.
        """
        enforcement = self._outbox.enforcement
        if not ready or not enforcement.listens_to(Occasion.CREATED):
            return ()
        held = self._runtime.store.series.allocations(series.id)
        by = Actor(series.user_id, series.project_id)
        known = self._runtime.store.outbox.outstanding_of([lease.id for lease in ready])
        messages: list[OutboxMessage] = []
        for lease in ready:
            if lease.id not in known:
                granted = _granted(lease, self._runtime.clock.now())
                messages += self._outbox.planned(Occasion.CREATED, granted, held.get(lease.id, ()), by=by)
        if not enforcement.must_accept(Occasion.CREATED, series.project_id):
            return tuple(messages)
        self._runtime.store.series.note(series.id, claim.token, messages, now=self._runtime.clock.now())
        by_lease = {message.lease_id: message for message in messages} | known
        done: list[OutboxMessage] = []
        for lease in ready:
            try:
                done += self._outbox.commit((by_lease[lease.id],))
            except UsageDenied as error:
                self._refuse(series, claim, lease, error)
        return tuple(done)

    def _refuse(self, series: Series, claim: Claim, lease: Lease, error: BlazarError) -> None:
        """Undo the lease of one occurrence; Unbooked if the series is booked as a whole."""
        if series.fit is Fit.ALL:
            raise Unbooked(error)
        assert lease.series is not None
        unfit = SeriesOccurrence(
            lease.series.recurrence_id,
            lease.window.start,
            lease.window.end,
            OccurrenceState.UNFIT,
            reason=error.public or error.message,
        )
        self._runtime.store.series.refuse(series.id, claim.token, lease, unfit, now=self._runtime.clock.now())

    def _finish(
        self, series: Series, claim: Claim, ready: Sequence[Lease], messages: Collection[OutboxMessage]
    ) -> None:
        """Make the leases that were created PENDING, and say when there is work on the series again."""
        store, now = self._runtime.store.series, self._runtime.clock.now()
        if series.recurrence.rule.ends:
            last = store.last_end(series.id)
            if last is None:
                store.end(series.id, claim.token, series.template.without_secrets, now=now)
                return
            due_at = max(last, now + SOON)
        else:
            due_at = now + DAILY
        store.activate(series.id, claim.token, ready, messages, due_at=due_at, now=now)
        for lease in ready:
            self._runtime.notifier.notify(CREATED, _granted(lease, now))
        self._outbox.wake()
        self._runtime.wake()

    # Deletion.

    def _delete(self, series: Series, claim: Claim) -> None:
        """Delete the leases of a series that have not begun, and those that have if that was asked for."""
        store, now = self._runtime.store.series, self._runtime.clock.now()
        for lease in store.leases(series.id):
            begun = lease.status is not LeaseStatus.CREATING and lease.window.start <= now
            if lease.status in (LeaseStatus.DELETING, LeaseStatus.TERMINATED) or (begun and not series.ends_running):
                continue
            try:
                self._deletion.delete(lease.id)
            except NotFound:
                LOG.debug("Lease %s of series %s is deleted already", lease.id, series.id)
        store.end(series.id, claim.token, series.template.without_secrets, now=self._runtime.clock.now(), deleted=True)

    def end_running(self, series_id: str) -> None:
        """Delete the leases that a series which is deleted has left running."""
        for lease in self._runtime.store.series.leases(series_id):
            if lease.status not in (LeaseStatus.DELETING, LeaseStatus.TERMINATED):
                with suppress(NotFound):
                    self._deletion.delete(lease.id)

    def _round(self) -> float:
        return 0 if self.run_once() == DUE else self._runtime.settings.longest_sleep.total_seconds()


def as_occurrence(planned: SeriesOccurrence) -> Occurrence:
    """Return an occurrence that is on record as the calendar plans it."""
    return Occurrence(planned.recurrence_id, planned.start, planned.end)


def first_to_come(occurrences: Sequence[SeriesOccurrence], now: datetime) -> Window | None:
    """Return the window of the first occurrence that has not begun; None if there is none."""
    return next((each.window for each in occurrences if each.window is not None and each.start >= now), None)


def unfit_sentence(recurrence_id: datetime, reason: str) -> str:
    """Return why a series cannot be booked as a whole."""
    return f"the occurrence of {said(recurrence_id)} does not fit: {reason.removesuffix('.')}"


def unfit_of(planned: PlannedOccurrence, reason: str | None = None) -> SeriesOccurrence:
    """Return what is recorded of an occurrence that is not booked."""
    found = planned.occurrence
    return SeriesOccurrence(
        found.recurrence_id, found.start, found.end, OccurrenceState.UNFIT, reason=reason or planned.reason
    )


def _granted(lease: Lease, now: datetime) -> Lease:
    """Return a lease whose creation has finished, as the store makes it."""
    creation = lease.event(EventType.CREATE)
    assert creation is not None
    granted = lifecycle.arm(lifecycle.settle(lease, creation, now=now), now=now)
    return replace(granted, revision=lease.revision + 1)


def check_fits(series: Series, found: Sequence[SeriesOccurrence]) -> None:
    """Raise NotEnoughResources if nothing would be booked of a series."""
    unfit = [each for each in found if each.state is OccurrenceState.UNFIT]
    if not unfit or (series.fit is Fit.AS_MANY and len(unfit) < len(found)):
        return
    first = unfit[0]
    others = f" (and {len(unfit) - 1} more do not)" if len(unfit) > 1 else ""
    advice = "ask for as many as fit with fit" if len(unfit) < len(found) else "choose other times"
    raise NotEnoughResources(
        f"{unfit_sentence(first.recurrence_id, first.reason or '')}{others}; {advice}, or see with dry_run when "
        "they fit",
        data={"unfit": len(unfit), "occurrences": [_told(each) for each in unfit[:MOST_NAMED]]},
    )


def _told(each: SeriesOccurrence) -> dict[str, object]:
    opening = each.opening
    return {
        "recurrence_id": each.recurrence_id.isoformat(),
        "start_date": zulu(each.start),
        "end_date": zulu(each.end),
        "reason": each.reason,
        "opening": None if opening is None else {"start_date": zulu(opening.start), "end_date": zulu(opening.end)},
    }
