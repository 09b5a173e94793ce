# SPDX-License-Identifier: Apache-2.0
"""The page of what was measured and what it means for larger clouds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.model.costs import Law, Point
from bench.model.simulation import Cloud, Day, simulate

MIX = {"create": 10.0, "show": 40.0, "page of 100": 30.0, "find a time": 10.0, "calendar": 10.0}
"""What users do, in percent of their requests."""

THINK_S = 30.0
USERS = 1000
HOSTS, LEASES = 100_000, 1_000_000
SECONDS, SEED = 300.0, 1

SHOWN = 1000
"""Hosts on the page of a calendar at most."""

REGIONS = 10

CLOUDS: tuple[tuple[str, Cloud, int], ...] = (
    ("3 managers, one database of 8 cores", Cloud(3, 8, USERS, THINK_S), 1),
    ("10 managers, one database of 8 cores", Cloud(10, 8, USERS, THINK_S), 1),
    ("10 managers, and 2 read replicas", Cloud(10, 8, USERS, THINK_S, replicas=2), 1),
    (f"10 managers, {REGIONS} regions alike", Cloud(10, 8, USERS, THINK_S), REGIONS),
    (f"10 managers, {REGIONS} regions, 2 read replicas", Cloud(10, 8, USERS, THINK_S, replicas=2), REGIONS),
)
"""What is simulated: a name, the cloud, and how many regions or kinds its resources are spread over."""

ADVICE = """\
## What an operator does

The managers are full before the database where `managers` breaks first: a request's CPU is mostly theirs, and what
reads a whole calendar takes most of it. Managers share the work without being told to, so more of them answer more; but
an answer that is long by itself stays so, which only a smaller calendar changes.

What grows with the leases of one calendar becomes less with the size of that calendar. One
[region](regions.md) for each part of a cloud, and different kinds of resources, are calendars of their own: a tenth of
the hosts and leases in each takes a tenth of what grows.

The database is full where `database` breaks first. A copy that answers what only reads relieves it of most of the
work. Blazar has one connection, to one database: the table shows what a copy would gain, not an option that there is.

`python -m bench --only ended` measures each request before and after a million leases have ended, on PostgreSQL.
"""

HEAD = """\
# Speed

What requests cost, how that grows, and what a cloud that no test machine holds would need. This page is written by
`python -m bench.model --page docs/speed.md`; the numbers are those of the machine named here, so compare figures only
within one page. `make bench` measures more, and fails if a figure is above its limit (`bench/speed.py`);
`python -m bench.beside COMMIT` measures this tree and another commit in turn. A page of 100 leases is one that
the API has answered before; the bench also measures one that it has not (`list by created_at, unknown`).

"""


def write_page(points: Sequence[Point], laws: Mapping[str, Law], machine: str) -> str:
    """Return the page in Markdown."""
    lines = [f"Measured on {machine}.", "", "## What a request costs", ""]
    lines += [
        "| request | hosts × leases | CPU ms | database ms | statements | rows | KiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for point in sorted(points, key=lambda p: (p.request, p.hosts, p.leases)):
        c = point.cost
        lines.append(
            f"| {point.request} | {point.hosts:,} × {point.leases:,} | {c.cpu_ms:.1f} | {c.database_ms:.1f} | "
            f"{c.statements:.0f} | {c.rows:.0f} | {c.bytes / 1024:.1f} |".replace(",", " ")
        )
    lines += ["", "## How it grows", "", "With a thousand hosts more, and a thousand leases more, in a line.", ""]
    lines += ["| request | CPU ms: hosts, leases | database ms | rows |", "|---|---|---|---|"]
    for name, law in laws.items():
        pairs = (
            f"{1000 * getattr(law.in_hosts, part):.2f}, {1000 * getattr(law.in_leases, part):.2f}"
            for part in ("cpu_ms", "database_ms", "rows")
        )
        lines.append(f"| {name} | {' | '.join(pairs)} |")
    lines += ["", *_extrapolation(laws), "", ""]
    return HEAD + "\n".join(lines) + ADVICE


def _extrapolation(laws: Mapping[str, Law]) -> list[str]:
    said = [
        f"## {HOSTS:,} hosts and {LEASES:,} leases".replace(",", " "),
        "",
        f"A simulation, not a measurement: {USERS} users who ask each {THINK_S:.0f} s ("
        + ", ".join(f"{share:.0f} % {name}" for name, share in MIX.items())
        + "). Each manager has one core, with the API before it; costs are those above, read in a line far beyond "
        f"what was measured, those of a calendar for a page of {SHOWN} hosts. Resources of different regions or kinds "
        "are each a calendar of their own.",
        "",
        "| cloud | requests a second | median, p99 s | busy | breaks first |",
        "|---|---|---|---|---|",
    ]
    for name, cloud, parts in CLOUDS:
        day = simulate_at(laws, cloud, HOSTS // parts, LEASES // parts)
        busy = ", ".join(f"{part} {100 * share:.0f} %" for part, share in day.busy.items())
        said.append(f"| {name} | {day.per_second} | {day.median_s:.2f}, {day.p99_s:.2f} | {busy} | {day.bottleneck} |")
    return said


def simulate_at(laws: Mapping[str, Law], cloud: Cloud, hosts: int, leases: int) -> Day:
    """Return what becomes of users of a cloud with so many hosts and leases in each calendar."""
    shown = min(hosts, SHOWN)
    of_page = {"calendar": laws["calendar"].at(shown, leases * shown // hosts)}
    costs = {name: laws[name].at(hosts, leases) for name in MIX} | of_page
    return simulate(cloud, costs, MIX, seconds=SECONDS, seed=SEED)
