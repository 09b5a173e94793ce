# SPDX-License-Identifier: Apache-2.0
"""Hosts of a real OpenStack that sleep and wake by Redfish: BMC, nova-compute and Nova go together.

The BMCs are the emulator of sushy-tools: it changes a system 1 to 11 seconds after it was told to, and says so; the
nova-compute of the host is killed and started then.
"""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.clouds.ports.compute import Compute
from blazar.model.power.states import MARK
from blazar.store.sql.engine import make_engine
from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, deployed
from tests.cloud.looks import host_of
from tests.cloud.machines import HOSTS, Site, powered
from tests.clouds.bmcs import PASSWORD, RESET, FakeBmc, serving
from tests.conftest import fresh_database
from tests.openstack import Moves, Servers, eventually

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

MORE = f"""
[physical:host]
polling_interval = 3
failures_before_healing = 3

[power]
mode = on
spare = 0
idle_after = 0
min_off = 600
wake_timeout = 240
shutdown_timeout = 60
cycles_per_day = 100

[redfish]
allowed_networks = 127.0.0.0/8
allow_http = true
username = blazar
password = {PASSWORD}
"""
ONE, TWO, THREE, FOUR = HOSTS
MOVED = [("going_off", "idle"), ("off", "done")]


class Nights:
    """What an operator and an observer do and see of hosts that sleep."""

    def __init__(self, service: Deployment, site: Site, compute: Compute) -> None:
        self.service = service
        self.site = site
        self.compute = compute
        self.engine = make_engine(service.database)
        self.ids = {host["hypervisor_hostname"]: host["id"] for host in service.hosts()}
        rows = service.sql("SELECT id, name FROM resources WHERE kind = 'host'")
        self.rows = {row["name"]: row["id"] for row in rows}

    def give_switch(self, host: str, target: str | None = None) -> None:
        """Give a host a BMC, and let it have been on for an hour and left to itself."""
        body = {"adapter": "redfish", "target": target or self.site.target(host)}
        answer = self.service.call("admin", "PUT", f"/power/hosts/{self.ids[host]}", body, version=NEWEST)
        assert answer.status == 200, answer
        self.age(host)

    def age(self, host: str) -> None:
        with self.engine.begin() as connection:
            long_ago = datetime.now(UTC).replace(microsecond=0, tzinfo=None) - timedelta(hours=1)
            query = "UPDATE host_power SET since = :at, kept_until = NULL WHERE resource_id = :id AND state = 'on'"
            changed = connection.execute(sa.text(query), {"at": long_ago, "id": self.rows[host]})
            assert changed.rowcount == 1

    def keep(self, *hosts: str) -> None:
        """Let hosts stay on, whatever comes."""
        for host in hosts:
            path = f"/power/hosts/{self.ids[host]}"
            assert self.service.call("admin", "PUT", path, {"policy": "keep"}, version=NEWEST).status == 200

    def state(self, host: str) -> tuple[str, int]:
        """Return the state of a host, and what was done so far to reach the next one."""
        query = sa.text("SELECT state, attempts FROM host_power WHERE resource_id = :id")
        with self.engine.connect() as connection:
            row = connection.execute(query, {"id": self.rows[host]}).one()
        return row.state, row.attempts

    def log(self, host: str) -> list[tuple[str, str]]:
        query = sa.text("SELECT after, reason FROM power_log WHERE resource_id = :id ORDER BY id")
        with self.engine.connect() as connection:
            return [(row.after, row.reason) for row in connection.execute(query, {"id": self.rows[host]})]

    def reach(self, host: str, state: str) -> None:
        eventually(lambda: self.state(host)[0], lambda found: found == state, patience=240)

    def await_plan(self, seconds: float) -> None:
        """Wait until so long before the next plan."""
        query = sa.text("SELECT due_at FROM turns WHERE id = 'hosts'")

        def left() -> float:
            with self.engine.connect() as connection:
                due_at = connection.execute(query).scalar_one()
            return float((due_at.replace(tzinfo=None) - datetime.now(UTC).replace(tzinfo=None)).total_seconds())

        eventually(left, lambda found: seconds - 2 < found < seconds, patience=150)

    def nova(self, host: str) -> tuple[bool, bool, str | None]:
        """Return whether Nova says that a host is up, whether it is open, and else why not."""
        found = self.compute.hypervisor(hostname=host)
        return found.up, found.enabled, found.disabled_reason

    def press(self, host: str) -> None:
        """Switch a host on at its BMC, as somebody does who walks by."""
        path = f"{self.site.target(host)}/Actions/ComputerSystem.Reset"
        asked = urllib.request.Request(
            path, json.dumps({"ResetType": "On"}).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        urllib.request.urlopen(asked, timeout=5).close()

        def has_power() -> bool:
            # The emulator makes a change when somebody reads.
            with urllib.request.urlopen(self.site.target(host), timeout=5) as answer:
                return bool(json.load(answer)["PowerState"] == "On")

        eventually(has_power, patience=30)

    def check_healthy(self, *hosts: str) -> None:
        """Check that none of the hosts counts as failed."""
        shown = self.service.call("admin", "GET", "/resources/host", version=NEWEST)["resources"]
        assert {one["name"]: one.get("failure") for one in shown if one["name"] in hosts and one.get("failure")} == {}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    openstack.tidy()
    with powered(tmp_path_factory.mktemp("bmc")) as made:
        yield made


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, site: Site, compute: Compute) -> Iterator[Nights]:
    """One manager that switches hosts, and four registered hosts."""
    folder = tmp_path_factory.mktemp("blazar")
    for url in fresh_database("postgresql", folder):
        with deployed(folder, url, hosts=4, more=MORE) as running:
            made = Nights(running, site, compute)
            yield made
            made.engine.dispose()


