# SPDX-License-Identifier: Apache-2.0
"""What metrics say: of this process, and in a text that was read from a port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from blazar.observe.exposition import render
from blazar.observe.families import Family


def samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def number(family: Family, text: str | None = None, **labels: str) -> float:
    """Return the sum of the series with these labels, of a histogram how many it has."""
    name = family.name + ("_count" if family.kind == "histogram" else "")
    found = samples(render().decode() if text is None else text)
    return sum(one.value for one in found if one.name == name and labels.items() <= one.labels.items())


@contextmanager
def growing(family: Family, by: float = 1, **labels: str) -> Iterator[None]:
    """Hold that the series with these labels grow by this in a block."""
    before = number(family, **labels)
    yield
    assert number(family, **labels) - before == by, (family.name, labels)
