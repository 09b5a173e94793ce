# SPDX-License-Identifier: Apache-2.0
"""The input of a placement: the resources of one kind, and what is promised of them in a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blazar.calendar.occupancy import Occupancy
from blazar.model.resource import Resource


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The calendar as read at one instant, for one kind and one window.

    ``resources`` is the whole inventory of the kind, free or not, smallest first.
    """

    resources: Sequence[Resource]
    occupancy: Occupancy
