# SPDX-License-Identifier: Apache-2.0
"""What is ensured in the cloud: before the start, at the start, at the end, in any order and as often as one likes."""

from __future__ import annotations

from datetime import timedelta

from blazar.model.base.json_text import Json
from blazar.model.base.reasons import Cause
from blazar.resources.contract.values import Action, NotYet, Task
from blazarconformance.catalogue import (
    ACCIDENTS,
    CHANGES,
    LARGER,
    PREPARES,
    SAVES_WORK,
    SLOW_DELETIONS,
    USERS,
    check,
    require,
)
from blazarconformance.demands import changed
from blazarconformance.harness import HasAccidents, HasSlowDeletions, HasUsers
from blazarconformance.trial import HOUR, Trial, as_active, without_ids


def differences(before: Json, after: Json) -> str:
    """Return in a few words what differs between two snapshots."""
    keys = sorted(key for key in {**before, **after} if before.get(key) != after.get(key))
    return "; ".join(f"{key}: {str(after.get(key))[:300]} instead of {str(before.get(key))[:300]}" for key in keys)


def same(trial: Trial, before: Json, when: str) -> None:
    """Require that the cloud is as a snapshot says."""
    after = trial.site.snapshot()
    require(after == before, f"{when} the cloud is not as it should be: {differences(before, after)}.")


def use(trial: Trial, task: Task) -> None:
    """Let a user build on a reservation."""
    if isinstance(trial.site, HasUsers):
        trial.site.use(task)


@check(PREPARES)
def prepare_twice_is_as_once(trial: Trial) -> None:
    """What must exist before the start is there once, however often it is ensured."""
    task = trial.prepared(trial.task())
    before = trial.site.snapshot()
    again = trial.prepared(task)
    same(trial, before, "after the second prepare")
    require(again == task, "the second prepare returned other cloud ids.")


@check(PREPARES)
def prepare_finds_what_it_made_without_its_ids(trial: Trial) -> None:
    """What a killed manager prepared is found by its name, and is not made twice."""
    task = trial.prepared(trial.task())
    before = trial.site.snapshot()
    again = trial.prepared(without_ids(task))
    same(trial, before, "after a second prepare without the cloud ids of the first")
    require(again == task, "the second prepare returned other cloud ids.")


@check()
def nobody_can_use_it_before_the_start(trial: Trial) -> None:
    """Before the start a project can use nothing of its reservation."""
    task = trial.prepared(trial.task())
    require(not trial.usable(task), f"{sorted(trial.usable(task))} can be used before the start.")


@check()
def a_start_gives_exactly_what_is_promised(trial: Trial) -> None:
    """After the start the project can use the resources that are promised to it, and no others."""
    task = trial.in_use()
    require(
        trial.usable(task) == trial.promised(task),
        f"{sorted(trial.usable(task))} can be used, not {sorted(trial.promised(task))}.",
    )


@check()
def every_valid_request_can_start_and_end(trial: Trial) -> None:
    """Every valid request lives from its start to its end, and leaves nothing."""
    for number, values in enumerate(trial.harness.others, 1):
        empty = trial.site.snapshot() if trial.resources else {}
        task = trial.in_use(values, number=number)
        require(trial.usable(task) == trial.promised(task), f"{dict(values)!r} gives {sorted(trial.usable(task))}.")
        trial.ended(task)
        same(trial, empty, "after the end")


@check()
def start_twice_is_as_once(trial: Trial) -> None:
    """A start that is called again makes nothing twice, as after a crash whose success was not stored."""
    prepared = trial.prepared(trial.task())
    trial.started(prepared)
    before = trial.site.snapshot()
    trial.started(prepared)
    same(trial, before, "after the second start")


@check()
def start_in_use_changes_nothing(trial: Trial) -> None:
    """A start of a reservation in use that has everything changes nothing."""
    task = trial.in_use()
    before = trial.site.snapshot()
    trial.started(task)
    same(trial, before, "after a start in use")


@check(USERS)
def start_in_use_leaves_what_users_have_built(trial: Trial) -> None:
    """A start of a reservation in use touches nothing that its users have built."""
    task = trial.in_use()
    use(trial, task)
    before = trial.site.snapshot()
    trial.started(task)
    same(trial, before, "after a start in use")


@check()
def the_end_leaves_nothing(trial: Trial) -> None:
    """After the end the cloud is as it was before the reservation."""
    empty = _empty(trial)
    task = trial.in_use()
    require(trial.site.snapshot() != empty, "the snapshot of the site does not show a started reservation.")
    trial.ended(task)
    same(trial, empty, "after the end")
    require(not trial.usable(task), f"{sorted(trial.usable(task))} can be used after the end.")


