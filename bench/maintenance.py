# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: how long the plan takes, and how many leases find another host at their time."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import timedelta

from bench.ground import BEGIN, END, MONTH, Ground, database
from bench.kinds import KINDS, Kind, Room
from bench.requests import FORMAT
from blazar.model.maintenance.windows import MaintenanceRequest, Outcome
from blazar.model.resources.resource import HOST

HOSTS, LEASES = 500, 5000
CASES = {"a tenth of the hosts, a month": 0.09, "half of the hosts, a month": 0.5}
"""Nine hosts in ten are full of leases: the free tenth has room for all that leave a tenth, not for half of them."""


MIXED_HOSTS, MIXED_LEASES = 100, (280, 400)
SIZES = {"1 host": 30, "2 hosts": 15, "8 hosts": 10, "4 servers": 25, "4 apart": 10, "of a flavor": 10}
"""How often a lease of the mixed calendar has what."""


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
            found.append({"database": base, "window": name, "hosts": len(some), **_planned(ground, request)})
    return found


def mixed(base: str) -> list[dict[str, object]]:
    """Plan a window of a tenth of the hosts over leases of several types, sizes and lengths, booked by requests.

    Of the fewer leases all have room elsewhere; with more of them there are days at which all hosts are booked.
    """
    whole, virtual, flavor = (KINDS[name] for name in ("physical:host", "virtual:instance", "flavor:instance"))
    hosts = whole.creates["create 1 host"]
    asked = {
        "1 host": (whole, hosts),
        "2 hosts": (whole, {**hosts, "min": 2, "max": 2}),
        "8 hosts": (whole, {**hosts, "min": 8, "max": 8}),
        "4 servers": (virtual, virtual.creates["create 4 servers"]),
        "4 apart": (virtual, virtual.creates["create 4 apart"]),
        "of a flavor": (flavor, flavor.creates["create 4 servers"]),
    }
    return [_mixed(base, asked, leases) for leases in MIXED_LEASES]


def _mixed(base: str, asked: Mapping[str, tuple[Kind, Room]], leases: int) -> dict[str, object]:
    drawn = random.Random(1)
    with database(base) as engine:
        ground = Ground(engine, MIXED_HOSTS)
        booked = 0
        for number in range(leases):
            kind, room = asked[drawn.choices(list(SIZES), list(SIZES.values()))[0]]
            hours = drawn.choice((12, 24, 48, 168))
            start = BEGIN + timedelta(hours=drawn.randrange(MONTH // timedelta(hours=1) - hours))
            lease = {
                "name": f"mixed {number}",
                "start_date": f"{start:{FORMAT}}",
                "end_date": f"{start + timedelta(hours=hours):{FORMAT}}",
                "reservations": [{"resource_type": kind.resource_type, **room}],
            }
            booked += ground.http.post("/v1/leases", json=lease).status_code == 201
        names = [host.external_id for host in ground.store.resources.catalog(HOST).resources]
        some = tuple(drawn.sample(names, MIXED_HOSTS // 10))
        request = MaintenanceRequest("mixed", BEGIN, END, hosts=some)
        name = f"a tenth of {MIXED_HOSTS} hosts, {booked} leases of several types"
        return {"database": base, "window": name, "hosts": len(some), **_planned(ground, request)}


def _planned(ground: Ground, request: MaintenanceRequest) -> dict[str, object]:
    begun = time.perf_counter()
    impact = ground.manager.maintenances.create(request, dry_run=True).impact
    seconds = time.perf_counter() - begun
    return {
        "affected": sum(not lease.makes_room for lease in impact.leases),
        "moved": sum(lease.outcome is Outcome.MOVED and not lease.makes_room for lease in impact.leases),
        "seconds": round(seconds, 2),
    }
