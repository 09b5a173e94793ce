# SPDX-License-Identifier: Apache-2.0
"""Conversations with the API, each a YAML file in the format of gabbi: requests in order, and their answers.

A file talks to a service of its own, with three hosts of which none is registered and the external network ``public``.
It is noon on 2030-04-01, and stays so; due events run after every request. Without a token the caller is an operator.
"""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

import pytest
import yaml
from gabbi import handlers, suitemaker

from tests.api.conftest import app_of
from tests.world import World

FILES = sorted((Path(__file__).parent / "conversations").glob("*.yaml"))
HANDLERS = [handler() for handler in handlers.RESPONSE_HANDLERS]


@pytest.mark.sample(1)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_conversation(a_world, file):
    world: World = a_world(register=False)
    app = app_of(world.manager)

    def served(environ: dict[str, Any], start_response: Any) -> Any:
        answer = app(environ, start_response)
        world.run()
        return answer

    suite = suitemaker.test_suite_from_dict(
        loader=unittest.defaultTestLoader,
        test_base_name=file.stem,
        suite_dict=yaml.safe_load(file.read_text(encoding="utf-8")),
        test_directory=str(file.parent),
        host="localhost",
        port=1234,
        fixture_module=None,
        intercept=lambda: served,
        handlers=HANDLERS,
    )
    result = unittest.TestResult()
    result.failfast = True
    suite.run(result)
    problems = [f"{test}\n{text}" for test, text in (*result.failures, *result.errors)]
    assert not problems, problems[0]
    assert result.testsRun == suite.countTestCases() > 3
    assert not result.skipped


def test_there_are_conversations_about_all_that_can_be_reserved():
    assert {"hosts", "leases", "instances", "floating-ips", "allocations", "properties"} <= {f.stem for f in FILES}


def test_there_are_conversations_about_what_1_1_adds():
    nouns = {"availability", "calendar", "capacity", "feeds", "info"}
    again = {f"resources-{noun}" for noun in ("hosts", "floating-ips", "allocations", "properties")}
    assert nouns | again <= {file.stem for file in FILES}
