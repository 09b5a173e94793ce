# SPDX-License-Identifier: Apache-2.0
"""What users and operators see of the calendar: questions, and the pages and series that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from blazar.model.base.amounts import Amounts
from blazar.model.base.moments import Duration, Moment
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.resources.resource import PropertyValue, ResourceKind

HOST_TYPE = "physical:host"
RESOURCE_MEASURE = "resource"
"""The measure that counts whole resources; any other is a resource class."""

PROJECT_GROUP = "project_id"
"""The group that is for operators: by the project to which something is promised."""


class BlockKind(StrEnum):
    """Why a resource, or a part of it, is not free for some time."""

    MINE = "mine"
    """Promised to the caller's project."""
    OTHER = "other"
    """Promised to others, merged: borders of foreign leases do not show."""
    LEASE = "lease"
    """Promised to a lease, as operators see it."""
    CLEANING = "cleaning"
    OUT_OF_USE = "out_of_use"


class OutOfUse(StrEnum):
    """Why a resource takes no new allocations."""

    DISABLED = "disabled"
    TO_BE_ENABLED = "to_be_enabled"
    """After the date until which it is disabled: it takes allocations of that time once it is enabled, at the date."""
    FAILED = "failed"
    BEING_REMOVED = "being_removed"
    MAINTENANCE = "maintenance"
    EVACUABLE = "evacuable"
    """Everybody's servers use it, until they are moved away for a lease."""


# Of blocks and their leases a page has tens of thousands: a tuple is made in a third of the time of a dataclass.


class Block(NamedTuple):
    """A time in which a resource is not free, cut at the range of the question.

    ``used`` is what is promised of the resource; None is all of it. ``lease_id`` is that of a lease in the table of the
    page, for blocks that the caller may see as leases. ``end`` is None if it is not known, for resources out of use
    only; these have a ``code``, and for operators a ``reason``.
    """

    kind: BlockKind
    start: datetime
    end: datetime | None
    used: Amounts | None = None
    lease_id: str | None = None
    reservation_id: str | None = None
    code: OutOfUse | None = None
    reason: str | None = None


class BlockLease(NamedTuple):
    """What a block shows of its lease. Members get those of their own project only."""

    id: str
    name: str
    project_id: str
    user_id: str
    status: str


@dataclass(frozen=True, slots=True)
class CalendarRow:
    """A resource with its blocks, earliest first. Free is what no block covers.

    ``id`` is the label, or for callers who may see names the id in the cloud; ``name`` and ``label`` are None for
    others. ``properties`` are those that the caller may see.
    """

    id: str
    kind: ResourceKind
    label: str | None
    name: str | None
    reservable: bool
    capacity: Amounts
    properties: Mapping[str, PropertyValue]
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks, and what policies let them see.

    ``names``: ids and names of resources; ``owners``: every lease with its owner, and why a resource is out of use;
    ``private``: private properties, and resources that are open to other projects only.
    """

    project_id: str
    names: bool = False
    owners: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A range of time as it was asked for, with what was left out as None: the manager's clock says what it means.

    A duration in ``start`` counts from now, one in ``end`` from the start.
    """

    start: Moment | Duration | None = None
    end: Moment | Duration | None = None


@dataclass(frozen=True, slots=True)
class CalendarQuestion:
    """A page of the calendar: the resources that serve a resource type and meet a requirement, in a range.

    ``resources``: only these, by label or, for callers who may see them, by id. ``occupied``: only those of which the
    caller's project has a part in the range. Rows are sorted by a property or by ``name``, and by id.
    """

    viewer: Viewer
    page: Page
    range: Range = Range()
    resource_type: str = HOST_TYPE
    requirement: str | None = None
    resources: tuple[str, ...] | None = None
    occupied: bool = False


@dataclass(frozen=True, slots=True)
class CalendarPage:
    """A page of the calendar as of an instant; ``leases`` are those of its blocks, by id.

    ``following`` is the position of the last row if there are more. ``count`` is that of all pages, if asked for.
    """

    as_of: datetime
    window: Window
    rows: tuple[CalendarRow, ...]
    leases: Mapping[str, BlockLease] = field(default_factory=dict)
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """How much is free over time, in steps, of the resources that serve a type and meet a requirement.

    ``measure`` is ``resource`` or a resource class. ``group_by`` has at most two properties; one may be the project
    to which something is promised, for operators. ``step`` None: such that there are at most 200 steps.
    """

    viewer: Viewer
    range: Range = Range()
    step: Duration | None = None
    resource_type: str = HOST_TYPE
    requirement: str | None = None
    group_by: tuple[str, ...] = ()
    measure: str = RESOURCE_MEASURE


@dataclass(frozen=True, slots=True)
class CapacityPoint:
    """How much there is of a group at an instant: ``total`` is the sum of the others."""

    total: int
    free: int
    promised: int
    out_of_use: int


@dataclass(frozen=True, slots=True)
class CapacitySeries:
    """One group over time: each point is the instant of its step at which the fewest are free, the first of them.

    At each, ``total`` is the sum of ``free``, ``promised`` and ``out_of_use``. ``at_start`` is the beginning itself.
    """

    group: Mapping[str, PropertyValue]
    total: tuple[int, ...]
    free: tuple[int, ...]
    promised: tuple[int, ...]
    out_of_use: tuple[int, ...]
    at_start: CapacityPoint


@dataclass(frozen=True, slots=True)
class Capacity:
    """The series of all groups, as of an instant."""

    as_of: datetime
    window: Window
    step: timedelta
    series: tuple[CapacitySeries, ...]


@dataclass(frozen=True, slots=True)
class PropertyValueCount:
    """A value of a property, and how many resources have it."""

    value: PropertyValue
    count: int


@dataclass(frozen=True, slots=True)
class PropertySummary:
    """A property with its values on the resources open to the caller, the most frequent of them if ``truncated``.

    ``is_number``: all values are numbers, and ``minimum`` and ``maximum`` are set.
    """

    name: str
    private: bool
    is_number: bool
    values: tuple[PropertyValueCount, ...]
    truncated: bool = False
    minimum: int | float | None = None
    maximum: int | float | None = None


@dataclass(frozen=True, slots=True)
class PropertySummaries:
    """The properties that the caller may see, by name."""

    properties: tuple[PropertySummary, ...]


def number_of(value: PropertyValue) -> int | float | None:
    """Return the number that a value of a property is, None if it is none: operators set all values as texts."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value
    is_plain = value.removeprefix("-").isdecimal() and value.isascii() and len(value) <= MOST_DIGITS
    return int(value) if is_plain and str(int(value)) == value else None


MOST_DIGITS = 15
"""Numbers with more digits are texts: programs that read JSON may round them."""


def order_of(value: PropertyValue) -> tuple[bool, bool, float, str]:
    """Return the key that sorts values of a property: numbers, then texts, then what has none."""
    number = number_of(value)
    return (
        value is None,
        number is None,
        0.0 if number is None else float(number),
        "" if number is not None else str(value),
    )
