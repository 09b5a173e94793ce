# SPDX-License-Identifier: Apache-2.0
"""Types that are broken on purpose: the suite says of each what is wrong, in a sentence."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from blazar.context import scope
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudUnavailable, InvalidInput, NotFound
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Anything
from blazar.resources.contract.kind import Polled
from blazar.resources.contract.values import Done, Given, NotYet
from blazarconformance import CATALOGUE, Harness, NotConformant, checks, not_applicable
from tests.conformance.sites import ADDRESSES, HOSTS, INSTANCES
from tests.conformance.stacks import STACKS
from tests.conformance.test_conformance import EVERY, INSTRUMENTS

Break = Callable[[Any], None]


def broken(harness: Harness, wrong: Break) -> Harness:
    """Return a harness whose type is spoiled after it was made, for this manager and for another."""

    def build(around: Any) -> Any:
        site = harness.build(around)
        make = site.another_type

        def another() -> Any:
            spoiled = make()
            before, site.type = site.type, spoiled
            wrong(site)
            site.type = before
            return spoiled

        wrong(site)
        site.another_type = another
        return site

    return replace(harness, name="broken", build=build)


def instead(name: str, make: Callable[[Any, Callable[..., Any]], Callable[..., Any]], part: str = "type") -> Break:
    """Return a mistake: one method of the type, or of its kind, does something else instead."""

    def wrong(site: Any) -> None:
        target = getattr(site, part)
        setattr(target, name, make(site, getattr(target, name)))

    return wrong


def granting(site: Any, task: Any, **other: Any) -> None:
    wanted = {"instrument_id": task.resources[0].external_id, "project_id": task.lease.project_id, "channels": 2}
    site._port.grant(task.reservation.id, **{**wanted, **other})


def with_schema(changed: dict[str, Any]) -> Break:
    """Return a mistake: the schema of the type says something else."""

    def wrong(site: Any) -> None:
        site.type.schema = {**site.type.schema, **changed}

    return wrong


def with_fields(**fields: Any) -> Break:
    """Return a mistake: some fields of the schema of the type are others."""

    def wrong(site: Any) -> None:
        schema = site.type.schema
        site.type.schema = {**schema, "properties": {**schema["properties"], **fields}}

    return wrong


def of_new_requests_only(references):
    return lambda parameters: tuple(each for each in references(parameters) if isinstance(each.reservation, int))


def without_source(parameters):
    return lambda given: parameters(Given({k: v for k, v in given.values.items() if k != "samples_from"}))


def forgets_at_the_end(site, end):
    return lambda task: Done()


def starts_twice(site, start):
    def wrong(task):
        has = site._control.channels().get(task.reservation.id, (0, 0, 0))[2]
        granting(site, task, channels=has + 2)
        return Done()

    return wrong


def gives_another(site, start):
    def wrong(task):
        granting(site, task, instrument_id="s-1")
        return Done()

    return wrong


def alternates(site, demand):
    counts = itertools.count(1)
    return lambda parameters, *, known: replace(demand(parameters, known=known), max_count=next(counts) % 2 + 1)


def asks_the_cloud(site, demand):
    def wrong(parameters, *, known):
        site._port.instruments()
        return demand(parameters, known=known)

    return wrong


def promises_less(site, demand):
    return lambda parameters, *, known: replace(
        demand(parameters, known=known), per_instance=Amounts.of({"CHANNEL": 1})
    )


def requires_nothing(site, demand):
    return lambda parameters, *, known: replace(demand(parameters, known=known), requirement=Anything())


def checks_nothing(site, parameters):
    return lambda given: Content({"channels": 1, "resource_properties": None, **given.values})


def keeps_a_set(site, parameters):
    return lambda given: Content({**parameters(given).values, "tags": {1, 2}})


def takes_what_is_left_out(site, parameters):
    return lambda given: parameters(replace(given, values={"channels": 1, **given.values}))


def mumbles(site, parameters):
    def wrong(given):
        try:
            return parameters(given)
        except InvalidInput as error:
            raise InvalidInput("something is wrong") from error

    return wrong


def echoes(site, parameters):
    def wrong(given):
        try:
            return parameters(given)
        except InvalidInput as error:
            raise InvalidInput(f"channels or resource_properties: {given.values}") from error

    return wrong


def raises_key_error(site, parameters):
    return lambda given: parameters(given) if given.values["channels"] else None


def polls_each(site, poll):
    def wrong(registered, uses):
        for _ in registered:
            site._port.instruments()
        return poll(registered, uses)

    return wrong


def sees_no_failure(site, poll):
    return lambda registered, uses: Polled({each.name: None for each in registered})


def sees_all_failed(site, poll):
    return lambda registered, uses: Polled({each.name: "it may have failed" for each in registered})


def repeats_what_is_known(site, poll):
    return lambda registered, uses: Polled(
        {each.name: None for each in registered}, {each.id: each.details for each in registered}
    )


def lists_nothing(site, reservations_in_cloud):
    return lambda resources: frozenset()


def lists_each(site, reservations_in_cloud):
    def wrong(resources):
        found = reservations_in_cloud(resources)
        for _ in found:
            site._port.instruments()
        return found

    return wrong


def complains_at_the_end(site, end):
    def wrong(task):
        if task.reservation.id not in site._port.grants():
            raise NotFound("there is nothing to end")
        return end(task)

    return wrong


def ends_everybody(site, end):
    def wrong(task):
        for key in site._port.grants():
            site._port.revoke(key)
        return Done()

    return wrong


def remembers_in_the_process(site, start):
    mine: set[str] = set()
    plain_end = site.type.end

    def wrong(task):
        mine.add(task.reservation.id)
        return start(task)

    site.type.end = lambda task: plain_end(task) if task.reservation.id in mine else Done()
    return wrong


def hides_an_outage(site, act):
    def wrong(task):
        with suppress(CloudUnavailable):
            return act(task)
        return Done()

    return wrong


def turns_an_outage_into_a_bug(site, act):
    def wrong(task):
        try:
            return act(task)
        except CloudUnavailable as error:
            raise ValueError("the answer is no JSON") from error

    return wrong


def asks_no_fence(site, act):
    def wrong(task):
        with scope(fence=Always()):
            return act(task)

    return wrong


class Always:
    longest_call = 1.0

    def remaining(self) -> float:
        return 1000.0


def names_each_differently(site, find):
    number = itertools.count()
    return lambda request: replace(find(request), name=f"instrument-{next(number)}")


def opens_before_the_start(site):
    def prepare(task):
        granting(site, task)
        return Content({})

    site.type.prepare = prepare
    site.type.must_prepare_again = lambda before, after: False


def looks_at_once(site, end):
    def wrong(task):
        progress = end(task)
        return progress if isinstance(progress, Done) else replace(progress, after=timedelta(0))

    return wrong


def blames_others(site, end):
    def wrong(task):
        progress = end(task)
        cause = Cause(ReasonCode.RESOURCE_NOT_READY).at(9999)
        return progress if isinstance(progress, Done) else NotYet(progress.after, progress.reason, cause)

    return wrong


def gives_up_what_is_held(site, demand_again):
    return lambda task, parameters, *, known: replace(demand_again(task, parameters, known=known), kept={})


def takes_any_change(site, changed):
    return lambda current, change: Content({**current.values, **change.values})


def forgets_the_group(site, restore):
    return lambda task, surplus: Done()


def always_enters(site, enter):
    return lambda found: bool(enter(found)) or True


def never_leaves(site, leave):
    return lambda found: None


def needs_its_ids(site, end):
    return lambda task: end(task) if task.reservation.cloud_ids.values else Done()


def breaks_at_one_value(site, parameters):
    def wrong(given):
        return 1 / 0 if given.values.get("channels") == "x" else parameters(given)

    return wrong


def never_ends(site, end):
    def wrong(task):
        end(task)
        return NotYet(timedelta(minutes=1), "still at it")

    return wrong


def starts_where_it_was(site, start):
    """Start on the first resource that the reservation ever had, as a type that remembers would."""
    first: dict[str, Any] = {}

    def wrong(task):
        resource = first.setdefault(task.lease.project_id, task.resources[0])
        return start(replace(task, resources=(resource,)))

    return wrong


def prepares_only_once(site, must_prepare_again):
    return lambda before, after: False


def mends_nothing(site, start):
    return lambda task: Done() if task.reservation.status == "active" else start(task)


def says_nothing_of_attributes(site):
    site.kind.shape = replace(site.kind.shape, attributes={})


def turns_round(site, children):
    counts = itertools.count(1)
    return lambda parameters: [*children(parameters), *children(parameters)][: next(counts) % 2 + 1]


def reserves_nothing(site, reserved):
    return lambda task, takes: replace(reserved(task, takes), flavors={})


MISTAKES: list[tuple[Harness, str, Break, str]] = [
    (INSTRUMENTS, "the_end_leaves_nothing", instead("end", forgets_at_the_end), "after the end the cloud is not"),
    (INSTRUMENTS, "start_twice_is_as_once", instead("start", starts_twice), "after the second start .* 4"),
    (INSTRUMENTS, "a_start_gives_exactly_what_is_promised", instead("start", gives_another), "'analyser-1'.*, not"),
    (INSTRUMENTS, "the_same_parameters_have_the_same_demand", instead("demand", alternates), "demand is not pure"),
    (INSTRUMENTS, "demand_needs_no_call", instead("demand", asks_the_cloud), r"demand made the calls \['instruments'"),
    (INSTRUMENTS, "no_more_is_promised_than_there_is", instead("demand", promises_less), "one lease more than 6"),
    (INSTRUMENTS, "a_requirement_is_kept_and_demanded", instead("demand", requires_nothing), "demand requires only"),
    (INSTRUMENTS, "what_is_no_number_is_refused", instead("parameters", checks_nothing), "channels = None raised"),
    (INSTRUMENTS, "an_unknown_parameter_is_refused_or_left_out", instead("parameters", checks_nothing), "is kept and"),
    (INSTRUMENTS, "parameters_are_json", instead("parameters", keeps_a_set), "values that are not JSON"),
    (
        INSTRUMENTS,
        "each_missing_parameter_is_named",
        instead("parameters", takes_what_is_left_out),
        "channels left out is",
    ),
    (INSTRUMENTS, "each_missing_parameter_is_named", instead("parameters", mumbles), "does not name it: 'something"),
    (INSTRUMENTS, "huge_values_are_refused_by_name", instead("parameters", echoes), r"has \d{5,} letters"),
    (INSTRUMENTS, "an_empty_request_is_refused_or_whole", instead("parameters", raises_key_error), "raised KeyError"),
    (INSTRUMENTS, "a_poll_costs_the_same_for_one_and_for_all", instead("poll", polls_each, "kind"), "2 calls for one"),
    (INSTRUMENTS, "a_failure_is_seen_with_its_reason", instead("poll", sees_no_failure, "kind"), "the poll says None"),
    (INSTRUMENTS, "all_are_healthy_at_first", instead("poll", sees_all_failed, "kind"), "has failed: it may have"),
    (INSTRUMENTS, "a_recovery_is_seen", instead("poll", sees_all_failed, "kind"), "has recovered, and the poll says"),
    (INSTRUMENTS, "a_poll_says_only_what_is_new", instead("poll", repeats_what_is_known, "kind"), "new data about"),
    (
        INSTRUMENTS,
        "started_reservations_are_listed",
        instead("reservations_in_cloud", lists_nothing),
        "are listed, not",
    ),
    (
        INSTRUMENTS,
        "nothing_that_is_sent_is_an_internal_error",
        instead("parameters", breaks_at_one_value),
        "channels = 'x' was answered by 500",
    ),
    (INSTRUMENTS, "the_end_leaves_nothing", instead("end", never_ends), "not done after 200 rounds; .* still at it"),
    (INSTRUMENTS, "a_lease_lives_from_its_creation_to_its_end", instead("end", never_ends), "is TERMINATING, not"),
    (
        INSTRUMENTS,
        "the_next_user_starts_when_the_first_has_left",
        instead("start", starts_where_it_was),
        "can use .* is promised",
    ),
    (INSTRUMENTS, "a_lease_that_is_deleted_in_use_leaves_nothing", instead("end", forgets_at_the_end), "deletion the"),
    (INSTRUMENTS, "leftovers_are_swept", instead("reservations_in_cloud", lists_nothing), "the sweep does not find"),
    (INSTRUMENTS, "the_cost_of_the_list_does_not_grow", instead("reservations_in_cloud", lists_each), "and 3 for two"),
    (
        INSTRUMENTS,
        "end_twice_is_as_once",
        instead("end", complains_at_the_end),
        "NotFound was raised: there is nothing",
    ),
    (INSTRUMENTS, "an_end_after_everything_was_deleted_by_hand", instead("end", complains_at_the_end), "NotFound"),
    (INSTRUMENTS, "reservations_do_not_touch_each_other", instead("end", ends_everybody), "another reservation the"),
    (
        INSTRUMENTS,
        "another_manager_ends_what_one_has_started",
        instead("start", remembers_in_the_process),
        "by another",
    ),
    (INSTRUMENTS, "an_outage_is_passed_on_or_made_good", instead("start", hides_an_outage), "start is done, and gives"),
    (
        INSTRUMENTS,
        "an_outage_is_passed_on_or_made_good",
        instead("start", turns_an_outage_into_a_bug),
        "became ValueError",
    ),
    (
        INSTRUMENTS,
        "an_outage_at_the_end_is_passed_on_or_made_good",
        instead("end", hides_an_outage),
        "end is done, with",
    ),
    (INSTRUMENTS, "a_manager_without_its_claim_starts_nothing", instead("start", asks_no_fence), "start did not call"),
    (INSTRUMENTS, "a_manager_without_its_claim_ends_nothing", instead("end", asks_no_fence), "end did not call"),
    (INSTRUMENTS, "nobody_can_use_it_before_the_start", opens_before_the_start, "can be used before the start"),
    (
        INSTRUMENTS,
        "the_same_resource_is_found_by_the_same_name",
        instead("find", names_each_differently, "kind"),
        "instrument-0, and then instrument-1",
    ),
    (INSTANCES, "an_end_waits_without_a_thread", instead("end", looks_at_once), "the next look is after 0:00:00"),
    (INSTANCES, "an_end_waits_without_a_thread", instead("end", blames_others), r"resources \[9999\] of others"),
    (
        INSTANCES,
        "a_new_date_in_use_keeps_exactly_what_is_held",
        instead("demand_again", gives_up_what_is_held),
        "keeps {}",
    ),
    (INSTANCES, "a_change_is_checked_as_a_new_request", instead("changed", takes_any_change), "instead of a refusal"),
    (
        INSTANCES,
        "a_growth_that_is_undone_leaves_no_more_than_before",
        instead("restore", forgets_the_group),
        "undone growth",
    ),
    (INSTANCES, "an_end_needs_no_stored_ids", instead("end", needs_its_ids), "without stored cloud ids"),
    (INSTANCES, "the_end_leaves_nothing", instead("end", forgets_at_the_end), "after the end the cloud is not"),
    (
        INSTANCES,
        "a_change_before_the_start_is_as_a_new_reservation",
        instead("must_prepare_again", prepares_only_once),
        "after {'vcpus': 1} the cloud has flavors",
    ),
    (INSTANCES, "a_start_in_use_mends_what_was_deleted_by_hand", instead("start", mends_nothing), r"\[\] can be used"),
    (INSTANCES, "a_reservation_that_grew_has_all_of_it", instead("start", mends_nothing), "can be used, not"),
    (INSTANCES, "a_lease_grows_while_it_is_in_use", instead("start", mends_nothing), "after a growth"),
    (
        INSTRUMENTS,
        "its_schema_refuses_misspelt_fields",
        with_schema({"additionalProperties": True}),
        "the schema takes channelsx",
    ),
    (
        INSTRUMENTS,
        "its_schema_takes_what_it_takes",
        with_schema({"properties": {}}),
        "the schema refuses {'channels': 2",
    ),
    (
        ADDRESSES,
        "its_schema_says_what_can_change",
        with_fields(network_id={}),
        "network_id has the mark None, and a change before the start is refused",
    ),
    (
        ADDRESSES,
        "its_schema_says_what_can_change",
        with_fields(amount={"x-changeable": "before-start"}),
        "amount has the mark 'before-start', and a change in use is taken",
    ),
    (
        INSTANCES,
        "its_schema_says_what_can_change",
        with_fields(vcpus={"x-changeable": "never"}),
        "vcpus has the mark 'never', and a change before the start is taken",
    ),
    (INSTRUMENTS, "its_shape_is_that_of_its_resources", says_nothing_of_attributes, r"\['model'\] have no schema"),
    (ADDRESSES, "end_twice_is_as_once", instead("end", forgets_at_the_end), "floating_ips"),
    (HOSTS, "a_resource_is_prepared_once", instead("enter", always_enters, "kind"), "something of node-1 was missing"),
    (HOSTS, "a_resource_that_leaves_is_as_before", instead("leave", never_leaves, "kind"), "after leave the cloud"),
    (
        INSTRUMENTS,
        "every_reference_of_a_request_is_found",
        instead("references", lambda site, references: lambda parameters: ()),
        "has the references ..0.., and the type tells",
    ),
    (
        INSTRUMENTS,
        "references_are_found_again_by_id",
        instead("references", lambda site, references: of_new_requests_only(references)),
        "and the type tells",
    ),
    (
        INSTRUMENTS,
        "what_is_no_reference_is_refused",
        instead("parameters", lambda site, parameters: without_source(parameters)),
        "is taken as a reference",
    ),
    (
        INSTRUMENTS,
        "its_schema_takes_references",
        with_schema({"properties": {"channels": {"type": "integer"}}}),
        "the schema refuses it",
    ),
    (STACKS, "the_same_parameters_have_the_same_children", instead("children", turns_round), "children is not pure"),
    (
        STACKS,
        "children_are_requests_that_their_types_take",
        instead("children", lambda site, children: lambda p: [replace(each, pointer="/size") for each in children(p)]),
        "points at '/size', which is not in the request",
    ),
    (
        STACKS,
        "a_start_uses_what_its_children_have",
        instead("_reserved_by_children", reserves_nothing),
        "on nothing reserved",
    ),
    (STACKS, "the_end_leaves_nothing", instead("end", forgets_at_the_end), "after the end the cloud is not"),
]
"""A type, the check that finds the mistake, the mistake, and words of the sentence."""


@pytest.mark.sample(43)
@pytest.mark.parametrize(
    ("harness", "name", "wrong", "words"),
    [pytest.param(*each, id=f"{number}-{each[1]}") for number, each in enumerate(MISTAKES)],
)
def test_a_broken_type_is_caught_with_a_sentence(harness: Harness, name: str, wrong: Break, words: str):
    check = CATALOGUE[name]
    with pytest.raises(NotConformant, match=words) as caught:
        check(broken(harness, wrong))
    text = str(caught.value)
    assert text.startswith(f"broken: {check.says} But ")
    assert len(text) < 2000


@pytest.mark.parametrize("harness", EVERY, ids=str)
def test_every_type_passes_at_least_sixty_checks(harness: Harness):
    assert len(checks(harness)) >= 60
    assert len(checks(harness)) + len(not_applicable(harness)) == len(CATALOGUE)
    assert len(checks(harness, slow=True)) + len(checks(harness, slow=False)) == len(checks(harness))


def test_what_is_not_for_a_type_is_said_with_what_it_lacks():
    left_out = not_applicable(INSTRUMENTS)
    assert left_out["prepare_twice_is_as_once"] == "prepare"
    assert left_out["a_growth_is_finished_after_an_outage_at_any_call"] == (
        "changed and demand_again, larger of its harness"
    )
    assert "the_end_leaves_nothing" not in left_out
    assert set(not_applicable(INSTANCES).values()) == {
        "rank",
        "references, and referring of its harness",
        "children",
    }


def test_every_check_says_what_must_hold():
    for check in CATALOGUE.values():
        assert check.says.endswith("."), check.name
        assert len(check.says) < 160, check.name
