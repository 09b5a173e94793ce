# SPDX-License-Identifier: Apache-2.0
"""The simulated moves of servers off a host, with what Nova and Placement say about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

from blazar.clouds.ports.evacuation import HostRoom, Move, Occupant, OccupantGroup, ServerOwner
from blazar.clouds.simulated.placement import inventory_of_host
from blazar.clouds.simulated.server_state import NEVER, MoveFault, MoveState, ServerState
from blazar.clouds.simulated.service import Durations, SimulatedService, look_up
from blazar.clouds.simulated.state import HostState, State
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import to_second
from blazar.model.base.errors import CloudRefused, Conflict, NotFound

_NEVER = datetime.fromisoformat(NEVER)


def start_move(
    state: State, server: ServerState, target: str, now: datetime, durations: Durations, *, live: bool
) -> MoveState:
    """Record a move of a server, and when it will begin and end."""
    move = MoveState(
        target,
        live,
        NEVER,
        NEVER,
        id=1 + max((move.id for other in state.servers.values() for move in other.migrations), default=0),
        source=server.location(now) or "",
        asked_at=now.isoformat(),
        fault=state.move_faults.pop(server.id, ""),
        seconds=durations.migration.total_seconds(),
        settling_seconds=0 if live else durations.settling.total_seconds(),
    )
    server.migrations.append(move)
    _schedule(state, move, now)
    return move


def cancel_move(state: State, move: MoveState, now: datetime) -> None:
    """End a live move without an arrival, as an abort does; those behind it begin."""
    move.cancelled_at = now.isoformat()
    move.over_at, move.settled_at = NEVER, NEVER
    _schedule(state, move, now)


def end_move(state: State, move: MoveState, now: datetime, *, arrives: bool) -> None:
    """End a move now, at its target or with a failure; those behind it begin."""
    if datetime.fromisoformat(move.begun_at) > now:
        move.begun_at = now.isoformat()
    if arrives:
        move.over_at, move.settled_at, move.failed_at = now.isoformat(), now.isoformat(), NEVER
    else:
        move.over_at, move.settled_at, move.failed_at = NEVER, NEVER, now.isoformat()
    _schedule(state, move, now)


def _schedule(state: State, changed: MoveState, now: datetime) -> None:
    """Set when the moves that are queued with one begin: each when those before it have ended."""
    if not changed.live:
        if not changed.begun_at:
            _set_times(changed, now)
        return
    moves = [m for s in state.servers.values() for m in s.migrations if m.live and m.source == changed.source]
    free_at = now
    for move in sorted(moves, key=lambda move: move.id):
        if move.is_open(now):
            if not move.begun_at or datetime.fromisoformat(move.begun_at) > now:
                _set_times(move, free_at)
            free_at = max(free_at, _end_of_move(move))


def _set_times(move: MoveState, begin: datetime) -> None:
    over = begin + timedelta(seconds=move.seconds) if begin < _NEVER else _NEVER
    move.begun_at, move.over_at, move.failed_at = begin.isoformat(), over.isoformat(), NEVER
    if move.fault == MoveFault.FAILS:
        move.over_at, move.failed_at = NEVER, over.isoformat()
    elif move.fault:
        move.over_at = NEVER
    settled = datetime.fromisoformat(move.over_at)
    if settled < _NEVER:
        settled += timedelta(seconds=move.settling_seconds)
    move.settled_at = settled.isoformat()


def _end_of_move(move: MoveState) -> datetime:
    return min(map(datetime.fromisoformat, (move.over_at, move.failed_at, move.cancelled_at)))


class SimulatedEvacuation(SimulatedService):
    """Implements the evacuation port."""

    def occupants(self, *service_names: str) -> tuple[Occupant, ...]:
        """Return the servers on hosts."""
        with self._calls.reading("occupants") as state:
            now = self._clock.now()
            found = (server for name in service_names for server in state.occupants(name, now))
            return tuple(_occupant(state, server, now) for server in found)

    def moves_of(self, server_id: str) -> tuple[Move, ...]:
        """Return the moves of a server."""
        with self._calls.reading("moves_of") as state:
            now = self._clock.now()
            server = state.servers.get(server_id)
            return () if server is None else tuple(_move(server, move, now) for move in server.migrations)

    def open_moves(self, service_name: str) -> tuple[Move, ...]:
        """Return the open moves from a host or to it."""
        with self._calls.reading("open_moves") as state:
            now = self._clock.now()
            found = [
                _move(server, move, now)
                for server in state.servers.values()
                for move in server.migrations
                if service_name in (move.host, move.source) and move.is_open(now)
            ]
            return tuple(sorted(found, key=lambda move: int(move.id)))

    def moves_since(self, service_name: str, since: datetime) -> tuple[Move, ...]:
        """Return the moves from a host that began since then."""
        with self._calls.reading("moves_since") as state:
            now = self._clock.now()
            found = [
                _move(server, move, now)
                for server in state.servers.values()
                for move in server.migrations
                if move.source == service_name
            ]
            recent = [move for move in found if move.started_at >= to_second(since)]
            return tuple(sorted(recent, key=lambda move: int(move.id)))

    def owners(self, server_ids: Collection[str]) -> Mapping[str, ServerOwner]:
        """Return whose servers are."""
        with self._calls.reading("owners") as state:
            now = self._clock.now()
            there = [s for id_ in server_ids if (s := state.servers.get(id_)) is not None and not s.is_gone(now)]
            return {server.id: ServerOwner(server.project_id, server.user_id) for server in there}

    def rooms(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, HostRoom]:
        """Return the room on hosts."""
        with self._calls.reading("rooms") as state:
            now = self._clock.now()
            return {
                host.name: _room(state, host, now) for host in state.hosts.values() if host.name in hypervisor_hostnames
            }

    def begin_move(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin a move, which fails at once if the scheduler would refuse the host."""
        with self._calls.changing("begin_move") as state:
            now = self._clock.now()
            state.remove_gone(now)
            server = look_up(state.servers, server_id, "server")
            target = next((host for host in state.hosts.values() if host.service_name == service_name), None)
            if target is None:
                raise CloudRefused(f"the cloud has no compute host {service_name}")
            status, task = server.status_at(now), server.task_at(now)
            if task is not None or status not in (("ACTIVE", "PAUSED") if live else ("ACTIVE", "SHUTOFF")):
                raise Conflict(f"server {server_id} is {status} ({task or 'no task'})")
            if server.location(now) == service_name:
                raise CloudRefused(f"server {server_id} is on {service_name} already")
            admitted = _admits(state, target, server, now)
            move = start_move(state, server, service_name, now, self._durations, live=live)
            if not admitted:
                end_move(state, move, now, arrives=False)

    def begin_move_abort(self, server_id: str, move_id: str) -> None:
        """Abort a live move; those that are queued behind it begin."""
        with self._calls.changing("begin_move_abort") as state:
            now = self._clock.now()
            state.remove_gone(now)
            server = look_up(state.servers, server_id, "server")
            moves = {str(move.id): move for move in server.migrations}
            if server.status_at(now) != "MIGRATING":
                raise Conflict(f"server {server_id} is {server.status_at(now)}")
            if move_id not in moves:
                raise NotFound(f"server {server_id} has no migration {move_id}")
            move = moves[move_id]
            if not move.live or move.status_at(now) not in ("queued", "running"):
                raise Conflict(f"migration {move_id} of server {server_id} is {move.status_at(now)}")
            cancel_move(state, move, now)


