# SPDX-License-Identifier: Apache-2.0
"""A page of the calendar as JSON text, byte by byte what ``json`` writes of objects and lists without spaces.

A page has tens of thousands of blocks: an object for each took longer than all the rest of it. The manager has left out
what the caller may not see.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from blazar.api.http.answers import encode
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import zulu
from blazar.model.calendar.views import Block, BlockKind, BlockLease, CalendarPage, CalendarRow
from blazar.model.resources.resource import PropertyValue

_quote = json.encoder.encode_basestring_ascii
_FLAG = {True: "true", False: "false"}
_NULL = "null"
_QUOTED = '"%s"'
_UNKNOWN = ""
"""What no lease is written as."""


def write_page(page: CalendarPage, leases: Mapping[str, BlockLease], fields: Collection[str] | None) -> str:
    """Return a page, of its rows these ``fields`` (None: all), without the instant at which it was read."""
    rows = _write_rows(page, leases, fields)
    count = "" if page.count is None else f',"count":{page.count}'
    window = f'"from":"{zulu(page.window.start)}","to":"{zulu(page.window.end)}"'
    return f'{{{window},"resources":[{",".join(rows)}]{count}}}'


def _write_rows(page: CalendarPage, leases: Mapping[str, BlockLease], fields: Collection[str] | None) -> Iterator[str]:
    write = _BlockWriter(leases).write
    for row in page.rows:
        shown = _write_fields(row)
        if fields is None or "blocks" in fields:
            shown["blocks"] = f"[{','.join([write(block) for block in row.blocks])}]"
        pairs = [f'"{name}":{text}' for name, text in shown.items() if fields is None or name in fields]
        yield f"{{{','.join(pairs)}}}"


def _write_fields(row: CalendarRow) -> dict[str, str]:
    """Return what a row has beside its blocks; those who see names also see the label."""
    label = {} if row.label is None else {"label": _quote(row.label)}
    return {
        "id": _quote(row.id),
        **label,
        "type": _quote(row.kind),
        "name": _or_null(row.name),
        "reservable": _FLAG[row.reservable],
        "capacity": _write_amounts(row.capacity),
        "properties": f"{{{','.join([f'{_quote(k)}:{_write_value(v)}' for k, v in row.properties.items()])}}}",
    }


class _BlockWriter:
    """Writes blocks: what a block says of a lease is written once for all blocks of that lease.

    ``leases`` are those that the caller may see.
    """

    def __init__(self, leases: Mapping[str, BlockLease]) -> None:
        self._leases = leases
        self._known: dict[str | None, str | None] = {None: None}

    def write(self, block: Block) -> str:
        """Return a block: what its kind has."""
        kind, start, end, used, lease_id, reservation_id, code, reason = block
        if kind is BlockKind.LEASE and end is not None:
            lease = self._known.get(lease_id, _UNKNOWN)
            if lease is _UNKNOWN:
                lease = self._write_lease(lease_id)
            # Nearly all blocks of a page for operators are these.
            if lease is not None:
                taken = _NULL if used is None else _write_amounts(used)
                return f'{{"kind":"lease","start":"{zulu(start)}","end":"{zulu(end)}","used":{taken},{lease}}}'
        time = f'"{kind}","start":"{zulu(start)}","end":{_NULL if end is None else _QUOTED % zulu(end)}'
        if kind is BlockKind.OUT_OF_USE:
            return f'{{"kind":{time},"code":{_or_null(code)},"reason":{_or_null(reason)}}}'
        return f'{{"kind":{time}{self._write_use(kind, used, lease_id, reservation_id)}}}'

    def _write_use(
        self, kind: BlockKind, used: Amounts | None, lease_id: str | None, reservation_id: str | None
    ) -> str:
        """Return what a block of a resource in use has beside its time."""
        taken = f',"used":{_NULL if used is None else _write_amounts(used)}'
        lease = None if lease_id is None else self._leases.get(lease_id)
        if lease is None or kind is BlockKind.CLEANING:
            # After a use of the whole resource it says nothing more than the time.
            return "" if used is None and kind is BlockKind.CLEANING else taken
        if kind is not BlockKind.MINE:
            return f"{taken},{_write_lease(lease)}"
        id_, name, _, _, status = lease
        whose = f'"reservation_id":{_or_null(reservation_id)},"name":{_quote(name)}'
        return f'{taken},"lease_id":{_quote(id_)},{whose},"status":{_quote(status)}'

    def _write_lease(self, lease_id: str | None) -> str | None:
        """Return what blocks say of a lease, and keep it for its next block; None of one that is not shown."""
        lease = None if lease_id is None else self._leases.get(lease_id)
        text = self._known[lease_id] = None if lease is None else _write_lease(lease)
        return text


def _write_lease(lease: BlockLease) -> str:
    id_, name, project_id, user_id, status = lease
    whose = f'"name":{_quote(name)},"project_id":{_quote(project_id)},"user_id":{_quote(user_id)}'
    return f'"lease_id":{_quote(id_)},{whose},"status":{_quote(status)}'


def _or_null(text: str | None) -> str:
    return "null" if text is None else _quote(text)


def _write_value(value: PropertyValue) -> str:
    if isinstance(value, str):
        return _quote(value)
    # An encoder takes long to begin.
    return str(value) if type(value) is int else encode(value)


@lru_cache(maxsize=1024)
def _write_amounts(amounts: Amounts) -> str:
    return encode(dict(amounts.items))
