# SPDX-License-Identifier: Apache-2.0
"""A reservation of whole hosts gives up some: named ones, or so many, in use only those without servers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange
from blazar.model.leases.states import LeaseStatus
from tests.manager.health.steps import look
from tests.promises import check_promises
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
ROOT = Actor("root", "admin", operator=True)
CURIE = Actor("curie", PROJECT)


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def give_up(world: World, lease, *hosts: str, by: Actor = ROOT, names: bool = False, **parameters):
    change = ReservationChange(lease.reservations[0].id, parameters, give_up=hosts)
    after = world.change(lease, reservations=(change,), asked_by=by, names=names)
    check_promises(world.store, since=NOON)
    return after


def boot(world: World, host: str):
    return world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)


def counts(lease) -> tuple[object, object]:
    values = lease.reservations[0].parameters.values
    return values["min"], values["max"]


def started(world: World, *reservations):
    lease = world.lease(*reservations, hours=4)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    return lease


def test_a_named_host_in_use_goes_back_to_the_freepool_at_once(world):
    lease = started(world, a_host(3))
    given, *kept = sorted(world.hosts_of(lease))
    after = give_up(world, lease, given)
    assert after.status is LeaseStatus.ACTIVE
    assert counts(after) == (2, 2)
    assert world.hosts_of(lease) == set(kept)
    assert world.pool(lease.reservations[0].id) == set(kept)
    assert given in world.pool()


def test_what_is_given_up_can_be_booked_by_others_from_then_on(world):
    lease = started(world, a_host(4))
    given = min(world.hosts_of(lease))
    world.run_to(NOON + HOUR)
    give_up(world, lease, given)
    other = world.lease(a_host(), hours=1)
    world.run()
    assert world.pool(other.reservations[0].id) == {given}


def test_by_count_empty_hosts_go_and_those_with_servers_stay(world):
    lease = started(world, a_host(3))
    busy = max(world.hosts_of(lease))
    boot(world, busy)
    after = world.resize(lease, min=1, max=1)
    assert counts(after) == (1, 1)
    assert world.hosts_of(lease) == {busy} == world.pool(lease.reservations[0].id)


def test_by_count_the_failed_host_goes_first(world):
    lease = started(world, a_host(3))
    failed = min(world.hosts_of(lease))
    world.simulated.operators.host_down(failed)
    look(world)
    world.resize(lease, min=2, max=2)
    assert failed not in world.hosts_of(lease)


def test_a_host_with_servers_is_named_and_stays(world):
    lease = started(world, a_host(2))
    busy = min(world.hosts_of(lease))
    boot(world, busy)
    before = world.now(lease)
    with pytest.raises(Conflict, match=f"servers run on host {busy}; move or delete them first") as refused:
        give_up(world, lease, busy)
    assert (refused.value.code, refused.value.pointer) == ("host_has_servers", "/reservations/0/give_up")
    assert world.now(lease) == before
    assert busy not in str(refused.value.public)


def test_a_count_below_the_hosts_with_servers_is_refused(world):
    lease = started(world, a_host(3))
    for host in sorted(world.hosts_of(lease))[:2]:
        boot(world, host)
    with pytest.raises(Conflict, match="max can be 2 at least") as refused:
        world.resize(lease, min=1, max=1)
    assert (refused.value.code, refused.value.pointer) == ("host_has_servers", "/reservations/0/max")
    assert len(world.hosts_of(lease)) == 3


def test_before_the_start_the_named_host_goes_too(world):
    lease = world.lease(a_host(2, 3), start=HOUR)
    given, *kept = sorted(world.hosts_of(lease))
    after = give_up(world, lease, given)
    assert counts(after) == (2, 2)
    assert world.hosts_of(lease) == set(kept)


def test_members_name_hosts_by_label_or_by_name_where_they_see_these(world):
    lease = started(world, a_host(4))
    held = world.manager.leases.details(lease.id).held
    with pytest.raises(InvalidInput, match="is no host of reservation") as refused:
        give_up(world, lease, held[0].name, by=CURIE)
    assert refused.value.pointer == "/reservations/0/give_up/0"
    give_up(world, lease, held[0].label, by=CURIE)
    give_up(world, lease, held[1].name, by=CURIE, names=True)
    assert world.hosts_of(lease) == {held[2].name, held[3].name}


@pytest.mark.parametrize(
    ("hosts", "sentence"), [((0, 0), "twice"), ((0, 1), "one at least: end or delete the lease"), (("moon",), "is no")]
)
def test_what_cannot_be_given_up_is_refused_with_its_place(world, hosts, sentence):
    lease = started(world, a_host(2))
    held = sorted(world.hosts_of(lease))
    with pytest.raises(InvalidInput, match=sentence) as refused:
        give_up(world, lease, *(each if isinstance(each, str) else held[each] for each in hosts))
    assert refused.value.pointer.startswith("/reservations/0/give_up")


def test_another_count_beside_named_hosts_is_refused(world):
    lease = started(world, a_host(3))
    given = min(world.hosts_of(lease))
    with pytest.raises(InvalidInput, match="leave min out") as refused:
        give_up(world, lease, given, max=1, min=1)
    assert refused.value.pointer == "/reservations/0/min"
    assert counts(give_up(world, lease, given, min=3, max=3)) == (2, 2)


def test_only_whole_hosts_are_given_up(world):
    lease = started(world, instances(1))
    with pytest.raises(Conflict, match="whole hosts"):
        give_up(world, lease, "node-1")


def test_a_dry_run_shows_it_and_changes_nothing(world):
    lease = started(world, a_host(2))
    given, kept = sorted(world.hosts_of(lease))
    asked = ReservationChange(lease.reservations[0].id, {}, give_up=(given,))
    before = world.now(lease)
    change = LeaseChange(reservations=(asked,), asked_by=ROOT, exact=True, dry_run=True)
    shown = world.manager.leases.change(lease.id, change)
    assert {each.name for each in shown.held if not each.released} == {kept}
    assert (world.now(lease), world.pool(lease.reservations[0].id)) == (before, {given, kept})


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_that_is_booted_in_between_keeps_its_host(world, moment):
    """The last look at the host is after it has left the aggregate, when nobody boots there any more."""
    lease = started(world, a_host(2))
    given = min(world.hosts_of(lease))

    def boot_late(name: str, phase: str) -> None:
        if (name, phase) == ("remove_host", moment):
            world.faults.on_call = None
            boot(world, given)

    world.faults.on_call = boot_late
    with pytest.raises(Conflict, match="server"):
        give_up(world, lease, given)
    world.run()
    assert given in world.hosts_of(lease)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_what_the_cloud_refuses_is_undone(world):
    lease = started(world, a_host(2))
    given, kept = sorted(world.hosts_of(lease))
    world.faults.fail_before("remove_host", CloudUnavailable("no answer"))
    with pytest.raises(CloudUnavailable):
        give_up(world, lease, given)
    world.run()
    assert world.hosts_of(lease) == {given, kept} == world.pool(lease.reservations[0].id)
    assert counts(world.now(lease)) == (2, 2)
