# SPDX-License-Identifier: Apache-2.0
"""How values of query parameters are read: each reader has a schema for the document and turns a text into a value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from datetime import date
from typing import Any, Protocol

from blazar.api.http.shapes import FLAG, TEXT, Json
from blazar.model.base import dates
from blazar.model.base.clock import zulu
from blazar.model.base.dates import Place
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import UNUSABLE, read_json
from blazar.model.base.moments import NOW, LocalDay
from blazar.model.base.values import dataclass
from blazar.model.resources.pages import PROPERTY

DEEPEST = 40

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DAY_FORMAT = "a day such as 2030-04-01, which begins at midnight of the site"


class TextReader(Protocol):
    """Reads the text of a query parameter."""

    @property
    def schema(self) -> Json:
        """The schema of the text."""

    def read(self, text: str, place: Place) -> Any:
        """Return the value. InvalidInput, with the code ``invalid_query``, that says what would fit."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text of ``least`` to ``most`` characters; gives a str."""

    least: int = 1
    most: int = 255

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**TEXT, "minLength": self.least, "maxLength": self.most}

    def read(self, text: str, place: Place) -> str:
        """Return the text."""
        if not self.least <= len(text) <= self.most or UNUSABLE.search(text):
            raise place.invalid(text, f"a text of {self.least} to {self.most} characters", "invalid_query")
        return text


