# SPDX-License-Identifier: Apache-2.0
"""Running managers: what each tells of itself with every heartbeat, and what is seen of it from outside."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model.base.values import dataclass

RPC_VERSION = "2.0"
"""The number of the calls that a manager answers. A release that adds calls or arguments raises the second part."""

MOST_WORK = 20
"""Claimed events of a manager that are listed."""

MOST_MANAGERS = 1000
"""Managers that are listed, those seen last: one that crashes at each start leaves a row each time."""

NUMBER_LENGTH = 12
"""Characters of the number of a claim, the last part of its token."""

KEPT = timedelta(days=1)
"""How long a manager is remembered that is not seen any more."""


class ManagerState(StrEnum):
    """What a manager does. One that drains begins nothing new; one that stops has been told to end."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    """A background thread: when its last round ended, and since when and why its rounds fail, if they do."""

    name: str
    last_round_at: datetime | None = None
    failing_since: datetime | None = None
    error: str | None = None


class ConditionKind(StrEnum):
    """What a process can lack.

    ``LOG``: it cannot write its log. ``ENFORCEMENT``: a filter gets no answer. ``POLL``: the state of the resources of
    a kind cannot be read, as their cloud or all their hooks are out of reach.
    """

    LOG = "log"
    ENFORCEMENT = "enforcement"
    POLL = "poll"


@dataclass(frozen=True, slots=True)
class ManagerCondition:
    """Something that a manager lacks of what is not its own: since when, and the last error, as a sentence.

    ``subject`` is the name of the filter, or the kind of resources; empty for the log.
    """

    kind: ConditionKind
    subject: str
    since: datetime
    error: str
    region: str = ""


@dataclass(frozen=True, slots=True)
class ManagerFacts:
    """What a manager tells of itself. ``id`` is what its claims begin with.

    ``clock_offset`` is how far the clock of its machine is ahead of that of the database. ``options_hash`` is the same
    for all managers whose options agree.
    """

    id: str
    host: str
    pid: int
    version: str
    started_at: datetime
    rpc_version: str = RPC_VERSION
    state: ManagerState = ManagerState.STARTING
    clock_offset: timedelta = timedelta(0)
    regions: tuple[str, ...] = ()
    options_hash: str = ""
    threads: tuple[ThreadFacts, ...] = ()
    conditions: tuple[ManagerCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class ManagerWork:
    """An event that a manager has claimed, and since when."""

    event_id: str
    lease_id: str
    event_type: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class KnownManager:
    """A manager as it is seen from outside. It is ``up`` if its last heartbeat is younger than a claim lives.

    ``options_agree``: its options are those of all managers that are up. ``work`` are its oldest claims on events;
    those of a manager that is not up stay until another takes them over.
    """

    facts: ManagerFacts
    seen_at: datetime
    up: bool
    options_agree: bool = True
    work: tuple[ManagerWork, ...] = ()

    @property
    def id(self) -> str:
        """Return the id of the manager."""
        return self.facts.id


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer of a manager that was asked whether it is there, by its clock.

    ``database_seconds`` is how long its database took to answer a question without rows; None, with the reason in
    ``database_error``, if it did not.
    """

    manager_id: str
    version: str
    rpc_version: str
    state: ManagerState
    now: datetime
    database_seconds: float | None
    database_error: str | None = None


def make_token(manager_id: str) -> str:
    """Return the token of a new claim of a manager."""
    return f"{manager_id}:{uuid.uuid4().hex[:NUMBER_LENGTH]}"


def read_holder(token: str) -> str:
    """Return the id of the manager that made the token of a claim."""
    return token.rpartition(":")[0]


def list_conditions(known: Collection[KnownManager]) -> tuple[tuple[ManagerFacts, ManagerCondition], ...]:
    """Return what the managers that are up lack, each with its manager, the longest first."""
    found = ((manager.facts, condition) for manager in known if manager.up for condition in manager.facts.conditions)
    return tuple(sorted(found, key=lambda pair: (pair[1].since, pair[0].id)))


def list_options(known: Collection[KnownManager]) -> frozenset[str]:
    """Return the different options of the managers that are up, as hashes: at most one if all agree."""
    return frozenset(manager.facts.options_hash for manager in known if manager.up)
