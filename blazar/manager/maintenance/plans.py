# SPDX-License-Identifier: Apache-2.0
"""Plans of maintenance windows: reads the calendar once, decides, and says what that means for each lease."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from blazar.calendar import maintenance as pure
from blazar.calendar import openings
from blazar.calendar.maintenance import PromisedPiece
from blazar.calendar.openings import Budget, BudgetSpent, KindSearch
from blazar.calendar.timeline import Timeline, TimelineTerms, Use, epoch, from_epoch
from blazar.context import scope
from blazar.manager.booking.booking import Selectable, match_visible
from blazar.manager.booking.held_calendar import WAITING, HeldCalendar
from blazar.manager.common.runtime import Runtime
from blazar.manager.maintenance.migration import NO_HOST, read_load
from blazar.model.base.clock import END_OF_TIME, later
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.calendar.demand import Demand
from blazar.model.leases.lease import Lease
from blazar.model.maintenance.windows import ActivePolicy, AffectedLease, Impact, LeasePlan, Outcome, PendingPolicy
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.resources.contract.evacuation import Load
from blazar.resources.contract.values import Task
from blazar.store.maintenance.held_pieces import HeldPiece
from blazar.store.maintenance.plans import describe_affected
from blazar.store.resources.catalog import ResourceCatalog

MOST_SEARCHED = 20
"""Leases for which other times are searched: an operator reads no more, and a search takes its time."""

MOST_LOOKED_AT = 50
"""Hosts whose servers are looked at for an impact: each takes some calls."""

MOST_OPENINGS = 3
SEARCHED_AHEAD = timedelta(days=30)
PLACEMENTS = 200
"""What the search for one lease may cost."""


@dataclass(frozen=True, slots=True)
class MaintenanceDraft:
    """A plan, what it means, and the generations of its hosts that it was made on, by calendar id."""

    impact: Impact
    plans: tuple[LeasePlan, ...]
    hosts: Mapping[int, int]


class MaintenancePlanner:
    """Plans maintenance windows."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def draft(
        self,
        kind: ResourceKind,
        choose: HostChoice,
        window: Window,
        pending: PendingPolicy,
        *,
        now: datetime,
        active: ActivePolicy = ActivePolicy.LIST,
        besides: str | None = None,
    ) -> MaintenanceDraft:
        """Return the plan for a window over hosts of a kind; ``besides`` is the window that it takes the place of.

        A constant number of statements, and a few more if leases find no other host. InvalidInput if the hosts are
        none. What is over by now does not count: a window that has begun is planned from now on. CloudError if leases
        in use are to be migrated: the cloud is asked which servers they have.
        """
        with self._runtime.store.maintenances.open_planning(kind, now, besides=besides) as view:
            hosts = choose.of(view.catalog)
            generations = view.generations([host.id for host in hosts])
        board = HeldCalendar(self._runtime, kind, view, now)
        span = max(epoch(window.start), epoch(now)), epoch(window.end)
        ids = frozenset(host.id for host in hosts)
        used = board.used(ids, span) if active is ActivePolicy.MIGRATE else []
        loads = self._loads(used, board)

        def candidates(piece: PromisedPiece) -> Sequence[Resource]:
            found, load = board.candidates(piece), loads.get(piece)
            return found if load is None else [resource for resource in found if load.fits(resource)]

        notes = {piece: load.obstacle or NO_HOST for piece, load in loads.items()}
        plan = pure.plan_moves(
            board.held,
            candidates if used else board.candidates,
            board.closed,
            span,
            ids,
            move=pending is PendingPolicy.MOVE,
            used=[piece for piece in used if not loads[piece].obstacle],
        )
        plans = self._with_openings(_make_lease_plans(plan, board, pending, notes), board, hosts, span)
        return MaintenanceDraft(_make_impact(window, hosts, plans, board), tuple(plans), generations)

    def _loads(self, used: Sequence[PromisedPiece], board: HeldCalendar) -> Mapping[PromisedPiece, Load]:
        """Return what the servers of leases in use have of hosts, or why these keep them.

        Hosts beyond the first ones are looked at when it is time.
        """
        hosts = {resource.id: resource for resource in board.view.catalog.resources}
        leases = {lease.id: lease for lease in self._runtime.store.leases.by_ids({piece.lease_id for piece in used})}
        found: dict[PromisedPiece, Load] = {}
        with scope(limit=self._runtime.settings.request_limit):
            for number, piece in enumerate(used):
                lease, host = leases.get(piece.lease_id), hosts.get(piece.resource_id)
                reservation = None if lease is None else lease.reservation(piece.reservation_id)
                if lease is None or reservation is None or host is None:
                    found[piece] = Load(obstacle="it has changed a moment ago")
                elif board.is_named(piece):
                    found[piece] = Load(obstacle=f"it has asked for {host.name} by its name")
                elif number >= MOST_LOOKED_AT and self._runtime.type_of(reservation).pace is not None:
                    found[piece] = Load()
                else:
                    found[piece] = read_load(self._runtime, Task(lease, reservation, (host,), {host.id: 1}), host)
        return found

    def _with_openings(
        self, plans: Sequence[LeasePlan], board: HeldCalendar, hosts: Collection[Resource], span: pure.Span
    ) -> Sequence[LeasePlan]:
        """Return plans with starts near their own at which leases fit that find no host, and have nothing else."""
        searched = [plan.lease_id for plan in plans if plan.outcome is Outcome.NEEDS_OTHER_TIME][:MOST_SEARCHED]
        if not searched:
            return plans
        uses = board.uses
        for host in hosts:
            uses[host.id] = sorted([*uses.get(host.id, ()), (*span, 1, None)], key=lambda use: use[0])
        found = {}
        for lease in self._runtime.store.leases.by_ids(searched):
            if demands := board.demands_of(lease):
                found[lease.id] = self._near(lease, demands, board.without(lease.id, uses), board)
        return [replace(plan, openings=found.get(plan.lease_id, ())) for plan in plans]

    def _near(
        self, lease: Lease, demands: Sequence[Demand], uses: Mapping[int, Sequence[Use]], board: HeldCalendar
    ) -> tuple[datetime, ...]:
        catalog = board.view.catalog
        now = epoch(self._runtime.clock.now())
        whole = all(demand.whole for demand in demands)
        cleaning = int(self._runtime.store.calendar.cleaning_time.total_seconds())
        timeline = Timeline(uses, TimelineTerms(now, cleaning, whole))
        budget = Budget(PLACEMENTS)
        search = KindSearch(
            demands,
            timeline,
            catalog.resources,
            match_visible(catalog, Selectable(lease.project_id)),
            budget,
            self._runtime.settings.strategy_of(board.kind),
        )
        wanted, length = epoch(lease.window.start), int(lease.window.duration.total_seconds())
        latest = epoch(later(lease.window.end, SEARCHED_AHEAD))
        try:
            nearest = openings.find_nearest([search], length=length, wanted=wanted, earliest=now, latest=latest)
            after = openings.search_openings(
                [search], budget, length=length, earliest=wanted, latest=latest, limit=MOST_OPENINGS - 1
            )
        except (BudgetSpent, InvalidInput):
            return ()
        starts = {opening.start for opening in after.openings} | ({nearest} if nearest is not None else set())
        return tuple(from_epoch(start) for start in sorted(starts))


