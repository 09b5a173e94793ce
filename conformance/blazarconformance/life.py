# SPDX-License-Identifier: Apache-2.0
"""Leases of the type in a manager: from their creation to their end, with outages, refusals, changes and the sweep."""

from __future__ import annotations

from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable, Conflict, InvalidInput
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazarconformance.catalogue import (
    ENTERS,
    FAILURES,
    FIXED,
    LARGER,
    POLLS,
    PREPARES,
    SHRINKS,
    check,
    require,
)
from blazarconformance.ensures import same
from blazarconformance.harness import HasFailures
from blazarconformance.scene import LATER, Scene
from blazarconformance.trial import HOUR, Trial


def check_status(scene: Scene, lease: Lease, wanted: LeaseStatus, when: str) -> Lease:
    """Require that a lease has a status; return it as it is by now."""
    found = scene.now(lease)
    reasons = [event.reason for event in found.events if event.reason]
    require(found.status is wanted, f"{when} the lease is {found.status}, not {wanted}: {reasons}.")
    return found


def check_usable(scene: Scene, lease: Lease, when: str) -> None:
    """Require that the project of a lease can use what is promised to it."""
    can, should = scene.usable(lease), scene.promised(lease)
    require(can == should, f"{when} {sorted(can)} can be used, and {sorted(should)} is promised.")


def _fails_on_all(trial: Trial, error: BlazarError, *, phase: str = "before", times: int = 1) -> None:
    """Let the next calls to the cloud fail."""
    left = [times]

    def fail(_: str, at: str) -> None:
        if at == phase and left[0] > 0:
            left[0] -= 1
            raise error

    trial.faults.on_call = fail


@check()
def a_lease_lives_from_its_creation_to_its_end(trial: Trial) -> None:
    """A lease is pending, then active with what is promised, then terminated, and leaves nothing."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease(start=LATER)
    check_status(scene, lease, LeaseStatus.PENDING, "after its creation")
    require(not scene.usable(lease), "something can be used before the start.")
    scene.run_to(lease.window.start)
    check_status(scene, lease, LeaseStatus.ACTIVE, "at its start")
    check_usable(scene, lease, "at its start")
    scene.run_to(lease.window.end)
    check_status(scene, lease, LeaseStatus.TERMINATED, "at its end")
    same(trial, empty, "after the end of the lease")


@check()
def a_lease_can_start_at_once(trial: Trial) -> None:
    """A lease from now on starts at once."""
    scene = Scene(trial)
    lease = scene.lease()
    scene.run_to(scene.clock.now())
    check_status(scene, lease, LeaseStatus.ACTIVE, "at once")
    check_usable(scene, lease, "at its start")


@check()
def parameters_survive_the_store(trial: Trial) -> None:
    """The parameters of a reservation are read as they were written."""
    scene = Scene(trial)
    for values in (trial.harness.request, *trial.harness.others):
        lease = scene.lease(values, start=LATER)
        kept, wanted = scene.now(lease).reservations[0].parameters, trial.parameters(values)
        require(kept == wanted, f"{dict(wanted.values)!r} was stored as {dict(kept.values)!r}.")
        scene.manager.leases.delete(lease.id)


@check()
def a_lease_that_is_deleted_before_its_start_leaves_nothing(trial: Trial) -> None:
    """A lease that is deleted before its start leaves nothing in the cloud, and nothing is promised."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease(start=LATER)
    scene.manager.leases.delete(lease.id)
    scene.run()
    same(trial, empty, "after the deletion")
    require(scene.now(lease).deleted_at is not None, "the lease is still there.")
    require(not scene.promised(lease), f"{sorted(scene.promised(lease))} is still promised to it.")


@check()
def a_lease_that_is_deleted_in_use_leaves_nothing(trial: Trial) -> None:
    """A lease that is deleted while it is in use leaves nothing in the cloud."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease()
    scene.run()
    scene.manager.leases.delete(lease.id)
    scene.run()
    same(trial, empty, "after the deletion")
    require(scene.now(lease).deleted_at is not None, "the lease is still there.")


@check()
def two_reservations_of_a_lease_stand_beside_each_other(trial: Trial) -> None:
    """A lease with two reservations of the type has both, and leaves nothing."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease(trial.harness.request, trial.harness.request)
    scene.run()
    check_status(scene, lease, LeaseStatus.ACTIVE, "after its start")
    check_usable(scene, lease, "after its start")
    scene.run_to(lease.window.end)
    same(trial, empty, "after the end")


