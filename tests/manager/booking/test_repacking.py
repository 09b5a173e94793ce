# SPDX-License-Identifier: Apache-2.0
"""Leases that have not started leave their hosts for others, which keep theirs for longer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from blazar.calendar.repack.search import _RepackSearch
from blazar.calendar.repack.values import RepackMode
from blazar.enforcement.limits import MaxLeaseDurationFilter
from blazar.manager.booking import host_search
from blazar.manager.common.settings import RepackSettings, Settings
from blazar.model.base.errors import NotEnoughResources, OthersWait
from blazar.model.base.paging import Page
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.configured import configured_world
from tests.observed import Killed
from tests.promises import check_promises
from tests.statements import counted
from tests.tables import new_sqlite
from tests.world import NOON, PROJECT, World, a_host, instances, of_hosts

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SMALL = {"vcpus": 8}


def a_world(engine, *hosts, **repack) -> World:
    settings = Settings(
        claim_ttl=timedelta(seconds=30), promises=0, repack=RepackSettings(**({"exact": timedelta(0)} | repack))
    )
    described = hosts or ({}, {}, {})
    return World(engine, hosts=len(described), state=of_hosts(*described), settings=settings)


@pytest.fixture
def world(sqlite) -> World:
    return a_world(sqlite)


def hosts(world: World, lease: Lease) -> set[int]:
    return {a.resource_id for a in world.store.calendar.of_lease(lease.id)}


def booked_on(world: World, host: int, *asked, start: float = 4, hours: float = 8, **more) -> Lease:
    """Book what does not ask for a certain host while all but one are taken."""
    others = [r.name for r in world.store.resources.catalog(HOST).resources if r.id != host]
    span = {"start": start * HOUR, "hours": hours}
    blocks = [world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{name}"]'), **span) for name in others]
    lease = world.lease(*asked, **span, **{"project": "chemistry", **more})
    for block in blocks:
        world.manager.leases.delete(block.id)
    assert hosts(world, lease) == {host}
    return world.now(lease)


def in_use(world: World, *asked, hours: float = 4, **more) -> Lease:
    lease = world.lease(*asked, hours=hours, **more)
    world.run()
    return world.now(lease)


def prolong(world: World, lease: Lease, hours: float, **more) -> Lease:
    asked_by = Actor("curie", PROJECT)
    return world.change(lease, end=NOON + hours * HOUR, asked_by=asked_by, **more)


def stays(world: World, lease: Lease, other: Lease, hours: float = 8) -> None:
    """Check that a lease is not prolonged, and the other one keeps its host."""
    with pytest.raises(NotEnoughResources):
        prolong(world, lease, hours)
    assert world.now(other) == other
    assert hosts(world, other) == hosts(world, lease)


def told(world: World, lease: Lease) -> int:
    return [(kind, one.id) for kind, one in world.notifier.told].count(("lease.moved", lease.id))


def pair(world: World) -> tuple[Lease, Lease]:
    """Return a lease in use, and one to which its host is promised from its end on."""
    lease = in_use(world)
    (host,) = hosts(world, lease)
    return lease, booked_on(world, host)


def test_a_lease_is_prolonged_on_its_host_and_who_comes_next_gets_another(engine):
    world = a_world(engine)
    lease, pending = pair(world)
    mine = hosts(world, lease)
    assert prolong(world, lease, 8).window.end == NOON + 8 * HOUR
    after = world.now(pending)
    assert hosts(world, lease) == mine
    assert hosts(world, pending).isdisjoint(mine)
    assert after == replace(pending, revision=pending.revision + 1)
    world.run_to(NOON + 9 * HOUR)
    assert (world.now(lease).status, world.now(pending).status) == (LeaseStatus.TERMINATED, LeaseStatus.ACTIVE)
    assert {a.resource_id for a in world.store.calendar.of_lease(pending.id)}.isdisjoint(mine)


def test_who_is_moved_is_told_once_a_day_and_not_for_whom(world):
    lease, pending = pair(world)
    prolong(world, lease, 8)
    assert told(world, pending) == 1
    assert told(world, lease) == 0
    entry = world.store.history.page(pending.id, Page(10, "id")).items[-1]
    assert (entry.verb, entry.reason, entry.by) == ("moved", "repacked", None)
    (move,) = entry.moves
    assert (move.gone_count, move.come_count) == (1, 1)
    # Its new host is needed, too.
    (host,) = hosts(world, pending)
    third = in_use(
        world, a_host(needs=f'["==", "$id", "{world.store.resources.catalog(HOST).by_id[host].external_id}"]')
    )
    prolong(world, third, 6)
    assert hosts(world, pending) != {host}
    assert told(world, pending) == 1
    entries = world.store.history.page(pending.id, Page(10, "id")).items
    assert [entry.reason for entry in entries] == [None, "repacked", "repacked_again"]


def test_who_is_moved_again_after_a_day_is_told_again(world):
    lease, pending = pair(world)
    later = world.change(pending, start=NOON + 40 * HOUR, end=NOON + 48 * HOUR)
    (first,) = hosts(world, later)
    world.change(lease, end=NOON + 60 * HOUR)
    assert told(world, pending) == 1
    (second,) = hosts(world, pending)
    assert second != first
    world.run_to(NOON + 25 * HOUR)
    world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "node-{second}"]'), start=10 * HOUR, hours=20)
    assert hosts(world, pending) == {1, 2, 3} - {first, second}
    assert told(world, pending) == 2


def test_a_dry_run_moves_nobody(world):
    lease, pending = pair(world)
    assert prolong(world, lease, 8, dry_run=True).window.end == NOON + 8 * HOUR
    assert world.now(lease) == lease
    assert world.now(pending) == pending
    assert hosts(world, pending) == hosts(world, lease)


@pytest.mark.parametrize(
    ("line", "moves"),
    [
        ("repack = off", False),
        ("repack = equal", True),
        ("repack_notice = 241", False),
        ("repack_notice = 240", True),
        ("repack_most_moves = 0", False),
        ("repack_most_moves = 1", True),
        ("repack_most_leases = 0", False),
        ("repack_most_leases = 1", True),
    ],
)
def test_who_comes_next_is_moved_as_the_file_says(sqlite, tmp_path, line, moves):
    world = configured_world(sqlite, tmp_path, "[manager]", line, hosts=3, state=of_hosts({}, {}, {}))
    lease, pending = pair(world)
    if moves:
        prolong(world, lease, 8)
        assert hosts(world, pending) != hosts(world, lease)
    else:
        stays(world, lease, pending)


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_solver_goes_on_where_the_search_gives_up(sqlite, tmp_path, monkeypatch, seconds):
    pytest.importorskip("highspy", reason="the extra exact is not installed")
    world = configured_world(
        sqlite, tmp_path, "[manager]", f"repack_exact = {seconds}", hosts=3, state=of_hosts({}, {}, {})
    )
    lease, pending = pair(world)
    monkeypatch.setattr(_RepackSearch, "place_needed", lambda search: False)
    if seconds:
        prolong(world, lease, 8)
        assert hosts(world, pending) != hosts(world, lease)
    else:
        stays(world, lease, pending)


@pytest.mark.parametrize("mode", [RepackMode.EQUAL, RepackMode.ANY])
def test_what_users_can_tell_apart_is_exchanged_only_if_the_operator_says_so(sqlite, mode):
    world = a_world(sqlite, {}, SMALL, SMALL, mode=mode)
    lease = in_use(world, a_host(needs='["==", "$vcpus", "16"]'))
    pending = booked_on(world, 1)
    if mode is RepackMode.EQUAL:
        stays(world, lease, pending)
    else:
        prolong(world, lease, 8)
        assert hosts(world, pending) <= {2, 3}


def test_with_filters_leases_go_to_equal_hosts_only_as_these_were_not_asked(sqlite):
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, repack=RepackSettings(mode=RepackMode.ANY))
    filters = [MaxLeaseDurationFilter(10 * DAY)]
    world = World(sqlite, hosts=3, state=of_hosts({}, SMALL, {}), settings=settings, filters=filters)
    lease = in_use(world, a_host(needs='["==", "$vcpus", "16"]'))
    (mine,) = hosts(world, lease)
    pending = booked_on(world, mine)
    prolong(world, lease, 8)
    assert hosts(world, pending) == {1, 3} - {mine}
    (free,) = hosts(world, pending)
    world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "node-{mine}"]'), start=13 * HOUR, hours=2)
    last = booked_on(world, mine, start=16, hours=2)
    world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "node-{free}"]'), start=16 * HOUR, hours=2)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "node-{mine}"]'), start=16 * HOUR, hours=1)
    assert hosts(world, last) == {mine}


def test_hosts_that_differ_in_what_operators_keep_for_themselves_are_equal(world):
    lease, pending = pair(world)
    for number, host in enumerate(("1", "2", "3")):
        world.manager.resources.change(HOST, host, ResourceChange({"serial": f"s{number}"}))
    stays(world, lease, pending)
    world.manager.resources.set_property(HOST, "serial", private=True)
    prolong(world, lease, 8)
    assert hosts(world, pending) != hosts(world, lease)


def test_who_begins_soon_keeps_the_host(sqlite):
    world = a_world(sqlite, notice=5 * HOUR)
    lease, pending = pair(world)
    stays(world, lease, pending)


def test_who_was_moved_often_keeps_the_host(sqlite):
    world = a_world(sqlite, {}, {}, {}, {}, most_moves=1)
    lease, pending = pair(world)
    prolong(world, lease, 8)
    (host,) = hosts(world, pending)
    name = world.store.resources.catalog(HOST).by_id[host].name
    third = in_use(world, a_host(needs=f'["==", "$hypervisor_hostname", "{name}"]'))
    with pytest.raises(NotEnoughResources):
        prolong(world, third, 6)
    assert hosts(world, pending) == {host}


@pytest.mark.parametrize("asked", ["name", "servers", "topology"])
def test_who_is_bound_to_the_host_keeps_it(world, asked):
    lease = in_use(world)
    (host,) = hosts(world, lease)
    name = world.store.resources.catalog(HOST).by_id[host].name
    by_name = f'["==", "$hypervisor_hostname", "{name}"]'
    if asked == "topology":
        together = a_host()
        together.parameters["together"] = "availability_zone"
        pending = booked_on(world, host, together)
    else:
        what = a_host(needs=by_name) if asked == "name" else instances(1, needs=by_name)
        pending = world.lease(what, start=4 * HOUR, hours=8, project="chemistry")
    stays(world, lease, world.now(pending))


def test_who_keeps_the_hosts_stays_until_that_is_changed(world):
    lease, pending = pair(world)
    kept = world.change(pending, keep_hosts=True)
    stays(world, lease, world.now(kept))
    world.change(kept, keep_hosts=False)
    prolong(world, lease, 8)
    assert hosts(world, pending) != hosts(world, lease)


def test_who_keeps_the_hosts_gets_others_if_they_fail(world):
    lease = world.change(world.lease(start=4 * HOUR), keep_hosts=True)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_vanishes(host)
    world.run_to(NOON + 4 * HOUR)
    assert (world.now(lease).status, world.now(lease).keep_hosts) == (LeaseStatus.ACTIVE, True)
    assert world.hosts_of(lease) != {host}


def test_nobody_is_moved_while_somebody_waits(world):
    world.waits = True
    lease, pending = pair(world)
    world.lease(a_host(3), wait=DAY, project="biology")
    stays(world, lease, pending)


def test_a_lease_that_has_not_started_keeps_its_host_for_longer_too(sqlite):
    world = a_world(sqlite, {}, {})
    first = booked_on(world, 2, start=3, hours=1, project=PROJECT)
    world.lease(start=3 * HOUR, hours=1)
    pending = booked_on(world, 2, start=4, hours=4)
    prolong(world, first, 8)
    assert (hosts(world, first), hosts(world, pending)) == ({2}, {1})


def racked(sqlite, **repack) -> World:
    """Two hosts in each of two racks."""
    world = a_world(sqlite, {}, {}, {}, {}, **repack)
    for host in world.store.resources.catalog(HOST).resources:
        world.manager.resources.change(HOST, host.external_id, ResourceChange({"rack": f"r{(host.id + 1) // 2}"}))
    return world


def lying(count: int, **how):
    asked = a_host(count)
    return replace(asked, parameters={**asked.parameters, **how})


@pytest.mark.parametrize("mode", [RepackMode.EQUAL, RepackMode.ANY])
def test_what_lies_together_is_prolonged_where_it_is(sqlite, mode):
    world = racked(sqlite, mode=mode)
    lease = in_use(world, lying(2, together="rack"))
    other = booked_on(world, min(hosts(world, lease)))
    mine = hosts(world, lease)
    if mode is RepackMode.EQUAL:
        # What users can tell apart is not exchanged, and its own rack has no other host.
        with pytest.raises(NotEnoughResources):
            prolong(world, lease, 8)
        assert hosts(world, other) < mine
    else:
        prolong(world, lease, 8)
        assert hosts(world, other).isdisjoint(mine)
    assert hosts(world, lease) == mine


def test_what_lies_together_is_not_torn_apart_to_be_longer(sqlite):
    world = racked(sqlite)
    lease = world.lease(lying(2, together="rack"), start=2 * HOUR, hours=2)
    mine = hosts(world, lease)
    for host in (min(mine), min({1, 2, 3, 4} - mine)):
        name = next(r.name for r in world.store.resources.catalog(HOST).resources if r.id == host)
        world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{name}"]'), start=4 * HOUR, hours=4)
    with pytest.raises(NotEnoughResources):
        prolong(world, lease, 8)
    assert hosts(world, lease) == mine


def test_the_cleaning_after_a_lease_is_kept(sqlite):
    world = World(sqlite, hosts=2, state=of_hosts({}, {}), cleaning_time=HOUR)
    lease = in_use(world)
    (mine,) = hosts(world, lease)
    pending = booked_on(world, mine, start=5, hours=4)
    # It is cleaned until its next user has it: so long nothing has to move.
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(2), start=9.5 * HOUR, hours=1)
    prolong(world, lease, 4)
    assert hosts(world, pending) == {mine}
    prolong(world, lease, 4.5)
    assert hosts(world, pending) != {mine}


def test_what_changes_in_between_is_tried_again(world, monkeypatch):
    lease, pending = pair(world)
    search, seen, other = host_search.repack, [], world.another_manager()

    def change_meanwhile(problem, limits):
        found = search(problem, limits)
        if not seen:
            other.leases.update(pending.id, LeaseChange(name="another name"))
        seen.append(found)
        return found

    monkeypatch.setattr(host_search, "repack", change_meanwhile)
    prolong(world, lease, 8)
    assert len(seen) == 2
    assert (world.now(pending).name, hosts(world, pending) != hosts(world, lease)) == ("another name", True)


def test_who_is_never_left_in_peace_is_told_that_there_is_too_little(world, monkeypatch):
    lease, pending = pair(world)
    search, other = host_search.repack, world.another_manager()

    def change_meanwhile(problem, limits):
        found = search(problem, limits)
        other.leases.update(pending.id, LeaseChange(name=f"{world.now(pending).revision} names"))
        return found

    monkeypatch.setattr(host_search, "repack", change_meanwhile)
    with pytest.raises(NotEnoughResources):
        prolong(world, lease, 8)
    assert hosts(world, pending) == hosts(world, lease)


def test_a_lease_that_is_prolonged_by_itself_gets_all_of_its_time(world):
    lease = in_use(world, extend=NOON + 8 * HOUR)
    (host,) = hosts(world, lease)
    pending = booked_on(world, host, start=6)
    world.run_to(NOON + 3 * HOUR)
    assert world.manager.prolongation.run_once() == 1
    assert world.now(lease).window.end == NOON + 8 * HOUR
    assert hosts(world, pending) != {host}


def test_a_lease_that_is_prolonged_by_itself_ends_where_nobody_can_be_moved(sqlite):
    world = a_world(sqlite, mode=RepackMode.OFF)
    lease = in_use(world, extend=NOON + 8 * HOUR)
    (host,) = hosts(world, lease)
    pending = booked_on(world, host, start=6)
    world.run_to(NOON + 3 * HOUR)
    assert world.manager.prolongation.run_once() == 1
    assert world.now(lease).window.end == NOON + 6 * HOUR
    assert hosts(world, pending) == {host}


def test_what_is_read_does_not_grow_with_the_calendar(sqlite):
    """Of statements each lease that is moved costs some, and no other one any."""
    found = []
    world = a_world(sqlite, *[{}] * 8)
    for more in (0, 20):
        for number in range(more):
            world.lease(a_host(2), start=(24 + 5 * number) * HOUR, hours=4, project="biology")
        lease, pending = pair(world)
        with counted(sqlite) as statements:
            prolong(world, lease, 8)
        assert hosts(world, pending) != hosts(world, lease)
        found.append(statements.count)
        for one in (lease, pending):
            world.manager.leases.delete(one.id)
        world.run()
    assert found[0] == found[1], found


def test_three_of_six_hosts_are_free_at_each_moment_and_so_they_can_be_had(engine):
    """Three leases of three hosts, one after the other: and yet three hosts are free throughout."""
    world = a_world(engine, *[{}] * 6)
    booked = []
    for number, wanted in enumerate(([1, 2, 3], [4, 5, 6], [1, 2, 3])):
        start = (4 + 2 * number) * HOUR
        names = ", ".join(f'"node-{n}"' for n in range(1, 7) if n not in wanted)
        block = world.lease(a_host(3, needs=f'["in", "$hypervisor_hostname", {names}]'), start=start, hours=2)
        booked.append(world.now(world.lease(a_host(3), start=start, hours=2, project="chemistry")))
        world.manager.leases.delete(block.id)
        assert hosts(world, booked[-1]) == set(wanted)
    preview = world.manager.leases.creator.preview(a_request(3, 4, 6))
    assert len(preview.held) == 3
    assert [world.now(lease) for lease in booked] == booked
    throughout = world.lease(a_host(3), start=4 * HOUR, hours=6)
    assert len(hosts(world, throughout)) == 3
    moved = [lease for lease in booked if world.now(lease).revision > lease.revision]
    assert moved
    for lease in booked:
        assert world.now(lease).window == lease.window
        assert len(hosts(world, lease)) == 3
        assert hosts(world, lease).isdisjoint(hosts(world, throughout))
        assert told(world, lease) == (lease in moved)


def a_request(count: int, start: float, hours: float) -> LeaseRequest:
    begin = NOON + start * HOUR
    return LeaseRequest("asked", "curie", PROJECT, begin, begin + hours * HOUR, reservations=(a_host(count),))


@pytest.mark.parametrize("waits", [True, False])
def test_a_booking_moves_nobody_while_somebody_waits(sqlite, waits):
    world = a_world(sqlite, {}, {})
    world.waits = True
    in_use(world, a_host(2), hours=3)
    booked = [booked_on(world, 1, start=4, hours=2), booked_on(world, 2, start=6, hours=2)]
    if waits:
        world.lease(a_host(2), hours=1, wait=DAY, project="biology")
        with pytest.raises((NotEnoughResources, OthersWait)):
            world.lease(a_host(), start=4 * HOUR, hours=4)
        assert [world.now(lease) for lease in booked] == booked
    else:
        world.lease(a_host(), start=4 * HOUR, hours=4)
        assert sum(world.now(lease).revision > lease.revision for lease in booked) == 1


def in_the_way_of_a_prolongation(world: World) -> tuple[Callable[[], Lease], list[Lease]]:
    lease, pending = pair(world)
    return partial(prolong, world, lease, 8), [pending]


def in_the_way_of_a_booking(world: World) -> tuple[Callable[[], Lease], list[Lease]]:
    booked = [booked_on(world, 1, hours=2), booked_on(world, 2, start=6, hours=2)]
    return partial(world.lease, a_host(), start=4 * HOUR, hours=4), booked


@contextmanager
def killed_before(world: World, number: int) -> Iterator[None]:
    """Let the process be as if it were killed before its so-manieth statement."""
    left = itertools.count(number, -1)

    def die(*_: object) -> None:
        if next(left) == 1:
            raise Killed

    sa.event.listen(world.engine, "before_cursor_execute", die)
    try:
        yield
    finally:
        sa.event.remove(world.engine, "before_cursor_execute", die)


@pytest.mark.slow
@pytest.mark.parametrize(("prepare", "hosts_there"), [(in_the_way_of_a_prolongation, 3), (in_the_way_of_a_booking, 2)])
def test_who_is_killed_before_any_statement_has_moved_and_granted_all_or_nothing(tmp_path, prepare, hosts_there):
    granted_of = []
    for number in itertools.count(1):
        world = a_world(new_sqlite(tmp_path / f"{number}.sqlite"), *[{}] * hosts_there)
        act, pending = prepare(world)
        end, count = [lease.window.end for lease in world.store.leases.of_project(PROJECT)], len(pending)
        survived = False
        with suppress(Killed), killed_before(world, number):
            act()
            survived = True
        check_promises(world.store, since=NOON)
        granted = [lease.window.end for lease in world.store.leases.of_project(PROJECT)] != end
        moved = sum(world.now(lease).revision > lease.revision for lease in pending)
        assert moved == int(granted)
        granted_of.append(granted)
        if not granted:
            act()
        world.run_to(NOON + 20 * HOUR)
        assert [world.now(lease).status for lease in pending] == [LeaseStatus.TERMINATED] * count
        world.engine.dispose()
        if survived:
            break
    assert sum(not granted for granted in granted_of) > 10
