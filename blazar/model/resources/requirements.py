# SPDX-License-Identifier: Apache-2.0
"""The requirements language: which resources a reservation can use.

Grammar, as JSON (a string that contains it, or the list itself)::

    requirement = "" | [] | [op, "$key", value] | ["in", "$key", [value, ...]]
                | ["and", requirement, ...] | ["or", requirement, ...] | ["not", requirement]
    op          = "==" | "=" | "!=" | "<" | "<=" | ">" | ">="

A value is compared as a number if both sides are numbers, and as a string otherwise. The value ``null`` means that the
value is not known. A comparison with a property that a resource does not have is false, even with ``!=``; ``not`` is
true exactly where the negated requirement is false.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import read_json
from blazar.model.base.values import dataclass
from blazar.model.resources.resource import PropertyValue

DEEPEST = 16
LONGEST_TEXT = 64 * 1024
MOST_NODES = 1000

NULL = "null"
"""The value with which a request asks for a property whose value is not known."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Matches every resource."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares a property with a value; ``op`` is one of ``== != < <= > >=``."""

    op: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Membership:
    """A property equals one of the values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class All:
    """Every term holds."""

    terms: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one term holds."""

    terms: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The term does not hold."""

    term: Requirement


Requirement = Anything | Comparison | Membership | All | AnyOf | Not

_ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?", re.ASCII)
_EXAMPLE = '["and", [">=", "$vcpus", "16"], ["==", "$availability_zone", "az-1"]]'


def parse_requirement(source: object, *, field: str) -> Requirement:
    """Parse the requirement in a request's ``field``. InvalidInput says what is wrong and how to correct it."""
    if source is None or source == "":
        return Anything()
    if isinstance(source, str):
        source = _parse_text(source, field)
    if not isinstance(source, list):
        raise _syntax_error(field, f"it is {_shorten(source)}, not a list")
    return _Parser(field).requirement(source, depth=1)


def render_requirement(requirement: Requirement) -> str:
    """Return the text of a requirement as a request may have it: of equal requirements the same; empty for any."""
    return "" if requirement == Anything() else json.dumps(_as_list(requirement))


def _as_list(requirement: Requirement) -> list[object]:
    match requirement:
        case Anything():
            return []
        case Comparison(op, key, value):
            return [op, f"${key}", value]
        case Membership(key, values):
            return ["in", f"${key}", list(values)]
        case All(terms):
            return ["and", *map(_as_list, terms)]
        case AnyOf(terms):
            return ["or", *map(_as_list, terms)]
        case Not(term):
            return ["not", _as_list(term)]


def matches(requirement: Requirement, properties: Mapping[str, PropertyValue]) -> bool:
    """Return whether a resource with these properties meets the requirement."""
    match requirement:
        case Anything():
            return True
        case Comparison(op, key, value):
            return key in properties and _compare(op, properties[key], value)
        case Membership(key, values):
            return key in properties and any(_compare("==", properties[key], value) for value in values)
        case All(terms):
            return all(matches(term, properties) for term in terms)
        case AnyOf(terms):
            return any(matches(term, properties) for term in terms)
        case Not(term):
            return not matches(term, properties)


def can_match(requirement: Requirement, key: str, value: PropertyValue) -> bool:
    """Return whether a resource with this value of one property can meet the requirement, whatever its others are."""
    return _list_outcomes(requirement, key, value)[0]


def _list_outcomes(requirement: Requirement, key: str, value: PropertyValue) -> tuple[bool, bool]:
    """Return whether a requirement can hold, and whether it can fail, if of all properties only one is known."""
    match requirement:
        case All(terms):
            parts = [_list_outcomes(term, key, value) for term in terms]
            return all(holds for holds, _ in parts), any(fails for _, fails in parts)
        case AnyOf(terms):
            parts = [_list_outcomes(term, key, value) for term in terms]
            return any(holds for holds, _ in parts), all(fails for _, fails in parts)
        case Not(term):
            holds, fails = _list_outcomes(term, key, value)
            return fails, holds
        case Comparison(_, named, _) | Membership(named, _) if named != key:
            return True, True
    known = matches(requirement, {key: value})
    return known, not known


def property_keys(requirement: Requirement) -> frozenset[str]:
    """Return the names of the properties that the requirement uses."""
    match requirement:
        case Anything():
            return frozenset()
        case Comparison(_, key, _) | Membership(key, _):
            return frozenset({key})
        case All(terms) | AnyOf(terms):
            return frozenset().union(*(property_keys(term) for term in terms))
        case Not(term):
            return property_keys(term)


