# SPDX-License-Identifier: Apache-2.0
"""Families of metrics: a name, what it says, its labels, and the values that these may have.

A family is declared once, in ``metrics``, and fed where the thing happens. A value of a label that is not allowed
counts as ``other``, so that no caller, however odd what it sends, makes the number of series grow.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import prometheus_client

from blazar.model.base.values import dataclass, field

OTHER = "other"
PREFIX = "blazar_"

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

REGISTRY = prometheus_client.CollectorRegistry(auto_describe=False)
"""All that is counted in this process. Ours alone: libraries register what they like in the one of the library."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds of the buckets of a histogram of durations."""


@dataclass(frozen=True)
class Label:
    """A label of families: the values that it may have, or how many names of that form, ``source`` says of what."""

    name: str
    values: tuple[str, ...] = ()
    most: int = 0
    source: str = ""
    form: re.Pattern[str] = re.compile(r"[^\x00-\x1f]{0,80}")
    _seen: set[str] = field(default_factory=set, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def admit(self, value: str) -> str:
        """Return a value if it is allowed, else ``other``. Of names the first ``most`` are."""
        if value in self.values or value in self._seen:
            return value
        if not self.most or not self.form.fullmatch(value):
            return OTHER
        with self._lock:
            if len(self._seen) >= self.most:
                return OTHER
            self._seen.add(value)
        return value

    def allows(self, value: str) -> bool:
        """Return whether a series may have a value."""
        return value == OTHER or value in self.values or (bool(self.most) and self.form.fullmatch(value) is not None)


Kind = Literal["counter", "histogram", "gauge"]


class _Children(dict[tuple[str, ...], Any]):
    """What counts for values of the labels, by these; the library takes four times as long to find it."""

    def __init__(self, family: Family) -> None:
        super().__init__()
        self._family = family

    def __missing__(self, values: tuple[str, ...]) -> Any:
        admitted = self._family.admit(values)
        whole = self._family.instrument()
        child = whole.labels(*admitted) if admitted else whole
        if admitted == values:
            # What becomes ``other`` is not kept: there may be any number of it.
            self[values] = child
        return child


class Family:
    """What all families are: a name after the prefix, a sentence, labels. ``sampled``: read by the sample of a manager.

    A gauge that is not fed by what happens is read when it is asked for (``cmd.monitoring``), and has no instrument.
    """

    kind: Kind = "gauge"
    sampled = False

    def __init__(self, name: str, help: str, *labels: Label) -> None:
        self.name = PREFIX + name
        self.help = help
        self.labels = labels
        self._children = _Children(self)

    def admit(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the values of the labels as a series may have them."""
        return tuple(label.admit(value) for label, value in zip(self.labels, values, strict=True))

    def instrument(self) -> Any:
        """Return what of the library counts, or measures, for all values of the labels."""
        raise TypeError(f"{self.name} is not fed by what happens")

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels, in their order."""
        return tuple(label.name for label in self.labels)


class Count(Family):
    """A counter: it only grows."""

    kind: Kind = "counter"

    def __init__(self, name: str, help: str, *labels: Label) -> None:
        super().__init__(name, help, *labels)
        self._counter = prometheus_client.Counter(self.name, help, self.label_names, registry=REGISTRY)

    def instrument(self) -> Any:
        """Return the counter of the library."""
        return self._counter

    def add(self, *values: str, by: float = 1) -> None:
        """Count something with these values of the labels."""
        self._children[values].inc(by)


class Spread(Family):
    """A histogram: how many took up to how long."""

    kind: Kind = "histogram"

    def __init__(self, name: str, help: str, *labels: Label, buckets: Sequence[float] = SECONDS) -> None:
        super().__init__(name, help, *labels)
        self.buckets = tuple(buckets)
        self._histogram = prometheus_client.Histogram(
            self.name, help, self.label_names, registry=REGISTRY, buckets=self.buckets
        )

    def instrument(self) -> Any:
        """Return the histogram of the library."""
        return self._histogram

    def note(self, seconds: float, *values: str) -> None:
        """Note how long something took; what a clock that was set makes negative counts as nothing."""
        self._children[values].observe(max(0.0, seconds))

    @contextmanager
    def measure(self, *values: str) -> Iterator[None]:
        """Note how long a block takes, also if it raises."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.note(time.perf_counter() - begin, *values)


class Level(Family):
    """A gauge that is set where something happens; ``merge`` is how those of several workers become one."""

    def __init__(self, name: str, help: str, *labels: Label, merge: Literal["livesum", "livemax"] = "livemax") -> None:
        super().__init__(name, help, *labels)
        self._gauge = prometheus_client.Gauge(
            self.name, help, self.label_names, registry=REGISTRY, multiprocess_mode=merge
        )

    def instrument(self) -> Any:
        """Return the gauge of the library."""
        return self._gauge

    def set(self, value: float, *values: str) -> None:
        """Set it."""
        self._children[values].set(value)

    def raise_by(self, amount: float, *values: str) -> None:
        """Raise it, or lower it by a negative amount."""
        self._children[values].inc(amount)

    def set_to_now(self, *values: str) -> None:
        """Set it to the present instant, in seconds since 1970."""
        self.set(time.time(), *values)


class Reading(Family):
    """A gauge of a manager that is read when metrics are asked for, from what the process has in memory."""


class Sampled(Reading):
    """A gauge of a manager that is read in the database, every ``sample_interval``; it is left out once it is old."""

    sampled = True
