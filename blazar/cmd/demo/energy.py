# SPDX-License-Identifier: Apache-2.0
"""What hosts of the demo draw, and the carbon of that: less at noon, when the sun shines, and in windy weeks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from oslo_config import cfg

from blazar.model.base.clock import zulu

FILE = "carbon.csv"
HOUR = timedelta(hours=1)
BACK, AHEAD = timedelta(days=60), timedelta(days=366)
"""Of which days there is a curve from each start of the demo on."""

RATINGS: Mapping[str, tuple[int, int, int]] = {
    "a100": (620, 2600, 2400),
    "h100": (1100, 6800, 4100),
    "mem": (310, 900, 1900),
    "cpu": (160, 480, 1300),
    "io": (240, 420, 1600),
    "arm": (90, 320, 1000),
}
"""By family: watts idle and under full load, and kilograms of CO2e that it took to make a host."""

YEARS = "5"


def describe_power(family: str) -> Mapping[str, str]:
    """Return the properties that tell what a host of a family draws, and what it took to make it."""
    idle, most, embodied = RATINGS[family]
    watts = {"power_idle_w": str(idle), "power_max_w": str(most)}
    return {**watts, "embodied_kg": str(embodied), "lifespan_years": YEARS}


def set_up(conf: cfg.ConfigOpts, data: Path, now: datetime) -> None:
    """Have energy recorded, with a curve in a file of the demo's folder, unless a configuration file says otherwise."""
    file = data / FILE
    # Each hour has the same value at each start.
    file.write_text(_write_curve(now), encoding="utf-8")
    conf.set_default("enabled", True, group="energy")
    conf.set_default("ask_adapters", True, group="energy")
    conf.set_default("pue", "1.3", group="energy")
    if not conf.energy.carbon_url:
        conf.set_default("carbon_file", str(file), group="energy")


def _write_curve(now: datetime) -> str:
    first = now.replace(minute=0, second=0, microsecond=0) - BACK
    hours = (first + number * HOUR for number in range((BACK + AHEAD) // HOUR))
    return "\n".join(["start,value", *(f"{zulu(hour)},{_guess_intensity(hour)}" for hour in hours), ""])


def _guess_intensity(hour: datetime) -> int:
    """Return grams of CO2e a kilowatt-hour."""
    sun = max(0.0, math.sin((hour.hour - 6) / 12 * math.pi))
    wind = 0.5 + 0.5 * math.sin(hour.toordinal() / 3.7)
    return round(430 - 190 * sun - 140 * wind)
