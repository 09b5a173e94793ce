# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows from the request to the return of the hosts, on each of the databases."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blazar.manager.common.settings import Settings
from blazar.model.base.clock import zulu
from blazar.model.base.errors import (
    BlazarError,
    CloudUnavailable,
    Conflict,
    InvalidInput,
    NotEnoughResources,
    NotFound,
    PreconditionFailed,
    WrongState,
)
from blazar.model.base.moments import NOW, Duration
from blazar.model.base.paging import Page
from blazar.model.calendar.views import BlockKind, CalendarQuestion, CapacityQuestion, OutOfUse, Range, Viewer
from blazar.model.journal.entries import FieldChange, NumberedEntry, Verb
from blazar.model.journal.views import JournalQuestion
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import (
    MARK,
    MaintenanceChange,
    MaintenanceQuestion,
    MaintenanceRequest,
    MaintenanceStatus,
    Outcome,
    PendingPolicy,
)
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion
from blazar.model.surgery import SwapRequest, Terms
from blazar.resources.contract.checked import CheckedKind
from tests.cases import cases
from tests.observed import Killed, ObservedStore
from tests.promises import check_promises
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
OPERATOR = Viewer("admin", names=True, owners=True, private=True)


def id_of(world, name: str) -> str:
    return next(host.external_id for host in world.manager.resources.all(HOST) if host.name == name)


def asked(world, *names: str, start=HOUR, end=5 * HOUR, **more) -> MaintenanceRequest:
    ids = tuple(id_of(world, name) for name in names)
    return MaintenanceRequest("firmware", NOON + start, NOON + end, hosts=ids, **more)


def opened(world, *names: str, **more):
    made = world.manager.maintenances.create(asked(world, *names, **more)).maintenance
    work(world)
    return shown(world, made)


def shown(world, maintenance):
    return world.manager.maintenances.one(maintenance.id)


def work(world, manager=None) -> None:
    while (manager or world.manager).maintenance_work.run_once():
        pass


def work_to(world, instant) -> None:
    """Let time pass until then, with all work that falls due."""
    while True:
        due = [d for d in (world.store.events.next_due(), world.store.maintenances.next_due()) if d is not None]
        if not due or min(due) > instant:
            break
        if min(due) > world.clock.now():
            world.clock.to(min(due))
        world.run()
        world.manager.maintenance_work.run_once()
    world.clock.to(instant)
    world.run()
    world.manager.maintenance_work.run_once()


def outcomes(maintenance) -> dict[str, Outcome]:
    return {lease.lease_id: lease.outcome for lease in maintenance.leases}


def states(world) -> dict[str, tuple[bool, str | None]]:
    return {h.hypervisor_hostname: (h.enabled, h.disabled_reason) for h in world.simulated.compute.hypervisors()}


def test_a_pending_lease_gets_another_host_at_the_same_time_and_its_owner_is_told_once(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), start=2 * HOUR)
    other = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(other)
    impact = world.manager.maintenances.create(asked(world, name, "node-1"), dry_run=True).impact
    assert {each.lease_id: each.outcome for each in impact.leases} == {
        lease.id: Outcome.NEEDS_OTHER_TIME,
        other.id: Outcome.MOVED,
    }
    assert world.manager.maintenances.page(MaintenanceQuestion(Page(10, "created_at"))).items == ()
    made = opened(world, name, "node-1", impact_id=impact.id)
    assert outcomes(made) == outcomes(impact)
    (target,) = world.hosts_of(other)
    assert target not in (name, "node-1")
    assert [m.target for each in made.leases for m in each.moves] == [id_of(world, target)]
    assert world.now(other).window == other.window
    assert world.hosts_of(lease) == {"node-1"}
    (blocked,) = (each for each in made.leases if each.lease_id == lease.id)
    assert blocked.openings[0] == NOON + 5 * HOUR
    for _ in range(5):
        world.clock.by(hours=1 / 8)
        world.manager.monitor.run_once()
        work(world)
    told = Counter((kind, each.id) for kind, each in world.notifier.told if kind.startswith(("lease.m", "lease.deg")))
    assert told == {("lease.moved", other.id): 1, ("lease.maintenance", lease.id): 1}


def test_nobody_books_over_a_window_and_those_who_have_keep_what_they_have(engine):
    world = World(engine, hosts=1)
    lease = world.lease(a_host(), hours=3)
    world.run()
    opened(world, "node-1", start=2 * HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(), start=4 * HOUR, hours=2)
    with pytest.raises(NotEnoughResources):
        world.lease(instances(), start=4 * HOUR, hours=2)
    with pytest.raises(NotEnoughResources):
        world.change(lease, end=NOON + 4 * HOUR)
    assert world.change(lease, end=NOON + 2.5 * HOUR).window.end == NOON + 2.5 * HOUR
    assert world.change(lease, name="another name").name == "another name"
    assert world.lease(a_host(), start=5 * HOUR).status is LeaseStatus.PENDING
    question = AvailabilityQuestion(Actor("curie", PROJECT), reservations=(a_host(),), duration=Duration(seconds=3600))
    (opening, *_) = world.manager.availability.find(question).openings
    assert opening.window.start == NOON + 7 * HOUR


