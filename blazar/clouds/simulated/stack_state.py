# SPDX-License-Identifier: Apache-2.0
"""What of the state of a simulated cloud only Heat has: stacks with their resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blazar.clouds.ports.stacks import COMPLETE, DELETE, FAILED, IN_PROGRESS


@dataclass(slots=True)
class StackResourceState:
    """A resource of a stack; ``reason`` is why it failed, empty if it has not."""

    name: str
    type: str
    physical_id: str
    reason: str = ""


@dataclass(slots=True)
class StackState:
    """A stack: its last action is over at the instant ``over_at`` (ISO 8601); ``reason`` is why it failed, then."""

    id: str
    name: str
    project_id: str
    action: str
    over_at: str
    reason: str = ""
    tags: list[str] = field(default_factory=list)
    resources: list[StackResourceState] = field(default_factory=list)

    def state_at(self, now: datetime) -> str:
        """Return the state of the last action."""
        if datetime.fromisoformat(self.over_at) > now:
            return IN_PROGRESS
        return FAILED if self.reason else COMPLETE

    def is_gone(self, now: datetime) -> bool:
        """Return whether the deletion is complete."""
        return self.action == DELETE and self.state_at(now) == COMPLETE

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StackState:
        """Return a stack from its fields."""
        return cls(**{**data, "resources": [StackResourceState(**each) for each in data["resources"]]})
