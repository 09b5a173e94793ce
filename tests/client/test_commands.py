# SPDX-License-Identifier: Apache-2.0
"""Our commands against the service itself: what users do with a lease, and on a way that loses things."""

from __future__ import annotations

import json
import logging
import os
import re
from datetime import timedelta

import pytest
from blazarclient import shell
from blazarclient.commands import base, change, create
from blazarclient.library import transport

from tests.api.conftest import app_of
from tests.client.serving import Fate, library, serving
from tests.world import NOON

WHO = "curie:physics"
OPERATOR = "root:operations:admin"
HOST = ("--physical-reservation", "min=1")
ROOM = "{resource_type: physical:host, min: 1, max: 1}"


class Time:
    """A clock that goes on only when somebody sleeps."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def way(world):
    with serving(app_of(world.manager)) as way:
        yield way


@pytest.fixture
def run(way, capsys, monkeypatch):
    """Run ``blazar`` as somebody in Paris at noon of UTC, and return its exit code, stdout and stderr."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.setattr(base, "clock", lambda: NOON)
    for module in (change, create):
        monkeypatch.setattr(module, "time", Time())
    monkeypatch.setattr(transport, "PAUSES", (0.0,) * 4)
    before = logging.getLogger().level

    def run(*arguments, who=WHO):
        login = ("--os-auth-type", "admin_token", "--os-token", who, "--os-endpoint", way.url)
        return shell.main([*login, *arguments]), *capsys.readouterr()

    yield run
    logging.getLogger().setLevel(before)


def told(answer):
    code, out, err = answer
    assert code == 0, err
    return json.loads(out)


def booked(way, name="training"):
    return list(library(way.url, WHO).leases.list(name=name, state="all"))


def text(date):
    return date.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_lease_keeps_its_hosts_as_its_owner_says(way, run, tmp_path):
    run("lease", "create", "training", *HOST, "--start", "+2h", "--duration", "1d", "--keep-hosts")
    assert booked(way)[0].keep_hosts
    assert "its hosts stay until it starts" in run("lease", "show", "training", "--long")[1]
    assert run("lease", "update", "training", "--no-keep-hosts")[0] == 0
    assert not booked(way)[0].keep_hosts
    assert "its hosts stay" not in run("lease", "show", "training", "--long")[1]
    file = tmp_path / "lease.yaml"
    file.write_text("{name: other, start: +3d, duration: 1d, keep_hosts: true, reservations: [" + ROOM + "]}")
    assert run("lease", "create", "-F", str(file))[0] == 0
    assert booked(way, "other")[0].keep_hosts
    # What an option says goes before the file.
    assert run("lease", "create", "third", "-F", str(file), "--no-keep-hosts")[0] == 0
    assert not booked(way, "third")[0].keep_hosts


def test_a_lease_is_booked_to_be_confirmed(way, run, tmp_path):
    when = ("--start", "+2h", "--duration", "1d")
    assert run("lease", "create", "training", *HOST, *when, "--confirm-within", "10m")[0] == 0
    assert booked(way)[0].confirm_by == NOON + timedelta(minutes=10)
    assert run("lease", "confirm", "training")[0] == 0
    assert booked(way)[0].confirm_by is None
    file = tmp_path / "lease.yaml"
    file.write_text("{name: other, start: +3h, duration: 1d, confirm_within: 5m, reservations: [" + ROOM + "]}")
    assert run("lease", "create", "-F", str(file))[0] == 0
    assert booked(way, "other")[0].confirm_by == NOON + timedelta(minutes=5)
    code, _, error = run("lease", "create", "third", *HOST, *when, "--confirm-within", "2h")
    assert (code != 0, "give PT15M or less" in error) == (True, True)
    code, _, error = run("lease", "create", "third", *HOST, *when, "--confirm-within", "soon")
    assert (code != 0, "--confirm-within" in error) == (True, True)


def test_who_has_begun_is_told_that_it_has_its_hosts(way, run, world):
    run("lease", "create", "training", *HOST, "--duration", "1d")
    world.run()
    code, _, error = run("lease", "update", "training", "--keep-hosts")
    assert code != 0
    assert "the lease has begun: its hosts are its own" in error


