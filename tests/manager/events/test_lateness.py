# SPDX-License-Identifier: Apache-2.0
"""The log says of what is late how late it is and why, and not at each attempt."""

from __future__ import annotations

import logging
import re
from datetime import timedelta

import pytest

from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.observe import metrics
from tests.counted import growing, number
from tests.world import NOON, PROJECT, a_host

HOUR = timedelta(hours=1)
_LATE = re.compile(r"Lease (\S+): (\S+) is (\d+) min late: (.+)")


@pytest.fixture
def late(caplog):
    """Return what the log has said of lateness: lease, event, minutes, reason."""
    caplog.set_level(logging.WARNING)
    return lambda: [match.groups() for r in caplog.records if (match := _LATE.fullmatch(r.getMessage()))]


def test_a_start_that_waits_is_told_of_at_five_minutes_ten_twenty_and_so_on(world, late):
    world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'))
    world.run_to(NOON + timedelta(minutes=4))
    assert late() == []
    world.run_to(NOON + timedelta(minutes=50))
    assert world.now(lease).status is LeaseStatus.STARTING
    assert [(name, kind, minutes) for name, kind, minutes, _ in late()] == [
        (lease.id, "start_lease", minutes) for minutes in ("5", "10", "20", "40")
    ]
    assert all("belongs to no reservation" in reason for *_, reason in late())


def test_a_snapshot_that_gets_nowhere_is_told_of(world, late):
    lease = world.lease(a_host(before_end="snapshot"))
    world.run()
    (host,) = world.hosts_of(lease)
    hint = lease.reservations[0].id
    world.simulated.users.boot_server("thesis", project_id=PROJECT, user_id="curie", host=host, hint=hint)
    world.simulated.durations.snapshot = 3 * HOUR
    world.run_to(NOON + 2 * HOUR - timedelta(minutes=31), pause=timedelta(seconds=30))
    before = number(metrics.OVERDUE_ATTEMPTS, event="before_end_lease")
    world.run_to(NOON + 2 * HOUR - timedelta(minutes=15), pause=timedelta(seconds=30))
    assert world.now(lease).event(EventType.BEFORE_END).status is not EventStatus.DONE
    assert [(kind, minutes) for _, kind, minutes, _ in late()] == [
        ("before_end_lease", n) for n in ("5", "10", "20", "40")
    ]
    assert late()[0][3] == "images being made: 1"
    assert number(metrics.OVERDUE_ATTEMPTS, event="before_end_lease") > before


def test_what_is_in_time_is_not_told_of(world, late):
    world.lease(a_host())
    with growing(metrics.OVERDUE_ATTEMPTS, by=0):
        world.run_to(NOON + 3 * HOUR)
    assert late() == []
