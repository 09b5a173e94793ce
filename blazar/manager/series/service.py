# SPDX-License-Identifier: Apache-2.0
"""Series of leases: the operations of users on them."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from blazar.calendar.series import PlannedOccurrence
from blazar.context import scope
from blazar.manager.billing.booked_prices import BookedPrices
from blazar.manager.billing.quoting import Quoting
from blazar.manager.changing.new_leases import NewLease, NewLeases
from blazar.manager.common.request_keys import do_once, find_record
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases.dates import read_quote
from blazar.manager.requests.price_limits import PriceLimits
from blazar.manager.search.sought_leases import Deadline
from blazar.manager.series.changes import SeriesChanger
from blazar.manager.series.occurrences import (
    CHUNK,
    PlannedSeries,
    check_fits,
    copy_for_occurrence,
    find_first_to_come,
    is_limit,
    mark_unfit,
    offer_part,
    seal_template,
    unfit_sentence,
)
from blazar.manager.series.plans import SeriesCheck
from blazar.manager.series.work import SeriesWork
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, ClaimLost, InvalidInput, NotEnoughResources, UsageDenied
from blazar.model.billing.prices import LeasePrice
from blazar.model.leases.reminders import check_recurring
from blazar.model.leases.requests import Actor, IdempotencyKey
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit, check_series
from blazar.model.series.details import (
    OccurrenceState,
    Series,
    SeriesDetails,
    SeriesOccurrence,
    SeriesOwner,
    SeriesPage,
    SeriesQuestion,
    SeriesRequest,
    SeriesStatus,
)
from blazar.model.series.recurrence import Occurrence

LOG = logging.getLogger(__name__)

_Copies = Sequence[tuple[PlannedOccurrence, NewLease]]
"""Occurrences that fit, each with its lease."""

_NOTHING: Mapping[datetime, str] = {}


class SeriesService:
    """Answers the calls about series."""

    def __init__(self, runtime: Runtime, work: SeriesWork, changer: SeriesChanger) -> None:
        self._runtime = runtime
        self._work = work
        self._changer = changer
        self._new_leases = NewLeases(runtime)
        self._adding = threading.Lock()
        self._prices, self._quoting = BookedPrices(runtime), Quoting(runtime)
        self._limits = PriceLimits(self._quoting)

    def page(self, question: SeriesQuestion) -> SeriesPage:
        """Return a page of the series that are not deleted; InvalidInput."""
        return self._runtime.store.series.page(question)

    def owner(self, series_id: str) -> SeriesOwner:
        """Return whose a series is, deleted ones too; NotFound."""
        return self._runtime.store.series.owner(series_id)

    def one(self, series_id: str) -> SeriesDetails:
        """Return a series with its occurrences, deleted ones too; NotFound."""
        return self._prices.add_to_series(self._runtime.store.series.one(series_id, self._runtime.clock.now()))

    def replay(self, key: IdempotencyKey) -> SeriesDetails | None:
        """Return the series that was made with a key, as it is now; None if there is none. Conflict."""
        record = find_record(self._runtime, key, "series")
        return None if record is None else replace(self.one(record.lease_id), replayed=True)

    def create(self, request: SeriesRequest) -> SeriesDetails:
        """Book a series, once for each key; for a dry run return which occurrences fit, and why the others do not.

        With many occurrences it is returned CREATING, and booked in the background. InvalidInput, NotEnoughResources,
        UsageDenied, OthersWait, CloudError: then nothing is left.
        """
        key = None if request.dry_run else request.key
        return do_once(key, self.replay, lambda: self._create(request))

    def _create(self, request: SeriesRequest) -> SeriesDetails:
        runtime = self._runtime
        now, limits = runtime.clock.now(), runtime.settings.series
        every = check_series(request.recurrence, request.fit, limits, now)
        check_recurring(request.template.reminders, [occurrence.window for occurrence in every])
        held_at = lapsed_at = None
        if (quoted_at := request.template.quoted_at) is not None:
            held_at, lapsed_at = read_quote(quoted_at, now, runtime.settings.quote_holds)
        ends = request.recurrence.rule.has_end
        series = Series(
            id=str(uuid.uuid4()),
            name=request.name,
            user_id=request.user_id,
            project_id=request.project_id,
            recurrence=request.recurrence,
            template=replace(request.template, quoted_at=held_at),
            fit=request.fit,
            status=SeriesStatus.CREATING,
            created_at=now,
            booked_until=None if ends else to_second(now) + limits.horizon,
        )
        found = self._planned(series, every, is_dry=request.dry_run, lapsed_at=lapsed_at)
        series = replace(series, template=seal_template(runtime, series.template))
        if request.dry_run:
            return SeriesDetails(series, found)
        check_fits(series, found)
        try:
            return self._begun(series, found, request.key)
        except UsageDenied as error:
            self._offer_part(error, series, every)
            raise

    def _offer_part(self, error: UsageDenied, series: Series, every: Sequence[Occurrence]) -> None:
        """Say how much of a series that was refused as a whole would be granted."""
        if series.fit is not Fit.ALL or not is_limit(error) or not self._runtime.settings.explain_refusals:
            return
        try:
            found = self._planned(series, every, is_dry=True)
        except BlazarError as trouble:
            # The refusal stands as it is.
            LOG.debug("What would be granted of series %s is not known: %s", series.id, trouble.message)
            return
        denied = {one.recurrence_id for one in found if one.state is OccurrenceState.UNFIT}
        if denied:
            offer_part(error, [one.recurrence_id for one in found], denied, as_many=True)

    def change(self, series_id: str, change: SeriesChange) -> SeriesDetails:
        """Change a series from one of its occurrences on, all or nothing; return the one that goes on.

        That is another one if occurrences before it stay as they are. For a dry run return what it would be.
        """
        return self._prices.add_to_series(self._changer.change(series_id, change))

    def delete(self, series_id: str, *, ends_running: bool = False) -> None:
        """Delete a series with its leases that have not begun; ``ends_running``: also those that have. NotFound.

        What takes longer is done in the background, while the series is DELETING.
        """
        runtime = self._runtime
        claim = runtime.claims.new()
        until = runtime.claims.begin(claim)
        series = runtime.store.series.begin_deletion(
            series_id, token=claim.token, due_at=until, ends_running=ends_running, now=runtime.clock.now()
        )
        if series.status is SeriesStatus.DELETED:
            if ends_running:
                self._work.end_running(series_id)
            return
        if len(runtime.store.series.leases(series_id)) > CHUNK:
            now = runtime.clock.now()
            # If another request to delete it was faster, that one has the claim.
            with suppress(ClaimLost):
                runtime.store.series_work.release(series_id, claim.token, due_at=now, now=now)
            self._work.wake()
            return
        with scope(limit=runtime.settings.request_limit):
            self._work.work(series, claim)

    def _begun(self, series: Series, planned: Sequence[SeriesOccurrence], key: IdempotencyKey | None) -> SeriesDetails:
        """Record a series, and book it now if it has few occurrences, else in the background."""
        runtime = self._runtime
        most = runtime.most_series_of(series.project_id)
        claim = runtime.claims.new()
        until = runtime.claims.begin(claim)
        now_or_later = len(planned) <= CHUNK
        # One after the other, so that simultaneous requests do not pass the limit together.
        with self._adding:
            runtime.store.series.add(
                series,
                planned,
                token=claim.token if now_or_later else None,
                due_at=until if now_or_later else runtime.clock.now(),
                key=key,
                most=most,
            )
        if not now_or_later:
            self._work.wake()
            return self.one(series.id)
        with scope(limit=runtime.settings.request_limit):
            error = self._work.work(series, claim)
        made = self.one(series.id)
        if error is None and made.series.status is SeriesStatus.ENDED:
            # Since it was planned, all that fitted was taken, or enforcement grants none of it.
            first = next(occurrence for occurrence in made.occurrences if occurrence.state is OccurrenceState.UNFIT)
            error = NotEnoughResources(unfit_sentence(first.recurrence_id, first.reason or ""))
        if error is not None:
            runtime.store.series.forget(series.id)
            raise error
        return made

    def _planned(
        self, series: Series, every: Sequence[Occurrence], *, is_dry: bool, lapsed_at: datetime | None = None
    ) -> tuple[SeriesOccurrence, ...]:
        """Return the occurrences of a new series: those that fit as planned, the others as unfit.

        Conflict if one costs more than by a quote of ``lapsed_at``, which does not hold any more.
        """
        runtime, now = self._runtime, self._runtime.clock.now()
        listed = [SeriesOccurrence(occurrence.recurrence_id, occurrence.start, occurrence.end) for occurrence in every]
        window = find_first_to_come(listed, now)
        if window is None:
            raise InvalidInput("start: all occurrences have begun already; choose a later start", at="/start")
        new = self._new_leases.make(series.request(window), runtime.claims.new())
        deadline = Deadline(runtime.clock, runtime.settings.search_limit)
        found = self._work.planner.plan(
            new, every, series.fit, placements=runtime.settings.search_placements, check=deadline.check
        )
        copies = self._copy_all(series, found) if is_dry or lapsed_at is not None else ()
        for planned, copy in copies if lapsed_at is not None else ():
            self._limits.check(copy.lease, found.allocations(copy, planned), None, lapsed_at=lapsed_at)
        if not is_dry:
            return self._describe(found, listed)
        prices = self._quote_all(found, copies)
        priced = [replace(one, price=prices.get(one.recurrence_id)) for one in listed]
        return self._describe(found, priced, self._denied(series, found, copies))

    def _describe(
        self, found: PlannedSeries, listed: Sequence[SeriesOccurrence], denied: Mapping[datetime, str] = _NOTHING
    ) -> tuple[SeriesOccurrence, ...]:
        """Return occurrences, those that do not fit or are denied as unfit."""
        return tuple(
            unfit if (unfit := _describe_unfit(planned_occurrence, denied)) is not None else planned
            for planned_occurrence, planned in zip(found.plan.occurrences, listed, strict=True)
        )

    def _copy_all(self, series: Series, found: PlannedSeries) -> _Copies:
        """Return the lease of each occurrence that fits."""
        return [
            (planned, copy_for_occurrence(self._runtime, series, found.new, planned.occurrence, window))
            for planned in found.plan.occurrences
            if planned.fits and (window := planned.occurrence.window) is not None
        ]

    def _quote_all(self, found: PlannedSeries, copies: _Copies) -> Mapping[datetime, LeasePrice | None]:
        """Return what the lease of each occurrence would cost."""
        return {
            planned.occurrence.recurrence_id: self._quoting.quote_new(copy.lease, found.allocations(copy, planned))
            for planned, copy in copies
        }

    def _denied(self, series: Series, found: PlannedSeries, copies: _Copies) -> dict[datetime, str]:
        """Return what enforcement objects to, by occurrence: a booking asks it for each chunk."""
        wanted = [(copy.lease, found.allocations(copy, planned)) for planned, copy in copies]
        check = SeriesCheck(self._runtime, series.template.max_price)
        objections = check.objections(Actor(series.user_id, series.project_id), wanted, found.so_far)
        return {
            planned.occurrence.recurrence_id: error.public or error.message
            for planned, copy in copies
            if (error := objections.get(copy.lease.id)) is not None
        }


def _describe_unfit(planned: PlannedOccurrence, denied: Mapping[datetime, str]) -> SeriesOccurrence | None:
    """Return an occurrence as unfit, if it is."""
    if not planned.fits:
        return replace(mark_unfit(planned), opening=planned.opening)
    why = denied.get(planned.occurrence.recurrence_id)
    return None if why is None else mark_unfit(planned, why)