def test_calendar_and_capacity_show_a_window_as_out_of_use(engine):
    world = World(engine, hosts=2)
    opened(world, "node-1", reason="new disks")
    range_ = Range(NOON, NOON + 8 * HOUR)
    for viewer, reason in ((OPERATOR, "new disks"), (Viewer(PROJECT), None)):
        page = world.manager.calendar.page(CalendarQuestion(viewer, Page(10, "name"), range_))
        blocks = [block for row in page.rows for block in row.blocks]
        assert [(b.kind, b.code, b.start, b.end, b.reason) for b in blocks] == [
            (BlockKind.OUT_OF_USE, OutOfUse.MAINTENANCE, NOON + HOUR, NOON + 5 * HOUR, reason)
        ]
    (series,) = world.manager.calendar.capacity(CapacityQuestion(OPERATOR, range_, step=Duration(seconds=3600))).series
    assert series.out_of_use == (0, 1, 1, 1, 1, 0, 0, 0)
    assert series.promised == (0,) * 8


def test_hosts_are_disabled_by_our_mark_and_only_what_has_it_is_enabled(engine):
    world = World(engine, hosts=3)
    world.simulated.operators.host_disabled("node-2", "broken fan")
    world.manager.resources.change(HOST, id_of(world, "node-3"), ResourceChange({}, disabled=True))
    made = opened(world, "node-1", "node-2", "node-3", disable_service=True)
    assert states(world)["node-1"] == (True, None)
    work_to(world, NOON + HOUR)
    assert shown(world, made).status is MaintenanceStatus.ACTIVE
    assert states(world) == {
        "node-1": (False, MARK + made.id),
        "node-2": (False, "broken fan"),
        "node-3": (False, MARK + made.id),
    }
    for _ in range(3):
        world.manager.monitor.run_once()
    assert [host.failure for host in world.manager.resources.all(HOST) if host.name != "node-2"] == [None, None]
    work_to(world, NOON + 5 * HOUR)
    assert shown(world, made).status is MaintenanceStatus.DONE
    assert states(world) == {"node-1": (True, None), "node-2": (False, "broken fan"), "node-3": (True, None)}
    disabled = {host.name: host.disabled for host in world.manager.resources.all(HOST)}
    assert disabled == {"node-1": False, "node-2": False, "node-3": True}


def test_a_host_that_restarts_in_maintenance_heals_nothing_and_counts_again_afterwards(engine):
    world = World(engine, hosts=2, settings=Settings(claim_ttl=timedelta(seconds=30), heal_active=True))
    lease = world.lease(a_host(), hours=8)
    world.run()
    (name,) = world.hosts_of(lease)
    later = world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{name}"]'), start=9 * HOUR)
    opened(world, name)
    work_to(world, NOON + HOUR)
    world.simulated.operators.host_down(name)
    for _ in range(3):
        world.manager.monitor.run_once()
    assert world.hosts_of(lease) == world.hosts_of(later) == {name}
    assert not world.now(lease).degraded
    work_to(world, NOON + 5 * HOUR)
    for _ in range(3):
        world.manager.monitor.run_once()
    assert next(h.failure for h in world.manager.resources.all(HOST) if h.name == name) == "its nova-compute is down"


def test_what_polls_counted_in_maintenance_does_not_count_after_its_end(engine):
    world = World(engine, hosts=2)
    made = opened(world, "node-1")
    work_to(world, NOON + HOUR)
    world.simulated.operators.host_down("node-1")
    world.manager.monitor.run_once()
    world.manager.maintenances.end(made.id)
    work(world)
    world.manager.monitor.run_once()
    assert [host.failure for host in world.manager.resources.all(HOST)] == [None, None]
    world.manager.monitor.run_once()
    assert next(h.failure for h in world.manager.resources.all(HOST) if h.name == "node-1")


def test_a_host_that_is_registered_no_more_is_not_disabled_but_enabled_again_if_it_was(engine):
    world = World(engine, hosts=3)
    made = opened(world, "node-1", "node-2", disable_service=True)
    world.manager.resources.unregister(HOST, id_of(world, "node-1"))
    work_to(world, NOON + HOUR)
    assert states(world)["node-1"] == (True, None)
    assert states(world)["node-2"] == (False, MARK + made.id)
    world.manager.resources.unregister(HOST, id_of(world, "node-2"))
    work_to(world, NOON + 5 * HOUR)
    assert shown(world, made).status is MaintenanceStatus.DONE
    assert states(world)["node-2"] == (True, None)


