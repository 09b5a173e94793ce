# SPDX-License-Identifier: Apache-2.0
"""What energy emits: a curve of carbon by the hour, and the Software Carbon Intensity (ISO/IEC 21031:2024). Pure.

SCI is ``((E × I) + M) per R``: the energy E, times the PUE of the site, by the intensity I of the place in that hour,
and the share M of what it took to make the hosts, per resource-hour R. Offsets by contracts are not subtracted.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from fractions import Fraction

from blazar.model.base.clock import zulu
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field
from blazar.model.energy.consumption import HOUR, WATT_HOUR, Energy, EnergySource, HostShare, read_number

DAY = 24 * HOUR
DAYS_BACK = 7
"""Days of which the same hour stands in for one that is missing."""

YEAR = 365 * DAY + DAY // 4
MOST_ROWS = 200_000
"""Hours of a curve: more than twenty years."""

HIGHEST = 10_000
"""Grams a kilowatt-hour; ten times that of the dirtiest coal. More is a mistake of units."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MOST_EMBODIED = 10**6
"""Kilograms; what it takes to make a host is a few thousand."""

LEAST_LIFE, LONGEST_LIFE = Fraction(1, 10), 100
"""Years."""

EMBODIED, LIFE = "embodied_kg", "lifespan_years"
"""Properties of a host: what it took to make it, in kilograms of CO2e, and for how many years it is used."""


@dataclass(frozen=True, slots=True)
class HourlyCurve:
    """A value by hour of UTC, as grams of CO2e a kilowatt-hour; missing hours are estimated."""

    values: Mapping[int, Fraction]

    def read(self, hour: int) -> tuple[Fraction, bool] | None:
        """Return the value of an hour and whether it is estimated.

        A missing hour has the mean of that hour in the last seven days as far as these are known; None if none is.
        """
        if (known := self.values.get(hour)) is not None:
            return known, False
        before = [self.values.get(hour - days * DAY) for days in range(1, DAYS_BACK + 1)]
        found = [value for value in before if value is not None]
        return (sum(found, Fraction(0)) / len(found), True) if found else None

    def explain_gap(self, now: int) -> str | None:
        """Return that the curve has come to its end, as a sentence without its end; None if it goes on.

        It goes on if it has an hour of the last day: services tell the past, some hours late.
        """
        known = [hour for hour in self.values if hour <= now]
        if known and max(known) > now - DAY:
            return None
        if not known:
            return "the curve has no hour before now"
        return f"the last hour of the curve before now is {zulu(datetime.fromtimestamp(max(known), UTC))}"


@dataclass(frozen=True, slots=True)
class Embodied:
    """What it took to make a host: grams of CO2e, and the seconds of its life over which they are spread."""

    grams: Fraction
    life: int

    @classmethod
    def of_properties(cls, properties: Mapping[str, object]) -> Embodied | None:
        """Return what properties of a host give; None if they give nothing. InvalidInput."""
        if EMBODIED not in properties or LIFE not in properties:
            return None
        try:
            return cls(read_embodied(properties[EMBODIED]), read_life(properties[LIFE]))
        except ValueError as error:
            raise InvalidInput(f"{EMBODIED} and {LIFE} are kilograms and years, as 1300 and 5") from error


def read_embodied(value: object) -> Fraction:
    """Return the grams of kilograms that it took to make a host. ValueError, also for what no machine takes."""
    kilograms = read_number(value)
    if kilograms > MOST_EMBODIED:
        raise ValueError("no machine takes so much")
    return kilograms * 1000


