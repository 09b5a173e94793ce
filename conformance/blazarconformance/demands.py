# SPDX-License-Identifier: Apache-2.0
"""Demands: what a reservation asks of the calendar, read without a look at the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.calendar.demand import Demand
from blazar.model.resources.requirements import matches
from blazar.resources.contract.values import Given, Task, UsageNeeded
from blazarconformance.catalogue import CHANGES, FIXED, LARGER, SHRINKS, TAKES, USERS, check, require
from blazarconformance.harness import HasUsers
from blazarconformance.trial import PROJECT, Trial, as_active


def _kept(demand: Demand) -> Mapping[int, int]:
    return demand.kept if demand.per_instance is not None else dict.fromkeys(demand.pinned, 1)


def changed(trial: Trial, task: Task, values: Mapping[str, object]) -> Task:
    """Return a reservation with the parameters after a change."""
    given = trial.type.resolve(Given(values), project_id=PROJECT, reservation=task.reservation)
    parameters = trial.type.changed(task.reservation.parameters, given)
    return replace(task, reservation=replace(task.reservation, parameters=parameters))


def demanded_again(trial: Trial, task: Task, values: Mapping[str, object]) -> Demand:
    """Return what a reservation demands after a change, with what is in use read if that is asked for."""
    after = changed(trial, task, values).reservation.parameters
    try:
        return trial.type.demand_again(task, after, known=trial.known)
    except UsageNeeded:
        read = replace(task, in_use=trial.type.in_use(task))
        return trial.type.demand_again(read, after, known=trial.known)


@check(TAKES)
def the_same_parameters_have_the_same_demand(trial: Trial) -> None:
    """The demand follows from the parameters alone: asked twice, the answer is the same."""
    for values in (trial.harness.request, *trial.harness.others):
        parameters = trial.parameters(values)
        first, second = trial.demand(parameters), trial.demand(parameters)
        require(first == second, f"demand is not pure: it was {first}, and then {second}.")


@check(TAKES)
def demand_needs_no_call(trial: Trial) -> None:
    """A demand is read without a call to the cloud: the calendar may be locked."""
    parameters = trial.parameters()
    known = trial.known
    with trial.counted() as calls:
        trial.type.demand(parameters, known=known)
    require(not calls, f"demand made the calls {calls}.")


@check(TAKES)
def a_demand_does_not_change_with_the_cloud(trial: Trial) -> None:
    """The demand of a reservation stays the same when others start."""
    parameters = trial.parameters()
    before = trial.demand(parameters)
    trial.in_use()
    after = trial.demand(parameters)
    require(before == after, f"it was {before}, and after a start it is {after}.")


@check(TAKES)
def a_demand_asks_for_one_at_least(trial: Trial) -> None:
    """A demand is for at least one, and for no more than the request says or than there are."""
    for values in (trial.harness.request, *trial.harness.others):
        demand = trial.demand(trial.parameters(values))
        require(1 <= demand.min_count <= demand.max_count, f"it is for {demand.min_count} to {demand.max_count}.")
        pinned = demand.pinned or demand.kept or demand.preferred
        require(not pinned, f"the demand of a new reservation has {sorted(pinned)}, which it does not hold.")


@check(TAKES)
def resources_of_the_harness_meet_the_demand(trial: Trial) -> None:
    """Some registered resource meets the demand of a valid request."""
    demand = trial.demand(trial.parameters())
    fit = [r.name for r in trial.resources if matches(demand.requirement, r.properties)]
    require(fit, f"no resource of the harness meets {demand}.")


@check(TAKES)
def amounts_are_of_classes_that_resources_have(trial: Trial) -> None:
    """What one instance takes is of the resource classes of which resources have a capacity."""
    demand = trial.demand(trial.parameters())
    for name, _ in demand.per_instance or ():
        require(any(r.capacity.get(name) for r in trial.resources), f"no resource has a capacity of {name}.")


@check(TAKES)
def a_new_date_before_the_start_asks_for_the_same(trial: Trial) -> None:
    """With other dates before the start, a reservation asks for as much as before, and is bound to no resource."""
    task = trial.task()
    fresh = trial.demand(task.reservation.parameters)
    again = demanded_again(trial, task, {})
    same = (again.min_count, again.max_count) == (fresh.min_count, fresh.max_count)
    require(same, f"it asked for {fresh.min_count} to {fresh.max_count}, and then for {again.min_count}.")
    require(not _kept(again), f"a reservation that has not started is bound to {sorted(_kept(again))}.")


@check(TAKES)
def a_new_date_in_use_keeps_exactly_what_is_held(trial: Trial) -> None:
    """With other dates while in use, a reservation keeps the resources that it has, and gets no others."""
    task = trial.in_use()
    again = demanded_again(trial, task, {})
    require(_kept(again) == task.counts, f"it holds {dict(task.counts)}, and keeps {dict(_kept(again))}.")
    held = sum(task.counts.values())
    require(again.min_count == again.max_count == held, f"it holds {held}, and asks for up to {again.max_count}.")


@check(TAKES)
def a_demand_after_a_change_needs_no_call(trial: Trial) -> None:
    """A demand after a change is read without a call: what is in use is asked for by UsageNeeded."""
    task = trial.in_use()
    known = trial.known
    with trial.counted() as calls:
        trial.type.demand_again(task, task.reservation.parameters, known=known)
    require(not calls, f"demand_again made the calls {calls}.")


@check(CHANGES, LARGER)
def a_reservation_can_grow_before_its_start(trial: Trial) -> None:
    """Before the start a larger reservation is demanded as a new one would be."""
    task, larger = trial.task(), trial.harness.larger or {}
    after = changed(trial, task, larger).reservation.parameters
    fresh, again = trial.demand(after), demanded_again(trial, task, larger)
    more = fresh.min_count, fresh.max_count, fresh.per_instance
    require(more == (again.min_count, again.max_count, again.per_instance), f"it asks for {again}, not for {fresh}.")
    require(fresh != trial.demand(task.reservation.parameters), "the change of the harness is not larger.")


@check(CHANGES, LARGER)
def a_reservation_can_grow_in_use(trial: Trial) -> None:
    """While in use a reservation can grow: it keeps what it has, and asks for more."""
    task = trial.in_use()
    again = demanded_again(trial, task, trial.harness.larger or {})
    require(_kept(again) == task.counts, f"it holds {dict(task.counts)}, and keeps {dict(_kept(again))}.")
    require(again.max_count > sum(task.counts.values()), f"it asks for no more than {again.max_count}.")


@check(CHANGES, SHRINKS)
def a_reservation_can_shrink_in_use(trial: Trial) -> None:
    """While in use a reservation can shrink to what is in use: it keeps that, and nothing is asked for besides."""
    task = trial.in_use({**trial.harness.request, **(trial.harness.larger or {})})
    smaller = {key: trial.harness.request[key] for key in trial.harness.larger or {}}
    again = demanded_again(trial, task, smaller)
    kept, held = _kept(again), task.counts
    require(again.max_count < sum(held.values()), f"it holds {dict(held)}, and asks for {again.max_count}.")
    within = all(count <= held.get(key, 0) for key, count in kept.items())
    require(within, f"it keeps {dict(kept)}, and holds {dict(held)}.")


@check(CHANGES, SHRINKS, USERS)
def what_is_in_use_is_not_taken_away_by_a_change(trial: Trial) -> None:
    """A change to less than is in use is a Conflict, or keeps all that is in use."""
    task = trial.in_use({**trial.harness.request, **(trial.harness.larger or {})})
    if isinstance(trial.site, HasUsers):
        trial.site.use(task)
    used = {key: count for key, count in trial.type.in_use(task).items() if count}
    require(used, "in_use does not see what a user has built.")
    try:
        again = demanded_again(trial, task, {key: trial.harness.request[key] for key in trial.harness.larger or {}})
    except Conflict:
        return
    kept = _kept(again)
    require(all(kept.get(key, 0) >= count for key, count in used.items()), f"{used} is in use, and {dict(kept)} stays.")


@check(FIXED)
def what_cannot_change_in_use_is_refused(trial: Trial) -> None:
    """What cannot be changed while in use is refused with a sentence that names it."""
    task = trial.in_use()
    for values in trial.harness.fixed:
        try:
            demanded_again(trial, task, values)
        except (Conflict, InvalidInput) as error:
            named = any(key in error.message for key in values)
            require(named, f"the refusal of {dict(values)!r} does not name it: {error.message!r}.")
        else:
            require(False, f"a change to {dict(values)!r} is taken.")


@check(TAKES)
def nothing_is_in_use_before_anybody_uses_it(trial: Trial) -> None:
    """Nothing of a reservation counts as in use that nobody has used; or, if that cannot be told, all that it has."""
    task = as_active(trial.in_use())
    used = {key: count for key, count in trial.type.in_use(task).items() if count}
    wanted = dict(task.counts) if trial.harness.used_at_once else {}
    require(used == wanted, f"in_use has {used}, not {wanted}.")


@check(USERS, CHANGES)
def what_users_build_is_seen(trial: Trial) -> None:
    """What users build is in use, on resources that the reservation holds, and no more than it holds there."""
    task = trial.in_use()
    if isinstance(trial.site, HasUsers):
        trial.site.use(task)
    used = trial.type.in_use(task)
    require(used.keys() <= task.counts.keys(), f"in_use has {sorted(used)}, and only {sorted(task.counts)} is held.")
