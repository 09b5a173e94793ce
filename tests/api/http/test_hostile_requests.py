# SPDX-License-Identifier: Apache-2.0
"""What members send is bounded before it is parsed, whatever it asks for: a 400 names the field, and nobody waits."""

from __future__ import annotations

import base64
import json

import pytest

from blazar.api.http.openapi import Served
from blazar.api.http.routes import Root
from blazar.api.leases.limits import MOST_TEXT
from blazar.api.parts import all_parts
from blazar.model.base.errors import InvalidInput
from blazar.resources.stacks.documents import MOST_VALUES
from blazar.resources.stacks.source import StackSource
from tests.api.conftest import token
from tests.api.leases.test_rest_v1 import LEASE
from tests.hostile import stack_texts, yaml_texts
from tests.work import Work, work_of

ADMIN = token("root", "demo", "admin")
MOST = Work(cpu=0.5, gap=0.05)
"""The CPU of a whole request, with all that the tests check of its answer."""

TEMPLATE = "heat_template_version: 2018-08-31\nresources: {a: {type: 'OS::Nova::Server'}}\n"


def a_stack(template=TEMPLATE, **more):
    return {"resource_type": "virtual:stack", "template": template, **more}


def asking():
    """Return the routes that are asked for reservations by type, with a body of each that is right."""
    for row in Served(all_parts()).routes:
        body = row.body
        if body is None or row.method != "POST" or "{" in row.path or row.root is Root.V2:
            continue
        if "reservations" in body.schema.get("properties", {}):
            minor = row.since[1]
            example = next(each for each in body.examples if "lease_id" not in each) if body.examples else LEASE
            yield pytest.param(row.url, minor, example, id=f"{row.url} {minor}")


ASKING = [*asking()]
NEWEST = [*{each.values[0]: each for each in ASKING}.values()]


def ask(http, path, minor, example, reservation, **query):
    version = {"OpenStack-API-Version": f"reservation 1.{minor}"}
    body = {**example, "reservations": [reservation]}
    return http.post(path, json=body, headers={**token(), **version}, query_string=query)


def refused(answer, minor):
    """Return the sentence of a refusal, which names the field."""
    assert answer.status_code == 400, answer.text
    if minor == 0:
        return answer.json["error_message"]
    (fault,) = answer.json["errors"]
    assert fault["pointer"].startswith("/reservations/0/"), fault
    return fault["detail"]


def is_readable(stack):
    try:
        StackSource.checked(stack)
    except InvalidInput:
        return False
    return True


def test_leases_questions_and_series_are_asked_for_with_reservations():
    assert {each.values[0] for each in ASKING} >= {"/v1/leases", "/v1/availability", "/v1/series"}


@pytest.mark.parametrize(("path", "minor", "example"), ASKING)
def test_all_that_is_asked_for_has_the_same_bound_of_text(http, path, minor, example):
    long = TEMPLATE + "#" * MOST_TEXT
    for reservation in (a_stack(long), a_stack(files={"a": long}), a_stack(environment=long), a_stack(parameters=long)):
        sentence = refused(ask(http, path, minor, example, reservation), minor)
        assert str(MOST_TEXT) in sentence
        assert "reservations[0]" in sentence


@pytest.mark.sample(1)
@pytest.mark.parametrize(("path", "minor", "example"), NEWEST)
@pytest.mark.parametrize("field", ["template", "environment", "parameters"])
def test_hostile_yaml_is_refused_in_a_moment_wherever_it_is_sent(http, path, minor, example, field):
    for name, text in yaml_texts(30 * 1024).items():
        if field != "template" and name not in ("values", "directives", "base 60 with a fraction", "laughs"):
            continue
        stack = a_stack(**{"template": TEMPLATE, field: text})

        def send(stack=stack, name=name):
            answer = ask(http, path, minor, example, stack)
            if is_readable(stack):
                assert answer.status_code < 500, name
            else:
                assert field in refused(answer, minor), name

        work = work_of(send, most=MOST)
        assert work.gap <= MOST.gap, name
        assert work.cpu <= MOST.cpu, name


@pytest.mark.sample(1)
@pytest.mark.parametrize(("path", "minor", "example"), NEWEST)
def test_stacks_that_are_little_by_their_parts_and_much_together_are_answered_in_a_moment(http, path, minor, example):
    for name, text in stack_texts().items():

        def send(text=text, name=name):
            answer = ask(http, path, minor, example, a_stack(**json.loads(text)))
            assert answer.status_code < 500, name

        work = work_of(send, most=MOST)
        assert work.gap <= MOST.gap, name
        assert work.cpu <= MOST.cpu, name


def test_files_share_the_limit_of_values_with_the_template(http):
    files = {f"{name}.yaml": f"{TEMPLATE}x: [{'1,' * 1500}]" for name in "abcdefgh"}
    uses = "".join(f"  {name[0]}: {{type: {name}}}\n" for name in files)
    template = f"heat_template_version: 2018-08-31\nresources:\n{uses}"
    answer = ask(http, "/v1/availability", 1, {"duration": "PT1H"}, a_stack(template, files=files))
    assert f"{MOST_VALUES} values together" in refused(answer, 1)


def test_a_marker_with_any_value_is_unknown(http):
    lists = [row.url for row in Served(all_parts()).routes if any(each.name == "marker" for each in row.parameters)]
    paths = [path for path in dict.fromkeys(lists) if "{" not in path]
    assert len(paths) > 5
    for value in ("1" + "0" * 400, "-1" + "0" * 400, "1e400", "Infinity", "[" * 2000, "{}", "nul"):
        marker = "c." + base64.urlsafe_b64encode(json.dumps({"k": value, "i": "x"}).encode()).decode().rstrip("=")
        for path in paths:
            answer = http.get(f"{path}?marker={marker}", headers={**ADMIN, "OpenStack-API-Version": "reservation 1.1"})
            assert (answer.status_code, answer.json["errors"][0]["parameter"]) == (400, "marker"), f"{path} {value}"


@pytest.mark.parametrize("requirement", ['["not", []]', '["and", ["not", []]]', '["not", ["not", ["not", []]]]'])
@pytest.mark.parametrize(("path", "minor", "example"), ASKING)
def test_what_nothing_can_meet_is_not_to_be_had(http, path, minor, example, requirement):
    host = {"resource_type": "physical:host", "min": 1, "max": 1, "resource_properties": requirement}
    if "start_date" in example:
        example = {**example, "start_date": "now", "end_date": "2030-04-05 08:00" if minor == 0 else "+P1D"}
    answer = ask(http, path, minor, example, {**host, "hypervisor_properties": ""})
    assert answer.status_code in (200, 400, 409), answer.text
