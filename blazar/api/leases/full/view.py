# SPDX-License-Identifier: Apache-2.0
"""What a caller may see of a lease, and the tags of leases, which depend on it."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.api.context import Call
from blazar.api.microversion import Version
from blazar.api.preconditions import Tags

NAMES = "blazar:calendar:get_names"
"""The rule that shows names of resources to those who are no operators."""

MINOR = 1
"""The minor version in whose shape leases are shown."""

CHILDREN: Version = (1, 2)
"""The first version in which reservations are shown with those that they are made of."""


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: everything to an operator; ``names`` of resources to others by policy.

    ``children``: what reservations are made of.
    """

    operator: bool
    names: bool
    children: bool = False

    @property
    def letter(self) -> str:
        """The view in a tag."""
        return "a" if self.operator else "n" if self.names else "m"

    @property
    def tags(self) -> Tags:
        """The strong tags of leases."""
        return Tags(f".{MINOR}.{self.letter}")


def view_of(call: Call) -> View:
    """Return what a caller may see."""
    children = call.version is not None and call.version >= CHILDREN
    return View(call.is_operator, call.allows(NAMES), children)
