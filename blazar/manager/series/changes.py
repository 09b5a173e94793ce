# SPDX-License-Identifier: Apache-2.0
"""Changes of series from one of their occurrences on.

What is to come is planned again, as if the leases that change had nothing. Then all of it is written in one
transaction: leases whose occurrence stays on its day get other dates, the others are deleted, and new ones are booked.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime

from blazar.context import scope
from blazar.enforcement import Occasion
from blazar.manager.billing.booked_prices import BookedPrices
from blazar.manager.booking.booking import Booker, PlacementRequest, Proposal
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.changing.new_leases import NewLease, NewLeases
from blazar.manager.common.notifications import UPDATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import dates, lifecycle
from blazar.manager.series.change_attempts import (
    ChangeAttempt,
    SeriesAfter,
    allocate,
    find_moved,
    has_shape,
    list_occurrences,
    select_granted,
)
from blazar.manager.series.occurrences import (
    check_fits,
    copy_for_occurrence,
    find_first_changed,
    find_first_to_come,
    is_limit,
    offer_part,
    seal_template,
    select_coming,
)
from blazar.manager.series.plans import SeriesCheck
from blazar.manager.series.work import SeriesWork
from blazar.model.base.clock import spell, to_second
from blazar.model.base.errors import Conflict, InvalidInput, StaleCalendar, StaleLease, check_revision
from blazar.model.base.window import Window
from blazar.model.billing.fits import find_most
from blazar.model.leases.lease import Event, Lease, PartOfSeries
from blazar.model.leases.limits import GrowthDenied
from blazar.model.leases.reminders import check_recurring, skip_past
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.series.changes import (
    SeriesChange,
    cut_before,
    is_as_before,
    point_errors_at_changed_field,
    resume_from,
)
from blazar.model.series.checks import Fit, check_series
from blazar.model.series.details import OccurrenceState, Series, SeriesDetails, SeriesOccurrence, SeriesStatus, Template
from blazar.model.series.recurrence import Occurrence
from blazar.store.booking.commit import Commit, LeaseWrite, limit_prices
from blazar.store.series.series import SeriesExchange


class _AsBefore(Exception):
    """A series has all that a change gives it already."""

    def __init__(self, found: SeriesDetails) -> None:
        super().__init__("the series is as before")
        self.found = found


class SeriesChanger:
    """Changes series, all or nothing."""

    def __init__(self, runtime: Runtime, booker: Booker, work: SeriesWork) -> None:
        self._runtime = runtime
        self._booker = booker
        self._work = work
        self._new_leases = NewLeases(runtime)
        self._prices = BookedPrices(runtime)

    def change(self, series_id: str, change: SeriesChange) -> SeriesDetails:
        """Change a series, and return the one that goes on; for a dry run return what it would be.

        NotFound, InvalidInput, Conflict, NotEnoughResources, UsageDenied, Contention, PreconditionFailed.
        """
        self._check_nobody_listens()
        judged: list[ChangeAttempt] = []
        try:
            return self._change(series_id, change, judged)
        except GrowthDenied as error:
            self._offer_affordable(error, judged)
            raise

    def _change(self, series_id: str, change: SeriesChange, judged: list[ChangeAttempt]) -> SeriesDetails:
        """Change a series; ``judged`` gets what enforcement was asked about."""
        new_id = str(uuid.uuid4())

        def propose(_: int) -> Proposal[ChangeAttempt]:
            found = self._planned(self._wanted(series_id, new_id, change))
            return Proposal(found, Commit((), at=self._runtime.clock.now()))

        def judge(proposal: Proposal[ChangeAttempt]) -> ChangeAttempt:
            judged.append(self._judge(proposal.found, change))
            return judged[-1]

        def try_change(proposal: Proposal[ChangeAttempt]) -> Proposal[ChangeAttempt]:
            return replace(proposal, found=self._price(judge(proposal)))

        def check(proposal: Proposal[ChangeAttempt]) -> Proposal[ChangeAttempt]:
            attempt = judge(proposal)
            check_fits(attempt.wanted.new, list_occurrences(attempt))
            return Proposal(attempt, self._commit(attempt))

        def write(proposal: Proposal[ChangeAttempt], commit: Commit) -> Sequence[Lease]:
            return self._runtime.store.series.exchange(self._exchange(proposal.found), commit)

        with scope(limit=self._runtime.settings.request_limit), point_errors_at_changed_field(change):
            if change.dry_run:
                attempt = self._booker.book(propose, check=try_change, dry_run=True).found
                return SeriesDetails(attempt.wanted.new, list_occurrences(attempt))
            try:
                done = self._booker.book(propose, check=check, write=write).found
            except _AsBefore as same:
                return same.found
            tell_moved(self._runtime, done.planned.moved)
            for lease in find_moved(done):
                self._runtime.notifier.notify(UPDATED, lease)
            self._runtime.signals.events_due()
            self._work.work_on(done.wanted.new.id)
        self._work.wake()
        return self._runtime.store.series.one(done.wanted.new.id, self._runtime.clock.now())

    def _check_nobody_listens(self) -> None:
        """Raise Conflict if an external service is told of each change of a lease."""
        if self._runtime.enforcement.listens_to(Occasion.UPDATED):
            raise Conflict(
                "an external service is told of each change of a lease here, and a series cannot be changed at once: "
                "change its leases one by one, or delete it and make another one"
            )

    def _wanted(self, series_id: str, new_id: str, change: SeriesChange) -> SeriesAfter:
        """Return what a change leads to. InvalidInput, Conflict, PreconditionFailed."""
        store, now = self._runtime.store.series, self._runtime.clock.now()
        found = store.one(series_id, now)
        before = found.series
        _check_changeable(before, change)
        first = find_first_changed(found.occurrences, change.since, now)
        earlier = [occurrence.recurrence_id for occurrence in found.occurrences if occurrence.recurrence_id < first]
        if earlier and change.start is not None and change.start <= max(earlier):
            before_it = spell(max(earlier))
            sentence = f"start: it is not after {before_it}, the occurrence before the change; choose a later one"
            raise InvalidInput(sentence, at="/start")
        recurrence = resume_from(before.recurrence, first, change, max(earlier, default=None))
        template = self._change_template(before.template, change)
        if not change.dry_run and template == before.template and _is_as_before(change, found):
            raise _AsBefore(found)
        limits, fit = self._runtime.settings.series, change.fit or before.fit
        every = check_series(recurrence, fit, limits, now, since=first)
        if (template.reminders, recurrence.length) != (before.template.reminders, before.recurrence.length):
            check_recurring(template.reminders, [occurrence.window for occurrence in every])
        following = replace(before, id=new_id, previous_id=before.id, created_at=now, revision=0)
        new = replace(
            following if earlier else replace(before, revision=before.revision + 1),
            name=change.name or before.name,
            recurrence=recurrence,
            template=template,
            fit=fit,
            booked_until=None if recurrence.rule.has_end else to_second(now) + limits.horizon,
            updated_at=now,
        )
        old = replace(before, recurrence=cut_before(before.recurrence, first), booked_until=None, updated_at=now)
        leases = {lease.id: lease for lease in store.leases(series_id, LeaseStatus.PENDING)}
        to_come = [occurrence for occurrence in found.occurrences if occurrence.recurrence_id >= first]
        changing, kept = _select_changing(to_come, leases, now, with_changed=change.with_changed)
        named = {occurrence.recurrence_id for occurrence in found.occurrences} | recurrence.added
        coming = select_coming(every, kept, named)
        if not coming:
            raise InvalidInput(
                f"no occurrence would be left: those from {spell(first)} on are over, deleted or changed by "
                f"themselves; delete the series{_give_back_phrase(len(changing))}, or choose a later end",
                at="/rule",
            )
        return SeriesAfter(before, old if earlier else None, new, first, changing, kept, coming)

    def _change_template(self, template: Template, change: SeriesChange) -> Template:
        if change.reservations is not None and change.asked_by is not None:
            asked = replace(template, reservations=change.reservations, operator=change.asked_by.operator)
            template = seal_template(self._runtime, asked, before=template)
        most = change.max_price if change.sets_max_price else template.max_price
        template = replace(template, max_price=most, quoted_at=None)
        template = replace(template, reminders=template.reminders if change.reminders is None else change.reminders)
        template = template if change.keep_hosts is None else replace(template, keep_hosts=change.keep_hosts)
        return replace(template, before_end=change.before_end) if change.sets_before_end else template

    def _planned(self, wanted: SeriesAfter) -> ChangeAttempt:
        """Plan what is to come, as if the leases that change had nothing. InvalidInput, OthersWait."""
        runtime, new = self._runtime, wanted.new
        listed = [SeriesOccurrence(o.recurrence_id, o.start, o.end) for o in wanted.coming]
        window = find_first_to_come(listed, runtime.clock.now())
        if window is None:
            raise InvalidInput("start: all occurrences have begun already; choose a later start", at="/start")
        asked = self._new_leases.make(new.request(window), runtime.claims.new())
        planned = self._work.planner.plan(
            asked,
            wanted.coming,
            new.fit,
            placements=runtime.settings.search_placements,
            without=frozenset(wanted.leases),
        )
        by_day: dict[date, Lease] = {}
        if new.template.reservations == wanted.before.template.reservations:
            by_day = {_day(lease): lease for lease in wanted.leases.values() if has_shape(lease, planned.new.lease)}
        copies: dict[datetime, NewLease] = {}
        for occurrence in planned.plan.occurrences:
            id_, at = occurrence.occurrence.recurrence_id, occurrence.occurrence.window
            if not occurrence.fits or at is None:
                continue
            lease = by_day.pop(id_.date(), None)
            copies[id_] = (
                copy_for_occurrence(runtime, new, planned.new, occurrence.occurrence, at)
                if lease is None
                else self._moved(wanted, planned.new, lease, occurrence.occurrence, at)
            )
        check = SeriesCheck(runtime, new.template.max_price, without=frozenset(wanted.leases))
        return ChangeAttempt(wanted, planned, copies, planned.new, check, {})

    def _moved(
        self, wanted: SeriesAfter, model: NewLease, lease: Lease, occurrence: Occurrence, window: Window
    ) -> NewLease:
        """Return a lease with other dates, and what its own reservations ask of the calendar."""
        now = self._runtime.clock.now()
        own = {one.id: other.id for one, other in zip(model.lease.reservations, lease.reservations, strict=True)}
        same = wanted.new.template.reminders == wanted.before.template.reminders
        asked = lease.reminders if same else wanted.new.template.reminders
        changes_hosts = wanted.new.template.keep_hosts is not wanted.before.template.keep_hosts
        after = replace(
            lease,
            name=wanted.new.name,
            window=window,
            events=tuple(self._events(wanted, lease, window, now)),
            reminders=skip_past(asked, window, now, lease.reminders),
            keep_hosts=wanted.new.template.keep_hosts if changes_hosts else lease.keep_hosts,
            series=PartOfSeries(wanted.new.id, occurrence.recurrence_id),
            updated_at=now,
        )
        requests = (PlacementRequest(own[r.reservation_id], r.demand) for r in model.placement_requests)
        return replace(model, lease=after, placement_requests=tuple(requests))

    def _events(self, wanted: SeriesAfter, lease: Lease, window: Window, now: datetime) -> Iterator[Event]:
        """Yield the events of a lease with other dates; its warning stays as long before the end by default."""
        series = wanted.new
        resets = series.template.before_end is None and wanted.before.template.before_end is not None
        lead = self._runtime.lead_before_end(lease)
        asked = dates.resolve_before_end(series.template.before_end, window, lead if resets else None)
        for event in lease.events:
            match event.event_type:
                case EventType.START:
                    time: datetime | None = window.start
                case EventType.END:
                    time = window.end
                case EventType.BEFORE_END:
                    time = dates.changed_before_end(event.time, lease.window, window, asked, lead)
                case _:
                    time = event.time
            yield event if time == event.time else replace(event, time=time, due_at=time, updated_at=now)
        missing = asked is not None and lease.event(EventType.BEFORE_END) is None
        if missing and (at := dates.new_before_end(window, asked, lead)) is not None:
            yield lifecycle.new_event(EventType.BEFORE_END, at, now, due_at=at)

    def _judge(self, attempt: ChangeAttempt, change: SeriesChange) -> ChangeAttempt:
        """Return an attempt with what enforcement objects to. UsageDenied if all or nothing is wanted."""
        series = attempt.wanted.new
        wanted = [(copy.lease, allocate(attempt, id_)) for id_, copy in attempt.copies.items()]
        actor = change.asked_by or Actor(series.user_id, series.project_id)
        count = len(attempt.wanted.leases)
        leases, reservations = attempt.planned.so_far
        of_them = sum(len(lease.reservations) for lease in attempt.wanted.leases.values())
        objections = attempt.check.objections(actor, wanted, (leases - count, reservations - of_them))
        if series.fit is Fit.ALL and objections:
            error = next(iter(objections.values()))
            if is_limit(error) and self._runtime.settings.explain_refusals:
                denied = {id_ for id_, copy in attempt.copies.items() if copy.lease.id in objections}
                offer_part(error, list(attempt.copies), denied, as_many=True)
            raise error
        return replace(attempt, objections=objections)

    def _offer_affordable(self, error: GrowthDenied, judged: Sequence[ChangeAttempt]) -> None:
        """Say for how many of the occurrences of a changed series its project can pay, the first ones."""
        if not judged or not self._runtime.settings.explain_refusals:
            return
        attempt, ids = judged[-1], list(select_granted(judged[-1]))

        def is_low(count: int) -> bool:
            first = replace(attempt, copies={id_: attempt.copies[id_] for id_ in ids[:count]})
            try:
                self._prices.price_leases(self._commit(first))
            except GrowthDenied:
                return False
            return True

        with suppress(StaleLease, StaleCalendar):
            # If they are others by now, the refusal stands as it is.
            offer_part(error, ids, ids[find_most(len(ids), is_low) :], as_many=False)

    def _price(self, attempt: ChangeAttempt) -> ChangeAttempt:
        """Return an attempt with what its leases would cost. UsageDenied if that is more than the project may spend."""
        is_refused = attempt.wanted.new.fit is Fit.ALL and not all(o.fits for o in attempt.planned.plan.occurrences)
        if is_refused:
            return attempt
        return replace(attempt, prices=self._prices.price_leases(self._commit(attempt)))

    def _commit(self, attempt: ChangeAttempt) -> Commit:
        """Return what becomes of the leases: those that stay get other dates, the rest is deleted or made."""
        wanted, now = attempt.wanted, self._runtime.clock.now()
        stay = {
            copy.lease.id: LeaseWrite(wanted.leases.get(copy.lease.id), copy.lease, allocate(attempt, id_))
            for id_, copy in select_granted(attempt).items()
        }
        gone = [
            LeaseWrite(lease, lifecycle.begin_deletion(lease, now=now))
            for id_, lease in wanted.leases.items()
            if id_ not in stay
        ]
        taken = {a.resource_id for write in (*stay.values(), *attempt.planned.moved) for a in write.allocations}
        new = [write for write in stay.values() if write.before is None]
        return Commit(
            [*new, *attempt.planned.moved],
            at=now,
            redated=[*(stay[id_] for id_ in wanted.leases if id_ in stay), *gone],
            generations={id_: attempt.planned.generations[id_] for id_ in taken},
            uses=attempt.check.uses,
            most=limit_prices([write.after.id for write in new], attempt.check.max_price),
        )

    def _exchange(self, attempt: ChangeAttempt) -> SeriesExchange:
        wanted = attempt.wanted
        booked = {id_: copy.lease for id_, copy in select_granted(attempt).items()}
        listed = [
            replace(occurrence, state=OccurrenceState.BOOKED, lease_id=booked[occurrence.recurrence_id].id)
            if occurrence.recurrence_id in booked
            else occurrence
            for occurrence in list_occurrences(attempt)
            if occurrence.recurrence_id not in wanted.kept
        ]
        return SeriesExchange(
            before=wanted.before,
            old=wanted.old,
            new=wanted.new,
            first=wanted.first,
            kept=wanted.kept.keys(),
            occurrences=listed,
            most=self._runtime.most_series_of(wanted.new.project_id),
        )


def _check_changeable(before: Series, change: SeriesChange) -> None:
    check_revision(before.revision, change.revisions, f"the series has changed: its revision is {before.revision}")
    if before.status is not SeriesStatus.ACTIVE:
        raise Conflict(f"the series is {before.status}, and only one that is ACTIVE can be changed")


def _select_changing(
    to_come: Iterable[SeriesOccurrence], leases: Mapping[str, Lease], now: datetime, *, with_changed: bool
) -> tuple[Mapping[str, Lease], Mapping[datetime, SeriesOccurrence]]:
    """Return the leases that a change of a series changes, by id, and the occurrences that stay as they are."""
    changing: dict[str, Lease] = {}
    kept: dict[datetime, SeriesOccurrence] = {}
    for occurrence in to_come:
        if occurrence.state is OccurrenceState.UNFIT:
            continue
        lease = leases.get(occurrence.lease_id or "")
        if lease is None or lease.window.start <= now or (occurrence.changed and not with_changed):
            kept[occurrence.recurrence_id] = occurrence
        else:
            changing[lease.id] = lease
    return changing, kept


def _is_as_before(change: SeriesChange, found: SeriesDetails) -> bool:
    """Tell whether a change leaves a series as it is. What did not fit is tried again by any change."""
    series = found.series
    return is_as_before(change, series.recurrence, series.fit, series.name) and not any(
        occurrence.state is OccurrenceState.UNFIT for occurrence in found.occurrences
    )


def _give_back_phrase(count: int) -> str:
    return f" to give back the {count} that {'is' if count == 1 else 'are'} to come" if count else ""


def _day(lease: Lease) -> date:
    assert lease.series is not None
    return lease.series.recurrence_id.date()
