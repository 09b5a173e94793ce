# SPDX-License-Identifier: Apache-2.0
"""Accounts of leases that follow each other and become one: each hour costs what it did. Pure.

A resource keeps one tag for all the time that its reservation has it. So the parts by which that is charged have those
of both leases, and where resources with one tag go on with different ones, some of them get a tag of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass, replace
from blazar.model.billing.accounts import LeaseAccount
from blazar.model.billing.rating import list_parts_of
from blazar.model.billing.uses import BookedUse

_SECOND = timedelta(seconds=1)
Tag = datetime | None
"""When something was booked; None: with its lease."""


@dataclass(frozen=True, slots=True)
class Following:
    """Resources of a reservation that go on as those of one of the next lease, and when each was booked.

    ``noted_at``: by when they are told apart from now on, from those of their tag that go on with another one.
    """

    reservation_id: str
    booked_at: Tag
    next_reservation_id: str
    next_booked_at: Tag
    resources: frozenset[int]
    noted_at: Tag


def list_following(
    first: Iterable[BookedUse], second: Iterable[BookedUse], into: Mapping[str, str], earliest: datetime
) -> tuple[Following, ...]:
    """Return how what a lease has goes on with what the next one has, of which it has the same resources.

    ``into`` are the reservations of the next one with those that go on. Nothing of the two was booked before
    ``earliest``.
    """
    comes: dict[tuple[str, int], list[BookedUse]] = defaultdict(list)
    for use in second:
        if use.is_live and use.reservation_id in into:
            comes[into[use.reservation_id], use.resource_id].append(use)
    found: dict[tuple[str, Tag], dict[tuple[str, Tag], set[int]]] = defaultdict(lambda: defaultdict(set))
    for use in first:
        following = comes.get((use.reservation_id, use.resource_id), ()) if use.is_live else ()
        if following:
            # Of a share that has grown each layer goes on as the one that was booked then, or else as the first one.
            like = min(following, key=lambda one: (one.booked_at != use.booked_at, one.booked_at is not None))
            key = use.reservation_id, use.booked_at
            found[key][like.reservation_id, like.booked_at].add(use.resource_id)
    noted_at = earliest
    listed = []
    for (id_, booked_at), nexts in found.items():
        for number, ((next_id, next_at), resources) in enumerate(nexts.items()):
            if number:
                noted_at -= _SECOND
            known = noted_at if number else booked_at
            listed.append(Following(id_, booked_at, next_id, next_at, frozenset(resources), known))
    return tuple(listed)


def append_account(kept: LeaseAccount, other: LeaseAccount, following: Iterable[Following]) -> LeaseAccount:
    """Return the account of a lease to which the next one was appended: all of both costs what it did."""
    parts = (*kept.parts, *other.parts)
    joined = {key: (*known, *other.parts) for key, known in kept.joined.items()}
    for one in sorted(following, key=lambda one: one.noted_at is not None):
        its = (
            *list_parts_of(kept.joined, kept.parts, one.reservation_id, one.booked_at),
            *list_parts_of(other.joined, other.parts, one.next_reservation_id, one.next_booked_at),
        )
        joined.pop((one.reservation_id, one.noted_at), None)
        if its != list_parts_of(joined, parts, one.reservation_id, one.noted_at):
            joined[one.reservation_id, one.noted_at] = its
    return replace(kept, parts=parts, joined=joined)