def test_leases_move_while_nova_cannot_be_reached_at_the_start(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(lease)
    made = world.manager.maintenances.create(asked(world, name, start=timedelta(0), disable_service=True)).maintenance
    with patch.object(CheckedKind, "close", side_effect=CloudUnavailable("Nova cannot be reached")):
        world.manager.maintenance_work.run_once()
    assert (shown(world, made).status, shown(world, made).trouble) == ("STARTING", "Nova cannot be reached")
    assert world.hosts_of(lease) != {name}
    assert world.notifier.types.count("lease.moved") == 1
    world.clock.by(seconds=5)
    work(world)
    assert (shown(world, made).status, shown(world, made).trouble) == ("ACTIVE", None)
    assert world.notifier.types.count("lease.moved") == 1


def test_a_window_that_another_manager_ends_while_hosts_are_closed_leaves_none_closed(engine):
    world = World(engine, hosts=2)
    made = opened(world, "node-1", disable_service=True)
    other, close = world.another_manager(), CheckedKind.close

    def late(kind, hosts, mark):
        world.manager.maintenances.end(made.id)
        work(world, other)
        close(kind, hosts, mark)

    world.clock.to(NOON + HOUR)
    with patch.object(CheckedKind, "close", late):
        world.manager.maintenance_work.run_once()
    assert shown(world, made).status is MaintenanceStatus.DONE
    assert states(world)["node-1"] == (True, None)


@pytest.mark.parametrize("late", [timedelta(seconds=10), timedelta(minutes=30)])
def test_a_host_that_is_closed_by_a_late_call_after_its_window_is_opened_again(engine, late):
    world = World(engine, hosts=3)
    made = opened(world, "node-1", disable_service=True)
    world.simulated.operators.host_disabled("node-2", "broken fan")
    work_to(world, NOON + 5 * HOUR + late)
    assert shown(world, made).status is MaintenanceStatus.DONE
    world.simulated.operators.host_disabled("node-1", MARK + made.id)
    work_to(world, NOON + 7 * HOUR)
    assert states(world)["node-1"] == (True, None)
    assert states(world)["node-2"] == (False, "broken fan")
    assert world.store.maintenances.next_due() is None


def test_leases_that_have_started_are_listed_with_the_servers_of_their_hosts(engine):
    world = World(engine, hosts=2)
    lease = world.lease(a_host(), hours=8)
    world.run()
    (name,) = world.hosts_of(lease)
    world.simulated.users.boot_server("s", project_id=PROJECT, user_id="curie", host=name)
    made = opened(world, name)
    assert outcomes(made) == {lease.id: Outcome.ACTIVE}
    work_to(world, NOON + HOUR)
    assert [(host.name, host.servers) for host in shown(world, made).hosts] == [(name, 1)]
    assert world.hosts_of(lease) == {name}


def told_of_windows(world) -> list[tuple[str, str]]:
    """What the bus was told; that leases keep their hosts also stands in their histories, as often."""
    told = [(kind, each.id) for kind, each in world.notifier.told if kind in ("lease.moved", "lease.maintenance")]
    noted = [entry.about.id for entry in announced(world)]
    assert sorted(noted) == sorted({id_ for kind, id_ in told if kind == "lease.maintenance"})
    return told


def announced(world) -> tuple[NumberedEntry, ...]:
    world.manager.journal_numbering.run_once()
    return world.store.journal.page(JournalQuestion(Page(100, "position"), verb=Verb.MAINTENANCE)).items


def test_the_owner_of_a_lease_in_use_is_told_once_whatever_is_changed_of_the_window(engine):
    world = World(engine, hosts=2)
    lease = world.lease(a_host(), hours=8)
    world.run()
    made = opened(world, *world.hosts_of(lease), disable_service=True)
    assert told_of_windows(world) == [("lease.maintenance", lease.id)]
    assert [each.told_at for each in made.leases] == [NOON]
    world.manager.maintenances.change(made.id, MaintenanceChange(end=NOON + 6 * HOUR))
    work_to(world, NOON + 2 * HOUR)
    world.manager.maintenances.change(made.id, MaintenanceChange(end=NOON + 48 * HOUR))
    work_to(world, NOON + 26 * HOUR)
    assert shown(world, made).status is MaintenanceStatus.ACTIVE
    assert told_of_windows(world) == [("lease.maintenance", lease.id)]


def test_a_history_says_for_when_maintenance_is_planned_and_not_what_for(engine):
    world = World(engine, hosts=2)
    lease = world.lease(a_host(), hours=8)
    world.run()
    opened(world, *world.hosts_of(lease), reason="a secret of ours")
    (entry,) = announced(world)
    now = world.store.leases.one(lease.id)
    assert (entry.about.id, entry.about.revision, entry.past.by) == (lease.id, now.revision, None)
    assert entry.past.reason == "active"
    assert entry.past.changes == (
        FieldChange("maintenance_start_date", None, zulu(NOON + HOUR)),
        FieldChange("maintenance_end_date", None, zulu(NOON + 5 * HOUR)),
    )
    assert "secret" not in str(entry)
    created = world.store.journal.page(JournalQuestion(Page(9, "position"), verb=Verb.CREATED)).items[-1]
    assert FieldChange("hosts", None, *world.hosts_of(lease)) in created.past.changes, "the window says over which"
    world.change(lease, name="other")
    told = world.store.history.page(lease.id, Page(10, "at")).items
    assert [(each.id, str(each.verb)) for each in told] == [
        ("1", "created"),
        ("2", "started"),
        ("3", "maintenance"),
        ("4", "changed"),
    ]
    first = world.store.history.page(lease.id, Page(2, "at"))
    rest = world.store.history.page(lease.id, Page(2, "at", after=first.following))
    assert first.items + rest.items == told


def test_leases_stay_if_the_operator_wants_that_and_their_owners_are_told_once(engine):
    world = World(engine, hosts=2)
    lease = world.lease(a_host(), start=2 * HOUR, hours=40)
    before = world.hosts_of(lease)
    made = opened(world, *before, end=30 * HOUR, pending=PendingPolicy.LEAVE)
    assert outcomes(made) == {lease.id: Outcome.STAYS}
    assert world.hosts_of(lease) == before
    assert [each.told_at for each in made.leases] == [NOON]
    # When it has started it is planned as one in use: the same to its owner.
    work_to(world, NOON + 3 * HOUR)
    world.manager.maintenances.change(made.id, MaintenanceChange(end=NOON + 31 * HOUR))
    work_to(world, NOON + 30 * HOUR)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.ACTIVE}
    assert told_of_windows(world) == [("lease.maintenance", lease.id)]


