# SPDX-License-Identifier: Apache-2.0
"""Empties hosts by moving servers: those of others, for a reservation, to hosts that are open to all; and those of a
reservation itself to another of its hosts.

Nothing is stored between two looks: Nova says which servers are left, what moves, and what has failed. While a host is
emptied of the servers of others it is in the freepool, so that the scheduler filter lets nobody boot there. One that is
emptied of those of its reservation stays in that, and is looked at until none is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from blazar.calendar.evacuation.plan import FreeRoom, estimate_duration, make_bundles, pack, plan_evacuation
from blazar.calendar.evacuation.values import EvacuationCandidate, EvacuationPlan, HostedServer, NotEnough, TargetHost
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Hypervisor
from blazar.clouds.ports.evacuation import HostRoom, Move, MovePhase
from blazar.clouds.ports.evacuation import Occupant as Server
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.values import dataclass, replace
from blazar.model.resources.resource import Resource
from blazar.resources.contract.evacuation import Elsewhere, Load, MovedServer
from blazar.resources.contract.values import Done, NotYet, Progress, Task
from blazar.resources.hosts.aggregates.freepool import Freepool
from blazar.resources.hosts.evacuation_options import EvacuationSettings
from blazar.resources.hosts.movable_servers import Within, make_hosted_server

LOG = logging.getLogger(__name__)

LOOK_AGAIN = timedelta(seconds=5)
LAST_LOOK = timedelta(seconds=2)

MOST_FAILURES = 3
"""To how many hosts a server is tried to be moved for one lease."""

MOST_CANDIDATES = 16
"""How many hosts are looked at for one lease, besides four for each that is needed."""

CAUSE = Cause(ReasonCode.MAKING_ROOM)


@dataclass(frozen=True, slots=True)
class _Look:
    """What is on the hosts to be emptied, by hostname: servers, moves that are not over, and room."""

    servers: Mapping[str, Sequence[Server]]
    moves: Mapping[str, Sequence[Move]]
    rooms: Mapping[str, HostRoom]

    @property
    def is_empty(self) -> bool:
        """Tell whether Nova and Placement both say that nothing is left."""
        held = any(room.consumers for room in self.rooms.values())
        return not (held or any(self.servers.values()) or any(self.moves.values()))

    @property
    def left(self) -> int:
        """Return how many servers are left."""
        return sum(map(len, self.servers.values()))

    @property
    def open_moves(self) -> tuple[Move, ...]:
        """Return the moves that are not over, each once."""
        return tuple({move.id: move for found in self.moves.values() for move in found}.values())


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be moved for a lease: ``open_`` are the hosts that may take servers, ``targets`` the room on them.

    ``within``: the servers are those of the reservation, and have but one host to go to. ``since``: failures before do
    not count.
    """

    lease_id: str
    open_: Collection[Hypervisor]
    targets: Callable[[], Sequence[TargetHost]]
    headroom: int
    since: datetime
    within: Within | None = None


