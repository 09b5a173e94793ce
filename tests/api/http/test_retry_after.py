# SPDX-License-Identifier: Apache-2.0
"""At 1.0, too, a 503 before anything was done says when to send the request once more; one after it does not."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from blazar.api.http.identity import KeystoneIdentity
from blazar.api.http.openapi import Served
from blazar.api.parts import BUILTIN
from blazar.model.base.errors import CloudUnavailable, ManagerUnavailable
from tests.api.conftest import app_of, token

ROUTES = [row for row in Served(BUILTIN).routes if not row.is_open and row.serves((1, 0))]
ADMIN = token("root", "demo", "admin")


def path_of(row) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: "host" if match[1] == "kind" else "1", row.url)


def asked(client, row):
    body = row.body.examples[0] if row.body else None
    return client.open(path_of(row), method=row.method, json=body, headers=ADMIN)


class Refusing:
    """A database that refuses statements from one of them on."""

    def __init__(self, engine, *, after: int = 0, commits: bool = False) -> None:
        self._left = after
        self._engine = engine
        self._commits = commits
        sa.event.listen(engine, "commit" if commits else "before_cursor_execute", self._refuse)

    def _refuse(self, *_) -> None:
        self._left -= 1
        if self._left < 0:
            raise sa.exc.OperationalError("SELECT 1", (), Exception("connection refused"))


def test_every_route_that_the_database_refuses_says_when_to_try_again(world):
    plain = app_of(world.manager).test_client()
    Refusing(world.engine)
    refused = []
    for row in ROUTES:
        answer = asked(plain, row)
        if answer.status_code == 503:
            refused.append(row.name)
            assert answer.headers["Retry-After"] == "5", row.name
    assert len(refused) >= 10, refused


def test_every_route_that_keystone_refuses_says_when_to_try_again(world):
    plain = app_of(world.manager, KeystoneIdentity()).test_client()
    for row in ROUTES:
        answer = plain.open(path_of(row), method=row.method, headers={"X-Identity-Status": "Unknown"})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5"), row.name


@pytest.mark.parametrize("error", [ManagerUnavailable("the answer was lost"), CloudUnavailable("Nova is away")])
def test_every_refused_question_says_when_to_ask_again(world, error):
    class Lost:
        def __getattr__(self, name):
            def fail(*_, **__):
                raise error

            return fail

    class Manager:
        def __getattr__(self, name):
            return Lost()

    plain = app_of(Manager()).test_client()
    for row in ROUTES:
        if row.method == "GET":
            answer = asked(plain, row)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5"), row.name


def test_a_change_that_may_have_been_made_invites_no_other_try(world):
    plain = app_of(world.manager).test_client()
    hosts = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": ""}
    hosts["resource_properties"] = ""
    body = {"name": "first", "start_date": "now", "end_date": "2031-01-01 00:00", "reservations": [hosts]}
    Refusing(world.engine, commits=True)
    answer = plain.post("/v1/leases", json=body, headers=ADMIN)
    assert answer.status_code == 503
    assert "Retry-After" not in answer.headers
