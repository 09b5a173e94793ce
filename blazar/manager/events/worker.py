# SPDX-License-Identifier: Apache-2.0
"""The worker: claims one event of one lease, acts in the cloud and records the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import reduce

from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.actions import Actions, internal_error
from blazar.manager.events.evacuation import Evacuator
from blazar.manager.events.event_claims import EventClaims
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.records import EventHandler, Recorder, settle_deletion, settle_evacuation
from blazar.manager.events.reminding import Reminding
from blazar.manager.events.results import Result, Retry
from blazar.manager.events.starts import Starter, StartReplacements
from blazar.manager.events.usage_check import UsageChecker
from blazar.manager.use.watch import UsageFinding
from blazar.model.base.errors import BlazarError, ClaimLost, CloudUnavailable, StaleLease
from blazar.model.base.log_lines import log_level
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.states import EventType
from blazar.observe import metrics
from blazar.observe.spans import span

LOG = logging.getLogger(__name__)


class Worker:
    """Works on events, one claimed event at a time.

    Every write is conditional on the revision of the lease that it was decided on. Only a request to delete a lease
    may change it while its event is claimed: then the claim is released, and the deletion continues.
    """

    def __init__(
        self,
        runtime: Runtime,
        replacements: StartReplacements,
        *,
        extendable_until: Callable[[Lease], datetime | None],
    ) -> None:
        self._runtime = runtime
        self.read_ahead = ReadAhead(runtime)
        recorder = self._recorder = Recorder(runtime, self._follow_start)
        self._event_claims = EventClaims(runtime, self.read_ahead, recorder, extendable_until=extendable_until)
        usage_checker = UsageChecker(runtime, self.read_ahead)
        actions = Actions(runtime, self.read_ahead)
        evacuator = Evacuator(runtime, actions)
        reminding = Reminding(runtime)
        starter = Starter(runtime, replacements, self.read_ahead)
        started, ended = map(recorder.notify_step, (EventType.START, EventType.END))
        # A row for each type: what is done, how its end is recorded, when it is tried again, what is sent then.
        self.handlers: Mapping[EventType, EventHandler] = {
            EventType.START: EventHandler(starter.start, recorder.settle_start, notify=started),
            EventType.BEFORE_END: EventHandler(actions.before_end, on_failure=recorder.retry_in_grace),
            EventType.END: EventHandler(actions.end, notify=ended),
            EventType.DELETE: EventHandler(evacuator.delete, settle_deletion, notify=recorder.notify_deleted),
            EventType.CREATE: EventHandler(actions.end, recorder.settle_creation, notify=recorder.notify_waiting),
            EventType.UPDATE: EventHandler(actions.undo_update, recorder.settle_change),
            EventType.CLEAN_UP: EventHandler(actions.clean_up),
            EventType.USAGE_CHECK: EventHandler(
                usage_checker.check_usage,
                conclude=usage_checker.conclude,
                notify=usage_checker.notify,
                after_start=usage_checker.arm,
            ),
            EventType.EVACUATE: EventHandler(
                evacuator.make_room, settle_evacuation, evacuator.retry, notify=recorder.notify_timed_out
            ),
            EventType.REMIND: EventHandler(reminding.act, reminding.settle, notify=reminding.notify),
        }

    def _follow_start(self, lease: Lease, now: datetime) -> Lease:
        """Return a lease whose start is over with the events that follow, as their rows say."""
        followed = (handler.after_start for handler in self.handlers.values() if handler.after_start is not None)
        return reduce(lambda after, follow: follow(after, now), followed, lease)

    def take(self, lease: Lease, event: Event) -> tuple[Lease, Claim]:
        """Claim an event, whatever it waits for; return the lease as saved, and the claim. StaleLease."""
        claim = self._runtime.claims.new()
        return self._event_claims.take(lease, event, claim), claim

    def conclude(self, lease: Lease, event_id: str, result: Result, claim: Claim) -> Lease:
        """Record a result of a claimed event on which nobody works; return the lease as recorded. ClaimLost."""
        event = lease.event_with(event_id)
        assert event is not None
        saved = self._recorder.record(lease, event, result, claim, self.handlers[EventType(event.event_type)])
        after = saved.event_with(event_id)
        if after is not None and after.due_at is not None:
            raise ClaimLost("another manager has taken the event over; nothing was done")
        return saved

    def process(self, lease_id: str, event_id: str) -> bool:
        """Process a due event: work on it if its time has come and nobody else does, else postpone it.

        Return False if another manager was faster.
        """
        try:
            # A claim is compared with the time before it was read: it may have been renewed since.
            now = self._runtime.clock.now()
            with self.read_ahead.taken(event_id) as read:
                lease, read_at = read or (self._runtime.store.leases.one(lease_id, including_deleted=True), now)
                event, claim = lease.event_with(event_id), self._runtime.claims.new()
                claimed = None if event is None else self._event_claims.claim(lease, event, claim, read_at)
                if claimed is not None:
                    self.perform(claimed, event_id, claim)
        except StaleLease:
            metrics.CLAIMS.add("lost_race")
            LOG.debug(
                "Lease %s was changed by another thread or manager; its event %s is processed later", lease_id, event_id
            )
            return False
        return True

    def perform(self, lease: Lease, event_id: str, claim: Claim) -> Lease:
        """Act on a claimed event and record the result; return the lease as recorded.

        Do nothing if the event is not, or no longer, claimed with this claim: then another manager works on it.
        """
        event = lease.event_with(event_id)
        if event is None or event.claimed_by != claim.token:
            LOG.warning("Event %s of lease %s is claimed by another manager, which continues it", event_id, lease.id)
            return lease
        kind = EventType(event.event_type)
        handler = self.handlers[kind]
        with (
            span(f"event {kind}", lease_id=lease.id, event_id=event.id, attempt=event.attempts + 1),
            self._runtime.claims.held(claim),
        ):
            try:
                result: Result | UsageFinding = handler.act(lease, event, claim)
            except ClaimLost as error:
                metrics.EVENT_ATTEMPTS.add(kind, "fenced")
                LOG.warning(
                    "Event %s of lease %s: claim lost, another manager takes it over: %s",
                    kind,
                    lease.id,
                    error.message,
                )
                return lease
            except CloudUnavailable as error:
                result = Retry(error.reason)
            except BlazarError as error:
                LOG.log(
                    log_level(error, logging.WARNING), "Event %s of lease %s failed: %s", kind, lease.id, error.message
                )
                result = Retry(error.reason)
            except Exception as error:
                # The edge of a worker: a bug must neither stop the engine nor lose the event.
                LOG.exception("Event %s of lease %s failed unexpectedly", kind, lease.id)
                result = Retry(internal_error(error))
            return self._recorder.record(lease, event, result, claim, handler)