def test_who_was_told_that_nothing_is_free_is_not_told_again_when_the_lease_starts(engine):
    world = World(engine, hosts=1)
    lease = world.lease(a_host(), start=2 * HOUR, hours=48)
    made = opened(world, "node-1", end=40 * HOUR)
    assert outcomes(made) == {lease.id: Outcome.NEEDS_OTHER_TIME}
    work_to(world, NOON + 30 * HOUR)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.ACTIVE}
    assert told_of_windows(world) == [("lease.maintenance", lease.id)]


def test_who_has_gone_before_the_message_is_not_told(engine):
    world = World(engine, hosts=2)
    deleted, moved = (world.lease(a_host(), start=2 * HOUR) for _ in range(2))
    request = asked(world, "node-1", "node-2", pending=PendingPolicy.LEAVE)
    world.manager.maintenances.create(request)
    world.manager.leases.delete(deleted.id)
    world.change(moved, start=NOON + 20 * HOUR, end=NOON + 22 * HOUR)
    work(world)
    assert told_of_windows(world) == []


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_owners_of_leases_that_stay_are_told_though_managers_die(new_world, phase):
    for step in range(1, 40):
        world = new_world(hosts=2)
        leases = [world.lease(a_host(), start=start, hours=8) for start in (timedelta(0), 2 * HOUR)]
        world.run()
        made = world.manager.maintenances.create(asked(world, "node-1", "node-2")).maintenance
        died = dies_and_is_followed(world, step, phase)
        told = Counter(told_of_windows(world))
        assert set(told) == {("lease.maintenance", lease.id) for lease in leases}
        # A message whose note was lost is repeated.
        assert sum(told.values()) - len(leases) in ((0, 1) if died else (0,))
        assert all(each.told_at for each in shown(world, made).leases)
        if not died:
            return
    raise AssertionError("it never came to its end")


def test_another_lease_makes_room_if_nothing_else_is_free(engine):
    world = World(engine, hosts=3)
    bound = world.lease(a_host(needs='["in", "$hypervisor_hostname", "node-1", "node-2"]'), start=2 * HOUR)
    (name,) = world.hosts_of(bound)
    (way,) = {"node-1", "node-2"} - {name}
    other = world.lease(a_host(needs=f'["in", "$hypervisor_hostname", "{way}"]'), start=2 * HOUR)
    assert world.hosts_of(other) == {way}
    world.resize(other, resource_properties=f'["in", "$hypervisor_hostname", "{way}", "node-3"]')
    assert world.hosts_of(other) == {way}
    made = opened(world, name)
    assert outcomes(made) == {bound.id: Outcome.MOVED, other.id: Outcome.MOVED}
    assert {each.lease_id: each.makes_room for each in made.leases} == {bound.id: False, other.id: True}
    assert (world.hosts_of(bound), world.hosts_of(other)) == ({way}, {"node-3"})
    check_promises(world.store, since=NOON)


def test_instances_move_too_and_only_those_on_the_host(engine):
    world = World(engine, hosts=3)
    lease = world.lease(instances(2, affinity=False), start=2 * HOUR)
    before = world.hosts_of(lease)
    name = min(before)
    made = opened(world, name)
    assert outcomes(made) == {lease.id: Outcome.MOVED}
    assert world.hosts_of(lease) == {"node-1", "node-2", "node-3"} - {name}


