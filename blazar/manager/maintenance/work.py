# SPDX-License-Identifier: Apache-2.0
"""The work on maintenance windows: leases are moved, owners told, hosts closed at the start and opened at the end.

Each window is claimed by one manager at a time. All steps are ensures: what a manager that dies has left is done again,
or found done, by another one. That a host was disabled by us is known from its mark in the cloud alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.notifications import MAINTENANCE, MOVED
from blazar.manager.common.runtime import Runtime
from blazar.manager.maintenance.migration import LeaseMigration, LeaseMigrator, Phase
from blazar.manager.maintenance.rebooking import LeaseRebooker
from blazar.model.base.errors import BlazarError, ClaimLost, CloudError, CloudUnavailable, NotFound, StaleCalendar
from blazar.model.base.log_lines import log_level
from blazar.model.journal.lease_entries import warn_of_maintenance
from blazar.model.leases.states import OVER
from blazar.model.maintenance.windows import (
    DAY,
    ELSEWHERE,
    LEFT,
    MARK,
    OPEN,
    ActivePolicy,
    LeasePlan,
    Maintenance,
    MaintenanceStatus,
    Outcome,
    PendingPolicy,
)
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.resources.contract.kind import Kind
from blazar.store.maintenance.windows import DueMaintenance

LOG = logging.getLogger(__name__)

SOON = timedelta(seconds=5)
"""When leases that were busy are tried again, and what the cloud did not do."""

AGAIN = timedelta(minutes=5)
"""How often it is tried to migrate a lease in use that stays."""

MOST_UNAVAILABLE = 3
"""For how many leases of a window the cloud may fail before the others wait for the next time."""

LATE = timedelta(seconds=30)
"""How often what was not migrated in time is looked at until it is in order."""

HOURLY = timedelta(hours=1)
"""How often it is tried to move what found nothing free, if nothing has changed."""

REST = timedelta(seconds=30)
"""How long that rests at least, whatever changes."""

Status = MaintenanceStatus


class MaintenanceWork(DueWork[DueMaintenance, DueMaintenance]):
    """Works on the maintenance windows that are due. Any number of managers may do so."""

    shortest = 0.1

    def __init__(
        self,
        runtime: Runtime,
        kinds: Mapping[ResourceKind, Kind],
        rebooker: LeaseRebooker,
        migrator: LeaseMigrator,
    ) -> None:
        purpose = "Maintenance windows cannot be worked on"
        super().__init__("maintenance", runtime, work=purpose, retry=SOON.total_seconds())
        self._store = runtime.store.maintenances
        self._plans = runtime.store.maintenance_plans
        self._kinds = kinds
        self._rebooker = rebooker
        self._migrator = migrator
        # A manager that has lost its claim sends nothing after this, and what it has sent before has taken effect.
        self._last_looks = (2 * runtime.settings.claim_ttl, HOURLY)
        # When this manager has tried last to migrate the leases of a window that stay. It need not know what others do.
        self._tried: dict[str, datetime] = {}
        # By window with leases that found nothing free: how the calendar was when this manager tried last, and when.
        self._seen: dict[str, tuple[str, datetime]] = {}

    def _due(self) -> Iterator[DueMaintenance]:
        found = self._store.due(self._runtime.clock.now())
        self._seen = {due.id: self._seen[due.id] for due in found if due.id in self._seen}
        for due in found:
            now = self._runtime.clock.now()
            if due.due_at <= now or self._is_changed(due, now):
                yield due

    def _next_due(self) -> datetime | None:
        return self._store.next_due()

    def _claim(self, due: DueMaintenance, claim: Claim) -> DueMaintenance | None:
        now = self._runtime.clock.now()
        if not self._store.claim(due, claim.token, until=self._runtime.claims.begin(claim)):
            return None
        if due.calendar is not None:
            self._seen[due.id] = due.calendar, now
        return due

    def _is_changed(self, due: DueMaintenance, now: datetime) -> bool:
        """Tell whether something may be free by now for leases of a window that found nothing."""
        if due.calendar is None:
            return False
        seen, at = self._seen.get(due.id, (None, now - REST))
        return seen != due.calendar and at + REST <= now

    def work(self, claimed: DueMaintenance, claim: Claim) -> None:
        """Do all that can be done for a claimed window now. StoreUnavailable."""
        id_, trouble = claimed.id, None
        with self._runtime.claims.held(claim), suppress(StaleCalendar):
            # An operator has changed it, or another manager has taken over: what is due then is written.
            try:
                following = self._progress(id_, claim)
            except StaleCalendar:
                raise
            except BlazarError as error:
                LOG.log(log_level(error, logging.WARNING), "Maintenance %s cannot go on yet: %s", id_, error.message)
                following, trouble = self._runtime.clock.now() + SOON, error.message
            except Exception as error:
                # The edge of one window: others go on whatever is wrong with this one.
                LOG.exception("Maintenance %s failed; it will be tried again", id_)
                following, trouble = self._runtime.clock.now() + SOON, f"internal error: {type(error).__name__}"
            self._store.release(id_, claim.token, due_at=following, trouble=trouble)

    def _progress(self, id_: str, claim: Claim) -> datetime | None:
        """Do all that can be done now; return when there is something to do next."""
        maintenance, clock = self._store.one(id_), self._runtime.clock
        kind, hosts = self._hosts(maintenance)
        if maintenance.status is Status.PLANNED and maintenance.window.start <= clock.now():
            maintenance = self._advance(maintenance, Status.STARTING, claim)
        if maintenance.status in (Status.STARTING, Status.ACTIVE) and maintenance.window.end <= clock.now():
            maintenance = self._advance(maintenance, Status.ENDING, claim)
        refused: CloudError | None = None
        try:
            if maintenance.status is Status.DONE:
                # A call of a manager that was stopped may have taken effect after the hosts were opened.
                self._open(maintenance, kind, hosts)
            if maintenance.status is Status.STARTING:
                maintenance = self._start(maintenance, kind, hosts, claim)
            if maintenance.status is Status.ENDING:
                maintenance = self._end(maintenance, kind, hosts, claim)
        except ClaimLost:
            raise
        except CloudError as error:
            # Leases that have not started are moved in the database alone, and may start before the cloud is back.
            refused = error
        busy = False
        if maintenance.status in OPEN and maintenance.pending is PendingPolicy.MOVE:
            busy = self._move(maintenance, frozenset(host.id for host in hosts), claim)
        later = self._tell(maintenance)
        # Also if hosts could not be closed or opened: leases must not keep two hosts for one until they can.
        times = [later, self._migrate(maintenance, frozenset(host.id for host in hosts), claim)]
        if refused is not None:
            raise refused
        return self._following(maintenance, [at for at in times if at is not None], busy=busy)

    def _following(self, maintenance: Maintenance, times: list[datetime], *, busy: bool) -> datetime | None:
        now = self._runtime.clock.now()
        if busy:
            times.append(now + SOON)
        if maintenance.status in OPEN:
            begun = maintenance.status is not Status.PLANNED
            times.append(maintenance.window.end if begun else maintenance.window.start)
            if any(plan.outcome in LEFT for plan in self._plans.load_plans(maintenance.id)):
                times.append(now + HOURLY)
        if maintenance.status is Status.DONE and maintenance.disable_service:
            ended = maintenance.updated_at or maintenance.window.end
            times += [at for wait in self._last_looks if (at := ended + wait) > now]
        return min(times, default=None)

    def _hosts(self, maintenance: Maintenance) -> tuple[ResourceKind, tuple[Resource, ...]]:
        kind = self._store.kind_of(maintenance.id)
        known = self._runtime.store.resources.by_ids(self._store.resource_ids(maintenance.id))
        return kind, tuple(known[id_] for id_ in sorted(known))

    def _advance(
        self, maintenance: Maintenance, status: Status, claim: Claim, **more: Mapping[int, int]
    ) -> Maintenance:
        after = self._store.advance(maintenance, status, claim.token, at=self._runtime.clock.now(), **more)
        LOG.info("Maintenance %s (%s) is %s", maintenance.id, maintenance.name, status)
        return after

    def _start(
        self, maintenance: Maintenance, kind: ResourceKind, hosts: tuple[Resource, ...], claim: Claim
    ) -> Maintenance:
        """Close the hosts, if that is asked for, and count their servers; these stay where they are."""
        plain = self._kinds[kind]
        with scope(limit=self._runtime.settings.poll_limit):
            if maintenance.disable_service:
                # What is registered no more is its operators' alone.
                registered = {resource.id for resource in self._runtime.store.resources.catalog(kind).resources}
                plain.close([host for host in hosts if host.id in registered], MARK + maintenance.id)
            servers = plain.occupants(hosts)
            try:
                return self._advance(maintenance, Status.ACTIVE, claim, servers=servers)
            except StaleCalendar:
                # It may have ended meanwhile, and another manager may have opened hosts before they were closed here.
                if maintenance.disable_service and self._store.one(maintenance.id).status not in OPEN:
                    plain.reopen(hosts, MARK + maintenance.id, self._marks({host.id for host in hosts}, maintenance))
                raise

    def _end(
        self, maintenance: Maintenance, kind: ResourceKind, hosts: tuple[Resource, ...], claim: Claim
    ) -> Maintenance:
        self._open(maintenance, kind, hosts)
        ended = self._advance(maintenance, Status.DONE, claim)
        self._runtime.signals.resources_opened()
        return ended

    def _open(self, maintenance: Maintenance, kind: ResourceKind, hosts: tuple[Resource, ...]) -> None:
        """Ensure that the hosts are open that this window has closed and no other one needs closed."""
        plain, ids = self._kinds[kind], {host.id for host in hosts}
        with scope(limit=self._runtime.settings.poll_limit):
            if maintenance.disable_service:
                others = self._marks(ids, maintenance)
                plain.reopen(hosts, MARK + maintenance.id, others)
                # One that has begun meanwhile has found them closed by this one.
                for mark in sorted({mark for id_, mark in self._marks(ids, maintenance).items() if id_ not in others}):
                    now = self._marks(ids, maintenance)
                    plain.close([host for host in hosts if now.get(host.id) == mark], mark)

    def _marks(self, ids: set[int], maintenance: Maintenance) -> Mapping[int, str]:
        return {id_: MARK + other for id_, other in self._store.find_closing(ids, besides=maintenance.id).items()}

    def _move(self, maintenance: Maintenance, hosts: frozenset[int], claim: Claim) -> bool:
        """Carry out the plans for leases, and try again what found nothing free; return whether any is busy.

        StaleCalendar as soon as an operator changes or deletes the window: the other leases stay.
        """
        plans = self._plans.load_plans(maintenance.id)
        planned = [plan for plan in plans if not plan.done and plan.outcome not in _MIGRATED]
        busy = False
        for plan in planned or [plan for plan in plans if plan.outcome in LEFT]:
            if self._stopping.is_set():
                return True
            self._store.check_claim(maintenance, claim.token)
            busy |= not self._rebooker.carry_out(maintenance, hosts, plan)
        return busy

    def _migrate(self, maintenance: Maintenance, hosts: frozenset[int], claim: Claim) -> datetime | None:
        """Move leases in use a step on, if the window says so and it is time; return when to go on.

        What has begun is brought to its end first, also when the window is over. What stays is tried again until the
        time for moves is over: servers may be unlocked, and hosts become free.
        """
        pace = self._migrator.pace
        if maintenance.active is not ActivePolicy.MIGRATE or pace is None:
            return None
        now, phase = self._runtime.clock.now(), Phase.of(maintenance, pace)
        plans = self._plans.load_plans(maintenance.id)
        going = [plan for plan in plans if plan.is_begun]
        waiting, staying = self._select_to_begin(maintenance, plans, phase, now)
        moving = elsewhere = 0
        unavailable: list[CloudUnavailable] = []
        if waiting or staying:
            others = self._plans.load_moving_elsewhere(maintenance.id, now=now, opened_since=now - pace.limit)
            elsewhere = sum(other.begun_hosts for other in others)
        for plan in [*going, *waiting, *staying]:
            if self._stopping.is_set():
                return now
            self._store.check_claim(maintenance, claim.token)
            room = max(0, pace.at_once - elsewhere - moving)
            try:
                migration = LeaseMigration(maintenance, hosts, plan, phase, claim.token)
                moving += self._migrator.step(migration, room=room)
            except ClaimLost:
                raise
            except CloudUnavailable as error:
                # It may be what this lease needs alone; if nothing answers, the others are not asked for in vain.
                unavailable.append(error)
                if len(unavailable) == MOST_UNAVAILABLE:
                    break
        told = self._tell(maintenance) if going else None
        if unavailable:
            raise unavailable[0]
        if moving or waiting:
            return self._runtime.clock.now() + (SOON if now < phase.until else LATE)
        if maintenance.status not in OPEN or now >= phase.until:
            return told
        if now < phase.since:
            return phase.since
        return min(now + AGAIN, phase.until)

    def _select_to_begin(
        self, maintenance: Maintenance, plans: Iterable[LeasePlan], phase: Phase, now: datetime
    ) -> tuple[list[LeasePlan], list[LeasePlan]]:
        """Return the plans for leases in use that wait for their migration, and those that stay and are tried again."""
        if maintenance.status in OPEN and now < phase.since:
            return [], []
        waiting = [plan for plan in plans if plan.outcome in _MIGRATED and not plan.done and not plan.is_begun]
        if now >= phase.until or not self._is_turn(maintenance, now):
            return waiting, []
        return waiting, [plan for plan in plans if plan.done and plan.outcome in _STARTED]

    def _is_turn(self, maintenance: Maintenance, now: datetime) -> bool:
        """Tell whether it is time to try again to migrate what stays, and note that it is done."""
        # A database may keep no fractions of seconds, and have it due a moment earlier.
        if self._tried.get(maintenance.id, now - AGAIN) + AGAIN > now + SOON:
            return False
        self._tried = {id_: at for id_, at in self._tried.items() if at + AGAIN > now} | {maintenance.id: now}
        return True

    def _tell(self, maintenance: Maintenance) -> datetime | None:
        """Tell the owners of leases what they do not know yet; return when to tell what must wait until then.

        Each content once, and at most one in a day, unless a lease in use has left hosts that it was said to keep; of a
        window that is over, only where leases are now. If a manager dies between the message and the note of it,
        another one repeats the message.
        """
        now = self._runtime.clock.now()
        waits: list[datetime] = []
        for plan in self._plans.load_plans(maintenance.id):
            if plan.is_told or not plan.done:
                continue
            if maintenance.status not in OPEN and plan.outcome not in ELSEWHERE:
                continue
            at_once = plan.outcome in _MIGRATED and plan.tells_of_keeping
            if plan.notified_at is not None and plan.notified_at + DAY > now and not at_once:
                waits.append(plan.notified_at + DAY)
                continue
            self._tell_one(maintenance, plan, now)
        return min(waits, default=None)

    def _tell_one(self, maintenance: Maintenance, plan: LeasePlan, now: datetime) -> None:
        try:
            lease = self._runtime.store.leases.one(plan.lease_id)
        except NotFound:
            self._plans.forget_plan(maintenance.id, plan.lease_id)
            return
        moved = plan.outcome in ELSEWHERE
        if not moved and (lease.status in OVER or not self._plans.is_affected(maintenance.id, lease.id)):
            # It has ended, or its owner has changed it meanwhile: there is nothing to know any more.
            return
        self._runtime.notifier.notify(MOVED if moved else MAINTENANCE, lease)
        # That it has other hosts is in its history since it got them.
        announces = None if moved else warn_of_maintenance(maintenance.window, str(plan.outcome))
        self._plans.note_message(maintenance.id, plan, lease, at=now, announces=announces)


_STARTED = (Outcome.ACTIVE, Outcome.PARTLY_MIGRATED, Outcome.STAYS, Outcome.NEEDS_OTHER_TIME)
"""What a lease that keeps hosts may have as its outcome when it has started."""
_MIGRATED = (Outcome.MIGRATED, Outcome.PARTLY_MIGRATED)