@check()
def end_twice_is_as_once(trial: Trial) -> None:
    """An end that is called again finds nothing to do, and does no harm."""
    empty = _empty(trial)
    task = trial.in_use()
    trial.ended(task)
    trial.ended(task)
    same(trial, empty, "after the second end")


@check()
def an_end_without_a_start_leaves_nothing(trial: Trial) -> None:
    """A reservation that is deleted before its start leaves nothing."""
    empty = _empty(trial)
    trial.ended(trial.prepared(trial.task()))
    same(trial, empty, "after the end of a reservation that never started")


@check()
def an_end_of_what_was_never_made_changes_nothing(trial: Trial) -> None:
    """A reservation of which nothing was made can be ended."""
    empty = _empty(trial)
    trial.ended(trial.task())
    same(trial, empty, "after the end of a reservation of which nothing was made")


@check()
def an_end_needs_no_stored_ids(trial: Trial) -> None:
    """The end finds all by its name: a manager may be killed before ids are stored."""
    empty = _empty(trial)
    trial.ended(without_ids(trial.in_use()))
    same(trial, empty, "after an end without stored cloud ids")


@check()
def another_manager_starts_what_one_has_started(trial: Trial) -> None:
    """A start is called again by another manager, which knows only the cloud, and makes nothing twice."""
    prepared = trial.prepared(trial.task())
    trial.started(prepared)
    before = trial.site.snapshot()
    trial.taken_over()
    trial.started(prepared)
    same(trial, before, "after a second start by another manager")


@check()
def another_manager_ends_what_one_has_started(trial: Trial) -> None:
    """An end by another manager, which knows only the cloud, leaves nothing."""
    empty = _empty(trial)
    task = trial.in_use()
    trial.taken_over()
    trial.ended(task)
    same(trial, empty, "after the end by another manager")


@check(USERS)
def the_end_removes_what_users_have_built(trial: Trial) -> None:
    """The end removes what users have built on the reservation."""
    empty = _empty(trial)
    task = trial.in_use()
    before = trial.site.snapshot()
    use(trial, task)
    require(trial.site.snapshot() != before, "the snapshot of the site does not show what users have built.")
    trial.ended(task)
    same(trial, empty, "after the end of a reservation in use")


@check(USERS, SLOW_DELETIONS)
def an_end_waits_without_a_thread(trial: Trial) -> None:
    """An end that takes time says when to look again, why, and for whose resources; then it is done."""
    empty = _empty(trial)
    task = trial.in_use()
    use(trial, task)
    if isinstance(trial.site, HasSlowDeletions):
        trial.site.slow(timedelta(minutes=2))
    progress = trial.type.end(task)
    if not isinstance(progress, NotYet):
        require(False, "the end is done although what users built is still there.")
        return
    _check_not_yet(progress, task)
    trial.ended(task)
    same(trial, empty, "after an end that took time")


@check(ACCIDENTS)
def an_end_after_everything_was_deleted_by_hand(trial: Trial) -> None:
    """An end succeeds although somebody has deleted by hand what was made, and leaves nothing."""
    empty = _empty(trial)
    task = trial.in_use()
    wreck(trial, task)
    trial.ended(task)
    same(trial, empty, "after the end of what was deleted by hand")


@check(ACCIDENTS)
def a_start_after_everything_was_deleted_by_hand(trial: Trial) -> None:
    """A start makes again what somebody has deleted by hand before it."""
    task = trial.prepared(trial.task())
    wreck(trial, task)
    started = trial.started(task)
    require(
        trial.usable(started) == trial.promised(task),
        f"{sorted(trial.usable(started))} can be used, not {sorted(trial.promised(task))}.",
    )


@check()
def reservations_do_not_touch_each_other(trial: Trial) -> None:
    """The start and the end of one reservation change nothing of another."""
    first = trial.in_use()
    before = trial.site.snapshot()
    skip = trial.room_beside()
    second = trial.in_use(number=2, skip=skip)
    require(
        trial.usable(first) == trial.promised(first), "the start of another reservation changed what this one can use."
    )
    trial.ended(second)
    same(trial, before, "after start and end of another reservation")


@check(USERS)
def an_end_leaves_what_others_have_built(trial: Trial) -> None:
    """The end of one reservation removes nothing that users of another have built."""
    first = trial.in_use()
    use(trial, first)
    before = trial.site.snapshot()
    skip = trial.room_beside()
    second = trial.in_use(number=2, skip=skip)
    use(trial, second)
    trial.ended(second)
    same(trial, before, "after the end of another reservation in use")