@dataclass(frozen=True, slots=True)
class HostChoice:
    """Which hosts are meant: by their ids, or all that meet a requirement."""

    ids: tuple[str, ...] = ()
    requirement: object = None
    calendar_ids: frozenset[int] | None = None

    def of(self, catalog: ResourceCatalog) -> tuple[Resource, ...]:
        """Return the hosts. InvalidInput names those that are not registered, and a requirement that none meets."""
        if self.calendar_ids is not None:
            return tuple(resource for resource in catalog.resources if resource.id in self.calendar_ids)
        if self.ids:
            known = {resource.external_id: resource for resource in catalog.resources}
            if missing := sorted(set(self.ids) - known.keys()):
                raise InvalidInput(
                    f"hosts has {', '.join(id_[:80] for id_ in missing[:3])}, which is not registered; give ids as "
                    "GET /v1/os-hosts shows them",
                    code="unknown_reference",
                    at="/hosts",
                )
            return tuple(known[id_] for id_ in sorted(set(self.ids)))
        found = tuple(catalog.matching(self.requirement))  # type: ignore[arg-type]
        if not found:
            raise InvalidInput(
                "requirement is met by no registered host; give another one, or hosts", at="/requirement"
            )
        return found


def _make_lease_plans(
    plan: pure.MovePlan, board: HeldCalendar, pending: PendingPolicy, notes: Mapping[PromisedPiece, str]
) -> list[LeasePlan]:
    """Return what becomes of each lease, in the order in which leases can be moved; ``notes`` say why they stay."""
    moves: dict[str, list[pure.PieceMove]] = {}
    stuck: dict[str, list[PromisedPiece]] = defaultdict(list)
    for move in plan.moves:
        moves.setdefault(move.piece.lease_id, []).append(move)
    for piece in (*plan.fixed, *plan.left):
        if not board.rows[piece].released:
            stuck[piece.lease_id].append(piece)
    order = list(dict.fromkeys((*moves, *sorted(stuck, key=lambda id_: (stuck[id_][0].start, id_)))))
    return [
        _make_lease_plan(number, id_, moves.get(id_, ()), stuck.get(id_, ()), board, pending, notes)
        for number, id_ in enumerate(order)
    ]


