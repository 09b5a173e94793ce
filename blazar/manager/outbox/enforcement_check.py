# SPDX-License-Identifier: Apache-2.0
"""The manager's side of usage enforcement: what it sends to the filters, and when it asks them."""

from __future__ import annotations

from collections.abc import Collection

from blazar.enforcement import AllocatedResource, LeaseView, Question
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import UsageDenied
from blazar.model.base.values import dataclass
from blazar.model.billing.spending import ProjectSpending, SpendRoom
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.resources.resource import Resource
from blazar.model.use.resource_hours import HostUse, ProjectUse
from blazar.store.store import Store


def make_view(store: Store, lease: Lease, allocations: Collection[Allocation]) -> LeaseView:
    """Return a lease with the registered resources of its allocations, including their capabilities.

    Filters and stored messages need no secrets of users.
    """
    wanted = {allocation.resource_id for allocation in allocations}
    found: dict[int, Resource] = {}
    for kind in sorted({a.kind for a in allocations}):
        if wanted <= found.keys():
            break
        known = store.resources.catalog(kind).resources
        found |= {resource.id: resource for resource in known if resource.id in wanted}
    if gone := wanted - found.keys():
        found |= store.resources.by_ids(gone)
    return LeaseView(
        lease.without_secrets,
        tuple(
            AllocatedResource(a.reservation_id, found[a.resource_id], a.count, a.per_instance is None, a.per_instance)
            for a in allocations
        ),
    )


def is_spending_read(runtime: Runtime) -> bool:
    """Return whether filters need to know what a project has to pay; nothing has a price before there is a list."""
    return runtime.enforcement.needs_spending and bool(runtime.store.price_lists.known())


def find_spending(runtime: Runtime, use: ProjectUse | None) -> ProjectSpending | None:
    """Return what a project has to pay, of a use of which that was read; None: it was not."""
    if use is None or use.spending is None or not (lists := runtime.store.price_lists.known()):
        return None
    return ProjectSpending(lists, use.spending)


@dataclass(frozen=True, slots=True)
class Examined:
    """A lease as it would be booked for an actor with these allocations, or changed from ``before``.

    ``part_of``: it is a part of another lease, whose use is not counted once more; that is a lease all the same.
    ``instead_of``: it takes over what that lease has, which is none any more. ``pointer`` is what the request has of
    it, if a denial should not point at a field of the lease. ``max_price`` is the most that it may cost, a decimal.
    """

    actor: Actor
    lease: Lease
    allocations: Collection[Allocation]
    before: tuple[Lease, Collection[Allocation]] | None = None
    part_of: Lease | None = None
    instead_of: Lease | None = None
    pointer: str | None = None
    max_price: str | None = None

    @property
    def known_leases(self) -> tuple[str, ...]:
        """The ids of leases of which filters know already."""
        first = () if self.before is None else (self.before[0].id,)
        return first if self.instead_of is None else (*first, self.instead_of.id)


class EnforcementCheck:
    """Checks, for one request, whether the resources found may be booked.

    It runs between the search and the booking, with no transaction open and no other request waiting. ``use`` is the
    usage of the project that it has read; the booking must find that unchanged, or the check is repeated.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._passed: dict[int, object] = {}
        self.use: ProjectUse | None = None

    @property
    def uses(self) -> tuple[ProjectUse, ...]:
        """The usage that the booking must find unchanged, if any was read."""
        return () if self.use is None else (self.use,)

    def check(self, examined: Examined) -> None:
        """Raise UsageDenied, or another error, unless the lease may be booked, or changed."""
        enforcement = self._runtime.enforcement
        self.use = self._read_use(examined.lease, examined.part_of)
        question = self._make_question(examined, self.use)
        enforcement.check(question, self._passed)
        if self.use is not None:
            self.use = enforcement.complete_use(self.use, question)

    def list_objections(self, examined: Examined) -> tuple[UsageDenied, ...]:
        """Return why our own limits would deny a lease; no service is asked, and nothing is to be booked by that."""
        question = self._make_question(examined, self._read_use(examined.lease, examined.part_of))
        return self._runtime.enforcement.refusals(question)

    def find_spend_room(self, lease: Lease) -> SpendRoom | None:
        """Return what the project of a new lease may still spend; None: any amount. EnforcementUnavailable."""
        spending = find_spending(self._runtime, self._read_use(lease))
        limit = None if spending is None else self._runtime.enforcement.find_spend_limit(lease.project_id)
        return None if spending is None or limit is None else SpendRoom(limit, spending)

    def _read_use(self, lease: Lease, part_of: Lease | None = None) -> ProjectUse | None:
        """Return what the project has besides a lease; None: no filter needs that."""
        enforcement = self._runtime.enforcement
        if not enforcement.needs_use:
            return None
        return self._runtime.store.calendar.read_project_use(
            lease.project_id,
            lease.window,
            besides=lease.id if part_of is None else part_of.id,
            reach=enforcement.usage_window(lease.window),
            now=self._runtime.clock.now(),
            spends=is_spending_read(self._runtime),
        )

    def _make_question(self, examined: Examined, use: ProjectUse | None) -> Question:
        store, lease, part_of = self._runtime.store, examined.lease, examined.part_of
        gone = None if examined.instead_of is None else examined.instead_of.id
        others = tuple(one for one in use.leases if one.lease_id != gone) if use else ()
        if part_of is not None:
            others = (*others, HostUse(part_of.id, part_of.window, 0))
        return Question(
            self._runtime.enforcement.identity.make_context(lease, examined.actor),
            self._runtime.clock.now(),
            make_view(store, lease, examined.allocations),
            make_view(store, *examined.before) if examined.before else None,
            others,
            tuple(record for record in use.usage if record.lease_id != gone) if use else (),
            use.own_usage if use and part_of is None else (),
            # A part of a lease costs nothing more.
            find_spending(self._runtime, use) if part_of is None else None,
            examined.max_price,
        )