def test_a_series_keeps_its_hosts_as_its_owner_says(way, run):
    when = ("--rule", "FREQ=DAILY;COUNT=2", "--start", "2030-04-03T09:00", "--duration", "4h")
    made = told(run("series", "create", "course", *HOST, *when, "--keep-hosts", "-f", "json"))
    assert made["keep_hosts"] is True
    assert told(run("series", "change", "course", "--no-keep-hosts", "-f", "json"))["keep_hosts"] is False


@pytest.mark.slow
def test_a_lease_is_booked_extended_moved_shown_and_deleted(way, run):
    begins = NOON + timedelta(hours=2)
    made = told(run("lease", "create", "training", *HOST, "--start", "+2h", "--duration", "1d", "-f", "json"))
    assert made["start_date"] == begins.strftime("%Y-%m-%dT%H:%M:%S.000000")
    extended = told(run("lease", "extend", "training", "--by", "1d", "-f", "json"))
    assert extended["end_date"] == text(begins + timedelta(days=2))
    moved = told(run("lease", "move", "training", "--later", "1d", "-f", "json"))
    assert (moved["start_date"], moved["end_date"]) == (
        text(begins + timedelta(days=1)),
        text(begins + timedelta(days=3)),
    )
    farthest = run("lease", "extend", "training", "--as-far-as-possible", "--dry-run", "-f", "json")
    assert told(farthest)["end_date"] > moved["end_date"]
    full = told(run("lease", "show", "training", "--long", "-f", "json"))
    assert full["end_date"] == moved["end_date"]
    assert len(full["reservations"][0]["allocations"]) == 1
    assert "h-" in run("lease", "show", "training", "--long")[1]
    assert [row["name"] for row in told(run("lease", "list", "--mine", "--text", "TRAIN", "-f", "json"))] == [
        "training"
    ]
    assert "nothing is known to be wrong" in run("why", "training")[1]
    assert run("lease", "delete", "training")[:2] == (0, "Deleted lease: training\n")
    assert [row["name"] for row in told(run("history", "-f", "json"))] == ["training"]


def test_a_file_is_tried_out_and_booked(way, run, tmp_path):
    path = tmp_path / "lease.yaml"
    path.write_text(
        """
        name: training
        start: tomorrow 9:00
        duration: 3d
        before_end: 2h
        reservations:
          - {resource_type: "physical:host", min: 1, resource_properties: [">=", "$vcpus", "1"]}
          - {resource_type: "virtual:instance", vcpus: 1, memory_mb: 1, disk_gb: 0, amount: 1}
        """
    )
    tried = told(run("lease", "create", "-F", str(path), "--dry-run", "-f", "json"))
    assert (tried["id"], booked(way)) == (None, [])
    told(run("lease", "create", "-F", str(path), "-f", "json"))
    (made,) = booked(way)
    assert [each.resource_type for each in made.reservations] == ["physical:host", "virtual:instance"]
    assert text(made.start_date) == tried["start_date"]


def test_the_first_opening_is_booked(way, run):
    openings = told(run("find", "--host", "min=2", "--duration", "2d", "--earliest", "+1h", "-f", "json"))
    (taken,) = told(
        run("find", "--host", "min=2", "--duration", "2d", "--earliest", "+1h", "--book", "training", "-f", "json")
    )
    (made,) = booked(way)
    assert taken["lease_id"] == made.id
    assert text(made.start_date) == openings[0]["start_date"]


def test_without_room_it_is_told_what_would_fit(way, run):
    code, out, err = run("find", "--host", "min=9999", "-f", "json")
    assert (code, json.loads(out)) == (5, [])
    assert "There is no room" in err
    assert "What would fit:" in err


def test_a_feed_is_made_listed_and_revoked(way, run):
    made = told(run("feed", "create", "-f", "json"))
    assert made["url"].endswith(".ics")
    assert [each["id"] for each in told(run("feed", "list", "-f", "json"))] == [made["id"]]
    assert run("feed", "delete", made["id"])[0] == 0
    assert told(run("feed", "list", "-f", "json")) == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.CUT])
