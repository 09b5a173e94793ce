# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: operators book hosts out for a time, over existing leases."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model.base.clock import zulu
from blazar.model.base.errors import NotFound
from blazar.model.base.json_text import Json
from blazar.model.base.moments import Duration, Moment
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.leases.states import OVER, LeaseStatus

MARK = "blazar maintenance "
"""What the reason of a compute service begins with that is disabled for a maintenance: the id follows."""


class MaintenanceStatus(StrEnum):
    """The states of a maintenance window."""

    PLANNED = "PLANNED"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    ENDING = "ENDING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"


OPEN = (MaintenanceStatus.PLANNED, MaintenanceStatus.STARTING, MaintenanceStatus.ACTIVE)
"""States in which the window can still change."""

BEGUN = (MaintenanceStatus.STARTING, MaintenanceStatus.ACTIVE, MaintenanceStatus.ENDING)
"""States in which work on the hosts is expected: what polls find of them does not count."""


class PendingPolicy(StrEnum):
    """What becomes of leases that have not started."""

    MOVE = "move"
    """They get other hosts where that is possible, at the same time."""
    LEAVE = "leave"


class ActivePolicy(StrEnum):
    """What becomes of leases that have started."""

    LIST = "list"
    """They keep their hosts, and are listed."""
    MIGRATE = "migrate"
    """Their servers are moved live to other hosts that they get instead, where that is possible."""


class Outcome(StrEnum):
    """What a maintenance window means for a lease."""

    MOVED = "moved"
    PARTLY_MOVED = "partly_moved"
    """Some of its hosts are replaced; for the others nothing is free."""
    NEEDS_OTHER_TIME = "needs_other_time"
    """It keeps its hosts, as nothing else is free in its time."""
    STAYS = "stays"
    """It keeps its hosts, as the operator wants."""
    ACTIVE = "active"
    """It has started, and keeps its hosts."""
    MIGRATED = "migrated"
    """It has started; its servers are moved to other hosts, which it gets instead."""
    PARTLY_MIGRATED = "partly_migrated"
    """It has started; some of its hosts are replaced, and it keeps the others."""


ELSEWHERE = (Outcome.MOVED, Outcome.PARTLY_MOVED, Outcome.MIGRATED, Outcome.PARTLY_MIGRATED)
"""What leaves a lease, when it is done, with other hosts."""


KEEPING = (Outcome.NEEDS_OTHER_TIME, Outcome.STAYS, Outcome.ACTIVE)
"""What leaves a lease with hosts that will be in maintenance: its owner is told the same of each."""

LEFT = (Outcome.NEEDS_OTHER_TIME, Outcome.PARTLY_MOVED)
"""What is tried again, as something may be free later."""


@dataclass(frozen=True, slots=True)
class HostMove:
    """A count of a reservation that leaves a host for another, both by their ids in the API."""

    reservation_id: str
    source: str
    target: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class AffectedLease:
    """A lease that a maintenance window affects, and what becomes of it.

    ``makes_room``: it has no host in maintenance, and is moved so that another can be. ``done``: what is planned has
    been carried out. ``openings`` are starts near its own at which it fits. ``told_at`` is when its owner was told.
    ``note`` is why a lease that has started keeps hosts, or how far the moves of its servers are.
    """

    lease_id: str
    revision: int
    name: str
    project_id: str
    user_id: str
    window: Window
    status: str
    outcome: Outcome
    hosts: tuple[str, ...] = ()
    moves: tuple[HostMove, ...] = ()
    openings: tuple[datetime, ...] = ()
    makes_room: bool = False
    done: bool = False
    told_at: datetime | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Impact:
    """What a maintenance window would do. ``id`` changes with anything that it says."""

    id: str
    window: Window
    hosts: tuple[str, ...]
    leases: tuple[AffectedLease, ...]

    @property
    def summary(self) -> Mapping[str, int]:
        """Return how many leases have each outcome."""
        return {str(outcome): sum(lease.outcome is outcome for lease in self.leases) for outcome in Outcome}