@check()
def resources_are_used_again(trial: Trial) -> None:
    """After the end the same resources can be given to another reservation, and taken back."""
    empty = _empty(trial)
    trial.ended(trial.in_use())
    task = trial.in_use(number=2)
    require(
        trial.usable(task) == trial.promised(task),
        f"{sorted(trial.usable(task))} can be used, not {sorted(trial.promised(task))}.",
    )
    trial.ended(task)
    same(trial, empty, "after the second end")


@check()
def an_undone_change_puts_back_what_was(trial: Trial) -> None:
    """An undone change of a reservation in use leaves it as it was."""
    task = trial.in_use()
    before = trial.site.snapshot()
    trial.done(lambda each: trial.type.restore(each, ()), task)
    same(trial, before, "after restore")


@check()
def an_undone_change_before_the_start_opens_nothing(trial: Trial) -> None:
    """An undone change before the start leaves the reservation closed."""
    task = trial.prepared(trial.task())
    before = trial.site.snapshot()
    trial.done(lambda each: trial.type.restore(each, ()), task)
    same(trial, before, "after restore")
    require(not trial.usable(task), f"{sorted(trial.usable(task))} can be used before the start.")


@check(CHANGES, LARGER)
def a_reservation_that_grew_has_all_of_it(trial: Trial) -> None:
    """After a change in use the project has what is promised after the change, and its end leaves nothing."""
    empty = _empty(trial)
    small = trial.in_use()
    large = grown(trial, small)
    large = trial.started(large)
    require(
        trial.usable(large) == trial.promised(large),
        f"{sorted(trial.usable(large))} can be used, not {sorted(trial.promised(large))}.",
    )
    trial.ended(large)
    same(trial, empty, "after the end of a reservation that grew")


@check(CHANGES, LARGER)
def a_growth_that_is_undone_leaves_no_more_than_before(trial: Trial) -> None:
    """A growth that was made and then undone leaves what was before, and returns the rest."""
    small = trial.in_use()
    before = trial.site.snapshot()
    large = trial.started(grown(trial, small))
    surplus = tuple(r for r in large.resources if r.id not in small.counts)
    trial.done(lambda each: trial.type.restore(each, surplus), small)
    same(trial, before, "after an undone growth")


@check()
def the_action_before_the_end_is_one_of_ours(trial: Trial) -> None:
    """A reservation names an action before the end that there is."""
    for values in (trial.harness.request, *trial.harness.others):
        action = trial.type.action(trial.parameters(values))
        require(isinstance(action, Action), f"action returned {action!r}.")


@check(SAVES_WORK)
def the_action_before_the_end_takes_nothing_away(trial: Trial) -> None:
    """After the action before the end, asked for twice, the project has what it had."""
    for number, values in enumerate((trial.harness.request, *trial.harness.others), 1):
        task = trial.in_use(values, number=number)
        use(trial, task)
        trial.done(trial.type.before_end, task)
        after = trial.site.snapshot()
        trial.done(trial.type.before_end, task)
        same(trial, after, "after the second before_end")
        require(trial.usable(task) == trial.promised(task), f"only {sorted(trial.usable(task))} can be used.")
        trial.ended(task)


def _empty(trial: Trial) -> Json:
    """Return the cloud as it is with all resources prepared, before any reservation."""
    require(trial.resources, "the harness registers no resources.")
    return trial.site.snapshot()


def wreck(trial: Trial, task: Task) -> None:
    """Let somebody delete by hand what a reservation has."""
    if isinstance(trial.site, HasAccidents):
        trial.site.wreck(task.reservation.id)


def grown(trial: Trial, small: Task) -> Task:
    """Return a reservation in use with the parameters and the resources after its growth."""
    larger = trial.harness.larger or {}
    after = changed(trial, small, larger)
    placed = trial.task({**trial.harness.request, **larger})
    require(placed.counts.keys() >= small.counts.keys(), "the harness cannot place what is larger on what was held.")
    return as_active(Task(after.lease, after.reservation, placed.resources, placed.counts))


def _check_not_yet(progress: NotYet, task: Task) -> None:
    require(timedelta(0) < progress.after <= HOUR, f"the next look is after {progress.after}.")
    require(progress.reason.strip(), "NotYet has no reason.")
    cause = progress.cause
    own = {resource.id for resource in task.resources}
    require(isinstance(cause, Cause), f"the cause of NotYet is {cause!r}.")
    require(cause.resources <= own, f"the cause names resources {sorted(cause.resources - own)} of others.")
