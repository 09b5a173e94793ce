# SPDX-License-Identifier: Apache-2.0
"""The worker: claims one event of one lease, acts in the cloud and records the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.acting import Actions, internal
from blazar.manager.events.claiming import Claiming
from blazar.manager.events.evacuating import Evacuating
from blazar.manager.events.looking import Looking
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.recording import Recording
from blazar.manager.events.results import Result, Retry
from blazar.manager.events.starting import Starting, StartReplacements
from blazar.manager.lease.watching import Looked
from blazar.manager.outbox.outbox import Outbox
from blazar.model.errors import BlazarError, ClaimLost, CloudUnavailable, StaleLease
from blazar.model.lease import Event, EventType, Lease
from blazar.model.trouble import level_of

LOG = logging.getLogger(__name__)


class Worker:
    """Works on events, one claimed event at a time.

    Every write is conditional on the revision of the lease that it was decided on. Only a request to delete a lease
    may change it while its event is claimed: then the claim is released, and the deletion continues.
    """

    def __init__(
        self,
        runtime: Runtime,
        outbox: Outbox,
        replacements: StartReplacements,
        *,
        taken_over: Callable[[], None],
        extendable_until: Callable[[Lease], datetime | None],
    ) -> None:
        self._runtime = runtime
        self.read_ahead = ReadAhead(runtime)
        self._claiming = Claiming(
            runtime, outbox, self.read_ahead, taken_over=taken_over, extendable_until=extendable_until
        )
        looking = Looking(runtime, self.read_ahead)
        self._recording = Recording(runtime, outbox, looking.policy)
        actions = Actions(runtime, self.read_ahead)
        evacuating = Evacuating(runtime, actions)
        self._actions: Mapping[EventType, Callable[[Lease, Event, Claim], Result | Looked]] = {
            EventType.START: Starting(runtime, replacements, self.read_ahead).start,
            EventType.BEFORE_END: actions.before_end,
            EventType.END: actions.end,
            EventType.DELETE: evacuating.delete,
            EventType.CREATE: actions.end,
            EventType.UPDATE: actions.undo_update,
            EventType.CLEAN_UP: actions.clean_up,
            EventType.USAGE_CHECK: looking.look,
            EventType.EVACUATE: evacuating.make_room,
        }

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
                claimed = None if event is None else self._claiming.claim(lease, event, claim, read_at)
                if claimed is not None:
                    self.perform(claimed, event_id, claim)
        except StaleLease:
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
        with self._runtime.claims.held(claim):
            try:
                result: Result | Looked = self._actions[kind](lease, event, claim)
            except ClaimLost as error:
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
                    level_of(error, logging.WARNING), "Event %s of lease %s failed: %s", kind, lease.id, error.message
                )
                result = Retry(error.reason)
            except Exception as error:
                # The edge of a worker: a bug must neither stop the engine nor lose the event.
                LOG.exception("Event %s of lease %s failed unexpectedly", kind, lease.id)
                result = Retry(internal(error))
            return self._recording.record(lease, event, result, claim)
