# SPDX-License-Identifier: Apache-2.0
"""Allocations grouped by resource, as operators read them."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.model.demand import Allocation
from blazar.model.resource import Resource


@dataclass(frozen=True, slots=True)
class ResourceAllocations:
    """A resource with its live allocations, earliest first."""

    resource: Resource
    allocations: tuple[Allocation, ...]
