# SPDX-License-Identifier: Apache-2.0
"""Series of leases: what a user asks for, what is kept of it, and what has become of each occurrence."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from blazar.model.base.errors import NotFound
from blazar.model.base.moments import Duration
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.prices import LeasePrice
from blazar.model.leases.reminders import Reminder
from blazar.model.leases.requests import IdempotencyKey, LeaseRequest, ReservationRequest
from blazar.model.leases.states import EndReason, LeaseStatus
from blazar.model.series.checks import Fit
from blazar.model.series.recurrence import Recurrence

MOST_SHOWN = 1000
"""How many occurrences of a series are shown: the last ones. Only a series without an end has more, which are over."""


class SeriesStatus(StrEnum):
    """The state of a series.

    ``CREATING``: its leases are being booked; none has begun. ``ACTIVE``: those that fit are booked, and those of a
    series without an end are booked as their time comes near. ``ENDED``: all are over. ``FAILED``: it was to be booked
    as a whole, which was not possible; nothing is left. ``DELETING``: its leases are being deleted. ``DELETED``.
    """

    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    ENDED = "ENDED"
    FAILED = "FAILED"
    DELETING = "DELETING"
    DELETED = "DELETED"


class OccurrenceState(StrEnum):
    """What has become of an occurrence.

    ``PLANNED``: it is to be booked. ``BOOKED``: there is a lease for it. ``UNFIT``: it did not fit. ``CANCELLED``: its
    lease was deleted before it had ended. ``OVER``: its lease has ended.
    """

    PLANNED = "planned"
    BOOKED = "booked"
    UNFIT = "unfit"
    CANCELLED = "cancelled"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Template:
    """What each lease of a series is made of: reservations as the client sent them, with ids of nothing.

    Those that are kept have their secrets apart.

    ``before_end`` counts from the start or, backward, before the end of each. ``operator``: the user was an operator.
    ``reminders`` have no dates of their own. ``max_price`` is the most that each may cost, a decimal; None: whatever.
    ``keep_hosts`` is as in ``LeaseRequest``. ``quoted_at``: when the price was quoted that holds for those that are
    booked with the series; None: each has that of its booking.
    """

    reservations: tuple[ReservationRequest, ...]
    before_end: Duration | None = None
    operator: bool = False
    reminders: tuple[Reminder, ...] = ()
    max_price: str | None = None
    keep_hosts: bool = False
    quoted_at: datetime | None = None

    @property
    def without_secrets(self) -> Template:
        """Return it without what its users keep secret."""
        return replace(self, reservations=tuple(replace(reservation, secret={}) for reservation in self.reservations))


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """A new series for a user of a project. ``dry_run`` and ``key`` are as in ``LeaseRequest``."""

    name: str
    user_id: str
    project_id: str
    recurrence: Recurrence
    template: Template
    fit: Fit = Fit.ALL
    dry_run: bool = False
    key: IdempotencyKey | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A series of leases.

    ``booked_until`` is the start up to which occurrences are on record; None of a series with an end, which has all.
    ``reason`` is why it has failed. ``previous_id`` is the series that it continues. ``ends_running``: its deletion
    also ends leases that have begun.
    """

    id: str
    name: str
    user_id: str
    project_id: str
    recurrence: Recurrence
    template: Template
    fit: Fit
    status: SeriesStatus
    created_at: datetime
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    revision: int = 0
    booked_until: datetime | None = None
    reason: str | None = None
    previous_id: str | None = None
    ends_running: bool = False
    attempts: int = 0

    @property
    def held_at(self) -> datetime | None:
        """Return when the price was quoted that holds for what is booked now: later on that of the day counts."""
        return self.template.quoted_at if self.status is SeriesStatus.CREATING else None

    def request(self, window: Window) -> LeaseRequest:
        """Return the request for the lease of an occurrence in a window."""
        return LeaseRequest(
            name=self.name,
            user_id=self.user_id,
            project_id=self.project_id,
            start=window.start,
            end=window.end,
            before_end=self.template.before_end,
            reservations=tuple(reservation.with_open_secrets for reservation in self.template.reservations),
            operator=self.template.operator,
            exact=True,
            reminders=self.template.reminders,
            keep_hosts=self.template.keep_hosts,
            of_series=True,
        )


@dataclass(frozen=True, slots=True)
class SeriesOccurrence:
    """One occurrence of a series: ``start`` and ``end`` are those of its lease, or by the rule if there is none.

    ``recurrence_id`` is as in ``Occurrence``. ``reason`` is why it is unfit, and ``opening`` the window nearest to it
    that fitted then. ``changed``: its lease was changed by itself, and is not as the rule says any more. ``price`` is
    what its lease costs, or would cost; None: nothing has a price, or that is not known.
    """

    recurrence_id: datetime
    start: datetime
    end: datetime
    state: OccurrenceState = OccurrenceState.PLANNED
    lease_id: str | None = None
    reason: str | None = None
    opening: Window | None = None
    lease_status: LeaseStatus | None = None
    changed: bool = False
    price: LeasePrice | None = None

    @property
    def window(self) -> Window | None:
        """Return its window; None if there is no time between its start and its end."""
        return Window(self.start, self.end) if self.start < self.end else None


@dataclass(frozen=True, slots=True)
class SeriesDetails:
    """A series with the last of its occurrences, earliest first.

    ``replayed``: a request with this key had made it before. A series of a dry run does not exist.
    """

    series: Series
    occurrences: tuple[SeriesOccurrence, ...] = ()
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class SeriesOwner:
    """Whose a series is; ``deleted`` if it is on record only.

    ``other_users`` are those of its leases that are there: a lease can go to another user of the project.
    """

    id: str
    project_id: str
    user_id: str
    deleted: bool
    other_users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesQuestion:
    """A page of the series that are not deleted: of a project (None: of all), in some states."""

    page: Page
    project_id: str | None = None
    statuses: tuple[SeriesStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesPage:
    """Series, and the position of the last one if more follow. ``count`` if it was asked for."""

    items: tuple[Series, ...]
    following: Position | None = None
    count: int | None = None


def derive_state(
    recorded: OccurrenceState, status: LeaseStatus | None, end_reason: EndReason | None, *, deleted: bool, to_come: bool
) -> OccurrenceState:
    """Return what has become of an occurrence whose lease has a status; None: the lease is not on record any more.

    ``to_come``: its start is. What is not on record any more before its start was deleted.
    """
    if recorded is not OccurrenceState.BOOKED:
        return recorded
    if status is None:
        return OccurrenceState.CANCELLED if to_come else OccurrenceState.OVER
    if status is LeaseStatus.TERMINATED or end_reason in (EndReason.ENDED, EndReason.ENDED_EARLY, EndReason.UNUSED):
        return OccurrenceState.OVER
    return OccurrenceState.CANCELLED if deleted or status is LeaseStatus.DELETING else OccurrenceState.BOOKED


def unknown_series(series_id: str) -> NotFound:
    """Return the error for a series that does not exist, or that the caller may not see."""
    return NotFound(f"there is no series {series_id[:80]}", code="series_not_found")
