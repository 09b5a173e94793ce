# SPDX-License-Identifier: Apache-2.0
"""What was asked for of late, and the order of resources that stays while a kind is read again."""

from __future__ import annotations

from blazar.model.resources.resource import HOST
from blazar.store.resources.sought import AskedParameters
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host, booked, hours

ASKED = AskedParameters("physical:host", "", '{"min": 1}')


def test_like_requests_are_one_with_their_seconds_together(engine):
    store = Store(engine)
    first, second = a_host(store, 1), a_host(store, 2)
    booked(store, hours(0, 2), first)
    booked(store, hours(1, 4), second)
    with counted(engine) as statements:
        assert store.sought.read_asked(NOON - HOUR) == {ASKED: 5 * 3600}
    assert statements.count == 1
    assert store.sought.read_asked(NOON) == {}


def test_tiers_stay_when_resources_are_read_again(engine):
    store = Store(engine)
    first, second = a_host(store, 1), a_host(store, 2)
    store.sought.rank(HOST, {first.id: 2, second.id: 0})
    assert [host.id for host in store.resources.catalog(HOST).resources] == [second.id, first.id]
    third = a_host(store, 3)
    found = store.resources.catalog(HOST)
    assert [(host.id, host.tier) for host in found.resources] == [(second.id, 0), (third.id, 0), (first.id, 2)]
    assert found.by_id[first.id].tier == 2
