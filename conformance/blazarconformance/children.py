# SPDX-License-Identifier: Apache-2.0
"""What a reservation is made of: other reservations, which are booked, counted, started and ended with it."""

from __future__ import annotations

from blazar.enforcement import Question
from blazar.model.base.errors import NotEnoughResources
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseRequest, ReservationRequest
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.resources.contract.values import Child, Progress, Task
from blazarconformance.catalogue import CHILDREN, check, require
from blazarconformance.ensures import same
from blazarconformance.failures import refused
from blazarconformance.life import check_status
from blazarconformance.scene import LATER, Scene
from blazarconformance.trial import HOUR, PROJECT, Trial
from blazarconformance.visible import Seen


def _parts(scene: Scene, lease: Lease) -> tuple[Reservation, tuple[Reservation, ...]]:
    """Return the first reservation of a lease as it is by now, and what it is made of."""
    now = scene.now(lease)
    return now.reservations[0], now.children(now.reservations[0].id)


@check(CHILDREN)
def the_same_parameters_have_the_same_children(trial: Trial) -> None:
    """What a reservation is made of follows from its parameters alone, in one order, without a call to the cloud."""
    for values in (trial.harness.request, *trial.harness.others):
        parameters = trial.parameters(values)
        with trial.counted() as calls:
            first, second = trial.type.children(parameters), trial.type.children(parameters)
        require(not calls, f"children made the calls {calls}.")
        require(first == second, f"children is not pure: it was {first}, and then {second}.")


@check(CHILDREN)
def children_are_requests_that_their_types_take(trial: Trial) -> None:
    """Each child is a request of another type, valid as it is, and follows from a parameter that was sent."""
    for values in (trial.harness.request, *trial.harness.others):
        parameters = trial.parameters(values)
        require(trial.demands(parameters), "it has no children.")
        for child in trial.type.children(parameters):
            _check_child(trial, child, values)


def _check_child(trial: Trial, child: Child, values: object) -> None:
    require(child.resource_type != trial.type.resource_type, "a child is of the type itself.")
    named = child.pointer.split("/")[1:2]
    fits = not child.pointer or (isinstance(values, dict) and named and named[0] in values)
    require(fits, f"a child points at {child.pointer!r}, which is not in the request.")


@check(CHILDREN)
def children_are_booked_and_it_takes_nothing_itself(trial: Trial) -> None:
    """A lease has what a reservation is made of, in its order, and only these hold resources."""
    scene = Scene(trial)
    for values in (trial.harness.request, *trial.harness.others):
        lease = scene.lease(values, start=LATER)
        parent, parts = _parts(scene, lease)
        wanted = [each.resource_type for each in trial.type.children(parent.parameters)]
        require([each.resource_type for each in parts] == wanted, f"it is made of {parts}, and not of {wanted}.")
        holders = {each.reservation_id for each in scene.store.calendar.of_lease(lease.id)}
        require(holders == {each.id for each in parts}, f"resources are held by {holders}, and not by {parts}.")
        scene.manager.leases.delete(lease.id)


@check(CHILDREN)
def what_does_not_fit_whole_is_not_booked_in_part(trial: Trial) -> None:
    """A reservation for which there is room for some of its children is refused, and none of them is booked."""
    scene = Scene(trial)
    fits = trial.harness.fits
    before = trial.site.snapshot()
    try:
        scene.lease(*([trial.harness.request] * (fits + 1)), start=LATER)
    except NotEnoughResources:
        require(not scene.manager.leases.all(None), "the lease that was refused is there.")
        require(
            not scene.store.calendar.load_live(trial.kind.kind), "resources are promised to a lease that was refused."
        )
        same(trial, before, "after a lease that was refused")
        return
    require(False, f"a lease of one more than {fits} was made.")


@check(CHILDREN)
def it_is_counted_once(trial: Trial) -> None:
    """Usage enforcement counts a reservation as what it is made of, once."""
    seen = Seen()
    scene = Scene(trial, filters=[seen])
    scene.lease(start=LATER)
    whole = seen.questions[-1]
    alone = tuple(
        ReservationRequest(child.resource_type, child.parameters) for child in trial.type.children(trial.parameters())
    )
    now = scene.clock.now()
    scene.manager.leases.create(
        LeaseRequest("parts", "curie", PROJECT, now + LATER, now + LATER + 2 * HOUR, reservations=alone)
    )
    parts = seen.questions[-1]
    counted, wanted = _measures(whole), _measures(parts)
    require(counted and counted == wanted, f"it counts as {counted}, and what it is made of as {wanted}.")


def _measures(question: Question) -> dict[str, float]:
    return {name: amount for name, amount in question.wanted.measures.items() if amount}


@check(CHILDREN)
def it_starts_after_its_children_and_ends_before_them(trial: Trial) -> None:
    """What a reservation is made of is in use from before its start until after its end."""
    seen: list[tuple[str, frozenset[ReservationStatus]]] = []
    plain = trial.site.type
    start, end = plain.start, plain.end

    def noted(what: str, task: Task) -> None:
        seen.append((what, frozenset(each.status for each in task.children)))

    def started(task: Task) -> Progress:
        noted("start", task)
        return start(task)

    def ended(task: Task) -> Progress:
        noted("end", task)
        return end(task)

    plain.start, plain.end = started, ended  # type: ignore[method-assign]
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    scene.run_to(lease.window.start)
    scene.run()
    check_status(scene, lease, LeaseStatus.ACTIVE, "after its start")
    scene.run_to(lease.window.end)
    scene.run()
    require({what for what, _ in seen} == {"start", "end"}, f"only {seen} was called.")
    wrong = [each for each in seen if each[1] != {ReservationStatus.ACTIVE}]
    require(not wrong, f"its children were not in use at {wrong}.")
    left = {each.status for each in _parts(scene, lease)[1]}
    require(left == {ReservationStatus.DELETED}, f"after its end they are {left}.")


@check(CHILDREN)
def a_start_uses_what_its_children_have(trial: Trial) -> None:
    """At its start it is made of what its children have: without that, nothing is left for it."""
    task = trial.in_use()
    can, has = trial.usable(task), trial.promised(task)
    require(can == has, f"{sorted(can)} can be used, and its children have {sorted(has)}.")
    trial.end_children(task)
    left = trial.usable(task)
    require(not left, f"{sorted(left)} can be used by it although its children have ended: it is on nothing reserved.")


@check(CHILDREN)
def children_are_gone_with_it(trial: Trial) -> None:
    """When the lease is deleted, before its start or in use, nothing of its children is left."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    for start in (LATER, None):
        lease = scene.lease(start=start)
        scene.run()
        scene.manager.leases.delete(lease.id)
        scene.run()
        held = scene.store.calendar.of_lease(lease.id)
        require(not held, f"{held} is still promised after the deletion.")
        same(trial, empty, "after the deletion")


@check(CHILDREN)
def a_refused_start_of_it_ends_its_children_too(trial: Trial) -> None:
    """If the cloud refuses it, what it is made of ends with the lease, and nothing is left."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease(start=LATER)
    plain = trial.site.type

    def refuses(task: Task) -> Progress:
        raise refused()

    start, plain.start = plain.start, refuses  # type: ignore[method-assign]
    scene.run_to(lease.window.start)
    scene.run()
    plain.start = start  # type: ignore[method-assign]
    scene.run_to(lease.window.end)
    scene.run()
    same(trial, empty, "after the end of a lease whose start was refused")
