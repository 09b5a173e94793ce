# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it, end to end: what nobody uses is released, and nothing that is in doubt."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.clock import zulu
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput
from blazar.model.base.paging import Page
from blazar.model.journal.entries import Verb
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.use.policy import Usage, UseMode, UsePolicies, UsePolicy, UseStep
from tests.manager.events.test_crashes import dies, nothing_is_left
from tests.observed import Killed, ObservedStore
from tests.world import NOON, PROJECT, World, a_host, things

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
ON = UsePolicy(UseMode.ON)
IDLE = replace(ON, idle_after=timedelta(hours=6))
WARNING, RELEASE = NOON + 6 * HOUR, NOON + 9 * HOUR
LONG = 48


def settings(policy: UsePolicy = ON, **more) -> Settings:
    return Settings(claim_ttl=timedelta(seconds=30), use_policies=UsePolicies(policy, **more))


@pytest.fixture
def on(a_world) -> World:
    return a_world(settings=settings())


def started(world: World, *reservations, **more) -> Lease:
    lease = world.lease(*reservations, **{"hours": LONG, **more})
    world.run()
    return world.now(lease)


def boot(world: World, lease: Lease, status: str = "ACTIVE", project: str = PROJECT):
    (host,) = world.hosts_of(lease)
    return world.simulated.users.boot_server("work", project_id=project, user_id="u", host=host, status=status)


def told(world: World) -> list[str]:
    return [name for name in world.notifier.types if "unused" in name]


def steps(world: World, lease: Lease) -> list[UseStep]:
    event = world.now(lease).event(EventType.USAGE_CHECK)
    return [look.step for look in event.saved_state.watch.looks if look.step is not UseStep.NOTHING]


def is_released(world: World, lease: Lease) -> bool:
    return world.now(lease).end_reason is EndReason.UNUSED


def test_what_nobody_uses_is_warned_of_and_released(on):
    lease = started(on)
    assert on.now(lease).use.usage is Usage.UNKNOWN
    on.run_to(WARNING)
    use = on.now(lease).use
    assert (use.usage, use.release_at, told(on)) == (Usage.UNUSED, RELEASE, ["lease.unused.warning"])
    # What it does before its end may come a moment before that.
    on.run_to(RELEASE + SECOND)
    over = on.now(lease)
    assert (over.status, over.end_reason) == (LeaseStatus.TERMINATED, EndReason.UNUSED)
    assert (over.window.end, over.event(EventType.END).time) == (RELEASE, RELEASE)
    assert told(on) == ["lease.unused.warning"] * 2 + ["lease.unused.released"]
    assert steps(on, lease) == [UseStep.WARNED, UseStep.NOTICED, UseStep.RELEASED]
    assert on.store.events.next_due() is None
    nothing_is_left(on)
    # Others can have it at once.
    assert started(on, a_host(3)).status is LeaseStatus.ACTIVE


def test_the_history_tells_a_release_once_and_why(on):
    lease = started(on)
    on.run_to(RELEASE + SECOND)
    *_, released, ended = on.store.history.page(lease.id, Page(100, "at")).items
    assert (released.verb, released.reason, released.by) == (Verb.RELEASED, "unused", None)
    assert [(each.field, each.after) for each in released.changes] == [("end_date", zulu(RELEASE))]
    assert (ended.verb, ended.by) == (Verb.ENDED, None)
    verbs = [each.verb for each in on.store.history.page(lease.id, Page(100, "at")).items]
    assert verbs == [Verb.CREATED, Verb.STARTED, Verb.UNUSED_WARNING, Verb.UNUSED_WARNING, Verb.RELEASED, Verb.ENDED]


def test_a_lease_with_a_server_is_never_released_and_looked_at_once(on):
    lease = started(on)
    boot(on, lease)
    on.run_to(WARNING)
    used = on.now(lease)
    assert (used.use.usage, used.use.used_at, used.use.release_at) == (Usage.USED, WARNING, None)
    on.run_to(NOON + 47 * HOUR)
    assert (on.now(lease).status, told(on)) == (LeaseStatus.ACTIVE, [])


def test_a_server_that_is_booted_in_the_last_minute_keeps_the_lease(on):
    lease = started(on)
    on.run_to(RELEASE - timedelta(seconds=1))
    boot(on, lease, status="BUILD")
    on.run_to(RELEASE + HOUR)
    assert (on.now(lease).status, on.now(lease).use.release_at) == (LeaseStatus.ACTIVE, None)