def test_an_impact_that_has_changed_refuses_with_that_of_now(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(lease)
    impact = world.manager.maintenances.create(asked(world, name), dry_run=True).impact
    assert world.manager.maintenances.create(asked(world, name), dry_run=True).impact == impact
    (target,) = (move.target for each in impact.leases for move in each.moves)
    taken = next(host.name for host in world.manager.resources.all(HOST) if host.external_id == target)
    world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{taken}"]'), start=2 * HOUR)
    with pytest.raises(Conflict) as error:
        world.manager.maintenances.create(asked(world, name, impact_id=impact.id))
    assert error.value.code == "impact_changed"
    now = error.value.data["impact"]
    assert now["leases"][0]["moves"][0]["to_host"] != target
    assert opened(world, name, impact_id=now["id"]).status is MaintenanceStatus.PLANNED


def test_overlapping_windows_are_one_until_the_last_ends(engine):
    world = World(engine, hosts=2)
    first = opened(world, "node-1", disable_service=True)
    second = opened(world, "node-1", start=3 * HOUR, end=7 * HOUR, disable_service=True)
    work_to(world, NOON + 3 * HOUR)
    assert states(world)["node-1"] == (False, MARK + first.id)
    work_to(world, NOON + 5 * HOUR)
    assert (shown(world, first).status, shown(world, second).status) == ("DONE", "ACTIVE")
    assert states(world)["node-1"] == (False, MARK + second.id)
    work_to(world, NOON + 7 * HOUR)
    assert states(world)["node-1"] == (True, None)


def test_a_window_ends_before_its_time_and_is_free_from_then_on(engine):
    world = World(engine, hosts=1)
    made = opened(world, "node-1", disable_service=True)
    with pytest.raises(WrongState, match="delete it instead"):
        world.manager.maintenances.end(made.id)
    work_to(world, NOON + 2 * HOUR)
    ended = world.manager.maintenances.end(made.id)
    assert (ended.status, ended.window.end) == (MaintenanceStatus.ENDING, NOON + 2 * HOUR)
    assert world.lease(a_host()).status is LeaseStatus.PENDING
    work(world)
    assert (shown(world, made).status, states(world)["node-1"]) == (MaintenanceStatus.DONE, (True, None))
    assert world.manager.maintenances.end(made.id).status is MaintenanceStatus.DONE
    with pytest.raises(WrongState):
        world.manager.maintenances.delete(made.id)


def test_a_window_that_is_deleted_was_never_there(engine):
    world = World(engine, hosts=1)
    made = opened(world, "node-1")
    with pytest.raises(PreconditionFailed):
        world.manager.maintenances.delete(made.id, (made.revision + 7,))
    world.manager.maintenances.delete(made.id)
    world.manager.maintenances.delete(made.id)
    assert world.lease(a_host(), start=2 * HOUR).status is LeaseStatus.PENDING
    work_to(world, NOON + 6 * HOUR)
    assert shown(world, made).status is MaintenanceStatus.CANCELLED
    with pytest.raises(WrongState):
        world.manager.maintenances.end(made.id)


@pytest.mark.parametrize(("start", "end"), [(HOUR, 3 * HOUR), (0 * HOUR, 9 * HOUR), (3 * HOUR, 9 * HOUR)])
def test_no_lease_is_in_the_way_of_a_window_that_is_deleted(engine, start, end):
    world = World(engine, hosts=1)
    made = opened(world, "node-1", start=2 * HOUR, end=4 * HOUR)
    world.manager.maintenances.delete(made.id)
    assert world.lease(a_host(), start=start, end=NOON + end).status is LeaseStatus.PENDING


def test_another_time_is_planned_again_and_shown_before(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(), start=6 * HOUR)
    before = world.hosts_of(lease)
    made = opened(world, *before)
    assert made.leases == ()
    longer = MaintenanceChange(end=NOON + 7 * HOUR)
    impact = world.manager.maintenances.change(made.id, longer, dry_run=True).impact
    assert outcomes(impact) == {lease.id: Outcome.MOVED}
    assert world.hosts_of(lease) == before
    world.manager.maintenances.change(made.id, longer)
    work(world)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MOVED}
    assert world.hosts_of(lease) != before
    world.manager.maintenances.change(made.id, MaintenanceChange(start=NOON + 8 * HOUR, end=Duration(seconds=3600)))
    after = shown(world, made)
    assert (after.window.start, after.window.end) == (NOON + 8 * HOUR, NOON + 9 * HOUR)
    assert outcomes(after) == {lease.id: Outcome.MOVED}, "where it has been moved stays on record"
    work_to(world, NOON + 8 * HOUR)
    with pytest.raises(WrongState, match="its start has passed"):
        world.manager.maintenances.change(made.id, MaintenanceChange(start=NOW))
    world.manager.maintenances.change(made.id, MaintenanceChange(end=NOON + 10 * HOUR))
    work_to(world, NOON + 9.5 * HOUR)
    assert shown(world, made).status is MaintenanceStatus.ACTIVE
    work_to(world, NOON + 10 * HOUR)
    assert shown(world, made).status is MaintenanceStatus.DONE


@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", ["between two leases", "within one"])
@pytest.mark.parametrize("change", ["deleted", "shortened"])
def test_a_window_that_is_changed_while_leases_are_moved_moves_no_more(engine, change, moment):
    world = World(engine, hosts=4)
    leases = [world.lease(a_host(), start=2 * HOUR) for _ in range(2)]
    names = frozenset().union(*map(world.hosts_of, leases))
    made = world.manager.maintenances.create(asked(world, *names)).maintenance
    left = [2]

    def around(name, operation, *arguments, **more):
        if name == ("maintenances.check_claim" if moment == "between two leases" else "bookings.commit"):
            left[0] -= 1
            if left[0] == 0 and change == "deleted":
                world.manager.maintenances.delete(made.id)
            elif left[0] == 0:
                world.manager.maintenances.change(made.id, MaintenanceChange(end=NOON + 1.5 * HOUR))
        return operation(*arguments, **more)

    work(world, world.another_manager(store=ObservedStore(world.store, around)))
    work(world)
    moved = {lease.id for lease in leases if not world.hosts_of(lease) & names}
    # One that is being moved at this instant has a place in a deleted window, and its owner is told.
    assert len(moved) == (2 if (change, moment) == ("deleted", "within one") else 1)
    assert {lease.id for kind, lease in world.notifier.told if kind == "lease.moved"} == moved
    check_promises(world.store, since=NOON)


