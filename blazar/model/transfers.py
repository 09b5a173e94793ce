# SPDX-License-Identifier: Apache-2.0
"""Offers of leases to other projects, or to other users of their project."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from blazar.model.lease import OVER, Lease, TransferOffer
from blazar.model.lease_details import LeaseDetails
from blazar.model.paging import Position
from blazar.model.requests import Actor


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


def standing(lease: Lease, now: datetime) -> TransferOffer | None:
    """Return the offer of a lease if it stands."""
    offer = lease.offer
    if offer is None or offer.expires_at <= now or lease.deleted_at is not None or lease.status in OVER:
        return None
    return offer


def is_for(offer: TransferOffer, taker: Actor) -> bool:
    """Return whether somebody may accept an offer: with a token of the project, as the user if it names one."""
    return offer.project_id == taker.project_id and offer.user_id in (None, taker.user_id)
