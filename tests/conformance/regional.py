# SPDX-License-Identifier: Apache-2.0
"""Types of ours as they are in a service of two regions: nothing is ever done in the one that a lease is not in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blazar.model.regions import Regions
from blazar.resources.regional import RegionalKind, RegionalType
from blazar.testing.conformance import Harness, Surroundings
from tests.conformance.sites import HOSTS, INSTANCES

REGIONS = Regions(("here", "elsewhere"))


def regional(plain: Harness) -> Harness:
    """Return the harness of a type in two regions, each with a cloud of its own; leases lie in the first."""

    def build(around: Surroundings) -> Any:
        site: Any = plain.build(around)
        other: Any = plain.build(around)
        snapshot, another = site.snapshot, site.another_type
        site.type = RegionalType({"here": site.type, "elsewhere": other.type}, REGIONS)
        site.kind = RegionalKind({"here": site.kind, "elsewhere": other.kind}, REGIONS)
        site.another_type = lambda: RegionalType({"here": another(), "elsewhere": other.another_type()}, REGIONS)
        site.snapshot = lambda: {**snapshot(), "elsewhere": other.snapshot()}
        return site

    return replace(plain, name=f"{plain.name}-in-regions", build=build)


REGIONAL = (regional(HOSTS), regional(INSTANCES))
"""Those that have all that a type can have: in front of others, a type of regions would seem to have it, too."""