def _make_lease_plan(
    number: int,
    lease_id: str,
    moves: Sequence[pure.PieceMove],
    stuck: Sequence[PromisedPiece],
    board: HeldCalendar,
    pending: PendingPolicy,
    notes: Mapping[PromisedPiece, str],
) -> LeasePlan:
    targets: dict[str, dict[int, dict[int, int]]] = defaultdict(dict)
    migrates = any(move.piece in notes for move in moves)
    for move in moves:
        # Which host a lease in use gets is decided when it gets it.
        targets[move.piece.reservation_id][move.piece.resource_id] = {} if migrates else dict(move.targets)
    for piece in stuck:
        targets[piece.reservation_id].setdefault(piece.resource_id, {})
    outcome = _decide_outcome(moves, [board.rows[piece] for piece in stuck], pending)
    if migrates:
        outcome = Outcome.PARTLY_MIGRATED if stuck else Outcome.MIGRATED
    return LeasePlan(
        lease_id,
        outcome,
        number,
        targets,
        makes_room=bool(moves) and all(move.makes_room for move in moves) and not stuck,
        done=not moves,
        content=None if moves else str(outcome),
        note="; ".join(dict.fromkeys(notes[piece] for piece in stuck if piece in notes)) or None,
    )


def _decide_outcome(moves: Sequence[pure.PieceMove], stuck: Sequence[HeldPiece], pending: PendingPolicy) -> Outcome:
    if moves:
        return Outcome.PARTLY_MOVED if stuck else Outcome.MOVED
    if any(row.lease_status not in WAITING for row in stuck):
        return Outcome.ACTIVE
    return Outcome.STAYS if pending is PendingPolicy.LEAVE else Outcome.NEEDS_OTHER_TIME


def _make_impact(window: Window, hosts: Sequence[Resource], plans: Sequence[LeasePlan], board: HeldCalendar) -> Impact:
    names = {resource.id: resource.external_id for resource in board.view.catalog.resources}
    rows: dict[str, HeldPiece] = {}
    for row in board.rows.values():
        rows.setdefault(row.lease_id, row)
    leases = tuple(describe_affected(_lease_of(plan, rows[plan.lease_id]), plan, names) for plan in plans)
    ids = tuple(sorted(host.external_id for host in hosts))
    said = [
        window.start.isoformat(),
        window.end.isoformat(),
        ids,
        sorted(
            (
                lease.lease_id,
                lease.revision,
                str(lease.outcome),
                [(m.reservation_id, m.source, m.target, m.count) for m in lease.moves],
            )
            for lease in leases
        ),
    ]
    digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]
    shown = tuple(sorted(leases, key=lambda lease: (lease.window.start, lease.lease_id)))
    return Impact(digest, window, ids, shown)


def _lease_of(plan: LeasePlan, row: HeldPiece) -> AffectedLease:
    end = min(from_epoch(max(row.end, row.start + 1)), END_OF_TIME)
    ids, window = (row.project_id, row.user_id), Window(from_epoch(row.start), end)
    return AffectedLease(plan.lease_id, row.lease_revision, row.name, *ids, window, row.lease_status, plan.outcome)
