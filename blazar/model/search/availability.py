# SPDX-License-Identifier: Apache-2.0
"""Questions when something is free, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from blazar.model.base.clock import zulu
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.base.proof import RefusalProof
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.billing.prices import LeasePrice
from blazar.model.leases.requests import Actor, ReservationChange, ReservationRequest
from blazar.model.power.states import WakingHosts


@dataclass(frozen=True, slots=True)
class AvailabilityQuestion:
    """A question of a user: when do these reservations fit, or how can a lease be changed.

    Either ``duration``, with the range from ``earliest`` to ``latest``, the last end; or ``start`` and ``end``, the one
    window that is asked for. For the lease ``lease_id``, ``changes`` are of its reservations; without any window it is
    asked how far the lease can be extended. Durations count from ``earliest`` or the start. ``names``: who asks may see
    names of hosts.
    """

    asked_by: Actor
    reservations: tuple[ReservationRequest, ...] = ()
    lease_id: str | None = None
    changes: tuple[ReservationChange, ...] = ()
    duration: Duration | None = None
    earliest: Moment = NOW
    latest: Moment | Duration | None = None
    start: Moment | None = None
    end: Moment | Duration | None = None
    limit: int = 5
    explain: bool = True
    alternatives: bool = True
    names: bool = False


@dataclass(frozen=True, slots=True)
class EnforcementRefusal:
    """Why usage enforcement would not grant a window; ``data`` is a JSON object for programs."""

    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FreeWindow:
    """An opening: every start from that of ``window`` to ``last_start`` has room for the whole duration.

    ``open_until`` is the last end that fits from the start on, None if that is beyond the range. ``counts`` are what
    each reservation would get, ``regions`` where it would lie, empty where no regions are configured.
    """

    window: Window
    last_start: datetime
    open_until: datetime | None
    counts: tuple[int, ...]
    refusals: tuple[EnforcementRefusal, ...] = ()
    regions: tuple[str, ...] = ()
    price: LeasePrice | None = None
    """What the lease would cost from the first start on; None: nothing has a price, or it is no new lease."""
    waking: WakingHosts | None = None
    """What the first start would wait for; None: its hosts are awake by then."""
    moves_others: int = 0
    """How many other leases would get other hosts for it."""


class StepCode(StrEnum):
    """What takes resources away from a reservation, in the order in which they are counted."""

    REGISTERED = "registered"
    REQUIREMENT = "requirement"
    TRAITS = "traits"
    CELLS = "cells"
    """Hosts whose NUMA cells such servers would not use evenly, so that amounts do not tell whether they fit."""
    CARDS = "cards"
    """Hosts without the cards, or with some that differ, of which such servers might get the wrong ones."""
    DISABLED = "disabled"
    FAILED = "failed"
    TOO_SMALL = "too_small"
    PROMISED = "promised"
    AFFINITY = "affinity"
    TOPOLOGY = "topology"
    OTHER_RESERVATIONS = "other_reservations"
    IN_USE = "in_use"
    NO_SUBSTITUTE = "no_substitute"
    """Free, but not in the place of what must be chosen and cannot be: what is in use, or required by name."""


@dataclass(frozen=True, slots=True)
class Step:
    """How many resources are left after one reason, and how many it has taken away, where that is told.

    ``until`` is when enough of them are free again, ``pointer`` the part of the request that is the reason.
    """

    code: StepCode
    remaining: int
    removed: int | None = None
    until: datetime | None = None
    pointer: str | None = None


@dataclass(frozen=True, slots=True)
class WindowReason:
    """Why a reservation, by its place in the lease, does not fit into a window: ``free`` is what it could get.

    ``pointer`` is its place in the request; None if a change does not name it.
    """

    reservation: int
    window: Window
    asked: int
    free: int
    steps: tuple[Step, ...]
    message: str
    pointer: str | None = None


class Change(StrEnum):
    """What an alternative changes."""

    TIME = "time"
    COUNT = "count"
    DURATION = "duration"
    REQUIREMENT = "requirement"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something near to the request that would fit into a window.

    ``counts`` are fewer of each reservation, by id where the question is about a lease. ``drop`` points at the part of
    a requirement to leave out. ``price`` is what the lease would cost then; None: nothing has a price, or a change was
    not tried.
    """

    change: Change
    window: Window
    counts: tuple[Mapping[str, int | str], ...] | None = None
    drop: str | None = None
    price: LeasePrice | None = None


class LimitedBy(StrEnum):
    """What ends an extension."""

    PROMISED = "promised"
    LIMIT = "limit"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class Extension:
    """How far a lease can be extended.

    ``limited_by`` is None if nothing of that ends it: as where a resource of the lease is out of use.
    """

    open_until: datetime
    limited_by: LimitedBy | None
    refusals: tuple[EnforcementRefusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Availability:
    """The answer to a question, as of one instant.

    ``reasons`` and ``alternatives`` are about the first window asked for, and empty if that fits. ``proof`` is what a
    search has found that lets other leases get other hosts for it; None if there was none. ``complete``: nothing was
    left out before ``searched_until``; a search for more goes on there. ``not_checked`` names filters that were not
    asked.
    """

    as_of: datetime
    range: Window
    duration: timedelta
    searched_until: datetime
    complete: bool
    openings: tuple[FreeWindow, ...] = ()
    not_checked: tuple[str, ...] = ()
    reasons: tuple[WindowReason, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    extension: Extension | None = None
    proof: RefusalProof | None = None


Json = dict[str, Any]


def name_count(parameters: Mapping[str, Any], count: int) -> Mapping[str, int]:
    """Return the parameters by which a reservation asks for so many."""
    return {"amount": count} if "amount" in parameters else {"min": count, "max": count}


def render_reasons(values: Sequence[WindowReason]) -> list[Json]:
    """Render why reservations do not fit."""
    return [
        {
            "pointer": value.pointer,
            "window": render_window(value.window),
            "asked": value.asked,
            "free": value.free,
            "steps": [_render_step(step) for step in value.steps],
            "message": value.message,
        }
        for value in values
    ]


def render_alternatives(values: Sequence[Alternative]) -> list[Json]:
    """Render what would fit: each has what to put over the question."""
    return [_render_alternative(value) for value in values]


def _render_step(value: Step) -> Json:
    shown: Json = {"code": str(value.code)}
    if value.pointer is not None:
        shown["pointer"] = value.pointer
    if value.removed is not None:
        shown["removed"] = value.removed
    shown["remaining"] = value.remaining
    if value.until is not None:
        shown["until"] = zulu(value.until)
    return shown


def _render_alternative(value: Alternative) -> Json:
    shown: Json = {"change": str(value.change), **render_window(value.window)}
    if value.counts is not None:
        shown["reservations"] = [dict(count) for count in value.counts]
    if value.drop is not None:
        shown["drop"] = value.drop
    if value.price is not None:
        shown |= {"price": value.price.amount, "currency": value.price.currency}
    return shown


def render_window(value: Window) -> Json:
    """Render a window."""
    return {"start_date": zulu(value.start), "end_date": zulu(value.end)}
