# SPDX-License-Identifier: Apache-2.0
"""A page of the calendar as text is what ``json`` writes of it, object by object."""

from __future__ import annotations

import json
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.api.calendar.routes import _ROW_KEYS
from blazar.api.calendar.texts import write_page
from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.calendar.views import BlockKind, BlockLease
from tests.rpc.values import calendar_pages

CASES = max(150, int(os.environ.get("BLAZAR_CASES", "150")) // 10)


def page_of(page, leases, fields):
    """The page as an object."""
    rows = [row_of(row, leases) for row in page.rows]
    shown = [row if fields is None else {key: row[key] for key in row if key in fields} for row in rows]
    count = {} if page.count is None else {"count": page.count}
    return {"from": zulu(page.window.start), "to": zulu(page.window.end), "resources": shown, **count}


def row_of(row, leases):
    return {
        "id": row.id,
        **({} if row.label is None else {"label": row.label}),
        "type": row.kind,
        "name": row.name,
        "reservable": row.reservable,
        "capacity": dict(row.capacity.items),
        "properties": dict(row.properties),
        "blocks": [block_of(block, leases) for block in row.blocks],
    }


def block_of(block, leases):
    shown = {"kind": block.kind, "start": zulu(block.start), "end": zulu_or_none(block.end)}
    used = None if block.used is None else dict(block.used.items)
    if block.kind is BlockKind.OUT_OF_USE:
        return {**shown, "code": block.code, "reason": block.reason}
    if block.kind is BlockKind.CLEANING:
        return shown if used is None else {**shown, "used": used}
    shown["used"] = used
    if block.lease_id not in leases:
        return shown
    lease = leases[block.lease_id]
    if block.kind is BlockKind.MINE:
        ids = {"lease_id": lease.id, "reservation_id": block.reservation_id, "name": lease.name}
    else:
        ids = {"lease_id": lease.id, "name": lease.name, "project_id": lease.project_id, "user_id": lease.user_id}
    return {**shown, **ids, "status": lease.status}


@settings(max_examples=CASES)
@given(calendar_pages, st.data())
def test_a_page_is_written_as_its_objects_are(page, data):
    named = sorted({block.lease_id for row in page.rows for block in row.blocks if block.lease_id is not None})
    known = data.draw(st.sets(st.sampled_from(named))) if named else ()
    leases = {id_: BlockLease(id_, *data.draw(st.tuples(*[st.text()] * 4))) for id_ in known}
    fields = data.draw(st.none() | st.sets(st.sampled_from(_ROW_KEYS)).map(lambda names: names | {"id"}))
    expected = json.dumps(page_of(page, leases, fields), separators=(",", ":"))
    assert write_page(page, leases, fields) == expected
