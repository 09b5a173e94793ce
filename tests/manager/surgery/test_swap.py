# SPDX-License-Identifier: Apache-2.0
"""A reservation gives up a host for another one: any that fits, or a chosen one."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import (
    Conflict,
    InvalidInput,
    NotEnoughResources,
    NotFound,
    OthersWait,
    PreconditionFailed,
)
from blazar.model.leases.requests import Actor, IdempotencyKey, ReservationChange
from blazar.model.leases.states import LeaseKind, LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from blazar.model.surgery import Partner, SwapRequest, Terms
from tests.manager.health.steps import ON_NODE_1
from tests.promises import check_promises
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
ON_NODE_2 = json.dumps(["==", "$hypervisor_hostname", "node-2"])
OPERATOR = Terms(Actor("root", "admin", operator=True))
CURIE = Terms(Actor("curie", PROJECT))


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


def swap(world: World, lease, host: str, target: str | None = None, *, terms: Terms = OPERATOR):
    request = SwapRequest(lease.reservations[0].id, host, target)
    (found,) = world.manager.surgery.swap(lease.id, request, terms).leases
    check_promises(world.store, since=NOON)
    return found


def names(details) -> set[str]:
    return {each.name for each in details.held if not each.released}


def test_a_lease_that_waits_for_its_start_gets_any_other_host(world):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(lease)
    after = swap(world, lease, host)
    assert names(after).isdisjoint({host})
    assert len(names(after)) == 1
    assert after.lease.revision == lease.revision + 1
    assert not after.lease.degraded


def test_the_chosen_host_is_the_one_that_it_gets(world):
    lease = world.lease(a_host(2), start=HOUR)
    given, kept = sorted(world.hosts_of(lease))
    (free,) = {"node-1", "node-2", "node-3"} - {given, kept}
    assert names(swap(world, lease, given, free)) == {kept, free}


def test_a_chosen_host_that_is_taken_is_refused(world):
    lease = world.lease(a_host(), start=HOUR)
    other = world.lease(a_host(), start=HOUR)
    (host,), (taken,) = world.hosts_of(lease), world.hosts_of(other)
    with pytest.raises(NotEnoughResources) as refused:
        swap(world, lease, host, taken)
    assert refused.value.pointer == "/for"
    assert world.hosts_of(lease) == {host}


def test_a_chosen_host_that_does_not_meet_the_requirement_is_refused(world):
    lease = world.lease(a_host(needs=ON_NODE_1), start=HOUR)
    with pytest.raises(NotEnoughResources):
        swap(world, lease, "node-1", "node-2")
    with pytest.raises(NotEnoughResources):
        swap(world, lease, "node-1")


def test_a_host_in_use_is_given_up_while_no_server_runs_on_it(world):
    lease = world.lease(a_host(), start=HOUR)
    world.run_to(world.clock.now() + HOUR)
    (host,) = world.hosts_of(lease)
    after = swap(world, lease, host)
    (new,) = names(after)
    assert after.lease.status is LeaseStatus.ACTIVE
    assert not after.lease.degraded
    assert world.pool(lease.reservations[0].id) == {new}
    assert host in world.pool("freepool")


def test_servers_on_a_host_in_use_are_named_and_keep_it(world):
    lease = world.lease(a_host(), start=HOUR)
    world.run_to(world.clock.now() + HOUR)
    (host,) = world.hosts_of(lease)
    server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)
    with pytest.raises(Conflict) as refused:
        swap(world, lease, host)
    assert refused.value.code == "host_has_servers"
    assert refused.value.data == {"servers": [server.id]}
    assert world.now_of(lease.id).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {host}


def test_a_dry_run_changes_nothing(world):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(lease)
    before = world.now_of(lease.id)
    planned = swap(world, lease, host, terms=Terms(OPERATOR.asked_by, dry_run=True))
    assert host not in names(planned)
    assert (world.now_of(lease.id), world.hosts_of(lease)) == (before, {host})


def test_it_is_done_once_for_a_key(world):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(lease)
    keyed = Terms(OPERATOR.asked_by, key=IdempotencyKey("a", "b"))
    after = swap(world, lease, host, terms=keyed)
    again = world.manager.surgery.swap(lease.id, SwapRequest(lease.reservations[0].id, host), keyed)
    assert again.replayed
    assert again.leases == (after,)


def test_another_revision_is_refused(world):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(lease)
    with pytest.raises(PreconditionFailed):
        swap(world, lease, host, terms=Terms(OPERATOR.asked_by, revisions=(99,)))


def test_members_name_hosts_by_their_labels(world):
    lease = world.lease(a_host(), start=HOUR)
    (host,) = world.hosts_of(lease)
    with pytest.raises(InvalidInput) as refused:
        swap(world, lease, host, terms=CURIE)
    assert refused.value.pointer == "/host"
    (label,) = {each.label for each in world.manager.leases.details(lease.id).held}
    assert host not in names(swap(world, lease, label, terms=CURIE))


def test_only_whole_hosts_are_swapped(world):
    lease = world.lease(instances(1), start=HOUR)
    with pytest.raises(Conflict, match="whole hosts"):
        swap(world, lease, "node-1")


def test_an_unknown_reservation_is_not_found(world):
    lease = world.lease(a_host(), start=HOUR)
    with pytest.raises(NotFound):
        world.manager.surgery.swap(lease.id, SwapRequest("none", "node-1"), OPERATOR)


def test_a_lease_that_has_ended_keeps_its_hosts(world):
    lease = world.lease(a_host(), hours=1)
    world.run_to(world.clock.now() + 2 * HOUR)
    with pytest.raises(InvalidInput, match="ended"):
        swap(world, lease, "node-1")


def exchange(world: World, lease, other, *, terms: Terms = OPERATOR, host=None, target=None):
    mine, theirs = min(world.hosts_of(lease)), min(world.hosts_of(other))
    partner = Partner(other.id, other.reservations[0].id)
    request = SwapRequest(lease.reservations[0].id, host or mine, target or theirs, partner)
    found = world.manager.surgery.swap(lease.id, request, terms)
    check_promises(world.store, since=NOON)
    return found


def test_two_leases_exchange_their_hosts_in_one_step(world):
    lease, other = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR, hours=3)
    mine, theirs = world.hosts_of(lease), world.hosts_of(other)
    found = exchange(world, lease, other)
    assert [names(each) for each in found.leases] == [theirs, mine]
    assert [each.lease.id for each in found.leases] == [lease.id, other.id]
    assert (world.hosts_of(lease), world.hosts_of(other)) == (theirs, mine)
    assert world.notifier.types[-2:] == ["lease.update", "lease.update"]
    world.run_to(NOON + HOUR)
    assert world.pool(lease.reservations[0].id) == theirs
    assert world.pool(other.reservations[0].id) == mine


def test_the_host_of_the_other_has_to_be_free_for_the_whole_longer_window(world):
    lease = world.lease(a_host(), start=HOUR, hours=6)
    other = world.lease(a_host(needs=ON_NODE_2), start=HOUR, hours=2)
    later = world.lease(a_host(needs=ON_NODE_2), start=3 * HOUR, hours=5)
    before = world.hosts_of(lease), world.hosts_of(other), world.hosts_of(later)
    with pytest.raises(NotEnoughResources):
        exchange(world, lease, other)
    assert (world.hosts_of(lease), world.hosts_of(other), world.hosts_of(later)) == before


def test_an_exchange_delays_nobody_who_waits(a_world):
    world = a_world(settings=Settings(claim_ttl=timedelta(seconds=30), promises=0))
    lease, other = world.lease(a_host(needs=ON_NODE_1), start=HOUR, hours=2), world.lease(a_host(), start=HOUR, hours=6)
    world.resize(lease, resource_properties="")
    hopeless = world.lease(a_host(9), hours=2, wait=10 * HOUR)
    waits = world.lease(a_host(needs=ON_NODE_1), hours=2, wait=10 * HOUR)
    assert {each.status for each in (hopeless, waits)} == {LeaseStatus.WAITING}
    with pytest.raises(OthersWait, match="1 lease waits for the same resources"):
        exchange(world, lease, other)
    world.manager.leases.delete(waits.id)
    exchange(world, lease, other)
    assert world.hosts_of(other) == {"node-1"}


def test_each_host_has_to_suit_the_other_lease(world):
    lease, other = world.lease(a_host(needs=ON_NODE_1), start=HOUR), world.lease(a_host(), start=HOUR)
    with pytest.raises(NotEnoughResources):
        exchange(world, lease, other)


def test_a_lease_gets_no_host_that_it_has_already(world):
    every = world.lease(a_host(3), start=HOUR, hours=1)
    later = world.lease(a_host(), start=5 * HOUR)
    (host,) = world.hosts_of(later)
    for give in {"node-1", "node-2", "node-3"} - {host}, {host}:
        with pytest.raises(Conflict, match="already"):
            exchange(world, every, later, host=min(give), target=host)
        check_promises(world.store, since=NOON)
        assert len(world.store.calendar.of_lease(every.id)) == 3


def test_leases_in_use_exchange_nothing(world):
    lease, other = world.lease(a_host()), world.lease(a_host(), start=HOUR)
    world.run()
    with pytest.raises(Conflict, match="in use"):
        exchange(world, lease, other)


def test_a_dry_run_of_an_exchange_changes_neither(world):
    lease, other = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    mine, theirs = world.hosts_of(lease), world.hosts_of(other)
    found = exchange(world, lease, other, terms=Terms(OPERATOR.asked_by, dry_run=True))
    assert [names(each) for each in found.leases] == [theirs, mine]
    assert (world.hosts_of(lease), world.hosts_of(other)) == (mine, theirs)


def test_a_host_booked_by_others_meanwhile_is_decided_on_again(world):
    """Between the decision and the write another lease takes what the longer lease would need."""
    lease = world.lease(a_host(needs=ON_NODE_1), start=HOUR, hours=2)
    other = world.lease(a_host(), start=HOUR, hours=1)
    world.change(lease, reservations=(ReservationChange(lease.reservations[0].id, {"resource_properties": ""}),))
    (theirs,) = world.hosts_of(other)
    commit, tries = world.store.bookings.commit, []

    def beaten(wanted, **more):
        if not tries:
            tries.append(1)
            world.manager = world.another_manager()
            world.lease(a_host(needs=json.dumps(["==", "$hypervisor_hostname", theirs])), start=2 * HOUR, hours=1)
        return commit(wanted, **more)

    world.store.bookings.commit = beaten
    with pytest.raises(NotEnoughResources):
        exchange(world, lease, other)
    assert tries


def test_a_host_that_was_emptied_for_a_lease_stays_with_it(a_world):
    world = a_world(hosts=3, register=False)
    world.register("node-1")
    world.manager.resources.register(HOST, Registration({"name": "node-2", "evacuable": True}))
    lease = world.lease(a_host(2), kind=LeaseKind.BEST_EFFORT, hours=4)
    world.run()
    world.run_to(NOON + HOUR / 2)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2"}
    world.register("node-3")
    with pytest.raises(Conflict, match="was emptied"):
        swap(world, lease, "node-2")
    assert "node-3" in names(swap(world, lease, "node-1"))
    # What is in the freepool for nobody is no choice either.
    other = world.lease(a_host(), start=6 * HOUR)
    with pytest.raises(NotEnoughResources):
        swap(world, other, min(world.hosts_of(other)), "node-2")
