# SPDX-License-Identifier: Apache-2.0
"""The monitor: polls the state of resources, at intervals and after notifications, and has leases healed.

It has its own thread, beside events and requests.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing import Healing
from blazar.manager.health.missing_resources import MissingResources
from blazar.manager.health.polls import ResourcePolls
from blazar.manager.health.resource_states import ResourceStates
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.kind import Kind

BURST = 0.5
"""Seconds to wait for more notifications of a burst, as when a rack fails, so that one poll serves them all."""

SOON = timedelta(seconds=5)
"""When to retry leases that were busy, and polls that were asked for while the cloud did not answer."""

PATIENCE = 2.0
"""Seconds to wait for the polls of all regions; a region that does not answer delays the healing of no other."""

HOURLY = timedelta(hours=1)
"""How often leases are healed if ``healing_interval`` is zero, so that each run covers all future leases."""


class Monitor(BackgroundThread):
    """Polls resources and heals leases."""

    def __init__(
        self,
        runtime: Runtime,
        kinds: Mapping[ResourceKind, Kind],
        states: ResourceStates,
        healing: Healing,
        missing: MissingResources,
    ) -> None:
        super().__init__(
            "monitor", work="Resources cannot be polled, or leases healed", retry=SOON.total_seconds(), settle=BURST
        )
        runtime.signals.resources_opened.connect(self.heal_soon)
        self.polls = ResourcePolls(runtime, kinds, states, missing, self.heal_soon)
        self._healing = healing
        self._clock = runtime.clock
        self._settings = runtime.settings
        self._poll_at: datetime | None = None
        self._heal_at: datetime | None = None
        self._due = threading.Event()

    def begin_stop(self) -> None:
        """Begin no more polls, and end a run of healing after its current lease."""
        self.polls.begin_stop()
        self._healing.begin_stop()
        super().begin_stop()

    def stop(self) -> None:
        """Finish the polls and the healing in progress, and return."""
        super().stop()
        self.polls.stop()

    def hint(self, name: str) -> None:
        """Poll soon: a notification said that a resource, or the service on it, has changed."""
        self.polls.hint(name)
        self.wake()

    def heal_soon(self) -> None:
        """Heal leases soon, in the monitor's thread: something may have failed or recovered.

        This includes leases whose last attempt was undone a moment ago.
        """
        self._due.set()
        self.wake()

    def run_once(self) -> None:
        """Poll all resources, and heal if that changed anything. For tests and tools."""
        if self.polls.poll(patience=None) | _take_flag(self._due):
            self._healing.run(at_once=True)

    def heal(self, *, at_once: bool = False) -> int:
        """Heal all leases that need it; return how many have to be retried soon.

        ``at_once``: also those whose last attempt was undone a moment ago. A resource that is not polled, and that a
        start has found failed, counts as healthy after an hour.
        """
        self.polls.forget_unseen()
        return self._healing.run(at_once=at_once, between=self._poll_meanwhile)

    def _poll_meanwhile(self) -> None:
        """Poll if it is time, while leases are healed, so that the next lease gets no newly failed resource."""
        # Do not poll before every lease for notifications from while the cloud did not answer.
        if (self._is_due() or (self.polls.has_hints() and not self.polls.unreachable)) and self._poll_now():
            self.heal_soon()

    def _poll_now(self) -> bool:
        now = self._clock.now()
        changed = self.polls.poll(patience=PATIENCE)
        self._poll_at = now + self._settings.polling_interval if self._settings.polling_interval else None
        return changed

    def _is_due(self) -> bool:
        return self._poll_at is not None and self._clock.now() >= self._poll_at

    def _round(self) -> float:
        now = self._clock.now()
        if self._heal_at is None:
            self._poll_at = now if self._settings.polling_interval else None
            self._heal_at = now + (self._settings.healing_interval or HOURLY)
        changed = (self._is_due() or self.polls.has_hints()) and self._poll_now()
        at_once = _take_flag(self._due)
        if now >= self._heal_at or changed or at_once:
            busy = self.heal(at_once=changed or at_once)
            heal_at = now + (SOON if busy else self._settings.healing_interval or HOURLY)
            self._heal_at = min(heal_at, self._healing.next_try or heal_at)
        if self.polls.has_hints() | _take_flag(self.polls.again):
            self._poll_at = now + SOON if self._poll_at is None else min(self._poll_at, now + SOON)
        return self._seconds_until(min(self._heal_at, self._poll_at or self._heal_at))

    def _failed(self, error: Exception) -> float:
        now = self._clock.now()
        self._heal_at = now + SOON
        if self._poll_at is not None:
            # Not at once: it may be the poll that failed.
            self._poll_at = max(self._poll_at, now + SOON)
        return super()._failed(error)

    def _seconds_until(self, instant: datetime) -> float:
        return max(0.0, (instant - self._clock.now()).total_seconds())


def _take_flag(flag: threading.Event) -> bool:
    """Tell whether a flag was set, and clear it; a flag set at the same moment counts the next time."""
    if not flag.is_set():
        return False
    flag.clear()
    return True
