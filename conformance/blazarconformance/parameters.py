# SPDX-License-Identifier: Apache-2.0
"""Names and parameters: what clients send, what is kept of it, and how what is wrong is refused."""

from __future__ import annotations

import copy
import json
import re

from blazar.model.base.errors import BlazarError, Conflict, InvalidInput, NotFound
from blazar.model.base.json_text import Json
from blazar.model.leases.secrets import mask_secrets, unseal
from blazar.model.resources.requirements import parse_requirement, property_keys
from blazar.resources.contract.values import Given
from blazar.rpc import codec
from blazarconformance.catalogue import (
    CHANGES,
    INVALID,
    NEEDED,
    NUMBERS,
    REQUIREMENT,
    REQUIRES,
    NotConformant,
    check,
    require,
)
from blazarconformance.trial import PROJECT, Trial

NOT_NUMBERS: tuple[object, ...] = (
    None,
    True,
    1.5,
    "x",
    "",
    [],
    {},
    [1],
    -1,
    0,
    2**31,
    2**70,
    "1e3",
    " 1",
    "\u0663",
    float("inf"),
)
WRONG_TYPES: tuple[object, ...] = (True, 1.5, [], {}, [[]], {"a": {"b": []}}, [None], float("nan"))
HUGE: tuple[object, ...] = ("x" * 100_000, 10**400, ["x"] * 10_000, "[" * 5_000)
STRANGE = ("\u0000", "a\u0007\r\nb", "\U0001f600" * 3, "\u202ereversed", "%s{0}", "../..", "'; --", "\ud800")
LONGEST_SENTENCE = 2_000
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def refusal(trial: Trial, values: Json, shown: str = "these values") -> BlazarError | None:
    """Return the refusal of a request, None if it is taken; anything but a user's mistake is not conformant."""
    try:
        trial.demands(trial.parameters(values))
    except (InvalidInput, NotFound, Conflict) as error:
        return error
    except Exception as error:
        # Code of other packages may raise anything.
        raise _bug(shown, error) from error
    return None


def _bug(shown: str, error: Exception) -> NotConformant:
    return NotConformant(f"a request with {shown} raised {type(error).__name__} instead of a refusal: {error}")


def _must_refuse(trial: Trial, values: Json, field: str) -> None:
    shown = f"{field} = {values[field]!r}"[:60] if field in values else f"{field} left out"
    error = refusal(trial, values, shown)
    require(error is not None, f"a request with {shown} is taken.")
    if error is not None:
        require(field in error.message, f"the refusal of {shown} does not name it: {error.message[:200]!r}.")


def _each_replaced(trial: Trial, values: tuple[object, ...]) -> None:
    """Send every value as every parameter: it is refused with a sentence that names the parameter, or it is JSON."""
    request = trial.harness.request
    for field in request:
        for value in values:
            changed = {**request, field: value}
            shown = f"{field} = {repr(value)[:40]}"
            error = refusal(trial, changed, shown)
            if error is None:
                json.dumps(trial.parameters(changed).values, allow_nan=False)
                continue
            require(field in error.message, f"the refusal of {shown} does not name it: {error.message[:200]!r}.")
            require(len(error.message) < LONGEST_SENTENCE, f"the refusal of {shown} has {len(error.message)} letters.")
            require(not CONTROL.search(error.message), f"the refusal of {shown} has control characters in its text.")


@check()
def its_name_is_that_of_a_type(trial: Trial) -> None:
    """The name of a type is one word, perhaps with a colon, which a path and a database column can hold."""
    name = trial.type.resource_type
    fits = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9_.-]*(:[a-z][a-z0-9_.-]*)?", name) and len(name) <= 66
    require(fits, f"its name is {name!r}.")


@check()
def it_takes_resources_of_its_own_kind(trial: Trial) -> None:
    """A type names the kind of resource that it takes, as the kind names itself."""
    require(
        trial.type.kind == trial.kind.kind,
        f"the type takes {trial.type.kind!r}, and the kind of its site is {trial.kind.kind!r}.",
    )


@check()
def valid_requests_are_taken(trial: Trial) -> None:
    """The requests of the harness are valid, and resources have room for each."""
    for values in (trial.harness.request, *trial.harness.others):
        trial.task(values)


