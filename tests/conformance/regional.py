# SPDX-License-Identifier: Apache-2.0
"""Types of ours as they are in a service of two regions: nothing is ever done in the one that a lease is not in."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from blazar.model.regions import Regions
from blazar.resources.regional import RegionalKind, RegionalType
from blazar.testing.conformance import Harness, Surroundings
from tests.conformance.sites import OURS

REGIONS = Regions(("here", "elsewhere"))


def only(in_regions: Any, plain: Any) -> Any:
    """Return of a type or kind of several regions what those of one have.

    It does by itself what they leave out, which is nothing, and the suite would look for what comes of it.
    """
    names = (name for name in dir(plain) if not name.startswith("_") and hasattr(in_regions, name))
    return SimpleNamespace(**{name: getattr(in_regions, name) for name in names})


def regional(plain: Harness) -> Harness:
    """Return the harness of a type in two regions, each with a cloud of its own; leases lie in the first."""

    def build(around: Surroundings) -> Any:
        site: Any = plain.build(around)
        other: Any = plain.build(around)
        snapshot, another = site.snapshot, site.another_type

        def type_of(here: Any, elsewhere: Any) -> Any:
            return only(RegionalType({"here": here, "elsewhere": elsewhere}, REGIONS), here)

        site.type = type_of(site.type, other.type)
        site.kind = only(RegionalKind({"here": site.kind, "elsewhere": other.kind}, REGIONS), site.kind)
        site.another_type = lambda: type_of(another(), other.another_type())
        site.snapshot = lambda: {**snapshot(), "elsewhere": other.snapshot()}
        return site

    return replace(plain, name=f"{plain.name}-in-regions", build=build)


REGIONAL = tuple(regional(each) for each in OURS)
