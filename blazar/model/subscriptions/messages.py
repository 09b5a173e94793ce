# SPDX-License-Identifier: Apache-2.0
"""Messages to receivers: CloudEvents 1.0 in JSON, made of an entry of the journal and of nothing else.

So a message that is sent again, also much later, has the same bytes, but for what it says to members of leases and
reservations that have become another project's meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from blazar.model.base.clock import zulu
from blazar.model.base.values import dataclass
from blazar.model.journal.entries import By, FieldChange, NumberedEntry
from blazar.model.leases.requests import Actor
from blazar.model.subscriptions.events import TEST_EVENT

ONE_TYPE = "application/cloudevents+json"
BATCH_TYPE = "application/cloudevents-batch+json"

MOST_IN_BATCH = 50
LARGEST_BATCH = 256 * 1024
"""Events and bytes of a message with several."""

PREFIX = "blazar."
_PLURALS = {"property": "properties", "series": "series"}


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is sent: its id, type and subject, the place of its last entry, and its bytes.

    ``objects`` are the objects that it tells of; ``entries`` are the place, id, type and subject of each event in it.
    """

    id: str
    content_type: str
    body: bytes
    objects: frozenset[str]
    entries: tuple[tuple[int, str, str, str], ...]


def make_messages(entries: Sequence[NumberedEntry], *, source: str, trusted: bool, batch: bool) -> tuple[Message, ...]:
    """Return the messages about entries, in their order; ``trusted``: to an operator, who may know all.

    What of the entries is for others must be hidden before (``show_entry``), as in histories.
    """
    events = [(entry, _dump(make_event(entry, source=source, trusted=trusted))) for entry in entries]
    if not batch:
        return tuple(_one_message(entry, body) for entry, body in events)
    found: list[Message] = []
    group: list[tuple[NumberedEntry, bytes]] = []
    for entry, body in events:
        size = sum(len(part) + 1 for _, part in group) + len(body) + 2
        if group and (len(group) == MOST_IN_BATCH or size > LARGEST_BATCH):
            found.append(_batch_message(group))
            group = []
        group.append((entry, body))
    if group:
        found.append(_batch_message(group))
    return tuple(found)


def make_test_message(subscription_id: str, *, source: str, number: int, at: datetime, batch: bool) -> Message:
    """Return the message that asks whether a receiver is there, and wants to be told: in the form of what follows."""
    message_id, subject, type_ = (
        f"{subscription_id}-test-{number}",
        f"subscriptions/{subscription_id}",
        PREFIX + TEST_EVENT,
    )
    event = {
        **_envelope(message_id, source, type_, subject, at),
        "datacontenttype": "application/json",
        "data": {"subscription": {"id": subscription_id}},
    }
    content_type, body = (BATCH_TYPE, _dump([event])) if batch else (ONE_TYPE, _dump(event))
    return Message(message_id, content_type, body, frozenset(), ((0, message_id, type_, subject),))


def make_event(entry: NumberedEntry, *, source: str, trusted: bool) -> Mapping[str, Any]:
    """Return the event about an entry, as CloudEvents has it."""
    about, past = entry.about, entry.past
    shown = {
        "id": about.id,
        "name": about.name,
        "project_id": about.project_id,
        "user_id": about.user_id,
        **(entry.snapshot or {}),
        "revision": about.revision,
    }
    own = None if trusted else about.project_id
    return {
        **_envelope(past.id, source, type_of(entry), subject_of(entry), past.at),
        "sequence": f"{entry.position:020d}",
        "datacontenttype": "application/json",
        "data": {
            str(about.object_type): shown,
            "by": _show_actor(past.by, own=own),
            "changes": [_show_change(change) for change in past.changes],
            "reason": past.reason,
            "request_id": entry.request_id,
        },
    }


def type_of(entry: NumberedEntry) -> str:
    """Return the type of the event about an entry."""
    return f"{PREFIX}{entry.about.object_type}.{entry.past.verb}"


def subject_of(entry: NumberedEntry) -> str:
    """Return the path of what an entry is about."""
    noun = str(entry.about.object_type)
    return f"{_PLURALS.get(noun, noun + 's')}/{entry.about.id}"


def _envelope(id_: str, source: str, type_: str, subject: str, at: datetime) -> dict[str, Any]:
    return {"specversion": "1.0", "id": id_, "source": source, "type": type_, "subject": subject, "time": zulu(at)}


def _one_message(entry: NumberedEntry, body: bytes) -> Message:
    return Message(entry.past.id, ONE_TYPE, body, frozenset({entry.about.id}), (_name_entry(entry),))


def _batch_message(group: Sequence[tuple[NumberedEntry, bytes]]) -> Message:
    first, last = group[0][0], group[-1][0]
    body = b"[" + b",".join(part for _, part in group) + b"]"
    objects = frozenset(entry.about.id for entry, _ in group)
    id_ = f"{first.past.id}-{last.past.id}" if len(group) > 1 else first.past.id
    return Message(id_, BATCH_TYPE, body, objects, tuple(_name_entry(entry) for entry, _ in group))


def _name_entry(entry: NumberedEntry) -> tuple[int, str, str, str]:
    return entry.position, entry.past.id, type_of(entry), subject_of(entry)


def _show_actor(actor: Actor | None, *, own: str | None) -> Mapping[str, Any]:
    """Return who did something; of users of other projects than the ``own`` one only what they are."""
    if actor is None:
        return {"kind": str(By.SERVICE), "user_id": None}
    kind = By.OPERATOR if actor.operator else By.USER
    return {"kind": str(kind), "user_id": actor.user_id if own is None or actor.project_id == own else None}


def _show_change(change: FieldChange) -> Mapping[str, Any]:
    return {
        "field": change.field,
        "reservation_id": change.reservation_id,
        "before": change.before,
        "after": change.after,
    }


def _dump(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
