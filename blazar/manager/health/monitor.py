# SPDX-License-Identifier: Apache-2.0
"""The monitor: polls the state of resources, at intervals and after notifications, and has leases healed.

It has its own thread, beside events and requests. While the cloud does not answer, no resource counts as failed: this
is logged once, and the poll is retried.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing import Healing
from blazar.manager.health.missing_resources import MissingResources
from blazar.manager.health.resource_states import ResourceStates
from blazar.model.base.errors import BlazarError, Contention
from blazar.model.resources.resource import HOST, Resource, ResourceKind, noun
from blazar.resources.contract.kind import CalendarReads, Kind, Polled

LOG = logging.getLogger(__name__)

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
        health: ResourceStates,
        healing: Healing,
        missing: MissingResources,
    ) -> None:
        super().__init__(
            "monitor", work="Resources cannot be polled, or leases healed", retry=SOON.total_seconds(), settle=BURST
        )
        runtime.signals.resources_opened.connect(self.heal_soon)
        self._runtime = runtime
        # Hosts are polled without any type, too: leases of a type that is no longer enabled may use them.
        enabled = {HOST, *(each.kind for each in runtime.types.values())}
        self._kinds = kinds.keys()
        self._polled = {name: kind for name, kind in kinds.items() if name in enabled and kind.has("poll")}
        self._health = health
        self._healing = healing
        self._missing = missing
        self._clock = runtime.clock
        self._settings = runtime.settings
        self._hints: set[str] = set()
        self._unreachable: set[tuple[ResourceKind, str]] = set()
        self._polling: dict[str, Future[bool]] = {}
        self._pollers = {
            name: ThreadPoolExecutor(1, thread_name_prefix=f"poll-{name}") for name in runtime.regions.names
        }
        self._poll_at: datetime | None = None
        self._heal_at: datetime | None = None
        self._lock = threading.Lock()
        self._due = threading.Event()
        self._again = threading.Event()

    def begin_stop(self) -> None:
        """Begin no more polls, and end a run of healing after its current lease."""
        self._healing.begin_stop()
        super().begin_stop()

    def stop(self) -> None:
        """Finish the polls and the healing in progress, and return."""
        super().stop()
        for pool in self._pollers.values():
            pool.shutdown(cancel_futures=True)

    def hint(self, name: str) -> None:
        """Poll soon: a notification said that a resource, or the service on it, has changed."""
        with self._lock:
            self._hints.add(name)
        self.wake()

    def heal_soon(self) -> None:
        """Heal leases soon, in the monitor's thread: something may have failed or recovered.

        This includes leases whose last attempt was undone a moment ago.
        """
        self._due.set()
        self.wake()

    def uses(self, kind: ResourceKind, region: str = "") -> CalendarReads:
        """Return what the calendar knows of the use of a kind, or of it in a region, to be read on demand."""
        calendar, clock = self._runtime.store.calendar, self._clock
        return CalendarReads(
            lambda: calendar.in_use(kind, clock.now(), region=region or None),
            calendar.resource_names,
            self._returned,
            self._runtime.store.leases.map_projects,
            calendar.find_held,
        )

    def run_once(self) -> None:
        """Poll all resources, and heal if that changed anything. For tests and tools."""
        if self._poll(patience=None) | _take_flag(self._due):
            self._healing.run(at_once=True)

    def heal(self, *, at_once: bool = False) -> int:
        """Heal all leases that need it; return how many have to be retried soon.

        ``at_once``: also those whose last attempt was undone a moment ago. A resource that is not polled, and that a
        start has found failed, counts as healthy after an hour.
        """
        polled = self._polled.keys() if self._settings.polling_interval else ()
        self._health.forget(self._kinds - polled, before=self._clock.now() - HOURLY)
        return self._healing.run(at_once=at_once, between=self._poll_meanwhile)

    def _poll_meanwhile(self) -> None:
        """Poll if it is time, while leases are healed, so that the next lease gets no newly failed resource."""
        # Do not poll before every lease for notifications from while the cloud did not answer.
        if (self._is_due() or (self._has_hints() and not self._unreachable)) and self._poll_now():
            self.heal_soon()

    def _poll_now(self) -> bool:
        now = self._clock.now()
        changed = self._poll(patience=PATIENCE)
        self._poll_at = now + self._settings.polling_interval if self._settings.polling_interval else None
        return changed

    def _is_due(self) -> bool:
        return self._poll_at is not None and self._clock.now() >= self._poll_at

    def _poll(self, patience: float | None) -> bool:
        """Poll all regions; return whether the state of a resource has changed.

        Each region has a thread of its own. One that takes longer than ``patience`` seconds goes on meanwhile, and has
        leases healed by itself if something has changed.
        """
        with self._lock:
            hints, self._hints = self._hints, set()
        if not self._pollers:
            return self._poll_region("", hints)
        for name, pool in self._pollers.items():
            busy = self._polling.get(name)
            if busy is not None and not busy.done():
                # That poll may be older than the notifications.
                with self._lock:
                    self._hints |= hints
            elif not self._stopping.is_set():
                self._polling[name] = pool.submit(self._poll_region, name, hints)
        done, late = wait(self._polling.values(), patience)
        for poll in late:
            poll.add_done_callback(self._polled_late)
        # Each is waited for once.
        self._polling = {name: poll for name, poll in self._polling.items() if poll in late}
        return sum(poll.result() for poll in done) > 0

    def _polled_late(self, poll: Future[bool]) -> None:
        if poll.cancelled():
            return
        if (error := poll.exception()) is not None:
            LOG.error("A poll failed; the next one retries", exc_info=error)
        elif poll.result():
            self.heal_soon()

    def _poll_region(self, region: str, hints: Collection[str]) -> bool:
        changed = False
        for kind, plain in self._polled.items():
            if self._stopping.is_set():
                break
            registered = self._health.registered(kind, region)
            if region and not registered:
                continue
            try:
                with scope(limit=self._settings.poll_limit):
                    polled = plain.poll(registered, self.uses(kind, region))
                    self._record(kind, registered, polled)
            except Exception as error:
                # Code of other packages may raise anything; other kinds are polled, and leases healed, all the same.
                self._cannot_poll(kind, region, error)
                with self._lock:
                    self._hints |= set(hints)
                continue
            if (kind, region) in self._unreachable:
                LOG.info("State of %ss%s: polling works again", noun(kind), _region_phrase(region))
                self._unreachable.discard((kind, region))
            changed |= self._health.observe(kind, registered, self._failures(registered, polled), hints)
        return changed

    def _failures(self, registered: Collection[Resource], polled: Polled) -> Mapping[str, str | None]:
        """Return how resources have failed; what no poll can see stays for an hour."""
        since = self._clock.now() - HOURLY
        unseen = {
            each.name: each.failure
            for each in registered
            if each.name in polled.unseen and each.failed_since is not None and each.failed_since > since
        }
        return {**polled.failures, **unseen}

    def _cannot_poll(self, kind: ResourceKind, region: str, error: Exception) -> None:
        """Report the first of several failures in a row."""
        if (kind, region) not in self._unreachable:
            is_bug = not isinstance(error, BlazarError)
            reason = f"{type(error).__name__}: {error}" if is_bug else error
            LOG.warning(
                "Cannot poll the state of %ss%s, keeping the last known one: %s",
                noun(kind),
                _region_phrase(region),
                reason,
                exc_info=error if is_bug else None,
            )
        self._unreachable.add((kind, region))

    def _record(self, kind: ResourceKind, registered: Collection[Resource], polled: Polled) -> None:
        """Write what the cloud says otherwise than is stored."""
        if polled.details:
            by_id = {resource.id: resource for resource in registered}
            changed = self._runtime.store.resources.refresh(kind, polled.details, at=self._clock.now())
            for external_id in sorted(by_id[id_].external_id for id_ in changed & by_id.keys()):
                LOG.info("%s %s: updated from the cloud", noun(kind).capitalize(), external_id)

    def _returned(self, resource: Resource, reservation_ids: Collection[str]) -> None:
        """Record that reservations in use lack a resource that is back in the cloud, so that it is assigned again."""
        try:
            if self._missing.record(resource, reservation_ids):
                self.heal_soon()
        except Contention as error:
            LOG.info(
                "%s %s is back in the cloud, but cannot be assigned again yet: %s",
                noun(resource.kind).capitalize(),
                resource.name,
                error.message,
            )
            # Polled again in some seconds: the lease is busy now.
            self._again.set()

    def _round(self) -> float:
        now = self._clock.now()
        if self._heal_at is None:
            self._poll_at = now if self._settings.polling_interval else None
            self._heal_at = now + (self._settings.healing_interval or HOURLY)
        changed = (self._is_due() or self._has_hints()) and self._poll_now()
        at_once = _take_flag(self._due)
        if now >= self._heal_at or changed or at_once:
            busy = self.heal(at_once=changed or at_once)
            heal_at = now + (SOON if busy else self._settings.healing_interval or HOURLY)
            self._heal_at = min(heal_at, self._healing.next_try or heal_at)
        if self._has_hints() | _take_flag(self._again):
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

    def _has_hints(self) -> bool:
        with self._lock:
            return bool(self._hints)


def _region_phrase(region: str) -> str:
    return f" in {region}" if region else ""


def _take_flag(flag: threading.Event) -> bool:
    """Tell whether a flag was set, and clear it; a flag set at the same moment counts the next time."""
    if not flag.is_set():
        return False
    flag.clear()
    return True
