# SPDX-License-Identifier: Apache-2.0
"""The waiting list: leases that get their resources when their turn comes.

Each manager looks whether something has changed since the last plan; one of them makes the next one
(``blazar.calendar.queue``), and books what it grants as every booking is made, so that an outdated plan can do no harm.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from blazar.calendar.queue.plan import ImmediateAnswer
from blazar.calendar.timeline import Use, from_epoch
from blazar.manager.booking.booking import Booker
from blazar.manager.changing.creation import Creation
from blazar.manager.changing.new_leases import NewLease, Turn
from blazar.manager.changing.updates import Updates
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.notifications import TIMED_OUT, WAITING
from blazar.manager.common.runtime import Runtime
from blazar.manager.queue import waiting_leases as waiting
from blazar.manager.queue.snapshot import QueueSnapshot, SnapshotReader
from blazar.manager.waiting.granted_leases import group_resources
from blazar.manager.waiting.queue_rounds import QueueRounds
from blazar.model.base.clock import spell, zulu
from blazar.model.base.errors import NotEnoughResources, OthersWait, StaleCalendar, StaleLease
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Exceeded
from blazar.model.queue import Wait
from blazar.model.resources.resource import ResourceKind
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)


class WaitingList(BackgroundThread):
    """Queues leases, and grants what they wait for; any number of managers may do so at a time."""

    def __init__(self, runtime: Runtime, booker: Booker, creation: Creation, updates: Updates) -> None:
        super().__init__("waiting-list", work="The waiting list cannot be planned")
        for signal in (runtime.signals.events_due, runtime.signals.resources_freed, runtime.signals.resources_opened):
            signal.connect(self.wake)
        self._runtime = runtime
        self._rounds = QueueRounds(runtime, booker, creation, updates, self._stopping)
        self._snapshots = SnapshotReader(runtime)
        self._adding = threading.Lock()

    # What requests need.

    def add(self, new: NewLease, place: Wait) -> Lease:
        """Have a lease wait for its turn. InvalidInput, UsageDenied, KeyTaken."""
        store, now = self._runtime.store, self._runtime.clock.now()
        # One after the other, so that simultaneous requests do not pass the limit together.
        with self._adding:
            lease = self.preview(new, place)
            bounds = self._runtime.bounds_of(lease.project_id)
            (booked,) = store.bookings.commit(Commit([LeaseWrite(None, lease)], at=now, bounds=bounds, key=new.key))
        self._runtime.notifier.notify(WAITING, booked)
        self.wake()
        return booked

    def preview(self, new: NewLease, place: Wait) -> Lease:
        """Return a lease as it would wait for its turn; nothing is written. UsageDenied if too many wait."""
        store = self._runtime.store
        settings = self._runtime.settings
        lease = waiting.enqueue(new.lease, place)
        mine, _ = store.waiting_list.count_waiting(lease.project_id)
        if mine >= settings.max_waiting and not self._runtime.enforcement.exempts(lease.project_id):
            limit = Exceeded("waiting_per_project", "leases", settings.max_waiting, 1, mine)
            raise limit.make_denial(
                f"{mine} leases of the project wait already; the limit is {settings.max_waiting} "
                "(waiting_per_project); delete one of them, or wait until one has its turn",
                at="/wait",
            )
        return lease

    def turns(self, options: Sequence[NewLease]) -> tuple[Turn, ...] | None:
        """Return in which of the regions that may be tried a lease that does not wait takes nothing from one that does.

        None if it takes nothing wherever it lies, as while nobody waits. OthersWait if that is so in none, or
        NotEnoughResources if those who wait could not have it either. One statement if nobody waits, none for a lease
        that takes no resources.
        """
        if not options[0].placement_requests or not self._runtime.store.waiting_list.is_anybody_waiting():
            return None
        snapshot = self._snapshots.read(options[0].placement_requests)
        found = [(option, snapshot.answer_now(option.lease, option.placement_requests)) for option in options]
        refused = [answer for _, answer in found if answer.grant is None and answer.awaited]
        allowed = tuple(
            option.limit_to(group_resources(answer.grant, option.placement_requests))
            for option, answer in found
            if answer.grant is not None
        )
        if refused and not allowed:
            first = max(refused, key=lambda answer: answer.before)
            raise _others_wait(first) if first.before else NotEnoughResources(_NOTHING_FREE)
        # Where nobody waits and nothing fits, that is for the booking to say.
        return allowed or None

    def taken(self, kinds: Collection[ResourceKind]) -> Mapping[ResourceKind, Mapping[int, Sequence[Use]]]:
        """Return what those who wait for resources of these kinds will probably get, by kind and resource.

        OthersWait if so many wait that this is not known of all. One statement if nobody waits.
        """
        if not self._runtime.store.waiting_list.is_anybody_waiting():
            return {}
        snapshot = self._snapshots.read()
        plan = snapshot.plan(lambda *_: None)
        unknown = {estimate.lease_id for estimate in plan.estimates if estimate.rough}
        asked = [lease for lease in snapshot.wanted if any(request.demand.kind in kinds for request in lease.requests)]
        if before := sum(waiting_lease.lease.id in unknown for waiting_lease in asked):
            raise OthersWait(
                f"{len(asked)} leases wait for the same resources; try again when fewer do", data={"before": before}
            )
        found: dict[ResourceKind, dict[int, list[Use]]] = defaultdict(lambda: defaultdict(list))
        for grant in (*plan.advance, *plan.placed):
            for part in grant.parts:
                cleaning = snapshot.calendar[part.kind].cleaning
                use = grant.start, grant.end + cleaning, part.count, part.per_instance
                found[part.kind][part.resource_id].append(use)
        return {kind: found[kind] for kind in kinds if kind in found}

    def is_awaited(self, lease: Lease) -> bool:
        """Return whether somebody waits for a resource of a lease, and can have it in time.

        One statement if nobody waits.
        """
        store = self._runtime.store
        if not store.waiting_list.is_anybody_waiting():
            return False
        mine = {(allocation.kind, allocation.resource_id) for allocation in store.calendar.of_lease(lease.id)}
        return not mine.isdisjoint(self._snapshots.read().awaited())

    # The work of the list.

    def run_once(self) -> int:
        """Make and carry out a plan if one is due; return how many leases it granted or moved. StoreUnavailable."""
        store, now = self._runtime.store, self._runtime.clock.now()
        if not store.waiting_list.has_work():
            return 0
        state = store.waiting_list.load_state()
        if not state.is_due(now):
            return 0
        snapshot = self._snapshots.read()
        given_up = self._give_up(snapshot)
        if given_up:
            kept = tuple(waiting_lease for waiting_lease in snapshot.wanted if waiting_lease.lease.id not in given_up)
            snapshot = replace(snapshot, wanted=kept)
        try:
            return self._rounds.carry_out(snapshot, state)
        except StaleCalendar:
            LOG.debug("Another manager planned the waiting list meanwhile")
            return 0

    def _give_up(self, snapshot: QueueSnapshot) -> frozenset[str]:
        """End the waiting of leases whose time is over; return their ids."""
        over = [lease.lease for lease in snapshot.wanted if not waiting.can_wait(lease.lease, snapshot.now)]
        over += [lease for lease in snapshot.impossible.values() if not waiting.can_wait(lease, snapshot.now)]
        for lease in over:
            try:
                saved = self._runtime.store.leases.save(
                    lease, waiting.time_out(lease, now=snapshot.now), at=snapshot.now
                )
            except StaleLease:
                # It was deleted, or another manager has done so.
                continue
            self._runtime.notifier.notify(TIMED_OUT, saved)
            waiting.note_wait(lease, "timed_out", snapshot.now)
        return frozenset(lease.id for lease in over)

    def _round(self) -> float:
        self.run_once()
        return self._runtime.settings.longest_sleep.total_seconds()


_NOTHING_FREE = "not enough is free for it, and what becomes free is for those who wait; ask for less, or wait, too"


def _others_wait(found: ImmediateAnswer) -> OthersWait:
    opening = None if found.opening is None else from_epoch(found.opening)
    when = "no later start is known that fits" if opening is None else f"it fits from {spell(opening)} UTC on"
    return OthersWait(
        f"{found.before} {'lease waits' if found.before == 1 else 'leases wait'} for the same resources and would be "
        f"delayed; {when}; ask for another time, or wait for your turn with wait",
        data={"before": found.before, "opening": None if opening is None else zulu(opening)},
    )
