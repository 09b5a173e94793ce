# SPDX-License-Identifier: Apache-2.0
"""What a request about a lease may have: so much text, documents that can be read, and at 1.0 nothing that is newer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from blazar.api.http.faults import READ_ONLY
from blazar.api.http.shapes import Json
from blazar.model.base.errors import InvalidInput, pointer_to, pointing_at
from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import HIDDEN_EVENTS
from blazar.resources.request_schemas import DOCUMENTS
from blazar.resources.servers.access import USER_DATA

MOST_TEXT = 32 * 1024
"""Maximum bytes of text in a lease: its name, and the keys and values of its reservations and events.

A list of leases is read, sent and cached as a whole, so one large lease slows every list that contains it. What is
hidden, as user data, is not sent and does not count: its type has a limit for it.
"""

_NO_TEXT = READ_ONLY | {"resource_type", "resource_id"}
"""Keys that an update of a reservation may contain and that are not stored."""

_UNSEEN: Mapping[str, tuple[str, ...]] = {"virtual:server": (USER_DATA,)}
"""Parameters that no answer has, and for which their type has a limit of its own."""

NEWER: Mapping[str, frozenset[str]] = {
    "network": frozenset({"subnet"}),
    "physical:host": frozenset({"together", "spread", "lend_beyond"}),
    **dict.fromkeys(("virtual:instance", "virtual:server"), frozenset({"gpus", "gpu_model"})),
}
"""Parameters of reservations, by resource type, that 1.0 neither takes nor shows."""


def check_text(body: Json, what: str = "The lease") -> None:
    """Raise InvalidInput if a new lease, or what asks for one, exceeds ``MOST_TEXT``; it names the longest part.

    That is to be checked before anything of it is parsed.
    """
    items = {
        (key, number): _seen(item, item.get("resource_type"))
        for key in ("reservations", "events")
        for number, item in enumerate(body.get(key) or ())
    }
    if _text([body.get("name"), *items.values()]) <= MOST_TEXT:
        # There is no need to know what each part has.
        return
    parts = {"/name": _Part("name", _text(body.get("name")))}
    for (key, number), item in items.items():
        parts |= _parts(f"{key}[{number}]", f"/{key}/{number}", item)
    _check_text(parts, what)


def check_documents(items: Sequence[Json], types: Collection[str]) -> None:
    """Raise InvalidInput for a reservation with documents that cannot be read, if its type is one of the ``types``.

    That is done here, so that no manager begins with what takes long or cannot be read.
    """
    for number, item in enumerate(items):
        kind = item["resource_type"]
        if kind in types and (check := DOCUMENTS.get(kind)) is not None:
            with pointing_at(f"/reservations/{number}"):
                check(item)


def check_text_after(body: Json, lease: Lease) -> None:
    """Raise InvalidInput if an update enlarges a lease that then exceeds ``MOST_TEXT``."""
    before = {"/name": _Part("name", _text(lease.name))}
    for reservation in lease.reservations:
        before |= _parts(reservation.id, reservation.id, reservation.shown_parameters)
    for event in lease.events:
        if event.event_type not in HIDDEN_EVENTS:
            before[event.id] = _Part(event.id, _text(str(event.event_type)))
    after = dict(before)
    if "name" in body:
        after["/name"] = _Part("name", _text(body["name"]))
    known = {reservation.id: reservation for reservation in lease.reservations}
    for number, item in enumerate(body.get("reservations", [])):
        if (old := known.get(item.get("id"))) is not None:
            given = {key: value for key, value in item.items() if key not in _NO_TEXT}
            values = {**old.shown_parameters, **_seen(given, old.resource_type)}
            after = {key: part for key, part in after.items() if not key.startswith(f"{old.id}/")}
            after |= _parts(item["id"], f"/reservations/{number}", values)
    if _size(after) > _size(before):
        _check_text(after, "The lease")


def refuse_newer_values(body: Json, lease: Lease | None = None) -> None:
    """Raise InvalidInput if a request of 1.0, for a new lease or for the change of one, has a newer parameter."""
    found = () if lease is None else lease.reservations
    types: Mapping[str | None, str] = {reservation.id: reservation.resource_type for reservation in found}
    for number, item in enumerate(body.get("reservations", [])):
        id_ = item.get("id")
        # Nobody has looked at it yet, and a new reservation of 1.0 may have anything there.
        resource_type = types.get(id_ if isinstance(id_, str) else None, item.get("resource_type"))
        hidden = NEWER.get(resource_type, frozenset()) if isinstance(resource_type, str) else frozenset()
        for name in sorted(hidden & item.keys()):
            raise InvalidInput(
                f"reservations[{number}].{name} is unknown at microversion 1.0; leave it out, or ask with the header "
                "OpenStack-API-Version: reservation 1.1",
                at=f"/reservations/{number}/{name}",
            )


def _seen(item: Mapping[str, Any], resource_type: object) -> Mapping[str, Any]:
    """Return a reservation without what is hidden of its type."""
    return {key: value for key, value in item.items() if key not in _UNSEEN.get(str(resource_type), ())}


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a lease, what sentences call it, and the bytes of its text."""

    name: str
    size: int


def _parts(name: str, pointer: str, values: Mapping[str, Any]) -> dict[str, _Part]:
    """Return the parts of an object by where they are."""
    return {
        pointer + pointer_to((key,)): _Part(f"{name}.{key[:80]}", _text(key) + _text(value))
        for key, value in values.items()
    }


def _size(parts: Mapping[str, _Part]) -> int:
    return sum(part.size for part in parts.values())


def _check_text(parts: Mapping[str, _Part], what: str) -> None:
    total = _size(parts)
    if total > MOST_TEXT:
        pointer = max(parts, key=lambda where: parts[where].size)
        longest = parts[pointer]
        raise InvalidInput(
            f"{what} has {total} bytes of text (name, reservations and events together), at most {MOST_TEXT} are "
            f"allowed; shorten {longest.name}, which has {longest.size} bytes",
            code="out_of_bounds",
            # What the body does not have is of the lease as it is.
            at=pointer if pointer.startswith("/") else None,
            data={"maximum": MOST_TEXT},
        )


def _text(value: object) -> int:
    """Return the total bytes of the strings, keys and numbers in a JSON value."""
    total, left = 0, [value]
    while left:
        part = left.pop()
        if isinstance(part, Mapping):
            left.extend(part)
            left.extend(part.values())
        elif isinstance(part, list | tuple):
            left.extend(part)
            total += len(part)
        elif part is not None:
            total += len(str(part).encode("utf-8", "replace"))
    return total
