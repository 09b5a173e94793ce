# SPDX-License-Identifier: Apache-2.0
"""The kind of a type: what operators register, and how its health is seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.model.base.errors import Conflict, InvalidInput, NotFound
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import RESERVED_NAMES, Resource
from blazar.resources.contract.kind import CalendarReads, Polled
from blazar.resources.contract.values import Task
from blazarconformance.catalogue import (
    CANDIDATES,
    ENTERS,
    FAILURES,
    LOSSES,
    POLLS,
    STRANGERS,
    check,
    require,
)
from blazarconformance.ensures import same
from blazarconformance.harness import HasFailures, HasLosses
from blazarconformance.parameters import CONTROL, LONGEST_SENTENCE
from blazarconformance.trial import Trial

JUNK: tuple[object, ...] = (None, True, 7.5, [], {}, "", "\u0000", "x" * 100_000, "no such thing")


def uses(*tasks: Task, lacking: list[str] | None = None) -> CalendarReads:
    """Return what a calendar knows with these reservations in use."""
    found = {task.reservation.id: [resource.name for resource in task.resources] for task in tasks}

    def holders(ids: Collection[str]) -> Mapping[str, Collection[str]]:
        return {key: names for key, names in found.items() if key in ids}

    def report(resource: Resource, _: Collection[str]) -> None:
        if lacking is not None:
            lacking.append(resource.name)

    def projects(ids: Collection[str]) -> Mapping[str, str]:
        return {task.reservation.id: task.lease.project_id for task in tasks if task.reservation.id in ids}

    def held(ids: Collection[int]) -> Collection[int]:
        return {resource.id for task in tasks for resource in task.resources}.intersection(ids)

    return CalendarReads(lambda: found, holders, report, projects, held)


def polled(trial: Trial, *tasks: Task) -> Polled:
    """Return the state of all resources."""
    return trial.kind.poll(trial.resources, uses(*tasks))


@check()
def the_same_resource_is_found_by_the_same_name(trial: Trial) -> None:
    """A request to register names one resource, the same each time."""
    for values in trial.harness.registrations:
        first, second = (trial.kind.find(Registration(values)).name for _ in range(2))
        require(first == second, f"{dict(values)!r} is {first}, and then {second}.")


@check()
def resources_have_different_names_and_ids(trial: Trial) -> None:
    """Two resources of the harness have different names and ids."""
    for word in ("name", "external_id"):
        values = [getattr(each, word) for each in trial.resources]
        require(len(values) == len(set(values)), f"several resources have the same {word}: {values}.")


@check(STRANGERS)
def what_is_not_in_the_cloud_is_not_registered(trial: Trial) -> None:
    """What the cloud does not have is refused with a sentence."""
    for values in trial.harness.strangers:
        _must_not_register(trial, values)


@check()
def a_malformed_registration_is_refused(trial: Trial) -> None:
    """A registration with values of wrong types is refused as a mistake of its sender."""
    for field in trial.harness.registrations[0]:
        for value in JUNK:
            _must_not_register(trial, {**trial.harness.registrations[0], field: value})
    _must_not_register(trial, {})


@check()
def reading_a_resource_changes_nothing(trial: Trial) -> None:
    """A resource is found and read without a change of the cloud."""
    before = trial.site.snapshot()
    for values in trial.harness.registrations:
        trial.kind.details(trial.kind.find(Registration(values)))
    same(trial, before, "after find and details")


@check()
def attributes_have_names_of_their_own(trial: Trial) -> None:
    """Attributes of a resource have names that are not those which every resource has."""
    for each in trial.resources:
        taken = sorted(each.attributes.keys() & (RESERVED_NAMES - {"id"}))
        require(not taken, f"{each.name} has the attributes {taken}.")


@check(ENTERS)
def a_resource_is_prepared_once(trial: Trial) -> None:
    """A registered resource that is prepared once more is as before, and nothing was missing."""
    found = [trial.kind.current(each) for each in trial.resources]
    before = trial.site.snapshot()
    for each in found:
        require(not trial.kind.enter(each), f"enter says that something of {each.name} was missing.")
    same(trial, before, "after the second enter")


@check(ENTERS)
def a_resource_that_leaves_is_as_before(trial: Trial) -> None:
    """Resources that are registered and unregistered are as before their registration, however often."""
    first = trial.another().site.snapshot()
    found = [trial.kind.current(each) for each in trial.resources]
    for each in found:
        trial.kind.leave(each)
    same(trial, first, "after leave")
    for each in found:
        trial.kind.leave(each)
    same(trial, first, "after the second leave")
    for each in found:
        trial.kind.enter(each)
        trial.kind.leave(each)
    same(trial, first, "after enter and leave once more")


@check(ENTERS)
def an_unused_resource_can_leave(trial: Trial) -> None:
    """A resource that nobody uses is not refused to leave."""
    for each in trial.resources:
        trial.kind.check_unused(trial.kind.current(each))


@check(POLLS)
def all_are_healthy_at_first(trial: Trial) -> None:
    """A poll names all registered resources, and all are healthy."""
    failures = polled(trial).failures if trial.resources else {}
    for each in trial.resources:
        require(each.name in failures, f"{each.name} is missing in the poll.")
        require(failures[each.name] is None, f"{each.name} has failed: {failures[each.name]}.")


@check(POLLS)
def a_poll_changes_nothing(trial: Trial) -> None:
    """A poll reads the cloud and changes nothing."""
    task = trial.in_use()
    before = trial.site.snapshot()
    polled(trial, task)
    same(trial, before, "after a poll")


@check(POLLS)
def a_poll_costs_the_same_for_one_and_for_all(trial: Trial) -> None:
    """The number of calls of a poll does not depend on the number of resources."""
    some, every = trial.resources[:1], trial.resources
    # The first poll may read what does not change.
    trial.kind.poll(every, uses())
    with trial.counted() as one:
        trial.kind.poll(some, uses())
    with trial.counted() as all_of_them:
        trial.kind.poll(every, uses())
    more = f"it took {len(one)} calls for one resource and {len(all_of_them)} for {len(every)}: {all_of_them}."
    require(len(all_of_them) <= len(one), more)


@check(POLLS)
def a_poll_says_only_what_is_new(trial: Trial) -> None:
    """A poll of unchanged resources has no new data about them."""
    names = {r.id: r.name for r in trial.resources}
    found = [names.get(key, str(key)) for key in polled(trial).details]
    require(not found, f"it has new data about {found}.")


@check(POLLS)
def a_resource_in_use_is_healthy(trial: Trial) -> None:
    """A resource that a reservation has started to use is healthy, and nothing is lacking there."""
    task = trial.in_use()
    lacking: list[str] = []
    failures = trial.kind.poll(trial.resources, uses(task, lacking=lacking)).failures
    for each in task.resources:
        require(failures.get(each.name, "vanished") is None, f"{each.name} has failed: {failures.get(each.name)}.")
    require(not lacking, f"the reservation is said to lack {lacking}.")


@check(POLLS, FAILURES)
def a_failure_is_seen_with_its_reason(trial: Trial) -> None:
    """A poll sees that a resource has failed, says why, and takes no other for failed."""
    broken, *well = trial.resources
    _break(trial, broken)
    failures = polled(trial).failures
    require(failures.get(broken.name), f"{broken.name} has failed, and the poll says {failures.get(broken.name)!r}.")
    for each in well:
        require(failures.get(each.name, "gone") is None, f"{each.name} is said to have failed, too.")


@check(POLLS, FAILURES)
def a_recovery_is_seen(trial: Trial) -> None:
    """A poll sees that a resource has recovered."""
    broken = trial.resources[0]
    _break(trial, broken)
    if isinstance(trial.site, HasFailures):
        trial.site.recover(broken.name)
    failure = polled(trial).failures.get(broken.name, "vanished")
    require(failure is None, f"{broken.name} has recovered, and the poll says {failure!r}.")


@check(POLLS, LOSSES)
def what_has_vanished_is_not_healthy(trial: Trial) -> None:
    """A resource that the cloud no longer knows is left out of a poll, or has failed."""
    gone = trial.resources[0]
    if isinstance(trial.site, HasLosses):
        trial.site.vanish(gone.name)
    failure = polled(trial).failures.get(gone.name, "vanished")
    require(failure, f"{gone.name} has vanished, and counts as healthy.")


@check(CANDIDATES)
def candidates_have_what_is_registered(trial: Trial) -> None:
    """The list of what the cloud has also has what is registered, by the same names or with their ids."""
    found = trial.kind.candidates(trial.resources)
    names, ids = {each.name for each in found}, {each.resource_id for each in found}
    missing = sorted(each.name for each in trial.resources if each.name not in names and each.external_id not in ids)
    require(not missing, f"{missing} are registered, and no candidates.")


def _must_not_register(trial: Trial, values: Mapping[str, object]) -> None:
    shown = repr(dict(values))[:80]
    try:
        trial.kind.details(trial.kind.find(Registration(values)))
    except (InvalidInput, NotFound, Conflict) as error:
        require(error.message.strip(), f"the refusal of {shown} is no sentence.")
        require(len(error.message) < LONGEST_SENTENCE, f"the refusal of {shown} has {len(error.message)} letters.")
        require(not CONTROL.search(error.message), f"the refusal of {shown} has control characters in its text.")
        return
    registered = [dict(each) for each in trial.harness.registrations]
    alike = any(
        all(each.get(key) == value for key, value in values.items() if value is not None) for each in registered
    )
    # What names nothing else, as an optional field that is null, may be the same resource.
    require(alike, f"{shown} can be registered.")


def _break(trial: Trial, resource: Resource) -> None:
    if isinstance(trial.site, HasFailures):
        trial.site.fail(resource.name)
