# SPDX-License-Identifier: Apache-2.0
"""What is sent to Heat, and what comes of answers that the test cloud gives seldom."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from blazar.clouds.openstack.stacks import OpenStackStacks
from blazar.clouds.ports.stacks import Stack, StackExists, StackPlan, StackRefused
from blazar.model.base.errors import CloudUnavailable, Conflict
from tests.clouds.test_access import NOVA as HEAT
from tests.clouds.test_access import an_access, sent, web

__all__ = ["web"]

PLAN = StackPlan("s", {"heat_template_version": "2018-08-31"}, {"a": "x"}, {}, {"n": 1}, timeout=7)


@pytest.fixture
def stacks(web):
    # The catalog of these tests has one compute service; any will do.
    inside = SimpleNamespace(orchestration=an_access().compute)
    return OpenStackStacks(SimpleNamespace(in_project=lambda project_id, recent: inside))


def listed(id, status, **more):
    return {"id": id, "stack_name": "s", "stack_status": status, "stack_status_reason": None, "tags": None, **more}


def create(stacks):
    return stacks.begin_stack("p", PLAN, tags=frozenset({"b", "a"}))


def error(kind, message="x"):
    return {"code": 400, "title": "Bad Request", "explanation": "e", "error": {"type": kind, "message": message}}


def test_a_stack_is_created_without_a_rollback_and_with_its_tags(web, stacks):
    web.post(f"{HEAT}/stacks", status_code=201, json={"stack": {"id": "1"}})
    assert create(stacks) == "1"
    (call,) = sent(web, "/stacks")
    assert call.json() == {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31"},
        "files": {"a": "x"},
        "environment": {},
        "parameters": {"n": 1},
        "timeout_mins": 7,
        "tags": "a,b",
        "disable_rollback": True,
    }


def test_what_heat_says_against_a_template_is_kept_for_its_author(web, stacks):
    web.post(f"{HEAT}/stacks/preview", status_code=400, json=error("StackValidationFailed", "no flavor"))
    with pytest.raises(StackRefused) as refused:
        stacks.preview_stack("p", PLAN)
    assert (refused.value.explanation, refused.value.cause.code) == ("no flavor", "cloud_refused")


def test_the_quota_of_stacks_is_told_by_the_type_of_the_error_and_asked_for_once(web, stacks):
    web.post(f"{HEAT}/stacks", status_code=400, json=error("RequestLimitExceeded", "the maximum number of stacks"))
    with pytest.raises(StackRefused) as refused:
        create(stacks)
    assert refused.value.cause.code == "quota_exceeded"
    assert len(sent(web, "/stacks")) == 1


@pytest.mark.parametrize(("kind", "raised"), [("StackExists", StackExists), ("ActionInProgress", Conflict)])
def test_a_name_in_use_is_told_by_the_type_of_the_error(web, stacks, kind, raised):
    web.post(f"{HEAT}/stacks", status_code=409, json=error(kind))
    with pytest.raises(Conflict) as refused:
        create(stacks)
    assert isinstance(refused.value, raised)
    assert isinstance(refused.value, StackExists) == (kind == "StackExists")


def test_a_creation_whose_answer_is_lost_is_not_repeated(web, stacks):
    web.post(f"{HEAT}/stacks", status_code=500, json=error("RemoteError"))
    with pytest.raises(CloudUnavailable):
        create(stacks)
    assert len(sent(web, "/stacks")) == 1


def test_a_stack_that_is_deleted_is_none_while_heat_still_lists_it(web, stacks):
    web.get(f"{HEAT}/stacks", json={"stacks": [listed("1", "DELETE_COMPLETE")]})
    assert stacks.stack("p", "1") is None
    assert stacks.stacks_tagged("p", "a") == stacks.stack_resources("p", "1") == ()


def test_states_are_told_apart_from_actions(web, stacks):
    web.get(f"{HEAT}/stacks", json={"stacks": [listed("1", "DELETE_IN_PROGRESS", tags=["a"]), listed("2", "ODD")]})
    assert stacks.stacks_tagged("p", "a") == (
        Stack("1", "s", "DELETE", "IN_PROGRESS", "", frozenset({"a"})),
        Stack("2", "s", "ODD", ""),
    )
