# SPDX-License-Identifier: Apache-2.0
"""Types of ours as they are in a service of two regions: nothing is ever done in the one that a lease is not in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blazar.model.resources.regions import Regions
from blazar.resources.contract.regional import RegionalKind, RegionalType
from blazarconformance import Harness, Surroundings
from tests.conformance.sites import OURS

REGIONS = Regions(("here", "elsewhere"))


def regional(plain: Harness) -> Harness:
    """Return the harness of a type in two regions, each with a cloud of its own; leases lie in the first."""

    def build(around: Surroundings) -> Any:
        site: Any = plain.build(around)
        other: Any = plain.build(around)
        snapshot, another = site.snapshot, site.another_type

        def type_of(here: Any, elsewhere: Any) -> Any:
            return RegionalType({"here": here, "elsewhere": elsewhere}, REGIONS)

        site.type = type_of(site.type, other.type)
        site.kind = RegionalKind({"here": site.kind, "elsewhere": other.kind}, REGIONS)
        site.another_type = lambda: type_of(another(), other.another_type())
        site.snapshot = lambda: {**snapshot(), "elsewhere": other.snapshot()}
        return site

    return replace(plain, name=f"{plain.name}-in-regions", build=build)


REGIONAL = tuple(regional(each) for each in OURS)
