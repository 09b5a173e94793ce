# SPDX-License-Identifier: Apache-2.0
"""Polls of the state of resources, each region in a thread of its own; what the cloud says otherwise is stored.

While the cloud does not answer, no resource counts as failed: this is logged once, and the poll is retried.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta

from blazar.context import scope
from blazar.manager.common.background import LONGEST_ERROR
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.missing_resources import MissingResources
from blazar.manager.health.resource_states import ResourceStates
from blazar.model.base.errors import BlazarError, Contention
from blazar.model.base.log_lines import printable
from blazar.model.managers.presence import ConditionKind, ManagerCondition
from blazar.model.resources.resource import HOST, Resource, ResourceKind, noun
from blazar.observe import metrics
from blazar.resources.contract.kind import CalendarReads, Kind, Polled

LOG = logging.getLogger(__name__)

UNSEEN_FOR = timedelta(hours=1)
"""How long a resource stays failed that a start has found failed, if no poll can see that."""


class ResourcePolls:
    """Polls resources; ``changed`` is called when a poll that is not waited for finds that something has changed.

    ``again`` is set when a poll has found something that could not be recorded. ``unreachable`` are the kinds and
    regions whose last poll failed, each with what managers tell of that.
    """

    def __init__(
        self,
        runtime: Runtime,
        kinds: Mapping[ResourceKind, Kind],
        states: ResourceStates,
        missing: MissingResources,
        changed: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        # Hosts are polled without any type, too: leases of a type that is no longer enabled may use them.
        enabled = {HOST, *(type_.kind for type_ in runtime.types.values())}
        self._kinds = kinds.keys()
        self._polled = {name: kind for name, kind in kinds.items() if name in enabled and kind.has("poll")}
        self._states = states
        self._missing = missing
        self._changed = changed
        self._clock = runtime.clock
        self._hints: set[str] = set()
        self._polling: dict[str, Future[bool]] = {}
        self._pollers = {
            name: ThreadPoolExecutor(1, thread_name_prefix=f"poll-{name}") for name in runtime.regions.names
        }
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.unreachable: dict[tuple[ResourceKind, str], ManagerCondition] = {}
        self.again = threading.Event()

    def begin_stop(self) -> None:
        """Begin no more polls."""
        self._stopping.set()

    def stop(self) -> None:
        """Finish the polls in progress, and return."""
        for pool in self._pollers.values():
            pool.shutdown(cancel_futures=True)

    def hint(self, name: str) -> None:
        """Note that a resource, or the service on it, has changed, so that one poll is enough to see how."""
        with self._lock:
            self._hints.add(name)

    def has_hints(self) -> bool:
        """Tell whether something has changed since the last poll."""
        with self._lock:
            return bool(self._hints)

    def uses(self, kind: ResourceKind, region: str = "") -> CalendarReads:
        """Return what the calendar knows of the use of a kind, or of it in a region, to be read on demand."""
        calendar, clock = self._runtime.store.calendar, self._clock
        return CalendarReads(
            lambda: calendar.names_in_use(kind, clock.now(), region=region or None),
            calendar.names_by_reservation,
            self._returned,
            self._runtime.store.leases.map_projects,
            calendar.find_promised,
        )

    def poll(self, patience: float | None) -> bool:
        """Poll all regions; return whether the state of a resource has changed.

        Each region has a thread of its own. One that takes longer than ``patience`` seconds goes on meanwhile, and has
        what has changed reported by itself.
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
            # Nova's notifications are those of the first region; another may have hosts of the same names.
            hints = set()
        done, late = wait(self._polling.values(), patience)
        for poll in late:
            poll.add_done_callback(self._polled_late)
        # Each is waited for once.
        self._polling = {name: poll for name, poll in self._polling.items() if poll in late}
        return sum(poll.result() for poll in done) > 0

    def list_conditions(self) -> tuple[ManagerCondition, ...]:
        """Return what of the clouds cannot be polled now; polls may go on meanwhile."""
        return tuple(self.unreachable.copy().values())

    def forget_unseen(self) -> None:
        """Count resources that are not polled, and that a start has found failed, as healthy after their time."""
        polled = self._polled.keys() if self._runtime.settings.polling_interval else ()
        self._states.forget(self._kinds - polled, before=self._clock.now() - UNSEEN_FOR)

    def _polled_late(self, poll: Future[bool]) -> None:
        if poll.cancelled():
            return
        if (error := poll.exception()) is not None:
            LOG.error("A poll failed; the next one retries", exc_info=error)
        elif poll.result():
            self._changed()

    def _poll_region(self, region: str, hints: Collection[str]) -> bool:
        changed = False
        for kind, plain in self._polled.items():
            if self._stopping.is_set():
                break
            registered = self._states.registered(kind, region)
            if region and not registered:
                # The last of them may have gone while they could not be polled.
                self.unreachable.pop((kind, region), None)
                continue
            try:
                with scope(limit=self._runtime.settings.poll_limit):
                    polled = plain.poll(registered, self.uses(kind, region))
                    self._record(kind, registered, polled)
            except Exception as error:
                # Code of other packages may raise anything; other kinds are polled, and leases healed, all the same.
                self._cannot_poll(kind, region, error)
                with self._lock:
                    self._hints |= set(hints)
                continue
            metrics.POLL_LAST_SUCCESS.set_to_now(kind, region)
            if (kind, region) in self.unreachable:
                LOG.info("State of %ss%s: polling works again", noun(kind), _region_phrase(region))
                del self.unreachable[kind, region]
            changed |= self._states.observe(kind, registered, self._failures(registered, polled), hints)
        return changed

    def _failures(self, registered: Collection[Resource], polled: Polled) -> Mapping[str, str | None]:
        """Return how resources have failed; what no poll can see stays for an hour."""
        since = self._clock.now() - UNSEEN_FOR
        unseen = {
            resource.name: resource.failure
            for resource in registered
            if resource.name in polled.unseen and resource.failed_since is not None and resource.failed_since > since
        }
        return {**polled.failures, **unseen}

    def _cannot_poll(self, kind: ResourceKind, region: str, error: Exception) -> None:
        """Report the first of several failures in a row."""
        is_bug = not isinstance(error, BlazarError)
        reason = f"{type(error).__name__}: {error}" if is_bug else str(error)
        if (kind, region) not in self.unreachable:
            LOG.warning(
                "Cannot poll the state of %ss%s, keeping the last known one: %s",
                noun(kind),
                _region_phrase(region),
                reason,
                exc_info=error if is_bug else None,
            )
        known = self.unreachable.get((kind, region))
        since, told = self._clock.now() if known is None else known.since, printable(reason, LONGEST_ERROR)
        self.unreachable[kind, region] = ManagerCondition(ConditionKind.POLL, kind, since, told, region)

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
                self._changed()
        except Contention as error:
            LOG.info(
                "%s %s is back in the cloud, but cannot be assigned again yet: %s",
                noun(resource.kind).capitalize(),
                resource.name,
                error.message,
            )
            # Polled again in some seconds: the lease is busy now.
            self.again.set()


def _region_phrase(region: str) -> str:
    return f" in {region}" if region else ""
