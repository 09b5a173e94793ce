# SPDX-License-Identifier: Apache-2.0
"""A plan of the waiting list is carried out: promised starts are moved, turns granted, and who still waits is told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from blazar.calendar.queue.values import Grant, Waiter
from blazar.calendar.queue.values import QueuePlan as PlanOfList
from blazar.calendar.timeline import epoch, from_epoch
from blazar.context import scope
from blazar.manager.billing.quoting import Quoting
from blazar.manager.booking.booking import Booker, Proposal, Selectable, plan_allocations
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.booking.unique_names import check_names
from blazar.manager.changing.creation import Creation
from blazar.manager.changing.updates import Updates
from blazar.manager.common.notifications import ADVANCED, CREATED, PROMISED, TIMED_OUT
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import EnforcementCheck
from blazar.manager.queue import waiting_leases as waiting
from blazar.manager.queue.snapshot import QueueSnapshot, WaitingLease
from blazar.manager.queue.waiting_leases import note_wait
from blazar.manager.waiting.granted_leases import GrantedLease, examine_grant, group_resources, window_of
from blazar.manager.waiting.line_moves import MovedTurn, find_turn_by_moves, plan_turn
from blazar.manager.waiting.news import QueueRound, find_news, tell_too_late
from blazar.model.base.errors import (
    BlazarError,
    CloudError,
    Contention,
    NotEnoughResources,
    NotFound,
    PlanSuperseded,
    StaleCalendar,
    StaleLease,
    UsageDenied,
)
from blazar.model.base.log_lines import log_level
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.leases.states import LeaseKind, LeaseStatus
from blazar.model.queue import FailedTry, TryFailure
from blazar.observe import metrics
from blazar.store.booking.commit import Commit, LeaseWrite, limit_prices
from blazar.store.queue.waiting_list import ListState

LOG = logging.getLogger(__name__)

DAILY = timedelta(hours=1)
"""A plan is made that often at least, as what it tells of becomes outdated by itself."""

UNDER_WAY = timedelta(seconds=20)
"""How long other managers wait for what a plan grants to be booked: then they make another plan."""


class QueueRounds:
    """Makes plans and carries them out; ``stopping`` ends a round after its current lease."""

    def __init__(
        self,
        runtime: Runtime,
        booker: Booker,
        creation: Creation,
        updates: Updates,
        stopping: threading.Event,
    ) -> None:
        self._runtime = runtime
        self._booker = booker
        self._creation = creation
        self._updates = updates
        self._stopping = stopping
        self._quoting = Quoting(runtime)
        # That it grows is seen of a number that is there before.
        metrics.PROMISES.add("broken", by=0)

    def carry_out(self, snapshot: QueueSnapshot, state: ListState) -> int:
        """Make a plan of a snapshot, and do what it says; return how many leases it granted or moved.

        StaleCalendar if another manager has planned meanwhile.
        """
        round_ = QueueRound({waiting_lease.lease.id: waiting_lease for waiting_lease in snapshot.wanted})
        with metrics.QUEUE_PLAN_DURATION.measure():
            plan = snapshot.plan(partial(self._find_denial, round_))
        for blocked in plan.blocked:
            if blocked.lease_id in round_.denied:
                self._add_failed_try(round_.wanted[blocked.lease_id], TryFailure.DENIED, blocked.reason)
        by_moves = find_turn_by_moves(self._runtime, snapshot, plan)
        if plan.start_now or plan.promise or plan.advance or by_moves:
            # If this manager dies now, another one makes the next plan soon.
            due_at = snapshot.now + UNDER_WAY
            state = self._runtime.store.waiting_list.record_plan(state, due_at=due_at, updates=())
        try:
            if by_moves is not None:
                self._grant_by_moves(round_, by_moves, state)
            # First, as what they leave may be granted to others.
            if self._advance_all(round_, snapshot, plan, state) and self._grant_all(round_, snapshot, plan, state):
                self._tell(snapshot, plan, state, round_)
        except PlanSuperseded:
            LOG.debug("Another manager planned the waiting list before this plan was carried out")
        return len(round_.granted) + round_.moved

    def _find_denial(self, round_: QueueRound, waiter: Waiter, grant: Grant, _: Sequence[Grant]) -> str | None:
        """Return why a grant costs too much, or enforcement denies it, or cannot be asked; None if it grants it."""
        wanted, window = round_.wanted[waiter.lease_id], window_of(grant)
        most = None if wanted.lease.wait is None else wanted.lease.wait.max_price
        if most is None and not self._runtime.enforcement.enabled:
            return None
        chosen = [(wanted.requests[part.demand].reservation_id, part) for part in grant.parts]
        allocations = [
            Allocation(part.kind, part.resource_id, grant.lease_id, id_, window, part.count, part.per_instance)
            for id_, part in chosen
        ]
        if most is not None and (why := self._quoting.find_excess(wanted.lease, window, allocations, most)) is not None:
            return why
        if not self._runtime.enforcement.enabled:
            return None
        check = EnforcementCheck(self._runtime)
        round_.checks[waiter.lease_id] = check
        try:
            check.check(examine_grant(wanted, window, allocations))
        except BlazarError as error:
            if isinstance(error, UsageDenied):
                round_.denied.add(waiter.lease_id)
            return error.public or error.message
        return None

    def _advance_all(self, round_: QueueRound, snapshot: QueueSnapshot, plan: PlanOfList, state: ListState) -> bool:
        """Move promised starts to earlier ones; return whether that was not interrupted. PlanSuperseded."""
        promised = {promised_lease.lease.id: promised_lease.lease for promised_lease in snapshot.promised}
        for grant in plan.advance:
            if self._stopping.is_set():
                return False
            round_.moved += self._advance(promised[grant.lease_id], grant, turn=state.version)
        return True

    def _grant_by_moves(self, round_: QueueRound, found: MovedTurn, state: ListState) -> None:
        """Grant what a lease gets because others leave their hosts. PlanSuperseded."""
        grant, lease_id, start = found.grant, found.waiter.lease_id, from_epoch(found.grant.start)
        if self._stopping.is_set() or self._find_denial(round_, found.waiter, grant, ()) is not None:
            return
        wanted, check = round_.wanted[lease_id], round_.checks.get(lease_id)
        try:
            if self._grant(wanted, grant, check, turn=state.version, estimate=start, before=found.before):
                round_.granted.add(lease_id)
        except PlanSuperseded:
            raise
        except BlazarError as error:
            self._note_refusal(round_, wanted, error)

    def _grant_all(self, round_: QueueRound, snapshot: QueueSnapshot, plan: PlanOfList, state: ListState) -> bool:
        """Grant what is planned; return whether that was not interrupted. PlanSuperseded."""
        for grant in (*plan.start_now, *plan.promise):
            if self._stopping.is_set():
                return False
            if grant.lease_id in round_.granted:
                continue
            wanted, check = round_.wanted[grant.lease_id], round_.checks.get(grant.lease_id)
            estimate = from_epoch(snapshot.expected(wanted.lease, grant.start))
            try:
                if self._grant(wanted, grant, check, turn=state.version, estimate=estimate):
                    round_.granted.add(grant.lease_id)
            except PlanSuperseded:
                raise
            except BlazarError as error:
                self._note_refusal(round_, wanted, error)
        return True

    def _note_refusal(self, round_: QueueRound, wanted: WaitingLease, error: BlazarError) -> None:
        """Record why a lease was not granted at its turn."""
        lease_id, text = wanted.lease.id, error.public or error.message
        if isinstance(error, NotEnoughResources):
            LOG.debug("Lease %s is not granted at its turn: others were faster", lease_id)
        elif isinstance(error, Contention):
            LOG.info("Lease %s is not granted at its turn: others were faster at each attempt", lease_id)
            round_.refused[lease_id] = error.message
            self._add_failed_try(wanted, TryFailure.OTHERS_FASTER, error.message)
        elif isinstance(error, UsageDenied):
            round_.refused[lease_id] = text
            self._add_failed_try(wanted, TryFailure.DENIED, text)
        else:
            level = log_level(error, logging.WARNING)
            LOG.log(level, "Lease %s is not granted at its turn: %s", lease_id, error.message)
            round_.refused[lease_id] = waiting.NOT_PREPARED if isinstance(error, CloudError) else text
            self._back_off(lease_id, error)

    def _tell(self, snapshot: QueueSnapshot, plan: PlanOfList, state: ListState, round_: QueueRound) -> None:
        """Record what those that still wait are told, and when the next plan is due."""
        wanted, refused = round_.wanted, round_.refused
        rest = [waiter for waiter in snapshot.order() if waiter.lease_id not in round_.granted]
        starts = {grant.lease_id: grant.start for grant in plan.placed}
        starts |= {estimate.lease_id: estimate.start for estimate in plan.estimates if estimate.start is not None}
        late = {
            estimate.lease_id: tell_too_late(wanted[estimate.lease_id].lease, estimate.start)
            for estimate in plan.estimates
            if estimate.start and not estimate.in_time
        }
        # One that gives up before it fits will probably not start at all.
        in_time = {id_: start for id_, start in starts.items() if id_ not in late}
        probably = {id_: snapshot.expected(wanted[id_].lease, start) for id_, start in in_time.items()}
        reasons = {**snapshot.reasons, **late, **{b.lease_id: b.reason for b in plan.blocked}, **refused}
        updates = [
            find_news(snapshot.now, wanted[waiter.lease_id].lease, position, probably.get(waiter.lease_id), reasons)
            for position, waiter in enumerate(rest, 1)
        ]
        updates += [find_news(snapshot.now, lease, None, None, reasons) for lease in snapshot.impossible.values()]
        coming = [from_epoch(start) for start in starts.values() if start > epoch(snapshot.now)]
        waiting_leases = [*(waiting_lease.lease for waiting_lease in snapshot.wanted), *snapshot.impossible.values()]
        ends = [lease.wait.gives_up_at for lease in waiting_leases if lease.wait]
        backoffs = [
            until for lease in waiting_leases if (until := waiting.backoff_until(lease)) and until > snapshot.now
        ]
        # Those behind a lease that could not be prepared have their turn at once.
        again = [snapshot.now] if any(self._backs_off(lease_id, snapshot.now) for lease_id in refused) else []
        due = min([*coming, *ends, *backoffs, *again, snapshot.now + DAILY])
        with suppress(StaleCalendar):
            # Another manager has planned meanwhile, and tells more.
            self._runtime.store.waiting_list.record_plan(
                state, due_at=due, updates=[update for update in updates if update is not None]
            )

    def _advance(self, lease: Lease, grant: Grant, *, turn: int) -> bool:
        """Move a promised start to an earlier one: an ordinary change, so that it is made as a whole or not at all.

        Return whether it was. ``turn`` is the version of the list: PlanSuperseded if another plan was carried out.
        """
        window = window_of(grant)
        earlier = lease.window.start - window.start
        change = LeaseChange(
            start=window.start,
            end=window.end,
            asked_by=Actor(lease.user_id, lease.project_id),
            revisions=(lease.revision,),
            extend_until=None if lease.extend is None else lease.extend.until - earlier,
            exact=True,
            advances=tuple(sorted({part.resource_id for part in grant.parts})),
            max_price=None if lease.wait is None else lease.wait.max_price,
            turn=turn,
        )
        try:
            moved = self._updates.update(lease.id, change)
        except PlanSuperseded:
            raise
        except BlazarError as error:
            # It keeps what was promised to it.
            LOG.info("Lease %s keeps its promised start: %s", lease.id, error.message)
            return False
        LOG.info("Lease %s starts earlier than promised, at %s", lease.id, moved.window.start)
        self._runtime.notifier.notify(ADVANCED, moved)
        metrics.PROMISES.add("advanced")
        self._runtime.signals.events_due()
        return True

    def _backs_off(self, lease_id: str, now: datetime) -> bool:
        try:
            until = waiting.backoff_until(self._runtime.store.leases.one(lease_id))
        except NotFound:
            return False
        return until is not None and until > now

    def _back_off(self, lease_id: str, error: BlazarError) -> None:
        """Have a lease that could not be booked let others go first; one that could not be prepared does so already."""
        store, now = self._runtime.store, self._runtime.clock.now()
        try:
            lease = store.leases.one(lease_id)
            if lease.status is LeaseStatus.WAITING and not self._backs_off(lease_id, now):
                store.leases.save(lease, waiting.back_off(lease, error.reason, now=now), at=now)
        except (NotFound, StaleLease):
            # It was deleted, or another manager has planned meanwhile.
            return

    def _add_failed_try(self, wanted: WaitingLease, why: TryFailure, text: str) -> None:
        """Record a try for which there were resources, of a lease whose tries are counted."""
        runtime, now, lease_id = self._runtime, self._runtime.clock.now(), wanted.lease.id
        if wanted.lease.kind is not LeaseKind.RETRIES:
            return
        try:
            lease = runtime.store.leases.one(lease_id)
            known = wanted.lease.wait
            if lease.status is not LeaseStatus.WAITING or lease.wait is None or known is None:
                return
            if len(lease.wait.failed) > len(known.failed):
                # It failed when it was prepared, and that is recorded.
                return
            saved = runtime.store.leases.save(
                lease, waiting.settle_failed_try(lease, FailedTry(now, why, text), now=now), at=now
            )
        except (NotFound, StaleLease):
            # It was deleted, or another manager has planned meanwhile.
            return
        if saved.status is LeaseStatus.TIMED_OUT:
            runtime.notifier.notify(TIMED_OUT, saved)

    def _grant(
        self,
        wanted: WaitingLease,
        grant: Grant,
        check: EnforcementCheck | None,
        *,
        turn: int,
        estimate: datetime,
        before: tuple[Grant, ...] | None = None,
    ) -> bool:
        """Book what a lease gets, and prepare it; return False if it has stopped waiting. BlazarError.

        ``turn`` is the version of the list: PlanSuperseded if another plan was carried out since. ``estimate`` is when
        it will probably start. ``before``: others get other hosts for it, but what is planned for those before it.
        """
        runtime, claim = self._runtime, self._runtime.claims.new()
        granted = GrantedLease(wanted, grant, claim, turn, estimate, before)
        try:
            done = self._booker.book(partial(self._propose, granted), checks=() if check is None else (check,))
        except _StoppedWaiting:
            return False
        with runtime.claims.held(claim), scope(limit=runtime.settings.request_limit):
            created = self._creation.prepare(done.leases[0], done.found, claim)
        runtime.notifier.notify(CREATED, created)
        if done.commit is not None:
            tell_moved(runtime, done.commit.leases[1:])
        note_wait(wanted.lease, "granted", runtime.clock.now())
        if created.is_promised:
            runtime.notifier.notify(PROMISED, created)
            metrics.PROMISES.add("made")
        runtime.signals.events_due()
        return True

    def _propose(self, granted: GrantedLease, attempt: int) -> Proposal[AllocationPlan]:
        """Propose what a lease gets. NotEnoughResources; _StoppedWaiting if it does not wait any more."""
        runtime, wanted, now = self._runtime, granted.wanted, self._runtime.clock.now()
        window = window_of(granted.grant)
        check_names(runtime, replace(wanted.lease, window=window))
        moved: Sequence[LeaseWrite] = ()
        if granted.before is not None:
            found = plan_turn(runtime, wanted, window, now, granted.before)
            plan, moved = found.plan, found.moved
        else:
            plan = self._plan_as_chosen(granted, window, now, attempt)
        lease = runtime.store.leases.one(wanted.lease.id)
        if lease.status is not LeaseStatus.WAITING:
            raise _StoppedWaiting
        token = granted.claim.token
        after = waiting.grant(lease, window, estimate=granted.estimate, token=token, now=now, until=now)
        commit = Commit(
            [LeaseWrite(lease, after, plan.allocations), *moved],
            at=now,
            generations=plan.generations,
            most=limit_prices([lease.id], None if lease.wait is None else lease.wait.max_price),
            turn=granted.turn,
        )
        return Proposal(plan, commit, (examine_grant(wanted, window, plan.allocations),), granted.claim)

    def _plan_as_chosen(self, granted: GrantedLease, window: Window, now: datetime, attempt: int) -> AllocationPlan:
        wanted = granted.wanted
        chosen = group_resources(granted.grant, wanted.requests)
        return plan_allocations(
            self._runtime,
            wanted.lease.id,
            window,
            [
                replace(request, demand=replace(request.demand, preferred=chosen[request.reservation_id]))
                for request in wanted.requests
            ],
            # Any other may be needed by one before it, whom the plan has given a place there.
            selectable=Selectable(wanted.lease.project_id, only=frozenset[int]().union(*chosen.values())),
            now=now,
            attempt=attempt,
            is_new=True,
        )


class _StoppedWaiting(Exception):
    """The lease does not wait any more."""
