# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: what needs an operator's attention is counted and listed by filters, however much there is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.store.sql.tables import leases
from tests.api.conftest import app_of, client_of, token
from tests.statements import counted
from tests.world import NOON, World, a_host

HOUR = timedelta(hours=1)
OPERATOR = token("root", "admin", "admin")


def read(http, path: str, **who):
    headers = {"OpenStack-API-Version": "reservation 1.1", **OPERATOR, **who}
    return http.get(path, headers=headers)


def names(http, query: str, path: str = "/v1/resources/host", key: str = "resources") -> list[str]:
    answer = read(http, f"{path}?{query}&with_count=true").json
    assert answer["count"] == len(answer[key])
    return [each["name"] for each in answer[key]]


@pytest.fixture
def world(engine) -> World:
    return World(engine, hosts=4, settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def closed(http, host: str, start: str, end: str) -> None:
    body = {"name": host, "start_date": start, "end_date": end, "hosts": [host]}
    headers = {"OpenStack-API-Version": "reservation 1.1", **OPERATOR}
    impact = http.post("/v1/maintenances?dry_run=true", json=body, headers=headers).json["impact"]["id"]
    made = http.post("/v1/maintenances", json={**body, "impact_id": impact}, headers=headers)
    assert made.status_code == 201, made.text


def test_hosts_are_found_that_are_disabled_without_an_end_or_in_maintenance_today(world, http):
    headers = {"OpenStack-API-Version": "reservation 1.1", **OPERATOR}
    for host, disabled in (("1", {"reason": "no disks"}), ("2", {"until": "+P1D"})):
        assert http.put(f"/v1/resources/host/{host}", json={"disabled": disabled}, headers=headers).status_code == 200
    closed(http, "3", "2030-04-01T13:00:00Z", "2030-04-01T15:00:00Z")
    closed(http, "4", "2030-04-02T13:00:00Z", "2030-04-02T15:00:00Z")
    today = "maintenance_before=2030-04-02T00:00:00Z"
    assert names(http, "condition=disabled") == ["node-1", "node-2"]
    assert names(http, "condition=disabled_without_end") == ["node-1"]
    assert names(http, today) == ["node-3"]
    assert names(http, "maintenance_before=now") == []
    assert names(http, "maintenance_before=2030-05-01T00:00:00Z") == ["node-3", "node-4"]
    assert names(http, f"{today}&condition=failed") == []
    with counted(world.engine) as statements:
        read(http, f"/v1/resources/host?{today}")
    assert statements.count <= 2
    world.clock.to(NOON + 4 * HOUR)
    world.manager.maintenance_work.run_once()
    world.manager.maintenance_work.run_once()
    assert names(http, today) == []


def test_leases_that_are_about_to_be_released_are_counted_and_come_in_their_order(world, http):
    for name, start in (("first", 0), ("second", 1), ("last", 2)):
        world.lease(a_host(), hours=96, start=start * HOUR, name=name)
    world.run_to(NOON + 9 * HOUR - timedelta(minutes=1))
    listed = ("/v1/leases", "leases")
    soon = "release_at=gt:2000-01-01T00:00:00Z&sort_key=release_at"
    assert names(http, soon, *listed) == ["first", "second", "last"]
    assert names(http, f"{soon}&sort_dir=desc", *listed) == ["last", "second", "first"]
    first = read(http, f"/v1/leases?{soon}&limit=1&with_count=true").json
    assert first["count"] == 3
    following = next(each["href"] for each in first["links"] if each["rel"] == "next")
    assert [each["name"] for each in read(http, following).json["leases"]] == ["second"]
    assert names(http, "release_at=lte:2030-04-01T21:00:00Z", *listed) == ["first"]
    # What is not about to be released comes at its end.
    world.lease(a_host(), hours=1, start=12 * HOUR, name="short")
    assert names(http, "sort_key=release_at", *listed)[-1] == "short"


def test_late_and_failed_leases_are_counted_with_as_many_statements_as_there_are_parts(world, http):
    for name in ("late", "failed", "fine"):
        world.lease(a_host(), start=2 * HOUR, hours=4, name=name)
    with world.engine.begin() as connection:
        connection.execute(leases.update().where(leases.c.name == "failed").values(status=str(LeaseStatus.ERROR)))
        late = leases.update().where(leases.c.name == "late").values(starts_at=NOON - HOUR)
        connection.execute(late)
    listed = ("/v1/leases", "leases")
    assert names(http, "status=PENDING&start_date=lt:2030-04-01T11:58:00Z", *listed) == ["late"]
    assert names(http, "status=ERROR", *listed) == ["failed"]
    with counted(world.engine) as statements:
        read(http, "/v1/leases?status=ERROR&limit=5&with_count=true&fields=name")
    assert statements.count == 2
    assert world.manager.resources.one(HOST, "1").failed_since is None
