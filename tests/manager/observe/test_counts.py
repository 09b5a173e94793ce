# SPDX-License-Identifier: Apache-2.0
"""What happens to leases is what metrics tell: bookings, events, claims, the cloud, the database, the waiting list."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.enforcement.limits import MaxLeaseDurationFilter
from blazar.model.base.errors import CloudRefused, CloudUnavailable, NotEnoughResources, StoreUnavailable, UsageDenied
from blazar.observe import metrics
from tests.counted import growing, number
from tests.observed import Killed, ObservedStore, before
from tests.world import World, a_host


def test_a_life_of_a_lease_is_told(world):
    start, end = {"event": "start_lease"}, {"event": "end_lease"}
    with growing(metrics.BOOKINGS, kind="host", outcome="booked"), growing(metrics.BOOKING_DURATION):
        lease = world.lease(start=timedelta(hours=1))
    world.clock.to(lease.window.start + timedelta(seconds=7))
    late = metrics.EVENT_LATENESS._histogram.labels("start_lease")._sum.get()
    with (
        growing(metrics.EVENT_ATTEMPTS, **start, outcome="done"),
        growing(metrics.EVENT_LATENESS, **start),
        growing(metrics.EVENT_COMPLETION, **start),
        growing(metrics.CLAIMS, outcome="taken"),
    ):
        world.run()
    assert metrics.EVENT_LATENESS._histogram.labels("start_lease")._sum.get() - late == 7
    with growing(metrics.EVENT_ATTEMPTS, **end, outcome="done"), growing(metrics.EVENT_COMPLETION, **end):
        world.run_to(lease.window.end)


def test_what_does_not_fit_is_told_of_the_kind_that_lacks(world):
    with growing(metrics.BOOKINGS, kind="host", outcome="no_room"), pytest.raises(NotEnoughResources):
        world.lease(a_host(99))


def test_a_change_that_takes_nothing_is_no_booking(world):
    lease = world.lease(start=timedelta(hours=1))
    with growing(metrics.BOOKINGS, 0), growing(metrics.BOOKING_DURATION, 0):
        world.change(lease, name="another name")


def test_a_denial_is_told(engine):
    limited = World(engine, filters=[MaxLeaseDurationFilter(timedelta(hours=2))])
    with (
        growing(metrics.BOOKINGS, kind="host", outcome="denied"),
        growing(metrics.ENFORCEMENT_REQUESTS, filter="MaxLeaseDurationFilter", call="check", outcome="denied"),
        growing(metrics.ENFORCEMENT_REQUEST_DURATION, filter="MaxLeaseDurationFilter"),
        pytest.raises(UsageDenied),
    ):
        limited.lease(hours=1000)


def test_a_call_that_fails_is_told_and_so_is_the_try_of_its_event(world):
    lease = world.lease(start=timedelta(hours=1))
    world.faults.fail_before("add_host", CloudUnavailable("no answer"))
    cloud = {"service": "simulated"}
    with (
        growing(metrics.CLOUD_REQUESTS, **cloud, outcome="unavailable"),
        growing(metrics.EVENT_ATTEMPTS, event="start_lease", outcome="failed"),
    ):
        world.run_to(lease.window.start)
    answered = number(metrics.CLOUD_REQUESTS, **cloud, outcome="ok")
    with growing(metrics.EVENT_ATTEMPTS, event="start_lease", outcome="done"):
        world.run_to(lease.window.start + timedelta(minutes=5))
    assert number(metrics.CLOUD_REQUESTS, **cloud, outcome="ok") > answered


def test_what_the_cloud_refuses_is_told_and_an_event_that_fails_for_good(world):
    lease = world.lease(start=timedelta(hours=1))
    world.faults.fail_before("add_host", CloudRefused("broken"), times=99)
    refused = number(metrics.CLOUD_REQUESTS, service="simulated", outcome="refused")
    with growing(metrics.EVENT_ATTEMPTS, event="start_lease", outcome="gave_up"):
        world.run_to(lease.window.end - timedelta(minutes=1))
    assert number(metrics.CLOUD_REQUESTS, service="simulated", outcome="refused") > refused


def test_a_claim_that_another_manager_leaves_behind_is_taken_over(world):
    lease = world.lease(start=timedelta(hours=1))
    world.clock.to(lease.window.start)
    world.faults.on_call = failing_once(Killed())
    with pytest.raises(Killed):
        world.run()
    world.clock.to(world.clock.now() + timedelta(minutes=2))
    with growing(metrics.CLAIMS, outcome="taken_over"):
        world.another_manager().engine.run_due()


def failing_once(error):
    left = [error]

    def fail(call, phase):
        if left and call == "add_host":
            raise left.pop()

    return fail


def test_a_race_that_is_lost_is_told(world):
    first = world.lease(start=timedelta(hours=1))
    store = ObservedStore(world.store, before("leases.save", lambda: world.change(first, name="another name")))
    manager = world.another_manager(store=store)
    world.clock.to(first.window.start)
    with growing(metrics.CLAIMS, outcome="lost_race"):
        manager.engine.worker.process(first.id, first.event("start_lease").id)


def test_a_booking_that_met_another_one_is_told(world):
    usual, rival = world.manager, world.another_manager()

    def overtake():
        world.manager = rival
        world.lease(a_host(3))

    world.manager = world.another_manager(store=ObservedStore(world.store, before("bookings.commit", overtake)))
    with growing(metrics.BOOKING_RETRIES, cause="calendar"), pytest.raises(NotEnoughResources):
        world.lease()
    world.manager = usual


def test_transactions_are_told(world):
    reads, writes = ({"kind": kind, "outcome": "ok"} for kind in ("read", "write"))
    spent = number(metrics.DB_TRANSACTION_DURATION, kind="read")
    with growing(metrics.DB_TRANSACTIONS, 1, **reads), growing(metrics.DB_TRANSACTIONS, 0, **writes):
        world.store.events.next_due()
    assert number(metrics.DB_TRANSACTION_DURATION, kind="read") == spent + 1
    with growing(metrics.DB_TRANSACTIONS, 1, kind="read", outcome="failed"), pytest.raises(StoreUnavailable):
        world.store.transactions.scalar(sa.text("SELECT nothing FROM nowhere"))


def test_who_waits_is_told_until_it_has_its_turn_or_gives_up(world):
    world.waits = True
    world.lease(a_host(3), hours=3)
    granted = world.lease(a_host(3), start=timedelta(hours=1), hours=1, wait=timedelta(days=1))
    plans = number(metrics.QUEUE_PLAN_DURATION)
    with growing(metrics.WAIT, outcome="granted"):
        world.run_to(world.clock.now() + timedelta(hours=4))
    assert number(metrics.QUEUE_PLAN_DURATION) > plans
    assert str(world.now(granted).status) != "WAITING"
    world.lease(a_host(3), hours=30)
    late = world.lease(a_host(3), hours=1, wait=timedelta(hours=2))
    gone = world.lease(a_host(3), hours=1, wait=timedelta(hours=2))
    with growing(metrics.WAIT, outcome="withdrawn"):
        world.manager.leases.delete(gone.id)
    with growing(metrics.WAIT, outcome="timed_out"):
        world.run_to(late.wait.until + timedelta(minutes=1))


def test_the_sweep_tells_what_it_found_and_when(world):
    lease = world.lease()
    world.run()
    world.manager.sweep.run_once()
    assert [number(metrics.SWEEP_FINDINGS, what=what) for what in ("leftover", "unknown", "unlisted")] == [0, 0, 0]
    assert number(metrics.SWEEP_LAST_SUCCESS) > 1.7e9
    world.faults.fail_before("aggregates", CloudUnavailable("no answer"), times=9)
    world.manager.sweep.run_once()
    assert number(metrics.SWEEP_FINDINGS, what="unlisted") > 0
    assert lease.id
