# SPDX-License-Identifier: Apache-2.0
"""What is on record of the power of hosts and of the carbon of a site, by which the energy of leases is computed. Pure.

Hours are those of UTC, given by their first second since the epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from enum import StrEnum
from fractions import Fraction

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field
from blazar.model.energy.carbon import (
    EMBODIED,
    LIFE,
    Embodied,
    Footprint,
    HourlyCurve,
    Site,
    read_embodied,
    read_life,
    weigh_carbon,
)
from blazar.model.energy.consumption import (
    HALF,
    IDLE,
    MOST,
    MOST_MILLIWATTS,
    NO_METER,
    Energy,
    HostMeter,
    HostShare,
    PowerRating,
    read_rated_watts,
    sum_energy,
)

BEYOND_SHEET = 10
"""How many times what its data sheet says a host may draw; milliwatts are a thousand times as much."""

POWER_PROPERTIES = (IDLE, MOST, EMBODIED, LIFE)
"""The properties of hosts that are read for it."""


_MEANINGS = {
    **dict.fromkeys((IDLE, MOST), (read_rated_watts, "watts, as 180, and at most 1000000")),
    EMBODIED: (read_embodied, "kilograms of CO2e, as 1300, and at most 1000000"),
    LIFE: (read_life, "years, as 5, from 0.1 to 100"),
}


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput if a property of a host that tells of energy cannot be read: it would count for nothing."""
    for name in POWER_PROPERTIES:
        if (value := properties.get(name)) is not None:
            read, meaning = _MEANINGS[name]
            try:
                read(value)
            except ValueError as error:
                raise InvalidInput(f"{name} is {value!r:.40}; it is {meaning}", at=f"/properties/{name}") from error
    try:
        PowerRating.of_properties(properties)
    except InvalidInput as error:
        error.pointer = f"/properties/{MOST}"
        raise


@dataclass(frozen=True, slots=True)
class EnergyTerms:
    """What a site tells of energy: whether it ``records`` what hosts draw, tells carbon, and its ``pue``.

    ``asks_adapters``: hosts are asked for their watts by the adapters that switch them. ``load``, from 0 to 1, is that
    of hosts that are rated.
    """

    records: bool = False
    tells_carbon: bool = False
    pue: Fraction = Fraction(1)
    asks_adapters: bool = False
    load: Fraction = HALF


NO_ENERGY = EnergyTerms()


@dataclass(frozen=True, slots=True)
class EnergyHost:
    """What is known of a host: its power, what it took to make it, and how many VCPUs share it."""

    meter: HostMeter = NO_METER
    embodied: Embodied | None = None
    vcpus: int | None = None

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        measured: Mapping[int, int],
        vcpus: int | None,
        load: Fraction = HALF,
    ) -> EnergyHost:
        """Return what properties and measurements tell; properties that cannot be are left out."""
        rating, embodied = None, None
        with suppress(InvalidInput):
            rating = PowerRating.of_properties(properties)
        with suppress(InvalidInput):
            embodied = Embodied.of_properties(properties)
        return cls(HostMeter(measured, rating, load=load), embodied, vcpus)

    def take_share(self, vcpus: int) -> Fraction:
        """Return the share of a host that servers with so many VCPUs have: at most all of it, half if it is unknown."""
        return min(Fraction(1), Fraction(vcpus, self.vcpus)) if self.vcpus else HALF


NO_HOST = EnergyHost()


@dataclass(frozen=True, slots=True)
class EnergyBook:
    """What is known of hosts, by the ids of their resources, and of the site; without ``curve`` it tells no carbon."""

    hosts: Mapping[int, EnergyHost] = field(default_factory=dict)
    curve: HourlyCurve | None = None
    pue: Fraction = Fraction(1)

    def host(self, resource_id: int) -> EnergyHost:
        """Return what is known of a host, which may be nothing."""
        return self.hosts.get(resource_id, NO_HOST)

    def measure(self, shares: Collection[HostShare]) -> tuple[Energy, Footprint | None]:
        """Return what shares of hosts drew, and what that emitted; None if the site tells no carbon."""
        ids = {one.host: int(one.host) for one in shares}
        energy = sum_energy(shares, {name: self.host(id_).meter for name, id_ in ids.items()})
        if self.curve is None:
            return energy, None
        made = {name: embodied for name, id_ in ids.items() if (embodied := self.host(id_).embodied) is not None}
        return energy, weigh_carbon(energy, shares, Site(self.curve, self.pue, made))


@dataclass(frozen=True, slots=True)
class HostHour:
    """The mean of what a host drew in an hour, in milliwatts, of so many ``readings``."""

    resource_id: int
    hour: int
    milliwatts: int
    readings: int

    def add(self, milliwatts: int) -> HostHour:
        """Return the mean with one more reading."""
        total = self.milliwatts * self.readings + milliwatts
        return HostHour(self.resource_id, self.hour, round(Fraction(total, self.readings + 1)), self.readings + 1)


class EnergyTeller(StrEnum):
    """What tells the energy of a site: the adapters that switch hosts, Prometheus, and the curve of carbon."""

    ADAPTERS = "adapters"
    PROMETHEUS = "prometheus"
    CARBON = "carbon"


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """What is written of a turn: the ``hours`` of hosts, and the hours of the ``curve`` in grams a kilowatt-hour."""

    hours: Collection[HostHour] = ()
    curve: Mapping[int, Fraction] = field(default_factory=dict)


def add_readings(
    known: Collection[HostHour], watts: Mapping[int, float], hour: int, most: Mapping[int, int]
) -> tuple[HostHour, ...]:
    """Return the means of an hour with a reading of some hosts, in watts by resource; ``known`` are those so far.

    ``most`` are the milliwatts beyond which there is none.
    """
    before = {one.resource_id: one for one in known if one.hour == hour}
    found = []
    for resource_id, value in sorted(watts.items()):
        if (milliwatts := read_milliwatts(value, most[resource_id])) is not None:
            one = before.get(resource_id, HostHour(resource_id, hour, 0, 0))
            found.append(one.add(milliwatts))
    return tuple(found)


def read_milliwatts(watts: float, most: int) -> int | None:
    """Return whole milliwatts; None for more than the most that there may be."""
    # A comparison that is false for what is no number.
    return round(watts * 1000) if 0 <= watts * 1000 <= most else None


def find_most(properties: Mapping[str, str]) -> int:
    """Return the milliwatts beyond which what is told of a host is none of it: it is in another unit, or of a rack."""
    with suppress(InvalidInput):
        rating = PowerRating.of_properties(properties)
        if rating is not None and rating.most:
            return min(MOST_MILLIWATTS, BEYOND_SHEET * rating.most)
    return MOST_MILLIWATTS


def keep_curve(
    new: Mapping[int, Fraction], known: Mapping[int, Fraction], *, now: int, since: int, until: int
) -> Mapping[int, Fraction]:
    """Return the hours of a curve to write, of those from ``since`` until ``until``.

    What is on record of an hour that is over stays: what was computed by it would come out otherwise another time.
    """
    return {
        hour: value
        for hour, value in new.items()
        if since <= hour < until and (hour not in known or (hour + 3600 > now and known[hour] != value))
    }
