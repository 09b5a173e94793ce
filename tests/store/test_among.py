# SPDX-License-Identifier: Apache-2.0
"""Rows are found by many values at once, whatever is in these, and none by a value that only begins alike."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.among import select_among, write_array
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import resources
from tests.world import World

ODD = ('say "hi"', "back\\slash", "{a,b}", "two\nlines", "NULL", "", "ß — 語", " spaced ")


def find(world, column, values):
    with world.engine.connect() as connection:
        query = sa.select(column).order_by(resources.c.id)
        return list(select_among(connection, query, column, values).scalars())


def test_texts_are_found_whatever_is_in_them(engine):
    world = World(engine, hosts=len(ODD))
    keys = sorted(resource.id for resource in world.store.resources.of_kind("host"))
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        for key, name in zip(keys, ODD, strict=True):
            connection.execute(resources.update().where(resources.c.id == key).values(name=name))
    assert find(world, resources.c.name, ODD) == list(ODD)
    for name in ODD:
        assert find(world, resources.c.name, [name]) == [name]
    assert find(world, resources.c.name, ["say", "back", "a", '"', "say "]) == []
    assert find(world, resources.c.name, []) == []
    assert find(world, resources.c.id, keys[1:3]) == keys[1:3]


def test_a_value_that_is_too_long_for_its_column_is_that_of_nobody(engine):
    world = World(engine, hosts=1)
    lease = world.lease()
    for id_, expected in ((lease.id, 1), (f"{lease.id}0", 0), (f"{lease.id} ", 0)):
        assert len(world.store.lease_rows.read([id_]).leases) == expected


def test_an_array_is_written_as_postgresql_reads_it():
    assert write_array(()) == "{}"
    assert write_array(["a", "b"]) == '{"a","b"}'
    assert write_array(['"', "\\", "x"]) == '{"\\"","\\\\","x"}'
