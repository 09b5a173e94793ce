# SPDX-License-Identifier: Apache-2.0
"""Answers to the question when something is free: reads what a search needs once, and searches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.repack.values import NotRepacked
from blazar.calendar.timeline import from_epoch
from blazar.manager.billing.quoting import Quoting
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.booking.lease_changes import ChangeQuestion
from blazar.manager.booking.repacking import find_farthest_end, make_proof
from blazar.manager.changing.change_decisions import check_not_ended
from blazar.manager.changing.change_grants import TrialGrant
from blazar.manager.changing.granted import entitle
from blazar.manager.changing.new_leases import NewLeases
from blazar.manager.changing.updates import Updates
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases.dates import changed_window
from blazar.manager.outbox.enforcement_check import make_view
from blazar.manager.search.alternatives import find_alternatives
from blazar.manager.search.free_time import FreeTime, extend_to
from blazar.manager.search.moved_windows import MovedWindows, open_windows
from blazar.manager.search.request_places import RequestPlace
from blazar.manager.search.search_times import Times, read_changed_times, read_extension, read_times
from blazar.manager.search.sought_leases import FreeTimeReader, SoughtLease, find_places
from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import NOW, Moment
from blazar.model.base.window import Window
from blazar.model.billing.prices import LeasePrice
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.model.search.availability import Availability, AvailabilityQuestion, FreeWindow, LimitedBy

SECOND = timedelta(seconds=1)


def _first_opening_key(found: Availability) -> tuple[bool, datetime]:
    """Return the key of an answer by its first opening: the answer of the region with the earliest one counts."""
    return (False, found.openings[0].window.start) if found.openings else (True, found.range.end)


class AvailabilityService:
    """Finds free time for new leases and for changes."""

    def __init__(
        self,
        runtime: Runtime,
        updates: Updates,
        *,
        checks_references: bool = True,
        moves_others: bool = True,
        is_refused: bool = False,
    ) -> None:
        self._runtime = runtime
        self._updates = updates
        self._checks_references = checks_references
        self._moves_others = moves_others
        self._is_refused = is_refused
        self._new_leases = NewLeases(runtime)
        self._quoting = Quoting(runtime)

    @property
    def _reader(self) -> FreeTimeReader:
        return FreeTimeReader(self._runtime, self._quoting)

    @property
    def now(self) -> datetime:
        """Return the second of which answers are."""
        return to_second(self._runtime.clock.now())

    def try_change(self, lease_id: str, change: LeaseChange) -> LeasePrice | None:
        """Return what a lease would cost after a change that our own limits allow; no service is asked.

        The errors of the change.
        """
        tried = replace(change, dry_run=True, key=None)
        return self._updates.preview(lease_id, tried, grants=TrialGrant)[2]

    def find(self, question: AvailabilityQuestion) -> Availability:
        """Answer a question. InvalidInput, NotFound, WrongState, Conflict, EnforcementUnavailable, OutOfTime."""
        now = self._runtime.clock.now()
        if question.lease_id is None:
            return self._for_new_lease(question, now)
        lease = self._runtime.store.leases.one(question.lease_id)
        check_not_ended(lease)
        has_window = question.duration or question.end or question.start
        if not has_window and not question.changes:
            return self._extension(question, lease, now)
        return self._for_change(question, lease, now)

    def explain(self, question: AvailabilityQuestion, *, moves_others: bool) -> Availability:
        """Answer a question about a window that has been refused, for a tenth of the cost. The errors of ``find``.

        ``moves_others``: it was also looked for by giving others other hosts.
        """
        settings = replace(
            self._runtime.settings,
            search_placements=max(1, self._runtime.settings.search_placements // 10),
            search_limit=self._runtime.settings.search_limit / 10,
        )
        runtime = replace(self._runtime, settings=settings)
        # Before 1.1 a request may name what is not there, and is refused because there is nothing of it.
        cheap = AvailabilityService(
            runtime, self._updates, checks_references=False, moves_others=moves_others, is_refused=True
        )
        return cheap.find(question)

    def _for_new_lease(self, question: AvailabilityQuestion, now: datetime) -> Availability:
        times = read_times(question, now, self._runtime.settings.search_range)
        asker = question.asked_by
        request = LeaseRequest(
            name="",
            user_id=asker.user_id,
            project_id=asker.project_id,
            start=times.window.start,
            end=times.window.end,
            reservations=question.reservations,
            operator=asker.operator,
        )
        new = self._new_leases.draft(request, times.window, checks_references=self._checks_references)
        named = {r.id: RequestPlace(index) for index, r in enumerate(new.lease.asked_for)}
        places = find_places(new.lease, named)
        best: Availability | None = None
        for option in new.options():
            wanted = SoughtLease(option.lease, option.placement_requests, asker.project_id, places)
            found = self._searched(question, self._reader.read(wanted, asker, times.range, now), times, now)
            if best is None or _first_opening_key(found) < _first_opening_key(best):
                best = found
        assert best is not None
        return best

    def _for_change(self, question: AvailabilityQuestion, lease: Lease, now: datetime) -> Availability:
        begun = lease.window.start <= now
        most = self._runtime.settings.search_range
        if question.duration is None:
            times = read_changed_times(question, lease.window, now, most)
            # Now stays now: it may be a second later when the change is looked at.
            end = question.end if question.end is NOW else times.window.end
            found = self._change_of(question, lease, end, question.start and times.window.start)
        elif begun:
            raise InvalidInput(
                "duration: the lease has started, and only its end can change; give an end_date",
                code="invalid_window",
                at="/duration",
            )
        else:
            times = read_times(question, now, most)
            found = self._change_of(question, lease, times.window.end, times.window.start)
        if not found.replan:
            return self._kept(question, found, times, now)
        requests: Sequence[PlacementRequest] = found.placement_requests
        if found.lease.window.covers(times.window):
            requests = [entitle(request, found.allocations) for request in requests]
        free_time = self._reader.read(self._wanted(question, found, requests), question.asked_by, times.range, now)
        return self._searched(question, free_time, times, now, moves=not begun)

    def _kept(self, question: AvailabilityQuestion, found: ChangeQuestion, times: Times, now: datetime) -> Availability:
        """Answer for a first window in which the lease keeps its resources, whatever has become of them."""
        length, before = times.window.duration, found.lease.window
        free_time = self._reader.read(
            self._wanted(question, found, found.placement_requests), question.asked_by, times.range, now
        )
        counts = tuple(
            sum(a.count for a in found.allocations if a.reservation_id in ids)
            for reservation in found.lease.asked_for
            for ids in ({reservation.id, *(child.id for child in found.lease.children(reservation.id))},)
        )
        last = min(times.last_start, before.end - length)
        until = None
        if times.latest > before.end:
            until = free_time.kept_until(Window(times.window.start, before.end), times.latest) or before.end
        refusals = free_time.kept_refusals(times.window)
        kept = FreeWindow(times.window, last, None if until == times.latest else until, counts, refusals)
        if last == times.last_start:
            return self._answer(question, times, now, searched_until=times.latest, complete=True, openings=(kept,))
        after = Window(last + SECOND, last + SECOND + length)
        rest = free_time.find(after, times.last_start, times.latest, question.limit)
        openings = [free_time.free_window(opening, length) for opening in rest.openings]
        if openings and openings[0].window.start == after.start:
            kept = replace(kept, last_start=openings.pop(0).last_start)
        openings.insert(0, kept)
        searched_until = from_epoch(rest.searched_until)
        if len(openings) > question.limit:
            del openings[question.limit :]
            searched_until = openings[-1].last_start + SECOND
        return self._answer(
            question,
            times,
            now,
            searched_until=searched_until,
            complete=rest.complete,
            openings=tuple(openings),
        )

    def _extension(self, question: AvailabilityQuestion, lease: Lease, now: datetime) -> Availability:
        # If its time is over, this says so.
        changed_window(lease.window, None, None, now, exact=True)
        latest = read_extension(question, lease.window, now, self._runtime.settings.search_range)
        # One second longer: so that what the lease has is asked for once more.
        found = self._change_of(question, lease, lease.window.end + SECOND)
        wanted = replace(self._wanted(question, found, found.placement_requests), lease=found.lease)
        times = Times(lease.window, lease.window.start, latest)
        free_time = self._reader.read(wanted, question.asked_by, times.range, now)
        extension = free_time.extension(latest)
        if extension.limited_by is LimitedBy.PROMISED:
            farthest = find_farthest_end(self._runtime, lease, latest, found.placement_requests, now)
            if farthest is not None and farthest > extension.open_until:
                start = lease.window.start
                extension = extend_to(
                    lease.window, farthest, latest, lambda end: free_time.kept_refusals(Window(start, end))
                )
        answer = self._answer(question, times, now, searched_until=latest, complete=True)
        return replace(answer, extension=extension)

    def _change_of(
        self, question: AvailabilityQuestion, lease: Lease, end: Moment, start: Moment | None = None
    ) -> ChangeQuestion:
        change = LeaseChange(
            start=start,
            end=end,
            reservations=question.changes,
            asked_by=question.asked_by,
            exact=True,
            names=question.names,
        )
        return self._updates.question(lease, change)

    def _wanted(
        self, question: AvailabilityQuestion, found: ChangeQuestion, requests: Sequence[PlacementRequest]
    ) -> SoughtLease:
        runtime = self._runtime
        current = make_view(runtime.store, found.lease, found.allocations) if runtime.enforcement.enabled else None
        named = {c.id: RequestPlace(index, c.parameters, c.id) for index, c in enumerate(question.changes)}
        places = find_places(found.after, named)
        return SoughtLease(found.after, requests, found.lease.project_id, places, found.lease.id, current)

    def _searched(
        self,
        question: AvailabilityQuestion,
        free_time: FreeTime,
        times: Times,
        now: datetime,
        *,
        moves: bool = True,
    ) -> Availability:
        """Answer a search; a lease in use keeps its start and so never ``moves`` to another time."""
        window, length = times.window, times.window.duration
        found = free_time.find(window, times.last_start, times.latest, question.limit)
        openings = tuple(free_time.free_window(opening, length) for opening in found.openings)
        fits = bool(openings) and openings[0].window.start == window.start
        moved = None if fits or not self._moves_others else open_windows(self._runtime, free_time, times, now)
        made = None if moved is None else moved.look(window)
        if isinstance(made, FreeWindow) and self._is_refused:
            # Others were faster, or are gone since.
            moved = None
        if moved is not None and not self._is_refused:
            openings = tuple(moved.list_openings(openings, times, question.limit))
        searched_until = from_epoch(found.searched_until)
        if len(openings) > question.limit:
            searched_until = openings[question.limit].window.start
        answer = self._answer(
            question,
            times,
            now,
            searched_until=searched_until,
            complete=found.complete,
            openings=openings[: question.limit],
        )
        if question.explain and isinstance(made, NotRepacked):
            answer = replace(answer, proof=make_proof(made))
        return self._explained(answer, question, free_time, times, moves=moves, moved=moved)

    def _explained(
        self,
        answer: Availability,
        question: AvailabilityQuestion,
        free_time: FreeTime,
        times: Times,
        *,
        moves: bool,
        moved: MovedWindows | None,
    ) -> Availability:
        """Return an answer with the reasons and alternatives that are asked for, if the first window does not do."""
        window, openings = times.window, answer.openings
        if not (question.explain or question.alternatives):
            return answer
        if openings and openings[0].window.start == window.start:
            if not (question.alternatives and openings[0].refusals):
                return answer
            # There is room, but not for this project: there may be at another time, or for less.
            first = self._find_granted(question, free_time, times, openings, None) if moves else None
            return replace(answer, alternatives=find_alternatives(free_time, window, (), first))
        reasons = free_time.reasons(window, times.latest)
        answer = replace(answer, reasons=free_time.of_request(reasons) if question.explain else ())
        if not question.alternatives:
            return answer
        first = self._find_granted(question, free_time, times, openings, moved) if moves else None
        return replace(answer, alternatives=find_alternatives(free_time, window, reasons, first, moved))

    def _find_granted(
        self,
        question: AvailabilityQuestion,
        free_time: FreeTime,
        times: Times,
        openings: Sequence[FreeWindow],
        moved: MovedWindows | None,
    ) -> FreeWindow | None:
        """Return the first opening within the limits of the project; of fixed dates also at another time."""
        length, last = times.window.duration, times.last_start
        if question.duration is None:
            last = times.latest - length
            found = free_time.find(times.window, last, times.latest, 1).openings
            openings = [free_time.free_window(opening, length) for opening in found]
        first = free_time.find_granted(openings, length, last, times.latest)
        if question.duration is not None or moved is None:
            return first
        until = last if first is None else first.window.start - SECOND
        earlier = moved.find_opening(length, times.window.start + SECOND, until, times.latest)
        return first if earlier is None or earlier.refusals else earlier

    def _answer(
        self,
        question: AvailabilityQuestion,
        times: Times,
        now: datetime,
        *,
        searched_until: datetime,
        complete: bool,
        openings: tuple[FreeWindow, ...] = (),
    ) -> Availability:
        return Availability(
            as_of=to_second(now),
            range=times.range,
            duration=times.window.duration,
            searched_until=searched_until,
            complete=complete,
            openings=openings,
            not_checked=self._runtime.enforcement.filters_not_asked(question.asked_by.project_id),
        )
