# SPDX-License-Identifier: Apache-2.0
"""How late starts and ends are on a real OpenStack, with two managers; half of the leases have a server to delete."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import pytest

from tests import openstack
from tests.cloud.deployment import Deployment, deployed
from tests.conftest import fresh_database

pytestmark = pytest.mark.timeout(900)

LEASES = int(os.environ.get("BLAZAR_LEASES", "50"))
HOSTS = 3
LENGTH, GAP = 8.0, 4.0
"""Seconds."""


@pytest.fixture
def service(tmp_path: Path):
    for url in fresh_database("postgresql", tmp_path):
        with deployed(tmp_path, url, hosts=HOSTS, managers=2) as running:
            yield running


def test_leases_start_and_end_on_the_second(service: Deployment):
    rounds = -(-LEASES // HOSTS)
    first = 10.0 + LEASES * 0.2
    plan = [
        (f"compute-{number + 1}", first + n * (LENGTH + GAP), first + n * (LENGTH + GAP) + LENGTH)
        for n in range(rounds)
        for number in range(HOSTS)
    ][:LEASES]
    began = time.monotonic()
    leases = service.book(*plan)
    with openstack.servers("demo") as mine:
        waiting = set(leases[::2])
        while waiting and time.monotonic() - began < plan[-1][2] + 30:
            for lease in service.call("demo", "GET", "/leases")["leases"]:
                if lease["id"] in waiting and lease["status"] == "ACTIVE":
                    waiting.discard(lease["id"])
                    mine.boot("work", hint=lease["reservations"][0]["id"], wait=False)
            time.sleep(0.3)
        openstack.eventually(
            lambda: {lease["status"] for lease in service.call("demo", "GET", "/leases")["leases"]},
            lambda statuses: statuses == {"TERMINATED"},
        )
    rows = service.sql("SELECT lease_id, event_type, time, updated_at, status FROM events")
    assert {row["status"] for row in rows if row["event_type"].endswith(("start_lease", "end_lease"))} == {"DONE"}
    busy = set(leases[::2])
    for what, event, chosen in (
        ("starts", "start_lease", set(leases)),
        ("ends of hosts without servers", "end_lease", set(leases) - busy),
        ("ends of hosts with a server", "end_lease", busy),
    ):
        late = [
            (row["updated_at"] - row["time"]).total_seconds()
            for row in rows
            if row["event_type"] == event and row["lease_id"] in chosen
        ]
        print(f"{len(late)} {what}: median {statistics.median(late):.2f} s late, worst {max(late):.2f} s")
        # Speed is not judged here; a start that waits for a tick or a timeout of something is.
        assert statistics.median(late) < 5
        assert max(late) < 20