@pytest.fixture
def operator() -> Iterator[Servers]:
    with openstack.servers("admin") as servers:
        yield servers
    Moves().clean()


def test_hosts_sleep_and_are_awake_when_a_lease_begins(nights: Nights):
    """It is booked when they sleep already, and begins before the lead has passed."""
    for host in (ONE, TWO):
        nights.give_switch(host)
    for host in (ONE, TWO):
        nights.reach(host, "off")
        assert not nights.site.machines[host].is_on
        assert nights.nova(host) == (False, False, MARK)
    nights.check_healthy(*HOSTS)
    begin = (datetime.now(UTC) + timedelta(seconds=170)).replace(microsecond=0)
    room = {"resource_type": "physical:host", "min": 4}
    body = {"name": "work", "start_date": begin.isoformat(), "end_date": "+PT1H", "reservations": [room]}
    answer = nights.service.call("demo", "POST", "/leases", body, version=NEWEST)
    assert answer.status == 201, answer
    lease = answer["lease"]
    assert lease["waking"]["hosts"] == 2
    nights.service.reaches(lease["id"], "ACTIVE")
    started = f"SELECT time, updated_at FROM events WHERE lease_id = '{lease['id']}' AND event_type = 'start_lease'"
    (event,) = nights.service.sql(started)
    assert event["updated_at"] - event["time"] < timedelta(seconds=20)
    for host in (ONE, TWO):
        assert nights.nova(host) == (True, True, None)
        assert nights.log(host) == [*MOVED, ("waking", "start"), ("on", "done")]
    nights.check_healthy(*HOSTS)
    nights.service.forget_leases()


