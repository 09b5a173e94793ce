# SPDX-License-Identifier: Apache-2.0
"""Parts of a document that an operator has sent, read one by one: InvalidInput names the place and what would fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from blazar.model.base import dates
from blazar.model.base.dates import Place, in_body
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.base.week_hours import DAY, WEEKDAYS, WeekHours
from blazar.model.billing.charges import NANO, WHOLE
from blazar.model.resources.requirements import Requirement, parse_requirement

T = TypeVar("T")

_AMOUNT = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)
_FACTOR = re.compile(r"\d{1,3}(\.\d{1,6})?", re.ASCII)
_TIME = re.compile(r"(?:([01]\d|2[0-3]):([0-5]\d)|24:00)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A value of a document, and the path that leads to it."""

    value: Any
    path: tuple[str | int, ...] = ()

    @property
    def place(self) -> Place:
        """Return where it is, for refusals."""
        return in_body(*self.path) if self.path else Place("the price list", in_body().at)

    def refuse(self, wanted: str, *, is_number: bool = False) -> InvalidInput:
        """Return the refusal of the value: what is wanted instead. ``is_number``: no string was wanted at all."""
        match self.value:
            case str():
                shown = self.value
            case list() | dict():
                shown = "a list" if isinstance(self.value, list) else "an object"
            case _:
                shown = json.dumps(self.value) + ("" if is_number else " (no string)")
        return self.place.invalid(shown, wanted, "invalid_value")

    def fields(self, needed: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, DocumentPart]:
        """Return the parts of an object by their keys."""
        allowed = ", ".join((*needed, *optional))
        if not isinstance(self.value, dict):
            raise self.refuse(f"an object with {allowed}")
        found = {key: DocumentPart(value, (*self.path, key[:80])) for key, value in self.value.items()}
        for key in needed:
            if key not in found:
                place = in_body(*self.path, key)
                sentence = f"{place.name} is missing; the needed fields are: {', '.join(needed)}"
                raise InvalidInput(sentence, code="missing_field", at=place.at)
        for key, part in found.items():
            if key not in needed and key not in optional:
                sentence = f"{part.place.name} is unknown; the allowed fields are: {allowed}"
                raise InvalidInput(sentence, code="unknown_field", at=part.place.at)
        return found

    def items(self, most: int) -> Sequence[DocumentPart]:
        """Return the parts of a list."""
        if not isinstance(self.value, list) or len(self.value) > most:
            raise self.refuse(f"a list of at most {most} entries")
        return [DocumentPart(value, (*self.path, number)) for number, value in enumerate(self.value)]

    def match(self, pattern: re.Pattern[str], wanted: str) -> str:
        """Return a string that a pattern matches."""
        if not isinstance(self.value, str) or not pattern.fullmatch(self.value):
            raise self.refuse(wanted)
        return self.value

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.value, str):
            raise self.refuse("a string")
        return self.value

    def one_of(self, words: Sequence[str]) -> str:
        """Return one of some words."""
        if self.value not in words:
            raise self.refuse(f"one of {', '.join(words)}")
        return str(self.value)

    def whole(self, least: int, most: int) -> int:
        """Return a whole number between two."""
        if type(self.value) is not int or not least <= self.value <= most:
            raise self.refuse(f"a whole number from {least} to {most}, without quotes", is_number=True)
        return self.value

    def amount(self) -> int:
        """Return an amount of money, in 10⁻⁹ of the currency."""
        wanted = 'an amount as a string, such as "3.20", with at most 9 digits and 6 decimals'
        return int(Fraction(self.match(_AMOUNT, wanted)) * NANO)

    def factor(self, least: int | None = None) -> Fraction:
        """Return a factor that is more than 0, or with a ``least`` not less than that."""
        bound = "more than 0" if least is None else f"at least {least}"
        wanted = f'a factor as a string, such as "1.25", {bound} and below 1000, with at most 6 decimals'
        factor = Fraction(self.match(_FACTOR, wanted))
        if factor < (least or 0) or (not factor and least is None):
            raise self.refuse(wanted)
        return WHOLE if factor == 1 else factor

    def share(self) -> Fraction:
        """Return a share from 0 to 1."""
        wanted = 'a share from "0" to "1" as a string, such as "0.25", with at most 6 decimals'
        share = Fraction(self.match(_FACTOR, wanted))
        if share > 1:
            raise self.refuse(wanted)
        return WHOLE if share == 1 else share

    def length(self) -> int:
        """Return the seconds of a duration."""
        length = dates.duration(self.text(), self.place)
        if length.years or length.months:
            raise self.refuse("a duration without years and months, such as P7D, PT24H or PT1M")
        return length.days * DAY + length.seconds

    def time(self) -> int:
        """Return the seconds since midnight of a time of day; of 24:00 they are 0."""
        text = self.match(_TIME, "a time of day from 00:00 to 24:00, such as 09:00")
        return (int(text[:2]) * 3600 + int(text[3:]) * 60) % DAY

    def first_time(self) -> int:
        """Return the seconds since midnight of a time at which something begins."""
        if self.value == "24:00":
            raise self.refuse("00:00, on the days after these")
        return self.time()

    def requirement(self) -> Requirement:
        """Return a requirement of resources."""
        try:
            return parse_requirement(self.value, field=self.place.name)
        except InvalidInput as error:
            error.pointer = self.place.at.name
            raise


def read_optional(given: Mapping[str, DocumentPart], key: str, read: Callable[[DocumentPart], T], default: T) -> T:
    """Return what is read of a part, or a default if there is none."""
    return read(given[key]) if key in given else default


def parse_week_hours(given: Mapping[str, DocumentPart]) -> WeekHours:
    """Return hours of the week by their ``days``, ``from`` and ``to``; without them of all days, from and to midnight.

    A ``to`` that is not after ``from`` is on the next day.
    """
    days = [day.one_of(WEEKDAYS) for day in given["days"].items(7)] if "days" in given else WEEKDAYS
    if not days:
        raise given["days"].refuse(f"some of {', '.join(WEEKDAYS)}, or leave it out for all days")
    start, end = (
        read_optional(given, "from", DocumentPart.first_time, 0),
        read_optional(given, "to", DocumentPart.time, 0),
    )
    return WeekHours(frozenset(map(WEEKDAYS.index, days)), start, end)
