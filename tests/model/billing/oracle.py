# SPDX-License-Identifier: Apache-2.0
"""What leases cost, added up step by step in fractions: slow, and short enough to be seen to be right.

It reads price lists as the documents that operators send, and knows nothing of the service.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
UNITS = {"D": 86400, "H": 3600, "M": 60, "S": 1}


@dataclass(frozen=True)
class Published:
    """A price list, when it was published, and the number of its version."""

    version: int
    published_at: datetime
    document: dict[str, Any]

    @property
    def valid_from(self) -> datetime:
        return datetime.fromisoformat(self.document["valid_from"])


@dataclass(frozen=True)
class Had:
    """What a reservation had of a sku from one instant until another."""

    reservation: str
    sku: str
    amount: int
    booked_amount: int
    begin: datetime
    until: datetime
    added_at: datetime | None = None
    handed_over_at: datetime | None = None
    outages: tuple[tuple[datetime, datetime], ...] = ()
    given_back_at: datetime | None = None
    began_at: datetime | None = None
    """When the reservation did that ends with it."""


@dataclass
class Due:
    """The time of a line, and what it costs, not rounded."""

    seconds: int = 0
    cost: Fraction = field(default_factory=Fraction)


def seconds_of(text: str) -> int:
    """Return the seconds of a duration with one unit, as P7D or PT24H."""
    return int(text.strip("PTDHMS")) * UNITS[text[-1]]


def is_inside(instant: datetime, spans: Sequence[tuple[datetime, datetime]]) -> bool:
    return any(begin <= instant < end for begin, end in spans)


def hours_factor(document: dict[str, Any], instant: datetime) -> Fraction:
    """Multiply the factors that hold at what a clock on the wall shows."""
    local = instant.astimezone(ZoneInfo(document["time_zone"]))
    today, yesterday = DAYS[local.weekday()], DAYS[local.weekday() - 1]
    shown = local.strftime("%H:%M")
    factor = Fraction(1)
    for band in document.get("hours", ()):
        days, begin, end = band.get("days", DAYS), band.get("from", "00:00"), band.get("to", "24:00")
        if begin < end:
            holds = today in days and begin <= shown < end
        else:
            holds = (today in days and begin <= shown) or (yesterday in days and shown < end)
        if holds:
            factor *= Fraction(band["factor"])
    return factor


def list_at(lists: Sequence[Published], booked_at: datetime, instant: datetime) -> Published | None:
    """Return the latest that is valid, of those that were published and not replaced."""
    known = [one for one in lists if one.published_at <= booked_at]
    standing = [
        one
        for one in known
        if not any(other.version > one.version and other.valid_from <= one.valid_from for other in known)
    ]
    valid = [one for one in standing if one.valid_from <= instant]
    return max(valid, key=lambda one: one.valid_from) if valid else None


def share_of(document: dict[str, Any], before_start: float) -> tuple[str, Fraction]:
    if before_start <= 0:
        return "early_return", Fraction(document.get("early_return", "0"))
    for entry in document.get("cancellation", ()):
        if "before_start" not in entry or before_start > seconds_of(entry["before_start"]):
            return "cancellation", Fraction(entry["share"])
    return "cancellation", Fraction(0)


class Bill:
    """The lines of a lease, by month, reservation, sku, category, status, version, price and factor."""

    def __init__(
        self,
        lists: Sequence[Published],
        project: str,
        parts: Sequence[tuple[datetime, datetime]],
        unused: Sequence[tuple[datetime, datetime]] = (),
    ) -> None:
        self.lists, self.project, self.parts, self.unused = lists, project, parts, unused
        self.lines: dict[tuple[Any, ...], Due] = defaultdict(Due)

    def add(self, had: Had, step: int) -> None:
        """Add a use, whose price changes at whole steps only."""
        instant = had.begin
        while instant < had.until:
            self.charge(had, instant, step)
            instant += timedelta(seconds=step)
        if had.began_at is not None:
            self.round_up(had)

    def round_up(self, had: Had) -> None:
        last = had.until - timedelta(seconds=1)
        took = int((had.until - had.began_at).total_seconds())
        if (found := self.list_of(had, last)) is None:
            return
        unit = seconds_of(found.document.get("round_up", "PT1S"))
        counted = took
        while counted % unit:
            counted += 1
        counted = max(counted, seconds_of(found.document.get("minimum", "PT0S")))
        if counted > took:
            self.charge(had, last, counted - took, rounding=True)

    def booked_at(self, had: Had, instant: datetime) -> tuple[datetime, datetime]:
        """Return when what it has begins by its booking, and when that was booked."""
        since, booked_at = [part for part in self.parts if part[0] <= instant][-1]
        if had.added_at is None or had.added_at <= booked_at:
            return since, booked_at
        # Who adds something books it for all that the lease has by then.
        return [part[0] for part in self.parts if part[1] <= had.added_at][0], had.added_at

    def list_of(self, had: Had, instant: datetime) -> Published | None:
        return list_at(self.lists, self.booked_at(had, instant)[1], instant)

    def charge(self, had: Had, instant: datetime, seconds: int, *, rounding: bool = False) -> None:
        since, booked_at = self.booked_at(had, instant)
        found = list_at(self.lists, booked_at, instant)
        month = instant.strftime("%Y-%m")
        prices = {price["sku"]: price["per_hour"] for price in found.document["prices"]} if found else {}
        if had.sku not in prices:
            if had.given_back_at is None and not rounding:
                version = found.version if found else None
                key = (month, had.reservation, had.sku, "free", "unpriced", version, Fraction(0), Fraction(1))
                self.lines[key].seconds += had.amount * seconds
            return
        document = found.document
        factor = hours_factor(document, instant)
        lead = max(0, (since - booked_at).total_seconds())
        factor *= next((Fraction(e["factor"]) for e in document.get("lead", ()) if lead < seconds_of(e["below"])), 1)
        more = [Fraction(e["factor"]) for e in document.get("amount", ()) if had.booked_amount > e["above"]]
        factor *= more[-1] if more else 1
        for entry in document.get("projects", ()):
            factor *= Fraction(entry["factor"]) if entry["project_id"] == self.project else 1
        category, status = "usage", "used"
        if had.given_back_at is not None:
            before_start = (self.parts[0][0] - had.given_back_at).total_seconds()
            category, share = share_of(document, before_start)
            if not share:
                return
            status, factor = "unused", factor * share
        elif document.get("late") != "charge" and had.handed_over_at and instant < had.handed_over_at:
            category, status = "free", "late"
        elif document.get("lost") != "charge" and is_inside(instant, had.outages):
            category, status = "free", "lost"
        elif is_inside(instant, self.unused):
            status, factor = "unused", factor * Fraction(document.get("unused", "1"))
        if rounding:
            if category == "free":
                return
            category = "rounding_up" if had.given_back_at is None else category
        price = Fraction(prices[had.sku])
        due = self.lines[(month, had.reservation, had.sku, category, status, found.version, price, factor)]
        due.seconds += had.amount * seconds
        if category != "free":
            due.cost += price * factor * had.amount * seconds / 3600
