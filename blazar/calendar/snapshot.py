# SPDX-License-Identifier: Apache-2.0
"""What the calendar is asked about: the resources of one kind and what is promised of them in a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blazar.calendar.occupancy import Occupancy
from blazar.model.resource import Resource


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the calendar at one instant of reading, for one kind and one window.

    ``resources`` is the whole inventory of the kind, free or not, the smallest first.
    """

    resources: Sequence[Resource]
    occupancy: Occupancy
