# SPDX-License-Identifier: Apache-2.0
"""Scarcity: which resources the others' narrow requests compete for, so that who needs any of them gets another one.

The score of a resource is the demand that it would carry if each request chose evenly among those that meet it:
the sum, over the requests that it meets, of the hours they ask for divided by the resources that meet them. What only
"any" asks for scores lowest; what few have, and many want, highest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import isfinite, log2

from blazar.calendar.placement import Matching, list_eligible
from blazar.model.base.amounts import NOTHING
from blazar.model.base.values import dataclass
from blazar.model.calendar.demand import Demand
from blazar.model.resources.resource import Resource

FACTOR = "scarcity"
"""The capability by which an operator makes a resource count as more scarce than it is, or less."""

MOST_SOUGHT = 256
"""Different demands that are looked at: those for the most hours."""

USUAL_CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""Classes that nobody looks for a resource by: there is more or less of them everywhere."""

_STEPS = 2
"""Tiers for each doubling of the score: resources that are nearly equal share one."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What requests that are alike asked for together: each unit of the demand for so many hours in all."""

    demand: Demand
    unit_hours: float


def rank_resources(
    resources: Sequence[Resource], sought: Iterable[Sought], *, matching: Matching, public: frozenset[str]
) -> Mapping[int, int]:
    """Return the tier of each resource, by calendar id; 0 is the least scarce, and two more are twice as scarce.

    A value of a ``public`` capability, a trait and a class that not all have is sought once, as an average request
    is: so that what is rare counts as scarce before anybody has asked for it. O(demands x resources).
    """
    if not resources:
        return {}
    most = nlargest(MOST_SOUGHT, sought, key=lambda one: one.unit_hours)
    # Of leases that were ended before they began no hours are left: all hosts then count alike, and not for nothing.
    usual = sum(one.unit_hours for one in most) / len(most) or 1.0 if most else 1.0
    scores = dict.fromkeys((r.id for r in resources), usual / len(resources))
    for one in most:
        _share(one.unit_hours, _weigh_eligible(one.demand, matching), scores)
    for ids in _list_rarities(resources, public):
        _share(usual, dict.fromkeys(ids, 1.0), scores)
    for resource in resources:
        scores[resource.id] *= read_factor(resource)
    lowest = min(scores.values())
    return {id_: round(_STEPS * log2(score / lowest)) for id_, score in scores.items()}


def read_factor(resource: Resource) -> float:
    """Return by what the operator multiplies a score, from 0.001 to 1000; 1 if that is not given, or no such number."""
    try:
        factor = float(resource.capabilities.get(FACTOR, 1))
    except ValueError:
        return 1.0
    return factor if isfinite(factor) and 0.001 <= factor <= 1000 else 1.0


def _weigh_eligible(demand: Demand, matching: Matching) -> Mapping[int, float]:
    """Return the resources that meet a demand, by id, with how much of one a unit takes."""
    eligible = list_eligible(demand, matching)
    if demand.per_instance is None:
        return {r.id: 1.0 for r in eligible}
    fits = ((r.id, r.count_beside(NOTHING, demand.per_instance)) for r in eligible)
    return {id_: 1 / count for id_, count in fits if count}


def _share(hours: float, weights: Mapping[int, float], scores: dict[int, float]) -> None:
    for id_, weight in weights.items():
        if id_ in scores:
            scores[id_] += hours * weight / len(weights)


def _list_rarities(resources: Sequence[Resource], public: frozenset[str]) -> list[list[int]]:
    """Return the resources that have a thing that can be asked for, of each that some have and some have not."""
    having: dict[tuple[str, str], list[int]] = defaultdict(list)
    for resource in resources:
        for name, value in resource.capabilities.items():
            if name in public and name != FACTOR:
                having[name, value].append(resource.id)
        for name in resource.traits:
            if name.startswith("CUSTOM_"):
                having["trait", name].append(resource.id)
        for name, amount in resource.capacity:
            if amount and name not in USUAL_CLASSES:
                having["class", name].append(resource.id)
    return [ids for ids in having.values() if len(ids) < len(resources)]
