# SPDX-License-Identifier: Apache-2.0
"""``make simulate``: a line for each run, JSON, and a plot."""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from bench.waiting.plot import plot
from bench.waiting.traces import MIXES, Parameters
from bench.waiting.world import measured
from blazar.calendar.queue.values import Limits


def one(parameters: Parameters, depth: int) -> dict[str, object]:
    return {**asdict(parameters), **measured(parameters, Limits(depth=depth))}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.waiting", description="Simulate a waiting list.")
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--early", type=float, default=0.1, help="the part of leases that end early")
    parser.add_argument("--ahead", type=float, default=0.5, help="the part of requests for a later start")
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures of all runs")
    parser.add_argument("--svg", type=Path, help="write a plot of the utilization")
    options = parser.parse_args()
    runs: list[dict[str, object]] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        asked = [
            pool.submit(
                one, Parameters(mix, seed, options.days, early=options.early, ahead=options.ahead), options.depth
            )
            for seed in range(1, options.seeds + 1)
            for mix in options.mixes.split(",")
        ]
        for done in as_completed(asked):
            runs.append(done.result())
            print(json.dumps(runs[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(runs, indent=1) + "\n", "utf-8")
    if options.svg:
        options.svg.write_text(plot(runs), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
