# SPDX-License-Identifier: Apache-2.0
"""What would be granted in place of a change of a lease that is refused: each offer is tried, and nothing is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from blazar.manager.billing.refusals import DearChange
from blazar.model.base.errors import BlazarError
from blazar.model.base.moments import Duration
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.charges import window_of_month
from blazar.model.billing.prices import LeasePrice
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange
from blazar.model.search.availability import Alternative, Availability, AvailabilityQuestion, Change

MOST_MONTHS = 2
"""Months in which a time is looked for at which a project can pay for a change."""

TryChange = Callable[[str, LeaseChange], LeasePrice | None]
"""Returns what a lease would cost after a change, which is not made; a BlazarError if our own limits deny it."""

Ask = Callable[[AvailabilityQuestion], Availability | None]
"""Answers a question; None if that is not possible."""


@dataclass(frozen=True, slots=True)
class ChangeOffers:
    """Seeks what is near to a change of a lease, fits, and is within the limits of its project."""

    lease_id: str
    change: LeaseChange
    try_change: TryChange

    @property
    def question(self) -> AvailabilityQuestion:
        """Return the question whether the change fits."""
        change = self.change
        return AvailabilityQuestion(
            change.asked_by or Actor("", ""),
            lease_id=self.lease_id,
            changes=change.reservations,
            start=change.start,
            end=change.end,
            limit=1,
            names=change.names,
        )

    def list_granted(self, near: Iterable[Alternative]) -> Iterator[Alternative]:
        """Yield those that are granted, with what each costs; without a part of a requirement nothing is tried."""
        for offer in near:
            if offer.change is Change.REQUIREMENT:
                yield offer
                continue
            try:
                price = self.try_change(self.lease_id, self._take(offer))
            except BlazarError:
                continue
            yield replace(offer, price=price)

    def list_affordable(self, error: DearChange, ask: Ask) -> Iterator[Alternative]:
        """Yield what is granted of a change that the project cannot pay for: at another time, fewer, or shorter."""
        later_times = (Alternative(Change.TIME, window) for window in self._list_later(error, ask))
        if (moved := next(self.list_granted(later_times), None)) is not None:
            yield moved
        yield from self.list_granted(error.near)

    def _list_later(self, error: DearChange, ask: Ask) -> Iterator[Window]:
        """Yield the first free time of each of the months after the one that the project cannot pay for."""
        month, length = error.growth.excess.month, Duration(seconds=int(error.wanted.duration.total_seconds()))
        for _ in range(MOST_MONTHS):
            begin = window_of_month(month).end
            month = begin.date()
            found = ask(replace(self.question, start=None, end=None, duration=length, earliest=begin))
            if found is None:
                return
            yield from (opening.window for opening in found.openings)

    def _take(self, offer: Alternative) -> LeaseChange:
        """Return the change that an offer is."""
        counts: Mapping[str, Mapping[str, int | str]] = {str(one["id"]): one for one in offer.counts or ()}
        asked = {one.id: one for one in self.change.reservations}
        asked |= {id_: ReservationChange(id_, {}) for id_ in counts.keys() - asked.keys()}
        # What identifies a reservation is no parameter of it.
        fewer = {id_: {name: count for name, count in one.items() if name != "id"} for id_, one in counts.items()}
        reservations = (replace(one, parameters={**one.parameters, **fewer.get(one.id, {})}) for one in asked.values())
        taken = replace(self.change, reservations=tuple(reservations), exact=True)
        match offer.change:
            case Change.TIME:
                return replace(taken, start=offer.window.start, end=offer.window.end)
            case Change.DURATION:
                return replace(taken, end=offer.window.end)
        return taken
