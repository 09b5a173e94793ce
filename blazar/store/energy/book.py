# SPDX-License-Identifier: Apache-2.0
"""The store of energy: what hosts drew and the carbon of the site by the hour, and whose turn it is to read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.energy.book import POWER_PROPERTIES, EnergyBook, EnergyHost, EnergyReading, EnergyTerms, HostHour
from blazar.model.energy.carbon import DAY, DAYS_BACK, HourlyCurve
from blazar.model.energy.consumption import HOUR
from blazar.model.energy.unbooked import HostTimes
from blazar.model.resources.resource import HOST
from blazar.store.energy.unbooked import read_host_times
from blazar.store.sql.rows import CHUNK, chunks
from blazar.store.sql.tables import carbon_hours, host_hours, resource_capabilities, resource_properties, resources
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.work.claims import TURNS, TurnStore

ENERGY = "energy"
"""The turn of who reads what hosts draw."""

KEPT_DAYS = 400
MICRO = 10**6
"""Micrograms of a gram."""

_H, _C = host_hours.c, carbon_hours.c


class EnergyStore(TurnStore):
    """Reads and writes what hosts drew, and what the power of a site emitted, by the hour; ``terms`` are the site's."""

    turn = ENERGY

    def __init__(self, transactions: Transactions, terms: EnergyTerms) -> None:
        super().__init__(transactions)
        self.terms = terms

    def read_book(self, resource_ids: Collection[int] | None, window: Window) -> EnergyBook:
        """Return what is known of hosts (None: of all) in a window; three statements for each few thousand hosts."""
        with self._transactions.reading() as connection:
            return read_book(connection, resource_ids, window, self.terms)

    def read_host_times(self, period: Window, days: tuple[date, date]) -> HostTimes:
        """Return when hosts were registered and slept, as ``unbooked.read_host_times`` does; four statements."""
        with self._transactions.reading() as connection:
            return read_host_times(connection, period, days)

    def list_hours(self, hour: int) -> tuple[HostHour, ...]:
        """Return what hosts drew in an hour; one statement."""
        query = sa.select(_H.resource_id, _H.hour, _H.milliwatts, _H.readings).where(_H.hour == hour)
        return tuple(HostHour(*map(int, row)) for row in self._transactions.select(query))

    @atomic
    def record(
        self,
        connection: Connection,
        token: str,
        reading: EnergyReading,
        also: Callable[[Connection], None] | None = None,
        *,
        due_at: datetime | None = None,
    ) -> None:
        """Write what was read, in the place of what is on record of these hours, and what is ``also`` to be; ClaimLost.

        With ``due_at`` the turn is over, and that is when the next one is: a turn is written as a whole, or done again.
        """
        TURNS.write_claimed(connection, ENERGY, token)
        _write_hours(connection, reading.hours)
        for part in chunks(sorted(reading.curve)):
            connection.execute(carbon_hours.delete().where(_C.hour.in_(part)))
        rows = ({"hour": hour, "micrograms": round(grams * MICRO)} for hour, grams in reading.curve.items())
        _insert(connection, carbon_hours, rows)
        if also is not None:
            also(connection)
        if due_at is not None:
            TURNS.release(connection, ENERGY, token, due_at=due_at)

    def read_curve(self, since: int, until: int) -> Mapping[int, Fraction]:
        """Return the grams of CO2e a kilowatt-hour that are on record of hours; one statement."""
        with self._transactions.reading() as connection:
            return _read_curve(connection, since, until)

    @atomic
    def drop_old(self, connection: Connection, *, now: datetime) -> None:
        """Drop what is older than 400 days; two statements."""
        before = int(now.timestamp()) - KEPT_DAYS * DAY
        connection.execute(host_hours.delete().where(_H.hour < before))
        connection.execute(carbon_hours.delete().where(_C.hour < before))


def read_book(
    connection: Connection, resource_ids: Collection[int] | None, window: Window, terms: EnergyTerms
) -> EnergyBook:
    """Return what is known of hosts (None: of all) in a window; three statements for each few thousand hosts."""
    since, until = int(window.start.timestamp()), int(window.end.timestamp())
    first = since - since % HOUR
    hosts: dict[int, EnergyHost] = {}
    for part in [None] if resource_ids is None else chunks(sorted(resource_ids)):
        properties, vcpus = _read_properties(connection, part)
        measured = _read_measured(connection, part, first, until)
        for id_ in properties.keys() | measured.keys() | vcpus.keys():
            hosts[id_] = EnergyHost.of(properties.get(id_, {}), measured.get(id_, {}), vcpus.get(id_), terms.load)
    curve = None
    if terms.tells_carbon:
        curve = HourlyCurve(_read_curve(connection, first - DAYS_BACK * DAY, until))
    return EnergyBook(hosts, curve, terms.pue)


def _read_properties(
    connection: Connection, ids: Collection[int] | None
) -> tuple[Mapping[int, Mapping[str, str]], Mapping[int, int]]:
    """Return the properties of hosts that tell of energy, and their VCPUs; one statement."""
    c, p, r = resource_capabilities.c, resource_properties.c, resources.c
    known = sa.and_(p.id == c.property_id, p.name.in_(POWER_PROPERTIES))
    values = resource_capabilities.join(resource_properties, known)
    query = sa.select(r.id, r.capacity, p.name, c.value).select_from(resources.outerjoin(values, c.resource_id == r.id))
    query = query.where(r.kind == str(HOST)) if ids is None else query.where(r.kind == str(HOST), r.id.in_(ids))
    properties: dict[int, dict[str, str]] = defaultdict(dict)
    vcpus: dict[int, int] = {}
    for id_, capacity, name, value in connection.execute(query):
        if id_ not in vcpus:
            amounts = Amounts.of(capacity)
            vcpus[id_] = amounts.get("VCPU") + amounts.get("PCPU")
        if name is not None:
            properties[id_][name] = value
    return properties, vcpus


def _read_measured(
    connection: Connection, ids: Collection[int] | None, since: int, until: int
) -> Mapping[int, Mapping[int, int]]:
    """Return the mean milliwatts of hosts by hour; one statement."""
    query = sa.select(_H.resource_id, _H.hour, _H.milliwatts).where(_H.hour >= since, _H.hour < until)
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for id_, hour, milliwatts in connection.execute(query if ids is None else query.where(_H.resource_id.in_(ids))):
        found[id_][int(hour)] = int(milliwatts)
    return found


def _read_curve(connection: Connection, since: int, until: int) -> Mapping[int, Fraction]:
    query = sa.select(_C.hour, _C.micrograms).where(_C.hour >= since, _C.hour < until)
    return {int(hour): Fraction(int(micrograms), MICRO) for hour, micrograms in connection.execute(query)}


def _write_hours(connection: Connection, hours: Collection[HostHour]) -> None:
    by_hour: dict[int, list[HostHour]] = defaultdict(list)
    for one in hours:
        by_hour[one.hour].append(one)
    for hour, found in by_hour.items():
        for part in chunks(sorted(one.resource_id for one in found)):
            connection.execute(host_hours.delete().where(_H.hour == hour, _H.resource_id.in_(part)))
    _insert(connection, host_hours, map(_row_of, hours))


def _row_of(one: HostHour) -> dict[str, Any]:
    return {
        "resource_id": one.resource_id,
        "hour": one.hour,
        "milliwatts": one.milliwatts,
        "readings": one.readings,
    }


def _insert(connection: Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    for part in _split(list(rows)):
        connection.execute(table.insert(), part)


def _split(rows: list[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))