@check()
def the_event_before_the_end_is_done(trial: Trial) -> None:
    """The event before the end is done at its time, and users are notified."""
    scene = Scene(trial)
    lease = scene.lease(before_end=scene.clock.now() + HOUR)
    scene.run_to(lease.window.start + HOUR)
    event = scene.now(lease).event(EventType.BEFORE_END)
    done = event is not None and event.status is EventStatus.DONE
    require(done, f"the event is {event and event.status}: {event and event.reason}.")
    require("lease.event.before_end_lease" in scene.told.types, "nobody was notified.")


@check()
def an_outage_at_the_start_only_delays_it(trial: Trial) -> None:
    """A start at which the cloud does not answer is retried until it succeeds."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    _fails_on_all(trial, CloudUnavailable("the cloud does not answer"), times=2)
    scene.run_to(lease.window.start)
    trial.faults.on_call = None
    scene.run()
    check_status(scene, lease, LeaseStatus.ACTIVE, "some minutes after an outage")
    check_usable(scene, lease, "after an outage")


@check()
def an_outage_at_the_end_only_delays_it(trial: Trial) -> None:
    """An end at which the cloud does not answer is retried until nothing is left."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease()
    scene.run()
    _fails_on_all(trial, CloudUnavailable("the cloud does not answer"), times=2)
    scene.run_to(lease.window.end)
    trial.faults.on_call = None
    scene.run()
    check_status(scene, lease, LeaseStatus.TERMINATED, "some minutes after an outage")
    same(trial, empty, "after an end with an outage")


@check()
def a_refused_start_says_why_and_leaves_nothing(trial: Trial) -> None:
    """A start that the cloud refuses is recorded with the reason; when the lease is deleted nothing is left."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease(start=LATER)
    _fails_on_all(trial, CloudRefused("the cloud refuses this"), times=10_000)
    scene.run_to(lease.window.start)
    trial.faults.on_call = None
    event = scene.now(lease).event(EventType.START)
    require(event is not None and event.reason, "the event of the start has no reason.")
    scene.manager.leases.delete(lease.id)
    scene.run()
    same(trial, empty, "after the deletion of a lease whose start was refused")


@check(PREPARES)
def a_lease_that_cannot_be_prepared_is_not_made(trial: Trial) -> None:
    """A lease whose preparation the cloud refuses is not made, and leaves nothing."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    _fails_on_all(trial, CloudRefused("the cloud refuses this"), times=1)
    try:
        lease = scene.lease(start=LATER)
    except BlazarError as error:
        trial.faults.on_call = None
        scene.run()
        require(error.message, "the error has no sentence.")
        require(not scene.manager.leases.all(None), "the lease is there although an error was answered.")
        same(trial, empty, "after a creation that failed")
        return
    # The refused call was not needed.
    trial.faults.on_call = None
    scene.run_to(lease.window.start)
    check_status(scene, lease, LeaseStatus.ACTIVE, "at its start")


@check()
def dates_change_and_resources_stay(trial: Trial) -> None:
    """A lease in use that is made longer keeps its resources, and ends at its new end."""
    scene = Scene(trial)
    lease = scene.lease()
    scene.run()
    before, cloud = scene.promised(lease), trial.site.snapshot()
    longer = scene.manager.leases.update(lease.id, LeaseChange(end=lease.window.end + HOUR))
    require(scene.promised(lease) == before, f"it had {sorted(before)}, and has {sorted(scene.promised(lease))}.")
    same(trial, cloud, "after a change of dates alone")
    scene.run_to(longer.window.end)
    check_status(scene, lease, LeaseStatus.TERMINATED, "at its new end")


