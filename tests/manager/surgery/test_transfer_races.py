# SPDX-License-Identifier: Apache-2.0
"""A lease that is offered, while others do something else with it."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import ClaimLost, CloudRefused, Conflict, NotFound, UsageDenied
from blazar.model.base.moments import NOW
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor, IdempotencyKey
from blazar.model.leases.states import LeaseKind, LeaseStatus
from blazar.model.surgery import OfferRequest, PartRequest, SplitRequest, Terms
from tests.manager.surgery.steps import HOUR
from tests.world import PROJECT, World, a_host, instances

CURIE = Terms(Actor("curie", PROJECT))
TURING = Terms(Actor("turing", "computing"))


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


def offered(world: World, lease, request: OfferRequest | None = None) -> None:
    world.manager.transfers.offer(lease.id, request or OfferRequest("computing"), CURIE)


@pytest.mark.parametrize("as_seen", [False, True], ids=["in any state", "only as it was seen"])
def test_sent_again_while_it_is_accepted_the_request_gets_the_lease(sqlite, as_seen):
    world = World(sqlite, hosts=3, patience=timedelta(seconds=20))
    lease, other = world.lease(a_host(), start=HOUR), world.another_manager()
    offered(world, lease)
    revisions = (world.now(lease).revision,) if as_seen else None
    terms = Terms(TURING.asked_by, revisions=revisions, key=IdempotencyKey("scope", "what was sent"))
    found = []
    waits = threading.Event()
    until_free = other.leases.patience.until_free

    def noted(change):
        waits.set()
        return until_free(change)

    other.leases.patience.until_free = noted
    again = threading.Thread(target=lambda: found.append(other.transfers.accept(lease.id, terms)))

    def send_again(name: str, when: str) -> None:
        world.faults.on_call = None
        again.start()
        assert waits.wait(20)

    world.faults.on_call = send_again
    world.manager.transfers.accept(lease.id, terms)
    again.join(30)
    (second,) = found
    assert (second.replayed, second.leases[0].lease.project_id) == (True, "computing")


def owner_of(world: World, lease) -> str:
    return world.simulated.compute.aggregate(lease.reservations[0].id).metadata["blazar:owner"]


@pytest.mark.slow
def test_a_manager_that_stood_still_takes_nothing_from_who_took_the_lease_meanwhile(world):
    """The first manager stands still before any of its calls; the second one undoes what it did, and gives the lease
    to another project.
    """
    mallory = Terms(Actor("mallory", "elsewhere"))
    for step in itertools.count(1):
        lease = world.lease(a_host(), instances(2, vcpus=1), start=HOUR, hours=9)
        world.run_to(lease.window.start)
        offered(world, lease)
        first, second = world.manager, world.another_manager()
        calls = itertools.count(1)

        def stand_still(name: str, when: str, lease=lease, first=first, second=second, calls=calls, step=step) -> None:
            if when == "before" and next(calls) == step:
                world.faults.on_call = None
                world.manager = second
                world.run_to(world.clock.now() + timedelta(minutes=5))
                offered(world, lease, OfferRequest("elsewhere"))
                second.transfers.accept(lease.id, mallory)
                world.manager = first

        world.faults.on_call = stand_still
        try:
            first.transfers.accept(lease.id, TURING)
        except (ClaimLost, NotFound):
            wanted = "elsewhere"
        else:
            wanted = "computing"
        world.faults.on_call = None
        world.run_to(world.clock.now() + timedelta(minutes=5))
        assert (world.now(lease).project_id, world.now(lease).status) == (wanted, LeaseStatus.ACTIVE), step
        assert owner_of(world, lease) == wanted, step
        assert world.simulated.compute.flavor_access(lease.reservations[1].id) == {wanted}, step
        if wanted == "computing":
            break
        world.manager.leases.delete(lease.id)
        world.run()
    assert step > 10


def test_what_is_split_off_is_not_offered(world):
    lease = world.lease(a_host(2), start=HOUR)
    offered(world, lease)
    part = PartRequest(lease.reservations[0].id, count=1)
    first, second = world.manager.surgery.split(lease.id, SplitRequest((part,)), CURIE).leases
    assert first.lease.offer is not None
    assert second.lease.offer is None
    with pytest.raises(NotFound):
        world.manager.transfers.accept(second.lease.id, TURING)


def test_who_takes_a_lease_is_not_told_the_ids_of_others_servers(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    offered(world, lease)
    (host,) = world.hosts_of(lease)
    server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="curie", host=host)
    with pytest.raises(Conflict) as refused:
        world.manager.transfers.accept(lease.id, TURING)
    assert refused.value.code == "lease_has_servers"
    assert server.id not in refused.value.message + str(refused.value.data)
    with pytest.raises(Conflict) as told:
        offered(world, lease)
    assert server.id in told.value.message


@pytest.mark.parametrize("ends", ["withdraw", "decline"])
def test_the_offer_of_a_lease_that_waits_again_can_still_be_ended(sqlite, ends):
    world = World(sqlite)
    lease = world.lease(a_host(), start=HOUR, kind=LeaseKind.RETRIES, tries=3, wait=10 * HOUR)
    offered(world, lease)
    world.faults.fail_before("add_host", CloudRefused("nova does not like it"))
    world.run_to(lease.window.start)
    assert world.now(lease).status is LeaseStatus.WAITING
    getattr(world.manager.transfers, ends)(lease.id, CURIE if ends == "withdraw" else TURING)
    found = world.now(lease)
    assert (found.status, found.offer) == (LeaseStatus.WAITING, None)
    world.waits = True
    for _ in range(20):
        world.run_to(world.clock.now() + timedelta(seconds=30))
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_who_accepts_what_is_deleted_at_this_moment_learns_that_it_is_not_offered(world, monkeypatch):
    lease = world.lease(a_host(), start=HOUR)
    offered(world, lease)
    way = world.manager.transfers._way

    def deleted_after(lease_id, terms):
        found = way(lease_id, terms)
        world.manager.leases.delete(lease_id)
        world.run()
        return found

    monkeypatch.setattr(world.manager.transfers, "_way", deleted_after)
    with pytest.raises(NotFound) as refused:
        world.manager.transfers.accept(lease.id, TURING)
    assert refused.value.code == "transfer_not_found"


def test_a_server_that_its_taker_boots_at_once_does_not_keep_the_lease(world):
    lease = world.lease(a_host(), start=NOW)
    world.run()
    offered(world, lease)
    (host,) = world.hosts_of(lease)

    def boot(name: str, when: str) -> None:
        if (name, when) == ("set_aggregate_metadata", "after"):
            world.faults.on_call = None
            world.simulated.users.boot_server("early", project_id="computing", user_id="turing", host=host)

    world.faults.on_call = boot
    world.manager.transfers.accept(lease.id, TURING)
    assert world.now(lease).project_id == "computing"
    assert len(world.simulated.operators.list_servers()) == 1


def test_a_lease_that_went_away_and_is_offered_back_meets_the_limits_again(sqlite, monkeypatch):
    world = World(sqlite, hosts=3, settings=Settings(bounds=Bounds(leases=2)))
    lease = world.lease(a_host(), start=HOUR)
    world.lease(a_host(), start=HOUR)
    offered(world, lease, OfferRequest(user_id="pierre"))
    late = Terms(Actor("pierre", PROJECT))
    until_free = world.manager.leases.patience.until_free

    def first_away_and_back(change):
        """The lease goes to another project, which offers it back, after the request has seen its project."""
        monkeypatch.setattr(world.manager.leases.patience, "until_free", until_free)
        offered(world, lease)
        world.manager.transfers.accept(lease.id, TURING)
        world.lease(a_host(), start=HOUR)
        world.manager.transfers.offer(lease.id, OfferRequest(PROJECT), TURING)
        return until_free(change)

    monkeypatch.setattr(world.manager.leases.patience, "until_free", first_away_and_back)
    with pytest.raises(UsageDenied):
        world.manager.transfers.accept(lease.id, late)
    assert world.now(lease).project_id == "computing"
