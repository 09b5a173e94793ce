# SPDX-License-Identifier: Apache-2.0
"""Answers to the question when something is free: reads what a search needs once, and searches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from blazar.calendar.openings import Budget, KindSearch
from blazar.calendar.timeline import from_epoch
from blazar.enforcement import LeaseView
from blazar.manager.billing.quoting import Quoting, price_nothing
from blazar.manager.booking.asleep import read_asleep
from blazar.manager.booking.booking import PlacementRequest, Selectable, find_whole_kinds, match_visible
from blazar.manager.booking.lease_changes import ChangeQuestion
from blazar.manager.booking.repacking import RepackedPlan, find_farthest_end, find_moves
from blazar.manager.changing.change_decisions import check_not_ended
from blazar.manager.changing.granted import entitle
from blazar.manager.changing.new_leases import NewLeases
from blazar.manager.changing.updates import Updates
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases.dates import changed_window
from blazar.manager.outbox.enforcement_check import find_spending, is_spending_read, make_view
from blazar.manager.search.free_time import FreeTime, SearchLimits, describe_moved, extend_to, has_candidates
from blazar.manager.search.request_places import RequestPlace
from blazar.manager.search.search_times import Times, read_changed_times, read_extension, read_times
from blazar.model.base.clock import Clock, to_second
from blazar.model.base.errors import InvalidInput, OutOfTime
from blazar.model.base.moments import NOW, Moment
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.power.classes import POWERED
from blazar.model.power.states import ALL_AWAKE
from blazar.model.search.availability import Availability, AvailabilityQuestion, FreeWindow, LimitedBy
from blazar.store.calendar.views import RangeView

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _SoughtLease:
    """What is looked for: a lease with its placement requests; ``current`` is it before a change.

    ``asked`` has, for each reservation, where the question names it.
    """

    lease: Lease
    requests: Sequence[PlacementRequest]
    project_id: str
    asked: Mapping[str, RequestPlace]
    besides: str | None = None
    current: LeaseView | None = None

    @property
    def is_new(self) -> bool:
        """Return whether the lease is a new one."""
        return self.besides is None


def _find_places(lease: Lease, named: Mapping[str, RequestPlace]) -> Mapping[str, RequestPlace]:
    """Return where a question names the reservations of a lease; the parts of one are where that is, without keys."""
    places = {r.id: named.get(r.id, RequestPlace(None, id=r.id)) for r in lease.asked_for}
    parents = {r.id: r.parent for r in lease.reservations if r.parent is not None}
    return {**places, **{id_: replace(places[parent], keys=frozenset()) for id_, parent in parents.items()}}


class Deadline:
    """When a search is given up: ``limit`` after now."""

    def __init__(self, clock: Clock, limit: timedelta) -> None:
        self._clock = clock
        self._limit = limit
        self._end = clock.elapsed() + limit.total_seconds()

    def check(self) -> None:
        """Raise OutOfTime if it has passed."""
        if self._clock.elapsed() >= self._end:
            raise OutOfTime(
                f"the search took longer than {self._limit.total_seconds():g} seconds and was given up; ask for fewer "
                "reservations or a shorter range, or try again later"
            )


def _first_opening_key(found: Availability) -> tuple[bool, datetime]:
    """Return the key of an answer by its first opening: the answer of the region with the earliest one counts."""
    return (False, found.openings[0].window.start) if found.openings else (True, found.range.end)


class AvailabilityService:
    """Finds free time for new leases and for changes."""

    def __init__(
        self, runtime: Runtime, updates: Updates, *, checks_references: bool = True, moves_others: bool = True
    ) -> None:
        self._runtime = runtime
        self._updates = updates
        self._checks_references = checks_references
        self._moves_others = moves_others
        self._new_leases = NewLeases(runtime)
        self._quoting = Quoting(runtime)

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

    def explain(self, question: AvailabilityQuestion) -> Availability:
        """Answer a question about a window that has been refused, for a tenth of the cost. The errors of ``find``."""
        settings = replace(
            self._runtime.settings,
            search_placements=max(1, self._runtime.settings.search_placements // 10),
            search_limit=self._runtime.settings.search_limit / 10,
        )
        runtime = replace(self._runtime, settings=settings)
        # Before 1.1 a request may name what is not there, and is refused because there is nothing of it.
        # That nobody can make room for it was found before it was refused.
        cheap = AvailabilityService(runtime, self._updates, checks_references=False, moves_others=False)
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
        places = _find_places(new.lease, named)
        best: Availability | None = None
        for option in new.options():
            wanted = _SoughtLease(option.lease, option.placement_requests, asker.project_id, places)
            found = self._searched(question, self._free_time(wanted, asker, times.range, now), times, now)
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
        free_time = self._free_time(self._wanted(question, found, requests), question.asked_by, times.range, now)
        return self._searched(question, free_time, times, now, moves=not begun, before=found.lease.window)

    def _kept(self, question: AvailabilityQuestion, found: ChangeQuestion, times: Times, now: datetime) -> Availability:
        """Answer for a first window in which the lease keeps its resources, whatever has become of them."""
        length, before = times.window.duration, found.lease.window
        free_time = self._free_time(
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
        free_time = self._free_time(wanted, question.asked_by, times.range, now)
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
    ) -> _SoughtLease:
        runtime = self._runtime
        current = make_view(runtime.store, found.lease, found.allocations) if runtime.enforcement.enabled else None
        named = {c.id: RequestPlace(index, c.parameters, c.id) for index, c in enumerate(question.changes)}
        places = _find_places(found.after, named)
        return _SoughtLease(found.after, requests, found.lease.project_id, places, found.lease.id, current)

    def _free_time(self, wanted: _SoughtLease, asker: Actor, range_: Window, now: datetime) -> FreeTime:
        """Read what is promised in a range, and what the project has then, in one transaction."""
        settings, enforcement = self._runtime.settings, self._runtime.enforcement
        budget = Budget(settings.search_placements, check=Deadline(self._runtime.clock, settings.search_limit).check)
        bounds = self._runtime.bounds_of(wanted.project_id) if wanted.is_new else Bounds()
        seen = self._view_range(wanted, bounds, range_, now)
        asleep = read_asleep(self._runtime, range_.start, now) if seen.timelines.keys() & set(POWERED) else ALL_AWAKE
        kinds = {
            kind: KindSearch(
                [request.demand for request in wanted.requests if request.demand.kind == kind],
                timeline,
                seen.catalogs[kind].resources,
                match_visible(seen.catalogs[kind], Selectable(wanted.project_id)),
                budget,
                settings.strategy_of(kind),
                asleep=asleep if kind in POWERED else ALL_AWAKE,
            )
            for kind, timeline in seen.timelines.items()
        }
        standing = bounds.refusals(*seen.so_far, more=len(wanted.lease.reservations))
        spending = find_spending(self._runtime, seen.use)
        limits = SearchLimits(enforcement, asker, now, seen.use, wanted.current, standing, spending, range_.end)
        # What is made of others takes nothing itself.
        taking = tuple(r for p in wanted.requests for r in wanted.lease.reservations if r.id == p.reservation_id)
        numbers = {r.id: number for number, r in enumerate(wanted.lease.asked_for)}
        return FreeTime(
            replace(wanted.lease, reservations=taking),
            wanted.requests,
            [wanted.asked[reservation.id] for reservation in taking],
            [numbers[reservation.parent or reservation.id] for reservation in taking],
            kinds,
            limits,
            budget,
            self._quoting.quote_windows(wanted.lease, now) if wanted.is_new else price_nothing,
        )

    def _view_range(self, wanted: _SoughtLease, bounds: Bounds, range_: Window, now: datetime) -> RangeView:
        enforcement = self._runtime.enforcement
        return self._runtime.store.calendar.view_range(
            find_whole_kinds(wanted.requests),
            range_,
            now=now,
            besides=wanted.besides,
            use_of=wanted.project_id if enforcement.needs_use else None,
            reach=enforcement.usage_window(range_) if enforcement.needs_use else None,
            spends=is_spending_read(self._runtime),
            count_of=wanted.project_id if bounds.depends_on_project else None,
        )

    def _searched(
        self,
        question: AvailabilityQuestion,
        free_time: FreeTime,
        times: Times,
        now: datetime,
        *,
        moves: bool = True,
        before: Window | None = None,
    ) -> Availability:
        """Answer a search; a lease in use keeps its start and so never ``moves`` to another time.

        ``before`` is the window that the lease has; None of a new one.
        """
        window, length = times.window, times.window.duration
        found = free_time.find(window, times.last_start, times.latest, question.limit)
        openings = tuple(free_time.free_window(opening, length) for opening in found.openings)
        fits = bool(openings) and openings[0].window.start == window.start
        if not fits and (made := self._find_by_moves(free_time, window, now, before)) is not None:
            openings = made, *openings
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
        return self._explained(answer, question, free_time, times, moves=moves)

    def _explained(
        self, answer: Availability, question: AvailabilityQuestion, free_time: FreeTime, times: Times, *, moves: bool
    ) -> Availability:
        """Return an answer with the reasons and alternatives that are asked for, if the first window does not do."""
        window, openings = times.window, answer.openings
        if not (question.explain or question.alternatives):
            return answer
        if openings and openings[0].window.start == window.start:
            if not (question.alternatives and openings[0].refusals):
                return answer
            # There is room, but not for this project: there may be at another time, or for less.
            first = self._find_granted(question, free_time, times, openings) if moves else None
            return replace(answer, alternatives=free_time.alternatives(window, (), first))
        reasons = free_time.reasons(window, times.latest)
        answer = replace(answer, reasons=free_time.of_request(reasons) if question.explain else ())
        if not question.alternatives:
            return answer
        first = self._find_granted(question, free_time, times, openings) if moves else None
        return replace(answer, alternatives=free_time.alternatives(window, reasons, first))

    def _find_by_moves(
        self, free_time: FreeTime, window: Window, now: datetime, before: Window | None
    ) -> FreeWindow | None:
        """Return the window as it would be booked if others get other hosts; None if that is not found."""
        prolongs = before is None or (window.covers(before) and window.end > before.end)
        if not (self._moves_others and prolongs and has_candidates(free_time.searches)):
            return None
        found = find_moves(self._runtime, free_time.lease, window, free_time.requests, now)
        return describe_moved(free_time, window, found) if isinstance(found, RepackedPlan) else None

    def _find_granted(
        self, question: AvailabilityQuestion, free_time: FreeTime, times: Times, openings: Sequence[FreeWindow]
    ) -> FreeWindow | None:
        """Return the first opening within the limits of the project; of fixed dates also at another time."""
        length, last = times.window.duration, times.last_start
        if question.duration is None:
            last = times.latest - length
            found = free_time.find(times.window, last, times.latest, 1).openings
            openings = [free_time.free_window(opening, length) for opening in found]
        return free_time.find_granted(openings, length, last, times.latest)

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
