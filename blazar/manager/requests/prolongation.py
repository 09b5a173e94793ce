# SPDX-License-Identifier: Apache-2.0
"""Prolongs leases whose owners want that if nobody else wants their resources.

A while before its end, ahead of any warning, a lease gets the latest end that is free and that its project may have.
That is an ordinary change, so that what is promised to others stays theirs, or they get as good a host. Until its end
it is tried again. It takes nothing that a lease on the waiting list could have. Who is warned that a lease ends is told
how long it could be.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.repack.values import RepackMode
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.notifications import EXTENDED
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.leases import LeaseService
from blazar.manager.search.availability import AvailabilityService
from blazar.manager.waiting.waiting_list import WaitingList
from blazar.model.base.errors import BlazarError, NotEnoughResources, NotFound, StaleLease
from blazar.model.base.log_lines import log_level
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.search.availability import AvailabilityQuestion, LimitedBy

LOG = logging.getLogger(__name__)

AHEAD = timedelta(minutes=10)
"""How long before the warning of a lease it is tried to prolong it."""

RETRY = timedelta(minutes=1)

OTHERS_WAIT = "others wait for what it has"
_PROMISED = "what it has is promised to others from its end on"
_REASONS = {
    LimitedBy.PROMISED: _PROMISED,
    LimitedBy.LIMIT: "the limits of the project leave no more time",
    LimitedBy.RANGE: "it cannot be prolonged any further",
    None: "some of what it has is out of use",
}


class Prolongation(BackgroundThread):
    """Prolongs leases. Any number of managers may do so: each change is made once."""

    def __init__(
        self, runtime: Runtime, leases: LeaseService, availability: AvailabilityService, waiting_list: WaitingList
    ) -> None:
        super().__init__("extensions", work="Leases cannot be prolonged", retry=5.0)
        self._runtime = runtime
        self._leases = leases
        self._availability = availability
        self._waiting_list = waiting_list
        settings = runtime.settings
        self._lead = max(settings.before_end_lead, *settings.before_end_leads.values(), AHEAD) + AHEAD

    def run_once(self) -> int:
        """Prolong the leases that end soon; return how many got a later end. One statement if there are none."""
        now = self._runtime.clock.now()
        found = self._runtime.store.extensions.find_ending(now + self._lead, now=now)
        return sum(self._prolonged(lease_id) for lease_id in found if not self._stopping.is_set())

    def offer(self, lease: Lease) -> datetime | None:
        """Return the latest end that a lease could have, asked for now; None if it is no later or is not known."""
        try:
            end, _ = self._latest_end(lease, None)
        except BlazarError as error:
            LOG.info("How long lease %s could be extended is not known: %s", lease.id, error.message)
            return None
        return end if end > lease.window.end else None

    def _prolonged(self, lease_id: str) -> bool:
        try:
            lease = self._runtime.store.leases.one(lease_id)
            if lease.extend is None or lease.status is not LeaseStatus.ACTIVE:
                return False
            end, why = self._latest_end(lease, lease.extend.until)
            prolonged = self._extend_by_moves(lease, lease.extend.until) if why == _PROMISED else None
            if prolonged is None and end <= lease.window.end:
                self._tell(lease, why)
                return False
            prolonged = prolonged or self._extend(lease, end)
        except (NotFound, StaleLease):
            # It has ended, or somebody changes it: the next round sees what has become of it.
            return False
        except BlazarError as error:
            self._refused(lease_id, error)
            return False
        LOG.info("Lease %s is prolonged until %s: nobody else wants what it has", lease_id, prolonged.window.end)
        self._runtime.notifier.notify(EXTENDED, prolonged)
        return True

    def _extend(self, lease: Lease, end: datetime) -> Lease:
        owner = Actor(lease.user_id, lease.project_id)
        change = LeaseChange(end=end, asked_by=owner, exact=True, revisions=(lease.revision,))
        return self._leases.update(lease.id, change)

    def _extend_by_moves(self, lease: Lease, until: datetime) -> Lease | None:
        """Prolong a lease as far as it may be, if those to whom its hosts are promised can have others; else None."""
        if self._runtime.settings.repack.mode is RepackMode.OFF:
            return None
        try:
            return self._extend(lease, until)
        except NotEnoughResources:
            return None

    def _latest_end(self, lease: Lease, until: datetime | None) -> tuple[datetime, str]:
        """Return the latest end that is free, ``until`` at most, and why it is no later."""
        if self._waiting_list.is_awaited(lease):
            return lease.window.end, OTHERS_WAIT
        asked = AvailabilityQuestion(Actor(lease.user_id, lease.project_id), lease_id=lease.id, latest=until)
        extension = self._availability.find(asked).extension
        if extension is None:
            return lease.window.end, _REASONS[None]
        return min(extension.open_until, until or extension.open_until), _REASONS[extension.limited_by]

    def _refused(self, lease_id: str, error: BlazarError) -> None:
        LOG.log(log_level(error, logging.WARNING), "Lease %s is not prolonged: %s", lease_id, error.message)
        try:
            self._tell(self._runtime.store.leases.one(lease_id), error.public or error.message)
        except (NotFound, StaleLease):
            return

    def _tell(self, lease: Lease, why: str) -> None:
        if lease.extend is not None and lease.extend.reason != why:
            told = replace(lease, extend=replace(lease.extend, reason=why))
            self._runtime.store.leases.save(lease, told, at=self._runtime.clock.now())

    def _round(self) -> float:
        self.run_once()
        now = self._runtime.clock.now()
        coming = self._runtime.store.extensions.find_next_end(after=now + self._lead)
        wait = RETRY if coming is None else min(RETRY, coming - self._lead - now)
        return max(1.0, wait.total_seconds())
