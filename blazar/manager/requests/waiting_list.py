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
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.queue.plan import Direct
from blazar.calendar.queue.values import Grant, Waiter
from blazar.calendar.queue.values import Plan as PlanOfList
from blazar.calendar.timeline import Use, instant, second
from blazar.context import scope
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.notifications import ADVANCED, CREATED, PROMISED, TIMED_OUT, WAITING
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease import waiting
from blazar.manager.lease.booking import Booking, PlacementRequest
from blazar.manager.outbox.enforcing import EnforcementCheck
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.creation import Creation
from blazar.manager.requests.names import check_names
from blazar.manager.requests.new_leases import NewLease, Turn
from blazar.manager.requests.updates import Updates
from blazar.manager.requests.waiting_board import Board, Boards, Wanted
from blazar.model.clock import said, zulu
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import (
    BlazarError,
    CloudError,
    Contention,
    NotEnoughResources,
    NotFound,
    OthersWait,
    PlanSuperseded,
    StaleCalendar,
    StaleLease,
    UsageDenied,
)
from blazar.model.exceeded import Exceeded
from blazar.model.lease import FailedTry, Lease, LeaseKind, LeaseStatus, TryFailure, Wait
from blazar.model.requests import Actor, LeaseChange
from blazar.model.resource import ResourceKind
from blazar.model.trouble import level_of
from blazar.model.window import Window
from blazar.store.waiting_list import ListState, Told

LOG = logging.getLogger(__name__)

DAILY = timedelta(hours=1)
"""A plan is made that often at least, as what it tells of becomes outdated by itself."""

UNDER_WAY = timedelta(seconds=20)
"""How long other managers wait for what a plan grants to be booked: then they make another plan."""


