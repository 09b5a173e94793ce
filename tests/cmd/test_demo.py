# SPDX-License-Identifier: Apache-2.0
"""The demo: enough to see on every page, the same each time, and true to what the service would have done."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from werkzeug.test import Client

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import all_parts
from blazar.clouds.simulated import open_cloud
from blazar.cmd import assemble, config
from blazar.cmd.demo import cloud, energy, past, stage
from blazar.cmd.demo.stage import DemoClock
from blazar.cmd.standalone import with_own_policy
from blazar.model.base.paging import Page
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.hosts import PowerQuestion
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import DEVICE, HOST, VOLUME
from blazar.store.sql.engine import make_engine
from blazar.store.store import Store
from tests.cmd.test_standalone import begun, call

ADMIN, ALICE = "admin:demo:admin", "alice:physics:member"
NOW = datetime(2030, 6, 12, 15, 20, 7, tzinfo=UTC)


def made(folder, days: int, now: datetime = NOW) -> Store:
    conf = config.load([], program="blazar-test", files=[], conf=cfg.ConfigOpts())
    past.make(conf, database=folder / "blazar.sqlite", cloud=folder / "cloud.json", now=now, days=days)
    return Store(make_engine(f"sqlite:///{folder / 'blazar.sqlite'}"), cleaning_time=timedelta(0))


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that was made: its folder, and what its service answers at ``NOW``."""

    folder: Path
    store: Store
    client: Client

    def read(self, path: str, who: str = ADMIN) -> dict[str, Any]:
        answer = self.client.get(path, headers={"X-Auth-Token": who, "OpenStack-API-Version": "reservation 1.1"})
        assert answer.status_code == 200, answer.text
        return dict(answer.json)


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    store = made(folder, days=30)
    conf = config.load([], program="blazar-test", files=[], conf=cfg.ConfigOpts())
    stage.set_defaults(conf)
    clock = DemoClock(NOW)
    cloud = open_cloud(folder / "cloud.json", clock=clock)
    engine = make_engine(f"sqlite:///{folder / 'blazar.sqlite'}")
    manager = assemble.manager(conf, engine=engine, clouds={"": cloud}, clock=clock)
    app = create_app(
        manager,
        identity=StandaloneIdentity(),
        policy=Policy(with_own_policy(conf, folder), parts=all_parts()),
        served=Served(all_parts()),
        bounds=config.api_bounds(conf),
    )
    return Demo(folder, store, app.test_client())


@pytest.fixture(scope="module")
def store(demo) -> Store:
    return demo.store


@pytest.mark.slow
def test_there_are_leases_of_many_projects_past_present_and_future(store):
    leases = store.leases.of_project(None)
    assert len({lease.project_id for lease in leases}) >= 6
    counts = Counter(lease.status for lease in leases)
    assert counts[LeaseStatus.TERMINATED] > 30
    assert counts[LeaseStatus.ACTIVE] >= 4
    assert counts[LeaseStatus.PENDING] > 15
    assert counts[LeaseStatus.WAITING] >= 2
    assert counts[LeaseStatus.STARTING] == 1
    ordinary = {LeaseStatus.TERMINATED, LeaseStatus.ACTIVE, LeaseStatus.PENDING, LeaseStatus.WAITING}
    assert set(counts) == {*ordinary, LeaseStatus.STARTING}
    assert any(lease.degraded for lease in leases)


def test_there_are_leases_of_every_type_of_resource_that_has_something_registered(demo):
    types = {r.resource_type for lease in demo.store.leases.of_project(None) for r in lease.reservations}
    kinds = {kind["name"] for kind in demo.read("/v1/resources")["kinds"]}
    for kind in kinds:
        assert demo.read(f"/v1/resources/{kind}")["resources"], kind
    assert types == {
        "physical:host",
        "virtual:instance",
        "virtual:floatingip",
        "virtual:volume",
        "network",
        "generic",
        "device",
    }


