# SPDX-License-Identifier: Apache-2.0
"""The properties of resources with their values: what "Find a time" offers. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict

from blazar.manager.requests.visible import Visible
from blazar.model.calendar import PropertySummaries, PropertySummary, PropertyValueCount, number_of, order_of
from blazar.model.reading import ReadBounds
from blazar.model.resource import PropertyValue


def summaries(visible: Visible, bounds: ReadBounds) -> PropertySummaries:
    """Return the properties that the caller may see, with their values on the resources open to its project.

    Of more values than the bounds allow the most frequent are shown.
    """
    counts: dict[str, Counter[PropertyValue]] = defaultdict(Counter)
    for resource in visible.open_to_project():
        known = resource.properties
        for name in visible.keys & known.keys():
            if known[name] is not None:
                counts[name][known[name]] += 1
    return PropertySummaries(
        tuple(
            _summary(name, counts[name], visible.is_private(name), bounds.property_values)
            for name in sorted(counts)[: bounds.properties]
        )
    )


def _summary(name: str, counts: Counter[PropertyValue], private: bool, most: int) -> PropertySummary:
    numbers = [number for number in map(number_of, counts) if number is not None]
    is_number = len(numbers) == len(counts)
    frequent = sorted(counts.items(), key=lambda item: (-item[1], order_of(item[0])))[:most]
    values = [
        PropertyValueCount(number_of(value) if is_number else value, count)
        for value, count in sorted(frequent, key=lambda item: order_of(item[0]))
    ]
    return PropertySummary(
        name,
        private,
        is_number,
        tuple(values),
        truncated=len(counts) > most,
        minimum=min(numbers) if is_number else None,
        maximum=max(numbers) if is_number else None,
    )
