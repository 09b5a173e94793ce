# SPDX-License-Identifier: Apache-2.0
"""What a change of a series leads to, as it is planned at one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from blazar.manager.changing.new_leases import NewLease
from blazar.manager.series.occurrences import PlannedSeries, mark_unfit
from blazar.manager.series.plans import SeriesCheck
from blazar.model.base.errors import BlazarError
from blazar.model.base.values import dataclass, field, replace
from blazar.model.billing.prices import LeasePrice
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.series.details import Series, SeriesOccurrence
from blazar.model.series.recurrence import Occurrence


@dataclass(frozen=True, slots=True)
class SeriesAfter:
    """What a change leads to: the series before it, what is left of that, and the one from ``first`` on.

    ``leases`` are those that change, ``kept`` what stays as it is, and ``coming`` what is planned.
    """

    before: Series
    old: Series | None
    new: Series
    first: datetime
    leases: Mapping[str, Lease]
    kept: Mapping[datetime, SeriesOccurrence]
    coming: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class ChangeAttempt:
    """A plan of what is wanted, with the lease of each occurrence that fits, and what enforcement objects to.

    ``prices`` are what leases would cost, by id, if somebody wants to know.
    """

    wanted: SeriesAfter
    planned: PlannedSeries
    copies: Mapping[datetime, NewLease]
    model: NewLease
    check: SeriesCheck
    objections: Mapping[str, BlazarError]
    prices: Mapping[str, LeasePrice] = field(default_factory=dict)


def select_granted(attempt: ChangeAttempt) -> Mapping[datetime, NewLease]:
    """Return the leases to which nobody objects, by the recurrence id of their occurrence."""
    return {id_: copy for id_, copy in attempt.copies.items() if copy.lease.id not in attempt.objections}


def find_moved(attempt: ChangeAttempt) -> list[Lease]:
    """Return the leases that have got other dates, as saved."""
    leases = {copy.lease.id: copy.lease for copy in select_granted(attempt).values()}
    return [
        replace(leases[id_], revision=lease.revision + 1)
        for id_, lease in attempt.wanted.leases.items()
        if id_ in leases
    ]


def allocate(attempt: ChangeAttempt, recurrence_id: datetime) -> tuple[Allocation, ...]:
    """Return what the lease of an occurrence gets."""
    planned = next(e for e in attempt.planned.plan.occurrences if e.occurrence.recurrence_id == recurrence_id)
    return attempt.planned.allocations(attempt.copies[recurrence_id], planned)


def list_occurrences(attempt: ChangeAttempt) -> tuple[SeriesOccurrence, ...]:
    """Return the occurrences from the change on: those that stay as they are, and what becomes of the others."""
    found = list(attempt.wanted.kept.values())
    for planned in attempt.planned.plan.occurrences:
        id_ = planned.occurrence.recurrence_id
        copy = attempt.copies.get(id_)
        error = None if copy is None else attempt.objections.get(copy.lease.id)
        if copy is None:
            found.append(replace(mark_unfit(planned), opening=planned.opening))
        elif error is not None:
            found.append(mark_unfit(planned, error.public or error.message))
        else:
            lease_id = copy.lease.id if copy.lease.id in attempt.wanted.leases else None
            window, price = copy.lease.window, attempt.prices.get(copy.lease.id)
            found.append(SeriesOccurrence(id_, window.start, window.end, lease_id=lease_id, price=price))
    return tuple(sorted(found, key=lambda occurrence: (occurrence.start, occurrence.recurrence_id)))


def has_shape(lease: Lease, model: Lease) -> bool:
    """Return whether a lease has the reservations of another, in the same regions."""
    return [(r.resource_type, r.region) for r in lease.reservations] == [
        (r.resource_type, r.region) for r in model.reservations
    ]
