# SPDX-License-Identifier: Apache-2.0
"""Requests for surgery on leases: other resources for what one has, one lease made two, two made one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from blazar.model.lease_details import LeaseDetails
from blazar.model.requests import Actor, IdempotencyKey


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