def test_one_lease_is_booked_when_something_is_lost(way, run, fate):
    way.loses(Fate.ARRIVES, fate)
    made = told(run("lease", "create", "training", *HOST, "--start", "+1h", "-f", "json"))
    assert way.met == 1
    assert [each.id for each in booked(way)] == [made["id"]]


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST])
def test_the_same_command_with_the_key_that_was_told_makes_it_certain(way, run, fate):
    command = ("lease", "create", "training", *HOST, "--duration", "2h", "-f", "json")
    way.loses(Fate.ARRIVES, rest=fate)
    code, out, err = run(*command)
    assert (code, out) == (9, "")
    way.loses()
    there = [each.id for each in booked(way)]
    assert len(there) == (fate is Fate.ANSWER_LOST)
    made = told(run(*command, "--idempotency-key", re.search(r"--idempotency-key (\S+)\n", err)[1]))
    assert [each.id for each in booked(way)] == (there or [made["id"]]) == [made["id"]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.CUT])
def test_an_extension_whose_answer_is_lost_is_done_once(way, run, fate):
    made = told(run("lease", "create", "training", *HOST, "--start", "+1h", "--duration", "1d", "-f", "json"))
    way.loses(Fate.ARRIVES, fate)
    extended = told(run("lease", "extend", made["id"], "--by", "1d", "-f", "json"))
    (lease,) = booked(way)
    assert way.met == 1
    assert lease.end_date - lease.start_date == timedelta(days=2)
    assert extended["end_date"] == text(lease.end_date)


@pytest.mark.slow
def test_a_network_and_a_device_are_registered_reserved_and_unregistered(way, run):
    vlan = ("--network-type", "vlan", "--physical-network", "physnet1", "--segment", "101")
    segment = told(run("network", "create", *vlan, "--extra", "site=uc", "-f", "json", who=OPERATOR))
    assert (segment["segment_id"], segment["site"]) == (101, "uc")
    device = told(
        run(
            "device", "create", "edge-1", "--device-driver", "none", "--extra", "model=rpi4", "-f", "json", who=OPERATOR
        )
    )
    assert device["device_driver"] == "none"
    wanted = ("network,network_name=lab", 'device,min=1,resource_properties=["==","$model","rpi4"]')
    reservations = [word for each in wanted for word in ("--reservation", f"resource_type={each}")]
    lease = told(run("lease", "create", "lab", *reservations, "--start", "+1h", "--duration", "1d", "-f", "json"))
    assert [each["resource_type"] for each in lease["reservations"]] == ["network", "device"]
    for kind, name in (("network", "101"), ("device", "edge-1")):
        promised = told(run(kind, "allocation", "show", name, "-f", "json", who=OPERATOR))
        assert [each["lease_id"] for each in promised["reservations"]] == [lease["id"]]
        assert run(kind, "delete", name, who=OPERATOR)[0] == 6
    assert run("device", "reallocate", "edge-1", "--lease-id", lease["id"], who=OPERATOR)[0] == 6
    assert run("lease", "delete", "lab")[0] == 0
    assert run("network", "delete", "101", who=OPERATOR)[:2] == (0, "Deleted network: 101\n")
    assert run("device", "delete", "edge-1", who=OPERATOR)[:2] == (0, "Deleted device: edge-1\n")


def test_an_address_is_registered_by_the_fields_that_the_list_of_candidates_has(run, world):
    code, out, err = run("resource", "candidates", "floatingip", "--unregistered", "-f", "json", who=OPERATOR)
    assert (code, err) == (0, "")
    found = {each["name"]: each for each in json.loads(out)}
    assert (len(found), found["203.0.113.2 on public"]["resource_id"]) == (126, None)
    fields = [f"{name}={value}" for name, value in found["203.0.113.2 on public"]["registration"].items()]
    code, out, _ = run("resource", "register", "floatingip", *fields, "-f", "json", who=OPERATOR)
    assert (code, json.loads(out)["attributes"]["floating_ip_address"]) == (0, "203.0.113.2")
    (known,) = json.loads(run("resource", "candidates", "floatingip", "--registered", "-f", "json", who=OPERATOR)[1])
    assert known["resource_id"] == json.loads(out)["id"]