def _occupant(state: State, server: ServerState, now: datetime) -> Occupant:
    return Occupant(
        id=server.id,
        name=server.name,
        project_id=server.project_id,
        user_id=server.user_id,
        host=server.location(now) or "",
        status=server.status_at(now),
        task_state=server.task_at(now),
        locked=server.locked,
        tags=frozenset(server.tags),
        hints=frozenset({server.hint} if server.hint else ()),
        flavor=server.flavor_name,
        extra_specs=dict(server.extra_specs),
        amounts=_size(server),
        volume_backed=server.volume_backed,
        group=_group_of(state, server),
    )


def _move(server: ServerState, move: MoveState, now: datetime) -> Move:
    return Move(
        id=str(move.id),
        consumer=move.consumer,
        server_id=server.id,
        status=move.status_at(now),
        live=move.live,
        source=move.source,
        target=move.host,
        started_at=datetime.fromisoformat(move.asked_at or move.over_at),
        changed_at=move.changed_at(now),
    )


def _group_of(state: State, server: ServerState) -> OccupantGroup | None:
    group = next((group for group in state.groups.values() if server.id in group.members), None)
    return None if group is None else OccupantGroup(group.id, group.policy, frozenset(group.members))


def _size(server: ServerState) -> Amounts:
    disk = 0 if server.volume_backed else server.disk_gb
    return Amounts.of({"VCPU": server.vcpus, "MEMORY_MB": server.memory_mb, "DISK_GB": disk})


def _room(state: State, host: HostState, now: datetime) -> HostRoom:
    held = {consumer: _size(server) for place, consumer, server in _claims(state, now) if place == host.service_name}
    return HostRoom(inventory_of_host(host), held)


def _claims(state: State, now: datetime) -> Iterator[tuple[str | None, str, ServerState]]:
    """Yield who holds resources where: while a server moves, it holds them on its target, its move on its source."""
    for server in state.servers.values():
        if server.is_gone(now):
            continue
        last = server.migrations[-1] if server.migrations else None
        if last is not None and last.is_open(now):
            yield last.source, last.consumer, server
            yield last.host, server.id, server
        else:
            yield server.location(now) or server.claimed, server.id, server


def _admits(state: State, host: HostState, server: ServerState, now: datetime) -> bool:
    """Return whether the scheduler lets a server onto a host: its filters, with Blazar's own, and its room."""
    pools = [aggregate for aggregate in state.aggregates.values() if host.service_name in aggregate.hosts]
    kept = any(pool.name == "freepool" for pool in pools)
    reservations = {pool.name for pool in pools if "blazar:owner" in pool.metadata}
    if kept or (reservations and server.hint not in reservations):
        return False
    group = _group_of(state, server)
    if group is not None and not _fits_group(state, group, host.service_name, server, now):
        return False
    return state.is_up(host, now) and host.enabled and _room(state, host, now).has_room_for(_size(server))


def _fits_group(state: State, group: OccupantGroup, target: str, server: ServerState, now: datetime) -> bool:
    others = [state.servers[member] for member in group.members if member in state.servers and member != server.id]
    places = {other.location(now) for other in others if not other.is_gone(now)} - {None}
    match group.policy:
        case "anti-affinity":
            return target not in places
        case "affinity":
            return not places or target in places
    return True
