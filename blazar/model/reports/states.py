# SPDX-License-Identifier: Apache-2.0
"""In which state resources were, second by second. Pure.

A resource is known as it is now; the journal says what it was before. So its past is traced backwards from now on: what
entries that are gone would say is missing, and nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import to_second
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window
from blazar.model.journal.entries import FieldChange
from blazar.model.journal.object_entries import compare_fields
from blazar.model.resources.resource import PropertyValue

_CAPACITY, _PROPERTIES, _ATTRIBUTES = "capacity.", "properties.", "attributes."
_EVACUABLE = "attributes.evacuable"
_TRUE = "true"


class ResourceState(StrEnum):
    """What a resource is counted as; of several that hold at one time the first one."""

    FAILED = "failed"
    MAINTENANCE = "maintenance"
    PROMISED = "promised"
    CLEANING = "cleaning"
    DISABLED = "disabled"
    FREE = "free"


USABLE = (ResourceState.PROMISED, ResourceState.CLEANING, ResourceState.FREE)
"""States of which utilization is a share."""


@dataclass(frozen=True, slots=True)
class ResourceCondition:
    """What is known of a resource at a time, besides who uses it. An ``evacuable`` one is used by everybody.

    ``properties`` are those that rows are told apart by, as the texts of the journal.
    """

    failed: bool = False
    disabled: bool = False
    evacuable: bool = False
    capacity: Amounts = Amounts()
    properties: Mapping[str, str] = field(default_factory=dict)

    def before(self, changes: Iterable[FieldChange]) -> ResourceCondition:
        """Return what it was before these changes."""
        found, capacity, properties = self, dict(self.capacity.items), dict(self.properties)
        for change in changes:
            match change.field:
                case "failure":
                    found = replace(found, failed=change.before is not None)
                case "disabled":
                    found = replace(found, disabled=change.before == _TRUE)
                case name if name == _EVACUABLE:
                    found = replace(found, evacuable=change.before == _TRUE)
                case name if name.startswith(_CAPACITY):
                    capacity[name.removeprefix(_CAPACITY)] = int(change.before or 0)
                case name if name.startswith((_PROPERTIES, _ATTRIBUTES)):
                    key = name.partition(".")[2]
                    properties.pop(key, None)
                    if change.before is not None:
                        properties[key] = change.before
        return replace(found, capacity=Amounts.of(capacity), properties=properties)


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """An entry of the journal about a resource: when, and which fields it changed."""

    at: datetime
    changes: tuple[FieldChange, ...] = ()


def list_properties(names: Collection[str], *sources: Mapping[str, PropertyValue]) -> Mapping[str, str]:
    """Return the properties of these names as the texts of the journal; a later source overrides earlier ones."""
    found = {name: value for source in sources for name, value in source.items() if name in names}
    return {change.field: change.after for change in compare_fields({}, found) if change.after is not None}


def is_condition_field(field_name: str, names: Collection[str]) -> bool:
    """Return whether a field of an entry belongs to the condition of a resource with the properties of these names."""
    group, _, name = field_name.partition(".")
    return field_name in ("failure", "disabled", _EVACUABLE) or (
        group == "capacity" or (group in ("properties", "attributes") and name in names)
    )


@dataclass(frozen=True, slots=True)
class ConditionSpan:
    """A resource did not change in a window."""

    window: Window
    condition: ResourceCondition


def trace_conditions(
    latest: ResourceCondition,
    entries: Sequence[ConditionChange],
    *,
    registered_at: datetime,
    removed_at: datetime | None,
    period: Window,
) -> Sequence[ConditionSpan]:
    """Return what a resource was in a period, while it was registered, latest first.

    ``latest`` is what it is now, or was when it was removed; ``entries`` are those since then, the oldest first: all
    that the period and what came after it have.
    """
    found: list[ConditionSpan] = []
    end = period.end if removed_at is None else min(period.end, to_second(removed_at))
    first = max(period.start, to_second(registered_at))
    condition = latest
    for entry in reversed(entries):
        start = max(first, to_second(entry.at))
        if start < end:
            found.append(ConditionSpan(Window(start, end), condition))
            end = start
        condition = condition.before(entry.changes)
    if first < end:
        found.append(ConditionSpan(Window(first, end), condition))
    return found


class UsedTime(Protocol):
    """A use of a resource ``[start, end)``, and its cleaning; ``amounts`` None: all of it."""

    @property
    def start(self) -> datetime:
        """The begin of the use."""

    @property
    def end(self) -> datetime:
        """The end of the use."""

    @property
    def clean_at(self) -> datetime:
        """The end of the cleaning after it."""

    @property
    def amounts(self) -> Amounts | None:
        """What it takes."""


@dataclass(frozen=True, slots=True)
class TracedResource:
    """A resource with its past: ``closed`` are its maintenance windows, ``open_to`` the projects that may have it now.

    ``open_to`` None: all may.
    """

    id: int
    kind: str
    region: str
    spans: Sequence[ConditionSpan]
    uses: Sequence[UsedTime] = ()
    closed: Sequence[Window] = ()
    open_to: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A resource was in one state in a window. ``used`` is what was promised of it in this state."""

    window: Window
    state: ResourceState
    condition: ResourceCondition
    used: Amounts = Amounts()


_USE, _WHOLE, _CLEANING, _CLOSED = "use", "whole", "cleaning", "closed"


def list_states(resource: TracedResource, cuts: Iterable[datetime] = ()) -> Iterator[StateSpan]:
    """Yield in which states a resource was, earliest first; no span lies on both sides of one of the ``cuts``."""
    changes: dict[datetime, Counter[str]] = defaultdict(Counter)
    amounts: dict[datetime, list[tuple[int, Amounts]]] = defaultdict(list)
    for name, start, end, used in _list_marks(resource):
        if start < end:
            changes[start][name] += 1
            changes[end][name] -= 1
            if used is not None:
                amounts[start].append((1, used))
                amounts[end].append((-1, used))
    instants = sorted({*changes, *cuts})
    open_, taken, place = Counter[str](), Counter[str](), 0
    for span in reversed(resource.spans):
        start = span.window.start
        while start < span.window.end:
            while place < len(instants) and instants[place] <= start:
                instant = instants[place]
                open_.update(changes.get(instant, {}))
                for sign, used in amounts.get(instant, ()):
                    taken.update({name: sign * amount for name, amount in used})
                place += 1
            end = min(span.window.end, instants[place]) if place < len(instants) else span.window.end
            yield _judge(Window(start, end), span.condition, open_, taken)
            start = end


def _list_marks(resource: TracedResource) -> Iterator[tuple[str, datetime, datetime, Amounts | None]]:
    for use in resource.uses:
        yield (_WHOLE if use.amounts is None else _USE), use.start, use.end, use.amounts
        yield _CLEANING, use.end, use.clean_at, None
    for window in resource.closed:
        yield _CLOSED, window.start, window.end, None


def _judge(
    window: Window, condition: ResourceCondition, open_: Mapping[str, int], taken: Mapping[str, int]
) -> StateSpan:
    state, used = ResourceState.FREE, Amounts()
    if condition.failed:
        state = ResourceState.FAILED
    elif open_.get(_CLOSED):
        state = ResourceState.MAINTENANCE
    elif open_.get(_WHOLE):
        state, used = ResourceState.PROMISED, condition.capacity
    elif open_.get(_USE):
        state, used = ResourceState.PROMISED, Amounts.of(taken)
    elif open_.get(_CLEANING):
        state = ResourceState.CLEANING
    elif condition.disabled or condition.evacuable:
        state = ResourceState.DISABLED
    return StateSpan(window, state, condition, used)
