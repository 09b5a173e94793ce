# SPDX-License-Identifier: Apache-2.0
"""The list of all checks, and which of them are for a type: chosen by what the type has before any of them runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blazar.api.parts import BUILTIN
from blazarconformance.harness import (
    Harness,
    HasAccidents,
    HasFailures,
    HasLosses,
    HasSlowDeletions,
    HasUsers,
)
from blazarconformance.trial import Trial

LONGEST_REPORT = 1_500
"""Letters of what was seen that a report has."""


class NotConformant(AssertionError):
    """A type does not do what all types must; the message says what, and how it was seen."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a type, its kind or the harness must have for a check to make sense."""

    words: str
    has: Callable[[Trial], bool]


PREPARES = Need("prepare", lambda t: t.site.type.has("prepare"))
TAKES = Need("demand", lambda t: t.site.type.has("demand"))
CHILDREN = Need("children", lambda t: t.site.type.has("children"))
CHANGES = Need("changed and demand_again", lambda t: t.site.type.has("changed"))
SCHEMA = Need("schema", lambda t: t.site.type.has("schema"))
REQUIRES = Need("requirement", lambda t: t.site.type.has("requirement"))
RANKED = Need("rank", lambda t: t.site.type.has("rank"))
SAVES_WORK = Need("before_end", lambda t: t.site.type.has("before_end"))
LISTS = Need("reservations_in_cloud", lambda t: t.site.type.has("reservations_in_cloud"))
ENTERS = Need("enter and leave of its kind", lambda t: t.site.kind.has("enter"))
DESCRIBES = Need("shape of its kind", lambda t: t.site.kind.has("shape"))
POLLS = Need("poll of its kind", lambda t: t.site.kind.has("poll"))
CANDIDATES = Need("candidates of its kind", lambda t: t.site.kind.has("candidates"))
USERS = Need("use of its site", lambda t: isinstance(t.site, HasUsers))
SLOW_DELETIONS = Need("slow of its site", lambda t: isinstance(t.site, HasSlowDeletions))
ACCIDENTS = Need("wreck of its site", lambda t: isinstance(t.site, HasAccidents))
MENDS = Need("anything that is not theirs of its harness", lambda t: not t.harness.theirs)
FAILURES = Need("fail and recover of its site", lambda t: isinstance(t.site, HasFailures))
LOSSES = Need("vanish of its site", lambda t: isinstance(t.site, HasLosses))
NEEDED = Need("needed of its harness", lambda t: bool(t.harness.needed))
NUMBERS = Need("numbers of its harness", lambda t: bool(t.harness.numbers))
INVALID = Need("invalid of its harness", lambda t: bool(t.harness.invalid))
REQUIREMENT = Need("requirement of its harness", lambda t: t.harness.requirement is not None)
STRANGERS = Need("strangers of its harness", lambda t: bool(t.harness.strangers))
LARGER = Need("larger of its harness", lambda t: t.harness.larger is not None)
SHRINKS = Need("shrinks of its harness", lambda t: t.harness.larger is not None and t.harness.shrinks)
FIXED = Need("fixed of its harness", lambda t: bool(t.harness.fixed))
REFERRING = Need(
    "references, and referring of its harness",
    lambda t: t.site.type.has("references") and t.harness.referring is not None,
)
PART = Need(
    "part of its harness",
    lambda t: t.harness.part is not None or any(t.type.resource_type in str(each.reservations) for each in BUILTIN),
)
MEASURES = Need("per_lease of its harness", lambda t: bool(t.harness.per_lease))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold of every type; calling it raises ``NotConformant``."""

    name: str
    says: str
    needs: tuple[Need, ...]
    slow: bool
    _run: Callable[[Harness], None]

    def __call__(self, harness: Harness) -> None:
        """Check one type. NotConformant."""
        try:
            self._run(harness)
        except NotConformant as wrong:
            raise self._wrong(harness, str(wrong)) from wrong
        except Exception as error:
            # Code of other packages may raise anything: the report names the check all the same.
            raise self._wrong(harness, f"{type(error).__name__} was raised: {error}") from error

    def _wrong(self, harness: Harness, what: str) -> NotConformant:
        return NotConformant(f"{harness}: {self.says} But {what[:LONGEST_REPORT]}")

    def __str__(self) -> str:
        return self.name


CATALOGUE: dict[str, Check] = {}
"""All checks, by name."""


def check(*needs: Need, slow: bool = False) -> Callable[[Callable[[Trial], None]], Check]:
    """Add a function to the catalogue: it gets a new trial, its docstring says what must hold."""

    def added(function: Callable[[Trial], None]) -> Check:
        def run(harness: Harness) -> None:
            with Trial(harness) as trial:
                function(trial)

        says = " ".join((function.__doc__ or "").split())
        made = CATALOGUE[function.__name__] = Check(function.__name__, says, needs, slow, run)
        return made

    return added


def require(holds: object, otherwise: str) -> None:
    """Raise NotConformant, with what is the case instead, unless something holds."""
    if not holds:
        raise NotConformant(otherwise)


def checks(harness: Harness, *, slow: bool | None = None) -> tuple[Check, ...]:
    """Return the checks for a type: all that are not ``not_applicable``, or only the slow ones, or the others."""
    left_out = not_applicable(harness)
    return tuple(
        each for each in CATALOGUE.values() if each.name not in left_out and (slow is None or each.slow is slow)
    )


def not_applicable(harness: Harness) -> Mapping[str, str]:
    """Return the checks that are not for a type, by name, and what it does not have for them."""
    with Trial(harness) as trial:
        lacking = {
            name: ", ".join(need.words for need in each.needs if not need.has(trial))
            for name, each in CATALOGUE.items()
        }
    return {name: words for name, words in lacking.items() if words}
