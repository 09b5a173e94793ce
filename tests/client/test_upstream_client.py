# SPDX-License-Identifier: Apache-2.0
"""The client that everybody has, unmodified, against standalone mode, as its users type it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests import upstream

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
START_IN = 15
"""Seconds in which a lease of these tests starts for certain, commands included."""


@pytest.fixture(scope="session")
def blazar_command() -> Path:
    """The ``blazar`` command of python-blazarclient from PyPI."""
    return upstream.programs() / "blazar"


class Service:
    """A standalone service in a process of its own, and the client's commands against it."""

    def __init__(self, command: Path, data: Path) -> None:
        self.command = command
        self.data = data
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        environment = {**os.environ, "BLAZAR_PORT": str(self.port), "BLAZAR_DATA": str(self.data)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "blazar.cmd.standalone", "--no-hosts"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            # Who runs the tests in the background has Ctrl-C ignored, and hands that down.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        limit = time.monotonic() + 30
        while time.monotonic() < limit:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthcheck", timeout=5):
                    return
            except OSError:
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.1)
        raise AssertionError("the service did not start")

    def stop(self, how: int = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)

    def run(self, *arguments: str) -> str:
        """Run a command as a user would, and return what it prints."""
        done = self.try_(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def try_(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        base = [str(self.command), "--os-auth-type", "none", "--os-endpoint", self.url]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
        return subprocess.run([*base, *arguments], capture_output=True, text=True, timeout=60, env=clean)

    def json(self, *arguments: str) -> object:
        text = self.run(*arguments, "-f", "json")
        # A creation says so in a line of its own before the JSON.
        return json.loads(text[min(text.find(c) for c in "{[" if c in text) :])

    def leases(self) -> list[dict]:
        """Return all leases by the shortest way, for waiting."""
        with urllib.request.urlopen(f"{self.url}/leases", timeout=5) as answer:
            return json.load(answer)["leases"]

    def lease(self, name: str) -> dict:
        return next(lease for lease in self.leases() if lease["name"] == name)

    def wait(self, name: str, status: str, since: float, limit: float) -> float:
        """Wait until a lease has a status; return the seconds it took since then."""
        while self.lease(name)["status"] != status:
            assert time.time() - since < limit, f"{name} is {self.lease(name)['status']} after {limit} s"
            time.sleep(0.02)
        return time.time() - since

    def freepool(self) -> list[str]:
        state = json.loads((self.data / "cloud.json").read_text(encoding="utf-8"))
        return next(a["hosts"] for a in state["aggregates"].values() if a["name"] == "freepool")


@contextmanager
def serving(command: Path, data: Path) -> Iterator[Service]:
    service = Service(command, data)
    service.start()
    yield service
    if service.process.poll() is None:
        service.process.kill()
        service.process.wait()


@pytest.fixture
def service(blazar_command, tmp_path):
    """A service without hosts, of one test alone."""
    with serving(blazar_command, tmp_path / "var") as service:
        yield service


@pytest.fixture(scope="module")
def two_hosts(blazar_command, tmp_path_factory):
    with serving(blazar_command, tmp_path_factory.mktemp("shared") / "var") as service:
        service.run("host-create", "node-1", "--extra", "gpu=A100")
        service.run("host-create", "node-2")
        yield service


@pytest.fixture
def client(two_hosts):
    """Two hosts and no lease, of all tests of this file that neither stop the service nor delete its hosts."""
    yield two_hosts
    for lease in two_hosts.leases():
        two_hosts.run("lease-delete", lease["id"])


def minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


def in_days(days: int) -> datetime:
    """Return the full minute that is now, so many days later."""
    return datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=days)


def test_hosts_are_listed_shown_and_given_capabilities(client):
    hosts = client.json("host-list")
    assert [(host["id"], host["hypervisor_hostname"]) for host in hosts] == [("1", "node-1"), ("2", "node-2")]
    assert "Updated" in client.run("host-update", "node-1", "--extra", "rack=r7")
    shown = client.json("host-show", "node-1")
    assert (shown["gpu"], shown["rack"], shown["vcpus"]) == ("A100", "r7", 16)
    client.run("host-unset", "node-1", "--extra", "rack")
    assert "rack" not in client.json("host-show", "1")


def test_properties_are_listed_and_made_private(client):
    assert client.json("host-property-list") == [{"property": "gpu"}]
    assert client.json("host-property-show", "gpu")["property_values"] == ["A100"]
    client.run("host-property-set", "gpu", "--private")
    assert client.json("host-property-list") == []
    assert client.json("host-property-list", "--all", "--detail")[0]["private"] is True
    client.run("host-property-set", "gpu", "--public")


def test_a_lease_in_the_future_is_moved_renamed_and_resized(client):
    begin = in_days(2)
    client.run(
        "lease-create", "later", "--physical-reservation", "min=1,max=2", "--start-date", minute(begin),
        "--end-date", minute(begin + timedelta(days=1)), "--before-end-date", minute(begin + timedelta(hours=23)),
    )  # fmt: skip
    for option, span, start, end_ in (
        ("--prolong-for", "2h", 0, 26),
        ("--reduce-by", "1h", 0, 25),
        ("--defer-by", "3h", 3, 25),
        ("--advance-by", "1h", 2, 25),
    ):
        client.run("lease-update", "later", option, span)
        lease = client.json("lease-show", "later")
        assert lease["start_date"] == f"{begin + timedelta(hours=start):%Y-%m-%dT%H:%M:%S}.000000"
        assert lease["end_date"] == f"{begin + timedelta(hours=end_):%Y-%m-%dT%H:%M:%S}.000000"
    client.run("lease-update", "later", "--name", "much-later")
    reservation = client.lease("much-later")["reservations"][0]["id"]
    client.run("lease-update", "much-later", "--reservation", f"id={reservation},min=2,max=2")
    assert client.lease("much-later")["reservations"][0]["min"] == 2


def test_a_lease_from_now_on_starts_and_ends_on_the_second(client):
    asked = time.time()
    # The next full minute that leaves it time to start.
    end = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    if end.timestamp() - asked < START_IN:
        end += timedelta(minutes=1)
    room = 'min=1,max=1,hypervisor_properties=,resource_properties=["==","$gpu","A100"]'
    created = client.json(
        "lease-create", "now", "--physical-reservation", room, "--start-date", "now", "--end-date", minute(end)
    )
    taken = client.wait("now", "ACTIVE", asked, 10)
    sent = datetime.fromisoformat(created["created_at"]).replace(tzinfo=UTC)
    started = client.lease("now")["reservations"][0]["updated_at"]
    assert datetime.fromisoformat(started).replace(tzinfo=UTC) - sent <= timedelta(seconds=2)
    print(f"the command took {taken:.1f} s until its lease was ACTIVE")
    assert client.freepool() == ["node-2"]

    late = client.wait("now", "TERMINATED", end.timestamp(), 2)
    print(f"TERMINATED {late:.2f} s after the end")
    ended = datetime.fromisoformat(client.lease("now")["updated_at"]).replace(tzinfo=UTC)
    assert timedelta(0) <= ended - end <= timedelta(seconds=2)
    assert sorted(client.freepool()) == ["node-1", "node-2"]


def test_leases_and_allocations_are_listed(client):
    for name, days, hosts in (("now", 0, 1), ("much-later", 2, 2)):
        dates = ("--start-date", minute(in_days(days)) if days else "now", "--end-date", minute(in_days(days + 1)))
        client.run("lease-create", name, "--physical-reservation", f"min={hosts},max={hosts}", *dates)
    assert {lease["name"] for lease in client.json("lease-list")} == {"now", "much-later"}
    assert {a["resource_id"] for a in client.json("allocation-list", "host")} == {"1", "2"}
    assert len(client.json("allocation-show", "host", "node-1")["reservations"]) >= 1


def test_addresses_are_registered_reserved_and_deleted(client):
    network = "5e1f7c1e-0b5a-4c7e-9d57-2f1d6c0a9e01"
    for number in (10, 11):
        client.run("floatingip-create", network, f"203.0.113.{number}")
    listed = client.json("floatingip-list")
    assert [address["floating_ip_address"] for address in sorted(listed, key=lambda a: a["floating_ip_address"])] == [
        "203.0.113.10",
        "203.0.113.11",
    ]
    assert client.json("floatingip-show", listed[0]["id"])["floating_network_id"] == network
    wanted = f'resource_type=virtual:floatingip,network_id={network},amount=1,required_floatingips=["203.0.113.11"]'
    client.run("lease-create", "web", "--reservation", wanted, "--start-date", "now", "--end-date", minute(in_days(2)))
    client.wait("web", "ACTIVE", time.time(), 10)
    address = client.lease("web")["reservations"][0]
    assert (address["amount"], address["required_floatingips"]) == (1, ["203.0.113.11"])
    client.run("lease-update", "web", "--reservation", f"id={address['id']},amount=2,required_floatingips=[]")
    assert client.lease("web")["reservations"][0]["amount"] == 2
    assert "is allocated to lease" in client.try_("floatingip-delete", listed[0]["id"]).stderr
    client.run("lease-delete", "web")
    for address in listed:
        limit = time.monotonic() + 10
        while client.try_("floatingip-delete", address["id"]).returncode:
            assert time.monotonic() < limit
    assert client.json("floatingip-list") == []


def test_a_lease_that_cannot_be_had_is_refused_with_the_reason(client):
    end = minute(in_days(2))
    refused = client.try_("lease-create", "big", "--physical-reservation", "min=9,max=9", "--end-date", end)
    assert refused.returncode != 0
    assert "Not enough hosts available" in refused.stdout + refused.stderr


def test_leases_and_hosts_are_deleted_by_name_and_by_id(service):
    for host in ("node-1", "node-2"):
        service.run("host-create", host)
    for name, start in (("now", "now"), ("later", minute(in_days(1)))):
        dates = ("--start-date", start, "--end-date", minute(in_days(2)))
        service.run("lease-create", name, "--physical-reservation", "min=1,max=1", *dates)
    service.wait("now", "ACTIVE", time.time(), 10)
    service.run("lease-delete", "later")
    service.run("lease-delete", "now")
    assert service.json("lease-list") == []
    service.run("host-delete", "node-1")
    service.run("host-delete", "2")
    assert service.json("host-list") == []


def test_the_upstream_client_reserves_servers_of_a_flavor(service):
    service.run("host-create", "node-3")
    end = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=2)
    for flavor, fits in (("3", "4"), ("gpu", "4")):
        room = f"resource_type=flavor:instance,flavor_id={flavor},amount="
        made = service.json("lease-create", f"of-{flavor}", "--reservation", room + fits, "--end-date", minute(end))
        (reservation,) = service.lease(made["name"])["reservations"]
        assert json.loads(reservation["resource_properties"])["id"] == flavor
    refused = service.try_("lease-create", "more", "--reservation", room + "1", "--end-date", minute(end))
    assert "Not enough hosts available" in refused.stdout + refused.stderr
    service.run(
        "lease-update", "of-3", "--reservation", f"id={service.lease('of-3')['reservations'][0]['id']},amount=6"
    )
    assert service.lease("of-3")["reservations"][0]["amount"] == 6


