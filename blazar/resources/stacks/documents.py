# SPDX-License-Identifier: Apache-2.0
"""Parses the documents of a stack: YAML text, or JSON as it came in the request. Pure.

Anybody who may ask for a lease may send any text, so everything has a limit that is kept before the text is turned into
values: its size, its depth, and its number of values, aliases counted as what they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, replace
from blazar.resources.stacks.yaml_text import TooMuchYaml, UnreadableYaml, YamlLimits, read_yaml, shorten_to_line

LARGEST = 512 * 1024
"""Maximum bytes of template, environment, parameters and files together; Heat takes no larger template."""

MOST_VALUES = 10_000
"""Maximum values of one document, and of all documents of a stack together."""

DEEPEST = 60
"""Maximum values inside each other."""

LARGEST_NUMBER = 10**300
"""Python turns far larger ones into no text, and JSON's readers into infinity."""

Path = tuple[str | int, ...]
"""Keys and indexes that lead to a value of a document."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON object, and where it was in the request: ``pointer`` is the field, which had it as text or as object.

    ``size`` is the number of its values.
    """

    value: Json
    pointer: str
    is_text: bool
    size: int = 0

    def pointer_at(self, path: Path = ()) -> str:
        """Return the JSON pointer of a value; that of the whole text, if it was inside of one."""
        return self.pointer if self.is_text else self.pointer + pointer_of(path)


def pointer_of(path: Path) -> str:
    """Return a path as a JSON pointer."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def parse_document(given: object, *, name: str, pointer: str) -> Document:
    """Return a document given as YAML text or as an object; ``name`` is how sentences call it. InvalidInput."""
    is_text = isinstance(given, str)
    value = _parse_yaml(given, name, pointer) if isinstance(given, str) else given
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is not an object; give one, or the YAML text of one", at=pointer)
    found = Document(value, pointer, is_text)
    count = 0
    for count, (path, part) in enumerate(iterate_values(value), start=1):
        if count > MOST_VALUES:
            raise InvalidInput(f"{name} has more than {MOST_VALUES} values; make it smaller", at=pointer)
        if len(path) > DEEPEST:
            raise InvalidInput(f"{name} is more than {DEEPEST} values deep; make it flatter", at=pointer)
        if problem := _problem_of_value(part):
            raise InvalidInput(f"{name} {problem} (at {pointer_of(path) or '/'})", at=found.pointer_at(path))
    return replace(found, size=count)


def iterate_values(value: object) -> Iterator[tuple[Path, object]]:
    """Yield all values inside a value, itself included, each after what contains it."""
    waiting: list[tuple[Path, object]] = [((), value)]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        # An explicit list, not recursion: what comes as JSON may be deeper than Python's stack.
        if isinstance(part, dict):
            waiting.extend(((*path, key), inner) for key, inner in part.items())
        elif isinstance(part, list):
            waiting.extend(((*path, index), inner) for index, inner in enumerate(part))


def check_text(text: str, *, name: str, pointer: str) -> None:
    """Raise InvalidInput for a text that no database or service takes."""
    if problem := _problem_of_value(text):
        raise InvalidInput(f"{name} {problem}", at=pointer)


def size_of(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text.encode("utf-8", errors="replace"))


def _parse_yaml(text: str, name: str, pointer: str) -> object:
    check_text(text, name=name, pointer=pointer)
    if size_of(text) > LARGEST:
        raise InvalidInput(f"{name} has more than {LARGEST // 1024} KiB; make it smaller", at=pointer)
    try:
        return read_yaml(text, YamlLimits(MOST_VALUES, LARGEST, DEEPEST))
    except (TooMuchYaml, UnreadableYaml) as error:
        raise InvalidInput(f"{name} {error}", at=pointer) from error


def _problem_of_value(value: Any) -> str | None:
    """Return what is wrong with one value, the keys of an object included; None if it is sound."""
    match value:
        case dict():
            for key in value:
                if not isinstance(key, str):
                    shown = "that is a long number" if _is_long(key) else shorten_to_line(str(key))
                    return f"has the key {shown}, which is no text; put it in quotes"
                if problem := _problem_of_value(key):
                    return problem
        case str():
            if "\0" in value:
                return "has a NUL character; leave it out"
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                return "has half of a character (a lone surrogate); leave it out"
        case float() if not math.isfinite(value):
            return f"has the number {value}; give a finite one"
        case int() if _is_long(value):
            return "has a number of more than 300 digits; give a smaller one, or put it in quotes"
    return None


def _is_long(value: object) -> bool:
    # What comes as JSON may have some thousand digits.
    return isinstance(value, int) and abs(value) >= LARGEST_NUMBER
