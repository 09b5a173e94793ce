# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of a type's parameters: true to what the type takes, and fit for a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from blazar.model.base.errors import Conflict, InvalidInput, NotFound
from blazar.model.base.json_text import Json
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.checked import CheckedType
from blazar.resources.contract.schemas import BEFORE_START, CHANGEABLE, NEVER
from blazar.resources.contract.values import Task
from blazarconformance.catalogue import CHANGES, SCHEMA, check, require
from blazarconformance.demands import changed, demanded_again
from blazarconformance.trial import Trial

_REFUSALS = (Conflict, InvalidInput, NotFound)


def _schema(trial: Trial) -> Any:
    return CheckedType(trial.site.type).schema


def _refusals(trial: Trial, values: Json) -> list[str]:
    return [error.message for error in Draft202012Validator(_schema(trial)).iter_errors(dict(values))]


@check(SCHEMA)
def its_schema_takes_what_it_takes(trial: Trial) -> None:
    """The schema of a type takes every request that the type takes."""
    for each in (trial.harness.request, *trial.harness.others):
        # As it is kept: a number may be sent as a text at 1.0 only.
        kept = trial.parameters(each).values
        values = {name: kept.get(name, value) for name, value in each.items()}
        wrong = _refusals(trial, values)
        require(not wrong, f"the schema refuses {dict(values)!r}: {wrong}.")


@check(SCHEMA)
def its_schema_refuses_misspelt_fields(trial: Trial) -> None:
    """The schema of a type refuses a request with a field that is misspelt, and requires only what the type needs."""
    for field, value in trial.harness.request.items():
        require(_refusals(trial, {**trial.harness.request, f"{field}x": value}), f"the schema takes {field}x.")
    more = sorted(set(_schema(trial).get("required", ())) - set(trial.harness.needed))
    require(not more, f"the schema requires {more}, without which the type takes a request.")


@check(SCHEMA)
def its_schema_says_what_to_give(trial: Trial) -> None:
    """Every field of the schema of a type says what to give, and what is given in its place is valid."""
    for name, field in _schema(trial)["properties"].items():
        said = field.get("description") or "enum" in field
        require(said, f"the field {name} has no description, which errors and forms quote.")
        if "default" in field:
            wrong = [error.message for error in Draft202012Validator(field).iter_errors(field["default"])]
            require(not wrong, f"the default of {name} is not valid: {wrong}.")
    for example in _schema(trial).get("examples", ()):
        require(not _refusals(trial, example), f"the example {example!r} is not valid.")


@check(SCHEMA)
def its_schema_has_numbers_and_requirements(trial: Trial) -> None:
    """Numbers are numbers in the schema of a type, and requirements are marked as such, so that forms ask for them."""
    fields = _schema(trial)["properties"]
    for name in trial.harness.numbers:
        require("integer" in str(fields[name].get("type")), f"{name} is no whole number in the schema.")
    wanted = trial.harness.requirement
    if wanted is not None:
        require(fields[wanted].get("format") == "requirement", f"{wanted} has not the format 'requirement'.")


@check(CHANGES, SCHEMA)
def its_schema_says_what_can_change(trial: Trial) -> None:
    """A change of what the schema says to be fixed is refused with its name; other changes are taken."""
    waiting, used = trial.another(), trial.another()
    task, in_use = waiting.task(), used.in_use()
    for name, field in _schema(trial)["properties"].items():
        mark = field.get(CHANGEABLE)
        require(mark in (None, BEFORE_START, NEVER), f"{CHANGEABLE} of {name} is {mark!r}.")
        others = _with_another(trial, task, name)
        require(others or mark is None, f"{name} has the mark {mark!r}, and no request of the harness has another one.")
        if mark is not None:
            in_time = any(_taken(used, in_use, name, values) for values in others)
            require(not in_time, f"{name} has the mark {mark!r}, and a change in use is taken.")
        if others:
            early = any(_taken(waiting, task, name, values) for values in others)
            found = "taken" if early else "refused"
            require(
                early == (mark != NEVER), f"{name} has the mark {mark!r}, and a change before the start is {found}."
            )


def _with_another(trial: Trial, task: Task, name: str) -> list[Mapping[str, Any]]:
    """Return what the harness has with another value of a parameter than a reservation of its request."""
    now = (trial.harness.request.get(name), task.reservation.parameters.values.get(name))
    changes = (*trial.harness.others, *trial.harness.fixed, trial.harness.larger or {})
    return [values for values in changes if name in values and values[name] not in now]


def _taken(trial: Trial, task: Task, name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a change of a parameter is taken: before the start also with all that comes with it."""
    try:
        demanded_again(trial, task, {name: values[name]})
        # The same may be said in other words.
        after = changed(trial, task, {name: values[name]})
        return after.reservation.parameters != task.reservation.parameters
    except _REFUSALS as error:
        if task.reservation.status is not ReservationStatus.PENDING:
            require(name in error.message, f"the refusal of another {name} does not name it: {error.message!r}.")
            return False
    try:
        demanded_again(trial, task, values)
    except _REFUSALS:
        return False
    return True
