# SPDX-License-Identifier: Apache-2.0
"""Parsed requests to the manager: types are checked, rules of the domain are not."""

from __future__ import annotations

from datetime import datetime

from blazar.model.base.json_text import Json
from blazar.model.base.moments import BeforeEnd, Duration, End, Moment
from blazar.model.base.values import dataclass, field, replace
from blazar.model.leases.reminders import Reminder
from blazar.model.leases.states import LeaseKind


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller and the project: not always the owner of the lease, as operators change leases, too.

    An ``operator`` may use what is for operators only.
    """

    user_id: str
    project_id: str
    operator: bool = False


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The key of a request that makes one lease, however often it is sent.

    ``scope`` is a hash of the key with its user, project and route, ``fingerprint`` one of what was sent.
    """

    scope: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The lease that was made with a key, and the fingerprint of the request."""

    lease_id: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """One reservation of a new lease; ``parameters`` are as the client sent them.

    Where it is kept, ``secret`` are those of them that nobody may see, and ``parameters`` has them masked.
    """

    resource_type: str
    parameters: Json
    secret: Json = field(default_factory=dict, repr=False)

    @property
    def with_open_secrets(self) -> ReservationRequest:
        """Return it as the client sent it."""
        return replace(self, parameters={**self.parameters, **self.secret}, secret={}) if self.secret else self


@dataclass(frozen=True, slots=True)
class EventRequest:
    """An event of the client's own: stored and shown, never processed."""

    event_type: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A new lease for a user of a project. ``before_end`` None means the operator's default lead time.

    ``operator``: the user is an operator, and may use what is for operators only. ``exact``: dates are in seconds, as
    from API 1.1 on. ``dry_run``: nothing is booked. ``key``: with the same one no second lease is made.
    ``wait_until``: if there is not enough, the lease waits for its turn until then, a duration from now; None: it is
    refused. ``tries``: how many tries of a lease of the kind ``retries`` may fail; None: as the operator has set.
    ``latest_start``: the latest start that will do for one that waits, a duration from its start; ``at_least``: how
    long it has to be at least, if it cannot be as long as it asks for.
    ``extend_until``: up to then, a duration from its end, it is prolonged if nobody else wants its resources.
    ``max_price``: it is refused if it costs more, a decimal; None: whatever it costs. ``quoted_at``: when its price was
    quoted, which may hold; None: it has the price of its booking.
    ``keep_hosts``: no other lease makes it leave its hosts before its start.
    ``confirm_within``: how long from now it may be confirmed; then it is deleted unless somebody has; None: it is firm.
    ``reminders`` of a lease of a series are not told if their time is past already; else that is refused.
    """

    name: str
    user_id: str
    project_id: str
    start: Moment
    end: End
    before_end: BeforeEnd = None
    reservations: tuple[ReservationRequest, ...] = ()
    events: tuple[EventRequest, ...] = ()
    operator: bool = False
    exact: bool = False
    dry_run: bool = False
    key: IdempotencyKey | None = None
    kind: LeaseKind = LeaseKind.SCHEDULED
    wait_until: datetime | Duration | None = None
    tries: int | None = None
    latest_start: datetime | Duration | None = None
    at_least: Duration | None = None
    extend_until: datetime | Duration | None = None
    reminders: tuple[Reminder, ...] = ()
    of_series: bool = False
    max_price: str | None = None
    keep_hosts: bool = False
    confirm_within: Duration | None = None
    quoted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeaseDefaults:
    """What requests for leases mean that leave it out: the ``kind``, and whether the lease keeps its hosts.

    ``repack_named``: it does not, even if its user sees names of hosts, and counts on those that were shown.
    """

    kind: LeaseKind = LeaseKind.SCHEDULED
    repack_named: bool = False

    def keeps_hosts(self, *, names: bool, operator: bool) -> bool:
        """Return whether a lease keeps its hosts; operators see ``names`` of all, and know that hosts change."""
        return names and not operator and not self.repack_named


USUAL = LeaseDefaults()
"""Where the operator has set nothing."""


@dataclass(frozen=True, slots=True)
class ReservationChange:
    """New values for some parameters of one reservation; ``resource_type`` must be the stored one.

    ``give_up`` are whole hosts that it is to have no more, as ids, labels or names, as the caller may see them.
    """

    id: str
    parameters: Json
    resource_type: str | None = None
    give_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """Changes of a lease; None leaves a value unchanged. ``asked_by`` None means the lease's owner.

    ``resets_before_end``: the warning goes back to the operator's lead time. ``revisions``: those that the lease may
    have, None for any. ``exact``, ``dry_run`` and ``extend_until`` are as in ``LeaseRequest``; with ``stops_extending``
    it is not prolonged by itself any more. ``advances``: a promised start is moved to an earlier one, on these
    resources, by calendar id, and the lease gets no less than it has; ``turn`` is the version of the waiting list that
    moves it. ``key``: with the same one it is made once. ``reminders`` take the place of those that it has.
    ``max_price``: it is refused if the lease costs more then, a decimal. ``keep_hosts`` is as in ``LeaseRequest``.
    ``names``: the caller may see names of hosts.
    """

    name: str | None = None
    start: Moment | None = None
    end: End | None = None
    before_end: BeforeEnd = None
    reservations: tuple[ReservationChange, ...] = ()
    asked_by: Actor | None = None
    resets_before_end: bool = False
    revisions: tuple[int, ...] | None = None
    exact: bool = False
    dry_run: bool = False
    extend_until: datetime | Duration | None = None
    stops_extending: bool = False
    advances: tuple[int, ...] | None = None
    turn: int | None = None
    key: IdempotencyKey | None = None
    reminders: tuple[Reminder, ...] | None = None
    max_price: str | None = None
    keep_hosts: bool | None = None
    names: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing changes."""
        return not self._changes_words and not self._changes_dates_or_reservations

    @property
    def needs_no_plan(self) -> bool:
        """Return whether only its name changes, or what is to become of it later: nothing of the calendar."""
        return self._changes_words and not self._changes_dates_or_reservations

    @property
    def _changes_words(self) -> bool:
        given = (self.name, self.extend_until, self.reminders, self.keep_hosts)
        return self.stops_extending or any(value is not None for value in given)

    @property
    def _changes_dates_or_reservations(self) -> bool:
        given = (self.start, self.end, self.before_end)
        return bool(self.reservations) or self.resets_before_end or any(date is not None for date in given)
