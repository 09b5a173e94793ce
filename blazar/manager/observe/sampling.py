# SPDX-License-Identifier: Apache-2.0
"""Reads now and then in the database what metrics tell of all leases and resources, so that no scrape has to."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.leases.states import EventType
from blazar.observe import metrics
from blazar.observe.exposition import Value
from blazar.observe.families import OTHER, Reading
from blazar.store.observe.sample import Backlog, Sample

LASTS = 3
"""Intervals for which a sample is told: later there is none, which is better than an old one."""

VALUES = 20
"""Values of a property that are told; of more, the most frequent, and the rest together."""


class Sampling(BackgroundThread):
    """Keeps the last sample. All managers of a database say the same."""

    def __init__(self, runtime: Runtime) -> None:
        self._interval = runtime.settings.sample_interval.total_seconds()
        super().__init__("sampling", work="What metrics tell cannot be read", retry=self._interval)
        self._runtime = runtime
        self._last: tuple[Sample, datetime, float] | None = None

    def start(self) -> None:
        """Start the thread; none if nobody reads metrics."""
        if self._interval:
            super().start()

    def run_once(self) -> None:
        """Read a sample. StoreUnavailable."""
        now = self._runtime.clock.now()
        sample = self._runtime.store.sample.read(now, self._runtime.settings.sample_properties)
        self._last = sample, now, self._runtime.clock.elapsed()

    def read(self) -> Iterator[Value]:
        """Yield what the last sample says, and nothing once it is old. No statement."""
        if self._last is None:
            return
        sample, at, read_at = self._last
        if self._runtime.clock.elapsed() - read_at > LASTS * self._interval:
            return
        yield Value(metrics.SAMPLE_TIMESTAMP, (), at.timestamp())
        yield from _tell_backlog(metrics.DUE_EVENTS, metrics.OLDEST_DUE_EVENT_AGE, _with_all_events(sample.due))
        yield from _tell_backlog(metrics.WAITING_LEASES, metrics.WAITING_OLDEST_AGE, sample.waiting)
        yield from _tell(metrics.LEASES, sample.leases)
        yield from _tell(metrics.RESOURCES, sample.resources)
        yield from _tell(metrics.RESOURCES_BY_PROPERTY, _keep_frequent(sample.properties))
        yield from _tell(metrics.POWER_RESOURCES, sample.power)
        yield from _tell(metrics.CAPACITY, sample.capacity)
        yield from _tell(metrics.CAPACITY_ALLOCATED, sample.allocated)
        yield from (Value(metrics.OUTBOX_MESSAGES, ("enforcement", state), n) for state, n in sample.messages.items())
        # That nothing differs is told, too.
        drift = {(region,): 0 for region in self._runtime.regions} | dict(sample.drift)
        yield from _tell(metrics.DRIFT_FINDINGS, drift)
        yield Value(metrics.OUTBOX_OLDEST_AGE, ("enforcement",), sample.undelivered.oldest.total_seconds())
        yield from _tell(metrics.OUTBOX_MESSAGES, sample.deliveries.numbers)
        for channel, age in sample.deliveries.oldest.items():
            yield Value(metrics.OUTBOX_OLDEST_AGE, (channel,), age.total_seconds())
        yield Value(metrics.JOURNAL_UNNUMBERED, (), sample.deliveries.unnumbered)

    def _round(self) -> float:
        begin = time.monotonic()
        self.run_once()
        return max(1.0, self._interval - (time.monotonic() - begin))


def _with_all_events(due: Mapping[str, Backlog]) -> Mapping[str, Backlog]:
    # That none is due is told, too: a rule compares numbers only.
    return {event: due.get(event, Backlog.nothing()) for event in EventType}


def _tell_backlog(number: Reading, age: Reading, backlogs: Mapping[str, Backlog]) -> Iterator[Value]:
    for name, backlog in backlogs.items():
        yield Value(number, (name,), backlog.number)
        yield Value(age, (name,), max(0.0, backlog.oldest.total_seconds()))


def _tell(family: Reading, numbers: Mapping[tuple[str, ...], float] | Mapping[tuple[str, ...], int]) -> Iterator[Value]:
    return (Value(family, labels, number) for labels, number in numbers.items())


def _keep_frequent(numbers: Mapping[tuple[str, ...], float]) -> Mapping[tuple[str, ...], float]:
    """Return numbers by kind, property, value and state, with the rare values of each property as one."""
    total: dict[tuple[str, str], float] = defaultdict(float)
    for (_, name, value, _), number in numbers.items():
        total[name, value] += number
    frequent: set[tuple[str, str]] = set()
    for name in {name for name, _ in total}:
        values = sorted((one for one in total if one[0] == name), key=lambda one: (-total[one], one))
        frequent.update(values[:VALUES])
    kept: dict[tuple[str, ...], float] = defaultdict(float)
    for (kind, name, value, state), number in numbers.items():
        kept[kind, name, value if (name, value) in frequent else OTHER, state] += number
    return kept
