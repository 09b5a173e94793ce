# SPDX-License-Identifier: Apache-2.0
"""``make bench``: print a table, or JSON."""

from __future__ import annotations

import argparse
import json
import logging
import platform
import sys
from dataclasses import asdict
from functools import partial

from bench import bus, ended, journal, maintenance, pages, prices, requests, speed, starts
from bench.kinds import KINDS
from bench.requests import Figure
from blazar.cmd import process

ROW = "{:<27}{:<19}{:<20}{:>7}{:>9}{:>11}{:>11}{:>12}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measure Blazar.")
    parser.add_argument("--hosts", default="10,100,1000,10000")
    parser.add_argument("--leases", default="0,1000,10000,100000")
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--kinds", default=",".join(KINDS), help="resource types, with commas")
    parser.add_argument(
        "--only",
        choices=[
            *("grid", "bus", "throughput", "starts", "maintenance", "pages", "journal", "prices", "speed", "ended")
        ],
    )
    parser.add_argument("--json", action="store_true", help="figures for machines, on standard output")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    process.settle()
    hosts, leases = ([int(n) for n in text.split(",")] for text in (options.hosts, options.leases))
    kinds = [KINDS[name] for name in options.kinds.split(",")]
    out = sys.stderr if options.json else sys.stdout

    def say(text: str) -> None:
        print(text, file=out, flush=True)

    def say_figure(f: Figure) -> None:
        times = (f"{f.median_ms:.1f}", f"{f.p99_ms:.1f}")
        say(ROW.format(f.database, f.type, f.request, f.hosts, f.leases, *times, f.statements))

    report: dict[str, object] = {"machine": platform.platform(), "python": platform.python_version()}
    exceeded: list[str] = []
    if options.only in (None, "grid"):
        say(ROW.format("database", "type", "request", "hosts", "leases", "median ms", "p99 ms", "statements"))
        figures = [
            figure
            for base in options.databases.split(",")
            for figure in requests.measure(base, hosts, leases, kinds, say_figure)
        ]
        report["requests"] = [asdict(figure) for figure in figures]
        report["growth"] = requests.exponents(figures)
        say("\ngrowth: time ~ size^exponent")
        for growth in report["growth"]:
            say("  " + ", ".join(f"{key} {value}" for key, value in growth.items()))
    if options.only in (None, "bus"):
        say("\nover the message bus")
        bused = [f for kind in options.databases.split(",") for f in bus.measure(kind, 1000, 10_000, say_figure)]
        report["bus"] = [asdict(figure) for figure in bused]
    if options.only in (None, "maintenance"):
        for base in options.databases.split(","):
            for planned in (*maintenance.plan(base), *maintenance.mixed(base)):
                report.setdefault("maintenance", []).append(planned)
                say("\nmaintenance: " + ", ".join(f"{key} {value}" for key, value in planned.items()))
    if options.only == "journal":
        for base in options.databases.split(","):
            for read in journal.measure(base):
                report.setdefault("journal", []).append(read)
                say("journal: " + ", ".join(f"{key} {value}" for key, value in read.items()))
    if options.only == "prices":
        for base in options.databases.split(","):
            for priced in prices.measure(base):
                report.setdefault("prices", []).append(priced)
                say("prices: " + ", ".join(f"{key} {value}" for key, value in priced.items()))
    if options.only in (None, "speed"):
        for base in options.databases.split(","):
            held = list(speed.measure(base))
            report.setdefault("speed", []).extend(asdict(figure) for figure in held)
            exceeded += speed.list_exceeded(held)
            for figure in held:
                say(f"speed: {figure.database}, {figure.what} {figure.value}, at most {figure.limit:.2f}")
    if options.only == "ended":
        for read in ended.measure():
            report.setdefault("ended", []).append(read)
            say("ended: " + ", ".join(f"{key} {value}" for key, value in read.items()))
    if options.only == "pages":
        # Only if it is asked for: it needs a browser.
        for shown in pages.measure():
            report.setdefault("pages", []).append(shown)
            say("pages: " + ", ".join(f"{key} {value}" for key, value in shown.items()))
    for only, name, measure in (
        ("throughput", "throughput", requests.throughput),
        *(("starts", "burst", partial(starts.burst, kind=kind)) for kind in kinds),
        ("starts", "crowd", starts.crowd),
        ("starts", "beside_slow_ends", starts.beside_slow_ends),
    ):
        if options.only in (None, only):
            for base in options.databases.split(","):
                figures_of = measure(base)
                report.setdefault(name, []).append(figures_of)
                say(f"\n{name}: " + ", ".join(f"{key} {value}" for key, value in figures_of.items()))
    if options.json:
        json.dump(report, sys.stdout, indent=2)
        print()
    for sentence in exceeded:
        print(f"too much: {sentence}", file=sys.stderr)
    return int(bool(exceeded))


if __name__ == "__main__":
    sys.exit(main())
