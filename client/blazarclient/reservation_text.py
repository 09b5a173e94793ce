# SPDX-License-Identifier: Apache-2.0
"""Reservations as people write them on a command line: ``resource_type=physical:host,min=1,max=2``.

A value that begins with ``[``, ``{`` or a quote is JSON and may have commas in it; nothing has to be escaped. A whole
reservation may be a JSON object, or ``@file`` with one in it. ``networks=@0`` refers to the first reservation of the
lease, and ``template=@course.yaml`` is the text of a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from blazarclient.exception import DuplicatedLeaseParameters, IncorrectLease

HOST, NETWORK, DEVICE = "physical:host", "network", "device"

_COMMON = ("resource_type", "region", "before_end")

KEYS: Mapping[str, tuple[str, ...]] = {
    HOST: (*_COMMON, "min", "max", "hypervisor_properties", "resource_properties", "together", "spread", "lend_beyond"),
    "virtual:instance": (
        *(*_COMMON, "vcpus", "memory_mb", "disk_gb", "ephemeral_gb", "extra_specs", "gpus", "gpu_model"),
        *("amount", "affinity", "resource_properties"),
    ),
    "flavor:instance": (*_COMMON, "flavor_id", "amount", "affinity", "resource_properties"),
    "virtual:floatingip": (*_COMMON, "network_id", "amount", "required_floatingips"),
    NETWORK: (*_COMMON, "network_name", "network_description", "network_properties", "resource_properties", "subnet"),
    DEVICE: (*_COMMON, "min", "max", "resource_properties"),
}
"""Keys by resource type. Reservations of other types are passed on with whatever keys they have."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    HOST: ("min",),
    "virtual:instance": ("vcpus", "memory_mb", "disk_gb", "amount"),
    "flavor:instance": ("flavor_id", "amount"),
    "virtual:floatingip": ("network_id",),
    NETWORK: ("network_name",),
    DEVICE: ("min",),
}

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    HOST: {"hypervisor_properties": "", "resource_properties": ""},
    "virtual:instance": {"affinity": "None", "resource_properties": ""},
    "flavor:instance": {"affinity": "None"},
    "virtual:floatingip": {"amount": 1, "required_floatingips": []},
    NETWORK: {"network_description": "", "network_properties": "", "resource_properties": ""},
    DEVICE: {"resource_properties": ""},
}
"""What a service of microversion 1.0 expects to be there."""

_TEXTS = frozenset(
    {
        *("hypervisor_properties", "resource_properties", "network_properties", "affinity", "before_end", "id"),
        *("name", "flavor_id", "flavor", "image", "network_id", "network_name", "network_description", "class"),
        *("volume_type", "gpu_model", "key_name", "public_key", "user_data", "region", "stack_name"),
    }
)
"""Keys whose values stay as they are written."""

_DOCUMENTS = frozenset({"template", "environment", "parameters"})
"""Keys of stacks whose values are texts, or ``@`` and the name of a file."""

_REFERENCE = re.compile(r"@(?:(?P<index>[0-9]{1,6})|(?P<id>[0-9a-fA-F-]{36}))")


def read_reservation(text: str, *, resource_type: str | None = None) -> dict[str, Any]:
    """Return the parameters of a new reservation. IncorrectLease; DuplicatedLeaseParameters."""
    values = _object(text)
    kind = values.setdefault("resource_type", resource_type) if resource_type else values.get("resource_type")
    if not kind:
        raise IncorrectLease(
            f"--reservation {text!r} has no resource_type; begin with one, such as resource_type=physical:host"
        )
    if kind in KEYS:
        _check_keys(values, KEYS[kind], kind)
        missing = [key for key in REQUIRED[kind] if values.get(key) in (None, "")]
        if missing:
            raise IncorrectLease(f"A reservation of {kind} needs {_listed(missing)}")
        values = {**DEFAULTS[kind], **values}
    if kind in (HOST, DEVICE):
        values.setdefault("max", values["min"])
        _check_counts(values)
    return values


def check_references(reservations: Sequence[Mapping[str, Any]]) -> None:
    """Check that references in the reservations of a new lease name others of them. IncorrectLease."""
    count = len(reservations)
    for position, reservation in enumerate(reservations):
        for key, value in reservation.items():
            for index in _referents(value):
                if not isinstance(index, int):
                    raise IncorrectLease(
                        f"{key} refers to a reservation by its id; in a new lease give its number, as {key}=@0"
                    )
                if index == position:
                    raise IncorrectLease(f"{key}=@{index} refers to its own reservation; @0 is the first of the lease")
                if index >= count:
                    there = "the only one is @0" if count == 1 else f"there are @0 to @{count - 1}"
                    raise IncorrectLease(
                        f"{key}=@{index} refers to a reservation that the lease does not have; {there}"
                    )


def _referents(value: Any) -> Sequence[Any]:
    items = value if isinstance(value, list) else [value]
    return [each["reservation"] for each in items if isinstance(each, Mapping) and each.keys() == {"reservation"}]