@check()
def parameters_are_json(trial: Trial) -> None:
    """Parameters are JSON that is read as it was written, without numbers that JSON does not have."""
    for values in (trial.harness.request, *trial.harness.others):
        kept = dict(trial.parameters(values).values)
        again = json.loads(json.dumps(kept, allow_nan=False))
        require(again == kept, f"{kept!r} was read back as {again!r}.")
        require(all(isinstance(key, str) and key for key in kept), f"a name is no word in {kept!r}.")


@check()
def parameters_pass_the_message_bus(trial: Trial) -> None:
    """A reservation passes the message bus unchanged."""
    for values in (trial.harness.request, *trial.harness.others):
        lease = trial.task(values).lease
        sent = codec.encode_answer("leases.one", lease)
        arrived = codec.decode_answer("leases.one", sent)
        require(arrived == lease, f"the parameters arrived as {arrived.reservations[0].parameters!r}.")


@check()
def the_same_request_has_the_same_parameters(trial: Trial) -> None:
    """The same request gives the same parameters, whenever it is read."""
    first, second = trial.parameters(), trial.parameters()
    require(first == second, f"they were {first.values!r}, and then {second.values!r}.")


@check()
def a_request_is_not_changed(trial: Trial) -> None:
    """What a client sent is read and not changed."""
    values = copy.deepcopy(dict(trial.harness.request))
    trial.parameters(values)
    require(values == trial.harness.request, f"the request became {values!r}.")


@check()
def what_is_shown_can_be_sent_again(trial: Trial) -> None:
    """What the API shows of a new reservation makes the same reservation, with what users know that nobody may see."""
    for values in (trial.harness.request, *trial.harness.others):
        kept = trial.parameters(values)
        sent = {key: value for key, value in unseal(kept.values).items() if key not in trial.harness.derived}
        again = trial.parameters(sent)
        require(again == kept, f"{kept.values!r} was shown, and sent again it became {again.values!r}.")


@check()
def a_change_to_what_is_shown_changes_nothing(trial: Trial) -> None:
    """A change that sends back what is shown leaves the parameters as they are."""
    for values in (trial.harness.request, *trial.harness.others):
        task = trial.task(values)
        kept = task.reservation.parameters
        for sent in (mask_secrets(kept.values), unseal(kept.values)):
            given = trial.type.resolve(Given(sent), project_id=PROJECT, reservation=task.reservation)
            after = trial.type.changed(kept, given)
            require(after == kept, f"{kept.values!r} became {after.values!r}.")


@check()
def a_change_of_nothing_changes_nothing(trial: Trial) -> None:
    """A change without parameters leaves them as they are."""
    kept = trial.parameters()
    after = trial.type.changed(kept, Given({}))
    require(after == kept, f"{kept.values!r} became {after.values!r}.")


@check()
def resolving_twice_is_as_once(trial: Trial) -> None:
    """What was resolved can be resolved once more, as happens when a request is planned again."""
    once = trial.type.resolve(Given(trial.harness.request), project_id=PROJECT)
    twice = trial.type.resolve(once, project_id=PROJECT)
    first, second = trial.type.parameters(once), trial.type.parameters(twice)
    require(first == second, f"the parameters were {first.values!r}, and then {second.values!r}.")


@check()
def resolving_changes_nothing_in_the_cloud(trial: Trial) -> None:
    """A request that is read makes nothing in the cloud."""
    before = trial.site.snapshot()
    trial.parameters()
    require(trial.site.snapshot() == before, "the cloud was changed by resolve or parameters.")


@check()
def parameters_need_no_call(trial: Trial) -> None:
    """Parameters are read without a call to the cloud: that is what resolve is for."""
    given = trial.type.resolve(Given(trial.harness.request), project_id=PROJECT)
    with trial.counted() as calls:
        trial.type.parameters(given)
    require(not calls, f"parameters made the calls {calls}.")


@check()
def an_empty_request_is_refused_or_whole(trial: Trial) -> None:
    """A request without parameters is refused with a sentence, or makes a reservation like any other."""
    error = refusal(trial, {})
    require(error is None or error.message, "the refusal has no sentence.")


@check(NEEDED)
def each_missing_parameter_is_named(trial: Trial) -> None:
    """A request without a parameter that it needs is refused with a sentence that names it."""
    for field in trial.harness.needed:
        _must_refuse(trial, {key: value for key, value in trial.harness.request.items() if key != field}, field)


@check()
def an_unknown_parameter_is_refused_or_left_out(trial: Trial) -> None:
    """A parameter that the type does not know is refused by its name, or is not kept."""
    values = {**trial.harness.request, "no_such_parameter": "x"}
    error = refusal(trial, values)
    if error is None:
        require("no_such_parameter" not in trial.parameters(values).values, "an unknown parameter is kept and shown.")
    else:
        require("no_such_parameter" in error.message, f"the refusal does not name it: {error.message!r}.")