@dataclass(frozen=True, slots=True)
class MaintenanceHost:
    """A host of a maintenance window. ``servers`` is how many it ran at the start; None: not known."""

    id: str
    name: str
    servers: int | None = None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance window. ``trouble`` is why its last step could not be made; it is tried again."""

    id: str
    name: str
    reason: str | None
    window: Window
    status: MaintenanceStatus
    hosts: tuple[MaintenanceHost, ...]
    requirement: str | None
    pending: PendingPolicy
    disable_service: bool
    revision: int
    created_at: datetime
    updated_at: datetime | None = None
    trouble: str | None = None
    leases: tuple[AffectedLease, ...] = ()
    active: ActivePolicy = ActivePolicy.LIST


@dataclass(frozen=True, slots=True)
class MaintenanceRequest:
    """A request for a maintenance window: its hosts by id, or all that meet a requirement.

    ``impact_id`` is that of an impact that was shown: another impact refuses the request.
    """

    name: str
    start: Moment
    end: datetime | Duration
    hosts: tuple[str, ...] = ()
    requirement: str | None = None
    reason: str | None = None
    pending: PendingPolicy = PendingPolicy.MOVE
    disable_service: bool = False
    impact_id: str | None = None
    active: ActivePolicy = ActivePolicy.LIST


@dataclass(frozen=True, slots=True)
class MaintenanceChange:
    """A change of a maintenance window; what is None stays. ``revisions`` are those that it is made for."""

    name: str | None = None
    start: Moment | None = None
    end: datetime | Duration | None = None
    impact_id: str | None = None
    revisions: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The impact of a request, and the maintenance window unless it was a dry run."""

    impact: Impact
    maintenance: Maintenance | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceQuestion:
    """A page of maintenance windows, of some states only if given."""

    page: Page
    statuses: tuple[MaintenanceStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class MaintenancePage:
    """A page of maintenance windows, without their leases."""

    items: tuple[Maintenance, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceBlock:
    """The time for which a resource is in maintenance."""

    resource_id: int
    window: Window
    maintenance_id: str = ""
    reason: str | None = None


DAY = timedelta(days=1)
"""An owner is told at most once in this time of changes by the same maintenance window."""


def unknown_maintenance(id_: str) -> NotFound:
    """Return the error for a maintenance window that does not exist."""
    return NotFound(
        f"Maintenance window {id_[:80]} not found; see the list for their ids", code="maintenance_not_found"
    )


Targets = dict[str, dict[int, dict[int, int]]]


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """What is stored of a lease in a maintenance window, by calendar ids, to be carried out.

    ``targets`` are, by reservation and the host to leave, the hosts to take with the counts; ``content`` says what the
    owner should know, ``notified`` what it has been told.
    """

    lease_id: str
    outcome: Outcome
    position: int
    targets: Mapping[str, Mapping[int, Mapping[int, int]]] = field(default_factory=dict)
    openings: tuple[datetime, ...] = ()
    makes_room: bool = False
    done: bool = False
    content: str | None = None
    notified: str | None = None
    notified_at: datetime | None = None
    note: str | None = None

    @property
    def is_begun(self) -> bool:
        """Whether the lease has got hosts to which its servers are being moved."""
        moving = self.outcome is Outcome.MIGRATED and not self.done
        return moving and any(targets for sources in self.targets.values() for targets in sources.values())

    @property
    def begun_hosts(self) -> int:
        """From how many hosts servers of the lease are being moved."""
        return sum(len(t) for sources in self.targets.values() for t in sources.values()) if self.is_begun else 0

    def copy_targets(self) -> Targets:
        """Return the targets, to be changed."""
        return {id_: {s: dict(t) for s, t in sources.items()} for id_, sources in self.targets.items()}

    @property
    def tells_of_keeping(self) -> bool:
        """Whether the owner was told last that the lease keeps hosts that will be in maintenance."""
        return _keeps(self.notified)

    @property
    def is_told(self) -> bool:
        """Whether the owner has been told the content, or the same in other words."""
        return self.content is None or self.content == self.notified or (_keeps(self.content) and self.tells_of_keeping)


def _keeps(content: str | None) -> bool:
    """Tell whether what is said of a lease, which begins with its outcome, is that it keeps its hosts."""
    return content is not None and content.partition(":")[0] in KEEPING


_PARTLY = {Outcome.PARTLY_MOVED: Outcome.MOVED, Outcome.PARTLY_MIGRATED: Outcome.MIGRATED}
_STARTED = frozenset({LeaseStatus.STARTING, LeaseStatus.ACTIVE, LeaseStatus.TERMINATING, LeaseStatus.ERROR})


def adjust_plan(
    plan: LeasePlan, status: LeaseStatus, held: Mapping[str, Collection[int]], *, is_open: bool
) -> LeasePlan | None:
    """Return a plan for a lease as things are; None if it says of the lease what is not so any more.

    ``held`` are the hosts of the window that each reservation has in its time, for a window that is not open those that
    it has had. Where a lease has gone to, and what is still to be done, stays as it is written.
    """
    if not plan.done:
        # That it is given up is written by who carries the plans out.
        return None if is_open and status in OVER and not plan.is_begun else plan
    if plan.outcome not in (*KEEPING, *_PARTLY):
        return plan
    kept = {} if is_open and status in OVER else {id_: ids for id_, ids in held.items() if ids}
    left = {id_: {s: t for s, t in sources.items() if t} for id_, sources in plan.targets.items()}
    moved = any(left.values())
    if not (kept or moved):
        return None
    targets = {
        id_: {**left.get(id_, {}), **{s: {} for s in kept.get(id_, ()) if s not in left.get(id_, {})}}
        for id_ in sorted({*left, *kept})
    }
    outcome, note = plan.outcome, plan.note
    if not kept:
        outcome, note = _PARTLY.get(outcome, outcome), None
    elif outcome in (Outcome.STAYS, Outcome.NEEDS_OTHER_TIME) and status in _STARTED:
        outcome = Outcome.ACTIVE
    return replace(plan, outcome=outcome, targets={id_: found for id_, found in targets.items() if found}, note=note)


def impact_json(impact: Impact) -> Json:
    """Return what a maintenance window would do."""
    return {
        "id": impact.id,
        "start_date": zulu(impact.window.start),
        "end_date": zulu(impact.window.end),
        "hosts": list(impact.hosts),
        "summary": dict(impact.summary),
        "leases": [affected_lease_json(lease) for lease in impact.leases],
    }


def affected_lease_json(lease: AffectedLease) -> Json:
    """Return what becomes of a lease."""
    return {
        "lease_id": lease.lease_id,
        "name": lease.name,
        "project_id": lease.project_id,
        "user_id": lease.user_id,
        "start_date": zulu(lease.window.start),
        "end_date": zulu(lease.window.end),
        "status": lease.status,
        "outcome": str(lease.outcome),
        "makes_room": lease.makes_room,
        "hosts": list(lease.hosts),
        "moves": [
            {
                "reservation_id": move.reservation_id,
                "from_host": move.source,
                "to_host": move.target,
                "count": move.count,
            }
            for move in lease.moves
        ],
        "openings": [zulu(opening) for opening in lease.openings],
        "done": lease.done,
        "told_at": None if lease.told_at is None else zulu(lease.told_at),
        "note": lease.note,
    }


def maintenance_json(maintenance: Maintenance) -> Json:
    """Return a maintenance window, without its leases."""
    changed = maintenance.updated_at
    return {
        "id": maintenance.id,
        "name": maintenance.name,
        "reason": maintenance.reason,
        "start_date": zulu(maintenance.window.start),
        "end_date": zulu(maintenance.window.end),
        "status": str(maintenance.status),
        "hosts": [{"id": host.id, "name": host.name, "servers": host.servers} for host in maintenance.hosts],
        "requirement": maintenance.requirement,
        "pending": str(maintenance.pending),
        "active": str(maintenance.active),
        "disable_service": maintenance.disable_service,
        "trouble": maintenance.trouble,
        "revision": maintenance.revision,
        "created_at": zulu(maintenance.created_at),
        "updated_at": None if changed is None else zulu(changed),
    }
