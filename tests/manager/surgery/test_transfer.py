# SPDX-License-Identifier: Apache-2.0
"""A lease goes to another project, when that accepts it."""

from __future__ import annotations

import itertools
from datetime import timedelta
from functools import partial

import pytest

from blazar.clouds.simulated.state import FlavorState
from blazar.context import scope
from blazar.manager.common.notifications import Parties
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotFound, PreconditionFailed, WrongState
from blazar.model.base.moments import NOW
from blazar.model.base.paging import Page
from blazar.model.leases.requests import Actor, IdempotencyKey
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.surgery import OfferRequest, Terms
from tests.manager.enforcement.recording import DOWN
from tests.manager.events.test_crashes import dies
from tests.manager.surgery.steps import HOUR, booked
from tests.promises import check_promises
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, a_series, flavored, host_request, instances

CURIE = Terms(Actor("curie", PROJECT))
TURING = Terms(Actor("turing", "computing"))
MALLORY = Terms(Actor("mallory", "elsewhere"))
TO_COMPUTING = OfferRequest("computing", message="for your course")
EXPIRING = Page(10, "expires_at")


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


def offered(world: World, lease, request: OfferRequest = TO_COMPUTING):
    return world.manager.transfers.offer(lease.id, request, CURIE)


def accepted(world: World, lease, terms: Terms = TURING):
    (found,) = world.manager.transfers.accept(lease.id, terms).leases
    check_promises(world.store, since=NOON)
    return found


def owner_of(world: World, lease, number: int = 0) -> str:
    aggregate = world.simulated.compute.aggregate(lease.reservations[number].id)
    return aggregate.metadata["blazar:owner"]


def verbs(world: World, lease) -> list[str]:
    return [str(each.verb) for each in world.manager.leases.history(lease.id, Page(50, "at")).items]


def test_a_lease_before_its_start_goes_with_all_that_it_has(world):
    lease = world.lease(a_host(2), start=HOUR)
    before = booked(world)
    offer = offered(world, lease).lease.offer
    assert (offer.project_id, offer.user_id, offer.message) == ("computing", None, "for your course")
    assert offer.expires_at - offer.offered_at == timedelta(hours=24)

    after = accepted(world, lease)
    assert (after.lease.project_id, after.lease.user_id) == ("computing", "turing")
    assert after.lease.offer is None
    assert after.lease.status is LeaseStatus.PENDING
    assert (after.lease.id, after.lease.window) == (lease.id, lease.window)
    assert booked(world) == before
    assert owner_of(world, lease) == "computing"

    world.run_to(NOON + HOUR)
    assert world.store.leases.one(lease.id).status is LeaseStatus.ACTIVE
    assert owner_of(world, lease) == "computing"