def test_a_bmc_that_refuses_and_servers_on_their_way_keep_hosts_on(nights: Nights, operator: Servers):
    """Nova does not list yet on a host what is booted there, or moved there."""
    nights.keep(ONE, TWO)
    with serving(FakeBmc(answers={("POST", RESET): (400, {"error": {"message": "not today"}})})) as bmc:
        nights.give_switch(THREE, bmc.url)
        nights.give_switch(FOUR)
        nights.await_plan(10)
        with nights.site.machines[FOUR].standing_still():
            made = operator.boot("on its way", forced=FOUR, wait=False)
            # The other host does what it may do meanwhile; Nova takes this one for down after half a minute.
            eventually(lambda: nights.log(FOUR)[-1:], lambda log: log == [("on", "needed")], patience=30)
            assert host_of(made) is None
        assert operator.settled(made["id"])["status"] == "ACTIVE"
        assert host_of(made) == FOUR
        eventually(lambda: nights.log(THREE)[-1:], lambda log: log == [("on", "refused")], patience=60)
        assert bmc.resets() == ["GracefulShutdown"]
    for host in (THREE, FOUR):
        assert nights.site.machines[host].is_on
        assert nights.nova(host) == (True, True, None)

    Moves().spoil(made["id"], "hang")
    nights.give_switch(THREE)
    live = {"os-migrateLive": {"host": THREE, "block_migration": "auto", "force": True}}
    operator.nova.call("POST", f"/servers/{made['id']}/action", body=live, microversion="2.60")
    before = len(nights.log(THREE))
    eventually(lambda: nights.log(THREE)[before:], lambda log: len(log) == 2, patience=150)
    assert nights.log(THREE)[before:] == [("going_off", "idle"), ("on", "needed")]
    assert nights.nova(THREE) == (True, True, None)
    assert nights.site.machines[THREE].is_on
    Moves().finish(made["id"])
    eventually(lambda: host_of(made), lambda host: host == THREE)
    nights.check_healthy(*HOSTS)


def test_wherever_a_manager_is_killed_the_next_one_goes_on(nights: Nights):
    """In each state, and in each step to the next one."""
    nights.keep(THREE, FOUR)
    free(nights, ONE)
    nights.keep(TWO)
    kill_at(nights, ONE, ("going_off", 0), ("going_off", 1), ("going_off", 2), ("off", 0))
    assert nights.nova(ONE) == (False, False, MARK)
    assert not nights.site.machines[ONE].is_on
    assert nights.service.call("admin", "POST", f"/power/hosts/{nights.ids[ONE]}/wake", version=NEWEST).status == 200
    kill_at(nights, ONE, ("waking", 0), ("waking", 1), ("on", 0))
    assert nights.nova(ONE) == (True, True, None)
    assert nights.log(ONE)[-4:] == [*MOVED, ("waking", "operator"), ("on", "done")]
    nights.check_healthy(*HOSTS)


def test_a_host_that_is_switched_on_by_hand_is_opened_and_left_alone(nights: Nights):
    nights.keep(ONE, THREE, FOUR)
    free(nights, TWO)
    nights.reach(TWO, "off")
    nights.press(TWO)
    nights.reach(TWO, "on")
    assert nights.log(TWO)[-4:] == [*MOVED, ("waking", "external"), ("on", "external")]
    assert nights.nova(TWO) == (True, True, None)
    assert nights.site.machines[TWO].is_on
    path = f"/power/hosts/{nights.ids[TWO]}"
    until = nights.service.call("admin", "GET", path, version=NEWEST)["host"]["kept_until"]
    assert timedelta(hours=3) < datetime.fromisoformat(until) - datetime.now(UTC) < timedelta(hours=4)


def free(nights: Nights, host: str) -> None:
    """Let a host sleep that was kept."""
    path = f"/power/hosts/{nights.ids[host]}"
    assert nights.service.call("admin", "PUT", path, {"policy": "auto"}, version=NEWEST).status == 200
    nights.give_switch(host)


def kill_at(nights: Nights, host: str, *steps: tuple[str, int]) -> None:
    """Kill the manager as soon as a host has come to each of these steps, and start another one."""
    service = nights.service
    for step in steps:
        see_soon(lambda: nights.state(host), step)
        service.kill("manager-0", signal.SIGKILL)
        service.start_one("manager-0")


def see_soon(look: Callable[[], Any], wanted: Any) -> None:
    """Look without a pause until it is as wanted."""
    end = time.monotonic() + 240
    while (seen := look()) != wanted:
        assert time.monotonic() < end, f"it is still {seen}, and not {wanted}"
        time.sleep(0.01)
