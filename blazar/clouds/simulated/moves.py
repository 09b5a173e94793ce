# SPDX-License-Identifier: Apache-2.0
"""How the simulated Nova moves servers: one live move at a time from each host, the others are queued behind it."""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.clouds.simulated.server_state import NEVER, MoveFault, MoveState, ServerState
from blazar.clouds.simulated.service import Durations
from blazar.clouds.simulated.state import State

_NEVER = datetime.fromisoformat(NEVER)


def begin_move(
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
            _plan(changed, now)
        return
    moves = [m for s in state.servers.values() for m in s.migrations if m.live and m.source == changed.source]
    free_at = now
    for move in sorted(moves, key=lambda move: move.id):
        if move.is_open(now):
            if not move.begun_at or datetime.fromisoformat(move.begun_at) > now:
                _plan(move, free_at)
            free_at = max(free_at, _end(move))


def _plan(move: MoveState, begin: datetime) -> None:
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


def _end(move: MoveState) -> datetime:
    return min(map(datetime.fromisoformat, (move.over_at, move.failed_at, move.cancelled_at)))