@pytest.mark.slow
@pytest.mark.parametrize("status", ["BUILD", "RESIZE", "MIGRATING", "PAUSED", "SUSPENDED", "RESCUE", "UNKNOWN"])
def test_no_state_of_a_server_but_stopped_ones_idles(a_world, status):
    world = a_world(settings=settings(IDLE))
    lease = started(world)
    boot(world, lease, status=status)
    world.run_to(NOON + 30 * HOUR)
    assert (world.now(lease).status, world.now(lease).use.usage) == (LeaseStatus.ACTIVE, Usage.USED)


@pytest.mark.parametrize(("policy", "released"), [(ON, False), (IDLE, True)])
def test_what_is_stopped_is_released_where_the_policy_names_idling(a_world, policy, released):
    world = a_world(settings=settings(policy))
    lease = started(world)
    boot(world, lease, status="SHUTOFF")
    world.run_to(NOON + 30 * HOUR)
    assert is_released(world, lease) is released


def test_servers_of_others_on_its_hosts_keep_it_too(on):
    lease = started(on)
    boot(on, lease, project="somebody-else")
    on.run_to(RELEASE + HOUR)
    assert on.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.slow
@pytest.mark.parametrize("call", ["servers_of_project", "servers_on"])
@pytest.mark.parametrize("error", [CloudUnavailable("down"), KeyError("name"), Conflict("strange")])
def test_what_the_cloud_does_not_say_releases_nothing(on, call, error):
    lease = started(on)
    on.faults.fail_before(call, error, times=10_000)
    on.run_to(NOON + 11 * HOUR)
    assert (on.now(lease).status, on.now(lease).use.usage) == (LeaseStatus.ACTIVE, Usage.UNKNOWN)
    assert told(on) == []


@pytest.mark.slow
def test_when_the_cloud_answers_again_the_owner_is_warned_first(on):
    lease = started(on)
    on.run_to(WARNING - MINUTE)
    on.faults.fail_before("servers_of_project", CloudUnavailable("down"), times=24)
    on.run_to(NOON + 10 * HOUR)
    assert on.now(lease).use.release_at == NOON + 13 * HOUR
    on.run_to(NOON + 13 * HOUR)
    assert is_released(on, lease)


def degrade(world: World, lease: Lease) -> None:
    (resource,) = (world.store.calendar.of_lease(lease.id)[0].resource_id,)
    world.store.resource_health.set_failed(HOST, {resource: "it is down"}, at=world.clock.now())


def extend(world: World, lease: Lease) -> None:
    world.change(lease, end=world.now(lease).window.end + HOUR)


@pytest.mark.parametrize("event", [degrade, extend])
def test_a_failed_host_or_a_change_within_the_last_hour_keeps_it(on, event):
    lease = started(on)
    on.run_to(RELEASE - 5 * MINUTE)
    event(on, lease)
    on.run_to(RELEASE + MINUTE)
    kept = on.now(lease)
    assert (kept.status, kept.use.release_at) == (LeaseStatus.ACTIVE, None)


def test_a_late_start_counts_from_when_it_was_there(on):
    on.faults.fail_before("add_host", CloudUnavailable("down"), times=8)
    lease = started(on)
    on.run_to(NOON + 30 * MINUTE)
    at = on.now(lease).event(EventType.USAGE_CHECK).saved_state.watch.since
    assert at > NOON
    on.run_to(WARNING)
    assert told(on) == []
    on.run_to(at + 9 * HOUR + MINUTE)
    assert is_released(on, lease)


def test_a_lease_that_ends_soon_is_left_alone(on):
    lease = started(on, hours=11)
    on.run_to(NOON + 11 * HOUR)
    assert (on.now(lease).end_reason, told(on)) == (EndReason.ENDED, [])
    assert on.store.events.next_due() is None


def test_leases_of_which_a_part_cannot_tell_are_not_looked_at(on):
    on.register_thing()
    lease = started(on, a_host(), things())
    assert (lease.use, lease.event(EventType.USAGE_CHECK)) == (None, None)


@pytest.mark.parametrize(
    "more", [{"exempt": frozenset({PROJECT})}, {"overrides": {("physical:host", ""): UsePolicy()}}]
)
def test_exempt_projects_and_types_that_are_off_are_not_looked_at(a_world, more):
    assert started(a_world(settings=settings(**more))).use is None


def test_a_change_that_begins_during_a_look_keeps_the_lease(on):
    lease = started(on)
    seen = []

    def extend_meanwhile(name: str, when: str) -> None:
        if name == "servers_of_project" and when == "before" and not seen:
            seen.append(name)
            extend(on, lease)

    on.run_to(RELEASE - MINUTE)
    on.faults.on_call = extend_meanwhile
    on.run_to(RELEASE + MINUTE)
    kept = on.now(lease)
    assert (seen, kept.status, kept.use.release_at) == (["servers_of_project"], LeaseStatus.ACTIVE, None)
    assert kept.event(EventType.USAGE_CHECK).due_at > RELEASE