def test_what_found_nothing_free_is_moved_when_something_is_and_its_owner_told_a_day_later(engine):
    world = World(engine, hosts=2)
    first = world.lease(a_host(), start=48 * HOUR)
    second = world.lease(a_host(), start=48 * HOUR)
    (name,) = world.hosts_of(first)
    made = opened(world, name, start=48 * HOUR, end=50 * HOUR)
    assert outcomes(made) == {first.id: Outcome.NEEDS_OTHER_TIME}
    world.manager.leases.delete(second.id)
    world.run()
    work_to(world, NOON + 2 * HOUR)
    assert outcomes(shown(world, made)) == {first.id: Outcome.MOVED}
    assert world.hosts_of(first) != {name}
    assert world.notifier.types.count("lease.moved") == 0
    work_to(world, NOON + 25 * HOUR)
    assert (world.notifier.types.count("lease.maintenance"), world.notifier.types.count("lease.moved")) == (1, 1)


@pytest.mark.slow
def test_the_leases_of_a_window_are_shown_as_they_are_now(engine):
    world = World(engine, hosts=4)
    names = ("node-1", "node-2", "node-3", "node-4")
    made = [world.lease(a_host(), start=48 * HOUR) for _ in names]
    deleted, later, kept, swapped = sorted(made, key=lambda lease: min(world.hosts_of(lease)))
    window = opened(world, *names, start=48 * HOUR, end=50 * HOUR, pending=PendingPolicy.LEAVE)
    assert outcomes(window) == {lease.id: Outcome.STAYS for lease in made}
    world.manager.leases.delete(deleted.id)
    world.change(later, start=NOON + 60 * HOUR, end=NOON + 62 * HOUR)
    other = opened(world, *world.hosts_of(kept), start=49 * HOUR, end=55 * HOUR, pending=PendingPolicy.LEAVE)
    world.change(kept, end=NOON + 49 * HOUR)
    assert outcomes(shown(world, window)) == {kept.id: Outcome.STAYS, swapped.id: Outcome.STAYS}
    assert outcomes(shown(world, other)) == {}
    work_to(world, NOON + 48.5 * HOUR)
    assert outcomes(shown(world, window)) == {kept.id: Outcome.ACTIVE, swapped.id: Outcome.ACTIVE}
    work_to(world, NOON + 49.5 * HOUR)
    assert outcomes(shown(world, window)) == {swapped.id: Outcome.ACTIVE}
    work_to(world, NOON + 52 * HOUR)
    # What had a host while it was in maintenance stays on record.
    over = shown(world, window)
    assert {each.lease_id: each.status for each in over.leases} == dict.fromkeys((kept.id, swapped.id), "TERMINATED")
    assert outcomes(over) == {kept.id: Outcome.STAYS, swapped.id: Outcome.STAYS}


@pytest.mark.slow
def test_a_lease_that_has_given_up_its_host_is_not_shown_with_it(engine):
    world = World(engine, hosts=4)
    lease = world.lease(a_host(2), start=2 * HOUR)
    first, second = sorted(world.hosts_of(lease))
    made = opened(world, first, second, pending=PendingPolicy.LEAVE)
    for host, left in ((first, (id_of(world, second),)), (second, ())):
        swap = SwapRequest(lease.reservations[0].id, host)
        world.manager.surgery.swap(lease.id, swap, Terms(Actor("root", "admin", operator=True)))
        assert [each.hosts for each in shown(world, made).leases] == ([left] if left else [])


def test_what_found_nothing_free_is_tried_again_as_soon_as_something_has_changed(engine):
    world = World(engine, hosts=3)
    # Two of the three hosts are in maintenance, and the third is another lease's.
    lease = world.lease(a_host(2), start=48 * HOUR)
    other = world.lease(a_host(), start=48 * HOUR)
    made = opened(world, *world.hosts_of(lease), start=48 * HOUR, end=50 * HOUR)
    assert outcomes(made) == {lease.id: Outcome.NEEDS_OTHER_TIME}
    world.clock.by(seconds=40)
    work(world)
    with counted(engine) as statements:
        assert world.manager.maintenance_work.run_once() == 0
    assert statements.count == 2, "what is to be done, and whether the calendar has changed"
    world.manager.leases.delete(other.id)
    world.run()
    work(world)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.PARTLY_MOVED}
    world.clock.by(seconds=40)
    world.resize(lease, min=1, max=1)
    work(world)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MOVED}
    assert [world.manager.maintenance_work.run_once() for _ in range(2)] == [0, 0]