class WaitingList(BackgroundThread):
    """Queues leases, and grants what they wait for; any number of managers may do so at a time."""

    def __init__(
        self, runtime: Runtime, booking: Booking, creation: Creation, updates: Updates, outbox: Outbox
    ) -> None:
        super().__init__("waiting-list", work="The waiting list cannot be planned")
        self._runtime = runtime
        self._booking = booking
        self._creation = creation
        self._updates = updates
        self._enforcement = outbox.enforcement
        self._boards = Boards(runtime)
        self._adding = threading.Lock()

    # What requests need.

    def add(self, new: NewLease, place: Wait) -> Lease:
        """Have a lease wait for its turn. InvalidInput, UsageDenied, KeyTaken."""
        store, now = self._runtime.store, self._runtime.clock.now()
        # One after the other, so that simultaneous requests do not pass the limit together.
        with self._adding:
            lease = self.preview(new, place)
            bounds = None if self._enforcement.exempts(lease.project_id) else self._runtime.settings.bounds
            booked = store.calendar.book(lease, Plan((), {}), bounds=bounds, now=now, key=new.key)
        self._runtime.notifier.notify(WAITING, booked)
        self.wake()
        return booked

    def preview(self, new: NewLease, place: Wait) -> Lease:
        """Return a lease as it would wait for its turn; nothing is written. UsageDenied if too many wait."""
        store = self._runtime.store
        settings = self._runtime.settings
        lease = waiting.queued(new.lease, place)
        mine, _ = store.waiting_list.count(lease.project_id)
        if mine >= settings.max_waiting and not self._enforcement.exempts(lease.project_id):
            limit = Exceeded("waiting_per_project", "leases", settings.max_waiting, 1, mine)
            raise limit.denied(
                f"{mine} leases of the project wait already; the limit is {settings.max_waiting} "
                "(waiting_per_project); delete one of them, or wait until one has its turn",
                pointer="/wait",
            )
        return lease

    def turns(self, options: Sequence[NewLease]) -> tuple[Turn, ...]:
        """Return in which of the regions that may be tried a lease that does not wait takes nothing from one that does.

        OthersWait if that is so in none, or NotEnoughResources if those who wait could not have it either. One
        statement if nobody waits, none for a lease that takes no resources.
        """
        if not options[0].placement_requests or not self._runtime.store.waiting_list.anybody():
            return tuple(Turn(option) for option in options)
        board = self._boards.board(options[0].placement_requests)
        found = [(option, board.direct(option.lease, option.placement_requests)) for option in options]
        refused = [each for _, each in found if each.grant is None and each.awaited]
        allowed = tuple(
            Turn(option, _resources(each.grant, option.placement_requests))
            for option, each in found
            if each.grant is not None
        )
        if refused and not allowed:
            first = max(refused, key=lambda each: each.before)
            raise _others_wait(first) if first.before else NotEnoughResources(_NOTHING_FREE)
        # Where nobody waits and nothing fits, that is for the booking to say.
        return allowed or tuple(Turn(option) for option in options)

    def taken(self, kinds: Collection[ResourceKind]) -> Mapping[ResourceKind, Mapping[int, Sequence[Use]]]:
        """Return what those who wait for resources of these kinds will probably get, by kind and resource.

        OthersWait if so many wait that this is not known of all. One statement if nobody waits.
        """
        if not self._runtime.store.waiting_list.anybody():
            return {}
        board = self._boards.board()
        plan = board.plan(lambda *_: None)
        unknown = {each.lease_id for each in plan.estimates if each.rough}
        asked = [each for each in board.wanted if any(request.demand.kind in kinds for request in each.requests)]
        if before := sum(each.lease.id in unknown for each in asked):
            raise OthersWait(
                f"{len(asked)} leases wait for the same resources; try again when fewer do", data={"before": before}
            )
        found: dict[ResourceKind, dict[int, list[Use]]] = defaultdict(lambda: defaultdict(list))
        for grant in (*plan.advance, *plan.placed):
            for part in grant.parts:
                cleaning = board.calendar[part.kind].cleaning
                use = grant.start, grant.end + cleaning, part.count, part.per_instance
                found[part.kind][part.resource_id].append(use)
        return {kind: found[kind] for kind in kinds if kind in found}

    def is_awaited(self, lease: Lease) -> bool:
        """Return whether somebody waits for a resource of a lease, and can have it in time.

        One statement if nobody waits.
        """
        store = self._runtime.store
        if not store.waiting_list.anybody():
            return False
        mine = {(each.kind, each.resource_id) for each in store.calendar.of_lease(lease.id)}
        return not mine.isdisjoint(self._boards.board().awaited())

    # The work of the list.

    def run_once(self) -> int:
        """Make and carry out a plan if one is due; return how many leases it granted or moved. StoreUnavailable."""
        store, now = self._runtime.store, self._runtime.clock.now()
        if not store.waiting_list.any_work():
            return 0
        state = store.waiting_list.state()
        if not state.is_due(now):
            return 0
        board = self._boards.board()
        given_up = self._give_up(board)
        if given_up:
            kept = tuple(each for each in board.wanted if each.lease.id not in given_up)
            board = replace(board, wanted=kept)
        try:
            return self._carry_out(board, state)
        except StaleCalendar:
            LOG.debug("Another manager planned the waiting list meanwhile")
            return 0

    def _give_up(self, board: Board) -> frozenset[str]:
        """End the waiting of leases whose time is over; return their ids."""
        over = [each.lease for each in board.wanted if not waiting.can_wait(each.lease, board.now)]
        over += [lease for lease in board.hopeless.values() if not waiting.can_wait(lease, board.now)]
        for lease in over:
            try:
                saved = self._runtime.store.leases.save(lease, waiting.timed_out(lease, now=board.now), at=board.now)
            except StaleLease:
                # It was deleted, or another manager has done so.
                continue
            self._runtime.notifier.notify(TIMED_OUT, saved)
        return frozenset(lease.id for lease in over)

    def _carry_out(self, board: Board, state: ListState) -> int:
        store, wanted = self._runtime.store, {each.lease.id: each for each in board.wanted}
        checks: dict[str, EnforcementCheck] = {}
        denied: set[str] = set()

        def denies(waiter: Waiter, grant: Grant, _: Sequence[Grant]) -> str | None:
            if not self._enforcement.enabled:
                return None
            checks[waiter.lease_id] = EnforcementCheck(self._enforcement, store, self._runtime.clock)
            error = self._denial(wanted[waiter.lease_id], grant, checks[waiter.lease_id])
            if isinstance(error, UsageDenied):
                denied.add(waiter.lease_id)
            return None if error is None else error.public or error.message

        plan = board.plan(denies)
        ready = (*plan.start_now, *plan.promise)
        refused: dict[str, str] = {}
        granted: set[str] = set()
        for blocked in plan.blocked:
            if blocked.lease_id in denied:
                self._failed_try(wanted[blocked.lease_id], TryFailure.DENIED, blocked.reason)
        if ready or plan.advance:
            # If this manager dies now, another one makes the next plan soon.
            state = store.waiting_list.carry_out(state, due_at=board.now + UNDER_WAY, told=())
        promised, moved = {each.lease.id: each.lease for each in board.promised}, 0
        for grant in plan.advance:
            # First, as what they leave may be granted to others.
            if self._stopping.is_set():
                return moved
            try:
                moved += self._advance(promised[grant.lease_id], grant, turn=state.version)
            except PlanSuperseded:
                LOG.debug("Another manager planned the waiting list before lease %s was moved", grant.lease_id)
                return moved
        for grant in ready:
            if self._stopping.is_set():
                return len(granted) + moved
            try:
                asked, check = wanted[grant.lease_id], checks.get(grant.lease_id)
                estimate = instant(board.expected(asked.lease, grant.start))
                if self._grant(asked, grant, check, turn=state.version, estimate=estimate):
                    granted.add(grant.lease_id)
            except PlanSuperseded:
                LOG.debug("Another manager planned the waiting list before lease %s was granted", grant.lease_id)
                return len(granted) + moved
            except NotEnoughResources:
                LOG.debug("Lease %s is not granted at its turn: others were faster", grant.lease_id)
            except Contention as error:
                LOG.info("Lease %s is not granted at its turn: others were faster at each attempt", grant.lease_id)
                refused[grant.lease_id] = error.message
                self._failed_try(wanted[grant.lease_id], TryFailure.OTHERS_FASTER, error.message)
            except UsageDenied as error:
                refused[grant.lease_id] = error.public or error.message
                self._failed_try(wanted[grant.lease_id], TryFailure.DENIED, refused[grant.lease_id])
            except BlazarError as error:
                LOG.log(
                    level_of(error, logging.WARNING),
                    "Lease %s is not granted at its turn: %s",
                    grant.lease_id,
                    error.message,
                )
                prepared = not isinstance(error, CloudError)
                refused[grant.lease_id] = (error.public or error.message) if prepared else waiting.NOT_PREPARED
                self._let_rest(grant.lease_id, error)
        self._tell(board, plan, state, granted, refused)
        return len(granted) + moved

    def _tell(
        self, board: Board, plan: PlanOfList, state: ListState, granted: Collection[str], refused: Mapping[str, str]
    ) -> None:
        """Record what those that still wait are told, and when the next plan is due."""
        wanted = {each.lease.id: each for each in board.wanted}
        rest = [each for each in board.order() if each.lease_id not in granted]
        starts = {each.lease_id: each.start for each in plan.placed}
        starts |= {each.lease_id: each.start for each in plan.estimates if each.start is not None}
        late = {
            each.lease_id: _too_late(wanted[each.lease_id].lease, each.start)
            for each in plan.estimates
            if each.start and not each.in_time
        }
        # One that gives up before it fits will probably not start at all.
        in_time = {id_: start for id_, start in starts.items() if id_ not in late}
        probably = {id_: board.expected(wanted[id_].lease, start) for id_, start in in_time.items()}
        reasons = {**board.reasons, **late, **{each.lease_id: each.reason for each in plan.blocked}, **refused}
        told = [
            _told(board.now, wanted[each.lease_id].lease, position, probably.get(each.lease_id), reasons)
            for position, each in enumerate(rest, 1)
        ]
        told += [_told(board.now, lease, None, None, reasons) for lease in board.hopeless.values()]
        coming = [instant(start) for start in starts.values() if start > second(board.now)]
        waiting_leases = [*(each.lease for each in board.wanted), *board.hopeless.values()]
        ends = [lease.wait.ends_at for lease in waiting_leases if lease.wait]
        rested = [until for lease in waiting_leases if (until := waiting.rests_until(lease)) and until > board.now]
        # Those behind a lease that could not be prepared have their turn at once.
        again = [board.now] if any(self._rests(lease_id, board.now) for lease_id in refused) else []
        due = min([*coming, *ends, *rested, *again, board.now + DAILY])
        with suppress(StaleCalendar):
            # Another manager has planned meanwhile, and tells more.
            self._runtime.store.waiting_list.carry_out(
                state, due_at=due, told=[each for each in told if each is not None]
            )

    def _advance(self, lease: Lease, grant: Grant, *, turn: int) -> bool:
        """Move a promised start to an earlier one: an ordinary change, so that it is made as a whole or not at all.

        Return whether it was. ``turn`` is the version of the list: PlanSuperseded if another plan was carried out.
        """
        window = _window(grant)
        earlier = lease.window.start - window.start
        change = LeaseChange(
            start=window.start,
            end=window.end,
            asked_by=Actor(lease.user_id, lease.project_id),
            revisions=(lease.revision,),
            extend_until=None if lease.extend is None else lease.extend.until - earlier,
            exact=True,
            advances=tuple(sorted({part.resource_id for part in grant.parts})),
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
        self._runtime.wake()
        return True

    def _rests(self, lease_id: str, now: datetime) -> bool:
        try:
            until = waiting.rests_until(self._runtime.store.leases.one(lease_id))
        except NotFound:
            return False
        return until is not None and until > now

    def _let_rest(self, lease_id: str, error: BlazarError) -> None:
        """Have a lease that could not be booked let others go first; one that could not be prepared does so already."""
        store, now = self._runtime.store, self._runtime.clock.now()
        try:
            lease = store.leases.one(lease_id)
            if lease.status is LeaseStatus.WAITING and not self._rests(lease_id, now):
                store.leases.save(lease, waiting.rested(lease, error.reason, now=now), at=now)
        except (NotFound, StaleLease):
            # It was deleted, or another manager has planned meanwhile.
            return

    def _failed_try(self, wanted: Wanted, why: TryFailure, text: str) -> None:
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
            saved = runtime.store.leases.save(lease, waiting.refused(lease, FailedTry(now, why, text), now=now), at=now)
        except (NotFound, StaleLease):
            # It was deleted, or another manager has planned meanwhile.
            return
        if saved.status is LeaseStatus.TIMED_OUT:
            runtime.notifier.notify(TIMED_OUT, saved)

    def _denial(self, wanted: Wanted, grant: Grant, check: EnforcementCheck) -> BlazarError | None:
        """Return why enforcement denies a grant, or cannot be asked; None if it grants it."""
        window = _window(grant)
        chosen = [(wanted.requests[part.demand].reservation_id, part) for part in grant.parts]
        allocations = [
            Allocation(part.kind, part.resource_id, grant.lease_id, id_, window, part.count, part.per_instance)
            for id_, part in chosen
        ]
        try:
            _check(check, replace(wanted.lease, window=window), allocations)
        except BlazarError as error:
            return error
        return None

    def _grant(
        self, wanted: Wanted, grant: Grant, check: EnforcementCheck | None, *, turn: int, estimate: datetime
    ) -> bool:
        """Book what a lease gets, and prepare it; return False if it has stopped waiting. BlazarError.

        ``turn`` is the version of the list: PlanSuperseded if another plan was carried out since. ``estimate`` is when
        it will probably start.
        """
        runtime, claim = self._runtime, self._runtime.claims.new()
        window = _window(grant)
        chosen = _resources(grant, wanted.requests)
        requests = tuple(
            replace(request, demand=replace(request.demand, preferred=chosen[request.reservation_id]))
            for request in wanted.requests
        )

        def granted(now: datetime, until: datetime) -> tuple[Lease, Lease]:
            lease = runtime.store.leases.one(wanted.lease.id)
            if lease.status is not LeaseStatus.WAITING:
                raise _Gone
            after = waiting.granted(lease, window, estimate=estimate, token=claim.token, now=now, until=until)
            return lease, after

        def find(attempt: int) -> Plan:
            now = runtime.clock.now()
            check_names(runtime, replace(wanted.lease, window=window))
            return self._booking.plan(
                wanted.lease.id,
                window,
                requests,
                now=now,
                attempt=attempt,
                project_id=wanted.lease.project_id,
                is_new=True,
                # Any other may be needed by one before it, whom the plan has given a place there.
                only=frozenset[int]().union(*chosen.values()),
            )

        def book(plan: Plan) -> tuple[Lease, Plan]:
            now = runtime.clock.now()
            before, after = granted(now, runtime.claims.begin(claim))
            use = None if check is None else check.use
            return runtime.store.calendar.rebook(before, after, plan, at=now, use=use, turn=turn), plan

        def judge(plan: Plan) -> None:
            assert check is not None
            _check(check, replace(wanted.lease, window=window), plan.allocations)

        try:
            booked, plan = self._booking.until_it_holds(find, book, None if check is None else judge)
        except _Gone:
            return False
        with runtime.claims.held(claim), scope(limit=runtime.settings.request_limit):
            created = self._creation.prepare(booked, plan, claim)
        runtime.notifier.notify(CREATED, created)
        if created.is_promised:
            runtime.notifier.notify(PROMISED, created)
        runtime.wake()
        return True

    def _round(self) -> float:
        self.run_once()
        return self._runtime.settings.longest_sleep.total_seconds()


def _window(grant: Grant) -> Window:
    return Window(instant(grant.start), instant(grant.end))


def _check(check: EnforcementCheck, lease: Lease, allocations: Collection[Allocation]) -> None:
    """Raise UsageDenied, or another error, unless a lease may be booked."""
    check.check(Actor(lease.user_id, lease.project_id), lease, allocations)


class _Gone(Exception):
    """The lease does not wait any more."""


def _told(
    now: datetime, lease: Lease, position: int | None, start: int | None, reasons: Mapping[str, str]
) -> Told | None:
    """Return what is new to a lease that goes on waiting; None if nothing is."""
    assert lease.wait is not None
    reason = reasons.get(lease.id)
    estimate = None if start is None else instant(start)
    begin = max(estimate or now.replace(microsecond=0), lease.wait.earliest)
    window = Window(begin, begin + (lease.window.end - lease.window.start))
    before = lease.wait.position, lease.wait.estimate, lease.wait.reason
    if before == (position, estimate, reason) and (estimate is None or lease.window == window):
        return None
    return Told(lease.id, position, estimate, window.start, window.end, reason)


def _too_late(lease: Lease, start: int) -> str:
    """Return that a lease stops waiting, or may not start any more, before it fits."""
    wait = lease.wait
    assert wait is not None
    if wait.latest is not None and wait.latest < wait.until:
        bound = f"it is to start at {said(wait.latest)} UTC at the latest"
    else:
        bound = f"it waits only until {said(wait.until)} UTC"
    return f"it would fit from {said(instant(start))} UTC on, but {bound}"


_NOTHING_FREE = "not enough is free for it, and what becomes free is for those who wait; ask for less, or wait, too"


def _others_wait(found: Direct) -> OthersWait:
    opening = None if found.opening is None else instant(found.opening)
    when = "no later start is known that fits" if opening is None else f"it fits from {said(opening)} UTC on"
    return OthersWait(
        f"{found.before} {'lease waits' if found.before == 1 else 'leases wait'} for the same resources and would be "
        f"delayed; {when}; ask for another time, or wait for your turn with wait",
        data={"before": found.before, "opening": None if opening is None else zulu(opening)},
    )


def _resources(grant: Grant, requests: Sequence[PlacementRequest]) -> dict[str, frozenset[int]]:
    """Return the resources of a grant, by reservation."""
    return {
        request.reservation_id: frozenset(part.resource_id for part in grant.parts if part.demand == number)
        for number, request in enumerate(requests)
    }
