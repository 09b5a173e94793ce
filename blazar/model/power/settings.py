# SPDX-License-Identifier: Apache-2.0
"""How hosts are put to sleep and woken: the settings that the plan keeps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from blazar.model.base.values import dataclass, field
from blazar.model.power.spare_rules import SpareRule

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


class PowerMode(StrEnum):
    """What is done about hosts that nobody needs."""

    OFF = "off"
    DRY_RUN = "dry_run"
    """What would be done is planned and written down, and no host is touched."""
    ON = "on"
    """Hosts are switched."""


class PowerPolicy(StrEnum):
    """Whether a host may be switched off."""

    AUTO = "auto"
    KEEP = "keep"
    """It never is."""


USUAL_WAKE = timedelta(minutes=10)
"""How long a wake is taken to last until that is known."""


class SpareSource(StrEnum):
    """Where the spare of a class comes from."""

    FIXED = "fixed"
    """Operators have set it."""
    ASKED = "asked"
    """It is half more than were asked for at once."""
    SHARE = "share"
    """It is a share of the class, as few were asked for at once."""


@dataclass(frozen=True, slots=True)
class ClassPower:
    """What holds for a class of hosts: the ``lead`` of a wake before a start, and the ``spare``.

    The lead is so long that a second wake fits after one that fails. The spare is how many hosts stay awake and free
    for leases that start at once. ``wake`` is how long a wake takes at most, but for one of a hundred.
    ``spare_source`` is where the spare comes from: ``spare_rule`` of the operators, empty for that of all classes, or
    ``asked_at_once``, the most that were asked for at once within an hour.
    """

    lead: timedelta = timedelta(minutes=30)
    spare: int = 0
    wake: timedelta = USUAL_WAKE
    spare_source: SpareSource = SpareSource.FIXED
    spare_rule: str = ""
    asked_at_once: int = 0


DEFAULT_CLASS = ClassPower()


@dataclass(frozen=True, slots=True)
class PowerSettings:
    """The limits on sleep.

    * ``mode``: what is done at all.
    * ``spare``: how many hosts of a class stay awake and free for leases that start at once; None: as many as learned.
    * ``spare_rules``: the same for some classes at some hours; the first that fits counts.
    * ``idle_after``: for how long nobody has used a host before it sleeps.
    * ``min_off``: for how long it must be able to sleep at least; and ``min_on``, to be awake before that.
    * ``wake_timeout``: after how long a wake has failed; ``shutdown_timeout``: after how long a shutdown is forced.
    * ``ramp``: how many hosts may change within a minute, over all managers.
    * ``cycles_per_day``: how often a host may be switched off within 24 hours.
    * ``class_by``: the properties by which requests tell hosts apart: those with the same values are a class.
    * ``classes``: what holds for hosts of a class; ``DEFAULT_CLASS`` for those of the others.
    """

    mode: PowerMode = PowerMode.OFF
    spare: int | None = None
    idle_after: timedelta = timedelta(minutes=5)
    min_off: timedelta = timedelta(hours=2)
    min_on: timedelta = timedelta(minutes=15)
    wake_timeout: timedelta = timedelta(minutes=15)
    shutdown_timeout: timedelta = timedelta(minutes=5)
    ramp: int = 10
    cycles_per_day: int = 2
    class_by: tuple[str, ...] = ()
    classes: Mapping[str, ClassPower] = field(default_factory=dict)
    spare_rules: tuple[SpareRule, ...] = ()

    def __post_init__(self) -> None:
        if self.ramp < 1 or self.cycles_per_day < 1:
            raise ValueError("at least one host a minute changes, and once a day")

    @property
    def switches(self) -> bool:
        """Return whether hosts are switched at all."""
        return self.mode is PowerMode.ON

    def find_class(self, group: str) -> ClassPower:
        """Return what holds for a class of hosts."""
        return self.classes.get(group, DEFAULT_CLASS)