class Emptying:
    """Plans and does what empties hosts."""

    def __init__(self, cloud: Cloud, freepool: Freepool, settings: EvacuationSettings) -> None:
        self._evacuation = cloud.evacuation
        self._compute = cloud.compute
        self._freepool = freepool
        self._settings = settings
        # Reservations whose hosts were seen empty once. A manager that does not know that looks once more.
        self._seen: set[str] = set()

    def plan_evacuation(
        self, hosts: Collection[Resource], needed: int, elsewhere: Elsewhere
    ) -> EvacuationPlan | NotEnough:
        """Return how so many of these hosts are emptied, or why that cannot be. CloudUnavailable."""
        counts = self._compute.count_servers()
        up = {h.service_name for h in self._compute.hypervisors() if h.up and h.enabled}
        usable = [host for host in hosts if _service_name(host) in up]
        usable.sort(key=lambda host: (counts.get(_service_name(host), 0), host.id))
        looked_at = usable[: MOST_CANDIDATES + 4 * needed]
        seen = self._look_at_hosts(looked_at)
        found = [
            _evacuation_candidate(host, seen, self._settings.never) for host in looked_at if host.name in seen.rooms
        ]
        others = self._look_at_hosts(elsewhere.emptied)
        both = _Look({**seen.servers, **others.servers}, others.moves, {})
        targets = self._list_targets(self._freepool.open_hosts(), elsewhere, both)
        left = [
            _remaining_host(_evacuation_candidate(host, others, self._settings.never), others)
            for host in elsewhere.emptied
        ]
        return plan_evacuation(found, targets, self._settings.rules, needed=needed, under_way=left)

    def make_room(self, task: Task, elsewhere: Elsewhere) -> Progress:
        """Ensure that the evacuable hosts of a reservation are in the freepool and have no servers.

        Nobody waits here: it begins moves, and says NotYet until the hosts were seen empty twice.
        """
        hosts = _evacuable_hosts(task)
        if hosts:
            self._freepool.ensure_in(*map(_service_name, hosts))
        seen = self._look_at_hosts(hosts)
        if seen.is_empty:
            return self._empty_hosts(task)
        self._seen.discard(task.reservation.id)
        self._confirm_moves(seen.open_moves)
        open_ = self._freepool.open_hosts()
        targets = partial(self._list_targets, open_, elsewhere, seen)
        job = _Job(task.lease.id, open_, targets, self._settings.rules.headroom, task.lease.created_at)
        troubles = self._begin_moves(job, seen)
        hosts_with = [host for host, servers in seen.servers.items() if servers]
        where = ", ".join(sorted(hosts_with if seen.left else seen.servers))
        count = "1 server of others is" if seen.left == 1 else f"{seen.left} servers of others are"
        text = f"{count} still on {where}" if seen.left else f"servers are leaving {where}"
        return NotYet(LOOK_AGAIN, "; ".join([text, *troubles]), replace(CAUSE, servers=seen.left))

    def stop_and_leave_freepool(self, task: Task) -> Progress:
        """Ensure that nothing is moved any more, and that the evacuable hosts are out of the freepool.

        What was moved stays where it is: moving it twice would do more harm.
        """
        hosts = _evacuable_hosts(task)
        self._seen.discard(task.reservation.id)
        stopped = self.stop_moves(hosts)
        if hosts and isinstance(stopped, Done):
            self._freepool.ensure_out(*map(_service_name, hosts))
        return stopped

    def load_of_host(self, task: Task, host: Resource) -> Load:
        """Return what the servers on a host of a reservation have together, or why they cannot be moved."""
        seen = self._look_at_hosts([host])
        here = frozenset(server.id for server in seen.servers[host.name])
        within, never = Within(task.reservation.id, task.lease.project_id), self._settings.never
        found = [make_hosted_server(server, here, never, within=within) for server in seen.servers[host.name]]
        for hosted_server in found:
            if hosted_server.obstacle:
                return Load(
                    obstacle=f"server {hosted_server.id} on {host.name} cannot be moved: {hosted_server.obstacle}"
                )
        if (
            estimate_duration([EvacuationCandidate(host.id, host.name, tuple(found))], self._settings.rules)
            > self._settings.rules.limit
        ):
            return Load(obstacle=f"it would take too long to move the servers of {host.name}")
        amounts = sum((server.amounts for server in found), Amounts())
        return Load(amounts, frozenset[str]().union(*(server.traits for server in found)))

    def move_servers_within(self, task: Task, source: Resource, target: Resource, since: datetime) -> Progress:
        """Ensure that the servers of a host of a reservation move to another one of it; Done when none is left."""
        both = self._look_at_hosts([source, target])
        seen = _Look({source.name: both.servers[source.name]}, {source.name: both.moves[source.name]}, {})
        self._confirm_moves(seen.open_moves)
        if seen.is_empty:
            return Done()
        open_ = [h for h in self._compute.hypervisors() if h.service_name == _service_name(target)]
        job = _Job(
            task.lease.id,
            open_,
            lambda: self._measure_room(open_, both),
            0,
            since,
            Within(task.reservation.id, task.lease.project_id),
        )
        troubles = self._begin_moves(job, seen)
        count = "1 server is" if seen.left == 1 else f"{seen.left} servers are"
        text = f"{count} still on {source.name}" if seen.left else f"servers are leaving {source.name}"
        return NotYet(LOOK_AGAIN, "; ".join([text, *troubles]), replace(CAUSE, servers=seen.left))

    def stop_moves(self, hosts: Collection[Resource]) -> Progress:
        """Ensure that no server moves from or to hosts any more: moves are aborted, or else awaited."""
        going = [move for host in hosts for move in self._evacuation.open_moves(_service_name(host))]
        for move in going:
            if move.can_be_aborted:
                try:
                    self._evacuation.begin_move_abort(move.server_id, move.id)
                except (NotFound, Conflict) as error:
                    # It is over by now, or beyond its point of return: the next look finds out.
                    LOG.info("The move of server %s cannot be aborted: %s", move.server_id, error.message)
        self._confirm_moves(going)
        if going and (left := sum(len(self._evacuation.open_moves(_service_name(host))) for host in hosts)):
            return NotYet(LOOK_AGAIN, f"{left} moves of servers are not over yet", CAUSE)
        return Done()

    def moved_servers(self, task: Task) -> tuple[MovedServer, ...]:
        """Return the servers that were moved off the evacuable hosts since the lease was made, by whichever manager.

        Those that their owners have deleted since are left out.
        """
        done = {
            move.server_id: move
            for host in _evacuable_hosts(task)
            for move in self._evacuation.moves_since(_service_name(host), task.lease.created_at)
            if move.phase is MovePhase.COMPLETED
        }
        owners = self._evacuation.owners(done) if done else {}
        return tuple(
            MovedServer(id_, owners[id_].project_id, owners[id_].user_id, move.live, move.changed_at)
            for id_, move in done.items()
            if id_ in owners
        )

    def _look_at_hosts(self, hosts: Collection[Resource]) -> _Look:
        # Moves before servers: one that arrives in between is on neither list otherwise.
        moves = {host.name: self._evacuation.open_moves(_service_name(host)) for host in hosts}
        found = self._evacuation.occupants(*map(_service_name, hosts)) if hosts else ()
        servers = {host.name: tuple(server for server in found if server.host == _service_name(host)) for host in hosts}
        return _Look(servers, moves, self._evacuation.rooms([host.name for host in hosts]))

    def _empty_hosts(self, task: Task) -> Progress:
        if task.reservation.id in self._seen:
            self._seen.discard(task.reservation.id)
            return Done()
        # A server that passed the scheduler before the host came into the freepool shows up now.
        self._seen.add(task.reservation.id)
        return NotYet(LAST_LOOK, "the hosts are empty, and are looked at once more", CAUSE)

    def _list_targets(self, hosts: Collection[Hypervisor], elsewhere: Elsewhere, seen: _Look) -> tuple[TargetHost, ...]:
        """Return those of the open hosts that may take servers: first those that no lease is ever to have."""
        open_ = [host for host in hosts if host.hypervisor_hostname not in elsewhere.avoided]
        open_.sort(key=lambda host: host.hypervisor_hostname in elsewhere.last)
        return self._measure_room(open_, seen)

    def _measure_room(self, open_: Collection[Hypervisor], seen: _Look) -> tuple[TargetHost, ...]:
        """Return what room hosts have."""
        rooms = self._evacuation.rooms([host.hypervisor_hostname for host in open_])
        every = {server.id: server for found in seen.servers.values() for server in found}
        groups = {s.group.id: s.group.members for s in every.values() if s.group is not None}
        found = []
        for host in open_:
            room = rooms.get(host.hypervisor_hostname)
            if room is None:
                continue
            there = room.consumers.keys()
            # Placement knows those that have just been sent there a moment later.
            sent = [m.server_id for m in seen.open_moves if m.target == host.service_name and m.server_id not in there]
            used = sum((every[id_].amounts for id_ in sent if id_ in every), room.used)
            kept = frozenset(id_ for id_, members in groups.items() if members & there)
            found.append(
                TargetHost(host.hypervisor_hostname, room.inventory.capacity, used, room.inventory.traits, kept)
            )
        return tuple(found)

    def _begin_moves(self, job: _Job, seen: _Look) -> list[str]:
        """Begin as many moves as may run at the same time; return what keeps others from being begun."""
        rules = self._settings.rules
        services = {host.hypervisor_hostname: host.service_name for host in job.open_}
        waiting = self._hosts_with_waiting_servers(job, seen)
        troubles = [f"server {o.id} cannot be moved: {o.obstacle}" for h in waiting for o in h.occupants if o.obstacle]
        movable = [replace(h, occupants=tuple(o for o in h.occupants if not o.obstacle)) for h in waiting]
        if not any(host.occupants for host in movable):
            return troubles
        places = _place_servers(movable, job.targets(), job.headroom)
        running = {name: len(found) for name, found in seen.moves.items()}
        for host in movable:
            for server in host.occupants:
                if server.id not in places:
                    troubles.append(f"server {server.id} cannot be moved: no host has room for it")
                elif running[host.name] < rules.per_host and sum(running.values()) < rules.in_all:
                    try:
                        self._evacuation.begin_move(server.id, services[places[server.id]], live=server.live)
                    except NotFound:
                        # Its owner has just deleted it.
                        continue
                    except (Conflict, CloudRefused) as error:
                        troubles.append(f"server {server.id} was not moved: {error.message}")
                        continue
                    running[host.name] += 1
                    LOG.info(
                        "Server %s of project %s is moved from %s to %s for lease %s",
                        server.id,
                        server.project_id,
                        host.name,
                        places[server.id],
                        job.lease_id,
                    )
        return troubles

    def _hosts_with_waiting_servers(self, job: _Job, seen: _Look) -> list[EvacuationCandidate]:
        """Return the hosts with the servers that do not move yet."""
        names = {host.service_name: host.hypervisor_hostname for host in job.open_}
        moving = {move.server_id for move in seen.open_moves}
        return [
            EvacuationCandidate(
                0,
                name,
                tuple(
                    self._exclude_failed_targets(server, frozenset(s.id for s in servers), job, names)
                    for server in servers
                    if server.id not in moving
                ),
            )
            for name, servers in seen.servers.items()
        ]

    def _exclude_failed_targets(
        self, server: Server, here: frozenset[str], job: _Job, names: Mapping[str, str]
    ) -> HostedServer:
        """Return a server with the hosts to which it could not be moved, unless there is but one."""
        failed = [
            move
            for move in self._evacuation.moves_of(server.id)
            if move.started_at >= job.since and move.phase in (MovePhase.FAILED, MovePhase.CANCELLED)
        ]
        tried = frozenset(names[target] for move in failed if (target := move.target or "") in names)
        avoid = tried if job.within is None else frozenset[str]()
        found = make_hosted_server(server, here, self._settings.never, avoid=avoid, within=job.within)
        if len(failed) >= MOST_FAILURES and not found.obstacle:
            return replace(found, obstacle=f"its move has failed {len(failed)} times")
        return found

    def _confirm_moves(self, moves: Iterable[Move]) -> None:
        for move in moves:
            if move.phase is MovePhase.TO_CONFIRM:
                try:
                    self._compute.confirm_migration(move.server_id)
                except (NotFound, Conflict) as error:
                    LOG.info("The move of server %s cannot be confirmed yet: %s", move.server_id, error.message)


