# SPDX-License-Identifier: Apache-2.0
"""Reads YAML text as the values that JSON has, by rules of our own, in one pass. Pure.

Scalars are read as Heat reads them (YAML 1.1: ``yes`` is true, ``010`` is eight), but for what surprises or costs:
dates and ``1:30`` are texts, directives are refused, and there are no tags but those of JSON's values. libyaml only
tells the events, so that no value is made before its size is known, and none that an alias would multiply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from blazar.model.base.values import dataclass, field

try:
    from yaml import CSafeLoader as _Events
except ImportError:  # PyYAML without libyaml
    from yaml import SafeLoader as _Events  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """How much a text may stand for, aliases counted as what they stand for."""

    values: int
    characters: int
    depth: int


class UnreadableYaml(Exception):
    """A text that is no YAML, or not what is read here; the message goes on after the name of the text."""


class TooMuchYaml(Exception):
    """A text that stands for more than its limits; the message goes on after the name of the text."""


LONGEST_NUMBER = 320
"""Maximum characters of a number; Python reads far longer ones, in a time that grows faster than they do."""

_TAG = "tag:yaml.org,2002:"
_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])\ufeff*%")
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{word: True for one in ("yes", "true", "on") for word in (one, one.capitalize(), one.upper())},
    **{word: False for one in ("no", "false", "off") for word in (one, one.capitalize(), one.upper())},
}
_INT = re.compile(r"([-+]?)(?:(0b[01_]+)|(0x[0-9a-fA-F_]+)|(0[0-7_]*)|([1-9][0-9_]*))", re.ASCII)
_FLOAT = re.compile(r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?", re.ASCII)
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_NUMBER_BEGINS = frozenset("+-.0123456789")
_MERGE = object()
"""The key ``<<``, whose value is merged into its object."""
_NO_KEY = object()


@dataclass(slots=True)
class _Size:
    """The size of a part: its values, the characters of its scalars, and its depth."""

    values: int = 1
    characters: int = 0
    depth: int = 1

    def add(self, part: _Size) -> None:
        self.values += part.values
        self.characters += part.characters
        self.depth = max(self.depth, part.depth + 1)


@dataclass(slots=True)
class _Open:
    """A list or an object that has begun and has not ended."""

    anchor: str | None
    made: list[Any] | dict[Any, Any]
    size: _Size = field(default_factory=_Size)
    key: object = _NO_KEY
    merged: list[Mapping[Any, Any]] = field(default_factory=list)

    def add(self, value: Any, size: _Size) -> None:
        """Add a value, or the key of the next one."""
        self.size.add(size)
        if isinstance(self.made, list):
            self.made.append(value)
        elif self.key is _NO_KEY:
            if isinstance(value, list | dict):
                raise UnreadableYaml("is not YAML that JSON can say: a list or an object is a key; give a text")
            self.key = value
        else:
            if self.key is _MERGE:
                self._merge(value)
            else:
                self.made[self.key] = value
            self.key = _NO_KEY

    @property
    def value(self) -> Any:
        """Return what it has become: what is merged into an object gives way to its own keys."""
        if not self.merged or not isinstance(self.made, dict):
            return self.made
        found: dict[Any, Any] = {}
        for mapping in self.merged:
            found |= mapping
        return found | self.made

    def _merge(self, value: Any) -> None:
        # Of a list the first counts.
        for part in reversed(value) if isinstance(value, list) else (value,):
            if not isinstance(part, dict):
                raise UnreadableYaml("is not YAML that is read here: << has something else than an object to merge")
            self.merged.append(part)


def read_yaml(text: str, limits: YamlLimits) -> Any:
    """Return the value of a YAML text with one document. UnreadableYaml, TooMuchYaml."""
    if _DIRECTIVE.search(text):
        raise UnreadableYaml("has a line that begins with %, a directive; leave it out")
    try:
        return _Reader(limits).read(text)
    except yaml.MarkedYAMLError as error:
        raise UnreadableYaml(
            f"is not YAML: {shorten_to_line(error.problem)}{_describe_position(error.problem_mark)}"
        ) from error
    except yaml.YAMLError as error:
        raise UnreadableYaml(f"is not YAML: {shorten_to_line(str(error))}") from error


class _Reader:
    """One reading, with what it has seen so far."""

    def __init__(self, limits: YamlLimits) -> None:
        self._limits = limits
        self._open: list[_Open] = []
        self._root = _Open(None, [])
        self._anchors: dict[str, tuple[Any, _Size]] = {}

    def read(self, text: str) -> Any:
        has_begun = False
        for event in yaml.parse(text, Loader=_Events):
            match event:
                case yaml.ScalarEvent():
                    size = _Size(characters=len(event.value))
                    self._add_value(event.anchor, self._read_scalar(event), size)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._begin_collection(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    ended = self._open.pop()
                    self._add_value(ended.anchor, ended.value, ended.size)
                case yaml.AliasEvent():
                    self._add_value(None, *self._resolve_alias(event))
                case yaml.DocumentStartEvent():
                    if has_begun:
                        raise UnreadableYaml(
                            f"is not YAML: it has another document{_describe_position(event.start_mark)}"
                        )
                    has_begun = True
            self._check_limits()
        return self._root.made[0] if self._root.made else None

    def _begin_collection(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        is_object = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_object else "seq")):
            _refuse_tag(event)
        # Not known until its end: an alias inside of it would stand for itself.
        self._anchors.pop(event.anchor or "", None)
        self._open.append(_Open(event.anchor, {} if is_object else []))

    def _add_value(self, anchor: str | None, value: Any, size: _Size) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size
        (self._open[-1] if self._open else self._root).add(value, size)

    def _resolve_alias(self, event: yaml.AliasEvent) -> tuple[Any, _Size]:
        if event.anchor not in self._anchors:
            raise UnreadableYaml(
                f"has the alias *{shorten_to_line(event.anchor)}, which is part of itself or of nothing"
            )
        return self._anchors[event.anchor]

    def _read_scalar(self, event: yaml.ScalarEvent) -> Any:
        tag, text = event.tag, event.value
        if tag is None and event.implicit[0]:
            is_key = bool(self._open) and isinstance(self._open[-1].made, dict) and self._open[-1].key is _NO_KEY
            return _MERGE if is_key and text == "<<" else _parse_plain_scalar(text)
        if tag in (None, "!", _TAG + "str"):
            return text
        found = _parse_plain_scalar(text)
        if not any(tag == _TAG + name and _matches_tag(found, name) for name in ("null", "bool", "int", "float")):
            _refuse_tag(event)
        try:
            return float(found) if tag == _TAG + "float" else found
        except OverflowError:
            raise UnreadableYaml("has a number that is too large; give a smaller one, or put it in quotes") from None

    def _check_limits(self) -> None:
        # Only the innermost part has grown; those around it are checked when it ends.
        now, limits = self._open[-1].size if self._open else self._root.size, self._limits
        if now.values > limits.values:
            raise TooMuchYaml(f"has more than {limits.values} values, those behind aliases included; make it smaller")
        if now.characters > limits.characters:
            raise TooMuchYaml(
                f"has more than {limits.characters // 1024} KiB, what is behind aliases included; make it smaller"
            )
        if len(self._open) + now.depth - 1 > limits.depth:
            raise TooMuchYaml(f"is more than {limits.depth} values deep; make it flatter")


def _parse_plain_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_BEGINS:
        return text
    whole = _INT.fullmatch(text)
    if whole is None and not _FLOAT.fullmatch(text):
        if _NO_NUMBER.fullmatch(text):
            raise UnreadableYaml(f"has the number {text}; give a finite one, or put it in quotes")
        return text
    if len(text) > LONGEST_NUMBER:
        raise UnreadableYaml(
            f"is not YAML that is read here: it has a long number, of {len(text)} characters; give a smaller one, or "
            "put it in quotes"
        )
    bare = text.replace("_", "")
    if whole is None:
        return float(bare)
    sign, binary, hexadecimal, octal, _ = whole.groups()
    base = 2 if binary else 16 if hexadecimal else 8 if octal else 10
    digits = bare.removeprefix(sign).removeprefix("0b").removeprefix("0x") if base in (2, 16) else bare
    if digits.strip("+-") == "":
        return text
    return -int(digits, base) if base in (2, 16) and sign == "-" else int(digits, base)


def _matches_tag(value: object, name: str) -> bool:
    """Return whether a value is of the kind that a tag names."""
    match name:
        case "null":
            return value is None
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse_tag(event: Any) -> NoReturn:
    raise UnreadableYaml(
        f"is not YAML that is read here: the tag {shorten_to_line(event.tag)} is unknown, or does not fit what it is "
        f"for; leave it out{_describe_position(event.start_mark)}"
    )


def _describe_position(mark: Any) -> str:
    return f", in line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def shorten_to_line(text: str | None) -> str:
    """Return a text of others in one line that can be shown."""
    line = " ".join(ascii(text or "it cannot be read")[1:-1].split())
    return line if len(line) <= 120 else line[:117] + "..."