@pytest.mark.slow
def test_it_is_tried_again_when_a_lease_is_gone_whose_deletion_took_long(engine):
    world = World(engine, hosts=2)
    going = world.lease(a_host(), hours=60)
    world.run()
    (host,) = world.hosts_of(going)
    world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)
    lease = world.lease(a_host(), start=48 * HOUR)
    made = opened(world, *world.hosts_of(lease), start=48 * HOUR, end=50 * HOUR)
    world.faults.fail_before("begin_server_deletion", CloudUnavailable("Nova does not answer"), times=100)
    world.manager.leases.delete(going.id)
    for _ in range(3):
        world.clock.by(seconds=40)
        world.run()
        work(world)
    assert world.now(going).deleted_at is None
    assert outcomes(shown(world, made)) == {lease.id: Outcome.NEEDS_OTHER_TIME}
    world.faults.clear()
    for _ in range(3):
        world.clock.by(seconds=40)
        world.run()
    work(world)
    assert world.now(going).deleted_at is not None
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MOVED}


def test_a_busy_calendar_has_leases_tried_again_only_now_and_then(engine):
    world = World(engine, hosts=2)
    lease = world.lease(a_host(), start=48 * HOUR)
    world.lease(a_host(), start=48 * HOUR)
    made = opened(world, *world.hosts_of(lease), start=48 * HOUR, end=50 * HOUR)
    worked = 0
    for number in range(30):
        world.clock.by(seconds=4)
        world.change(lease, name=f"n{number}")
        worked += world.manager.maintenance_work.run_once()
    assert outcomes(shown(world, made)) == {lease.id: Outcome.NEEDS_OTHER_TIME}
    assert 3 <= worked <= 5


def test_requests_that_make_no_sense_are_refused(engine):
    world = World(engine, hosts=1)
    create = world.manager.maintenances.create
    with pytest.raises(InvalidInput, match="hosts has 4711, which is not registered"):
        create(MaintenanceRequest("m", NOW, NOON + HOUR, hosts=("4711",)))
    with pytest.raises(InvalidInput, match="met by no registered host"):
        create(MaintenanceRequest("m", NOW, NOON + HOUR, requirement='["==", "$hypervisor_hostname", "x"]'))
    with pytest.raises(InvalidInput, match="no host has as a property"):
        create(MaintenanceRequest("m", NOW, NOON + HOUR, requirement='["==", "$rack", "x"]'))
    with pytest.raises(InvalidInput, match="requirement is empty"):
        create(MaintenanceRequest("m", NOW, NOON + HOUR, requirement="[]"))
    with pytest.raises(InvalidInput, match="has passed"):
        create(asked(world, "node-1", start=-HOUR))
    with pytest.raises(InvalidInput, match="not after start_date"):
        create(asked(world, "node-1", end=HOUR))
    with pytest.raises(InvalidInput, match="more than 366 days"):
        create(asked(world, "node-1", end=9000 * HOUR))
    with pytest.raises(NotFound, match="see the list"):
        world.manager.maintenances.one("nothing")
    by_requirement = MaintenanceRequest("m", NOW, NOON + HOUR, requirement='["==", "$hypervisor_hostname", "node-1"]')
    assert [host.name for host in create(by_requirement).maintenance.hosts] == ["node-1"]


def test_statements_grow_with_neither_leases_nor_hosts(engine):
    def cost(hosts: int, leases: int, world: World) -> tuple[int, int]:
        made = [world.lease(a_host(), start=(2 + number) * HOUR, hours=1) for number in range(leases)]
        used = sorted(frozenset().union(*map(world.hosts_of, made)))
        names = [*used[:1], *sorted({f"node-{number}" for number in range(1, 7)} - set(used[:1]))][:hosts]
        request = asked(world, *names, end=40 * HOUR)
        world.manager.maintenances.create(request, dry_run=True)
        with counted(engine) as plan:
            world.manager.maintenances.create(request, dry_run=True)
        with counted(engine) as whole:
            window = world.manager.maintenances.create(request).maintenance
        assert Outcome.MOVED in outcomes(window).values()
        world.manager.maintenances.delete(window.id)
        return plan.count, whole.count

    world = World(engine, hosts=6)
    few = cost(1, 2, world)
    assert cost(4, 12, world) == few
    assert few[0] <= 8


def test_one_manager_works_on_a_window_at_a_time(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(), start=2 * HOUR)
    (name,) = world.hosts_of(lease)
    made = world.manager.maintenances.create(asked(world, name)).maintenance
    (due,) = world.store.maintenances.due(world.clock.now())
    assert world.store.maintenances.claim(due, "one", until=world.clock.now() + timedelta(seconds=30))
    assert not world.store.maintenances.claim(due, "two", until=world.clock.now() + timedelta(seconds=30))
    assert world.manager.maintenance_work.run_once() == 0
    renewed = world.store.claims.renew_claims(
        {"one", "lost"}, now=world.clock.now(), until=world.clock.now() + timedelta(seconds=60)
    )
    assert renewed == {"one"}
    world.clock.by(seconds=61)
    work(world)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MOVED}


