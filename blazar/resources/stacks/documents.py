# SPDX-License-Identifier: Apache-2.0
"""Parses the documents of a stack: YAML text, or JSON as it came in the request. Pure.

Anybody who may ask for a lease may send any text, so everything has a limit that is kept before the text is turned into
values: its size, its depth, and its number of values, aliases counted as what they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from blazar.model.errors import InvalidInput
from blazar.model.lease import Json

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

LARGEST = 512 * 1024
"""Maximum bytes of template, environment, parameters and files together; Heat takes no larger template."""

MOST_VALUES = 20_000
"""Maximum values of one document."""

DEEPEST = 60
"""Maximum values inside each other."""

LARGEST_NUMBER = 10**300
"""Python turns far larger ones into no text, and JSON's readers into infinity."""

Path = tuple[str | int, ...]
"""Keys and indexes that lead to a value of a document."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON object, and where it was in the request: ``pointer`` is the field, which had it as text or as object."""

    value: Json
    pointer: str
    is_text: bool

    def at(self, path: Path = ()) -> str:
        """Return the JSON pointer of a value; that of the whole text, if it was inside of one."""
        return self.pointer if self.is_text else self.pointer + pointer_of(path)


def pointer_of(path: Path) -> str:
    """Return a path as a JSON pointer."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def document(given: object, *, name: str, pointer: str) -> Document:
    """Return a document given as YAML text or as an object; ``name`` is how sentences call it. InvalidInput."""
    is_text = isinstance(given, str)
    value = _parsed(given, name, pointer) if isinstance(given, str) else given
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is not an object; give one, or the YAML text of one", pointer=pointer)
    found = Document(value, pointer, is_text)
    for count, (path, each) in enumerate(values(value), start=1):
        if count > MOST_VALUES:
            raise InvalidInput(f"{name} has more than {MOST_VALUES} values; make it smaller", pointer=pointer)
        if len(path) > DEEPEST:
            raise InvalidInput(f"{name} is more than {DEEPEST} values deep; make it flatter", pointer=pointer)
        if problem := _problem(each):
            raise InvalidInput(f"{name} {problem} (at {pointer_of(path) or '/'})", pointer=found.at(path))
    return found


def values(value: object) -> Iterator[tuple[Path, object]]:
    """Yield all values inside a value, itself included, each after what contains it."""
    waiting: list[tuple[Path, object]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        yield path, each
        # An explicit list, not recursion: what comes as JSON may be deeper than Python's stack.
        if isinstance(each, dict):
            waiting.extend(((*path, key), inner) for key, inner in each.items())
        elif isinstance(each, list):
            waiting.extend(((*path, index), inner) for index, inner in enumerate(each))


def check_text(text: str, *, name: str, pointer: str) -> None:
    """Raise InvalidInput for a text that no database or service takes."""
    if problem := _problem(text):
        raise InvalidInput(f"{name} {problem}", pointer=pointer)


def size_of(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text.encode("utf-8", errors="replace"))


class _Loader(_SafeLoader):
    """Loads what JSON has, too: dates stay texts, and no other tag is known."""


_TAG = "tag:yaml.org,2002:"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag not in (_TAG + "timestamp", _TAG + "value")]
    for first, rules in _SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: make
    for tag, make in _SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_TAG) in ("null", "bool", "int", "float", "str", "seq", "map")
}


@dataclass(slots=True)
class _Size:
    """The size of a part of a YAML text: its values, the characters of its scalars, and its depth."""

    values: int = 1
    characters: int = 0
    depth: int = 1

    def add(self, part: _Size) -> None:
        self.values += part.values
        self.characters += part.characters
        self.depth = max(self.depth, part.depth + 1)


def _parsed(text: str, name: str, pointer: str) -> object:
    check_text(text, name=name, pointer=pointer)
    if size_of(text) > LARGEST:
        raise InvalidInput(f"{name} has more than {LARGEST // 1024} KiB; make it smaller", pointer=pointer)
    try:
        _check_size(text, name, pointer)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidInput(f"{name} is not YAML: {_short(error.problem)}{where}", pointer=pointer) from error
    except (yaml.YAMLError, ValueError) as error:
        # Also numbers of thousands of digits, which Python does not convert.
        raise InvalidInput(f"{name} is not YAML: {_short(str(error))}", pointer=pointer) from error


def _check_size(text: str, name: str, pointer: str) -> None:
    """Raise InvalidInput if a text stands for too much. Reads its events only, so that nothing large is made."""
    anchors: dict[str, _Size] = {}
    open_parts: list[tuple[str | None, _Size]] = []
    total = _Size(0)
    for event in yaml.parse(text, Loader=_Loader):
        part: _Size | None = None
        anchor: str | None = None
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            open_parts.append((event.anchor, _Size()))
            # Not known until its end: an alias inside of it would stand for itself.
            anchors.pop(event.anchor or "", None)
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            anchor, part = open_parts.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, part = event.anchor, _Size(characters=len(event.value))
        elif isinstance(event, yaml.AliasEvent):
            part = anchors.get(event.anchor or "")
            if part is None:
                raise InvalidInput(
                    f"{name} has the alias *{_short(event.anchor or '')}, which is part of itself or of nothing",
                    pointer=pointer,
                )
        if anchor is not None and part is not None:
            anchors[anchor] = part
        if part is not None:
            (open_parts[-1][1] if open_parts else total).add(part)
        _check_limits(open_parts, total, name, pointer)


def _check_limits(open_parts: list[tuple[str | None, _Size]], total: _Size, name: str, pointer: str) -> None:
    # Only the innermost part has grown; those around it are checked when it ends.
    now = open_parts[-1][1] if open_parts else total
    if now.values > MOST_VALUES:
        raise InvalidInput(
            f"{name} has more than {MOST_VALUES} values, those behind aliases included; make it smaller",
            pointer=pointer,
        )
    if now.characters > LARGEST:
        raise InvalidInput(
            f"{name} has more than {LARGEST // 1024} KiB, what is behind aliases included; make it smaller",
            pointer=pointer,
        )
    if len(open_parts) + now.depth - 1 > DEEPEST:
        raise InvalidInput(f"{name} is more than {DEEPEST} values deep; make it flatter", pointer=pointer)


def _problem(value: Any) -> str | None:
    """Return what is wrong with one value, the keys of an object included; None if it is sound."""
    match value:
        case dict():
            for key in value:
                if not isinstance(key, str):
                    shown = "that is a long number" if _is_long(key) else _short(str(key))
                    return f"has the key {shown}, which is no text; put it in quotes"
                if problem := _problem(key):
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
    # YAML's hexadecimal and sexagesimal numbers may have any length.
    return isinstance(value, int) and abs(value) >= LARGEST_NUMBER


def _short(text: str | None) -> str:
    line = " ".join(ascii(text or "it cannot be read")[1:-1].split())
    return line if len(line) <= 120 else line[:117] + "..."
