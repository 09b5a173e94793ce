# SPDX-License-Identifier: Apache-2.0
"""The sweep: what carries our names in the cloud and belongs to no live lease is found, and ended by its type.

A call to the cloud that was sent just before its sender was stopped, or that the cloud carries out after the sender has
given up, may take effect when the lease it was for is over. What it made is found here. Its end is an event of that
lease, claimed and tried again like every other. What is not on our record at all may belong to another Blazar on the
same cloud: that is only reported.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping

from blazar.context import scope
from blazar.manager import lifecycle
from blazar.manager.settings import Settings
from blazar.model.clock import Clock
from blazar.model.errors import BlazarError, StaleLease
from blazar.resources.base import LeavesTraces, ResourceType
from blazar.store.store import Store

LOG = logging.getLogger(__name__)


class Sweep:
    """Looks for what is left of leases that are over. Any number of managers may do so at a time."""

    def __init__(
        self,
        store: Store,
        types: Mapping[str, ResourceType],
        clock: Clock,
        settings: Settings,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._types = types
        self._clock = clock
        self._settings = settings
        self._wake = wake
        self._reported: frozenset[str] = frozenset()
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)

    def start(self) -> None:
        """Begin to look every so often, in a thread of its own; never, if that is what the settings say."""
        if self._settings.sweep_interval:
            self._thread.start()

    def take_no_more(self) -> None:
        """Begin no more looks, and look at no more types in the one under way."""
        self._stopping.set()
        self._woken.set()

    def stop(self) -> None:
        """Finish what is at hand, and return."""
        self.take_no_more()
        if self._thread.ident is not None:
            self._thread.join()

    def soon(self) -> None:
        """Look in a while: work was taken over from a manager that may have had a call on its way."""
        self._woken.set()

    def run_once(self) -> int:
        """Look once; return of how many leases something is left. CloudError if the cloud does not say."""
        found = self._traces()
        owners = self._store.whose(found)
        self._report_unknown(found - owners.keys())
        left = frozenset(id_ for id_, owner in owners.items() if owner.over)
        if left:
            # Once more: what was there when the cloud was asked may have gone before the database was.
            left &= self._traces()
        leases = sorted({owners[id_].lease_id for id_ in left})
        for lease_id in leases:
            self._end(lease_id)
        if leases:
            self._wake()
        return len(leases)

    def _traces(self) -> frozenset[str]:
        with scope(limit=self._settings.look_limit):
            found: set[str] = set()
            for kind in self._types.values():
                # What is not found now is found by the next sweep, of any manager.
                if isinstance(kind, LeavesTraces) and not self._stopping.is_set():
                    found |= kind.traces(self._store.inventory(kind.kind).resources)
            return frozenset(found)

    def _end(self, lease_id: str) -> None:
        if self._settings.sweep_dry_run:
            LOG.warning(
                "Something of lease %s, which is over, is left in the cloud, and stays (sweep_dry_run)", lease_id
            )
            return
        now = self._clock.now()
        lease = self._store.lease(lease_id, including_deleted=True)
        after = lifecycle.begin_clean_up(lease, event_id=str(uuid.uuid4()), now=now)
        if after is lease:
            return
        LOG.warning("Something of lease %s, which is over, is left in the cloud; it is ended now", lease_id)
        try:
            self._store.save(lease, after, at=now)
        except StaleLease:
            LOG.debug("Lease %s changed in the meantime; the next sweep looks again", lease_id)

    def _report_unknown(self, reservation_ids: frozenset[str]) -> None:
        for id_ in sorted(reservation_ids - self._reported):
            LOG.warning(
                "The cloud has something of a reservation %s that is not on record here; it stays, as it may belong to "
                "another Blazar. Delete it by hand if it does not",
                id_[:80],
            )
        self._reported = reservation_ids

    def _run(self) -> None:
        # A while after a take-over, so that calls of the manager before have taken effect by then.
        settle = 2 * self._settings.claim_ttl
        while not self._stopping.is_set():
            if self._woken.wait(self._settings.sweep_interval.total_seconds()):
                self._woken.clear()
                if self._stopping.wait(settle.total_seconds()):
                    return
            try:
                self.run_once()
            except BlazarError as error:
                LOG.warning("The cloud cannot be searched for what is left of leases that are over: %s", error.message)
            except Exception:
                # The border of the thread: it outlives whatever goes wrong in one round.
                LOG.exception("A sweep failed; the next one comes in %s", self._settings.sweep_interval)
