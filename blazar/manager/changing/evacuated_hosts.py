# SPDX-License-Identifier: Apache-2.0
"""Which hosts are emptied for a lease of the kind ``best_effort`` that cannot be placed otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

from blazar.calendar.evacuation.values import EvacuationPlan, NotEnough, ObstacleKind
from blazar.context import scope
from blazar.manager.booking.booking import Selectable, match_visible
from blazar.manager.changing.new_leases import NewLease
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.evacuation import find_elsewhere
from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.base.reasons import spell_count
from blazar.model.base.values import dataclass

_WHY: Mapping[ObstacleKind, str] = {
    ObstacleKind.SERVER: "on {} a server may not be moved",
    ObstacleKind.BUILDING: "servers are being booted on {}",
    ObstacleKind.ROOM: "no other hosts have room for all servers of {}",
    ObstacleKind.TIME: "it would take too long to move the servers of {}",
}


@dataclass(frozen=True, slots=True)
class EvacuatedHosts:
    """The hosts that are emptied for a lease, by calendar id, and how long that may take."""

    resource_ids: frozenset[int]
    limit: timedelta


class HostsToEvacuate:
    """Chooses hosts to be emptied; nothing is moved or written here."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def check(self, new: NewLease) -> None:
        """Raise InvalidInput if room cannot be made for a lease of this form."""
        if self._runtime.regions:
            raise InvalidInput("where there are several regions no room is made; use another kind", at="/kind")
        types = {r.resource_type for r in new.lease.reservations}
        if len(new.lease.reservations) != 1 or self._runtime.types[next(iter(types))].room_limit is None:
            raise InvalidInput(
                "a lease of the kind best_effort has one reservation of whole hosts; make another lease for the rest",
                at="/reservations",
            )

    def choose(self, new: NewLease) -> EvacuatedHosts:
        """Return the hosts to empty for a lease to get its least number; NotEnoughResources says what hinders it."""
        (request,) = new.placement_requests
        demand, lease = request.demand, new.lease
        kind = self._runtime.types[lease.reservations[0].resource_type]
        assert kind.room_limit is not None
        with self._runtime.store.calendar.view_window(
            demand.kind, lease.window, without_amounts=True, now=self._runtime.clock.now(), besides=None
        ) as view:
            taken = view.snapshot.occupancy.taken.union(view.snapshot.occupancy.peaks)
            every = [r for r in view.catalog.matching(demand.requirement) if r.is_open_to(lease.project_id)]
            free = match_visible(view.catalog, Selectable(lease.project_id))(demand.requirement)
            ready = sum(r.reservable and r.id not in taken for r in free)
        hosts = [
            r
            for r in every
            if r.evacuable and not (r.disabled or r.withdrawn or r.failure is not None or r.id in taken)
        ]
        needed = demand.min_count - ready
        if needed <= 0:
            # Something has become free since.
            return EvacuatedHosts(frozenset(), kind.room_limit)
        with scope(limit=self._runtime.settings.request_limit):
            found = kind.plan_room(hosts, needed, find_elsewhere(self._runtime))
        if isinstance(found, EvacuationPlan):
            return EvacuatedHosts(frozenset(found.resource_ids), kind.room_limit)
        raise _refusal(found, ready)

    def check_others(self, project_id: str) -> None:
        """Raise NotEnoughResources while room is being made for another lease of the project.

        That is before the cloud is asked; the booking makes sure of it.
        """
        self._runtime.store.bookings.check_not_evacuating(project_id)


def _refusal(found: NotEnough, ready: int) -> NotEnoughResources:
    """Return why too few hosts can be emptied: operators read which servers and hosts, everybody else how many."""
    hosts: dict[ObstacleKind, list[str]] = defaultdict(list)
    for obstacle in found.obstacles:
        hosts[obstacle.kind].append(obstacle.host)
    head = f"{spell_count(found.needed + ready, 'host')} needed, {ready} free, and {found.found} that can be emptied"
    servers = [
        f"server {obstacle.server_id} on {obstacle.host} may not be moved: {obstacle.why}"
        for obstacle in found.obstacles
        if obstacle.kind is ObstacleKind.SERVER
    ]
    named = [_WHY[kind].format(_join_names(names)) for kind, names in hosts.items() if kind is not ObstacleKind.SERVER]
    counted = [_WHY[kind].format(spell_count(len(names), "host")) for kind, names in hosts.items()]
    return NotEnoughResources("; ".join([head, *servers, *named]), public="; ".join([head, *counted]))


def _join_names(names: Sequence[str]) -> str:
    """Return names as a sentence has them: ``a, b and c``."""
    *others, last = sorted(names)
    return f"{', '.join(others)} and {last}" if others else last
