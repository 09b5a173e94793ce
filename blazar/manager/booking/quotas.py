# SPDX-License-Identifier: Apache-2.0
"""Quotas of the project in the cloud, looked at when a lease is made, and when it grows.

A lease that starts later may find more free than there is now, so that only what its project may have at all decides.
One call for each service and region, never while the calendar is locked. A service that does not answer keeps nobody
from a lease that starts later: the start looks again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from blazar.clouds.ports.projects import NO_LIMIT, OF_COMPUTE, OF_NETWORK, OF_VOLUMES, Limits, NoQuotas, Quota, Quotas
from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import CloudError, CloudUnavailable, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode
from blazar.model.base.values import dataclass, field
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.resources.contract.type import Needs, ResourceType

LOG = logging.getLogger(__name__)

SOON = timedelta(minutes=1)
"""A lease that starts within this time starts now: programs give their dates in whole minutes."""

PATIENCE = timedelta(seconds=5)
"""How long a lease that starts later waits for each service."""

NOUNS = {
    Quota.SERVERS: "servers",
    Quota.VCPUS: "VCPUs",
    Quota.MEMORY_MB: "MiB of memory",
    Quota.VOLUMES: "volumes",
    Quota.GIGABYTES: "GiB of volumes",
    Quota.NETWORKS: "networks",
    Quota.SUBNETS: "subnets",
    Quota.PORTS: "ports",
}


@dataclass(frozen=True, slots=True)
class RegionNeed:
    """What a reservation needs, of the quotas of its region; ``pointer`` is where the request has it, if it does."""

    region: str
    quotas: Quotas
    amounts: Needs
    pointer: str | None


@dataclass(frozen=True, slots=True)
class LeaseNeeds:
    """What a lease of a project needs.

    ``at_once``: now, beside what the project has already; of that ``find_leaving`` returns what goes before, in three
    statements.
    """

    project_id: str
    needs: tuple[RegionNeed, ...]
    at_once: bool
    # Two that are made of the same change are equal, or a change would be looked at again and again.
    leaving: Callable[[], Sequence[RegionNeed]] = field(default=tuple, compare=False)


class QuotasNeeded(Exception):
    """A change needs more of quotas: look at these, then retry. Raised while the calendar is locked."""

    def __init__(self, needed: LeaseNeeds) -> None:
        super().__init__(needed.project_id)
        self.needed = needed


@dataclass(frozen=True, slots=True)
class _Service:
    name: str
    quotas: tuple[Quota, ...]
    read: Callable[[Quotas, str], Limits]


_Known = dict[tuple[str, str], Limits | None]
"""Limits by region and service; None of a service that does not tell."""

_SERVICES = (
    _Service("Nova", OF_COMPUTE, lambda quotas, project_id: quotas.compute_quotas(project_id)),
    _Service("Cinder", OF_VOLUMES, lambda quotas, project_id: quotas.volume_quotas(project_id)),
    _Service("Neutron", OF_NETWORK, lambda quotas, project_id: quotas.network_quotas(project_id)),
)


def starts_at_once(start: datetime, now: datetime) -> bool:
    """Return whether a lease starts as good as now."""
    return start <= now + SOON


def check_quotas(*options: LeaseNeeds) -> None:
    """Raise Conflict if the project's quotas let the lease have what it needs by none of its options, CloudUnavailable.

    These differ in the regions. Each service of a region is asked once.
    """
    known: _Known = {}
    refused: Conflict | None = None
    for needed in options:
        try:
            _check_option(needed, known)
        except Conflict as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        raise refused


def _check_option(needed: LeaseNeeds, known: _Known) -> None:
    for region in dict.fromkeys(need.region for need in needed.needs):
        here = [need for need in needed.needs if need.region == region]
        for service in _SERVICES:
            mine = [need for need in here if any(need.amounts.get(quota) for quota in service.quotas)]
            if not mine:
                continue
            key = region, service.name
            if key not in known:
                known[key] = _read(service, mine[0].quotas, needed)
            if limits := known[key]:
                for quota in service.quotas:
                    _check(service, quota, limits, mine, needed)


def _read(service: _Service, quotas: Quotas, needed: LeaseNeeds) -> Limits | None:
    """Return the limits of the project in a service; None if it is not known. CloudUnavailable."""
    try:
        with scope(limit=None if needed.at_once else PATIENCE):
            return service.read(quotas, needed.project_id)
    except (CloudError, NotFound) as error:
        if needed.at_once and isinstance(error, CloudUnavailable):
            raise
        LOG.warning("Quotas of project %s in %s are not looked at: %s", needed.project_id, service.name, error.message)
        return None


def _check(service: _Service, quota: Quota, limits: Limits, needs: Sequence[RegionNeed], needed: LeaseNeeds) -> None:
    amount = sum(need.amounts.get(quota, 0) for need in needs)
    found = limits.get(quota)
    if found is None or found.limit <= NO_LIMIT or not amount:
        return
    used = found.used if needed.at_once else 0
    if used + amount <= found.limit:
        return
    if used and amount <= found.limit:
        # What goes before may still be there: the start waits for it.
        going = sum(need.amounts.get(quota, 0) for need in needed.leaving() if need.region == needs[0].region)
        used = max(0, used - going)
        if used + amount <= found.limit:
            return
    first = next(need for need in needs if need.amounts.get(quota))
    beside = f" beside the {used} that it has" if used else ""
    raise Conflict(
        f"the project may have no more {NOUNS[quota]} than {found.limit} (quota {quota} of {service.name}), and the "
        f"lease needs {amount}{beside}; ask for less, delete something, or ask the operators of the cloud for a "
        f"larger quota",
        code="limit_exceeded",
        at=first.pointer,
        data={"quota": str(quota), "limit": found.limit, "needed": amount, "in_use": used},
    ).because(ReasonCode.QUOTA_EXCEEDED)


_HOLDING = (LeaseStatus.ACTIVE, LeaseStatus.UPDATING, LeaseStatus.TERMINATING, LeaseStatus.DELETING)
_GOING = (LeaseStatus.TERMINATING, LeaseStatus.DELETING)


def find_leaving(runtime: Runtime, project_id: str, by: datetime) -> tuple[RegionNeed, ...]:
    """Return what leases of a project have that are ending, or end by an instant."""
    leases = runtime.store.leases.of_project(project_id)
    going = (
        lease for lease in leases if lease.status in _GOING or (lease.status in _HOLDING and lease.window.end <= by)
    )
    return tuple(need for lease in going for need in _needs_in_use(runtime, lease))


def _needs_in_use(runtime: Runtime, lease: Lease) -> Iterator[RegionNeed]:
    for reservation in lease.reservations:
        if (
            reservation.status is ReservationStatus.ACTIVE
            and (kind := runtime.types.get(reservation.resource_type)) is not None
        ):
            amounts = needs_of(kind, reservation.parameters, part=reservation.parent is not None)
            yield RegionNeed(reservation.region, NoQuotas(), amounts, None)


def needs_of(kind: ResourceType, parameters: Content, *, part: bool) -> Needs:
    """Return what a reservation needs of quotas; ``part``: one that another is made of."""
    own = kind.needs(parameters)
    return {**own, **kind.needs_as_part(parameters)} if part else own


def find_growth(
    runtime: Runtime, before: Lease, after: Lease, pointers: dict[str, str], now: datetime
) -> LeaseNeeds | None:
    """Return what has to be looked at for a change of a lease; None if it needs no more than before.

    Of a lease in use that is only what it needs more, at once; else all that it needs of what becomes more.
    """
    more: dict[str, Counter[Quota]] = {}
    for new in after.reservations:
        if (old := before.reservation(new.id)) is not None and old.parameters != new.parameters:
            more[new.id] = Counter(_needs(runtime, new)) - Counter(_needs(runtime, old))
    grown = frozenset(quota for quotas in more.values() for quota in quotas)
    if not grown:
        return None
    in_use = {r.id for r in after.reservations if r.status is ReservationStatus.ACTIVE}
    amounts: dict[str, Needs] = {id_: quotas for id_, quotas in more.items() if id_ in in_use}
    if not in_use:
        for r in after.reservations:
            amounts[r.id] = {quota: n for quota, n in _needs(runtime, r).items() if quota in grown}
    needs = tuple(
        RegionNeed(r.region, kind.quotas, amounts[r.id], pointers.get(r.id))
        for r in after.reservations
        if amounts.get(r.id) and (kind := runtime.type_of(r).within(r.region)).quotas is not None
    )
    if not needs:
        return None
    if in_use:
        return LeaseNeeds(after.project_id, needs, at_once=True)
    start = after.window.start
    going = partial(find_leaving, runtime, after.project_id, start)
    return LeaseNeeds(after.project_id, needs, starts_at_once(start, now), going)


def _needs(runtime: Runtime, reservation: Reservation) -> Needs:
    return runtime.type_of(reservation).needs(reservation.parameters)
