# SPDX-License-Identifier: Apache-2.0
"""Outcomes of acting on reservations, and the result of one attempt to process an event that follows from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from blazar.manager.leases import lifecycle
from blazar.model.base.reasons import Cause, Reason, ReasonCode, join_reasons, joint
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.evacuation import MovedServer
from blazar.resources.contract.values import NotYet


@dataclass(frozen=True, slots=True)
class Acted:
    """The cloud is in the desired state; ``cloud_ids``, if given, are the cloud ids to store."""

    reservation: Reservation
    cloud_ids: Content | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The action failed; if that is ``permanent``, a retry does not help."""

    reservation: Reservation
    reason: Reason
    permanent: bool


@dataclass(frozen=True, slots=True)
class StillWorking:
    """The cloud is still working, and has made something already; the reservation has its cloud ids, to be stored."""

    reservation: Reservation
    progress: NotYet


@dataclass(frozen=True, slots=True)
class UnusableResources:
    """Resources of a reservation cannot be assigned; ``reasons`` says why, by calendar id."""

    reservation: Reservation
    reasons: Mapping[int, str]

    @property
    def reason(self) -> Reason:
        """Return all reasons as one."""
        return unusable_reason(self.reasons)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A reservation that was not acted on: it waits for another of the lease, with the id ``by``, which is not ready.

    That other decides when the event is tried again.
    """

    reservation: Reservation
    by: str

    @property
    def progress(self) -> NotYet:
        """Return what the wait looks like where nothing is known of the other."""
        return NotYet(RECHECK_HELD, f"reservation {self.reservation.id} waits for reservation {self.by}")


RECHECK_HELD = timedelta(seconds=5)
"""How long to wait for a reservation about which nothing else is known."""


def unusable_reason(reasons: Mapping[int, str]) -> Reason:
    """Return one reason for resources that cannot be assigned, by calendar id."""
    return Reason("; ".join(reasons.values()), Cause(ReasonCode.RESOURCE_FAILED, resources=frozenset(reasons)))


Outcome = Acted | NotYet | StillWorking | Failed | UnusableResources | HeldBack
"""What acting on one reservation led to."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The event is finished; with ``error`` it failed for good. ``note`` is kept as the reason of a success.

    ``moved`` are the servers of others that were moved away for the lease, whose owners are told now.
    """

    reservations: tuple[Reservation, ...] = ()
    error: Reason | None = None
    note: Reason | None = None
    moved: tuple[MovedServer, ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """The event has to be retried; ``after`` None means after the usual back-off of a failure."""

    reason: Reason
    after: timedelta | None = None
    reservations: tuple[Reservation, ...] = ()


Result = Finished | Retry


def result_of(
    outcomes: Collection[Outcome], *, then: ReservationStatus | None, tolerant: bool, now: datetime
) -> Result:
    """Return the result of an event whose action led to these outcomes.

    ``then`` is the status of reservations whose action succeeded; None if it stays. ``tolerant``: a permanent failure
    is recorded on its reservation and the event goes on; else it is retried like a transient one, because an end must
    succeed.
    """
    given_up = [o for o in outcomes if tolerant and isinstance(o, Failed) and o.permanent]
    unfinished = [o for o in outcomes if not isinstance(o, Acted) and o not in given_up]
    # What is held says nothing that the one that holds it does not say.
    unfinished = [o for o in unfinished if not isinstance(o, HeldBack)] or unfinished
    changed = [r for o in outcomes if isinstance(o, Acted) and (r := _apply(o, then, now)) is not None]
    if then is not None:
        changed += [lifecycle.with_status(o.reservation, ReservationStatus.ERROR, now) for o in given_up]
    if unfinished:
        changed += [o.reservation for o in unfinished if isinstance(o, StillWorking)]
        of_each = [o.progress if isinstance(o, StillWorking | HeldBack) else o for o in unfinished]
        waits = [o.after for o in of_each if isinstance(o, NotYet)]
        after = min(waits) if len(waits) == len(unfinished) else None
        return Retry(joint([_reason_of(o) for o in (*given_up, *of_each)]), after, tuple(changed))
    return Finished(tuple(changed), join_reasons(o.reason for o in given_up))


def combine(one: Result, other: Result) -> Result:
    """Return the combined result of two rounds of work on one event."""
    reservations = (*one.reservations, *other.reservations)
    if isinstance(one, Finished) and isinstance(other, Finished):
        return Finished(reservations, join_reasons((one.error, other.error)))
    retries = [result for result in (one, other) if isinstance(result, Retry)]
    after = None if any(result.after is None for result in retries) else min(r.after for r in retries if r.after)
    return Retry(joint([result.reason for result in retries]), after, reservations)


def _reason_of(outcome: NotYet | Failed | UnusableResources) -> Reason:
    return Reason(outcome.reason, outcome.cause) if isinstance(outcome, NotYet) else outcome.reason


def _apply(acted: Acted, then: ReservationStatus | None, now: datetime) -> Reservation | None:
    """Return a reservation as it is to be written; None if nothing of it has changed."""
    if then is None and acted.cloud_ids is None:
        return None
    reservation = acted.reservation
    if acted.cloud_ids is not None:
        reservation = replace(reservation, cloud_ids=acted.cloud_ids)
    return reservation if then is None else lifecycle.with_status(reservation, then, now)
