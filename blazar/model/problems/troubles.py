# SPDX-License-Identifier: Apache-2.0
"""What is in trouble: events, leases and resources by the books, and what looks at the clouds have found."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Event
from blazar.model.leases.states import LeaseStatus
from blazar.model.managers.presence import ManagerCondition, ManagerFacts
from blazar.model.problems.problems import ProblemKind
from blazar.model.resources.resource import ResourceKind

CLEAN_UPS = 3
"""Clean-ups after which what a lease has left is a problem."""

MARK = re.compile(r"[0-9A-Za-z_.-]{1,36}")
"""What the id of a reservation may be that is read from objects of a cloud, on which users can write anything."""


@dataclass(frozen=True, slots=True)
class TroubledLease:
    """A lease in trouble, with what a problem says of it; ``since`` is when that began."""

    id: str
    name: str
    project_id: str
    status: LeaseStatus
    starts_at: datetime
    ends_at: datetime
    since: datetime
    region: str = ""


@dataclass(frozen=True, slots=True)
class TroubledEvent:
    """An event in trouble, and its lease."""

    event: Event
    lease: TroubledLease


@dataclass(frozen=True, slots=True)
class FailedResource:
    """A resource that has failed; ``label`` is its public id, ``external_id`` that of its kind."""

    label: str
    external_id: str
    kind: str
    name: str
    region: str
    failed_since: datetime
    failure: str


@dataclass(frozen=True, slots=True)
class KeptHost:
    """A host or pool that is not switched off any more, since it did not wake ``since`` then; fields as of a failed
    resource.
    """

    kind: ResourceKind
    label: str
    external_id: str
    name: str
    region: str
    since: datetime


@dataclass(frozen=True, slots=True)
class LostManager:
    """A manager that is not seen any more; ``claims`` is on how many events its claims have not been taken over."""

    id: str
    host: str
    version: str
    seen_at: datetime
    claims: int


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Messages that the receiver of a subscription has refused for good.

    ``first`` and ``last`` are the places of their entries in the journal; ``type``, ``subject``, ``reason`` and ``at``
    are those of the first one. ``state`` is that of the subscription; ``project_id`` None: it is an operator's.
    """

    subscription_id: str
    project_id: str | None
    user_id: str
    state: str
    first: int
    last: int
    number: int
    type: str
    subject: str
    reason: str
    at: datetime

    @property
    def problem_id(self) -> str:
        """The id of the problem that they are."""
        return f"{ProblemKind.DELIVERY}:{self.subscription_id}:{self.first}"


@dataclass(frozen=True, slots=True)
class CloudFinding:
    """What a look at the cloud of a region found of a reservation (``key``), at the charges of an account, or at a
    source of energy.

    ``what`` is LEFTOVER, UNKNOWN, DRIFT, CHARGE or ENERGY. ``since`` is the first look that found it, ``seen_at`` the
    last one.
    ``tries`` counts the clean-ups that have begun since; the next one begins at ``next_at`` at the earliest, None: at
    any time. ``detail`` is what was found, as a sentence; ``lease_id`` is None of what is not on record.
    """

    what: ProblemKind
    region: str
    key: str
    resource_type: str
    since: datetime
    seen_at: datetime
    lease_id: str | None = None
    detail: str = ""
    tries: int = 0
    next_at: datetime | None = None

    @property
    def problem_id(self) -> str:
        """The id of the problem that it is."""
        is_placed = self.what in (ProblemKind.LEFTOVER, ProblemKind.UNKNOWN)
        parts = (self.region, self.key) if is_placed else (self.key,)
        return ":".join((str(self.what), *parts))


@dataclass(frozen=True, slots=True)
class TroubleLimits:
    """How long things may take before they are problems; ``attempts`` is how often an event may fail.

    What was found of a source of energy is told until it was not looked at for ``looked``.
    """

    due: timedelta = timedelta(seconds=60)
    claimed: timedelta = timedelta(minutes=10)
    on_the_way: timedelta = timedelta(minutes=15)
    waiting: timedelta = timedelta(minutes=30)
    failed: timedelta = timedelta(minutes=10)
    attempts: int = 5
    looked: timedelta = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Troubles:
    """All that problems are made of, as of one instant, each the oldest first, and no more than a number of each.

    ``conditions`` are what managers lack, each with its manager.
    """

    events: tuple[TroubledEvent, ...] = ()
    leases: tuple[TroubledLease, ...] = ()
    resources: tuple[FailedResource, ...] = ()
    kept: tuple[KeptHost, ...] = ()
    findings: tuple[CloudFinding, ...] = ()
    managers: tuple[LostManager, ...] = ()
    letters: tuple[DeadLetters, ...] = ()
    conditions: tuple[tuple[ManagerFacts, ManagerCondition], ...] = ()
    more: bool = False
