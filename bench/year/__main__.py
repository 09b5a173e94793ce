# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.year``: a line for each year, and JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.year.calendar import YearCalendar
from bench.year.trace import DAY, draw_requests
from blazar.calendar.repack.values import RepackMode

TRIED = 12
"""Leases in use that are asked each day whether they could go on for one more."""


def run(mode: RepackMode, load: float, seed: int, days: int) -> dict[str, object]:
    """Return the figures of a year."""
    calendar, asked, granted, tried, on_own, by_moves = YearCalendar(mode), 0.0, 0.0, 0, 0, 0
    requests = granted_requests = 0
    day = 30
    for request in draw_requests(seed, load, days):
        if request.at >= day * DAY:
            calendar.now, day = day * DAY, day + 1
            for lease in calendar.list_in_use()[:TRIED]:
                free, moved = calendar.prolong(lease, DAY)
                tried, on_own, by_moves = tried + 1, on_own + free, by_moves + moved
        given = calendar.ask(request)
        requests, granted_requests = requests + 1, granted_requests + given
        asked += request.host_hours
        granted += given * request.host_hours
    return {
        "mode": str(mode),
        "load": load,
        "seed": seed,
        "days": days,
        "requests": requests,
        "granted": round(granted_requests / requests, 4),
        "host_hours": round(granted / asked, 4),
        "prolonged_on_own": round(on_own / max(1, tried), 4),
        "prolonged": round(by_moves / max(1, tried), 4),
        "used": round(calendar.count_used(days), 4),
        **calendar.counts,
        **{f"{name}_ms": _percentiles(some) for name, some in calendar.seconds.items()},
    }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"p{percent}": round(1000 * ordered[int(len(ordered) * percent / 100.01)], 2) for percent in (50, 99, 100)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.year", description="Simulate a year of bookings of whole hosts.")
    parser.add_argument("--modes", default="off,equal,any")
    parser.add_argument("--loads", default="0.9,1.1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--json", type=Path, help="write the figures; those that it has are not measured again")
    asked = parser.parse_args()
    runs: list[dict[str, object]] = []
    if asked.json and asked.json.exists():
        runs = json.loads(asked.json.read_text("utf-8"))
    done = [(one["mode"], one["load"], one["seed"], one["days"]) for one in runs]
    for seed in range(1, asked.seeds + 1):
        for load in map(float, asked.loads.split(",")):
            for mode in map(RepackMode, asked.modes.split(",")):
                if (str(mode), load, seed, asked.days) in done:
                    continue
                runs.append(run(mode, load, seed, asked.days))
                print(json.dumps(runs[-1]), flush=True)
                if asked.json:
                    asked.json.write_text(json.dumps(runs, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
