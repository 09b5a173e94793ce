# SPDX-License-Identifier: Apache-2.0
"""``make simulate``: a line for each run, JSON, and a plot."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, fields
from pathlib import Path

from bench.waiting.models import PERCENT
from bench.waiting.plot import plot
from bench.waiting.traces import MIXES, Parameters
from bench.waiting.world import measured
from blazar.calendar.queue.values import DAY, PlanBounds

LIMITS = ("depth", "promises", "promise_age")


def one(parameters: Parameters, limits: Mapping[str, int]) -> dict[str, object]:
    return {**asdict(parameters), "limits": limits, **measured(parameters, PlanBounds(**limits))}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.waiting", description="Simulate a waiting list.")
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--load", type=float, default=0.95, help="what is asked for, as a part of all host-hours")
    parser.add_argument("--early", type=float, default=0.1, help="the part of leases that end early")
    parser.add_argument("--ahead", type=float, default=0.0, help="the part of requests for a later start")
    parser.add_argument("--flexible", type=float, default=0.3, help="the part that do with half of the hosts or length")
    parser.add_argument("--withdraw", type=float, default=0.05, help="the part withdrawn within three days of waiting")
    parser.add_argument("--projects", type=int, default=200)
    parser.add_argument("--zipf", type=float, default=1.1, help="how uneven the activity of projects is; 0: even")
    parser.add_argument("--weights", type=int, default=1, help="projects have the weights 1 to this in turn")
    parser.add_argument("--models", type=int, default=1, choices=PERCENT, help="of how many models the hosts are")
    parser.add_argument("--depth", type=int, default=200, help="how many of those that wait have a place")
    parser.add_argument("--promises", type=int, default=100, help="how many starts are promised at most")
    parser.add_argument("--promise-age", type=int, default=DAY, help="seconds after which the oldest come first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures of all runs; those that it has are not repeated")
    parser.add_argument("--svg", type=Path, help="write a plot of the utilization")
    return parser.parse_args()


def main() -> int:
    asked = options()
    runs: list[dict[str, object]] = []
    if asked.json and asked.json.exists():
        runs = json.loads(asked.json.read_text("utf-8"))
    names = [each.name for each in fields(Parameters)]
    limits = {name: getattr(asked, name) for name in LIMITS}
    done = [{name: run.get(name) for name in (*names, "limits")} for run in runs]
    shared = {name: getattr(asked, name) for name in names if hasattr(asked, name)}
    wanted = [Parameters(mix, seed, **shared) for seed in range(1, asked.seeds + 1) for mix in asked.mixes.split(",")]
    with ProcessPoolExecutor(asked.jobs) as pool:
        under_way = [
            pool.submit(one, each, limits) for each in wanted if {**asdict(each), "limits": limits} not in done
        ]
        for run in as_completed(under_way):
            runs.append(run.result())
            print(json.dumps(runs[-1]), flush=True)
            if asked.json:
                asked.json.write_text(json.dumps(runs, indent=1) + "\n", "utf-8")
    if asked.svg:
        asked.svg.write_text(plot(runs), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