@check(NUMBERS)
def what_is_no_number_is_refused(trial: Trial) -> None:
    """A number that is of another type, negative, zero or huge is refused with a sentence that names it."""
    for field in trial.harness.numbers:
        for value in NOT_NUMBERS:
            _must_refuse(trial, {**trial.harness.request, field: value}, field)


@check()
def values_of_wrong_types_are_refused_by_name(trial: Trial) -> None:
    """A value of a wrong type is refused with a sentence that names the parameter, or is read as what it means."""
    _each_replaced(trial, WRONG_TYPES)


@check()
def null_is_refused_by_name_or_means_nothing(trial: Trial) -> None:
    """Null is refused with a sentence that names the parameter, or means that nothing is asked for."""
    _each_replaced(trial, (None,))


@check()
def huge_values_are_refused_by_name(trial: Trial) -> None:
    """A huge value is refused with a short sentence that names the parameter, or is kept as it is."""
    _each_replaced(trial, HUGE)


@check()
def strange_texts_are_refused_by_name(trial: Trial) -> None:
    """Control characters and strange letters are refused by a sentence that has none of them, or kept as they are."""
    _each_replaced(trial, STRANGE)


@check(INVALID)
def what_the_harness_calls_invalid_is_refused(trial: Trial) -> None:
    """Values that a type of this sort cannot have are refused with a sentence that names the parameter."""
    for each in trial.harness.invalid:
        _must_refuse(trial, {**trial.harness.request, **each.values}, each.names)


@check(INVALID)
def a_refusal_points_at_its_field(trial: Trial) -> None:
    """Where a refusal points at a part of the request, it is the field that it names."""
    for each in trial.harness.invalid:
        error = refusal(trial, {**trial.harness.request, **each.values})
        pointer = None if error is None else error.pointer
        if error is not None and pointer is not None:
            fits = pointer.startswith("/") and pointer.split("/")[1] in error.message
            require(fits, f"the refusal of {each.names} points at {pointer!r}.")


@check(INVALID, CHANGES)
def a_change_is_checked_as_a_new_request(trial: Trial) -> None:
    """A change to a value that a new reservation cannot have is refused, and nothing is changed."""
    task = trial.task()
    kept = task.reservation.parameters
    for each in trial.harness.invalid:
        try:
            given = trial.type.resolve(Given(each.values), project_id=PROJECT, reservation=task.reservation)
            after = trial.type.changed(kept, given)
            trial.type.demand_again(task, after, known=trial.known)
        except (InvalidInput, NotFound, Conflict):
            continue
        except Exception as error:
            raise _bug(repr(dict(each.values)), error) from error
        require(False, f"a change to {dict(each.values)!r} is taken.")


@check(REQUIREMENT)
def a_malformed_requirement_is_refused(trial: Trial) -> None:
    """A requirement that is no JSON, or is not understood, is refused with a sentence that names its parameter."""
    field = trial.harness.requirement or ""
    for text in ("[", "[]]", '["=", "$x"]', '["no", "$x", "1"]', '["=", "x", "1"]', 5, {"a": 1}, "[" * 2000):
        _must_refuse(trial, {**trial.harness.request, field: text}, field)


@check(REQUIREMENT)
def an_unknown_property_is_refused(trial: Trial) -> None:
    """A requirement on a property that no resource has is refused with a sentence that names the property."""
    field = trial.harness.requirement or ""
    _must_refuse(trial, {**trial.harness.request, field: '["=", "$no_such_property", "1"]'}, field)


@check(REQUIREMENT, REQUIRES)
def a_requirement_is_kept_and_demanded(trial: Trial) -> None:
    """A requirement on a known property is the requirement of the reservation, and of its demand."""
    field, text = trial.harness.requirement or "", trial.harness.known
    parameters = trial.parameters({**trial.harness.request, field: text})
    asked = property_keys(parse_requirement(text, field=field))
    kept, demanded = (
        property_keys(trial.type.requirement(parameters)),
        property_keys(trial.demand(parameters).requirement),
    )
    require(asked <= kept, f"requirement has only {sorted(kept)} of {sorted(asked)}.")
    require(asked <= demanded, f"demand requires only {sorted(demanded)} of {sorted(asked)}.")
