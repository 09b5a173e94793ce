# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.year``: a line for each year, and JSON."""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.year.calendar import YearCalendar
from bench.year.full import measure
from bench.year.trace import DAY, draw_requests
from blazar.calendar.repack.values import RepackMode

TRIED = 12
"""Leases in use that are asked each day whether they could go on for one more."""


@dataclass
class YearRun:
    """A year so far; one that was stopped goes on from the day on which it was kept last."""

    calendar: YearCalendar
    requests: int = 0
    granted: int = 0
    asked_hours: float = 0.0
    granted_hours: float = 0.0
    tried: int = 0
    on_own: int = 0
    by_moves: int = 0
    day: int = 30


def run(mode: RepackMode, load: float, seed: int, days: int, kept: Path | None = None) -> dict[str, object]:
    """Return the figures of a year; each month it is ``kept`` as it is then."""
    year = YearRun(YearCalendar(mode)) if kept is None or not kept.exists() else pickle.loads(kept.read_bytes())
    for request in islice(draw_requests(seed, load, days), year.requests, None):
        if request.at >= year.day * DAY:
            _prolong_some(year)
            if kept is not None and year.day % 30 == 0:
                write_whole(kept, pickle.dumps(year))
        given = year.calendar.ask(request)
        year.requests, year.granted = year.requests + 1, year.granted + given
        year.asked_hours += request.host_hours
        year.granted_hours += given * request.host_hours
    return {
        "mode": str(mode),
        "load": load,
        "seed": seed,
        "days": days,
        "requests": year.requests,
        "granted": round(year.granted / year.requests, 4),
        "host_hours": round(year.granted_hours / year.asked_hours, 4),
        "prolonged_on_own": round(year.on_own / max(1, year.tried), 4),
        "prolonged": round(year.by_moves / max(1, year.tried), 4),
        "used": round(year.calendar.count_used(days), 4),
        **year.calendar.counts,
        **{f"{name}_ms": _percentiles(some) for name, some in year.calendar.seconds.items()},
    }


def _prolong_some(year: YearRun) -> None:
    """Ask on a day whether leases in use could go on for one more."""
    year.calendar.now, year.day = year.day * DAY, year.day + 1
    for lease in year.calendar.list_in_use()[:TRIED]:
        free, moved = year.calendar.prolong(lease, DAY)
        year.tried, year.on_own, year.by_moves = year.tried + 1, year.on_own + free, year.by_moves + moved


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all: who is stopped meanwhile leaves the one before."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(content)
    beside.replace(path)


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"p{percent}": round(1000 * ordered[int(len(ordered) * percent / 100.01)], 2) for percent in (50, 99, 100)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.year", description="Simulate a year of bookings of whole hosts.")
    parser.add_argument("--modes", default="off,equal,any")
    parser.add_argument("--loads", default="0.9,1.1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument(
        "--json",
        type=Path,
        help="write the figures: those that it has are not measured again, and a year that was "
        "stopped goes on from its last month",
    )
    parser.add_argument("--full", help="instead: answers on full calendars, as 500x5000,1000x20000 hosts and leases")
    parser.add_argument("--requests", type=int, default=300, help="how many of them")
    asked = parser.parse_args()
    if asked.full:
        for text in asked.full.split(","):
            for mode in map(RepackMode, asked.modes.split(",")):
                hosts, leases = map(int, text.split("x"))
                print(json.dumps(measure(mode, hosts, leases, 1, asked.requests)), flush=True)
        return 0
    runs: list[dict[str, object]] = []
    if asked.json and asked.json.exists():
        runs = json.loads(asked.json.read_text("utf-8"))
    done = [(one["mode"], one["load"], one["seed"], one["days"]) for one in runs]
    for seed in range(1, asked.seeds + 1):
        for load in map(float, asked.loads.split(",")):
            for mode in map(RepackMode, asked.modes.split(",")):
                if (str(mode), load, seed, asked.days) in done:
                    continue
                kept = asked.json and asked.json.with_suffix(f".{mode}-{load}-{seed}-{asked.days}")
                runs.append(run(mode, load, seed, asked.days, kept))
                print(json.dumps(runs[-1]), flush=True)
                if asked.json and kept:
                    write_whole(asked.json, json.dumps(runs, indent=1).encode() + b"\n")
                    kept.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