def test_hosts_of_several_kinds_sleep_with_their_reasons_and_none_that_a_lease_has(demo):
    hosts = demo.read("/v1/power/hosts?limit=100")["hosts"]
    asleep = {host["name"] for host in hosts if host["state"] == "off"}
    assert len(asleep) >= 10
    assert len({name.partition("-")[0] for name in asleep}) >= 3
    active = [lease for lease in demo.store.leases.of_project(None) if lease.status is LeaseStatus.ACTIVE]
    used = {use.resource_id for lease in active for use in demo.store.calendar.of_lease(lease.id)}
    assert not asleep & {resource.name for resource in demo.store.resources.by_ids(used).values()}
    power = demo.read("/v1/power")["power"]
    assert power["done"]["slept_hours"] > 0
    assert len(power["classes"]) == 3


def test_operators_have_problems_of_several_kinds_with_their_reasons_and_what_to_do(demo):
    found = demo.read("/v1/problems?limit=200")["problems"]
    assert {problem["kind"] for problem in found} == {"event", "lease", "resource", "drift"}
    (start,) = [problem for problem in found if problem["kind"] == "event"]
    assert start["summary"].startswith("start_lease of lease beamline-replay has failed ")
    assert "server that belongs to no reservation" in start["explanation"][0]
    (drift,) = [problem for problem in found if problem["kind"] == "drift"]
    assert drift["actions"] == ["mend"]
    assert "It would call grant_flavor" in drift["explanation"][0]


@pytest.mark.parametrize("kind", ["host", "floatingip", "volume", "network", "generic", "device"])
def test_something_of_each_kind_is_in_use_now_and_by_the_member_who_looks(demo, kind):
    resource_type = {
        "host": "physical:host",
        "floatingip": "virtual:floatingip",
        "volume": "virtual:volume",
    }.get(kind, kind)
    query = f"/v1/calendar?resource_type={resource_type}"
    for who, blocks in ((ADMIN, {"lease", "mine"}), (ALICE, {"mine"})):
        read = demo.read(query, who)["calendar"]
        now = {block["kind"] for row in read["resources"] for block in row["blocks"] if block["start"] <= read["as_of"]}
        assert blocks & now


def test_of_what_was_reserved_most_was_used_some_was_idle_and_nothing_was_released_for_that(demo):
    span = "from=2030-05-20T00:00:00Z&to=2030-06-12T00:00:00Z"
    rows = demo.read(f"/v1/reports/usage?{span}&step=all&group_by=resource_type")["report"]["rows"]
    (hosts,) = (row for row in rows if row["resource_type"] == "physical:host")
    assert hosts["used"] > hosts["idle"] > hosts["reserved"] * 0.05
    assert hosts["used"] > hosts["reserved"] * 0.4
    assert all(row["idle"] == 0 for row in rows if row["resource_type"] == "device")
    ended = demo.read("/v1/leases?state=past&limit=1000")["leases"]
    assert "unused" not in {lease["end_reason"] for lease in ended}


def test_no_lease_is_some_seconds_shorter_than_whole_hours(store):
    lengths = {lease.name: lease.window.end - lease.window.start for lease in store.leases.of_project(None)}
    short = {name: str(length) for name, length in lengths.items() if length % timedelta(hours=1)}
    assert short == {}


def test_there_is_a_series_whose_occurrences_are_over_booked_and_cancelled(demo):
    (series,) = demo.read("/v1/series")["series"]
    assert series["name"] == "hpc-course"
    states = Counter(each["state"] for each in demo.read(f"/v1/series/{series['id']}")["series"]["occurrences"])
    assert {"over", "booked", "cancelled"} <= set(states)


def test_some_wait_in_line_one_in_vain_and_some_are_promised_a_start(demo):
    leases = demo.read("/v1/leases?limit=1000")["leases"]
    waits = [one["wait"] for one in leases if one["status"] == "WAITING"]
    assert sorted(wait["position"] for wait in waits) == list(range(1, len(waits) + 1))
    assert any(wait["estimated_start"] for wait in waits)
    assert any(wait["reason"] for wait in waits)
    assert any(one["wait"] and one["wait"]["advance"] for one in leases if one["status"] == "PENDING")
    assert any(one["status"] == "WAITING" for one in demo.read("/v1/leases", ALICE)["leases"])


