# SPDX-License-Identifier: Apache-2.0
"""The energy of leases, by the hour: measured where a host is measured, and else by the rating of the host. Pure.

Power is in whole milliwatts, time in whole seconds, and energy in milliwatt-seconds, which are exact as fractions where
a host is shared. Hours are those of UTC, given by their first second since the epoch.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from fractions import Fraction

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window

HOUR = 3600
WATT_HOUR = 3600 * 1000
"""Milliwatt-seconds of a watt-hour."""

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")

HALF = Fraction(1, 2)
"""The load of a host of which nothing is known, unless a site says otherwise."""

IDLE, MOST = "power_idle_w", "power_max_w"
"""Properties of a host: what it draws idle, and under full load, in watts."""


MOST_MILLIWATTS = 10**9
"""More than any machine draws: what a source or a data sheet tells beyond is a mistake of units."""


class EnergySource(StrEnum):
    """How an energy is known."""

    MEASURED = "measured"
    RATED = "rated"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class PowerRating:
    """What a host draws by its data sheet, in milliwatts."""

    idle: int
    most: int

    def __post_init__(self) -> None:
        if not 0 <= self.idle <= self.most:
            raise ValueError(f"a host draws at most {self.most} mW, and {self.idle} idle")

    @classmethod
    def of_properties(cls, properties: Mapping[str, object]) -> PowerRating | None:
        """Return the rating that properties of a host give in watts; None if they give none. InvalidInput."""
        if IDLE not in properties or MOST not in properties:
            return None
        try:
            idle, most = (read_rated_watts(properties[name]) for name in (IDLE, MOST))
            return cls(idle, most)
        except ValueError as error:
            raise InvalidInput(f"{IDLE} and {MOST} are watts, as 180 and 420, the second not less") from error

    def draw(self, load: Fraction) -> int:
        """Return the milliwatts at a load from 0 to 1."""
        return round(self.idle + (self.most - self.idle) * min(Fraction(1), max(Fraction(0), load)))


@dataclass(frozen=True, slots=True)
class HostShare:
    """A lease has a share of a host, the whole if it is 1, from the hand-over to the return."""

    host: str
    window: Window
    share: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class HostMeter:
    """What is known of the power of a host: its mean in milliwatts by hour, its rating, and its load by hour.

    ``load``, from 0 to 1, is that of the hours that ``loads`` have not.
    """

    measured: Mapping[int, int]
    rating: PowerRating | None = None
    loads: Mapping[int, Fraction] | None = None
    load: Fraction = HALF

    @property
    def steady_draw(self) -> int | None:
        """The milliwatts of a host of which nothing but its rating is known; else None."""
        return None if self.rating is None or self.measured or self.loads else self.rating.draw(self.load)

    def read(self, hour: int) -> tuple[int, bool] | None:
        """Return the milliwatts in an hour and whether they were measured; None if nothing is known of the host."""
        if (measured := self.measured.get(hour)) is not None:
            return measured, True
        if self.rating is None:
            return None
        return self.rating.draw((self.loads or {}).get(hour, self.load)), False


@dataclass(frozen=True, slots=True)
class HourEnergy:
    """Energy within one hour, in milliwatt-seconds: ``measured`` and ``rated``."""

    hour: int
    measured: Fraction = Fraction(0)
    rated: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        """All of it."""
        return self.measured + self.rated


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a lease by hour, in the order of time.

    ``unknown`` are the seconds of hosts, by their shares, of which neither a measurement nor a rating is known.
    """

    hours: tuple[HourEnergy, ...] = ()
    unknown: Fraction = Fraction(0)

    @property
    def watt_hours(self) -> int:
        """The sum, rounded once, half to even."""
        return round(sum((hour.total for hour in self.hours), Fraction(0)) / WATT_HOUR)

    @property
    def source(self) -> EnergySource | None:
        """How it is known; None if nothing is."""
        measured = any(hour.measured for hour in self.hours)
        rated = any(hour.rated for hour in self.hours)
        if measured and (rated or self.unknown):
            return EnergySource.MIXED
        return EnergySource.MEASURED if measured else EnergySource.RATED if self.hours else None


def sum_energy(shares: Collection[HostShare], meters: Mapping[str, HostMeter]) -> Energy:
    """Return the energy of shares of hosts; ``meters`` by host. What is not measured is rated, and never zero."""
    measured: dict[int, Fraction] = defaultdict(Fraction)
    rated: dict[int, Fraction] = defaultdict(Fraction)
    # Hosts of a lease mostly have one window: what draws the same in each hour is added up before it is cut to hours.
    steady: dict[Window, Fraction] = defaultdict(Fraction)
    unknown = Fraction(0)
    for one in shares:
        meter = meters.get(one.host, NO_METER)
        if (milliwatts := meter.steady_draw) is not None:
            steady[one.window] += milliwatts * one.share
            continue
        if meter.rating is None and not meter.measured:
            unknown += int(one.window.duration.total_seconds()) * one.share
            continue
        for hour, seconds in split_by_hour(one.window):
            known = meter.read(hour)
            if known is None:
                unknown += seconds * one.share
                continue
            milliwatts, is_measured = known
            (measured if is_measured else rated)[hour] += milliwatts * seconds * one.share
    for window, drawn in steady.items():
        for hour, seconds in split_by_hour(window):
            rated[hour] += drawn * seconds
    hours = sorted(measured.keys() | rated.keys())
    return Energy(tuple(HourEnergy(hour, measured[hour], rated[hour]) for hour in hours), unknown)


NO_METER = HostMeter({})


def read_number(value: object) -> Fraction:
    """Return a decimal number that is not negative. ValueError; none is so long that it takes time."""
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a decimal number")
    return Fraction(text)


def read_rated_watts(value: object) -> int:
    """Return the milliwatts of watts in a data sheet. ValueError, also for what no machine draws."""
    found = round(read_number(value) * 1000)
    if found > MOST_MILLIWATTS:
        raise ValueError("no machine draws so much")
    return found


def split_by_hour(window: Window) -> Iterator[tuple[int, int]]:
    """Yield each hour that a window has a part of, and the seconds of that part."""
    start, end = int(window.start.timestamp()), int(window.end.timestamp())
    while start < end:
        hour = start - start % HOUR
        until = min(end, hour + HOUR)
        yield hour, until - start
        start = until
