# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of a type's parameters: true to what the type takes, and fit for a form."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from blazar.model.lease import Json
from blazar.resources.complete import CompleteType
from blazar.testing.conformance.catalogue import SCHEMA, check, require
from blazar.testing.conformance.trial import Trial


def _schema(trial: Trial) -> Any:
    return CompleteType(trial.site.type).schema


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