def join_requirements(*requirements: Requirement) -> Requirement:
    """Return the conjunction of these requirements, flattened."""
    terms: list[Requirement] = []
    for requirement in requirements:
        match requirement:
            case Anything():
                continue
            case All(inner):
                terms.extend(inner)
            case _:
                terms.append(requirement)
    if not terms:
        return Anything()
    return terms[0] if len(terms) == 1 else All(tuple(terms))


class _Parser:
    """Parses one requirement, and counts its parts to limit its size."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._nodes = 0

    def requirement(self, source: object, *, depth: int) -> Requirement:
        self._nodes += 1
        if depth > DEEPEST:
            raise _too_large(self._field, f"is nested deeper than {DEEPEST} levels", DEEPEST)
        if self._nodes > MOST_NODES:
            raise _too_large(self._field, f"has more than {MOST_NODES} parts", MOST_NODES)
        if not isinstance(source, list):
            raise _syntax_error(self._field, f"{_shorten(source)} is not a list")
        if not source:
            return Anything()
        op, *rest = source
        match op:
            case "and":
                return join_requirements(*self._terms(op, rest, depth))
            case "or":
                return AnyOf(tuple(self._terms(op, rest, depth)))
            case "not":
                terms = self._terms(op, rest, depth)
                if len(terms) != 1:
                    raise _syntax_error(self._field, '"not" takes exactly one requirement')
                return Not(terms[0])
            case "in":
                return self._membership(rest)
            case str() if op in _ORDERINGS or op == "=":
                return self._comparison("==" if op == "=" else op, rest)
        raise _syntax_error(
            self._field, f"{_shorten(op)} is not an operator; use and, or, not, in, ==, !=, <, <=, > or >="
        )

    def _terms(self, op: str, rest: Sequence[object], depth: int) -> list[Requirement]:
        if not rest:
            raise _syntax_error(self._field, f'"{op}" needs a requirement')
        return [self.requirement(term, depth=depth + 1) for term in rest]

    def _comparison(self, op: str, rest: Sequence[object]) -> Comparison:
        if len(rest) != 2:
            raise _syntax_error(self._field, f'"{op}" takes a $key and a value')
        return Comparison(op, self._key(rest[0]), self._value(rest[1]))

    def _membership(self, rest: Sequence[object]) -> Membership:
        if len(rest) < 2:
            raise _syntax_error(self._field, '"in" takes a $key and a list of values')
        key, *values = rest
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        if not values:
            raise _syntax_error(self._field, '"in" needs at least one value')
        self._nodes += len(values)
        if self._nodes > MOST_NODES:
            raise _too_large(self._field, f"has more than {MOST_NODES} parts", MOST_NODES)
        return Membership(self._key(key), tuple(self._value(value) for value in values))

    def _key(self, source: object) -> str:
        if not isinstance(source, str) or not source.startswith("$") or len(source) < 2:
            raise _syntax_error(self._field, f'{_shorten(source)} is not a key; keys begin with "$", such as "$vcpus"')
        return source[1:]

    def _value(self, source: object) -> str:
        match source:
            case str() if source:
                return source
            case bool():
                return "true" if source else "false"
            case int() | float():
                return str(source)
        raise _syntax_error(self._field, f"{_shorten(source)} is not a value; give a non-empty string, or a number")


def _parse_text(text: str, field: str) -> object:
    if len(text) > LONGEST_TEXT:
        raise _too_large(field, f"is longer than {LONGEST_TEXT} characters", LONGEST_TEXT)
    try:
        return read_json(text)
    except ValueError:
        raise _syntax_error(field, "it is not JSON") from None


def _compare(op: str, told: PropertyValue, asked: str) -> bool:
    if asked == NULL:
        return told is None if op == "==" else (op == "!=" and told is not None)
    if told is None:
        return False
    if isinstance(told, bool):
        flag = _parse_flag(asked)
        return flag is not None and _ORDERINGS[op](told, flag)
    left, right = _parse_number(told), _parse_number(asked)
    if left is not None and right is not None:
        return _ORDERINGS[op](left, right)
    return _ORDERINGS[op](str(told), asked)


def _parse_flag(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())


def _parse_number(value: PropertyValue) -> int | Decimal | None:
    if isinstance(value, int):
        return value
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        return None
    return Decimal(text) if "." in text else int(text)


def _shorten(value: object) -> str:
    text = json.dumps(value, default=str) if not isinstance(value, list | dict) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def _syntax_error(field: str, what: str) -> InvalidInput:
    sentence = f"{field} is malformed: {what}. Example: {_EXAMPLE}"
    return InvalidInput(sentence, code="malformed_requirement", at=f"/{field}")


def _too_large(field: str, what: str, most: int) -> InvalidInput:
    sentence = f"{field} is malformed: it {what}. Example: {_EXAMPLE}"
    return InvalidInput(sentence, code="out_of_bounds", at=f"/{field}", data={"maximum": most})
