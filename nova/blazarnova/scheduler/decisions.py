# SPDX-License-Identifier: Apache-2.0
"""The rules which servers may run on which hosts, as pure functions.

A managed aggregate (``Pool``) is one that Blazar controls: the freepool, the aggregate of preemptible servers, and one
aggregate per host reservation, recognized by its availability zone or its owner. Aggregates of instance reservations
are not among them: Placement selects the hosts of their servers. Nothing here imports nova; the filter reads nova's
objects and calls ``decide``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

LEGACY_ZONE_PREFIX = "blazar:"
"""An older prefix of the availability zones of reservations, which clouds still have."""

ZONE_KEY = "availability_zone"

SLOTS_KEY = "reservation"
"""Metadata key of the aggregate of an instance reservation: its hosts have reserved capacity."""

CLOSED_KEY = "blazar:closed:"
"""Followed by a host's name, metadata key of the freepool: the host is being assigned to a reservation."""


LENT_KEY = "blazar:lent:"
"""Followed by a host's name, metadata key of the aggregate of its reservation, whose owner lends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The operator's settings; the defaults are those of the options in nova.conf."""

    freepool: str = "freepool"
    preemptible_pool: str = "freepool"
    allow_preemptibles: bool = False
    owner_key: str = "blazar:owner"
    zone_prefix: str = "blazar_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a server: its project, the reservations that its hint names, the properties of its flavor.

    ``destination`` is the host that an operator named for it, if any; Nova lets nobody else name a host.
    """

    project_id: str | None = None
    reservations: frozenset[str] = frozenset()
    reservation_flavor: bool = False
    preemptible: bool = False
    destination: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A managed aggregate of a host; ``reserved`` if it has the zone or the owner of a host reservation."""

    name: str
    reserved: bool = False
    owner: str | None = None
    guests: frozenset[str] = frozenset()

    def admits(self, project_id: str | None) -> bool:
        """Return whether the project owns the reservation or was admitted; a missing id is never admitted."""
        return bool(project_id) and (project_id in self.guests or project_id == self.owner)


@dataclass(frozen=True, slots=True)
class Host:
    """A candidate: the name of its compute service, and its managed aggregates, those of reservations first."""

    name: str
    pools: tuple[Pool, ...] = ()
    promised: bool = False
    """Whether an instance reservation has reserved capacity on it."""
    closed: bool = False
    """Whether it is being assigned to a reservation."""
    lent: bool = False
    """Whether the owner of the reservation that has it lets preemptible servers run there."""
    doubts: tuple[str, ...] = ()
    """Sentences about aggregates which indicate that the options differ from those of Blazar."""


class Decision(Enum):
    """Whether the host passes, and the reason, as the end of a sentence that starts with the host."""

    OWN_RESERVATION = (True, "is in an aggregate that the hint names and the project may use")
    FOREIGN_RESERVATION = (False, "is in an aggregate that the project may not use")
    NOT_IN_RESERVATION = (False, "is in no aggregate that the hint names")
    NAMED_BY_OPERATOR = (True, "is not managed by Blazar, and an operator named it as the destination")
    RESERVATION_FLAVOR = (True, "is left to Placement, since the flavor is that of a reservation")
    PREEMPTIBLE_POOL = (True, "is in the aggregate of preemptible servers and no other one of Blazar")
    LENT_HOST = (True, "is lent to preemptible servers by the owner of its reservation")
    NOT_PREEMPTIBLE_POOL = (False, "is not in the aggregate of preemptible servers, or also in another one of Blazar")
    PROMISED_ROOM = (False, "has reserved capacity of an instance reservation")
    CHANGES_HANDS = (False, "is being assigned to a reservation")
    RESERVABLE_HOST = (False, "is restricted to reservations")
    OPEN_HOST = (True, "is not managed by Blazar")

    def __init__(self, passes: bool, reason: str) -> None:
        """Unpack the value of a member."""
        self.passes = passes
        self.reason = reason


def decide(request: Request, host: Host, rules: Rules) -> Decision:
    """Decide whether the host may run the server.

    A hint takes precedence over the flavor: a server that names a reservation gets its hosts or none. A server without
    a hint is refused on managed hosts, unless it is preemptible and these are allowed, or has the flavor of a
    reservation.
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
        # Lets a server leave its reservation before the end: its hint never changes.
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
        case (Pool(reserved=True),) if host.lent:
            return Decision.LENT_HOST
        case _:
            return Decision.NOT_PREEMPTIBLE_POOL


def host_in(name: str, aggregates: Iterable[tuple[str, Mapping[str, str]]], rules: Rules) -> Host:
    """Return a host with its managed aggregates, given the names and the metadata of all of them."""
    known = list(aggregates)
    pools = [pool for pool in (_pool(each, metadata, rules) for each, metadata in known) if pool]
    return Host(
        name,
        # While a host is being assigned it is also in the freepool; a hint that names both means the reservation.
        tuple(sorted(pools, key=lambda pool: not pool.reserved)),
        promised=any(SLOTS_KEY in metadata for _, metadata in known),
        closed=any(CLOSED_KEY + name in metadata for _, metadata in known),
        lent=any(LENT_KEY + name in metadata for _, metadata in known),
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
        return f"aggregate {name} has the zone of a reservation, but its metadata has no {rules.owner_key!r}"
    found = metadata.get(ZONE_KEY) or ""
    text = f"its zone {found!r} does not start with {rules.zone_prefix!r}"
    return f"aggregate {name} has the owner of a reservation, but {text}"


def _pool(name: str, metadata: Mapping[str, str], rules: Rules) -> Pool | None:
    # One of them suffices: a mistake in one option must not open reserved hosts.
    reserved = _has_zone(metadata, rules) or _has_owner(metadata, rules)
    if not reserved and name not in (rules.freepool, rules.preemptible_pool):
        return None
    guests = frozenset(key for key, value in metadata.items() if value)
    return Pool(name=name, reserved=reserved, owner=metadata.get(rules.owner_key), guests=guests)


def names_in(hint: object) -> frozenset[str]:
    """Return the names in a hint, which may be one string, a list of them, or nothing."""
    values = hint if isinstance(hint, (list, tuple, set, frozenset)) else (hint,)
    return frozenset(str(value) for value in values if value)
