# SPDX-License-Identifier: Apache-2.0
"""The requests about rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import InvalidInput, pointer_to
from blazar.model.rules.documents import parse_rule
from blazar.model.rules.values import BookingRule, WrittenRule


class RuleService:
    """Answers the calls about rules; what holds is told to enforcement."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rules = runtime.store.rules
        self._rules.listen(runtime.enforcement.take_rules)

    def all(self) -> tuple[BookingRule, ...]:
        """Return all rules by name; one statement."""
        return self._rules.all()

    def one(self, name: str) -> BookingRule:
        """Return a rule; NotFound. One statement."""
        return self._rules.one(name)

    def write(self, name: str, document: Mapping[str, Any], revisions: tuple[int, ...] | None = None) -> WrittenRule:
        """Write a rule, a new one or another one of this name: it holds for what is booked or changed from then on.

        InvalidInput, Conflict, PreconditionFailed.
        """
        now = self._runtime.clock.now
        applies_to = parse_rule(name, document, revision=0, created_at=now()).applies_to
        unknown = sorted((applies_to.resource_types or frozenset()) - self._runtime.types.keys())
        if unknown:
            raise InvalidInput(
                f"applies_to.resource_types names {unknown[0]}, which is not a resource type here; available are: "
                f"{', '.join(sorted(self._runtime.types))}",
                code="invalid_value",
                at=pointer_to(("applies_to", "resource_types")),
            )
        return self._rules.write(name, document, revisions=revisions, now=now)

    def delete(self, name: str, revisions: tuple[int, ...] | None = None) -> None:
        """Delete a rule; NotFound, PreconditionFailed."""
        self._rules.remove(name, revisions=revisions, now=self._runtime.clock.now)