def read_change(text: str) -> dict[str, Any]:
    """Return the change of a reservation, which has its ``id``. IncorrectLease; DuplicatedLeaseParameters."""
    values = _object(text)
    if not values.get("id"):
        raise IncorrectLease("The key-value pair id=<reservation_id> is required for the --reservation argument")
    known = {"id", *(key for keys in KEYS.values() for key in keys)} - {"resource_type", "region"}
    if "resource_type" not in values:
        _check_keys(values, sorted(known), "a change")
    if len(values) == 1:
        raise IncorrectLease(f"Nothing is changed of reservation {values['id']}; add a key, such as max=3")
    return values


def _object(text: str) -> dict[str, Any]:
    plain = text.strip()
    if plain.startswith("@"):
        plain = _file(plain[1:]).strip()
    if plain.startswith("{"):
        try:
            return dict(json.loads(plain, object_pairs_hook=_once))
        except ValueError as error:
            raise IncorrectLease(f"A reservation is no JSON: {error}") from error
    if not plain:
        raise IncorrectLease("A reservation is empty; write it as resource_type=physical:host,min=1,max=1")
    return _once(_pairs(plain))


def _file(name: str) -> str:
    """Return the text of a file. IncorrectLease."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise IncorrectLease(f"The file {name!r} of a reservation cannot be read: {error}") from error


def _pairs(text: str) -> Iterable[tuple[str, Any]]:
    at = 0
    while at < len(text):
        equals = text.find("=", at)
        key = text[at:equals].strip() if equals >= 0 else text[at:].strip()
        if equals < 0 or "," in key or not key:
            raise IncorrectLease(f"{key!r} is no key=value pair, in the reservation {text!r}")
        value, end = _value(text, equals + 1)
        yield key, _read(key, value)
        at = end + 1


def _value(text: str, start: int) -> tuple[str, int]:
    """Return a value and where it ends: at a comma, or at the end of the text."""
    begin = start + len(text[start:]) - len(text[start:].lstrip())
    if begin < len(text) and text[begin] in '[{"':
        try:
            _, end = json.JSONDecoder().raw_decode(text, begin)
        except ValueError:
            raise IncorrectLease(f"{text[begin:]!r} is no JSON; check its quotes and brackets") from None
        comma = text.find(",", end)
        if text[end : comma if comma >= 0 else len(text)].strip():
            raise IncorrectLease(f"{text[end:]!r} comes after the end of a value; put a comma between the pairs")
        return text[begin:end], comma if comma >= 0 else len(text)
    comma = text.find(",", start)
    end = comma if comma >= 0 else len(text)
    return text[start:end].strip(), end


def _read(key: str, value: str) -> Any:
    if key in _TEXTS:
        return json.loads(value) if value.startswith('"') else value
    if key in _DOCUMENTS and value.startswith("@"):
        return _file(value[1:])
    if key == "files" and value.startswith("@"):
        return {value[1:]: _file(value[1:])}
    if value[:1] in ("[", "{", '"'):
        found = json.loads(value)
        if key == "files" and isinstance(found, list) and all(isinstance(each, str) for each in found):
            return {each.removeprefix("@"): _file(each.removeprefix("@")) for each in found}
        return [_in_list(each) for each in found] if isinstance(found, list) else found
    if value.startswith("@"):
        # A key in the plural has a list.
        return [_referred(key, value)] if key.endswith("s") else _referred(key, value)
    try:
        return int(value)
    except ValueError:
        return value


def _referred(key: str, value: str) -> dict[str, Any]:
    """Return ``{"reservation": …}`` for ``@`` and a number, or an id. IncorrectLease."""
    found = _REFERENCE.fullmatch(value)
    if not found:
        raise IncorrectLease(
            f"{key}={value} is no reference; write {key}=@0 for the first reservation of a new lease, and {key}=@<id> "
            f"in a change"
        )
    return {"reservation": found["id"] if found["index"] is None else int(found["index"])}


def _in_list(value: Any) -> Any:
    return _referred("", value) if isinstance(value, str) and _REFERENCE.fullmatch(value) else value


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise DuplicatedLeaseParameters(f"{key} is given twice in one reservation")
        values[key] = value
    return values


def _check_keys(values: Mapping[str, Any], known: Iterable[str], kind: str) -> None:
    names = list(known)
    for key in values:
        if key not in names:
            # Only for mistakes; a command that is written rightly starts sooner without it.
            import difflib

            near = difflib.get_close_matches(key, names, n=1)
            meant = f"; did you mean {near[0]}?" if near else f"; choose from {', '.join(names)}"
            raise IncorrectLease(f"{kind} has no key {key}{meant}")


def _check_counts(values: Mapping[str, Any]) -> None:
    for key in ("min", "max"):
        if not isinstance(values[key], int) or values[key] < 1:
            raise IncorrectLease(f"{key} is {values[key]!r}; give a number from 1 on")
    if values["min"] > values["max"]:
        raise IncorrectLease(f"min is {values['min']} and max is {values['max']}; min cannot be more than max")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
