# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.power``: a line for each month, JSON, and a plot."""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from bench.power.plot import draw_plot
from bench.power.traces import MIXES, Month
from bench.power.world import World


def simulate(month: Month) -> dict[str, object]:
    return {**asdict(month), **World(month).run()}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.power", description="Simulate months in which hosts sleep.")
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--use", type=float, default=0.6, help="the part of all host-hours that are asked for")
    parser.add_argument("--spares", default="16,80", help="hosts that stay awake and free; learned: as is needed")
    parser.add_argument("--failing", type=float, default=0.02, help="the part of wakes that fail")
    parser.add_argument("--lead", type=int, default=30, help="minutes; 0: learned")
    parser.add_argument("--strategy", default="compact", help="of the placement: compact, pack")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures of all runs; those that it has are kept")
    parser.add_argument("--svg", type=Path, help="write a plot of them")
    return parser.parse_args()


def main() -> int:
    asked = read_options()
    runs: list[dict[str, object]] = []
    if asked.json and asked.json.exists():
        runs = json.loads(asked.json.read_text("utf-8"))
    shared = {name: getattr(asked, name) for name in ("hosts", "days", "use", "failing", "lead", "strategy")}
    spares = [
        {"learned": True} if spare == "learned" else {"spare": int(spare)} for spare in asked.spares.split(",") if spare
    ]
    wanted = [
        Month(mix, seed, **shared, **spare)
        for mix in asked.mixes.split(",")
        for spare in spares
        for seed in range(1, asked.seeds + 1)
    ]
    with ProcessPoolExecutor(asked.jobs) as pool:
        for figures in pool.map(simulate, wanted):
            runs.append(figures)
            said = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items())
            print(", ".join(said), flush=True)
            if asked.json:
                asked.json.write_text(json.dumps(runs, indent=2), "utf-8")
    if asked.svg:
        asked.svg.write_text(draw_plot(runs), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