def killing(world, step: int, phase: str):
    """Return a manager that dies before or after the so-manieth operation on the database."""
    left = [step]

    def around(name, operation, *arguments, **more):
        if name in ("claims.renew_claims", "calendar.view_window", "maintenances.open_planning"):
            return operation(*arguments, **more)
        left[0] -= 1
        if left[0] < 0 or (left[0] == 0 and phase == "before"):
            raise Killed
        result = operation(*arguments, **more)
        if left[0] == 0:
            raise Killed
        return result

    return world.another_manager(store=ObservedStore(world.store, around)), left


def dies_and_is_followed(world, step: int, phase: str) -> bool:
    """Have a manager work until it dies, and another one after it; return whether the first has died."""
    dying, left = killing(world, step, phase)
    with suppress(Killed):
        dying.maintenance_work.run_once()
    world.clock.by(seconds=45)
    work(world)
    return left[0] <= 0


@pytest.mark.parametrize("phase", [pytest.param("before", marks=pytest.mark.slow), "after"])
@pytest.mark.parametrize("moment", ["moves", *(pytest.param(at, marks=pytest.mark.slow) for at in ("start", "end"))])
def test_a_manager_that_dies_at_any_write_leaves_what_another_finishes(new_world, moment, phase):
    for step in range(1, 60):
        world = new_world(hosts=4)
        leases = [world.lease(a_host(), start=2 * HOUR, name=f"l{number}") for number in range(2)]
        names = sorted(frozenset().union(*map(world.hosts_of, leases)))
        made = world.manager.maintenances.create(asked(world, *names, disable_service=True)).maintenance
        if moment != "moves":
            work(world)
            work_to(world, NOON + HOUR - timedelta(minutes=1))
        if moment == "end":
            work_to(world, NOON + 5 * HOUR - timedelta(minutes=1))
        if moment != "moves":
            world.clock.by(seconds=60)
        died = dies_and_is_followed(world, step, phase)
        assert outcomes(shown(world, made)) == {lease.id: Outcome.MOVED for lease in leases}
        assert not set(names) & frozenset().union(*map(world.hosts_of, leases))
        told = Counter(lease.id for kind, lease in world.notifier.told if kind == "lease.moved")
        # A message whose note was lost is repeated.
        assert sum(told.values()) - len(leases) in ((0, 1) if moment == "moves" and died else (0,))
        work_to(world, NOON + 6 * HOUR)
        assert shown(world, made).status is MaintenanceStatus.DONE
        assert all(enabled for enabled, _ in states(world).values())
        check_promises(world.store, since=NOON)
        if not died:
            return
    raise AssertionError("it never came to its end")


@pytest.fixture
def new_world(tmp_path):
    """Return what makes worlds, each on a new database."""
    from tests.tables import new_sqlite

    count = iter(range(1_000))
    return lambda **more: World(new_sqlite(tmp_path / f"{next(count)}.sqlite"), **more)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("lease", "delete", "open", "change", "end", "cancel", "pass", "work", "fail", "mend")),
        st.integers(0, 5),
        st.integers(1, 6),
    ),
    min_size=3,
    max_size=18,
)


@given(STEPS)
@settings(max_examples=cases(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_nothing_is_promised_twice_and_hosts_come_back(new_world, steps):
    world = new_world(hosts=4)
    windows = []
    for what, number, length in steps:
        now = world.clock.now() - NOON
        with suppress(BlazarError, IndexError):
            if what == "lease":
                ask = a_host() if number % 2 else instances(number + 1)
                world.lease(ask, start=number * HOUR, hours=length)
            elif what == "delete":
                world.manager.leases.delete(world.store.leases.of_project(None)[number].id)
            elif what == "open":
                names = {f"node-{1 + number % 4}", f"node-{1 + length % 4}"}
                begin = now + timedelta(hours=number)
                request = asked(world, *names, start=begin, end=begin + length * HOUR, disable_service=bool(number % 2))
                windows.append(world.manager.maintenances.create(request).maintenance)
            elif what == "change":
                end = MaintenanceChange(end=world.clock.now() + length * HOUR)
                world.manager.maintenances.change(windows[number].id, end)
            elif what == "end":
                world.manager.maintenances.end(windows[number].id)
            elif what == "cancel":
                world.manager.maintenances.delete(windows[number].id)
            elif what == "pass":
                work_to(world, world.clock.now() + length * HOUR / 2)
            elif what == "work":
                world.manager.maintenance_work.run_once()
            elif what == "fail":
                world.simulated.operators.host_down(f"node-{1 + number % 4}")
                world.manager.monitor.run_once()
            elif what == "mend":
                world.simulated.operators.host_up(f"node-{1 + number % 4}")
                world.manager.monitor.run_once()
    for number in range(1, 5):
        world.simulated.operators.host_up(f"node-{number}")
    check_promises(world.store, since=world.clock.now())
    work_to(world, world.clock.now() + 48 * HOUR)
    check_promises(world.store, since=world.clock.now())
    assert {shown(world, each).status for each in windows} <= {MaintenanceStatus.DONE, MaintenanceStatus.CANCELLED}
    assert all(state == (True, None) for state in states(world).values())
    told = Counter((kind, each.id, each.revision) for kind, each in world.notifier.told if kind == "lease.moved")
    assert all(count == 1 for count in told.values())
