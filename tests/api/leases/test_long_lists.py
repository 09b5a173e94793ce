# SPDX-License-Identifier: Apache-2.0
"""The list of all leases at 1.0 and in version 2 is written from rows: byte by byte what values give, in pieces."""

from __future__ import annotations

import gzip
import itertools
import json
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from blazar.api.leases import services
from blazar.api.leases.services import RenderedLeases
from blazar.api.leases.v1_0 import formats
from blazar.api.leases.v1_0.texts import _merge
from blazar.model.base.errors import StoreUnavailable
from blazar.store.leases import row_reads
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import events, leases, reservations
from tests.api.conftest import app_of, client_of
from tests.observed import FailingManager, ObservedManager
from tests.statements import counted
from tests.world import World, a_host, instances

_encode = json.JSONEncoder(separators=(",", ":")).encode
ODD = {
    "resource_properties": '["==", "$rack", "é\\"\\u2028"]',
    "status": "hidden by ours",
    "share": 0.1,
    "nested": {"id": [1, None, True, 1e300], "": "\x07"},
}
MADE = {"aggregate_id": 7, "left_out": [3], "gone": {}, "of the plug-in": "ß"}


def _write(world: World, *updates: sa.Update | sa.Insert) -> None:
    with world.engine.execution_options(**{WRITES: True}).begin() as connection:
        for update in updates:
            connection.execute(update)


def _fill(world: World) -> None:
    """Make leases of which each has something that is written in a way of its own."""
    plain = world.lease(a_host(), name="plain")
    world.run()
    odd = world.lease(a_host(), start=timedelta(days=1), name='"Ünï\\code" \U0001f680\n')
    servers = world.lease(instances(2), start=timedelta(days=2))
    waits = world.lease(a_host(3), wait=timedelta(days=5), name="waits")
    finest = datetime(2030, 4, 1, 8, 0, 0, 120_000, tzinfo=UTC)
    child = {"id": "00000000-0000-4000-8000-00000000c41d", "lease_id": servers.id, "position": 7}
    child |= {"resource_type": "physical:host", "status": "pending", "missing_resources": True, "created_at": finest}
    child |= {"resources_changed": True, "parameters": {}, "cloud_ids": {}, "parent_id": servers.reservations[0].id}
    own = {"id": "00000000-0000-4000-8000-00000000e7e7", "lease_id": odd.id, "position": 9, "attempts": 0}
    own |= {"event_type": 'rémind "me"', "time": None, "status": None, "created_at": finest}
    _write(
        world,
        sa.update(leases).where(leases.c.id == odd.id).values(trust_id="t", updated_at=finest, degraded=True),
        sa.update(reservations)
        .where(reservations.c.lease_id == odd.id)
        .values(parameters=ODD, cloud_ids=MADE, resource_type="of a plug-in", updated_at=finest),
        reservations.insert().values(child),
        events.insert().values(own),
    )
    assert {plain.id, odd.id, servers.id, waits.id} == {lease.id for lease in world.manager.leases.all(None)}


@pytest.mark.parametrize("form", formats.ALL, ids=lambda form: form.cache)
def test_rows_give_what_values_give(engine, form):
    world = World(engine)
    _fill(world)
    expected = [_encode(form.shown(lease)).encode() for lease in world.store.leases.of_project(None)]
    cold = RenderedLeases(form.writer)
    with counted(world.engine) as statements:
        (found,) = cold.pieces(world.manager, None)
    assert found == expected
    # The revisions, three of rows, and three of those that wait.
    assert statements.count == 7
    with counted(world.engine) as statements:
        assert list(cold.pieces(world.manager, None)) == [expected]
    assert statements.count == 1


def test_a_key_of_a_type_that_is_one_of_ours_keeps_its_place_and_has_our_value():
    assert _merge('{"status":"theirs","x":{"id":1}}', '"id":"a","status":"ours"}') == (
        '{"status":"ours","x":{"id":1},"id":"a"}'
    )


