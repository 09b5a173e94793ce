# SPDX-License-Identifier: Apache-2.0
"""What happens beside the usual life: changes before the start, accidents, users who go on, and others meanwhile."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from blazar.model.base.errors import BlazarError, Conflict, InvalidInput
from blazar.model.base.json_text import Json
from blazar.resources.contract.values import NotYet, Task
from blazarconformance.catalogue import (
    ACCIDENTS,
    CHANGES,
    FIXED,
    LARGER,
    MENDS,
    PREPARES,
    SHRINKS,
    SLOW_DELETIONS,
    USERS,
    check,
    require,
)
from blazarconformance.demands import changed
from blazarconformance.ensures import differences, grown, same, use, wreck
from blazarconformance.failures import points, refused, retried, unavailable, undo
from blazarconformance.harness import HasSlowDeletions
from blazarconformance.trial import Trial, as_active


def _changed_and_prepared(trial: Trial, task: Task, values: Json) -> Task:
    """Return a prepared reservation after a change before its start, prepared again if the type says so."""
    after = changed(trial, task, values)
    if trial.type.must_prepare_again(task.reservation.parameters, after.reservation.parameters):
        return trial.prepared(after)
    return after


@check(PREPARES, CHANGES, FIXED)
def a_change_before_the_start_is_as_a_new_reservation(trial: Trial) -> None:
    """A reservation that is changed before its start is prepared as a new one with the same parameters."""
    for values in (*trial.harness.fixed, trial.harness.larger or {}):
        one, other = trial.another(), trial.another()
        task = one.prepared(one.task())
        try:
            after = _changed_and_prepared(one, task, values)
        except (InvalidInput, Conflict):
            continue
        other.prepared(other.task({**trial.harness.request, **values}))
        wanted, found = other.site.snapshot(), one.site.snapshot()
        require(found == wanted, f"after {dict(values)!r} the cloud has {differences(wanted, found)}.")
        one.ended(after)
        empty = trial.another()
        require(empty.resources, "the harness registers no resources.")
        same(one, empty.site.snapshot(), f"after {dict(values)!r} and the end")


@check(PREPARES, CHANGES, FIXED)
def a_change_before_the_start_can_be_undone(trial: Trial) -> None:
    """An undone change before the start leaves what was prepared before it."""
    for values in trial.harness.fixed:
        one = trial.another()
        task = one.prepared(one.task())
        before = one.site.snapshot()
        with suppress(InvalidInput, Conflict):
            after = _changed_and_prepared(one, task, values)
            # What the change has made is known by the ids that were stored with it.
            undo(one, _with_ids_of(task, after))
        same(one, before, f"after an undone change to {dict(values)!r}")


@check(ACCIDENTS, MENDS)
def a_start_in_use_mends_what_was_deleted_by_hand(trial: Trial) -> None:
    """A start of a reservation in use makes again what somebody has deleted by hand."""
    task = trial.in_use()
    wreck(trial, task)
    trial.started(task)
    require(
        trial.usable(task) == trial.promised(task),
        f"{sorted(trial.usable(task))} can be used, not {sorted(trial.promised(task))}.",
    )


@check(USERS, SLOW_DELETIONS)
def an_end_ends_although_users_go_on(trial: Trial) -> None:
    """An end is done in the end although users build more while it is under way."""
    require(trial.resources, "the harness registers no resources.")
    empty = trial.site.snapshot()
    task = trial.in_use()
    use(trial, task)
    if isinstance(trial.site, HasSlowDeletions):
        trial.site.slow(timedelta(minutes=2))
    progress = trial.type.end(task)
    with suppress(BlazarError):
        if isinstance(progress, NotYet):
            # Perhaps the cloud still lets them.
            use(trial, task)
    trial.ended(task)
    same(trial, empty, "after the end")


@check(CHANGES, LARGER, SHRINKS)
def a_reservation_that_shrank_has_what_is_left(trial: Trial) -> None:
    """A reservation that shrinks in use can use what is left, as one that was never larger."""
    small = trial.in_use()
    before = trial.site.snapshot()
    large = trial.started(grown(trial, small))
    require(trial.site.snapshot() != before, "the change of the harness is not larger.")
    # As a manager does: the rest is returned, and what stays is ensured.
    shrunk = as_active(small)
    surplus = tuple(r for r in large.resources if r.id not in small.counts)
    trial.done(lambda each: trial.type.restore(each, surplus), shrunk)
    trial.started(shrunk)
    same(trial, before, "after it has shrunk")


@check(CHANGES, LARGER, slow=True)
def an_undone_growth_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """An undo of a growth that failed at any call is finished by the next one."""

    def arrange(one: Trial) -> Task:
        small = one.in_use()
        one.started(grown(one, small))
        return small

    def undo_growth(one: Trial, small: Task) -> None:
        large = one.task({**trial.harness.request, **(trial.harness.larger or {})})
        surplus = tuple(r for r in large.resources if r.id not in small.counts)
        one.done(lambda each: one.type.restore(each, surplus), small)

    retried(trial, arrange, undo_growth, unavailable)


@check(USERS, slow=True)
def others_keep_what_they_have_whatever_fails(trial: Trial) -> None:
    """While start and end of one reservation fail at any call, another one keeps all it has."""
    skip = trial.room_beside()
    others: dict[Trial, tuple[Task, frozenset[str]]] = {}

    def beside(one: Trial) -> Task:
        other = one.in_use(number=2, skip=skip)
        use(one, other)
        others[one] = other, one.usable(other)
        return one.prepared(one.task())

    def live(one: Trial, task: Task) -> None:
        one.ended(one.started(task))

    for error in (unavailable, refused):
        for point in points(trial, beside, live, error):
            other, before = others[point.trial]
            after = point.trial.usable(other)
            require(after == before, f"{point.at} another reservation had {sorted(before)}, and has {sorted(after)}.")
            point.trial.ended(point.task)
            used = sum(point.trial.type.in_use(other).values())
            built = sum(other.counts.values())
            require(used in (0, built), f"{point.at} of {built} that others have built {used} are left.")


def _with_ids_of(task: Task, after: Task) -> Task:
    return replace(task, reservation=replace(task.reservation, cloud_ids=after.reservation.cloud_ids))
