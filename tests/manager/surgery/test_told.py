# SPDX-License-Identifier: Apache-2.0
"""What histories tell of surgery: which resources went from which lease to which."""

from __future__ import annotations

import pytest

from blazar.model.base.paging import Page
from blazar.model.journal.entries import OTHER_LEASE, PastEntry, Verb
from blazar.model.leases.states import EndReason
from blazar.model.surgery import MergeRequest, Partner, PartRequest, SplitRequest, SwapRequest
from tests.manager.surgery.steps import HOUR, OPERATOR
from tests.statements import counted
from tests.world import World, a_host, instances


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def told(world: World, lease_id: str, verb: Verb) -> PastEntry:
    (found,) = [each for each in world.store.history.page(lease_id, Page(100, "at")).items if each.verb is verb]
    return found


def gone(entry: PastEntry) -> dict[str, tuple[str, ...]]:
    return {each.reservation_id: each.gone for each in entry.moves if each.gone_count}


def come(entry: PastEntry) -> dict[str, tuple[str, ...]]:
    return {each.reservation_id: each.come for each in entry.moves if each.come_count}


def other(entry: PastEntry) -> str | None:
    found = [each for each in entry.changes if each.field == OTHER_LEASE]
    assert all(each.before is None and each.reservation_id is None for each in found)
    return found[0].after if found else None


def halves(world: World, lease, *parts: PartRequest):
    return world.manager.surgery.split(lease.id, SplitRequest(parts, None, "second"), OPERATOR).leases


def hosts(details, reservation_id: str) -> tuple[str, ...]:
    held = [each for each in details.held if not each.released and each.reservation_id == reservation_id]
    return tuple(each.label for each in sorted(held, key=lambda each: each.resource_id))


def test_hosts_that_go_to_a_lease_of_their_own_leave_the_one_and_come_to_the_other(world):
    lease = world.lease(a_host(3), start=HOUR)
    first, second = halves(world, lease, PartRequest(lease.reservations[0].id, count=2))
    (of_first,), (of_second,) = first.lease.reservations, second.lease.reservations
    left, new = told(world, first.lease.id, Verb.SPLIT), told(world, second.lease.id, Verb.SPLIT)
    assert (gone(left), come(left)) == ({of_first.id: hosts(second, of_second.id)}, {})
    assert (gone(new), come(new)) == ({}, {of_second.id: hosts(second, of_second.id)})
    assert len(hosts(second, of_second.id)) == 2
    assert (other(left), other(new)) == (second.lease.id, first.lease.id)


def test_hosts_that_are_merged_come_back_and_the_lease_that_is_over_says_into_which(world):
    lease = world.lease(a_host(3), start=HOUR)
    _, second = halves(world, lease, PartRequest(lease.reservations[0].id, count=2))
    (theirs,) = second.lease.reservations
    world.manager.surgery.merge(lease.id, MergeRequest(second.lease.id), OPERATOR)
    whole, over = told(world, lease.id, Verb.MERGED), told(world, second.lease.id, Verb.MERGED)
    assert (gone(whole), come(whole)) == ({}, {lease.reservations[0].id: hosts(second, theirs.id)})
    assert (gone(over), come(over)) == ({theirs.id: hosts(second, theirs.id)}, {})
    assert (other(whole), other(over)) == (second.lease.id, lease.id)
    assert over.reason == str(EndReason.MERGED)


def test_a_reservation_that_goes_as_a_whole_takes_what_it_has_with_it(world):
    lease = world.lease(a_host(1), instances(1), hours=4)
    world.run()
    going = lease.reservations[1].id
    first, second = halves(world, lease, PartRequest(going))
    assert gone(told(world, first.lease.id, Verb.SPLIT)) == come(told(world, second.lease.id, Verb.SPLIT))
    assert gone(told(world, first.lease.id, Verb.SPLIT)).keys() == {going}


def test_leases_one_after_the_other_have_the_same_hosts_for_longer(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    request = SplitRequest((), lease.window.start + 2 * HOUR, "later")
    later = world.manager.surgery.split(lease.id, request, OPERATOR).leases[1].lease
    assert told(world, lease.id, Verb.SPLIT).moves == ()
    assert come(told(world, later.id, Verb.SPLIT)).keys() == {later.reservations[0].id}
    world.manager.surgery.merge(lease.id, MergeRequest(later.id), OPERATOR)
    assert told(world, lease.id, Verb.MERGED).moves == ()
    assert gone(told(world, later.id, Verb.MERGED)) == come(told(world, later.id, Verb.SPLIT))


def test_leases_that_exchange_hosts_name_each_other_and_a_swap_for_a_free_one_names_none(world):
    lease, partner = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    (mine,), (theirs,) = world.hosts_of(lease), world.hosts_of(partner)
    request = SwapRequest(lease.reservations[0].id, mine, theirs, Partner(partner.id, partner.reservations[0].id))
    world.manager.surgery.swap(lease.id, request, OPERATOR)
    one, two = told(world, lease.id, Verb.SWAPPED), told(world, partner.id, Verb.SWAPPED)
    assert list(gone(one).values()) == list(come(two).values())
    assert list(come(one).values()) == list(gone(two).values())
    assert (other(one), other(two)) == (partner.id, lease.id)
    alone = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(alone)
    world.manager.surgery.swap(alone.id, SwapRequest(alone.reservations[0].id, host), OPERATOR)
    assert other(told(world, alone.id, Verb.SWAPPED)) is None


def test_what_is_told_costs_the_same_for_any_number_of_hosts(engine):
    world, counts = World(engine, hosts=12), []
    for number in (2, 12):
        lease = world.lease(a_host(number), start=HOUR * 10 * number)
        with counted(engine) as statements:
            halves(world, lease, PartRequest(lease.reservations[0].id, count=number // 2))
        counts.append(statements.count)
    assert counts[0] == counts[1]
