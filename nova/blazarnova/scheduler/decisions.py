# SPDX-License-Identifier: Apache-2.0
"""Whose server may run on which host: the rules of reservations, as pure functions.

A pool is a host aggregate that Blazar keeps: the freepool, the aggregate of preemptible servers, and one aggregate for
each host reservation, known by its availability zone or by its owner. Aggregates of instance reservations are no pools:
Placement keeps their servers together. Nothing here imports nova; the filter reads nova's objects and asks ``decide``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

LEGACY_ZONE_PREFIX = "blazar:"
"""Zones of reservations were once named so; clouds still have them."""

ZONE_KEY = "availability_zone"

SLOTS_KEY = "reservation"
"""Metadata of the aggregate of an instance reservation: its hosts have room that is promised."""

CLOSED_KEY = "blazar:closed:"
"""With a host's name behind it, metadata of the freepool: a reservation is taking the host over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What an operator may choose; the defaults are those of the options in nova.conf."""

    freepool: str = "freepool"
    preemptible_pool: str = "freepool"
    allow_preemptibles: bool = False
    owner_key: str = "blazar:owner"
    zone_prefix: str = "blazar_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for: whose server, which reservations its hint names, what its flavor says.

    ``destination`` is the host that an operator named for it, if one did; Nova lets nobody else name a host.
    """

    project_id: str | None = None
    reservations: frozenset[str] = frozenset()
    reservation_flavor: bool = False
    preemptible: bool = False
    destination: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that a host is in; ``reserved`` if it has the zone or the owner of a host reservation."""

    name: str
    reserved: bool = False
    owner: str | None = None
    guests: frozenset[str] = frozenset()

    def admits(self, project_id: str | None) -> bool:
        """Tell whether the project owns the reservation or was let in; nobody is let in by having no id."""
        return bool(project_id) and (project_id in self.guests or project_id == self.owner)


@dataclass(frozen=True, slots=True)
class Host:
    """A candidate: the name of its compute service, and the pools that it is in, those of reservations first."""

    name: str
    pools: tuple[Pool, ...] = ()
    promised: bool = False
    """Whether an instance reservation has room on it."""
    closed: bool = False
    """Whether a reservation is taking it over."""
    doubts: tuple[str, ...] = ()
    """Which of its pools look as if the options were not those of Blazar, as sentences."""


class Decision(Enum):
    """Whether the host passes, and why, as the end of a sentence that starts with the host."""

    OWN_RESERVATION = (True, "is in a pool of a reservation that the project may use")
    FOREIGN_RESERVATION = (False, "is in a pool that the project may not use")
    NOT_IN_RESERVATION = (False, "is in no pool that the hint names")
    NAMED_BY_OPERATOR = (True, "is in no pool, and an operator named it as the destination")
    RESERVATION_FLAVOR = (True, "is left to Placement, since the flavor is that of a reservation")
    PREEMPTIBLE_POOL = (True, "is in the pool of preemptible servers only")
    NOT_PREEMPTIBLE_POOL = (False, "is not in the pool of preemptible servers only")
    PROMISED_ROOM = (False, "has room that is promised to an instance reservation")
    CHANGES_HANDS = (False, "is being taken over by a reservation")
    RESERVABLE_HOST = (False, "is kept for reservations")
    OPEN_HOST = (True, "is in no pool")

    def __init__(self, passes: bool, reason: str) -> None:
        """Take a member's value apart."""
        self.passes = passes
        self.reason = reason


def decide(request: Request, host: Host, rules: Rules) -> Decision:
    """Decide whether the host may run the server.

    A hint outranks the flavor: who names a reservation gets its hosts or none. A server without a hint never gets
    onto a host of a pool, except as a preemptible one where that is allowed, or by the flavor of a reservation.
    """
    if request.reservations:
        return _with_hint(request, host)
    if request.reservation_flavor:
        return Decision.RESERVATION_FLAVOR
    if request.preemptible and rules.allow_preemptibles:
        return _preemptible(host, rules)
    return Decision.RESERVABLE_HOST if host.pools else Decision.OPEN_HOST


def _with_hint(request: Request, host: Host) -> Decision:
    if not host.pools and request.destination == host.name:
        # The way out of a reservation before it ends: its servers keep their hint for life.
        return Decision.NAMED_BY_OPERATOR
    pool = next((pool for pool in host.pools if pool.name in request.reservations), None)
    if pool is None:
        return Decision.NOT_IN_RESERVATION
    return Decision.OWN_RESERVATION if pool.admits(request.project_id) else Decision.FOREIGN_RESERVATION


def _preemptible(host: Host, rules: Rules) -> Decision:
    if host.closed:
        return Decision.CHANGES_HANDS
    if host.promised:
        return Decision.PROMISED_ROOM
    match host.pools:
        case (Pool(name=rules.preemptible_pool, reserved=False),):
            return Decision.PREEMPTIBLE_POOL
        case _:
            return Decision.NOT_PREEMPTIBLE_POOL


def host_in(name: str, aggregates: Iterable[tuple[str, Mapping[str, str]]], rules: Rules) -> Host:
    """Build a host from the names and the metadata of its aggregates, with those of them that are pools."""
    known = list(aggregates)
    pools = [pool for pool in (_pool(each, metadata, rules) for each, metadata in known) if pool]
    return Host(
        name,
        # While a host changes hands it is in the freepool too; a hint that names both means the reservation.
        tuple(sorted(pools, key=lambda pool: not pool.reserved)),
        promised=any(SLOTS_KEY in metadata for _, metadata in known),
        closed=any(CLOSED_KEY + name in metadata for _, metadata in known),
        doubts=tuple(doubt for each, metadata in known if (doubt := _doubt(each, metadata, rules))),
    )


def _has_zone(metadata: Mapping[str, str], rules: Rules) -> bool:
    return (metadata.get(ZONE_KEY) or "").startswith((rules.zone_prefix, LEGACY_ZONE_PREFIX))


def _has_owner(metadata: Mapping[str, str], rules: Rules) -> bool:
    # The aggregates of instance reservations have an owner, too.
    return rules.owner_key in metadata and SLOTS_KEY not in metadata


def _doubt(name: str, metadata: Mapping[str, str], rules: Rules) -> str | None:
    zone, owner = _has_zone(metadata, rules), _has_owner(metadata, rules)
    if zone is owner:
        return None
    if zone:
        return f"aggregate {name} has the zone of a reservation, and its metadata have no {rules.owner_key!r}"
    found = metadata.get(ZONE_KEY) or ""
    text = f"its zone {found!r} does not start with {rules.zone_prefix!r}"
    return f"aggregate {name} has the owner of a reservation, and {text}"


def _pool(name: str, metadata: Mapping[str, str], rules: Rules) -> Pool | None:
    # Either will do: a slip in one option must not open what is reserved.
    reserved = _has_zone(metadata, rules) or _has_owner(metadata, rules)
    if not reserved and name not in (rules.freepool, rules.preemptible_pool):
        return None
    guests = frozenset(key for key, value in metadata.items() if value)
    return Pool(name=name, reserved=reserved, owner=metadata.get(rules.owner_key), guests=guests)


def names_in(hint: object) -> frozenset[str]:
    """Return the names that a hint holds, which may be one string, a list of them, or nothing."""
    values = hint if isinstance(hint, (list, tuple, set, frozenset)) else (hint,)
    return frozenset(str(value) for value in values if value)
