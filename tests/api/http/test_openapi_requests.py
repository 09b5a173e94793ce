# SPDX-License-Identifier: Apache-2.0
"""The document has, for each resource type, what requests for reservations of it may have."""

from __future__ import annotations

from dataclasses import replace

from jsonschema import Draft202012Validator

from blazar.api.http import openapi
from blazar.api.kinds import generic
from blazar.api.parts import BUILTIN
from blazar.resources.contract.schemas import COUNT, a_request
from blazar.resources.request_schemas import SCHEMAS, default_values


def test_every_type_of_ours_has_a_component_for_requests():
    components = openapi.components(BUILTIN)
    shown = [each["properties"] for name, each in components.items() if name.endswith("ReservationRequest")]
    assert len(shown) == len(SCHEMAS)
    assert all(schema["properties"] in shown for schema in SCHEMAS.values())


def test_examples_of_requests_are_valid_with_and_without_defaults():
    for schema in SCHEMAS.values():
        for example in schema["examples"]:
            Draft202012Validator(schema).validate(example)
            Draft202012Validator(schema).validate({**default_values(schema), **example})


def test_the_part_of_another_package_brings_its_own():
    desks = a_request({"desks": COUNT}, required=("desks",), example={"desks": 2})
    part = replace(generic.PART, requests={"lab:desk": desks})
    assert openapi.requests((part,))["lab:desk"] == desks
