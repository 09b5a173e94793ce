# SPDX-License-Identifier: Apache-2.0
"""The calendar as a plan that moves leases needs it: what they hold, and what their reservations ask for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from blazar.calendar import maintenance as pure
from blazar.calendar.maintenance import PromisedPiece
from blazar.calendar.timeline import Use, epoch
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import BlazarError
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.calendar.topology import lie_alike
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.resources.contract.regional import in_region
from blazar.store.maintenance.held_pieces import HeldPiece
from blazar.store.maintenance.windows import PlanningView
from blazar.store.resources.catalog import ResourceCatalog

WAITING = frozenset({str(LeaseStatus.PENDING), str(LeaseStatus.CREATING)})
"""Leases that have not started."""


@dataclass(slots=True)
class HeldCalendar:
    """The pieces that leases hold of resources of a kind, with what their reservations ask for."""

    runtime: Runtime
    kind: ResourceKind
    view: PlanningView
    now: datetime
    rows: dict[PromisedPiece, HeldPiece] = field(default_factory=dict)
    _demands: dict[tuple[str, str, str], Demand | None] = field(default_factory=dict)
    _candidates: dict[tuple[str, str, str, str, int | None], list[Resource]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = {resource.id: resource.name for resource in self.view.catalog.resources}
        now, restricted = epoch(self.now), self.view.catalog.restricted
        for row in self.view.pieces:
            demand = self._demand(row) if self._waits(row) else None
            movable = demand is not None and names.get(row.resource_id) not in demand.required
            end = max(row.clean_at, now + 1) if not row.released else row.clean_at
            self.rows[
                PromisedPiece(
                    row.lease_id,
                    row.reservation_id,
                    row.resource_id,
                    row.start,
                    max(end, row.start + 1),
                    row.count,
                    row.per_instance,
                    Affinity.ANY if demand is None else demand.affinity,
                    movable,
                    # What another one can be for a lease in use depends on its servers.
                    ""
                    if row.lease_status == str(LeaseStatus.ACTIVE)
                    else "\0".join(
                        (row.resource_type, row.region, row.parameters, row.project_id if restricted else "")
                    ),
                    row.keep_hosts,
                )
            ] = row

    @property
    def held(self) -> Iterable[PromisedPiece]:
        """Return all pieces."""
        return self.rows.keys()

    @property
    def closed(self) -> Mapping[int, Sequence[pure.Span]]:
        """Return the other maintenance windows."""
        return {
            id_: [(epoch(block.window.start), epoch(block.window.end)) for block in found]
            for id_, found in self.view.closed.items()
        }

    @property
    def uses(self) -> dict[int, list[Use]]:
        """Return what is on each resource, other maintenance windows among it, in the order of time."""
        found: dict[int, list[Use]] = defaultdict(list)
        for piece in self.rows:
            found[piece.resource_id].append((piece.start, piece.end, piece.count, piece.per_instance))
        for id_, spans in self.closed.items():
            found[id_] += [(start, end, 1, None) for start, end in spans]
        for uses in found.values():
            uses.sort(key=lambda use: use[0])
        return found

    def without(self, lease_id: str, uses: Mapping[int, list[Use]]) -> Mapping[int, list[Use]]:
        """Return uses without those of a lease."""
        left: dict[int, list[Use]] = {}
        for piece in self.rows:
            if piece.lease_id == lease_id:
                id_ = piece.resource_id
                left[id_] = list(left.get(id_, uses[id_]))
                left[id_].remove((piece.start, piece.end, piece.count, piece.per_instance))
        return {**uses, **left}

    def candidates(self, piece: PromisedPiece) -> Sequence[Resource]:
        """Return the resources that a piece could have, the smallest first."""
        row = self.rows[piece]
        project = row.project_id if self.view.catalog.restricted else ""
        demand = self._demand(row)
        # What lies in some way to the rest of its reservation stays where it is, as a rack or a switch goes.
        here = self.view.catalog.by_id.get(piece.resource_id) if demand is not None and demand.topology else None
        key = row.resource_type, row.region, row.parameters, project, None if here is None else here.id
        if key not in self._candidates:
            found = [] if demand is None else self.view.catalog.matching(demand.requirement)
            self._candidates[key] = [
                r
                for r in found
                if demand is not None
                and r.reservable
                and demand.is_met_by(r)
                and (not project or r.is_open_to(project))
                and (here is None or lie_alike(demand.topology, here, r))
            ]
        return self._candidates[key]

    def demands_of(self, lease: Lease) -> list[Demand] | None:
        """Return the demands of a lease; None if it also has what is of another kind."""
        found = []
        for reservation in lease.reservations:
            known = self.runtime.types.get(reservation.resource_type)
            if known is None:
                return None
            if known.has("children"):
                continue
            if known.kind != self.kind:
                return None
            demand = self._asked(reservation.resource_type, reservation.region, reservation.parameters)
            if demand is None:
                return None
            found.append(demand)
        return found

    def used(self, hosts: frozenset[int], span: pure.Span) -> list[PromisedPiece]:
        """Return what leases in use have of hosts in a span."""
        active = str(LeaseStatus.ACTIVE), str(ReservationStatus.ACTIVE)
        return [
            piece
            for piece, row in self.rows.items()
            if piece.resource_id in hosts
            and piece.meets(span)
            and not row.released
            and (row.lease_status, row.status) == active
        ]

    def find_demand(self, piece: PromisedPiece) -> Demand | None:
        """Return what the reservation of a piece asks for; None if that is not known."""
        return self._demand(self.rows[piece])

    def is_named(self, piece: PromisedPiece) -> bool:
        """Tell whether a lease has asked for just this resource."""
        demand = self.find_demand(piece)
        names = {resource.id: resource.name for resource in self.view.catalog.resources}
        return demand is not None and names.get(piece.resource_id) in demand.required

    def _waits(self, row: HeldPiece) -> bool:
        return not row.released and row.lease_status in WAITING and row.status == str(ReservationStatus.PENDING)

    def _demand(self, row: HeldPiece) -> Demand | None:
        key = row.resource_type, row.region, row.parameters
        if key not in self._demands:
            content = Content(json.loads(row.parameters))
            self._demands[key] = self._asked(row.resource_type, row.region, content)
        return self._demands[key]

    def _asked(self, resource_type: str, region: str, parameters: Content) -> Demand | None:
        return read_demand(self.runtime, self.view.catalog, resource_type, region, parameters)


def read_demand(
    runtime: Runtime, catalog: ResourceCatalog, resource_type: str, region: str, parameters: Content
) -> Demand | None:
    """Return what a reservation asks for; None if its type is not enabled, or its request no longer valid."""
    known = runtime.types.get(resource_type)
    if known is None or known.has("children"):
        return None
    try:
        demand = known.demand(parameters, known=catalog.property_names())
    except BlazarError:
        return None
    return in_region(demand, region) if region else demand
