# SPDX-License-Identifier: Apache-2.0
"""What an operator of the demo has to act on: a start that fails, and a reservation that somebody has taken apart."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from blazar.clouds.simulated.server_state import ServerState
from blazar.cmd.demo import people
from blazar.cmd.demo.stage import Stage
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST

BEGUN = timedelta(minutes=40)
"""How long the start of a lease has failed."""

_STRANGER = "legacy-build-agent"


def plan(stage: Stage, now: datetime) -> None:
    """Book servers in use, and a lease whose host runs a server that belongs to no reservation."""
    notebook = people.servers(1, vcpus=4, memory_gb=16)(random.Random(0))
    stage.book(("physics", "carol"), "shared-notebook", stage.clock.now(), 30, notebook)
    lease = next(filter(None, (_book_host(stage, name, now) for name in _list_idle_hosts(stage, now))), None)
    if lease is None:
        return
    uses = stage.store.calendar.of_lease(lease.id)
    (host,) = stage.store.resources.by_ids({use.resource_id for use in uses}).values()
    with stage.cloud.change_state() as state:
        stranger = ServerState(f"{_STRANGER}-1", _STRANGER, "chemistry", "bob", str(host.attributes["service_name"]))
        state.servers[stranger.id] = stranger


def _list_idle_hosts(stage: Stage, now: datetime) -> list[str]:
    busy = set(stage.hosts_in_use(stage.clock.now()))
    return sorted(host.name for host in stage.manager.resources.all(HOST) if host.name not in busy)


def _book_host(stage: Stage, name: str, now: datetime) -> Lease | None:
    host = people.whole_hosts(1, 1, hypervisors=["==", "$hypervisor_hostname", name])(random.Random(0))
    return stage.book(("physics", "alice"), "beamline-replay", now - BEGUN, 20, host)


def differ(stage: Stage) -> None:
    """Take the access to its flavor from a reservation of servers in use, and look at all reservations."""
    leases = [lease for lease in stage.manager.leases.all(None) if lease.status is LeaseStatus.ACTIVE]
    for lease in sorted(leases, key=lambda lease: lease.name):
        for reservation in lease.reservations:
            if reservation.resource_type == "virtual:instance" and reservation.status is ReservationStatus.ACTIVE:
                stage.cloud.cloud.compute.revoke_flavor(reservation.id, lease.project_id)
                # Nobody waits for the answers of a simulated cloud.
                stage.manager.drift.pause = 0
                stage.manager.drift.run_once()
                return
