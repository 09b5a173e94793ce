# SPDX-License-Identifier: Apache-2.0
"""Work on series: their leases are booked in chunks, prepared, and become PENDING all at once.

A series is claimed while it is worked on. If its manager dies, another one takes it over and goes on: what is booked
already stays. Until the end each lease is CREATING, and undoing the series lets each of these creations fall due, as
that of any lease whose creation has failed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from blazar.calendar.series import PlannedOccurrence
from blazar.enforcement import Occasion
from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.changing.deletion import Deletion
from blazar.manager.changing.new_leases import NewLease, NewLeases
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.notifications import CREATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import prepare_reservations
from blazar.manager.leases import lifecycle
from blazar.manager.outbox.messages import call_commit_hooks, plan_messages
from blazar.manager.series.occurrences import (
    CHUNK,
    PlannedSeries,
    copy_for_occurrence,
    find_first_to_come,
    make_occurrence,
    mark_unfit,
    offer_first,
    unfit_sentence,
)
from blazar.manager.series.plans import SeriesCheck, SeriesPlanner
from blazar.manager.waiting.waiting_list import WaitingList
from blazar.model.base.clock import to_second
from blazar.model.base.errors import (
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
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.series.checks import Fit
from blazar.model.series.details import OccurrenceState, Series, SeriesOccurrence, SeriesStatus
from blazar.model.use.resource_hours import OutboxMessage
from blazar.store.booking.commit import Commit, LeaseWrite, limit_prices

LOG = logging.getLogger(__name__)

DAILY = timedelta(days=1)
"""How often the leases of a series without an end are booked further ahead."""

SOON = timedelta(minutes=1)
"""When it is looked again at a series whose last lease is just ending."""

ATTEMPTS = 12
"""How often work on a series is tried that fails for a reason that may pass; with the longest pauses, ten minutes."""

DUE = 20
"""Series that one round of a manager works on."""

_PASSING = (CloudUnavailable, StoreUnavailable, EnforcementUnavailable, RoleMissing, Contention, OthersWait)


class Unbooked(Exception):
    """A series that is booked as a whole cannot be, for an ``error``."""

    def __init__(self, error: BlazarError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Occurrences as they were planned, and those of them that are not booked."""

    planned: PlannedSeries
    unfit: Sequence[SeriesOccurrence] = ()


def _leave_out_denied(
    proposal: Proposal[_Chunk],
    fitting: Iterable[tuple[PlannedOccurrence, NewLease]],
    objections: Mapping[str, BlazarError],
    check: SeriesCheck,
) -> Proposal[_Chunk]:
    """Return the proposal to book of a chunk what fits, and to what there are no ``objections``, by lease."""
    planned, commit = proposal.found.planned, proposal.commit
    assert commit is not None
    leases: list[LeaseWrite] = []
    unfit = [replace(mark_unfit(o), opening=o.opening) for o in planned.plan.occurrences if not o.fits]
    for planned_occurrence, copy in fitting:
        if (error := objections.get(copy.lease.id)) is not None:
            unfit.append(mark_unfit(planned_occurrence, error.public or error.message))
        else:
            leases.append(LeaseWrite(None, copy.lease, planned.allocations(copy, planned_occurrence)))
    moved = planned.moved if leases else ()
    taken = {allocation.resource_id for write in (*leases, *moved) for allocation in write.allocations}
    generations = {id_: planned.generations[id_] for id_ in taken}
    commit = replace(commit, leases=[*leases, *moved], generations=generations, uses=check.uses if leases else ())
    commit = replace(commit, most=limit_prices([write.after.id for write in leases], check.max_price))
    return replace(proposal, found=_Chunk(planned, unfit), commit=commit)


