# SPDX-License-Identifier: Apache-2.0
"""Problems: what an operator may have to act on. They are computed when they are asked for, and gone when mended."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from blazar.model.base.errors import NotFound
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass

MOST_AT_ONCE = 50
"""Problems that one command acts on."""

LONGEST_REASON = 1000
"""Characters of the reason of an act."""


class ProblemKind(StrEnum):
    """What is in trouble.

    ``EVENT``: a step of a lease. ``LEASE``: a lease that has failed, or is long on its way. ``RESOURCE``: one that has
    failed. ``LEFTOVER``: what a lease that is over has in the cloud after several clean-ups. ``UNKNOWN``: what bears
    the mark of a reservation that is not on record. ``DRIFT``: what a reservation has in the cloud is not as it should
    be. ``MANAGER``: one that is not seen any more. ``DELIVERY``: messages that the receiver of a subscription
    has refused for good. ``ENFORCEMENT``: the service that a filter asks does not answer. ``LOG``: a manager cannot
    write its log. ``POLL``: how the resources of a kind are cannot be read for long. ``POWER``: a host is kept on,
    since it did not wake. ``CHARGE``: what a project was charged for a lease is not what is on record of that.
    ``ENERGY``: a source of what hosts draw, or of the carbon of that, is silent.
    """

    EVENT = "event"
    LEASE = "lease"
    RESOURCE = "resource"
    LEFTOVER = "leftover"
    UNKNOWN = "unknown"
    DRIFT = "drift"
    MANAGER = "manager"
    DELIVERY = "delivery"
    ENFORCEMENT = "enforcement"
    LOG = "log"
    POLL = "poll"
    POWER = "power"
    CHARGE = "charge"
    ENERGY = "energy"


class ProblemAction(StrEnum):
    """What can be done about a problem.

    ``RETRY``: try the event again now, or tell the receiver once more. ``RELEASE``: let a claim end that lasts too
    long. ``GIVE_UP``: go on without what the event does. ``END``: end the lease, or what is left of a reservation.
    ``MEND``: bring the cloud to what the books say. ``RECHECK``: ask the cloud now how a resource is. ``DROP``: forget
    messages that were refused.
    """

    RETRY = "retry"
    RELEASE = "release"
    GIVE_UP = "give_up"
    END = "end"
    MEND = "mend"
    RECHECK = "recheck"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that an operator may have to act on.

    ``id`` is the kind and what it is about, as ``event:<id>``; it stays the same while the problem lasts.
    ``explanation`` are sentences: why, since when, who works on it, what comes next. ``actions`` are those that make
    sense; whether one is possible, its dry run says. ``resource_id`` is the kind and the id of a resource, as
    ``host/1``.
    """

    id: str
    kind: ProblemKind
    since: datetime
    summary: str
    explanation: tuple[str, ...] = ()
    actions: tuple[ProblemAction, ...] = ()
    lease_id: str | None = None
    region: str = ""
    resource_id: str | None = None


@dataclass(frozen=True, slots=True)
class ProblemQuestion:
    """Which problems are wanted: of all ``kinds`` if none is given, of a lease, of a region, that began before then."""

    page: Page
    kinds: tuple[ProblemKind, ...] = ()
    lease_id: str | None = None
    region: str | None = None
    older_than: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProblemPage:
    """A page of problems, the oldest first, and where the next one begins.

    ``more``: there are more of a kind than are looked at, and the oldest of them are here.
    """

    items: tuple[Problem, ...]
    following: Position | None = None
    count: int | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What an operator asks to do about a problem: ``reason`` is told in the history of the lease.

    ``confirm`` is the id of a reservation that is not on record, once more.
    """

    reason: str
    dry_run: bool = True
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done about a problem, or would be, as sentences."""

    problem_id: str
    action: ProblemAction
    dry_run: bool
    said: tuple[str, ...]


def unknown_problem(problem_id: str) -> NotFound:
    """Return the error for a problem that there is not, or not any more."""
    return NotFound(
        f"there is no problem {problem_id[:200]!r}; it may have been mended meanwhile", code="problem_not_found"
    )