def test_turned_off_it_releases_nothing_that_it_has_warned_of(on):
    lease = started(on)
    on.run_to(RELEASE - MINUTE)
    on.settings = replace(on.settings, use_policies=UsePolicies())
    on.manager = on.another_manager()
    on.run_to(NOON + 47 * HOUR)
    assert (on.now(lease).status, on.now(lease).use) == (LeaseStatus.ACTIVE, None)


def test_a_dry_run_releases_nothing_tells_nobody_and_reports(a_world):
    world = a_world(settings=settings(replace(ON, mode=UseMode.DRY_RUN)))
    lease = started(world)
    world.run_to(RELEASE + 2 * HOUR)
    dry = world.now(lease)
    assert (dry.status, dry.use.release_at, told(world)) == (LeaseStatus.ACTIVE, None, [])
    (report,) = world.store.unused.load_report()
    assert (report.id, report.mode, report.would_have_released_at) == (lease.id, UseMode.DRY_RUN, RELEASE)
    assert not report.used_later
    boot(world, lease)
    world.run_to(RELEASE + 4 * HOUR)
    assert world.store.unused.load_report()[0].used_later


def test_an_owner_keeps_it_once(on):
    lease = started(on)
    with pytest.raises(Conflict, match="nothing to keep it from"):
        on.manager.leases.keep(lease.id)
    on.run_to(RELEASE - MINUTE)
    kept = on.manager.leases.keep(lease.id).lease
    assert kept.use.release_at is None
    on.run_to(RELEASE - MINUTE + 6 * HOUR)
    with pytest.raises(Conflict, match="kept once already"):
        on.manager.leases.keep(lease.id)
    on.run_to(RELEASE - MINUTE + 9 * HOUR + MINUTE)
    assert is_released(on, lease)


def test_an_operator_holds_it_for_good(on):
    lease = started(on)
    on.run_to(RELEASE - MINUTE)
    on.manager.leases.hold(lease.id, held=True)
    on.run_to(NOON + 30 * HOUR)
    assert on.now(lease).status is LeaseStatus.ACTIVE
    on.manager.leases.hold(lease.id, held=False)
    on.run_to(NOON + 45 * HOUR)
    assert is_released(on, lease)


@pytest.mark.slow
def test_when_a_fifth_of_all_would_go_at_once_nothing_goes(a_world):
    world = a_world(hosts=6, settings=settings())
    leases = [started(world, name=f"l{number}") for number in range(6)]
    world.run_to(RELEASE + 5 * HOUR)
    assert [world.now(lease).status for lease in leases] == [LeaseStatus.ACTIVE] * 6
    assert all(UseStep.HELD_BACK in steps(world, lease) for lease in leases)
    for lease in leases[:3]:
        boot(world, lease)
    world.run_to(RELEASE + 9 * HOUR)
    assert [is_released(world, lease) for lease in leases] == [False] * 3 + [True] * 3


def test_looks_change_nothing_that_users_see_of_the_last_change(on):
    lease = started(on)
    before = on.now(lease).updated_at
    on.run_to(WARNING + MINUTE)
    assert on.now(lease).updated_at == before
    assert all(event.event_type != EventType.USAGE_CHECK for event in on.manager.leases.details(lease.id).lease.events)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_call_of_a_look_or_a_release_another_finishes_it(on, phase):
    for step in itertools.count(1):
        lease = started(on, name=f"{phase} {step}")
        release = on.clock.now() + 9 * HOUR
        on.run_to(release - MINUTE)
        died = dies(on, lambda at=release: on.run_to(at), step, phase)
        on.run_to(release + HOUR)
        assert (on.now(lease).status, on.now(lease).end_reason) == (LeaseStatus.TERMINATED, EndReason.UNUSED), step
        nothing_is_left(on)
        if not died:
            assert step > 2
            return


def test_a_manager_killed_around_the_write_of_a_look_another_looks_again(on):
    for before in (True, False):
        lease = started(on, name=f"killed {before}")
        on.run_to(on.clock.now() + 9 * HOUR - MINUTE)
        count = itertools.count()

        def dying(name, call, *given, before=before, count=count, **more):
            last = name == "leases.save" and next(count) == 1
            if last and before:
                raise Killed
            answer = call(*given, **more)
            if last:
                raise Killed
            return answer

        on.manager = on.another_manager(store=ObservedStore(on.store, dying))
        with pytest.raises(Killed):
            on.run_to(on.clock.now() + MINUTE)
        on.manager = on.another_manager()
        on.run_to(on.clock.now() + HOUR)
        assert is_released(on, lease)
        nothing_is_left(on)


