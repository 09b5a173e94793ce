# SPDX-License-Identifier: Apache-2.0
"""The demo: enough to see on every page, the same each time, and true to what the service would have done."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from blazar.cmd import config
from blazar.cmd.demo import hosts, past
from blazar.model.lease import LeaseStatus
from blazar.model.resource import HOST
from blazar.store.engine import connect
from blazar.store.store import Store
from tests.cmd.test_standalone import begun, call

NOW = datetime(2030, 6, 12, 15, 20, 7, tzinfo=UTC)


def made(folder, days: int) -> Store:
    conf = config.load([], program="blazar-test", files=[], conf=cfg.ConfigOpts())
    past.make(conf, database=folder / "blazar.sqlite", cloud=folder / "cloud.json", now=NOW, days=days)
    return Store(connect(f"sqlite:///{folder / 'blazar.sqlite'}"), cleaning_time=timedelta(0))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    return made(tmp_path_factory.mktemp("demo"), days=30)


def test_there_are_leases_of_many_projects_past_present_and_future(store):
    leases = store.leases.of_project(None)
    assert len({lease.project_id for lease in leases}) >= 6
    counts = Counter(lease.status for lease in leases)
    assert counts[LeaseStatus.TERMINATED] > 30
    assert counts[LeaseStatus.ACTIVE] >= 4
    assert counts[LeaseStatus.PENDING] > 15
    assert set(counts) == {LeaseStatus.TERMINATED, LeaseStatus.ACTIVE, LeaseStatus.PENDING}
    assert any(lease.degraded for lease in leases)
    assert {r.resource_type for lease in leases for r in lease.reservations} == {
        "physical:host",
        "virtual:instance",
        "virtual:floatingip",
    }


def test_there_are_sixty_hosts_and_some_of_them_are_out_of_use(store):
    found = store.resources.of_kind(HOST)
    assert len(found) == len(list(hosts.hosts())) == 60
    assert {host.name for host in found if host.disabled} == {"cpu-07", "io-02", "h100-06"}
    assert len([host for host in found if host.failure]) == 2
    assert len({host.attributes["availability_zone"] for host in found}) == 3
    assert {"A100", "H100"} <= {host.capabilities.get("gpu") for host in found}


def test_what_is_in_use_is_in_use_in_the_cloud_too(store, tmp_path_factory):
    file = next(tmp_path_factory.getbasetemp().glob("demo*/cloud.json"))
    state = json.loads(file.read_text(encoding="utf-8"))
    zones = {str(aggregate["zone"]).removeprefix("blazar_") for aggregate in state["aggregates"].values()}
    active = [one for one in store.leases.of_project(None) if one.status is LeaseStatus.ACTIVE]
    whole = [r.id for lease in active for r in lease.reservations if r.resource_type == "physical:host"]
    assert whole
    assert set(whole) <= zones


def test_it_is_the_same_each_time(tmp_path):
    lives = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        leases = made(tmp_path / name, days=4).leases.of_project(None)
        lives.append(sorted((one.name, one.user_id, str(one.window), one.status) for one in leases))
    assert lives[0] == lives[1] != []


def test_a_start_that_was_interrupted_begins_from_the_beginning(tmp_path):
    (tmp_path / "blazar.sqlite.unfinished").write_text("half of a database", encoding="utf-8")
    (tmp_path / "cloud.json").write_text("half", encoding="utf-8")
    assert made(tmp_path, days=1).resources.of_kind(HOST)
    assert not (tmp_path / "blazar.sqlite.unfinished").exists()


@pytest.mark.slow
def test_it_starts_within_seconds_and_goes_on_where_it_was(tmp_path):
    for _ in range(2):
        begins = datetime.now(UTC)
        program, url = begun(tmp_path, "--demo")
        # Where more programs run than there are processors, each gets less than one.
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        assert datetime.now(UTC) - begins < timedelta(seconds=30) * busy
        try:
            leases = call(f"{url}/v1/leases")["leases"]
            assert len([one for one in leases if one["status"] == "ACTIVE"]) >= 4
            assert {one["status"] for one in leases} <= {"ACTIVE", "PENDING", "TERMINATED", "STARTING"}
        finally:
            assert program.stop() == 0
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'data' / 'blazar.sqlite'}")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM resources WHERE kind = 'host'")).scalar() == 60
