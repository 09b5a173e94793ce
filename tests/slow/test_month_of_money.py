# SPDX-License-Identifier: Apache-2.0
"""A month of leases, failures and killed managers: each statement is what somebody adds up who has only read the docs.

The bill is in ``tests/slow/money``. It knows a log of what the API said of leases, and no code of ours.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from blazar.model.problems.troubles import TroubleLimits
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.conftest import fresh_database
from tests.slow.money.compare import differences
from tests.slow.money.members import DAY, Members
from tests.slow.money.site import Json, Site, date_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]

KILLS = int(os.environ.get("BLAZAR_KILLS", "200"))
LIMITS = TroubleLimits()
WORK_DAYS = ["MO", "TU", "WE", "TH", "FR"]
CHEAP: Json = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2030-01-01T00:00:00Z",
    "prices": [
        {"sku": "host-a100", "measure": "host", "requirement": ["==", "$gpu", "A100"], "per_hour": "3.20"},
        {"sku": "host", "measure": "host", "per_hour": "0.80"},
        {"sku": "address", "measure": "floatingip", "per_hour": "0.006"},
        {"sku": "network", "measure": "network", "per_hour": "0.12"},
        {"sku": "device", "measure": "device", "per_hour": "0.33"},
        {"sku": "thing", "measure": "generic", "per_hour": "1.7"},
        {"sku": "instance", "measure": "instance", "per_hour": "0.05"},
        {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.013"},
        {"sku": "volume", "measure": "volume", "per_hour": "0.01"},
        {"sku": "gigabyte", "measure": "gigabyte", "per_hour": "0.000137"},
        {"sku": "power", "measure": "kwh", "per_kwh": "0.311"},
    ],
    "fee": "5.00",
    # Both hours of a night in which clocks are put back are in one of the last two, at 2:00 or at midnight.
    "hours": [
        {"days": WORK_DAYS, "from": "09:00", "to": "18:00", "factor": "1.25"},
        {"days": ["SA", "SU"], "from": "01:30", "to": "03:00", "factor": "1.50"},
        {"days": ["SA"], "from": "22:30", "to": "23:30", "factor": "1.30"},
    ],
    "lead": [{"below": "PT24H", "factor": "1.10"}],
    "amount": [{"above": 3, "factor": "1.20"}],
    "projects": [{"project_id": "physics", "factor": "0.80"}],
    "minimum": "PT1H",
    "round_up": "PT10M",
    "cancellation": [
        {"before_start": "P7D", "share": "0"},
        {"before_start": "PT24H", "share": "0.25"},
        {"share": "0.50"},
    ],
    "early_return": "0.30",
    "unused": "0.60",
    "pue": "1.35",
    "load": "0.5",
}
DEAR: Json = {**CHEAP, "fee": "7.00", "early_return": "0.70", "unused": "1.30", "cancellation": [{"share": "0.90"}]}
DEAR["prices"] = [
    {**price, "per_kwh" if price["measure"] == "kwh" else "per_hour": "7.77"} for price in CHEAP["prices"]
]


@dataclass(frozen=True)
class Month:
    """A span with a change of clocks in it, and how much happens meanwhile."""

    zone: str
    start: str
    days: int
    hosts: int
    deeds: int
    kills: int


SHORT = {
    "spring": Month("Europe/Berlin", "2030-03-29T12:00:00Z", 4, 40, 40, 5),
    "autumn": Month("Australia/Lord_Howe", "2030-04-05T03:00:00Z", 4, 40, 40, 5),
}
WHOLE = {
    "spring": Month("Europe/Berlin", "2030-03-10T12:00:00Z", 30, 500, 900, KILLS),
    "autumn": Month("America/Santiago", "2030-03-20T12:00:00Z", 30, 500, 900, KILLS),
}


def live(site: Site, month: Month, seed: int) -> None:
    """Let members do as they like until the month is over; more and more of the managers die of it."""
    members, dice = Members(site, seed), random.Random(seed)
    begin, until = site.now, site.now + month.days * DAY
    site.publish({**CHEAP, "time_zone": month.zone})
    ahead = date_of(begin + month.days * DAY // 3 // 900 * 900)
    for _ in range(month.deeds):
        passed = (site.now - begin) / (until - begin)
        site.deadly = site.killed.total() < month.kills * min(1.0, 1.5 * passed)
        members.act()
        site.pass_to(min(until, site.now + dice.randint(1, 2 * (until - begin) // month.deeds)))
        if dice.random() < 0.1:
            site.work("close")
        if len(site.lists) == 1 and passed > 0.2:
            # One that is published ahead: what is booked from now on costs more from then on.
            site.publish({**CHEAP, **DEAR, "time_zone": month.zone, "valid_from": ahead})
        if len(site.lists) == 2 and passed > 0.6:
            site.publish({**CHEAP, "fee": "6.00", "time_zone": month.zone, "valid_from": date_of(begin)})


def settle(site: Site) -> None:
    """Mend what has failed, and let all leases end and be charged."""
    site.deadly = False
    for host in sorted(site.down):
        site.world.simulated.operators.host_up(host)
    site.down.clear()
    site.work("poll")
    for _ in range(3):
        site.pass_to(site.now + 20 * DAY)
        site.work("close")
    assert not site.leases


def list_recomputed(site: Site) -> list[str]:
    """Return where charges are not what the service computes from the facts now."""
    assert site.world.manager.recomputation.run_once() == 1
    return [finding.detail for finding in site.world.store.troubles.read(site.world.clock.now(), LIMITS).findings]


def check(url: str, folder: Path, month: Month, seed: int) -> None:
    upgrade(make_engine(url))
    now = datetime.fromisoformat(month.start)
    site = Site(url, folder, hosts=month.hosts, now=now, accelerated=month.hosts // 6, seed=seed)
    try:
        live(site, month, seed)
        settle(site)
        found = [*differences(site), *list_recomputed(site)]
    finally:
        site.close()
    print(
        f"seed {seed}: {site.done} requests granted, {dict(site.refused)} refused, killed in {dict(site.killed)}, "
        f"{len(site.bill.accounts)} leases, {len(site.bill.seconds)} prices, "
        f"{float(sum(site.bill.watt_hours.values())):.1f} Wh of {len(site.bill.watt_hours)} lines, "
        f"{dict(Counter((line.category, line.sku) for line in site.bill.seconds))}, "
        f"{sum(map(len, site.bill.unused.values()))} unused, {sum(map(len, site.bill.outages.values()))} outages"
    )
    assert not found, "\n".join(found)
    assert site.killed.total() >= month.kills // 2


@pytest.mark.parametrize("name", SHORT)
def test_some_days_with_a_change_of_clocks_cost_what_the_second_bill_says(sqlite_url, tmp_path, name):
    check(sqlite_url, tmp_path, SHORT[name], seed=11)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "kind"), [("spring", "sqlite"), ("autumn", "postgresql")])
def test_a_month_of_kills_costs_what_the_second_bill_says(name, kind, tmp_path):
    with contextmanager(fresh_database)(kind, tmp_path) as url:
        check(url, tmp_path, WHOLE[name], seed=int(os.environ.get("BLAZAR_SEED") or int.from_bytes(os.urandom(2))))