def test_it_is_deleted_as_ever_while_it_is_looked_at(on):
    lease = started(on)

    def delete(name: str, when: str) -> None:
        if name == "servers_of_project" and when == "before":
            on.faults.on_call = None
            on.manager.leases.delete(lease.id)

    on.run_to(RELEASE - MINUTE)
    on.faults.on_call = delete
    on.run_to(RELEASE + MINUTE)
    gone = on.now(lease)
    assert (gone.deleted_at is not None, gone.end_reason) == (True, EndReason.DELETED)
    assert on.store.events.next_due() is None


def end(world: World, lease: Lease) -> None:
    world.change(lease, end=WARNING + SECOND)
    world.clock.to(WARNING + SECOND)
    world.run()


def delete(world: World, lease: Lease) -> None:
    world.manager.leases.delete(lease.id)


ENDS = pytest.mark.parametrize(("stop", "reason"), [(end, EndReason.ENDED), (delete, EndReason.DELETED)])


@ENDS
def test_it_ends_as_ever_while_another_manager_looks_at_it(on, stop, reason):
    lease = started(on)
    on.run_to(WARNING - MINUTE)
    other, on.manager = on.manager, on.another_manager()

    def stop_meanwhile(name: str, when: str) -> None:
        if name == "servers_of_project" and when == "before":
            on.faults.on_call = None
            stop(on, lease)
            nothing_is_left(on)

    (look,) = on.store.events.due(WARNING, 9)
    on.clock.to(WARNING)
    on.faults.on_call = stop_meanwhile
    other.engine.worker.process(look.lease_id, look.event_id)
    assert on.faults.on_call is None
    assert (on.now(lease).end_reason, on.store.events.next_due(), told(on)) == (reason, None, [])


@ENDS
def test_it_ends_as_ever_though_a_manager_died_when_it_looked_at_it(on, stop, reason):
    lease = started(on)
    on.run_to(WARNING - MINUTE)
    assert dies(on, lambda: on.run_to(WARNING), 1, "before")
    stop(on, lease)
    nothing_is_left(on)
    assert (on.now(lease).end_reason, on.store.events.next_due(), told(on)) == (reason, None, [])


def test_the_event_of_a_lease_that_was_released_is_done(on):
    lease = started(on)
    on.run_to(RELEASE + SECOND)
    event = on.now(lease).event(EventType.USAGE_CHECK)
    assert (event.status, event.due_at, event.claimed_by) == (EventStatus.DONE, None, None)


def test_work_is_saved_before_what_idles_is_released(a_world):
    world = a_world(settings=settings(IDLE))
    lease = started(world, a_host(before_end="snapshot"))
    boot(world, lease, status="SHUTOFF")
    world.run_to(NOON + 30 * HOUR)
    assert is_released(world, lease)
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.DONE
    images = world.simulated.cloud.compute.images_of_reservation(lease.reservations[0].id)
    assert [image.status for image in images] == ["active"]
    assert world.simulated.operators.list_servers() == ()


def test_what_is_being_released_cannot_be_prolonged_any_more(a_world):
    world = a_world(settings=settings(IDLE))
    lease = started(world, a_host(before_end="snapshot"))
    boot(world, lease, status="SHUTOFF")
    world.faults.fail_before("begin_snapshot", CloudUnavailable("glance is away"), times=1000)
    while not is_released(world, lease):
        world.run_to(world.clock.now() + 15 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    with pytest.raises(InvalidInput, match="is being released because nobody used it") as refused:
        world.change(lease, end=NOON + 99 * HOUR)
    assert refused.value.code == "lease_ended"
    assert world.change(lease, name="was mine").name == "was mine"
    world.faults.clear()
    world.run_to(world.clock.now() + 10 * HOUR)
    assert (world.now(lease).status, world.now(lease).end_reason) == (LeaseStatus.TERMINATED, EndReason.UNUSED)


def test_a_lease_that_is_deleted_is_not_threatened_any_more(on):
    lease = started(on)
    on.run_to(WARNING + HOUR)
    assert on.now(lease).use.release_at == RELEASE
    on.manager.leases.delete(lease.id)
    assert on.now(lease).use.release_at is None


def test_what_is_released_is_free_on_the_calendar_from_then_on(a_world):
    world = a_world(settings=settings())
    lease = started(world)
    world.run_to(RELEASE + MINUTE)
    (used,) = world.store.calendar.ever_assigned(lease.id).values()
    assert len(used) == 1
    assert world.store.calendar.of_lease(lease.id) == ()
    assert world.now(lease).window.end == RELEASE
