# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: how long the plan takes, and how many leases find another host at their time."""

from __future__ import annotations

import time

from bench.ground import BEGIN, END, Ground, database
from blazar.model.maintenance import MaintenanceRequest, Outcome
from blazar.model.resource import HOST

HOSTS, LEASES = 500, 5000
CASES = {"a tenth of the hosts, a month": 0.09, "half of the hosts, a month": 0.5}
"""Nine hosts in ten are full of leases: the free tenth has room for all that leave a tenth, not for half of them."""


def plan(base: str) -> list[dict[str, object]]:
    """Plan windows over a calendar of 500 hosts and 5 000 leases that have not started, side by side in a month."""
    found: list[dict[str, object]] = []
    with database(base) as engine:
        ground = Ground(engine, HOSTS)
        ground.fill(LEASES, most=LEASES)
        busy = set(ground.busy)
        hosts = [host.external_id for host in ground.store.resources.catalog(HOST).resources if host.id in busy]
        for name, share in CASES.items():
            some = tuple(hosts[: int(share * HOSTS)])
            request = MaintenanceRequest(name, BEGIN, END, hosts=some)
            begun = time.perf_counter()
            impact = ground.manager.maintenances.create(request, dry_run=True).impact
            seconds = time.perf_counter() - begun
            moved = sum(lease.outcome is Outcome.MOVED and not lease.makes_room for lease in impact.leases)
            affected = sum(not lease.makes_room for lease in impact.leases)
            found.append(
                {
                    "database": base,
                    "window": name,
                    "hosts": len(some),
                    "affected": affected,
                    "moved": moved,
                    "seconds": round(seconds, 2),
                }
            )
    return found