def read_life(value: object) -> int:
    """Return the seconds of the years of a machine. ValueError, also for what no machine lasts."""
    years = read_number(value)
    if not LEAST_LIFE <= years <= LONGEST_LIFE:
        raise ValueError("no machine lasts so long, or so short")
    return round(years * YEAR)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Grams of CO2e: ``operational`` of the energy and ``embodied`` of the hosts, for ``resource_seconds``.

    ``estimated`` says whether a value of the curve was estimated, ``complete`` whether all of the energy and of its
    carbon is known, and ``embodied_complete`` whether it is known of all hosts what it took to make them.
    """

    operational: Fraction
    embodied: Fraction
    resource_seconds: Fraction
    estimated: bool = False
    complete: bool = True
    embodied_complete: bool = True

    @property
    def grams(self) -> int:
        """The sum, rounded once, half to even."""
        return round(self.operational + self.embodied)

    @property
    def intensity(self) -> Fraction | None:
        """The SCI: grams per resource-hour; None for nothing."""
        if not self.resource_seconds:
            return None
        return (self.operational + self.embodied) * HOUR / self.resource_seconds


@dataclass(frozen=True, slots=True)
class Site:
    """What holds for all hosts of a site: the ``curve`` of carbon, and the ``pue`` of its building."""

    curve: HourlyCurve
    pue: Fraction = Fraction(1)
    embodied: Mapping[str, Embodied] = field(default_factory=dict)
    """By host."""


def weigh_carbon(energy: Energy, shares: Collection[HostShare], site: Site) -> Footprint:
    """Return what the energy of shares of hosts, and the hosts themselves, emit."""
    operational, is_estimated, is_complete = Fraction(0), False, not energy.unknown
    for hour in energy.hours:
        known = site.curve.read(hour.hour)
        if known is None:
            is_complete = False
            continue
        grams, estimated = known
        is_estimated |= estimated
        operational += hour.total / WATT_HOUR / 1000 * site.pue * grams
    embodied, seconds, is_whole = Fraction(0), Fraction(0), True
    for one in shares:
        length = int(one.window.end.timestamp()) - int(one.window.start.timestamp())
        seconds += length * one.share
        made = site.embodied.get(one.host)
        if made is None:
            is_whole = False
        else:
            embodied += made.grams * length * one.share / made.life
    return Footprint(operational, embodied, seconds, is_estimated, is_complete, is_whole)


@dataclass(frozen=True, slots=True)
class LeaseCarbon:
    """What a lease emitted, in grams of CO2e: ``grams`` in all, of which ``embodied`` for the making of its hosts.

    ``sci_mg`` is the SCI in milligrams per resource-hour; None for no time. The rest is as in ``Footprint``.
    """

    grams: int
    embodied: int
    sci_mg: int | None
    estimated: bool
    complete: bool
    embodied_complete: bool


@dataclass(frozen=True, slots=True)
class LeaseEnergy:
    """What the whole hosts of a lease drew and emitted until ``computed_through``.

    Energy is in watt-hours, time in seconds of hosts; for ``unknown_seconds`` of it nothing is known. ``energy_wh`` and
    ``source`` are None if nothing is known at all, ``carbon`` if the site has no curve.
    """

    computed_through: datetime
    resource_seconds: int
    energy_wh: int | None
    source: EnergySource | None
    unknown_seconds: int
    carbon: LeaseCarbon | None


def summarize(
    energy: Energy, shares: Collection[HostShare], footprint: Footprint | None, until: datetime
) -> LeaseEnergy:
    """Return the figures of a lease, each rounded once, half to even."""
    seconds = sum(((one.window.end - one.window.start).total_seconds() * one.share for one in shares), Fraction(0))
    known = energy.watt_hours if energy.source is not None else None
    carbon = None
    if footprint is not None:
        intensity = footprint.intensity
        carbon = LeaseCarbon(
            footprint.grams,
            round(footprint.embodied),
            None if intensity is None else round(intensity * 1000),
            footprint.estimated,
            footprint.complete,
            footprint.embodied_complete,
        )
    return LeaseEnergy(until, round(seconds), known, energy.source, round(energy.unknown), carbon)


def parse_curve(text: str, *, named: str) -> HourlyCurve:
    """Return the curve of a text in CSV: a line ``start,value``, then one for each hour. InvalidInput names the line.

    A start is an instant with its offset, such as 2030-04-01T08:00:00Z, at a full hour.
    """
    rows = csv.reader(text.removeprefix("\ufeff").splitlines())
    values: dict[int, Fraction] = {}
    try:
        if next(rows, None) != ["start", "value"]:
            raise InvalidInput(f"{named}: the first line must be start,value")
        for number, row in enumerate(rows, start=2):
            if number > MOST_ROWS:
                raise InvalidInput(f"{named} has more than {MOST_ROWS} lines; leave out the older ones")
            if row:
                place = f"{named}, line {rows.line_num}"
                hour, value = read_entry(row, place)
                if hour in values:
                    raise InvalidInput(f"{place}: the hour {row[0].strip()} is there twice; leave out one of the lines")
                values[hour] = value
    except csv.Error as error:
        raise InvalidInput(f"{named}, line {rows.line_num} is not one of a table in CSV: {error}") from error
    return HourlyCurve(values)


def read_entry(entry: Collection[object], place: str) -> tuple[int, Fraction]:
    """Return an hour, in seconds since the epoch, and its value. InvalidInput names the place."""
    try:
        start, value = (str(part).strip() for part in entry)
        instant = datetime.fromisoformat(start)
        number = read_number(value)
    except ValueError as error:
        raise InvalidInput(f"{place} is not an instant and a number, as 2030-04-01T08:00:00Z,320.5") from error
    if instant.tzinfo is None:
        raise InvalidInput(f"{place}: the instant has no offset; write it as 2030-04-01T08:00:00Z")
    # Without a way over the calendar of UTC, which the first and the last year may leave.
    seconds = int((instant - _EPOCH).total_seconds())
    if seconds % HOUR or instant.microsecond:
        raise InvalidInput(f"{place}: {start[:40]} is not the beginning of an hour of UTC")
    if number > HIGHEST:
        raise InvalidInput(f"{place}: the value must be from 0 to {HIGHEST} grams a kilowatt-hour")
    return seconds, number