def test_the_service_stops_on_ctrl_c_and_goes_on_where_it_was(service):
    service.run("host-create", "node-1")
    end = datetime.now(UTC) + timedelta(hours=3)
    service.run("lease-create", "kept", "--physical-reservation", "min=1,max=1", "--end-date", minute(end))
    service.wait("kept", "ACTIVE", time.time(), 2)
    assert service.stop() == 0
    service.start()
    assert service.lease("kept")["status"] == "ACTIVE"
    service.stop(signal.SIGKILL)
    service.start()
    service.run("lease-delete", "kept")
    assert service.freepool() == ["node-1"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_it_refuses_to_listen_beyond_loopback(tmp_path, host):
    done = subprocess.run(
        [sys.executable, "-m", "blazar.cmd.standalone", "--host", host, "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "loopback only" in done.stderr


def test_a_port_that_is_taken_is_told_in_one_sentence(service, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "blazar.cmd.standalone", "--port", str(service.port), "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [done.stderr.strip()]
    assert "choose another with BLAZAR_PORT" in done.stderr


def test_a_folder_that_is_in_use_is_told_in_one_sentence(service):
    done = subprocess.run(
        [sys.executable, "-m", "blazar.cmd.standalone", "--port", "0", "--data", str(service.data)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "choose another folder with BLAZAR_DATA" in done.stderr
