# SPDX-License-Identifier: Apache-2.0
"""What operators do about problems: each with its guard, by default as a dry run, told in the history, and once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.segments import Segment
from blazar.context import scope
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotFound, WrongState
from blazar.model.base.paging import Page
from blazar.model.journal.entries import WHY, Verb
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.problems.problems import ProblemAction, ProblemQuestion, RepairRequest
from blazar.model.problems.troubles import TroubleLimits
from blazar.model.resources.resource import HOST
from blazar.resources.instances.reservation_flavor import flavor_name
from tests.observed import Killed
from tests.oracle import check_at_rest
from tests.world import NOON, World, a_host, a_network

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
UNKNOWN = "0" * 36
REASON = "ticket 4711"
OPERATOR = Actor("root", "operators", operator=True)


def act(world: World, problem_id: str, action: ProblemAction, *, manager=None, dry_run=False, confirm=None):
    with scope(actor=OPERATOR):
        service = (manager or world.manager).problems
        return service.act(problem_id, action, RepairRequest(REASON, dry_run, confirm))


def event_id(world: World, lease, event_type: EventType) -> str:
    return f"event:{world.now(lease).event(event_type).id}"


def told(world: World, lease) -> list[tuple[Verb, str | None]]:
    """Return the verbs of the history of a lease that an operator gave a reason for."""
    page = world.store.history.page(lease.id, Page(100, "at"))
    return [(entry.verb, change.after) for entry in page.items for change in entry.changes if change.field == WHY]


def a_stuck_start(world: World):
    stranger = world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'))
    world.run_to(NOON + 3 * MINUTE)
    return lease, stranger


def dies_at(world: World, call: str) -> None:
    """Let the manager that makes this call of the cloud die in it."""

    def die(name: str, phase: str) -> None:
        if (name, phase) == (call, "before"):
            raise Killed

    world.faults.on_call = die


def a_stuck_end(world: World, *, hosts: int = 1):
    """Return a lease whose end has failed for some minutes, as a host cannot return to the freepool."""
    lease = world.lease(a_host(hosts))
    world.run()
    world.faults.fail_before("remove_host", ConnectionError("Nova is ill"), times=99)
    world.run_to(lease.window.end + 4 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    return lease


def heal(world: World) -> None:
    world.faults.clear()


def test_a_retry_is_done_at_once_and_a_dry_run_changes_nothing(world):
    lease, stranger = a_stuck_start(world)
    problem = event_id(world, lease, EventType.START)
    world.simulated.compute.begin_server_deletion(stranger.id)
    before = world.now(lease)
    dry = act(world, problem, ProblemAction.RETRY, dry_run=True)
    assert dry.dry_run
    assert "would be tried again" in dry.said[0]
    assert world.now(lease) == before
    done = act(world, problem, ProblemAction.RETRY)
    assert not done.dry_run
    assert done.said == ("start_lease of lease a lease is tried again now.",)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert told(world, lease) == [(Verb.RETRIED, REASON)]
    with pytest.raises(NotFound):
        act(world, problem, ProblemAction.RETRY)


def test_a_start_that_failed_for_good_is_begun_again_while_there_is_time(world):
    lease, stranger = a_stuck_start(world)
    act(world, event_id(world, lease, EventType.START), ProblemAction.GIVE_UP)
    failed = world.now(lease)
    assert failed.status is LeaseStatus.ERROR
    assert failed.event(EventType.START).reason == f"given up by an operator: {REASON}"
    world.simulated.compute.begin_server_deletion(stranger.id)
    act(world, event_id(world, lease, EventType.START), ProblemAction.RETRY)
    world.run()
    after = world.now(lease)
    assert after.status is LeaseStatus.ACTIVE
    assert [r.status for r in after.reservations] == [ReservationStatus.ACTIVE]
    assert told(world, lease) == [(Verb.FAILED, REASON), (Verb.RETRIED, REASON)]
    world.run_to(lease.window.end)
    check_at_rest(world.store, world.simulated, now=world.clock.now())


def test_what_is_saved_before_the_end_can_be_tried_again_and_given_up(a_world):
    world = a_world()
    lease = world.lease(a_host(before_end="snapshot"), hours=3)
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    world.faults.fail_before("images_of_reservation", CloudUnavailable("Glance is ill"), times=99)
    world.run_to(world.now(lease).event(EventType.BEFORE_END).time + 2 * MINUTE)
    before_end = event_id(world, lease, EventType.BEFORE_END)
    if world.now(lease).event(EventType.BEFORE_END).status is EventStatus.IN_PROGRESS:
        act(world, before_end, ProblemAction.GIVE_UP)
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.ERROR
    assert world.now(lease).status is LeaseStatus.ACTIVE
    heal(world)
    act(world, before_end, ProblemAction.RETRY)
    world.run_to(world.clock.now() + MINUTE)
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.DONE


def test_an_end_that_is_given_up_disables_its_hosts_and_the_sweep_goes_on_cleaning(world):
    lease = a_stuck_end(world)
    (host,) = world.hosts_of(lease)
    problem = event_id(world, lease, EventType.END)
    dry = act(world, problem, ProblemAction.GIVE_UP, dry_run=True)
    assert f"disabled until somebody has looked at them: {host}" in dry.said[1]
    assert world.now(lease).status is LeaseStatus.TERMINATING
    assert not any(resource.disabled for resource in world.manager.resources.all(HOST))
    act(world, problem, ProblemAction.GIVE_UP)
    after = world.now(lease)
    assert after.status is LeaseStatus.TERMINATED
    assert after.event(EventType.END).status is EventStatus.DONE
    assert after.event(EventType.END).reason == f"given up by an operator: {REASON}"
    (disabled,) = [resource for resource in world.manager.resources.all(HOST) if resource.disabled]
    assert disabled.name == host
    assert REASON in (disabled.disabled_reason or "")
    assert world.hosts_of(lease) == frozenset()
    assert (Verb.ENDED, REASON) in told(world, lease)
    heal(world)
    world.manager.sweep.run_once()
    world.run()
    assert host in world.pool()


def test_an_end_is_given_up_under_a_claim_that_lasts_and_without_hosts_that_are_gone(world, monkeypatch):
    lease = a_stuck_end(world, hosts=2)
    other, disable, tried = world.another_manager(), world.manager.resources.change, []
    heal(world)
    aggregates = world.aggregates()

    def change(kind, resource_id, wanted):
        tried.append(resource_id)
        world.clock.by(seconds=0.6 * world.settings.claim_ttl.total_seconds())
        world.manager.claims.beat()
        other.engine.run_due()
        assert world.now(lease).status is LeaseStatus.TERMINATING
        if len(tried) == 1:
            raise NotFound("it was unregistered")
        return disable(kind, resource_id, wanted)

    monkeypatch.setattr(world.manager.resources, "change", change)
    act(world, event_id(world, lease, EventType.END), ProblemAction.GIVE_UP)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert len(tried) == 2
    assert len([host for host in world.manager.resources.all(HOST) if host.disabled]) == 1
    assert world.aggregates() == aggregates


def test_a_deletion_and_a_clean_up_that_are_given_up_are_over(world):
    lease = world.lease(a_host())
    world.run()
    world.faults.fail_before("remove_host", ConnectionError("Nova is ill"), times=99)
    world.manager.leases.delete(lease.id)
    world.run_to(world.clock.now() + 4 * MINUTE)
    act(world, event_id(world, lease, EventType.DELETE), ProblemAction.GIVE_UP)
    assert world.now(lease).deleted_at is not None
    world.manager.sweep.run_once()
    world.run_to(world.clock.now() + 4 * MINUTE)
    act(world, event_id(world, lease, EventType.CLEAN_UP), ProblemAction.GIVE_UP)
    assert world.now(lease).event(EventType.CLEAN_UP).status is EventStatus.ERROR
    heal(world)
    world.manager.sweep.run_once()
    world.run()
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_an_undo_that_is_given_up_leaves_the_lease_with_what_the_books_say(world):
    lease = world.lease(a_host())
    world.run()
    dies_at(world, "add_host")
    with pytest.raises(Killed):
        world.resize(lease, min=2, max=2)
    world.faults.on_call = None
    world.faults.fail_before("remove_host", ConnectionError("Nova is ill"), times=99)
    world.faults.fail_before("add_host", ConnectionError("Nova is ill"), times=99)
    world.faults.fail_before("aggregates", ConnectionError("Nova is ill"), times=99)
    world.run_to(world.clock.now() + 4 * MINUTE)
    update = world.now(lease).event(EventType.UPDATE)
    assert update.due_at is not None
    act(world, f"event:{update.id}", ProblemAction.GIVE_UP)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    heal(world)


def test_an_event_that_nobody_has_tried_is_not_given_up_and_one_that_is_over_not_retried(world):
    lease = world.lease(a_host(), start=HOUR)
    world.clock.to(lease.window.start + 2 * MINUTE)
    problem = event_id(world, lease, EventType.START)
    with pytest.raises(WrongState, match="nobody has tried it yet"):
        act(world, problem, ProblemAction.GIVE_UP)
    with pytest.raises(WrongState, match="nobody has a claim"):
        act(world, problem, ProblemAction.RELEASE)
    with pytest.raises(WrongState, match="mend is no action .* there is retry, release, give_up"):
        act(world, problem, ProblemAction.MEND)


def test_a_claim_far_in_the_future_ends_after_the_time_of_a_claim_and_no_earlier(world):
    lease = world.lease(a_host(), start=HOUR)
    world.clock.to(lease.window.start)
    dies_at(world, "add_host")
    with pytest.raises(Killed):
        world.run()
    world.faults.on_call = None
    claimed = world.now(lease)
    start = claimed.event(EventType.START)
    far = replace(start, due_at=world.clock.now() + 24 * HOUR, claimed_at=world.clock.now() - HOUR)
    events = tuple(far if event.id == start.id else event for event in claimed.events)
    world.store.leases.save(claimed, replace(claimed, events=events), at=world.clock.now())
    problem = world.manager.problems.one(f"event:{start.id}")
    assert problem.actions == (ProblemAction.RELEASE,)
    assert "a clock was wrong" in problem.explanation[-1]
    for action in (ProblemAction.RETRY, ProblemAction.GIVE_UP):
        with pytest.raises(Conflict, match="it is being worked on: The manager on .* lasts until"):
            act(world, problem.id, action)
    assert "would keep" in act(world, problem.id, ProblemAction.RELEASE, dry_run=True).said[0]
    act(world, problem.id, ProblemAction.RELEASE)
    ttl = world.settings.claim_ttl
    assert world.now(lease).event(EventType.START).due_at == world.clock.now() + ttl
    assert told(world, lease) == [(Verb.CLAIM_ENDED, REASON)]
    with pytest.raises(Conflict, match="ends by itself"):
        act(world, problem.id, ProblemAction.RELEASE)
    world.run_to(world.clock.now() + ttl)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_the_end_of_a_lease_by_an_operator_names_the_servers_that_go_and_saves_nothing(world):
    lease, _ = a_stuck_start(world)
    running = world.lease(a_host(before_end="snapshot"))
    world.run()
    (host,) = world.hosts_of(running)
    world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    world.run_to(NOON + 20 * MINUTE)
    dry = act(world, f"lease:{lease.id}", ProblemAction.END, dry_run=True)
    assert "would be deleted" in dry.said[0]
    assert "Nothing is saved" in dry.said[1]
    named = world.manager.problems.ends.end_lease(running.id, RepairRequest(REASON))
    assert named[2].startswith("These servers would be deleted: work (")
    act(world, f"lease:{lease.id}", ProblemAction.END)
    world.run()
    assert world.now(lease).deleted_at is not None
    assert (Verb.DELETED, REASON) in told(world, lease)
    with pytest.raises(NotFound):
        act(world, f"lease:{running.id}", ProblemAction.END)


@pytest.fixture
def stranger_world(world) -> World:
    """A world with something of a reservation that is not on record, which was found two hours ago."""
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    world.manager.sweep.run_once()
    world.clock.by(seconds=7200)
    return world


def test_what_nobody_knows_goes_when_an_operator_names_it_once_more(stranger_world):
    world, problem = stranger_world, f"unknown::{UNKNOWN}"
    dry = act(world, problem, ProblemAction.END, dry_run=True)
    assert UNKNOWN in dry.said[0]
    assert "Another Blazar" in dry.said[1]
    for wrong in (None, "", "1" * 36):
        with pytest.raises(InvalidInput, match="once more"):
            act(world, problem, ProblemAction.END, confirm=wrong)
    act(world, problem, ProblemAction.END, confirm=UNKNOWN)
    world.run()
    assert world.simulated.compute.flavor(UNKNOWN) is None
    world.manager.sweep.run_once()
    assert world.manager.problems.page(ProblemQuestion(Page(9, "since"))).items == ()
    assert world.manager.leases.all(None) == ()


def test_what_was_found_only_now_may_be_in_the_making_and_stays(world):
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    world.manager.sweep.run_once()
    with pytest.raises(Conflict, match="another Blazar may be making it"):
        act(world, f"unknown::{UNKNOWN}", ProblemAction.END, confirm=UNKNOWN)


def test_two_managers_that_end_the_same_unknown_make_one_record(stranger_world):
    world, problem = stranger_world, f"unknown::{UNKNOWN}"
    other = world.another_manager()
    finding = world.store.troubles.read(world.clock.now(), TroubleLimits()).findings[0]
    act(world, problem, ProblemAction.END, confirm=UNKNOWN)
    with pytest.raises(Conflict, match="on record meanwhile"):
        other.problems.ends.end_unknown(finding, RepairRequest(REASON, False, UNKNOWN))
    world.run()
    assert world.simulated.compute.flavor(UNKNOWN) is None


@pytest.mark.slow
def test_a_leftover_that_no_clean_up_removes_is_a_problem_and_its_end_is_another_clean_up(world):
    world.register_segments(101)
    lease = world.lease(a_network())
    world.run()
    world.run_to(lease.window.end + MINUTE)
    users = world.simulated.network_users
    forged = users.network(Segment("vlan", "physnet1", 900), project_id="art")
    mark = lease.reservations[0].id
    users.rename(forged.id, tags=["blazar", f"reservation:{mark}"])
    for _ in range(3):
        world.manager.sweep.run_once()
        world.run()
        world.clock.by(seconds=600)
    (problem,) = world.manager.problems.page(ProblemQuestion(Page(9, "since"))).items
    assert problem.id == f"leftover::{mark}"
    assert "cleaned up 3 times" in problem.explanation[0]
    assert "would be removed" in act(world, problem.id, ProblemAction.END, dry_run=True).said[0]
    act(world, problem.id, ProblemAction.END)
    with pytest.raises(WrongState, match="in progress"):
        act(world, problem.id, ProblemAction.END)
    world.run()
    assert told(world, lease) == [(Verb.CLEANED_UP, REASON)]


MOMENTS = ("remove_host", "add_host", "delete_aggregate")


@pytest.mark.parametrize("action", [ProblemAction.RETRY, ProblemAction.RELEASE, ProblemAction.GIVE_UP])
@pytest.mark.parametrize("call", MOMENTS)
@pytest.mark.parametrize("phase", ["before", "after"])
def test_no_action_of_another_manager_comes_between_the_calls_of_one_that_works(world, action, call, phase):
    """At each call to the cloud of a start and of an end: the other one is told who works on it."""
    lease = world.lease(a_host(), start=HOUR)
    other = world.another_manager()
    tried: list[str] = []

    def meanwhile(name: str, now: str) -> None:
        if (name, now) != (call, phase) or tried:
            return
        world.faults.on_call = None
        current = world.now(lease)
        event = next(event for event in current.events if event.claimed_by)
        events = other.problems.events
        acts = {"retry": events.retry, "release": events.release, "give_up": events.give_up}
        with pytest.raises(Conflict):
            acts[action](lease.id, event.id, RepairRequest(REASON, False))
        tried.append(name)
        world.faults.on_call = meanwhile

    world.faults.on_call = meanwhile
    world.run_to(lease.window.end + MINUTE)
    world.faults.on_call = None
    assert tried == [call]
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert told(world, lease) == []
    check_at_rest(world.store, world.simulated, now=world.clock.now())


@pytest.mark.parametrize("action", [ProblemAction.RETRY, ProblemAction.GIVE_UP])
@pytest.mark.parametrize("call", MOMENTS)
def test_a_holder_that_stood_still_while_its_event_was_acted_on_changes_nothing_more(world, action, call):
    """It sleeps longer than its claim; an operator acts, another manager works; it wakes, and its call is refused."""
    lease = world.lease(a_host(), start=HOUR)
    other = world.another_manager()
    done: list[str] = []

    def sleep(name: str, now: str) -> None:
        if (name, now) != (call, "before") or done:
            return
        world.faults.on_call = None
        event = next(event for event in world.now(lease).events if event.claimed_by)
        world.clock.by(seconds=world.settings.claim_ttl.total_seconds() + 61)
        act(world, f"event:{event.id}", action, manager=other)
        done.append(name)
        other.engine.run_due()

    world.faults.on_call = sleep
    world.run_to(lease.window.start)
    world.run_to(lease.window.end + 3 * MINUTE)
    world.faults.on_call = None
    assert done == [call]
    assert world.now(lease).status in (LeaseStatus.TERMINATED, LeaseStatus.ERROR)
    for resource in world.manager.resources.all(HOST):
        assert not resource.disabled or action is ProblemAction.GIVE_UP
    world.run_to(lease.window.end + HOUR)
    world.manager.sweep.run_once()
    world.run()
    check_at_rest(world.store, world.simulated, now=world.clock.now())