@check(LARGER)
def a_lease_grows_while_it_is_in_use(trial: Trial) -> None:
    """A lease that grows in use has all of it at once, and leaves nothing at its end."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease()
    scene.run()
    count = sum(each.count for each in scene.store.calendar.of_lease(lease.id))
    scene.resize(lease, trial.harness.larger or {})
    scene.run()
    after = sum(each.count for each in scene.store.calendar.of_lease(lease.id))
    require(after > count, f"{count} was promised, and after the growth {after}.")
    check_usable(scene, lease, "after a growth")
    scene.run_to(lease.window.end)
    same(trial, empty, "after the end of a lease that grew")


@check(LARGER, SHRINKS)
def a_lease_shrinks_while_it_is_in_use(trial: Trial) -> None:
    """A lease that shrinks in use gives the rest back at once."""
    scene = Scene(trial)
    lease = scene.lease({**trial.harness.request, **(trial.harness.larger or {})})
    scene.run()
    count = sum(each.count for each in scene.store.calendar.of_lease(lease.id))
    scene.resize(lease, {key: trial.harness.request[key] for key in trial.harness.larger or {}})
    scene.run()
    after = sum(each.count for each in scene.store.calendar.of_lease(lease.id))
    require(after < count, f"{count} was promised, and after the change {after}.")
    check_usable(scene, lease, "after it has shrunk")


@check(FIXED)
def a_refused_change_changes_nothing(trial: Trial) -> None:
    """A change that is refused leaves lease and cloud as they were."""
    scene = Scene(trial)
    lease = scene.lease()
    scene.run()
    before, cloud = scene.now(lease), trial.site.snapshot()
    for values in trial.harness.fixed:
        try:
            scene.resize(lease, values)
        except (Conflict, InvalidInput):
            kept = scene.now(lease).reservations[0].parameters == before.reservations[0].parameters
            require(kept, f"the parameters were changed by {dict(values)!r}, which was refused.")
            same(trial, cloud, "after a change that was refused")
        else:
            require(False, f"a change to {dict(values)!r} is taken.")


@check(LARGER)
def a_change_that_fails_is_undone(trial: Trial) -> None:
    """A growth that the cloud refuses is undone: the lease and the cloud are as before."""
    scene = Scene(trial)
    lease = scene.lease()
    scene.run()
    before, cloud = scene.promised(lease), trial.site.snapshot()
    _fails_on_all(trial, CloudRefused("the cloud refuses this"), times=1)
    try:
        scene.resize(lease, trial.harness.larger or {})
    except BlazarError:
        trial.faults.on_call = None
        scene.run()
        require(scene.promised(lease) == before, f"{sorted(scene.promised(lease))} is promised.")
        same(trial, cloud, "after a growth that was refused")
        check_status(scene, lease, LeaseStatus.ACTIVE, "after a growth that was refused")
    else:
        trial.faults.on_call = None
        scene.run()
        check_usable(scene, lease, "after a growth")


@check(POLLS, FAILURES)
def a_resource_that_fails_is_replaced_before_the_start(trial: Trial) -> None:
    """A lease on a resource that fails before the start gets another one, and starts with it."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    before = scene.promised(lease)
    for name in before:
        if isinstance(trial.site, HasFailures):
            trial.site.fail(name)
    scene.poll()
    after = scene.promised(lease)
    require(after and not after & before, f"{sorted(before)} has failed, and {sorted(after)} is promised.")
    scene.run_to(lease.window.start)
    check_status(scene, lease, LeaseStatus.ACTIVE, "at its start")
    check_usable(scene, lease, "after it was healed")


@check(POLLS)
def a_lease_in_use_stays_healthy(trial: Trial) -> None:
    """Polls find nothing wrong with the resources of a lease in use."""
    scene = Scene(trial)
    lease = scene.lease()
    scene.run()
    scene.poll()
    failed = [r.name for r in scene.manager.resources.all(trial.kind.kind) if r.failure]
    require(not failed, f"{failed} count as failed.")
    require(not scene.now(lease).degraded, "the lease is degraded.")


@check(ENTERS)
def resources_that_are_unregistered_are_as_before(trial: Trial) -> None:
    """Registered resources that had a lease are as before their registration once they are unregistered."""
    first = trial.another().site.snapshot()
    scene = Scene(trial)
    lease = scene.lease()
    scene.run_to(lease.window.end)
    for each in scene.manager.resources.all(trial.kind.kind):
        scene.manager.resources.unregister(trial.kind.kind, each.external_id)
    same(trial, first, "after all resources were unregistered")


@check()
def a_resource_that_is_promised_cannot_be_unregistered(trial: Trial) -> None:
    """A resource that is promised to a lease cannot be unregistered, and can be when the lease is deleted."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    kind, resources = trial.kind.kind, scene.manager.resources
    promised = [each for each in resources.all(kind) if each.name in scene.promised(lease)]
    for each in promised:
        try:
            resources.unregister(kind, each.external_id)
        except Conflict:
            continue
        require(False, f"{each.name} could be unregistered.")
    scene.manager.leases.delete(lease.id)
    scene.run()
    for each in promised:
        resources.unregister(kind, each.external_id)
    left = {each.name for each in resources.all(kind)} & {each.name for each in promised}
    require(not left, f"{sorted(left)} is still registered.")


@check()
def reservations_have_the_status_of_their_lease(trial: Trial) -> None:
    """Reservations are pending, active and deleted with their lease."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    seen = [scene.now(lease).reservations[0].status]
    for instant in (lease.window.start, lease.window.end):
        scene.run_to(instant)
        seen.append(scene.now(lease).reservations[0].status)
    wanted = [ReservationStatus.PENDING, ReservationStatus.ACTIVE, ReservationStatus.DELETED]
    require(seen == wanted, f"they were {seen}.")
