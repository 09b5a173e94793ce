# SPDX-License-Identifier: Apache-2.0
"""Filter notifications as the outbox stores them.

Messages of older versions wait in databases, and older managers read messages of this one: so the stored names stay,
also where a field of the model has a newer name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from blazar.enforcement.values import FilterNotification

_ADAPTER = TypeAdapter(FilterNotification)
_STORED = {"cloud_ids": "artefacts", "saved_state": "memo"}
"""The stored names of fields of reservations and events."""


def dump(notification: FilterNotification) -> str:
    """Return a notification as JSON."""
    content = _ADAPTER.dump_python(notification, mode="json", by_alias=True)
    _rename(content, _STORED)
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def parse(text: str) -> FilterNotification:
    """Return a stored notification; ValueError."""
    content = json.loads(text)
    _rename(content, {stored: name for name, stored in _STORED.items()})
    return _ADAPTER.validate_python(content)


def _rename(content: Any, names: Mapping[str, str]) -> None:
    for part in _parts(content):
        for old, new in names.items():
            if old in part:
                part[new] = part.pop(old)


def _parts(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the reservations and events of a notification; of anything malformed nothing, as the parser refuses it."""
    for view in ("view", "before"):
        lease = ((content.get(view) if isinstance(content, dict) else None) or {}).get("lease") or {}
        for part in (*lease.get("reservations", ()), *lease.get("events", ())):
            if isinstance(part, dict):
                yield part
