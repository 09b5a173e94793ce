# SPDX-License-Identifier: Apache-2.0
"""What a caller may see of a lease, and the tags of leases, which depend on it."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.api.context import Call
from blazar.api.preconditions import Tags

NAMES = "blazar:calendar:get_names"
"""The rule that shows names of resources to those who are no operators."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of requests and answers from the microversion 1.``minor`` on.

    ``regions``: they name regions; ``children``: reservations are shown with those that they are made of; ``kinds``:
    leases have kinds, and reservations what they have made.
    """

    minor: int
    regions: bool = False
    children: bool = False
    kinds: bool = False

    def component(self, name: str) -> str:
        """Return the name of a component of the OpenAPI document in this shape."""
        return f"{name}1_{self.minor}"


OF_1_1 = Shape(1)
OF_1_2 = Shape(2, regions=True, children=True)
OF_1_3 = Shape(3, regions=True, children=True, kinds=True)


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: everything to an operator; ``names`` of resources to others by policy."""

    operator: bool
    names: bool
    shape: Shape = OF_1_1

    @property
    def mark(self) -> str:
        """The view in a tag."""
        return f"{self.shape.minor}.{'a' if self.operator else 'n' if self.names else 'm'}"

    @property
    def tags(self) -> Tags:
        """The strong tags of leases."""
        return Tags(f".{self.mark}")


def view_of(call: Call, shape: Shape = OF_1_1) -> View:
    """Return what a caller may see."""
    return View(call.is_operator, call.allows(NAMES), shape)
