# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases: other resources for one, one made two, two made one; and offers to somebody else."""

from __future__ import annotations

from datetime import datetime

from blazar.model.base.paging import Position
from blazar.model.base.values import dataclass
from blazar.model.leases.details import LeaseDetails
from blazar.model.leases.lease import Lease, TransferOffer
from blazar.model.leases.requests import Actor, IdempotencyKey
from blazar.model.leases.states import OVER


@dataclass(frozen=True, slots=True)
class Terms:
    """Who asks for an operation on a lease, and under which conditions.

    ``names``: the caller may see names of resources. ``revisions`` are those that the lease may have, None for any.
    ``dry_run``: nothing is changed. ``key``: with the same one it is done once.
    """

    asked_by: Actor
    names: bool = False
    revisions: tuple[int, ...] | None = None
    dry_run: bool = False
    key: IdempotencyKey | None = None


@dataclass(frozen=True, slots=True)
class Partner:
    """A reservation of another lease, with which a resource is exchanged."""

    lease_id: str
    reservation_id: str


@dataclass(frozen=True, slots=True)
class SwapRequest:
    """A reservation gives up a host, and gets another one for it.

    ``host`` and ``target`` are ids, labels or names, as the caller may see them; ``target`` None: any that fits. With a
    ``partner`` that one gets the host, and gives up the target.
    """

    reservation_id: str
    host: str
    target: str | None = None
    partner: Partner | None = None


@dataclass(frozen=True, slots=True)
class PartRequest:
    """What of a reservation goes to the second lease: these ``resources``, a ``count`` of them, or if both are empty
    all.

    Resources are named as in ``SwapRequest``.
    """

    reservation_id: str
    resources: tuple[str, ...] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """One lease becomes two: by units, with the ``parts`` that go, or by time, ``at`` an instant.

    ``name`` is that of the second lease; None: that of the first.
    """

    parts: tuple[PartRequest, ...] = ()
    at: datetime | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Two leases become one: the first has what the ``other`` had."""

    other: str


@dataclass(frozen=True, slots=True)
class Operated:
    """The leases that an operation leaves, the one that was named first; ``replayed``: it was done before.

    Of a dry run: as they would be, with ids that do not last.
    """

    leases: tuple[LeaseDetails, ...]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class OfferRequest:
    """To whom a lease is offered: to a project, None for its own, and to a user of it, None for anyone."""

    project_id: str | None = None
    user_id: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class OfferPage:
    """A page of leases that are offered, and where the next one begins."""

    items: tuple[LeaseDetails, ...]
    following: Position | None = None
    count: int | None = None


def find_standing_offer(lease: Lease, now: datetime) -> TransferOffer | None:
    """Return the offer of a lease if it stands."""
    offer = lease.offer
    if offer is None or offer.expires_at <= now or lease.deleted_at is not None or lease.status in OVER:
        return None
    return offer


def may_accept(offer: TransferOffer, taker: Actor) -> bool:
    """Return whether somebody may accept an offer: with a token of the project, as the user if it names one."""
    return offer.project_id == taker.project_id and offer.user_id in (None, taker.user_id)