def test_hosts_are_in_maintenance_today_and_will_be(demo):
    windows = demo.read("/v1/maintenances")["maintenances"]
    assert {one["status"] for one in windows} == {"ACTIVE", "PLANNED"}
    (planned,) = (one for one in windows if one["status"] == "PLANNED")
    assert demo.read(f"/v1/maintenances/{planned['id']}")["maintenance"]["leases"]


def test_leases_are_offered_prolonged_and_had_room_made(demo):
    leases = demo.read("/v1/leases?limit=1000")["leases"]
    assert {one["name"] for one in leases if one["transfer"]} == {"beamtime-reserve", "docking-spare"}
    assert [one["lease"]["name"] for one in demo.read("/v1/transfers", ALICE)["transfers"]] == ["docking-spare"]
    assert [one["name"] for one in leases if one["extend_if_free"]] == ["lattice-tail"]
    (prolonged,) = (one for one in leases if one["name"] == "reanalysis-tail")
    # As far as it was to go on.
    assert prolonged["end_date"] == (NOW + timedelta(days=2, minutes=1)).strftime("%Y-%m-%dT%H:%M:00Z")
    assert [one["status"] for one in leases if one["kind"] == "best_effort"] == ["ACTIVE"]


def test_a_limit_is_nearly_used_up_and_hosts_can_be_booked_all_the_same(demo):
    def asked(reservation: dict[str, Any], hours: int) -> Any:
        begins = NOW + timedelta(days=1)
        dates = {"start_date": begins.isoformat(), "end_date": (begins + timedelta(hours=hours)).isoformat()}
        body = {"name": "asked", **dates, "reservations": [reservation]}
        headers = {"X-Auth-Token": ALICE, "OpenStack-API-Version": "reservation 1.1"}
        return demo.client.post("/v1/leases?dry_run=true", json=body, headers=headers)

    assert asked({"resource_type": "physical:host", "min": 1}, 48).status_code == 200
    refused = asked({"resource_type": "device", "min": 2, "max": 2}, 12)
    assert refused.status_code == 403
    assert 0 <= stage.HOURS["device"] - refused.json["errors"][0]["data"]["used"] < 12


@pytest.mark.slow
def test_late_in_a_month_it_is_the_next_one_whose_limit_is_nearly_used_up(tmp_path):
    july, august = datetime(2030, 7, 1, tzinfo=UTC), datetime(2030, 8, 1, tzinfo=UTC)
    store = made(tmp_path, days=1, now=july - timedelta(days=3, hours=1))
    devices = {device.id for device in store.resources.of_kind(DEVICE)}
    used = timedelta(0)
    for lease in store.leases.of_project("physics"):
        uses = [use for use in store.calendar.of_lease(lease.id) if use.resource_id in devices]
        used += len(uses) * max(timedelta(0), min(lease.window.end, august) - max(lease.window.start, july))
    assert 0 <= stage.HOURS["device"] - used / timedelta(hours=1) < 12


def test_there_are_sixty_hosts_and_some_of_them_are_out_of_use(store):
    found = store.resources.of_kind(HOST)
    assert len(found) == len(list(cloud.list_hosts())) == 60
    out = {host.name for host in found if host.disabled}
    assert out == {"cpu-07", "io-02", "h100-06"}
    assert len([host for host in found if host.failure]) == 2
    assert len({host.attributes["availability_zone"] for host in found}) == 3
    assert {"A100", "H100"} <= {host.capabilities.get("gpu") for host in found}


def test_what_is_in_use_is_in_use_in_the_cloud_too(demo):
    state = json.loads((demo.folder / "cloud.json").read_text(encoding="utf-8"))
    zones = {str(aggregate["zone"]).removeprefix("blazar_") for aggregate in state["aggregates"].values()}
    active = [one for one in demo.store.leases.of_project(None) if one.status is LeaseStatus.ACTIVE]
    whole = [r.id for lease in active for r in lease.reservations if r.resource_type == "physical:host"]
    assert whole
    assert set(whole) <= zones


