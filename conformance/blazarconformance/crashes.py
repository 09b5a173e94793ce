# SPDX-License-Identifier: Apache-2.0
"""Managers that are killed in the middle of their work, call by call: another one finishes it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial

from blazar.model.base.errors import BlazarError, NotEnoughResources
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazarconformance.catalogue import LARGER, PREPARES, check, require
from blazarconformance.ensures import same
from blazarconformance.failures import Killed
from blazarconformance.life import check_status, check_usable
from blazarconformance.scene import LATER, Scene
from blazarconformance.trial import HOUR, Trial

MOST_CALLS = 200


def _dies(scene: Scene, act: Callable[[], object], step: int) -> bool:
    """Kill the manager after a call of what it does, and let another take over; return whether there was that call."""
    left = [step]

    def kill(_: str, at: str) -> None:
        if at == "after":
            left[0] -= 1
        if left[0] <= 0:
            # Nothing more of what a dead manager would do takes effect.
            raise Killed

    scene.trial.faults.on_call = kill
    try:
        act()
    except Killed:
        return True
    finally:
        scene.trial.faults.on_call = None
        scene.take_over()
    return False


def _deleted(scene: Scene, lease: Lease) -> None:
    scene.manager.leases.delete(lease.id)
    scene.run()
    require(scene.now(lease).deleted_at is not None, "the lease cannot be deleted.")


@check(slow=True)
def a_start_is_finished_by_another_manager(trial: Trial) -> None:
    """A start whose manager is killed after any call is finished by another manager."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    for step in range(1, MOST_CALLS):
        lease = scene.lease(start=LATER)
        died = _dies(scene, partial(scene.run_to, lease.window.start), step)
        scene.run()
        check_status(scene, lease, LeaseStatus.ACTIVE, f"after a crash after call {step} of the start")
        check_usable(scene, lease, f"after a crash after call {step} of the start")
        _deleted(scene, lease)
        same(trial, empty, f"after a crash after call {step} of the start, and the deletion of the lease,")
        if not died:
            return


@check(slow=True)
def an_end_is_finished_by_another_manager(trial: Trial) -> None:
    """An end whose manager is killed after any call is finished by another manager."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    for step in range(1, MOST_CALLS):
        lease = scene.lease()
        scene.run()
        died = _dies(scene, partial(scene.run_to, lease.window.end), step)
        # It may have died in the event before the end.
        scene.run_to(lease.window.end)
        scene.run()
        check_status(scene, lease, LeaseStatus.TERMINATED, f"after a crash after call {step} of the end")
        same(trial, empty, f"after a crash after call {step} of the end")
        if not died:
            return


@check(PREPARES, slow=True)
def a_creation_is_finished_or_undone_by_another_manager(trial: Trial) -> None:
    """A creation whose manager is killed after any call leaves a whole lease or nothing."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    for step in range(1, MOST_CALLS):
        died = _dies(scene, lambda: scene.lease(start=LATER), step)
        scene.run()
        for lease in scene.manager.leases.all(None):
            _deleted(scene, lease)
        same(trial, empty, f"after a crash after call {step} of a creation")
        if not died:
            return


@check(LARGER, slow=True)
def a_growth_is_finished_or_undone_by_another_manager(trial: Trial) -> None:
    """A growth whose manager is killed after any call leaves the lease with all that is promised to it."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    for step in range(1, MOST_CALLS):
        lease = scene.lease(hours=4)
        scene.run()
        died = _dies(scene, partial(scene.resize, lease, trial.harness.larger or {}), step)
        scene.run()
        check_status(scene, lease, LeaseStatus.ACTIVE, f"after a crash after call {step} of a growth")
        check_usable(scene, lease, f"after a crash after call {step} of a growth")
        _deleted(scene, lease)
        same(trial, empty, f"after a crash after call {step} of a growth, and the deletion of the lease,")
        if not died:
            return


@check(slow=True)
def random_leases_have_exactly_what_is_promised(trial: Trial) -> None:
    """While random leases come, change and go, each can use what is promised to it; in the end nothing is left."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    dice = random.Random(11)
    for _ in itertools.repeat(None, 24):
        live = [each for each in scene.manager.leases.all(None) if each.status is not LeaseStatus.TERMINATED]
        try:
            if live and dice.random() < 0.2:
                scene.manager.leases.delete(dice.choice(live).id)
            elif live and trial.harness.larger and dice.random() < 0.2:
                scene.resize(dice.choice(live), trial.harness.larger)
            else:
                values = dice.choice((trial.harness.request, *trial.harness.others))
                scene.lease(values, start=dice.randint(0, 2) * HOUR, hours=dice.randint(1, 5))
        except NotEnoughResources:
            pass
        except BlazarError as error:
            require(error.status < 500, f"{type(error).__name__} was answered: {error.message}.")
        scene.run_to(scene.clock.now() + HOUR / 2)
        for lease in scene.manager.leases.all(None):
            if lease.status is LeaseStatus.ACTIVE:
                check_usable(scene, lease, f"at {scene.clock.now():%H:%M}")
            elif lease.status is LeaseStatus.TERMINATED:
                require(not scene.usable(lease), "something can be used after the end.")
    scene.run_to(scene.clock.now() + 12 * HOUR)
    same(trial, empty, "after the end of all leases")