@dataclass(frozen=True, slots=True)
class Name:
    """A name, or a part of one, of ``least`` to ``most`` characters; gives it in NFC, as names are kept."""

    most: int
    least: int = 1

    @property
    def schema(self) -> Json:
        """The schema of the text, which is measured in NFC."""
        return Text(self.least, self.most).schema

    def read(self, text: str, place: Place) -> str:
        """Return the name."""
        return Text(self.least, self.most).read(unicodedata.normalize("NFC", text), place)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words; gives the word."""

    words: tuple[str, ...]

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {"enum": list(self.words)}

    def read(self, text: str, place: Place) -> str:
        """Return the word."""
        if text not in self.words:
            raise place.invalid(text, f"one of {', '.join(self.words)}", "invalid_query")
        return text


@dataclass(frozen=True, slots=True)
class SortKey:
    """What resources are sorted by: one of a few words, or ``property:name``; gives the key of a question."""

    words: tuple[str, ...]

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {"type": "string", "maxLength": 320, "pattern": f"^({'|'.join(self.words)}|property:.+)$"}

    def read(self, text: str, place: Place) -> str:
        """Return the key."""
        word, _, name = text.partition(":")
        if word == "property" and name and len(text) <= 320:
            return PROPERTY + name
        if text not in self.words:
            raise place.invalid(text, f"one of {', '.join(self.words)}, or property:NAME", "invalid_query")
        return text


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``; gives a bool."""

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return FLAG

    def read(self, text: str, place: Place) -> bool:
        """Return the flag."""
        if text not in ("true", "false"):
            raise place.invalid(text, "true or false", "invalid_query")
        return text == "true"


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from ``least``; one above ``most`` is refused, or with ``cut`` becomes ``most``. Gives an int."""

    least: int
    most: int
    cut: bool = False

    @property
    def schema(self) -> Json:
        """The schema of the number."""
        return {"type": "integer", "minimum": self.least, **({} if self.cut else {"maximum": self.most})}

    def read(self, text: str, place: Place) -> int:
        """Return the number."""
        if not (text.isascii() and text.isdigit()):
            raise place.invalid(text, f"a whole number from {self.least}", "invalid_query")
        # A number of that many digits is larger than any bound, and takes long to read.
        digits = text.lstrip("0") or "0"
        number = int(digits) if len(digits) <= 18 else 10**18
        if number < self.least:
            raise place.invalid(text, f"a whole number from {self.least}", "invalid_query")
        if number > self.most and not self.cut:
            raise out_of_bounds(place, text, self.most)
        return min(number, self.most)


@dataclass(frozen=True, slots=True)
class Date:
    """A date (RFC 3339, without an offset UTC) or ``now``; gives a ``Moment``."""

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**TEXT, "maxLength": dates.MOST_CHARACTERS, "description": dates.DATE_FORMAT}

    def read(self, text: str, place: Place) -> Any:
        """Return the moment."""
        return dates.moment(text, place)


@dataclass(frozen=True, slots=True)
class DayOrDate:
    """A day, a date (RFC 3339, without an offset UTC) or ``now``; gives a ``LocalDay`` or a ``Moment``."""

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**TEXT, "maxLength": dates.MOST_CHARACTERS, "description": f"{_DAY_FORMAT}, or {dates.DATE_FORMAT}"}

    def read(self, text: str, place: Place) -> Any:
        """Return the day or the moment."""
        if not _DAY.fullmatch(text):
            return dates.moment(text, place)
        try:
            day = date.fromisoformat(text)
        except ValueError:
            raise place.invalid(text, _DAY_FORMAT) from None
        if not dates.FIRST_YEAR < day.year <= dates.LAST_YEAR:
            raise place.invalid(text, f"a day of the years {dates.FIRST_YEAR + 1} to {dates.LAST_YEAR}")
        return LocalDay(day.year, day.month, day.day)


@dataclass(frozen=True, slots=True)
class DateOrDuration:
    """A date, ``now``, or a duration with its sign; gives a ``Moment`` or a ``Duration``."""

    backward: bool = False

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        described = f"{dates.DATE_FORMAT}, or with its sign {dates.DURATION_FORMAT}"
        return {**TEXT, "maxLength": dates.MOST_CHARACTERS, "description": described}

    def read(self, text: str, place: Place) -> Any:
        """Return the moment or the duration."""
        return dates.moment_or_duration(text, place, backward=self.backward)


@dataclass(frozen=True, slots=True)
class Length:
    """A duration without a sign; gives a ``Duration``."""

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**TEXT, "maxLength": dates.MOST_CHARACTERS, "description": dates.DURATION_FORMAT}

    def read(self, text: str, place: Place) -> Any:
        """Return the duration."""
        return dates.duration(text, place)


@dataclass(frozen=True, slots=True)
class JsonText:
    """A JSON array or object, as a requirement; gives its value."""

    most: int = 64 * 1024

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**TEXT, "maxLength": self.most, "contentMediaType": "application/json"}

    def read(self, text: str, place: Place) -> Any:
        """Return the value."""
        wanted = f"JSON of at most {self.most} characters and {DEEPEST} levels"
        if len(text) > self.most:
            raise out_of_bounds(place, f"{len(text)} characters long", self.most)
        if UNUSABLE.search(text):
            raise place.invalid(text, wanted, "invalid_query")
        try:
            found = read_json(text)
        except ValueError:
            raise place.invalid(text, wanted, "invalid_query") from None
        if not isinstance(found, list | dict) or _depth(found) > DEEPEST:
            raise place.invalid(text, wanted, "invalid_query")
        return found


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a known set, with commas between them; gives a frozenset of str."""

    known: tuple[str, ...]

    @property
    def schema(self) -> Json:
        """The schema of the text."""
        return {**TEXT, "description": f"with commas between them: {', '.join(self.known)}"}

    def read(self, text: str, place: Place) -> frozenset[str]:
        """Return the names."""
        given = frozenset(text.split(","))
        if unknown := sorted(given - set(self.known)):
            raise place.invalid(unknown[0], f"some of {', '.join(self.known)}", "invalid_query")
        return given


def as_text(value: Any) -> str:
    """Return what a reader gave as a text of a ``Condition``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is NOW:
        return "now"
    return zulu(value) if hasattr(value, "isoformat") else str(value)


def out_of_bounds(place: Place, text: str, most: int | str) -> InvalidInput:
    """Return the error for a value that is larger than the service allows."""
    return InvalidInput(
        f"{place.name} is {text[:40]}; at most {most} is allowed",
        code="out_of_bounds",
        at=place.at,
        data={"maximum": most},
    )


def _depth(value: object) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        part, depth = left.pop()
        deepest = max(deepest, depth)
        inside: Collection[object] = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        left.extend((value, depth + 1) for value in inside)
    return deepest