@pytest.mark.slow
def test_it_is_the_same_each_time_also_after_a_start_that_was_interrupted(tmp_path):
    lives = []
    for name in ("first", "interrupted"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "interrupted":
            (folder / "blazar.sqlite.unfinished").write_text("half of a database", encoding="utf-8")
            (folder / "cloud.json").write_text("half", encoding="utf-8")
        store = made(folder, days=1)
        assert store.resources.of_kind(HOST)
        assert not (folder / "blazar.sqlite.unfinished").exists()
        leases = store.leases.of_project(None)
        lives.append(sorted((one.name, one.user_id, str(one.window), one.status) for one in leases))
    assert lives[0] == lives[1] != []


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
            assert {one["status"] for one in leases} <= {"ACTIVE", "PENDING", "TERMINATED", "STARTING", "CREATING"}
        finally:
            assert program.stop() == 0
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'data' / 'blazar.sqlite'}")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM resources WHERE kind = 'host'")).scalar() == 60


@pytest.mark.slow
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(datetime(2026, 11, 30, 0, 7, 9, tzinfo=UTC), id="Monday after midnight"),
        pytest.param(datetime(2026, 11, 29, 23, 13, 9, tzinfo=UTC), id="Sunday before midnight"),
        pytest.param(datetime(2026, 12, 2, 14, 13, 9, tzinfo=UTC), id="Wednesday afternoon"),
    ],
)
def test_whenever_it_is_made_there_is_a_lease_in_each_state_that_pages_tell_of(tmp_path, now):
    leases = made(tmp_path, days=30, now=now).leases.of_project(None)
    assert any(lease.degraded and lease.status is LeaseStatus.ACTIVE for lease in leases)
    told = {LeaseStatus.PENDING, LeaseStatus.STARTING, LeaseStatus.WAITING, LeaseStatus.TERMINATED}
    assert told < {lease.status for lease in leases}


def test_a_lease_whose_host_has_failed_goes_on_for_half_a_day(demo):
    ends = [lease["end_date"] for lease in demo.read("/v1/leases?degraded=true")["leases"]]
    assert max(ends) > (NOW + timedelta(hours=12)).isoformat()


def test_the_curve_of_carbon_goes_on_as_long_as_the_demo_does(tmp_path):
    conf = config.load([], program="blazar-test", files=[], conf=cfg.ConfigOpts())
    curves = []
    for now in (NOW, NOW + timedelta(days=365)):
        energy.set_up(conf, tmp_path, now)
        curves.append(dict(line.split(",") for line in (tmp_path / energy.FILE).read_text("utf-8").splitlines()))
        ends = [now + timedelta(days=days) for days in (-59, 365)]
        assert curves[-1].keys() >= {f"{one:%Y-%m-%dT%H:00:00Z}" for one in ends}
    # An hour has the value that it had at the first start.
    both = curves[0].keys() & curves[1].keys()
    assert len(both) > 24 * 50
    assert all(curves[0][one] == curves[1][one] for one in both)


@pytest.mark.slow
def test_where_pools_are_switched_the_one_that_nobody_needs_sleeps_and_the_others_do_not(tmp_path):
    made(tmp_path, days=3)
    conf = config.load([], program="blazar-test", files=[], conf=cfg.ConfigOpts())
    stage.set_defaults(conf)
    clock = DemoClock(NOW)
    cloud = open_cloud(tmp_path / "cloud.json", clock=clock)
    engine = make_engine(f"sqlite:///{tmp_path / 'blazar.sqlite'}")
    manager = assemble.manager(conf, engine=engine, clouds={"": cloud}, clock=clock)
    for _ in range(60):
        for part in manager.power_work[:2]:
            part.run_once()
        clock.instant += timedelta(seconds=20)
    pools = manager.power.page(PowerQuestion(Page(10, "name")), VOLUME).items
    states = {one.host.name.partition("@")[2]: one.power.state for one in pools}
    assert states["archive#pool1"] is PowerState.OFF
    assert {states["ssd#pool1"], states["disks#pool1"]} == {PowerState.ON}