def _evacuable_hosts(task: Task) -> list[Resource]:
    return [resource for resource in task.resources if resource.evacuable]


def _service_name(host: Resource) -> str:
    return str(host.attributes["service_name"])


def _evacuation_candidate(host: Resource, seen: _Look, never: frozenset[str]) -> EvacuationCandidate:
    servers, moves = seen.servers[host.name], seen.moves[host.name]
    here = frozenset(server.id for server in servers)
    known = here | {move.consumer for move in moves} | {move.server_id for move in moves}
    # What Placement has beside them is a boot under way.
    room = seen.rooms.get(host.name)
    building = 0 if room is None else len(room.consumers.keys() - known)
    return EvacuationCandidate(
        host.id, host.name, tuple(make_hosted_server(server, here, never) for server in servers), building
    )


def _remaining_host(host: EvacuationCandidate, seen: _Look) -> EvacuationCandidate:
    """Return a host with the servers on it that are still to be moved: none of those that move already."""
    moving = {move.server_id for move in seen.moves[host.name]}
    return replace(host, occupants=tuple(o for o in host.occupants if not o.obstacle and o.id not in moving))


def _place_servers(
    hosts: Sequence[EvacuationCandidate], targets: Sequence[TargetHost], headroom: int
) -> Mapping[str, str]:
    """Return a target for each server, or if there is no room for all, for as many as find one in their order."""
    bundles = [bundle for host in hosts for bundle in make_bundles(host)]
    besides = frozenset(host.name for host in hosts)
    if (found := pack(bundles, targets, headroom=headroom, besides=besides)) is not None:
        return found
    room, places = FreeRoom(targets, headroom), dict[str, str]()
    for bundle in bundles:
        if fitting := room.targets_for(bundle, besides):
            room.put(bundle, fitting[0])
            places |= {server.id: fitting[0] for server in bundle.servers}
    return places
