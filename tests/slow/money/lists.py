# SPDX-License-Identifier: Apache-2.0
"""What an hour costs at an instant, by the documents that were published: exact, a quarter of an hour at a time.

Instants are seconds since 1970. Bands, lists and months of a test begin and end at quarters of an hour everywhere, so
that a price is looked up by the local time of a quarter, and no edge of anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

QUARTER = 900
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ONE = Fraction(1)
LONGEST = {"D": 86400, "H": 3600, "M": 60, "S": 1}


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration of one number, as ``PT24H`` or ``P7D``."""
    return int(duration.strip("PT")[:-1]) * LONGEST[duration[-1]]


def instant_of(text: str) -> int:
    """Return the instant of a date as the API writes it."""
    return int(datetime.fromisoformat(text).timestamp())


def month_of(instant: int) -> str:
    """Return the month of UTC in which an instant lies, as ``2030-04``."""
    return f"{datetime.fromtimestamp(instant, UTC):%Y-%m}"


@dataclass(frozen=True)
class PriceList:
    """A document, and when it was published."""

    version: int
    published: int
    content: Mapping[str, Any]
    _bands: dict[int, Fraction] = field(default_factory=dict)

    @cached_property
    def valid_from(self) -> int:
        return instant_of(self.content["valid_from"])

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.content["time_zone"])

    def price(self, sku: str) -> Fraction | None:
        """Return what an hour of a sku costs; None if it is free."""
        found = [entry["per_hour"] for entry in self.content["prices"] if entry["sku"] == sku]
        return Fraction(found[0]) if found else None

    def energy_price(self, project: str) -> tuple[str, Fraction, Fraction] | None:
        """Return the sku of what hosts draw, what a kilowatt-hour costs and its factor; None if it is free."""
        for entry in self.content["prices"]:
            if entry["measure"] == "kwh":
                factor = Fraction(self.content.get("pue", "1")) * self.project_factor(project)
                return entry["sku"], Fraction(entry["per_kwh"]), factor
        return None

    def factor_at(self, instant: int) -> Fraction:
        """Return the factor by local time in the quarter that begins then."""
        if instant not in self._bands:
            local, factor = datetime.fromtimestamp(instant, self._zone), ONE
            for band in self.content.get("hours", ()):
                if DAYS[local.weekday()] in band["days"] and band["from"] <= f"{local:%H:%M}" < band["to"]:
                    factor *= Fraction(band["factor"])
            self._bands[instant] = factor
        return self._bands[instant]

    def lead_factor(self, seconds: int) -> Fraction:
        for entry in self.content.get("lead", ()):
            if seconds < seconds_of(entry["below"]):
                return Fraction(entry["factor"])
        return ONE

    def amount_factor(self, count: int) -> Fraction:
        found = [Fraction(entry["factor"]) for entry in self.content.get("amount", ()) if count > entry["above"]]
        return found[-1] if found else ONE

    def project_factor(self, project: str) -> Fraction:
        for entry in self.content.get("projects", ()):
            if entry["project_id"] == project:
                return Fraction(entry["factor"])
        return ONE

    def cancellation_share(self, left: int) -> Fraction:
        """Return the share of what is given back so many seconds before the start."""
        for entry in self.content.get("cancellation", ()):
            if "before_start" not in entry or seconds_of(entry["before_start"]) < left:
                return Fraction(entry["share"])
        return Fraction(self.content["cancellation"][-1]["share"]) if self.content.get("cancellation") else Fraction(0)

    @property
    def early_return(self) -> Fraction:
        return Fraction(self.content.get("early_return", "0"))

    @property
    def unused(self) -> Fraction:
        return Fraction(self.content.get("unused", "1"))

    def rounded(self, seconds: int) -> int:
        """Return for how long a reservation is charged that had so many seconds."""
        step = seconds_of(self.content.get("round_up", "PT1S"))
        return max(-(-seconds // step) * step, seconds_of(self.content.get("minimum", "PT0S")))


def list_at(lists: Sequence[PriceList], instant: int, *, booked: int) -> PriceList | None:
    """Return the list that holds at an instant for what was booked then, the one published last; None: it is free."""
    known = [found for found in lists if found.published < booked and found.valid_from <= instant]
    return max(known, key=lambda found: found.version, default=None)
