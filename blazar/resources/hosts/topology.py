# SPDX-License-Identifier: Apache-2.0
"""How the hosts of a reservation are to lie to each other, as requests say it: ``together`` and ``spread``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blazar.model.base.errors import InvalidInput
from blazar.model.calendar.topology import ANYWHERE, SpreadOver, Together, Topology
from blazar.resources.contract.parameters import HOST_PROPERTIES, MOST, PUBLIC_HOST_PROPERTIES, quote
from blazar.resources.contract.schemas import Schema

TOGETHER, SPREAD = "together", "spread"
FIELDS = (TOGETHER, SPREAD)

_PROPERTY: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "title": "Property",
    "description": "a property of hosts",
}
_NUMBER: Schema = {"type": "integer", "minimum": 1, "maximum": MOST, "description": "a whole number from 1"}
_PREFER: Schema = {"type": "boolean", "default": False, "title": "Only if possible", "description": "true or false"}


def _schema(title: str, description: str, keys: Schema) -> Schema:
    properties = {"property": _PROPERTY, **keys}
    return {
        "type": ["string", "object", "null"],
        "maxLength": 255,
        "properties": properties,
        "required": ["property"],
        "additionalProperties": False,
        "title": title,
        "description": description,
    }


SCHEMAS: Schema = {
    TOGETHER: _schema(
        "Together",
        'hosts of which a property, as "rack", has one value; an object has the property, and whether that is only '
        "preferred, or the size of groups that are together each",
        {"prefer": _PREFER, "size": {**_NUMBER, "title": "In groups of"}},
    ),
    SPREAD: _schema(
        "Spread",
        'hosts of which a property, as "rack", has another value each; an object has the property, and how many at '
        "most may have the same",
        {"most": {**_NUMBER, "title": "At most with one value"}},
    ),
}
"""What a request may have, for these fields."""


def checked_topology(given: Mapping[str, object], least: int, most: int) -> Topology:
    """Return how so many hosts are to lie; InvalidInput names the field."""
    topology = read_topology(given)
    if topology is ANYWHERE:
        return ANYWHERE
    size = 0 if topology.together is None else topology.together.size
    if size and (least % size or most % size):
        raise _refusal(TOGETHER, f"has groups of {size}; give a min and a max that are multiples of it")
    return topology


def read_topology(given: Mapping[str, object]) -> Topology:
    """Return how hosts are to lie, of a request or of a reservation that keeps it; InvalidInput names the field."""
    if given.get(TOGETHER) is None and given.get(SPREAD) is None:
        return ANYWHERE
    together, spread = (_read(given.get(field), field) for field in FIELDS)
    size, prefer = _number(together, "size", TOGETHER), together.get("prefer", False)
    if not isinstance(prefer, bool):
        raise _refusal(TOGETHER, f"has prefer {quote(prefer)}; give true or false")
    if size and prefer:
        raise _refusal(TOGETHER, "has prefer and size; groups are firm: leave one of them out")
    return Topology(
        Together(str(together["property"]), prefer, size) if together else None,
        SpreadOver(str(spread["property"]), _number(spread, "most", SPREAD) or 1) if spread else None,
    )


def render_topology(topology: Topology) -> dict[str, Mapping[str, Any]]:
    """Return the fields of a reservation; what is not asked for is left out."""
    found: dict[str, Mapping[str, Any]] = {}
    if (together := topology.together) is not None:
        more = {"prefer": together.prefer, "size": together.size}
        found[TOGETHER] = {"property": together.key, **{key: value for key, value in more.items() if value}}
    if (spread := topology.spread) is not None:
        found[SPREAD] = {"property": spread.key, **({"most": spread.most} if spread.most > 1 else {})}
    return found


def check_keys(topology: Topology, known: frozenset[str]) -> None:
    """Raise InvalidInput if it names a property that no host has, or one that tells hosts apart by their names."""
    for field, one in ((TOGETHER, topology.together), (SPREAD, topology.spread)):
        if one is not None and one.key not in (known - HOST_PROPERTIES) | frozenset(PUBLIC_HOST_PROPERTIES):
            raise InvalidInput(
                f"{field} names the property {quote(one.key)}, which no host has; name one that hosts share, such as "
                "$availability_zone, or a capability, as their rack",
                code="unknown_property",
                at=f"/{field}",
            )


def _read(value: object, field: str) -> Mapping[str, object]:
    if value is None:
        return {}
    given = {"property": value} if isinstance(value, str) else value
    known = {"property", *SCHEMAS[field]["properties"]}
    if not isinstance(given, Mapping) or not known >= given.keys():
        raise _refusal(field, f"is {quote(value)}; give a property, or an object with {', '.join(sorted(known))}")
    name = given.get("property")
    # All of them: what is kept of a request is read again, and means the same then.
    key = name.lstrip("$") if isinstance(name, str) else ""
    if not 1 <= len(key) <= 255:
        raise _refusal(field, f"has property {quote(name)}; give the name of a property of hosts, as rack")
    return {**given, "property": key}


def _number(given: Mapping[str, object], key: str, field: str) -> int:
    value = given.get(key, 0)
    if key in given and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST):
        raise _refusal(field, f"has {key} {quote(value)}; give a whole number from 1 to {MOST}")
    return int(str(value))


def _refusal(field: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field} {why}", at=f"/{field}")
