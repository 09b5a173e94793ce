# SPDX-License-Identifier: Apache-2.0
"""What filters see, and what a filter is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

from oslo_config import cfg
from pydantic import Field

from blazar.model.amounts import Amounts
from blazar.model.errors import EnforcementUnavailable, UsageDenied
from blazar.model.lease import EventType, Lease
from blazar.model.requests import Actor
from blazar.model.resource import Resource, ResourceKind
from blazar.model.spending import UsageRecord, measured
from blazar.model.usage import LeaseUse
from blazar.model.window import Window


class Occasion(StrEnum):
    """What filters can be told of, once it is so."""

    CREATED = "commit-create"
    UPDATED = "commit-update"
    ENDED = "on-end"


@dataclass(frozen=True, slots=True)
class Context:
    """Whose lease it is, and in which cloud: Keystone's URL and the region as the manager knows them.

    ``requested_by`` is the caller, who may be an operator; None for what happens by itself.
    """

    user_id: str
    project_id: str
    auth_url: str | None = None
    region_name: str | None = None
    requested_by: Actor | None = None


@dataclass(frozen=True, slots=True)
class AllocatedResource:
    """What one reservation has, or is to have, of one resource.

    ``per_instance`` is what one of ``count`` instances takes of the resource; None for the whole resource.
    """

    reservation_id: str
    resource: Resource
    # The aliases are the names in messages that the database keeps.
    count: Annotated[int, Field(alias="units")] = 1
    whole: bool = True
    per_instance: Annotated[Amounts | None, Field(alias="unit")] = None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A lease with the resources that are promised to its reservations, or will be if nobody objects."""

    lease: Lease
    allocated_resources: Annotated[tuple[AllocatedResource, ...], Field(alias="holdings")] = ()

    @property
    def window(self) -> Window:
        """Return when the lease runs."""
        return self.lease.window

    @property
    def project_id(self) -> str:
        """Return whose lease it is."""
        return self.lease.project_id

    @property
    def hosts(self) -> int:
        """Return how many whole hosts it has."""
        hosts = (h for h in self.allocated_resources if h.whole and h.resource.kind is ResourceKind.HOST)
        return sum(allocated.count for allocated in hosts)

    @property
    def resource_requests(self) -> Amounts:
        """Return the totals per resource class: of hosts their capacity, of instances what they take.

        Addresses have no resource class.
        """
        total = Amounts()
        for allocated in self.allocated_resources:
            if allocated.resource.kind is ResourceKind.HOST:
                total += (
                    allocated.resource.capacity
                    if allocated.per_instance is None
                    else allocated.per_instance.times(allocated.count)
                )
        return total

    @property
    def measures(self) -> Mapping[str, int]:
        """Return how much of what it has, as Hold counts."""
        total: Counter[str] = Counter()
        for allocated in self.allocated_resources:
            total.update(measured(str(allocated.resource.kind), allocated.count, allocated.per_instance))
        return total

    def usage_records(self, window: Window) -> list[UsageRecord]:
        """Return what it holds for a part of its time."""
        return [
            UsageRecord(self.lease.id, str(h.resource.kind), window, h.count, h.per_instance)
            for h in self.allocated_resources
        ]

    @property
    def before_end(self) -> datetime | None:
        """Return when the end is announced."""
        event = self.lease.event(EventType.BEFORE_END)
        return event.time if event else None

    @property
    def substance(self) -> tuple[object, ...]:
        """Return what an answer depends on: all but the marks of when we looked."""
        reservations = tuple((r.id, r.resource_type, r.parameters) for r in self.lease.reservations)
        held = tuple((h.reservation_id, h.resource.external_id, h.count) for h in self.allocated_resources)
        return self.lease.name, self.lease.window, self.before_end, reservations, held


@dataclass(frozen=True, slots=True)
class Question:
    """May this lease be? ``current`` is the lease before a change of it, None for a new one.

    ``others`` is what the project has besides at the time of the lease; only looked up if a filter ``needs_use``.
    For filters with a ``reach``, ``usage`` is what was, is and will be held over all of it by the project, by the lease
    itself too where it has given that back; ``own_usage`` is what the lease holds as it is without the change.
    """

    context: Context
    now: datetime
    wanted: LeaseView
    current: LeaseView | None = None
    others: tuple[LeaseUse, ...] = ()
    usage: tuple[UsageRecord, ...] = ()
    own_usage: tuple[UsageRecord, ...] = ()

    @property
    def substance(self) -> tuple[object, ...]:
        """Return what two questions have in common that have one answer."""
        return self.context, self.wanted.substance, self.current.substance if self.current else None


@dataclass(frozen=True, slots=True)
class News:
    """Something about a lease that is so: it was granted, changed, or its end has begun, at that time.

    ``before`` is the lease before a change.
    """

    occasion: Occasion
    context: Context
    at: datetime
    view: LeaseView
    before: LeaseView | None = None


class Refused(UsageDenied):
    """What was told is refused for good. ``heard``: an earlier try of it may have been accepted all the same."""

    def __init__(self, message: str, *, heard: bool = False) -> None:
        super().__init__(message)
        self.heard = heard


class Unheard(EnforcementUnavailable):
    """There is no answer to what was told. ``heard``: it may have been accepted all the same."""

    def __init__(self, message: str, *, heard: bool = True) -> None:
        super().__init__(message)
        self.heard = heard


class Filter(Protocol):
    """One rule of who may have which lease.

    ``options`` are read from ``[enforcement]``. ``needs_use``: questions must come with what the project has besides.
    ``hears``: the occasions that the filter is to be told of. A filter may have ``insists``: if that is true, nothing
    is granted without its answer.
    """

    options: ClassVar[list[cfg.Opt]]
    needs_use: ClassVar[bool]

    @property
    def hears(self) -> frozenset[Occasion]:
        """Return the occasions of which the filter is to be told."""

    @classmethod
    def configured(cls, section: Any, identity: Any) -> Filter:
        """Return the filter as ``[enforcement]`` says; InvalidInput if that can not be. ``identity`` is an Identity."""

    def check(self, question: Question) -> None:
        """Return if the lease may be; UsageDenied if not, EnforcementUnavailable if nobody can tell."""

    def tell(self, news: News) -> None:
        """Hear of an occasion.

        UsageDenied (best as Refused) if that is refused for good. Whatever else is raised (best as Unheard), the filter
        is told again later.
        """


@runtime_checkable
class FarSighted(Protocol):
    """A filter for which it counts what the project holds at other times than the lease's. It ``needs_use``, too."""

    def reach(self, window: Window) -> Window:
        """Return the time that counts for a lease of this window."""
