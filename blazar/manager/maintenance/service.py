# SPDX-License-Identifier: Apache-2.0
"""The requests of operators about maintenance windows: their impact, and what starts, changes and ends them."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from blazar.manager.common.runtime import Runtime
from blazar.manager.maintenance.migration import find_pace
from blazar.manager.maintenance.plans import HostChoice, MaintenanceDraft, MaintenancePlanner
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import Conflict, Contention, InvalidInput, StaleCalendar, WrongState, check_revision
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.base.window import Window
from blazar.model.maintenance.windows import (
    OPEN,
    ActivePolicy,
    Answer,
    Maintenance,
    MaintenanceChange,
    MaintenancePage,
    MaintenanceQuestion,
    MaintenanceRequest,
    MaintenanceStatus,
    impact_json,
)
from blazar.model.resources.requirements import Anything, parse_requirement, property_keys
from blazar.model.resources.resource import HOST

T = TypeVar("T")
LONGEST = timedelta(days=366)
Status = MaintenanceStatus


class MaintenanceService:
    """Answers requests about maintenance windows; ``wake`` has the work on them begin."""

    def __init__(
        self, runtime: Runtime, *, wake: Callable[[], None], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._runtime = runtime
        self._store = runtime.store.maintenances
        self._planner = MaintenancePlanner(runtime)
        self._wake = wake
        self._sleep = sleep

    def page(self, question: MaintenanceQuestion) -> MaintenancePage:
        """Return a page of maintenance windows; InvalidInput."""
        return self._store.page(question)

    def one(self, maintenance_id: str) -> Maintenance:
        """Return a maintenance window with its leases; NotFound."""
        return self._store.one(maintenance_id)

    def create(self, request: MaintenanceRequest, *, dry_run: bool = False) -> Answer:
        """Return the impact of a window, and open it unless this is a dry run. InvalidInput, Conflict, Contention."""
        hosts = self._hosts(request)
        if request.active is ActivePolicy.MIGRATE and find_pace(self._runtime) is None:
            raise InvalidInput(
                "active is migrate, which is not done where there are several regions or no hosts can be reserved; "
                "give list, and move servers yourself",
                at="/active",
            )

        def attempt() -> Answer:
            now = self._runtime.clock.now()
            window = _read_window(request.start, request.end, now)
            draft = self._planner.draft(HOST, hosts, window, request.pending, now=now, active=request.active)
            _check_impact(draft, request.impact_id)
            if dry_run:
                return Answer(draft.impact)
            made = Maintenance(
                str(uuid.uuid4()),
                request.name,
                request.reason,
                window,
                Status.PLANNED,
                (),
                request.requirement,
                request.pending,
                request.disable_service,
                0,
                now,
                active=request.active,
            )
            self._store.add(made, HOST, draft.hosts, draft.plans, at=now)
            return Answer(draft.impact, self._store.one(made.id))

        return self._done(attempt, dry_run=dry_run)

    def change(self, maintenance_id: str, change: MaintenanceChange, *, dry_run: bool = False) -> Answer:
        """Return the impact of another time or name of a window, and change it unless this is a dry run.

        NotFound, InvalidInput, PreconditionFailed; WrongState if it is over, or has begun and would begin at another
        time.
        """

        def attempt() -> Answer:
            now = self._runtime.clock.now()
            before = self._store.one(maintenance_id)
            _check_revision(before, change.revisions)
            if before.status not in OPEN:
                raise WrongState(f"maintenance window {before.id} is {before.status}; what is over does not change")
            begun = before.status is not Status.PLANNED
            if begun and change.start is not None:
                raise WrongState(
                    f"maintenance window {before.id} is {before.status}: its start has passed; leave start_date out",
                    at="/start_date",
                )
            window = _read_changed_window(before, change, now)
            kind, ids = self._store.kind_of(before.id), frozenset(self._store.resource_ids(before.id))
            hosts = HostChoice(calendar_ids=ids)
            # A new name alone needs no look at servers.
            active = before.active if window != before.window or dry_run or change.impact_id else ActivePolicy.LIST
            draft = self._planner.draft(kind, hosts, window, before.pending, now=now, active=active, besides=before.id)
            _check_impact(draft, change.impact_id)
            if dry_run:
                return Answer(draft.impact)
            after = replace(before, name=change.name or before.name, window=window)
            if after == before:
                return Answer(draft.impact, before)
            plans = draft.plans if window != before.window else None
            self._store.change(before, after, kind, draft.hosts, plans, at=now)
            return Answer(draft.impact, self._store.one(before.id))

        return self._done(attempt, dry_run=dry_run)

    def end(self, maintenance_id: str, revisions: tuple[int, ...] | None = None) -> Maintenance:
        """End a window now that has begun; its hosts return. NotFound, PreconditionFailed; WrongState."""

        def attempt() -> Maintenance:
            before = self._store.one(maintenance_id)
            _check_revision(before, revisions)
            if before.status in (Status.ENDING, Status.DONE):
                return before
            if before.status not in (Status.STARTING, Status.ACTIVE):
                hint = "delete it instead" if before.status is Status.PLANNED else "there is nothing to end"
                raise WrongState(f"maintenance window {before.id} is {before.status}; {hint}")
            now = to_second(self._runtime.clock.now())
            end = min(max(now, before.window.start + timedelta(seconds=1)), before.window.end)
            after = replace(before, status=Status.ENDING, window=Window(before.window.start, end))
            self._write(before, after)
            return self._store.one(before.id)

        return self._done(attempt)

    def delete(self, maintenance_id: str, revisions: tuple[int, ...] | None = None) -> None:
        """Cancel a window that has not begun; leases that were moved stay where they are. NotFound, WrongState."""

        def attempt() -> None:
            before = self._store.one(maintenance_id)
            _check_revision(before, revisions)
            if before.status is Status.CANCELLED:
                return
            if before.status is not Status.PLANNED:
                hint = "end it instead" if before.status in OPEN else "what is over is kept on record"
                raise WrongState(f"maintenance window {before.id} is {before.status}; {hint}")
            self._write(before, replace(before, status=Status.CANCELLED))

        self._done(attempt)

    def _write(self, before: Maintenance, after: Maintenance) -> None:
        kind = self._store.kind_of(before.id)
        self._store.change(before, after, kind, {}, None, at=self._runtime.clock.now())

    def _done(self, attempt: Callable[[], T], *, dry_run: bool = False) -> T:
        """Make attempts until one loses no race; Contention when they are spent."""
        for number in range(self._runtime.settings.booking_attempts):
            try:
                found = attempt()
            except StaleCalendar:
                # Full jitter: requests that collided once should not collide again.
                self._sleep(random.uniform(0, min(0.5, 0.01 * 2**number)))
                continue
            if not dry_run:
                self._wake()
            return found
        raise Contention("leases on these hosts changed at every attempt; please retry")

    def _hosts(self, request: MaintenanceRequest) -> HostChoice:
        if request.requirement is None:
            return HostChoice(tuple(request.hosts))
        wanted = parse_requirement(request.requirement, field="requirement")
        if wanted == Anything():
            raise InvalidInput(
                'requirement is empty; give one that names the hosts, such as ["==", "$rack", "r1"], or hosts',
                at="/requirement",
            )
        unknown = sorted(property_keys(wanted) - self._runtime.store.resources.catalog(HOST).property_names())
        if unknown:
            raise InvalidInput(
                f"requirement names {unknown[0][:80]!r}, which no host has as a property",
                code="unknown_property",
                at="/requirement",
            )
        return HostChoice(requirement=wanted)


def _check_impact(draft: MaintenanceDraft, wanted: str | None) -> None:
    """Raise Conflict, with the impact of now, if another one was shown."""
    if wanted is not None and wanted != draft.impact.id:
        raise Conflict(
            "the impact of the maintenance window is another one by now; look at it, and send its id as impact_id, "
            "with the dates that it has: a start of now is another one each second",
            code="impact_changed",
            data={"impact": impact_json(draft.impact)},
        )


def _check_revision(maintenance: Maintenance, wanted: tuple[int, ...] | None) -> None:
    check_revision(maintenance.revision, wanted, "the maintenance window has changed")


def _read_window(start: Moment, end: datetime | Duration, now: datetime) -> Window:
    """Return the window of a request. InvalidInput names the field."""
    second = to_second(now)
    begin = second if start is NOW else to_second(start)
    assert isinstance(begin, datetime)
    if begin < second:
        raise InvalidInput(
            f"start_date is {zulu(begin)}, which has passed; give a later date, or now",
            code="date_in_past",
            at="/start_date",
            data={"now": zulu(second)},
        )
    return _read_end(begin, end, second)


def _read_changed_window(before: Maintenance, change: MaintenanceChange, now: datetime) -> Window:
    second = to_second(now)
    if change.start is None and change.end is None:
        return before.window
    if change.start is not None:
        return _read_window(change.start, change.end or before.window.end, now)
    assert change.end is not None
    return _read_end(before.window.start, change.end, second)


def _read_end(begin: datetime, end: datetime | Duration, now: datetime) -> Window:
    try:
        until = to_second(end.after(begin) if isinstance(end, Duration) else end)
    except (OverflowError, ValueError):
        raise InvalidInput("end_date is beyond the last date", code="invalid_window", at="/end_date") from None
    if until <= max(begin, now):
        what = "start_date" if begin >= now else "now"
        raise InvalidInput(
            f"end_date is {zulu(until)}, which is not after {what}, {zulu(max(begin, now))}; give a later one",
            code="invalid_window",
            at="/end_date",
        )
    if until - begin > LONGEST:
        raise InvalidInput(
            f"end_date is more than {LONGEST.days} days after the start; give an earlier one, or disable the hosts",
            code="out_of_bounds",
            at="/end_date",
            data={"maximum": int(LONGEST.total_seconds())},
        )
    return Window(begin, until)