class SeriesWork(DueWork[str, Series]):
    """Works on series that are due. Any number of managers may do so at a time."""

    page = DUE

    def __init__(self, runtime: Runtime, booker: Booker, deletion: Deletion, waiting_list: WaitingList) -> None:
        super().__init__("series", runtime, work="Series cannot be worked on")
        self._booker = booker
        self._deletion = deletion
        self._new_leases = NewLeases(runtime)
        self.planner = SeriesPlanner(runtime, waiting_list)

    def _due(self) -> Sequence[str]:
        return self._runtime.store.series_work.find_due(self._runtime.clock.now(), DUE)

    def _claim(self, due: str, claim: Claim) -> Series | None:
        until = self._runtime.claims.begin(claim)
        return self._runtime.store.series_work.claim(due, claim.token, now=self._runtime.clock.now(), until=until)

    def work(self, claimed: Series, claim: Claim) -> BlazarError | None:
        """Work on a claimed series; return why it could not be booked, if it was to be booked as a whole.

        What fails for a reason that may pass is tried again later, by any manager.
        """
        with self._runtime.claims.held(claim):
            try:
                self._work(claimed, claim)
            except ClaimLost as error:
                LOG.debug("Series %s: %s", claimed.id, error.message)
            except Unbooked as failed:
                return self._failed_for_good(claimed, claim, failed.error)
            except BlazarError as error:
                if isinstance(error, _PASSING) and claimed.attempts + 1 < ATTEMPTS:
                    self._later(claimed, claim, error.message)
                    return None
                return self._failed_for_good(claimed, claim, error)
            except Exception:
                # The edge of a thread: a bug must not stop the work on other series.
                LOG.exception("Work on series %s failed unexpectedly", claimed.id)
                self._later(claimed, claim, "internal error")
        return None

    def _later(self, series: Series, claim: Claim, why: str) -> None:
        now, wait = self._runtime.clock.now(), self._runtime.settings.pause_after(series.attempts)
        LOG.warning("Work on series %s is tried again in %s: %s", series.id, wait, why)
        try:
            self._runtime.store.series_work.release(series.id, claim.token, due_at=now + wait, now=now, failed=True)
        except BlazarError as error:
            # Its claim expires.
            LOG.debug("Series %s is not let go: %s", series.id, error.message)

    def _failed_for_good(self, series: Series, claim: Claim, error: BlazarError) -> BlazarError | None:
        """Undo a series that was to be booked as a whole, or go on without what could not be booked."""
        store, now = self._runtime.store.series_work, self._runtime.clock.now()
        whole = series.fit is Fit.ALL and series.status is SeriesStatus.CREATING
        why = error.public or error.message
        LOG.warning("Series %s cannot be booked%s: %s", series.id, "" if whole else " completely", error.message)
        try:
            if series.status is not SeriesStatus.DELETING:
                left = series.template.without_secrets if whole else None
                store.undo_leases(series.id, claim.token, reason=why, now=now, left=left)
            if not whole:
                self._finish(series, claim, (), ())
        except ClaimLost as lost:
            LOG.debug("Series %s: %s", series.id, lost.message)
        self._runtime.signals.events_due()
        return error if whole else None

    def _work(self, series: Series, claim: Claim) -> None:
        if series.status is SeriesStatus.DELETING:
            self._delete(series, claim)
            return
        if series.status not in (SeriesStatus.CREATING, SeriesStatus.ACTIVE):
            self._runtime.store.series_work.release(series.id, claim.token, due_at=None, now=self._runtime.clock.now())
            return
        if series.status is SeriesStatus.ACTIVE and series.booked_until is not None:
            self._look_ahead(series, claim, series.booked_until)
        if planned := self._runtime.store.series_work.load_planned(series.id):
            self._book(series, claim, planned)
        ready = self._prepared(series, claim)
        messages = self._accepted(series, claim, ready)
        self._finish(series, claim, ready, messages)

    def _look_ahead(self, series: Series, claim: Claim, since: datetime) -> None:
        """Record the occurrences of a series without an end that have come near."""
        store, now = self._runtime.store.series_work, self._runtime.clock.now()
        until = to_second(now) + self._runtime.settings.series.horizon
        if until <= since:
            return
        # What has been booked before its end is known, and not recorded again.
        window = Window(to_second(max(since, now)), until)
        known = store.load_recurrence_ids(series.id, window.start)
        coming = [o for o in series.recurrence.occurrences(window) if o.recurrence_id not in known]
        found = [SeriesOccurrence(occurrence.recurrence_id, occurrence.start, occurrence.end) for occurrence in coming]
        most = self._runtime.settings.series.max_occurrences
        store.insert_occurrences(series.id, claim.token, found[:most], booked_until=until, now=now)

    # Booking.

    def _book(self, series: Series, claim: Claim, planned: Sequence[SeriesOccurrence]) -> None:
        """Book occurrences, a chunk at a time. Unbooked if that cannot be done as a whole."""
        window = find_first_to_come(planned, self._runtime.clock.now())
        if window is None:
            self._pass_by(series, claim, planned)
            return
        try:
            new = self._new_leases.make(series.request(window), claim)
        except (InvalidInput, NotFound, UsageDenied) as error:
            raise Unbooked(error) from error
        if new.choice is not None:
            # In one region, whichever has most room for all of them.
            new = self.planner.plan(new, [make_occurrence(occurrence) for occurrence in planned], series.fit).new
        for first in range(0, len(planned), CHUNK):
            self._book_chunk(series, claim, new, planned[first : first + CHUNK])

    def _pass_by(self, series: Series, claim: Claim, planned: Sequence[SeriesOccurrence]) -> None:
        """Record occurrences that can no longer be booked."""
        why = "its start has passed"
        if series.fit is Fit.ALL:
            raise Unbooked(InvalidInput(f"an occurrence cannot be booked: {why}"))
        unfit = [replace(occurrence, state=OccurrenceState.UNFIT, reason=why) for occurrence in planned]
        now = self._runtime.clock.now()
        self._runtime.store.series_work.book_occurrences(series.id, claim.token, Commit((), at=now), unfit)

    def _book_chunk(self, series: Series, claim: Claim, new: NewLease, chunk: Sequence[SeriesOccurrence]) -> None:
        runtime = self._runtime
        occurrences = [make_occurrence(occurrence) for occurrence in chunk]
        copies = {
            occurrence.recurrence_id: copy_for_occurrence(runtime, series, new, occurrence, occurrence.window)
            for occurrence in occurrences
            if occurrence.window is not None
        }
        check = SeriesCheck(runtime, series.template.max_price)
        bounds = runtime.bounds_of(series.project_id)

        def fitting(planned: PlannedSeries) -> Iterator[tuple[PlannedOccurrence, NewLease]]:
            return ((o, copies[o.occurrence.recurrence_id]) for o in planned.plan.occurrences if o.fits)

        def propose(attempt: int) -> Proposal[_Chunk]:
            planned = self.planner.plan(new, occurrences, series.fit)
            if series.fit is Fit.ALL and (missed := next((e for e in planned.plan.occurrences if not e.fits), None)):
                raise Unbooked(NotEnoughResources(unfit_sentence(missed.occurrence.recurrence_id, missed.reason or "")))
            commit = Commit((), at=runtime.clock.now(), bounds=bounds)
            return Proposal(_Chunk(planned), commit)

        def judge(proposal: Proposal[_Chunk]) -> Proposal[_Chunk]:
            planned = proposal.found.planned
            wanted = [(copy.lease, planned.allocations(copy, occurrence)) for occurrence, copy in fitting(planned)]
            objections = check.objections(Actor(series.user_id, series.project_id), wanted, planned.so_far)
            if series.fit is Fit.ALL:
                for occurrence, copy in fitting(planned):
                    if (error := objections.get(copy.lease.id)) is not None:
                        offer_first(runtime, series, error, occurrence.occurrence.recurrence_id)
                        raise Unbooked(error)
            return _leave_out_denied(proposal, fitting(planned), objections, check)

        done = self._booker.book(
            propose,
            check=judge,
            write=lambda proposal, commit: runtime.store.series_work.book_occurrences(
                series.id, claim.token, commit, proposal.found.unfit
            ),
        )
        tell_moved(runtime, [one for one in done.writes if one.makes_room])

    # Preparing.

    def _prepared(self, series: Series, claim: Claim) -> tuple[Lease, ...]:
        """Make what the leases of a series need before their start; return those that are still being created."""
        ready = []
        for lease in self._runtime.store.series.leases(series.id, LeaseStatus.CREATING):
            try:
                ready.append(prepare_reservations(self._runtime, lease, {r.id for r in lease.reservations}))
            except (CloudRefused, InvalidInput, NotFound) as error:
                self._refuse(series, claim, lease, error)
        return tuple(ready)

    def _accepted(self, series: Series, claim: Claim, ready: Sequence[Lease]) -> tuple[OutboxMessage, ...]:
        """Send leases to the filters that must accept them; return the outbox messages to write with them.

        Those that one does not accept are undone. The messages are written before they are sent: so a manager that
        takes over sends the same ones, by which a service knows them.
        """
        enforcement = self._runtime.enforcement
        if not ready or not enforcement.listens_to(Occasion.CREATED):
            return ()
        held = self._runtime.store.series_work.load_new_allocations(series.id)
        by = Actor(series.user_id, series.project_id)
        known = self._runtime.store.outbox.load_next_messages([lease.id for lease in ready])
        messages: list[OutboxMessage] = []
        for lease in ready:
            if lease.id not in known:
                granted = _finish_creation(lease, self._runtime.clock.now())
                messages += plan_messages(self._runtime, Occasion.CREATED, granted, held.get(lease.id, ()), by=by)
        if not enforcement.needs_acceptance(Occasion.CREATED, series.project_id):
            return tuple(messages)
        self._runtime.store.series_work.write_messages(series.id, claim.token, messages, now=self._runtime.clock.now())
        by_lease = {message.lease_id: message for message in messages} | known
        done: list[OutboxMessage] = []
        for lease in ready:
            try:
                done += call_commit_hooks(self._runtime, (by_lease[lease.id],))
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
        self._runtime.store.series_work.refuse_occurrence(
            series.id, claim.token, lease, unfit, now=self._runtime.clock.now()
        )

    def _finish(
        self, series: Series, claim: Claim, ready: Sequence[Lease], messages: Collection[OutboxMessage]
    ) -> None:
        """Make the leases that were created PENDING, and say when there is work on the series again."""
        store, now = self._runtime.store.series_work, self._runtime.clock.now()
        if series.recurrence.rule.has_end:
            last = store.find_last_end(series.id)
            if last is None:
                store.end_series(series.id, claim.token, series.template.without_secrets, now=now)
                return
            due_at = max(last, now + SOON)
        else:
            due_at = now + DAILY
        store.activate_leases(series.id, claim.token, ready, messages, due_at=due_at, now=now)
        for lease in ready:
            self._runtime.notifier.notify(CREATED, _finish_creation(lease, now))
        self._runtime.signals.messages_written()
        self._runtime.signals.events_due()

    # Deletion.

    def _delete(self, series: Series, claim: Claim) -> None:
        """Delete the leases of a series that have not begun, and those that have if that was asked for."""
        store, now = self._runtime.store.series_work, self._runtime.clock.now()
        for lease in self._runtime.store.series.leases(series.id):
            begun = lease.status is not LeaseStatus.CREATING and lease.window.start <= now
            if lease.status in (LeaseStatus.DELETING, LeaseStatus.TERMINATED) or (begun and not series.ends_running):
                continue
            try:
                self._deletion.delete(lease.id)
            except NotFound:
                LOG.debug("Lease %s of series %s is deleted already", lease.id, series.id)
        store.end_series(
            series.id, claim.token, series.template.without_secrets, now=self._runtime.clock.now(), deleted=True
        )

    def end_running(self, series_id: str) -> None:
        """Delete the leases that a series which is deleted has left running."""
        for lease in self._runtime.store.series.leases(series_id):
            if lease.status not in (LeaseStatus.DELETING, LeaseStatus.TERMINATED):
                with suppress(NotFound):
                    self._deletion.delete(lease.id)


def _finish_creation(lease: Lease, now: datetime) -> Lease:
    """Return a lease whose creation has finished, as the store makes it."""
    creation = lease.event(EventType.CREATE)
    assert creation is not None
    granted = lifecycle.arm(lifecycle.settle(lease, creation, now=now), now=now)
    return replace(granted, revision=lease.revision + 1)
