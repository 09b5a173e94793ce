# SPDX-License-Identifier: Apache-2.0
"""The sweep: a type lists which reservations have something in the cloud, and what is left of past ones goes."""

from __future__ import annotations

from blazar.resources.contract.values import Task
from blazarconformance.catalogue import ACCIDENTS, LISTS, PREPARES, USERS, check, require
from blazarconformance.ensures import differences, same, use, wreck
from blazarconformance.scene import LATER, Scene
from blazarconformance.trial import Trial


def _listed(trial: Trial) -> frozenset[str]:
    return trial.type.reservations_in_cloud(trial.resources)


@check(LISTS)
def an_empty_cloud_has_no_reservations(trial: Trial) -> None:
    """In a cloud without reservations none is listed."""
    require(not _listed(trial), f"{sorted(_listed(trial))} are listed.")


@check(LISTS)
def started_reservations_are_listed(trial: Trial) -> None:
    """Exactly the reservations that have something in the cloud are listed."""
    task = trial.in_use()
    require(_listed(trial) == {task.reservation.id}, f"{sorted(_listed(trial))} are listed, not the one in use.")


@check(LISTS, PREPARES)
def only_prepared_reservations_are_listed_or_not_at_all(trial: Trial) -> None:
    """A reservation that is only prepared is listed by its own id, or not at all."""
    task = trial.prepared(trial.task())
    require(_listed(trial) <= {task.reservation.id}, f"{sorted(_listed(trial))} are listed.")


@check(LISTS)
def ended_reservations_are_not_listed(trial: Trial) -> None:
    """After the end a reservation is not listed, and others are."""
    skip = trial.room_beside()
    first, second = trial.in_use(), trial.in_use(number=2, skip=skip)
    trial.ended(first)
    require(_listed(trial) == {second.reservation.id}, f"{sorted(_listed(trial))} are listed, not the one in use.")


@check(LISTS)
def the_cost_of_the_list_does_not_grow(trial: Trial) -> None:
    """The number of calls for the list does not depend on the number of reservations."""
    skip = trial.room_beside()
    trial.in_use()
    with trial.counted() as one:
        _listed(trial)
    trial.in_use(number=2, skip=skip)
    with trial.counted() as two:
        _listed(trial)
    require(len(one) == len(two), f"it took {len(one)} calls for one reservation and {len(two)} for two: {two}.")


@check(LISTS)
def the_list_changes_nothing(trial: Trial) -> None:
    """The list is read, and nothing is changed."""
    trial.in_use()
    before = trial.site.snapshot()
    _listed(trial)
    require(trial.site.snapshot() == before, "the cloud was changed by reservations_in_cloud.")


@check(LISTS, ACCIDENTS)
def what_was_deleted_by_hand_ends_and_is_not_listed(trial: Trial) -> None:
    """After the end of what was deleted by hand nothing is listed."""
    task = trial.in_use()
    wreck(trial, task)
    trial.ended(task)
    require(not _listed(trial), f"{sorted(_listed(trial))} are listed.")


@check(LISTS)
def leftovers_are_swept(trial: Trial) -> None:
    """What is left of a lease that is over is found and removed."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    lease = scene.lease()
    scene.run()
    started = scene.now(lease)
    scene.run_to(lease.window.end)
    over = scene.now(lease)
    same(trial, empty, "after the end")
    # As if the calls of a manager that stood still took effect only now.
    held = scene.store.calendar.ever_assigned(lease.id)[lease.reservations[0].id]
    resources = tuple(scene.store.resources.by_ids(held).values())
    trial.in_use_again(Task(started, started.reservations[0], resources, dict.fromkeys(held, 1)))
    require(trial.site.snapshot() != empty, "a start made nothing that the snapshot shows.")
    require(scene.manager.sweep.run_once() == 1, "the sweep does not find what is left.")
    scene.run()
    same(trial, empty, "after the sweep")
    require(scene.now(lease).status is over.status, "the sweep changed the status of the lease.")


@check(LISTS)
def the_sweep_leaves_what_is_in_use(trial: Trial) -> None:
    """The sweep touches nothing of leases that are in use or pending."""
    scene = Scene(trial)
    scene.lease(), scene.lease(start=LATER)
    scene.run()
    before = trial.site.snapshot()
    require(scene.manager.sweep.run_once() == 0, "the sweep takes a live lease for one that is over.")
    scene.run()
    same(trial, before, "after a sweep")


@check(LISTS, USERS)
def the_sweep_leaves_what_others_have(trial: Trial) -> None:
    """The sweep touches nothing that is of no reservation on record."""
    scene = Scene(trial)
    task = trial.in_use(number=77)
    use(trial, task)
    before = trial.site.snapshot()
    require(scene.manager.sweep.run_once() == 0, "the sweep takes what is not on record for a lease that is over.")
    scene.run()
    after = trial.site.snapshot()
    require(after == before, f"after a sweep the cloud has {differences(before, after)}.")
