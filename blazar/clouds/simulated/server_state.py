# SPDX-License-Identifier: Apache-2.0
"""The state of the simulated servers and of their migrations."""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum

from blazar.clouds.ports.compute import MigrationState
from blazar.model.base.values import dataclass, field

NEVER = "9999-12-31T00:00:00+00:00"
"""The instant of what does not happen by itself."""


class MoveFault(StrEnum):
    """What may become of a move instead of its end."""

    FAILS = "fails"
    """It fails when it would have been over; the server stays on its host."""
    HANGS = "hangs"
    """It runs until it is aborted, or until an operator finishes it."""
    POST_COPY = "post-copy"
    """It runs beyond the point of return, where no abort helps, until an operator finishes it."""


@dataclass(slots=True)
class MoveState:
    """A migration of a server.

    ``over_at`` and ``settled_at`` are the instants (ISO 8601) at which the server arrives, and from which the move can
    be confirmed; ``begun_at`` that at which it is no longer queued, ``failed_at`` and ``cancelled_at`` those at which
    it ends without an arrival. ``id`` counts the moves of the cloud; ``consumer`` holds what the server has on
    its source. It takes so many ``seconds`` from its begin, and ``settling_seconds`` more until it can be confirmed.
    """

    host: str
    live: bool
    over_at: str
    settled_at: str
    confirmed: bool = False
    id: int = 0
    consumer: str = field(default_factory=lambda: str(uuid.uuid4()))
    source: str = ""
    asked_at: str = ""
    begun_at: str = ""
    failed_at: str = NEVER
    cancelled_at: str = NEVER
    fault: str = ""
    seconds: float = 0
    settling_seconds: float = 0

    def has_arrived(self, now: datetime) -> bool:
        """Return whether the server is on the other host."""
        return _parse_instant(self.over_at) <= now

    def state_at(self, now: datetime) -> MigrationState:
        """Return the progress of the migration."""
        if min(_parse_instant(self.failed_at), _parse_instant(self.cancelled_at)) <= now:
            return MigrationState.FAILED
        if _parse_instant(self.settled_at) > now:
            return MigrationState.RUNNING
        return MigrationState.DONE if self.live or self.confirmed else MigrationState.TO_CONFIRM

    def is_open(self, now: datetime) -> bool:
        """Return whether something may still come of it."""
        return self.state_at(now) in (MigrationState.RUNNING, MigrationState.TO_CONFIRM)

    def status_at(self, now: datetime) -> str:
        """Return Nova's status of the migration."""
        match self.state_at(now):
            case MigrationState.FAILED:
                return "cancelled" if _parse_instant(self.cancelled_at) <= now else "error"
            case MigrationState.TO_CONFIRM:
                return "finished"
            case MigrationState.DONE:
                return "completed" if self.live else "confirmed"
        if not self.live:
            return "post-migrating" if self.has_arrived(now) else "migrating"
        if self.begun_at and _parse_instant(self.begun_at) > now:
            return "queued"
        return "running (post-copy)" if self.fault == MoveFault.POST_COPY else "running"

    def changed_at(self, now: datetime) -> datetime:
        """Return when its status changed last."""
        instants = (self.begun_at, self.over_at, self.settled_at, self.failed_at, self.cancelled_at)
        past = [at for at in map(_parse_instant, filter(None, instants)) if at <= now]
        return max(past, default=now)


@dataclass(slots=True)
class ServerState:
    """A server; ``gone_at`` is the instant (ISO 8601) at which its deletion is complete. ``hint`` is the reservation
    that it was booted into; ``memory_mb`` in MiB, ``disk_gb`` in GiB. It is in BUILD until ``active_at``.

    ``cards`` are its amounts by class of nested providers, by their names. ``claimed`` is the host on which Placement
    holds its resources while it is on none, as when it is booted.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    host: str | None
    status: str = "ACTIVE"
    locked: bool = False
    gone_at: str | None = None
    hint: str | None = None
    vcpus: int = 1
    memory_mb: int = 512
    disk_gb: int = 1
    flavor: str | None = None
    flavor_name: str = "tiny"
    extra_specs: dict[str, str] = field(default_factory=dict)
    created_at: str = ""
    migrations: list[MoveState] = field(default_factory=list)
    active_at: str = ""
    public_key: str | None = None
    user_data: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    cards: dict[str, dict[str, int]] = field(default_factory=dict)
    networks: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    volume_backed: bool = False
    task_state: str | None = None
    claimed: str | None = None

    def is_gone(self, now: datetime) -> bool:
        """Return whether the deletion is complete."""
        return self.gone_at is not None and _parse_instant(self.gone_at) <= now

    def location(self, now: datetime) -> str | None:
        """Return the host that the server is on."""
        arrived = self._arrivals(now)
        return arrived[-1] if arrived else self.host

    def former_location(self, now: datetime) -> str | None:
        """Return the host that the server was on before its last migration."""
        arrived = self._arrivals(now)
        return arrived[-2] if len(arrived) > 1 else self.host

    def is_settling(self, now: datetime) -> bool:
        """Return whether the server has arrived by a cold migration that is not complete."""
        last = self.migrations[-1] if self.migrations else None
        return last is not None and last.has_arrived(now) and last.state_at(now) is not MigrationState.DONE

    def status_at(self, now: datetime) -> str:
        """Return Nova's status of the server."""
        match self.migrations[-1].state_at(now) if self.migrations else None:
            case MigrationState.RUNNING:
                return "MIGRATING" if self.migrations[-1].live else "RESIZE"
            case MigrationState.TO_CONFIRM:
                return "VERIFY_RESIZE"
        building = self.status == "ACTIVE" and self.active_at and _parse_instant(self.active_at) > now
        return "BUILD" if building else self.status

    def task_at(self, now: datetime) -> str | None:
        """Return Nova's task state of the server."""
        if self.task_state is None and self.migrations and self.migrations[-1].state_at(now) is MigrationState.RUNNING:
            return "migrating" if self.migrations[-1].live else "resize_migrating"
        return self.task_state

    def _arrivals(self, now: datetime) -> list[str]:
        return [move.host for move in self.migrations if move.has_arrived(now)]


def _parse_instant(instant: str) -> datetime:
    return datetime.fromisoformat(instant)
