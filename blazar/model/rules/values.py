# SPDX-License-Identifier: Apache-2.0
"""Rules as values: for whom they hold, and what they ask of leases. Seconds since the epoch, and lengths in seconds."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from blazar.model.base.errors import NotFound
from blazar.model.base.values import dataclass
from blazar.model.rules.open_time import OpenTime


class RuleKind(StrEnum):
    """What a rule is about."""

    HOURS = "hours"
    GAP = "gap"


class OpenAt(StrEnum):
    """What of a lease has to lie in open time: its start; its start and its end; all of it."""

    START = "start"
    START_END = "start_end"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Hours:
    """Leases lie in open time as ``apply`` says.

    With ALL there may be closed time of up to ``longest_across`` at a stretch between the start and the end.
    """

    open_time: OpenTime
    apply: OpenAt = OpenAt.START
    longest_across: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """After a lease longer than ``over`` the next one of the project begins ``at_least`` later.

    ``same_kind``: only leases that take resources of a kind that both have are held against each other.
    """

    at_least: int
    over: int = 0
    same_kind: bool = True


@dataclass(frozen=True, slots=True)
class AppliesTo:
    """Whose leases a rule holds for, and which: None is all. It does not hold for the projects ``but``."""

    projects: frozenset[str] | None = None
    but: frozenset[str] = frozenset()
    resource_types: frozenset[str] | None = None

    def holds_for(self, project_id: str) -> bool:
        """Return whether a rule holds for leases of a project."""
        return project_id not in self.but and (self.projects is None or project_id in self.projects)

    def includes(self, project_id: str, resource_types: Collection[str]) -> bool:
        """Return whether a rule holds for a lease of a project with reservations of these types."""
        return self.holds_for(project_id) and (
            self.resource_types is None or any(one in self.resource_types for one in resource_types)
        )


@dataclass(frozen=True, slots=True)
class BookingRule:
    """A rule of an operator by its name, as it was written.

    ``content`` is the document as JSON text. Each writing of any rule has a ``revision`` of its own, later ones a
    higher one. A rule that is not ``active`` is kept, and does not hold.
    """

    name: str
    revision: int
    terms: Hours | Gap
    applies_to: AppliesTo
    active: bool
    content: str
    created_at: datetime
    updated_at: datetime | None = None

    @property
    def kind(self) -> RuleKind:
        """Return what it is about."""
        return RuleKind.HOURS if isinstance(self.terms, Hours) else RuleKind.GAP


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """A rule as it was written; ``is_new``: there was none of its name."""

    rule: BookingRule
    is_new: bool


def unknown_rule(name: str) -> NotFound:
    """Return the error for a name that no rule has."""
    return NotFound(f"rule {name[:64]!r} not found; GET /v1/rules lists those that there are", code="rule_not_found")
