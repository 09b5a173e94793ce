"""What the calendar is asked about: the resources of one kind and what is promised of them in a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blazar.calendar.occupancy import Occupancy
from blazar.model.resource import Resource


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the calendar at one instant of reading, for one kind and one window.

    ``resources`` is the whole inventory of the kind, free or not. ``generations`` has the generation of every
    resource that may be chosen (reservable; when only whole resources are asked for, also free in the window);
    a booking must raise just these generations, and fails if one of them has moved on.
    """

    resources: tuple[Resource, ...]
    generations: Mapping[int, int]
    occupancy: Occupancy