def test_a_lease_in_use_goes_while_no_server_runs_in_it(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    assert owner_of(world, lease) == PROJECT
    offered(world, lease)
    after = accepted(world, lease)
    assert after.lease.status is LeaseStatus.ACTIVE
    assert owner_of(world, lease) == "computing"
    world.run_to(after.lease.window.end)
    assert world.store.leases.one(lease.id).status is LeaseStatus.TERMINATED


def test_a_lease_with_servers_stays(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    offered(world, lease)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)
    with pytest.raises(Conflict) as refused:
        accepted(world, lease)
    assert refused.value.code == "lease_has_servers"
    found = world.store.leases.one(lease.id)
    assert (found.project_id, found.status) == (PROJECT, LeaseStatus.ACTIVE)
    assert found.offer is not None


def test_instances_get_another_group_and_their_flavor_other_users(world):
    lease = world.lease(instances(2), start=HOUR)
    offered(world, lease)
    accepted(world, lease)
    world.run_to(NOON + HOUR)
    assert world.simulated.compute.flavor_access(lease.reservations[0].id) == {"computing"}


def test_the_flavor_of_instances_in_use_is_the_takers_alone(world):
    lease = world.lease(instances(2), start=NOW)
    world.run()
    assert world.simulated.compute.flavor_access(lease.reservations[0].id) == {PROJECT}
    offered(world, lease)
    accepted(world, lease)
    assert world.simulated.compute.flavor_access(lease.reservations[0].id) == {"computing"}


def test_an_offer_is_listed_to_whom_it_is_made_and_to_nobody_else(world):
    lease = world.lease(a_host(), start=HOUR)
    offered(world, lease)

    def listed(terms: Terms) -> list[str]:
        return [each.lease.id for each in world.manager.transfers.page(terms.asked_by, EXPIRING).items]

    assert listed(TURING) == [lease.id]
    assert listed(MALLORY) == listed(CURIE) == []
    assert world.manager.transfers.one(lease.id, TURING.asked_by).lease.id == lease.id
    for other in (MALLORY, CURIE):
        with pytest.raises(NotFound):
            world.manager.transfers.one(lease.id, other.asked_by)
        with pytest.raises(NotFound):
            world.manager.transfers.accept(lease.id, other)
        with pytest.raises(NotFound):
            world.manager.transfers.decline(lease.id, other)


def test_only_the_named_user_may_accept(world):
    lease = world.lease(a_host(), start=HOUR)
    offered(world, lease, OfferRequest("computing", user_id="hopper"))
    with pytest.raises(NotFound):
        accepted(world, lease)
    assert not world.manager.transfers.page(TURING.asked_by, EXPIRING).items
    after = accepted(world, lease, Terms(Actor("hopper", "computing")))
    assert after.lease.user_id == "hopper"


def test_within_the_project_only_the_user_changes(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)
    offered(world, lease, OfferRequest(user_id="pierre"))
    after = accepted(world, lease, Terms(Actor("pierre", PROJECT)))
    assert (after.lease.project_id, after.lease.user_id) == (PROJECT, "pierre")
    assert len(world.simulated.operators.list_servers()) == 1


@pytest.mark.parametrize(
    ("request_", "pointer"),
    [(OfferRequest(PROJECT), "/project_id"), (OfferRequest(user_id="curie"), "/user_id")],
    ids=["own project", "own user"],
)
def test_whose_it_is_already_gets_no_offer(world, request_, pointer):
    lease = world.lease(a_host(), start=HOUR)
    with pytest.raises(InvalidInput) as refused:
        offered(world, lease, request_)
    assert refused.value.pointer == pointer


def test_an_offer_is_withdrawn_declined_and_replaced(world):
    lease = world.lease(a_host(), start=HOUR)
    offered(world, lease)
    world.manager.transfers.withdraw(lease.id, CURIE)
    with pytest.raises(NotFound):
        accepted(world, lease)
    offered(world, lease)
    world.manager.transfers.decline(lease.id, TURING)
    for act in (world.manager.transfers.decline, world.manager.transfers.accept, world.manager.transfers.withdraw):
        with pytest.raises(NotFound):
            act(lease.id, TURING)
    offered(world, lease)
    offered(world, lease, OfferRequest("elsewhere"))
    with pytest.raises(NotFound):
        accepted(world, lease)
    assert accepted(world, lease, MALLORY).lease.project_id == "elsewhere"
    assert verbs(world, lease) == [
        "created",
        "offered",
        "withdrawn",
        "offered",
        "declined",
        "offered",
        "offered",
        "transferred",
    ]
    assert world.notifier.types.count("lease.transfer.offered") == 4
    assert world.notifier.types[-1] == "lease.transferred"
    assert world.notifier.transfer == Parties(PROJECT, "elsewhere")


def test_who_declines_at_once_does_not_disturb_the_answer_to_the_offer(world, monkeypatch):
    lease = world.lease(a_host(), start=HOUR)
    monkeypatch.setattr(type(world.notifier), "notify", lambda *_, **__: decline())

    def decline() -> None:
        monkeypatch.undo()
        world.manager.transfers.decline(lease.id, TURING)

    assert offered(world, lease).lease.offer.project_id == "computing"
    assert world.now(lease).offer is None


def test_an_offer_expires(world):
    lease = world.lease(a_host(), start=NOON + 48 * HOUR)
    offered(world, lease)
    world.run_to(NOON + 24 * HOUR)
    with pytest.raises(NotFound):
        accepted(world, lease)
    assert not world.manager.transfers.page(TURING.asked_by, EXPIRING).items
    assert world.now(lease).project_id == PROJECT


def test_an_offer_ends_with_its_lease(world):
    lease, deleted = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    for each in (lease, deleted):
        offered(world, each)
    world.manager.leases.delete(deleted.id)
    world.run_to(lease.window.end)
    for each in (lease, deleted):
        with pytest.raises(NotFound):
            accepted(world, each)
    assert not world.manager.transfers.page(TURING.asked_by, EXPIRING).items


def test_what_has_changed_since_it_was_seen_is_not_accepted(world):
    lease = world.lease(a_host(), start=HOUR)
    seen = offered(world, lease).lease.revision
    world.change(lease, end=lease.window.end + HOUR)
    with pytest.raises(PreconditionFailed):
        accepted(world, lease, Terms(TURING.asked_by, revisions=(seen,)))
    assert accepted(world, lease).lease.window.end == lease.window.end + HOUR


def test_accepted_with_a_key_it_is_found_again_by_the_taker_alone(world):
    lease = world.lease(a_host(), start=HOUR)
    offered(world, lease)
    terms = Terms(TURING.asked_by, key=IdempotencyKey("scope", "what was sent"))
    accepted(world, lease, terms)
    again = world.manager.transfers.accept(lease.id, terms)
    assert (again.replayed, again.leases[0].lease.id) == (True, lease.id)
    world.manager.transfers.offer(lease.id, OfferRequest("elsewhere"), TURING)
    accepted(world, lease, MALLORY)
    with scope(actor=TURING.asked_by), pytest.raises(Conflict) as refused:
        world.manager.transfers.accept(lease.id, terms)
    assert refused.value.code == "idempotency_key_reused"


def test_a_dry_run_changes_nothing(world):
    lease = world.lease(a_host(), start=HOUR)
    dry = Terms(CURIE.asked_by, dry_run=True)
    shown = world.manager.transfers.offer(lease.id, TO_COMPUTING, dry)
    assert shown.lease.offer.project_id == "computing"
    assert world.now(lease) == lease
    offered(world, lease)
    before = world.now(lease)
    (planned,) = world.manager.transfers.accept(lease.id, Terms(TURING.asked_by, dry_run=True)).leases
    assert planned.lease.project_id == "computing"
    assert (world.now(lease), owner_of(world, lease)) == (before, PROJECT)


def test_leases_that_wait_or_have_ended_are_not_offered(a_world):
    world = a_world(hosts=1)
    lease = world.lease(a_host(), start=HOUR)
    waits = world.lease(a_host(), start=HOUR, wait=10 * HOUR)
    assert waits.status is LeaseStatus.WAITING
    with pytest.raises(WrongState):
        offered(world, waits)
    world.run_to(lease.window.end)
    with pytest.raises(InvalidInput):
        offered(world, lease)


def test_an_occurrence_stays_with_its_series(world):
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=2"))
    lease = world.manager.leases.one(made.occurrences[0].lease_id)
    with pytest.raises(Conflict) as refused:
        offered(world, lease)
    assert "series" in refused.value.message
    offered(world, lease, OfferRequest(user_id="pierre"))
    after = accepted(world, lease, Terms(Actor("pierre", PROJECT)))
    assert after.lease.series.changed


def test_hosts_that_are_not_open_to_the_taker_keep_the_lease(a_world):
    world = a_world(hosts=0)
    world.manager.resources.register(HOST, host_request("node-1", open_to=(PROJECT, "computing")))
    lease = world.lease(a_host(), start=HOUR)
    with pytest.raises(Conflict) as refused:
        offered(world, lease, OfferRequest("elsewhere"))
    assert refused.value.message.endswith("that are not open to project elsewhere")
    offered(world, lease)
    accepted(world, lease)


def test_the_flavor_has_to_be_the_takers_too(world):
    with world.simulated.change_state() as state:
        state.flavors["m1"] = FlavorState("m1", "m1.private", 1, 512, 1, public=False, projects=[PROJECT])
    lease = world.lease(flavored(1, "m1"), start=HOUR)
    with pytest.raises(Conflict) as refused:
        offered(world, lease)
    assert "flavor m1" in refused.value.message
    world.simulated.compute.grant_flavor("m1", "computing")
    offered(world, lease)
    accepted(world, lease)


@pytest.mark.parametrize("affinity", [True, False, None])
def test_a_group_is_the_takers_before_the_start_and_stays_in_use(world, affinity):
    lease = world.lease(instances(2, affinity=affinity, vcpus=1), start=HOUR)
    offered(world, lease)
    accepted(world, lease)
    assert {group.project_id for group in world.simulated.compute.server_groups()} == (
        set() if affinity is None else {"computing"}
    )
    world.run_to(NOON + HOUR)
    back = OfferRequest(PROJECT)
    if affinity is None:
        world.manager.transfers.offer(lease.id, back, TURING)
        return
    with pytest.raises(Conflict) as refused:
        world.manager.transfers.offer(lease.id, back, TURING)
    assert "server group" in refused.value.message


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("in_use", [False, True], ids=["before its start", "in use"])
def test_killed_at_any_call_all_is_the_givers_or_all_the_takers(a_world, phase, in_use):
    world = a_world(hosts=3)
    for step in itertools.count(1):
        lease = world.lease(a_host(), instances(2, affinity=None if in_use else False, vcpus=1), start=HOUR)
        if in_use:
            world.run_to(lease.window.start)
        offered(world, lease)
        accept = partial(world.manager.transfers.accept, lease.id, TURING)
        died = dies(world, accept, step, phase)
        world.run_to(world.clock.now() + timedelta(minutes=2))
        found = world.now(lease)
        assert found.status is (LeaseStatus.ACTIVE if in_use else LeaseStatus.PENDING), step
        assert found.project_id == (PROJECT if died else "computing"), step
        owners = {owner_of(world, lease, number) for number in (0, 1)}
        groups = {group.project_id for group in world.simulated.compute.server_groups()}
        access = world.simulated.compute.flavor_access(lease.reservations[1].id)
        assert owners == {found.project_id}, step
        assert groups == (set() if in_use else {found.project_id}), step
        assert access == ({found.project_id} if in_use else frozenset()), step
        check_promises(world.store, since=NOON)
        if not died:
            break
        # Who gave it may still give it.
        assert found.offer is not None
        accepted(world, lease)
        world.manager.leases.delete(lease.id)
        world.run()
    assert step > 3


def test_a_server_that_came_while_it_was_given_away_keeps_the_lease(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    offered(world, lease)
    (host,) = world.hosts_of(lease)

    def boot(name: str, when: str) -> None:
        if (name, when) == ("set_aggregate_metadata", "before"):
            world.faults.on_call = None
            world.simulated.users.boot_server("late", project_id=PROJECT, user_id="curie", host=host)

    world.faults.on_call = boot
    with pytest.raises(Conflict) as refused:
        accepted(world, lease)
    assert refused.value.code == "lease_has_servers"
    world.run()
    found = world.now(lease)
    assert (found.project_id, found.status) == (PROJECT, LeaseStatus.ACTIVE)
    assert owner_of(world, lease) == PROJECT
    assert len(world.simulated.operators.list_servers()) == 1


def test_a_cloud_that_does_not_answer_leaves_the_lease_with_its_giver(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    offered(world, lease)
    world.faults.fail_before("set_aggregate_metadata", DOWN)
    with pytest.raises(CloudUnavailable):
        accepted(world, lease)
    world.run_to(NOON + timedelta(minutes=2))
    found = world.now(lease)
    assert (found.project_id, found.status, owner_of(world, lease)) == (PROJECT, LeaseStatus.ACTIVE, PROJECT)
    assert accepted(world, lease).lease.project_id == "computing"


def test_while_it_is_on_its_way_nobody_withdraws_it(world):
    lease = world.lease(a_host(), start=HOUR)
    offered(world, lease)
    answers = []

    def withdraw(name: str, when: str) -> None:
        if when == "before":
            world.faults.on_call = None
            with pytest.raises(WrongState) as refused:
                world.another_manager().transfers.withdraw(lease.id, CURIE)
            answers.append(refused.value)

    world.faults.on_call = withdraw
    assert accepted(world, lease).lease.project_id == "computing"
    assert len(answers) == 1


def test_on_each_database_it_goes_from_hand_to_hand(engine):
    world = World(engine, hosts=3)
    lease = world.lease(a_host(2), start=HOUR)
    offered(world, lease)
    many = [world.lease(a_host(1), start=NOON + n * 10 * HOUR) for n in range(1, 4)]
    for each in many:
        world.clock.by(seconds=1)
        offered(world, each)
    first = world.manager.transfers.page(TURING.asked_by, Page(2, "expires_at", with_count=True))
    assert ([e.lease.id for e in first.items], first.count) == ([lease.id, many[0].id], 4)
    rest = world.manager.transfers.page(TURING.asked_by, Page(2, "expires_at", after=first.following))
    assert [e.lease.id for e in rest.items] == [many[1].id, many[2].id]
    by_id = world.manager.transfers.page(TURING.asked_by, Page(2, "expires_at", after=many[0].id))
    assert by_id.items == rest.items
    with pytest.raises(InvalidInput):
        world.manager.transfers.page(MALLORY.asked_by, Page(2, "expires_at", after=many[0].id))
    accepted(world, lease)
    world.manager.transfers.offer(lease.id, OfferRequest("elsewhere"), TURING)
    accepted(world, lease, MALLORY)
    world.run_to(NOON + HOUR)
    assert owner_of(world, lease) == "elsewhere"


def test_a_list_of_offers_costs_the_same_however_many_there_are(world):
    for n in range(1, 4):
        offered(world, world.lease(a_host(), start=NOON + n * 10 * HOUR))
    with counted(world.engine) as few:
        world.manager.transfers.page(TURING.asked_by, EXPIRING)
    for n in range(4, 9):
        offered(world, world.lease(a_host(), start=NOON + n * 10 * HOUR))
    with counted(world.engine) as many:
        assert len(world.manager.transfers.page(TURING.asked_by, EXPIRING).items) == 8
    assert few.count == many.count <= 5
