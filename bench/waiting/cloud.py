# SPDX-License-Identifier: Apache-2.0
"""The virtual cloud: what is booked on its hosts, and how much of it is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench.waiting.models import PROPERTY, models_of
from bench.waiting.traces import MIXES, Parameters, Request
from blazar.calendar.queue.values import DAY, HOUR, Grant, Inventory, Waiter
from blazar.model.base.amounts import Amounts
from blazar.model.calendar.demand import Demand
from blazar.model.resources.requirements import Anything, Comparison
from blazar.model.resources.resource import HOST, Resource

ZERO = 1_800_000_000
"""The first second; all instants are whole hours later."""


def hosts(p: Parameters) -> tuple[Resource, ...]:
    """Return the hosts of all models."""
    made = datetime.fromtimestamp(ZERO, UTC)
    capacity = Amounts.of({"VCPU": 64})
    names = [model.name for model in models_of(p.models, p.hosts, MIXES[p.mix]) for _ in range(model.hosts)]
    return tuple(
        Resource(n, HOST, str(n), f"host-{n:04}", {PROPERTY: name}, {}, capacity, True, made)
        for n, name in enumerate(names)
    )


@dataclass(slots=True)
class Cloud:
    """What is booked: by host the uses of leases that have begun, and how much was used while it is measured."""

    parameters: Parameters
    resources: Sequence[Resource]
    running: dict[str, tuple[Grant, int]] = field(default_factory=dict)
    used_hours: int = 0

    def begin(self, grant: Grant, real: int) -> None:
        """Begin a lease that is used for so many hours, or up to its end."""
        until = min(grant.start + real * HOUR, grant.end)
        self.running[grant.lease_id] = grant, until
        first = ZERO + self.parameters.warm_up * DAY
        last = ZERO + self.parameters.days * DAY
        span = min(until, last) - max(grant.start, first)
        self.used_hours += max(span, 0) // HOUR * len(grant.parts)

    def end(self, now: int) -> list[Grant]:
        """End the leases that are no longer used, and return what they had."""
        over = [grant for grant, until in self.running.values() if until <= now]
        for grant in over:
            del self.running[grant.lease_id]
        return over

    def inventory(self) -> Inventory:
        uses = defaultdict(list)
        for grant, _ in self.running.values():
            for part in grant.parts:
                uses[part.resource_id].append((grant.start, grant.end, 1, None))
        return Inventory(self.resources, uses)

    @property
    def utilization(self) -> float:
        p = self.parameters
        return self.used_hours / (p.hosts * (p.days - p.warm_up) * 24)


def waiter_of(p: Parameters, request: Request, patience: int) -> Waiter:
    """Return what waits for a request."""
    requirement = Anything() if p.models == 1 else Comparison("==", PROPERTY, request.model)
    wanted = ZERO + request.wanted * HOUR
    times = {} if request.latest is None else {"latest": ZERO + request.latest * HOUR}
    return Waiter(
        request.id,
        request.project,
        (Demand(HOST, request.least, request.count, requirement),),
        request.length * HOUR,
        queued_at=ZERO + request.at * HOUR,
        wait_until=wanted + patience * HOUR,
        earliest=wanted,
        at_least=None if request.shortest == request.length else request.shortest * HOUR,
        **times,
    )
