# SPDX-License-Identifier: Apache-2.0
"""Reads what leases are charged by: what they had, when it was handed over, missing, and not used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import END_OF_TIME, to_second
from blazar.model.base.window import Window
from blazar.model.billing.tags import NO_TAG, Layers, PriceTag
from blazar.model.billing.uses import BookedUse, LeaseFacts, ReservationStart
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.use.policy import Usage
from blazar.model.use.resource_hours import measure_amounts
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import allocations, leases, outages, reservations, usage_changes

_NOT_USED = (str(Usage.UNUSED), str(Usage.IDLE))
_OVER = (str(LeaseStatus.TERMINATED), str(LeaseStatus.TIMED_OUT), str(LeaseStatus.ERROR))


def read_facts(connection: Connection, lease_ids: Collection[str]) -> Mapping[str, LeaseFacts]:
    """Return the facts of leases, by id; in four statements for each few thousand."""
    found: dict[str, LeaseFacts] = {}
    for part in chunks(sorted(lease_ids)):
        uses, starts = _read_uses(connection, part), _read_starts(connection, part)
        lacked, unused = _read_outages(connection, part), _read_unused(connection, part)
        for lease_id in part:
            known = starts.get(lease_id, {})
            found[lease_id] = LeaseFacts(
                tuple(uses[lease_id]),
                {id_: one for id_, (one, _) in known.items()},
                {key: tuple(spans) for key, spans in lacked[lease_id].items()},
                tuple(unused[lease_id]),
                {id_: region for id_, (_, region) in known.items()},
            )
    return found


def parse_layers(skus: Any, booked_at: datetime | None, amounts: Mapping[str, int]) -> Layers:
    """Return the layers of a row by its columns; ``amounts`` is what it has in all, by measure."""
    if not isinstance(skus, list):
        return {PriceTag.of(skus, booked_at): amounts}
    parse = datetime.fromisoformat
    return {PriceTag.of(prices, booked_at if at is None else parse(at)): sizes for prices, at, sizes in skus}


def layer_row(layers: Layers) -> dict[str, Any]:
    """Return the columns that say by which prices a row is charged."""
    if len(layers) > 1:
        parts = [[tag.skus, tag.booked_at and tag.booked_at.isoformat(), dict(sizes)] for tag, sizes in layers.items()]
        return {"skus": parts, "booked_at": None}
    tag = next(iter(layers), NO_TAG)
    return {"skus": tag.skus, "booked_at": tag.booked_at}


def _read_uses(connection: Connection, lease_ids: Collection[str]) -> dict[str, list[BookedUse]]:
    a = allocations.c
    columns = (a.lease_id, a.reservation_id, a.resource_id, a.kind, a.starts_at, a.ends_at, a.added_at, a.released_at)
    query = sa.select(*columns, a.count, a.per_instance, a.skus, a.booked_at)
    # What was given back before it began never was.
    began = sa.or_(a.released_at.is_(None), a.released_at > a.starts_at)
    query = query.where(a.lease_id.in_(lease_ids), a.skus.is_not(None), began).order_by(a.id)
    found: dict[str, list[BookedUse]] = defaultdict(list)
    for lease_id, reservation_id, resource_id, kind, start, end, added, released, *more in connection.execute(query):
        count, per_instance, skus, booked_at = more
        begin = start if added is None else max(start, to_second(added))
        if begin < end:
            size = None if per_instance is None else Amounts.of(per_instance)
            amounts = measure_amounts(kind, count, size)
            for tag, sizes in parse_layers(skus, booked_at and to_second(booked_at), amounts).items():
                use = BookedUse(
                    *(reservation_id, resource_id, Window(begin, end), sizes, tag.skus),
                    *(tag.booked_at, released is None),
                )
                found[lease_id].append(use)
    return found


def _read_starts(
    connection: Connection, lease_ids: Collection[str]
) -> dict[str, dict[str, tuple[ReservationStart, str]]]:
    r, waits = reservations.c, str(ReservationStatus.PENDING)
    over = sa.or_(leases.c.deleted_at.is_not(None), leases.c.status.in_(_OVER))
    query = sa.select(r.lease_id, r.id, r.handed_over_at, r.status, r.region, over)
    query = query.join(leases, leases.c.id == r.lease_id).where(r.lease_id.in_(lease_ids))
    found: dict[str, dict[str, tuple[ReservationStart, str]]] = defaultdict(dict)
    for lease_id, id_, at, status, region, is_over in connection.execute(query):
        found[lease_id][id_] = ReservationStart(at, status == waits and not is_over), region
    return found


def _read_outages(connection: Connection, lease_ids: Collection[str]) -> dict[str, dict[tuple[str, int], list[Window]]]:
    o = outages.c
    query = sa.select(o.lease_id, o.reservation_id, o.resource_id, o.since, o.until)
    found: dict[str, dict[tuple[str, int], list[Window]]] = defaultdict(lambda: defaultdict(list))
    for lease_id, *key, since, until in connection.execute(query.where(o.lease_id.in_(lease_ids)).order_by(o.id)):
        if span := _span(since, END_OF_TIME if until is None else until):
            found[lease_id][key[0], key[1]].append(span)
    return found


def _read_unused(connection: Connection, lease_ids: Collection[str]) -> dict[str, list[Window]]:
    u = usage_changes.c
    query = sa.select(u.lease_id, u.at, u.usage).where(u.lease_id.in_(lease_ids)).order_by(u.lease_id, u.at)
    looks: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for lease_id, at, usage in connection.execute(query):
        looks[lease_id].append((at, usage))
    return defaultdict(
        list,
        {
            lease_id: [
                span
                for (at, usage), (until, _) in pairwise([*found, (END_OF_TIME, "")])
                if usage in _NOT_USED and (span := _span(at, until))
            ]
            for lease_id, found in looks.items()
        },
    )


def _span(start: datetime, end: datetime) -> Window | None:
    """Return the whole seconds between two instants; None if there is none."""
    first, last = to_second(start), to_second(end)
    return Window(first, last) if first < last else None
