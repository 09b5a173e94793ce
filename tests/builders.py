# SPDX-License-Identifier: Apache-2.0
"""Small values for tests of pure code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.resources.resource import HOST, Resource

NOON = datetime(2030, 4, 1, 12, tzinfo=UTC)


def hours(start: float, end: float) -> Window:
    """The window between two hours after noon."""
    return Window(NOON + timedelta(hours=start), NOON + timedelta(hours=end))


def a_host(id: int, *, vcpus: int = 8, zone: str = "az-1", reservable: bool = True, **capabilities: str) -> Resource:
    attributes = {"vcpus": vcpus, "availability_zone": zone, "hypervisor_hostname": f"node-{id}", "status": None}
    capacity = Amounts.of({"VCPU": vcpus})
    return Resource(id, HOST, str(id), f"node-{id}", attributes, capabilities, capacity, reservable, NOON)


def promised(
    resource: int, window: Window, *, lease: str = "other", vcpus: int | None = None, count: int = 1
) -> Allocation:
    per_instance = None if vcpus is None else Amounts.of({"VCPU": vcpus})
    return Allocation(HOST, resource, lease, f"{lease}-r", window, count, per_instance)
