# SPDX-License-Identifier: Apache-2.0
"""Drift: whether reservations in use have in the cloud what the books say, found without changing anything.

The ensure of a start is run under a fence that refuses its first change: what that would have been is the finding. So
every type is looked at by what it does anyway.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from typing import NoReturn

from blazar.context import scope
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.starts import drop_resources
from blazar.manager.health.replacement import Replacement
from blazar.manager.leases import lifecycle
from blazar.model.base.errors import BlazarError, NotFound, WrongState
from blazar.model.base.values import dataclass, field
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.problems.problems import ProblemKind, RepairRequest, unknown_problem
from blazar.model.problems.troubles import CloudFinding
from blazar.observe import metrics
from blazar.resources.contract.values import Task, Unusable
from blazar.store.problems.findings import Look

LOG = logging.getLogger(__name__)

PAGE = 50
"""Leases that are read at a time."""

PAUSE = 1.0
"""Seconds between two reservations: a pass makes the calls of one start a second at most."""

ENSURES = "/blazar/resources/"
"""What the paths of the modules have that ensure a state; what they call first below that is the change."""


HOOK = "call_hook"
"""The call of a hook: what hands over a thing tells by nothing but that call whether it has done so."""


class WouldChange(Exception):
    """An ensure would change something in the cloud; it has not."""


class LookFence:
    """The right to look, and to change nothing."""

    longest_call = 0.0

    def remaining(self) -> NoReturn:
        """Refuse the change that is about to be made."""
        raise WouldChange


@dataclass(slots=True)
class _RegionLook:
    """What a pass has found so far in a region; ``silent`` are types of which something could not be looked at."""

    found: dict[str, CloudFinding] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)


class Drift(BackgroundThread):
    """Looks at all reservations in use, one at a time, and mends them if that is wanted.

    ``pause`` are the seconds between two reservations.
    """

    def __init__(self, runtime: Runtime, replacement: Replacement) -> None:
        self._interval = runtime.settings.drift_interval.total_seconds()
        super().__init__("drift", work="Reservations in use cannot be looked at", first_pause=self._interval)
        self._runtime = runtime
        self._replacement = replacement
        self.pause = PAUSE

    def start(self) -> None:
        """Start the thread that looks every ``drift_interval``; none if that is zero."""
        if self._interval:
            super().start()

    def run_once(self) -> int:
        """Look at every reservation in use once; return how many differ. What is mended at once is still told."""
        passes: dict[str, _RegionLook] = {region: _RegionLook() for region in self._runtime.regions}
        for lease, reservation in self._list_reservations():
            if self._stopping.is_set():
                # A pass that ends early has not seen all: nothing is forgotten of what it did not look at.
                return 0
            seen = passes.setdefault(reservation.region, _RegionLook())
            if (detail := self._look_in_pass(lease, reservation, seen)) is not None:
                seen.found[reservation.id] = self._note(lease, reservation, detail)
            self._stopping.wait(self.pause)
        for region, seen in passes.items():
            types = self._runtime.types.keys() - seen.silent
            look = Look(ProblemKind.DRIFT, region, self._runtime.clock.now(), seen.found, types)
            self._runtime.store.findings.record(look)
            metrics.DRIFT_LAST_SUCCESS.set_to_now(region)
        return sum(len(seen.found) for seen in passes.values())

    def _look_in_pass(self, lease: Lease, reservation: Reservation, seen: _RegionLook) -> str | None:
        """Return how a reservation differs. What is not in use any more does not; what does not tell is ``silent``."""
        try:
            return self.look(lease, reservation)
        except (NotFound, WrongState) as error:
            LOG.debug("Reservation %s is not looked at: %s", reservation.id, error.message)
            return None
        except BlazarError as error:
            LOG.debug("Reservation %s cannot be looked at now: %s", reservation.id, error.message)
        except Exception:
            # Code of other packages may raise anything; the other reservations are looked at all the same.
            LOG.exception("Reservation %s cannot be looked at", reservation.id)
        seen.silent.add(reservation.resource_type)
        return None

    def _list_reservations(self) -> Iterator[tuple[Lease, Reservation]]:
        """Yield the reservations in use of leases in use, as they are when their turn comes."""
        ids = self._runtime.store.troubles.list_active_leases()
        for number in range(0, len(ids), PAGE):
            for lease in self._runtime.store.leases.by_ids(ids[number : number + PAGE]):
                yield from ((lease, r) for r in lease.reservations if r.status is ReservationStatus.ACTIVE)

    def _note(self, lease: Lease, reservation: Reservation, detail: str) -> CloudFinding:
        now = self._runtime.clock.now()
        LOG.warning("Reservation %s of lease %s is not as it should be: %s", reservation.id, lease.id, detail)
        if self._runtime.settings.drift_mend:
            try:
                self._ensure(lease, reservation.id)
            except BlazarError as error:
                LOG.warning("Reservation %s of lease %s cannot be mended: %s", reservation.id, lease.id, error.message)
            except Exception:
                LOG.exception("Reservation %s of lease %s cannot be mended", reservation.id, lease.id)
        parts = (reservation.region, reservation.id, reservation.resource_type)
        return CloudFinding(ProblemKind.DRIFT, *parts, now, now, lease.id, detail)

    def look(self, lease: Lease, reservation: Reservation) -> str | None:
        """Return how what a reservation in use has in the cloud differs, as a sentence without its end; None if not.

        CloudError if a service does not tell; WrongState if somebody is changing the lease.
        """
        fresh = self._runtime.store.leases.one(lease.id)
        if fresh.status is not LeaseStatus.ACTIVE or lifecycle.live_claim(fresh, self._runtime.clock.now()):
            raise WrongState("the lease is being changed")
        tasks = self._runtime.tasks(fresh, self._runtime.store.calendar.of_lease(lease.id))
        task = next((task for task in tasks if task.reservation.id == reservation.id), None)
        if task is None or task.reservation.status is not ReservationStatus.ACTIVE:
            raise WrongState("the reservation is not in use")
        with scope(fence=LookFence(), limit=self._runtime.settings.request_limit):
            return self._try_start(task)

    def _try_start(self, task: Task) -> str | None:
        kind = self._runtime.type_of(task.reservation)
        try:
            kind.start(drop_resources(task, task.reservation.unassigned))
        except WouldChange as error:
            call = _name_change(error)
            return None if call == HOOK else f"it would call {call}"
        except Unusable as error:
            return "; ".join(error.reasons.values())
        return None

    def mend(self, finding: CloudFinding, request: RepairRequest) -> tuple[str, ...]:
        """Bring the cloud to what the books say of a reservation; return what was done, or would be.

        As an exchange of resources in use: under a claim, and undone if it fails. WrongState, CloudError.
        """
        if finding.lease_id is None:
            raise unknown_problem(finding.problem_id)
        owner = self._runtime.store.leases.load_owners([finding.key]).get(finding.key)
        if owner is None or owner.over:
            self._runtime.store.findings.forget(finding)
            return ("Its lease is over: there is nothing to mend.",)
        lease = self._runtime.store.leases.one(finding.lease_id)
        reservation = lease.reservation(finding.key)
        if reservation is None:
            raise unknown_problem(finding.problem_id)
        detail = self.look(lease, reservation)
        if detail is None:
            self._runtime.store.findings.forget(finding)
            return ("It is as it should be by now.",)
        if request.dry_run:
            return (f"To mend reservation {finding.key}, {detail}.",)
        with scope(why=request.reason):
            self._ensure(lease, finding.key)
        self._runtime.store.findings.forget(finding)
        return (f"Reservation {finding.key} is mended.",)

    def _ensure(self, lease: Lease, reservation_id: str) -> None:
        outcome = "failed"
        try:
            with scope(limit=self._runtime.settings.request_limit):
                self._replacement.replan(lease.id, {}, report=_ignore, back=frozenset({reservation_id}))
            outcome = "mended"
        finally:
            metrics.DRIFT_MENDS.add(outcome)

    def _round(self) -> float:
        self.run_once()
        return self._interval


def _ignore(before: Lease, after: Lease) -> None:
    """Tell nobody: flags of the lease do not change when it gets again what it has."""


def _name_change(error: WouldChange) -> str:
    """Return the call of the cloud that was refused: the first one below the ensure."""
    frames = traceback.extract_tb(error.__traceback__)
    below = [number for number, frame in enumerate(frames) if ENSURES in frame.filename.replace("\\", "/")]
    place = below[-1] + 1 if below and below[-1] + 1 < len(frames) else -1
    return frames[place].name
