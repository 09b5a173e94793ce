# SPDX-License-Identifier: Apache-2.0
"""Failures at every call: before it has an effect, and after it had one and the answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable
from blazar.model.base.json_text import Json
from blazar.resources.contract.values import Task, Unusable
from blazarconformance.catalogue import CHANGES, LARGER, LISTS, PREPARES, TAKES, USERS, check, require
from blazarconformance.ensures import differences, grown, use
from blazarconformance.trial import Trial

Step = Callable[[Trial, Task], Task | None]
PHASES = ("before", "after")


class Killed(BaseException):
    """What the end of its process is to the code: nothing after it happens."""


class Point(NamedTuple):
    """A moment at which a call fails."""

    trial: Trial
    task: Task
    at: str
    failed: BaseException | None
    """What came of it, None if the step succeeded all the same."""


def points(
    trial: Trial, arrange: Callable[[Trial], Task], step: Step, error: Callable[[], BaseException]
) -> Iterator[Point]:
    """Do a step on a new cloud for each of its calls and phases, and let it fail there with an error."""
    whole = trial.another()
    task = arrange(whole)
    with whole.counted() as calls:
        step(whole, task)
    require(calls, "it makes no call to the cloud that the faults see: is its port watched?")
    for number, name in enumerate(calls):
        for phase in PHASES:
            one = trial.another()
            task = arrange(one)
            left = [number]

            def fail(_: str, at: str, left: list[int] = left, phase: str = phase) -> None:
                if at != phase:
                    return
                left[0] -= 1
                if left[0] == -1:
                    raise error()

            one.faults.on_call = fail
            failed: BaseException | None = None
            try:
                step(one, task)
            except (Exception, Killed) as raised:
                failed = raised
            one.faults.on_call = None
            yield Point(one, task, f"{phase} call {number + 1} of {len(calls)} ({name})", failed)


def unavailable() -> BaseException:
    """Return the error of a cloud that does not answer."""
    return CloudUnavailable("the cloud does not answer")


def refused() -> BaseException:
    """Return the error of a cloud that refuses a call."""
    return CloudRefused("the cloud refuses this")


def _clean(trial: Trial, arrange: Callable[[Trial], Task], step: Step) -> Json:
    whole = trial.another()
    step(whole, arrange(whole))
    return whole.site.snapshot()


def retried(trial: Trial, arrange: Callable[[Trial], Task], step: Step, error: Callable[[], BaseException]) -> None:
    """Require that after a failure at any call and a retry the cloud is as after one run without failures."""
    wanted = _clean(trial, arrange, step)
    for point in points(trial, arrange, step, error):
        if isinstance(point.failed, Killed):
            point.trial.taken_over()
        step(point.trial, point.task)
        found = point.trial.site.snapshot()
        require(found == wanted, f"after {error()!r} {point.at} and a retry it has {differences(wanted, found)}.")


def _ended(trial: Trial, arrange: Callable[[Trial], Task], step: Step, error: Callable[[], BaseException]) -> None:
    """Require that after a failure at any call an end leaves nothing."""
    empty = trial.another()
    wanted = empty.site.snapshot() if empty.resources else {}
    for point in points(trial, arrange, step, error):
        point.trial.ended(point.task)
        found = point.trial.site.snapshot()
        require(found == wanted, f"after {error()!r} {point.at} and an end it has {differences(wanted, found)}.")


def _new(trial: Trial) -> Task:
    return trial.task()


def _prepared(trial: Trial) -> Task:
    return trial.prepared(trial.task())


def _in_use(trial: Trial) -> Task:
    return trial.in_use()


def _used(trial: Trial) -> Task:
    task = trial.in_use()
    use(trial, task)
    return task


def _grown_in_use(trial: Trial) -> Task:
    return grown(trial, trial.in_use())


def _prepare(trial: Trial, task: Task) -> Task:
    return trial.prepared(task)


def _start(trial: Trial, task: Task) -> Task:
    return trial.done(trial.type.start, task)


def _end(trial: Trial, task: Task) -> None:
    trial.ended(task)


def undo(trial: Trial, task: Task) -> None:
    """Undo a change of a reservation that got no other resources by it."""
    trial.done(lambda each: trial.type.restore(each, ()), task)


@check(PREPARES)
def prepare_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """A prepare that failed at any call is finished by the next one."""
    retried(trial, _new, _prepare, unavailable)


@check(PREPARES, slow=True)
def prepare_is_finished_after_a_crash_at_any_call(trial: Trial) -> None:
    """A prepare whose manager was killed at any call is finished by the next manager."""
    retried(trial, _new, _prepare, Killed)


@check()
def start_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """A start that failed at any call is finished by the next one."""
    retried(trial, _prepared, _start, unavailable)


@check(slow=True)
def start_is_finished_after_a_crash_at_any_call(trial: Trial) -> None:
    """A start whose manager was killed at any call is finished by the next manager."""
    retried(trial, _prepared, _start, Killed)


@check()
def end_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """An end that failed at any call is finished by the next one."""
    retried(trial, _in_use, _end, unavailable)


@check(slow=True)
def end_is_finished_after_a_crash_at_any_call(trial: Trial) -> None:
    """An end whose manager was killed at any call is finished by the next manager."""
    retried(trial, _in_use, _end, Killed)


@check(USERS, slow=True)
def end_of_what_is_used_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """An end of a reservation with users on it that failed at any call is finished by the next one."""
    retried(trial, _used, _end, unavailable)


# What is made of others has nothing to undo itself: only its dates change.
@check(TAKES, slow=True)
def an_undo_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """An undo of a change that failed at any call is finished by the next one."""
    retried(trial, _in_use, undo, unavailable)


@check(CHANGES, LARGER, slow=True)
def a_growth_is_finished_after_an_outage_at_any_call(trial: Trial) -> None:
    """A growth in use that failed at any call is finished by the next start."""
    retried(trial, _grown_in_use, _start, unavailable)


@check(CHANGES, LARGER, slow=True)
def an_end_after_half_a_growth_leaves_nothing(trial: Trial) -> None:
    """An end after a growth in use that failed at any call leaves nothing."""
    _ended(trial, _grown_in_use, _start, unavailable)


@check(PREPARES)
def an_end_after_half_a_prepare_leaves_nothing(trial: Trial) -> None:
    """An end after a prepare that failed at any call leaves nothing."""
    _ended(trial, _new, _prepare, unavailable)


@check()
def an_end_after_half_a_start_leaves_nothing(trial: Trial) -> None:
    """An end after a start that failed at any call leaves nothing."""
    _ended(trial, _prepared, _start, unavailable)


@check(slow=True)
def an_end_after_a_refused_start_leaves_nothing(trial: Trial) -> None:
    """An end after a start that the cloud refused at any call leaves nothing."""
    _ended(trial, _prepared, _start, refused)


@check()
def an_outage_is_passed_on_or_made_good(trial: Trial) -> None:
    """A start at which a call fails raises CloudUnavailable, so that it is retried, or has given everything."""
    for point in points(trial, _prepared, _start, unavailable):
        if point.failed is None:
            can = point.trial.usable(point.task)
            require(
                can == point.trial.promised(point.task),
                f"with an outage {point.at} start is done, and gives {sorted(can)}.",
            )
        else:
            name = type(point.failed).__name__
            passed = isinstance(point.failed, CloudUnavailable)
            require(passed, f"an outage {point.at} became {name}: {point.failed}; so it is not retried.")


@check()
def an_outage_at_the_end_is_passed_on_or_made_good(trial: Trial) -> None:
    """An end at which a call fails raises CloudUnavailable, so that it is retried, or has left nothing."""
    empty = trial.another()
    wanted = empty.site.snapshot() if empty.resources else {}
    for point in points(trial, _in_use, _end, unavailable):
        if point.failed is None:
            found = point.trial.site.snapshot()
            require(found == wanted, f"with an outage {point.at} end is done, with {differences(wanted, found)}.")
        else:
            name = type(point.failed).__name__
            passed = isinstance(point.failed, CloudUnavailable)
            require(passed, f"an outage {point.at} became {name}: {point.failed}; so it is not retried.")


@check()
def a_refusal_is_an_error_with_a_reason(trial: Trial) -> None:
    """A start that the cloud refuses ends in an error with a sentence, or has given everything."""
    for point in points(trial, _prepared, _start, refused):
        if point.failed is None:
            can = point.trial.usable(point.task)
            require(
                can == point.trial.promised(point.task),
                f"with a refusal {point.at} start is done, and gives {sorted(can)}.",
            )
        else:
            name = type(point.failed).__name__
            is_ours = isinstance(point.failed, BlazarError | Unusable) and str(point.failed).strip()
            require(is_ours, f"a refusal {point.at} became {name}: {point.failed}, and not an error with a reason.")


@check(LISTS, slow=True)
def whatever_an_end_leaves_is_found_by_the_sweep(trial: Trial) -> None:
    """While anything is left of a reservation whose end was killed, reservations_in_cloud lists it."""
    empty = trial.another()
    wanted = empty.site.snapshot() if empty.resources else {}
    for point in points(trial, _in_use, _end, Killed):
        one = point.trial
        listed = one.type.reservations_in_cloud(one.resources)
        if one.site.snapshot() != wanted and not listed:
            left = differences(wanted, one.site.snapshot())
            require(False, f"after a crash {point.at} there is {left}, and the sweep does not find it.")
