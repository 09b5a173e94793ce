# SPDX-License-Identifier: Apache-2.0
"""The text that Prometheus reads: what this process counts, or all processes of an API, and what is read right now.

With ``PROMETHEUS_MULTIPROC_DIR`` in the environment before the first import each process counts in files of that
folder, and the one that is asked adds them up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from blazar.observe.families import REGISTRY, Reading

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_FILE = re.compile(r"([a-z]+)(?:_live[a-z]+)?_(\d+)\.db")
"""Of a process: its kind, and the number of the process."""

_ADDING = Lock()


class Value(NamedTuple):
    """A number that was read: its family, the values of the labels, and itself."""

    family: Reading
    labels: tuple[str, ...]
    number: float


class Readings(Collector):
    """Gauges of what ``read`` returns when metrics are asked for; it calls nothing that could take time."""

    def __init__(self, read: Callable[[], Iterable[Value]]) -> None:
        self._read = read

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield a gauge for each family that has values. Values that become ``other`` add up."""
        found: dict[Reading, dict[tuple[str, ...], float]] = {}
        for family, labels, number in self._read():
            numbers = found.setdefault(family, {})
            admitted = family.admit(labels)
            numbers[admitted] = numbers.get(admitted, 0) + number
        for family, numbers in found.items():
            gauge = GaugeMetricFamily(family.name, family.help, labels=family.label_names)
            for labels, number in numbers.items():
                gauge.add_metric(labels, number)
            yield gauge


def render(collectors: Iterable[Collector] = ()) -> bytes:
    """Return all metrics as text. No statement is run, and nobody is called."""
    read_now = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        read_now.register(collector)
    counted = REGISTRY
    if folder := os.environ.get(FOLDER):
        _forget_dead_processes(Path(folder))
        counted = CollectorRegistry(auto_describe=False)
        MultiProcessCollector(counted, folder)  # type: ignore[no-untyped-call]
    return generate_latest(counted) + generate_latest(read_now)


def _forget_dead_processes(folder: Path) -> None:
    """Forget what processes that are gone had in progress, and add up what they have counted, in one file of a kind.

    Else each worker that a server replaces would leave two files, and a scrape would take longer each day.
    """
    found = [(match[1], int(match[2]), path) for path in folder.glob("*.db") if (match := _FILE.fullmatch(path.name))]
    with _ADDING:
        dead = {pid for pid in {pid for _, pid, _ in found} if _is_dead(pid)}
        for pid in dead:
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
        for kind in ("counter", "histogram"):
            if left := [path for of_kind, pid, path in found if of_kind == kind and pid in dead and path.exists()]:
                _add_up(folder / f"{kind}_ended.db", left)


def _add_up(total: Path, files: Iterable[Path]) -> None:
    """Put what is counted in files into one, and remove them. A crash in between counts them twice, never less."""
    counted: dict[str, tuple[float, float]] = {}
    for path in (total, *files):
        if path.exists():
            for key, value, at, _ in MmapedDict.read_all_values_from_file(str(path)):  # type: ignore[no-untyped-call]
                counted[key] = (counted.get(key, (0.0, 0.0))[0] + value, at)
    fresh = total.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    written = MmapedDict(str(fresh))  # type: ignore[no-untyped-call]
    for key, (value, at) in counted.items():
        written.write_value(key, value, at)  # type: ignore[no-untyped-call]
    written.close()  # type: ignore[no-untyped-call]
    fresh.replace(total)
    for path in files:
        path.unlink()


def _is_dead(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        # It lives, as somebody else's: the number is in use again.
        return False
    return False