def test_long_leases_are_read_some_at_a_time(world, monkeypatch):
    for day in range(3):
        world.lease(start=timedelta(days=day + 1))
    monkeypatch.setattr(row_reads, "MOST_TEXT", 1)
    ids = [lease.id for lease in world.manager.leases.all(None)]
    rows = world.manager.leases.rows(ids)
    assert (rows.read, [row[0] for row in rows.leases], {row[0] for row in rows.events}) == (1, ids[:1], {ids[0]})
    (texts,) = RenderedLeases(formats.V1_0.writer).pieces(world.manager, None)
    assert [json.loads(text)["id"] for text in texts] == ids


@pytest.fixture
def many(world, monkeypatch):
    """A world of five leases, of which each is a piece."""
    for day in range(5):
        world.lease(start=timedelta(days=day + 1), name=f"lease {day}")
    monkeypatch.setattr(services, "READ_AT_ONCE", 1)
    return world


@pytest.mark.parametrize("url", ["/v1/leases", "/v2/leases"])
def test_a_list_in_pieces_is_that_of_one_piece_and_compressed_if_the_client_says_so(many, monkeypatch, url):
    http = app_of(many.manager).test_client()
    pieces = http.get(url)
    packed = [app_of(many.manager).test_client().get(url, headers={"Accept-Encoding": "gzip"})]
    monkeypatch.setattr(services, "READ_AT_ONCE", 500)
    # What is known is a piece.
    whole = http.get(url)
    assert pieces.data == whole.data
    assert ("Content-Length" in pieces.headers, "Content-Length" in whole.headers) == (False, True)
    packed.append(http.get(url, headers={"Accept-Encoding": "gzip"}))
    for answer in packed:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in answer.headers["Vary"]
        assert gzip.decompress(answer.data) == whole.data


def test_nothing_is_an_empty_list(world):
    http = client_of(app_of(world.manager))
    assert http.get("/v1/leases").data == b'{"leases":[]}'
    assert http.get("/v2/leases").data == b"[]"


def test_what_fails_at_first_is_an_error_as_any_other(many):
    manager = FailingManager(many.manager, {"leases.rows": StoreUnavailable("the database is away")})
    assert client_of(app_of(manager)).get("/v1/leases").status_code == 503


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_what_fails_later_cuts_the_answer_off(many, coding, caplog):
    turns = itertools.count(1)

    def fail_late(name, call, *arguments, **more):
        if name == "leases.rows" and next(turns) == 4:
            raise StoreUnavailable("the database is away")
        return call(*arguments, **more)

    http = app_of(ObservedManager(many.manager, fail_late)).test_client()
    answer = http.get("/v1/leases", headers={"Accept-Encoding": coding}, buffered=False)
    got = []
    with pytest.raises(StoreUnavailable):
        got.extend(answer.iter_encoded())
    with pytest.raises(EOFError if coding == "gzip" else json.JSONDecodeError):
        json.loads(gzip.decompress(b"".join(got)) if coding == "gzip" else b"".join(got))
    assert "A list is cut off" in caplog.text


def test_a_client_that_leaves_stops_the_reading(many):
    read = []

    def note(name, call, *arguments, **more):
        if name == "leases.rows":
            read.append(name)
        return call(*arguments, **more)

    http = app_of(ObservedManager(many.manager, note)).test_client()
    answer = http.get("/v1/leases", buffered=False)
    next(answer.iter_encoded())
    answer.close()
    assert len(read) == 2


def test_a_list_longer_than_the_cache_is_found_there_in_part_again(many):
    whole = RenderedLeases(formats.V1_0.writer)
    texts = list(whole.pieces(many.manager, None))
    small = RenderedLeases(formats.V1_0.writer, most_bytes=whole.size * 3 // 5)
    for kept in (0, 3):
        read = []

        def note(name, call, *arguments, read=read, **more):
            read.append(name)
            return call(*arguments, **more)

        found = list(small.pieces(ObservedManager(many.manager, note), None))
        assert [text for piece in found for text in piece] == [text for piece in texts for text in piece]
        assert read.count("leases.rows") == 5 - kept
