# SPDX-License-Identifier: Apache-2.0
"""The report of leases that nobody may use: what looks have found, what came of it, or would have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from blazar.model.clock import zulu
from blazar.model.unused import UseReport
from blazar.store.unused import UnusedStore

PAGE = 1000
_ROW = "{:36}  {:20}  {:7}  {:7}  {:20}  {:20}  {:20}  {}"
_HEAD = ("id", "project", "mode", "usage", "used at", "release at", "would release at", "what")


def lines(store: UnusedStore, *, as_json: bool) -> Iterator[str]:
    """Yield the lines of the report; as JSON one object a line, so that a long one can be read as it comes."""
    if not as_json:
        yield _ROW.format(*_HEAD)
    after = ""
    while page := store.report(after=after, limit=PAGE):
        for each in page:
            yield json.dumps(_json(each)) if as_json else _ROW.format(*_cells(each)).rstrip()
        after = page[-1].id


def _cells(each: UseReport) -> tuple[str, ...]:
    would = each.would_have_released_at or each.would_release_at
    times = (_text(each.used_at), _text(each.release_at), _text(would))
    return (each.id, each.project_id, str(each.mode), str(each.usage), *times, _what(each))


def _what(each: UseReport) -> str:
    """Return in words what operators have to know most."""
    if each.used_later:
        return "would have been released, and was used later"
    if each.would_have_released_at is not None:
        return "would have been released"
    if each.held:
        return "held"
    return each.looks[-1].detail if each.looks else "not looked at yet"


def _json(each: UseReport) -> dict[str, Any]:
    return {
        "id": each.id,
        "name": each.name,
        "project_id": each.project_id,
        "user_id": each.user_id,
        "mode": str(each.mode),
        "usage": str(each.usage),
        "since": _text(each.since),
        "used_at": _text(each.used_at) or None,
        "release_at": _text(each.release_at) or None,
        "would_release_at": _text(each.would_release_at) or None,
        "would_have_released_at": _text(each.would_have_released_at) or None,
        "used_later": each.used_later,
        "kept_at": _text(each.kept_at) or None,
        "held": each.held,
        "looks": [
            {"at": zulu(look.at), "usage": str(look.usage), "detail": look.detail, "step": str(look.step)}
            for look in each.looks
        ],
    }


def _text(instant: datetime | None) -> str:
    return "" if instant is None else zulu(instant)
