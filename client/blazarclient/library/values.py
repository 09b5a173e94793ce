# SPDX-License-Identifier: Apache-2.0
"""What the service tells: leases, hosts, free time. Dates are aware and in UTC; amounts have their unit in the name.

Values are hashed without their mappings, and compared with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]

TAKES_THE_REST = "rest"
"""Metadata of a field that takes the keys for which there is no other field."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why something is as it is: a stable code, and a sentence for people."""

    code: str
    message: str
    detail: str | None = None


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What is promised: ``id`` is a label where names are not for the reader."""

    id: str
    type: str
    name: str | None = None
    label: str | None = None


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A resource promised to a reservation; ``used``: amounts by resource class, None for the whole resource."""

    resource: Resource
    count: int
    used: Mapping[str, int] | None = field(default=None, hash=False)
    status: str


@dataclass(frozen=True, kw_only=True)
class Use:
    """How a server is booted into a reservation."""

    scheduler_hints: Json = field(default_factory=dict, hash=False)
    flavor_id: str | None = None
    server_group_id: str | None = None
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Made:
    """A server, volume or network that a reservation has made; ``deleted_at``: when it was seen that it is gone."""

    id: str
    deleted_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """One reservation of a lease; ``parameters``: the keys of its resource type, as they are sent.

    ``region``: None where the service has only one. ``children``: what it is made of, as a stack is.
    ``made``: what it has made in the project.
    """

    resource_type: str
    id: str | None = None
    status: str = ""
    missing_resources: bool = False
    resources_changed: bool = False
    region: str | None = None
    allocations: tuple[Allocation, ...] = ()
    use: Use = Use()
    children: tuple[Reservation, ...] = ()
    made: tuple[Made, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    parameters: Json = field(default_factory=dict, hash=False, metadata={TAKES_THE_REST: True})


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happens to a lease at an instant."""

    event_type: str
    time: datetime
    status: str
    id: str | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    next_attempt_at: datetime | None = None
    reason: Reason | None = None


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What is wrong with a lease."""

    type: str
    since: datetime
    reservation_id: str | None = None
    count: int | None = None
    reason: Reason | None = None


@dataclass(frozen=True, kw_only=True)
class FailedTry:
    """A try of a lease for which there were resources, and why it failed."""

    at: datetime
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Wait:
    """How a lease waits for its turn, or waited in vain; ``position`` counts from 1, None before the first plan.

    ``earliest``: the start that it asks for; ``latest``: the latest that will do; ``at_least``: how long it has to be,
    as ``PT3600S``, if it cannot be as long as it asks for. ``advance``: it is booked, and its start may become earlier.
    ``max_price``: the most that it may cost. ``tries``: how many may fail of a lease of the kind ``retries``;
    ``failed_tries``: those that did.
    """

    queued_at: datetime
    until: datetime
    position: int | None = None
    estimated_start: datetime | None = None
    reason: str | None = None
    latest: datetime | None = None
    at_least: str | None = None
    advance: bool = False
    max_price: str | None = None
    tries: int | None = None
    failed_tries: tuple[FailedTry, ...] = ()
    earliest: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ExtendIfFree:
    """Up to when a lease is prolonged if nobody else wants its resources; ``reason``: why it was not so far."""

    until: datetime
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class OfferedReservation:
    """A reservation of a lease that is offered; ``count``: how many resources it has, or units of them."""

    resource_type: str
    id: str | None = None
    status: str = ""
    region: str | None = None
    count: int = 0
    parameters: Json = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class OfferedLease:
    """What is told of a lease to the project that it is offered to."""

    id: str
    name: str = ""
    kind: str | None = None
    status: str = ""
    revision: int = 0
    start_date: datetime | None = None
    end_date: datetime | None = None
    before_end_date: datetime | None = None
    extend_if_free: ExtendIfFree | None = None
    reservations: tuple[OfferedReservation, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """An offer of a lease to another project, or to another user of its project.

    ``user_id``: to this user only, None for any member of the project. ``lease``, ``from_project_id`` and
    ``from_user_id`` are not told where it is the ``transfer`` of a lease. ``etag``: for ``If-Match``.
    """

    project_id: str = ""
    user_id: str | None = None
    message: str | None = None
    offered_at: datetime | None = None
    expires_at: datetime | None = None
    from_project_id: str | None = None
    from_user_id: str | None = None
    lease: OfferedLease | None = None
    etag: str | None = None

    @property
    def id(self) -> str | None:
        """The id of the lease, by which the offer is asked for; None where the lease is not told."""
        return self.lease.id if self.lease else None


@dataclass(frozen=True, kw_only=True)
class Reminder:
    """What the user of a lease wants to be told at a time.

    ``at``: how long before its end or start, with ``-``, or after its start, or a date; ``time``: when that is, as the
    dates of the lease are. ``sent_at``: when it was told last.
    """

    at: str
    text: str
    time: datetime | None = None
    sent_at: datetime | None = None
    more: Json = field(default_factory=dict, hash=False, metadata={TAKES_THE_REST: True})

    @property
    def anchor(self) -> str | None:
        """The date of the lease from which it counts, ``start`` or ``end``; None: it has a date of its own."""
        return self.more.get("from")


@dataclass(frozen=True, kw_only=True)
class PricePart:
    """A part of a price: ``count`` of a measure for ``hours`` each. Numbers are decimals.

    Of energy it has ``kwh`` and ``per_kwh`` instead, by an estimate.
    """

    reservation: int = 0
    sku: str = ""
    measure: str = ""
    count: int = 0
    hours: str = ""
    per_hour: str = ""
    kwh: str | None = None
    per_kwh: str | None = None
    factor: str = ""
    amount: str = ""


@dataclass(frozen=True, kw_only=True)
class CancellationCost:
    """What it costs to cancel a lease until a date."""

    until: datetime
    amount: str


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a lease costs if nothing is given back, lost or late from now on. Amounts are decimals of the currency.

    ``charged`` is what its project has been charged so far, None of what is not booked: only that has a fee, parts and
    the version of a list. ``difference`` is how much more a change would make it cost, in the answer to a dry run.
    ``estimated`` is what of the amount is for energy, by an estimate, and not charged yet; None if nothing is. Of a
    quote ``quoted_at`` says when it was made: a lease that is booked with it costs no more until ``held_until``.
    """

    amount: str
    currency: str
    price_list: int = 0
    fee: str = ""
    parts: tuple[PricePart, ...] = ()
    if_cancelled: tuple[CancellationCost, ...] = ()
    charged: str | None = None
    difference: str | None = None
    estimated: str | None = None
    quoted_at: datetime | None = None
    held_until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class WakingHosts:
    """What a start waits for: so many of its hosts, and of its pools of volumes, sleep. The last of them is awake at
    about ``ready_at``.
    """

    hosts: int
    ready_at: datetime
    pools: int = 0
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A lease in full. Of lists with ``fields`` only these are told; the rest have their defaults.

    ``etag``: for ``If-Match``. ``id`` is None in the answer to a dry run. ``release_at``: when it ends
    because nobody uses it; ``held``: an operator wants it to stay, used or not.
    ``transfer``: to whom it is offered, or was until the offer expired. ``price`` is None if nothing has one.
    """

    id: str | None = None
    name: str = ""
    project_id: str = ""
    user_id: str = ""
    status: str = ""
    degraded: bool = False
    revision: int = 0
    start_date: datetime | None = None
    end_date: datetime | None = None
    before_end_date: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    events: tuple[Event, ...] = ()
    etag: str | None = None
    kind: str | None = None
    end_reason: str | None = None
    usage: str | None = None
    used_at: datetime | None = None
    release_at: datetime | None = None
    held: bool | None = None
    wait: Wait | None = None
    extend_if_free: ExtendIfFree | None = None
    transfer: Transfer | None = None
    reminders: tuple[Reminder, ...] = ()
    keep_hosts: bool = False
    confirm_by: datetime | None = None
    price: Price | None = None
    waking: WakingHosts | None = None
    moves_others: int | None = None

    @property
    def reason(self) -> Reason | None:
        """Why it failed, or is late: the newest reason of its conditions and events."""
        told = [(c.since, c.reason) for c in self.conditions if c.reason]
        told += [(e.finished_at or e.time, e.reason) for e in self.events if e.reason]
        return max(told, key=lambda item: item[0])[1] if told else None


@dataclass(frozen=True, kw_only=True)
class Disabled:
    """Why a host takes no new leases; at ``until`` it is enabled by itself."""

    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a host is not used."""

    reason: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Host:
    """A registered host. ``capacity``: amounts by resource class (``MEMORY_MB`` in MiB, ``DISK_GB`` in GiB).

    Members see a label as the ``id``, and neither names nor why it is out of use.
    """

    id: str
    label: str = ""
    hypervisor_hostname: str = ""
    service_name: str = ""
    hypervisor_type: str | None = None
    hypervisor_version: int | None = None
    availability_zone: str | None = None
    cpu_info: Any = field(default=None, hash=False)
    capacity: Mapping[str, int] = field(default_factory=dict, hash=False)
    traits: tuple[str, ...] = ()
    properties: Json = field(default_factory=dict, hash=False)
    reservable: bool = True
    disabled: Disabled | None = None
    failure: Failure | None = None
    authorized_projects: tuple[str, ...] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    etag: str | None = None


@dataclass(frozen=True, kw_only=True)
class RegisteredResource:
    """A registered resource of any kind.

    Members see a label as the ``id`` where names are for operators (``name`` is None), and public attributes only.
    """

    id: str
    kind: str = ""
    label: str | None = None
    name: str | None = None
    attributes: Json = field(default_factory=dict, hash=False)
    capacity: Mapping[str, int] = field(default_factory=dict, hash=False)
    traits: tuple[str, ...] = ()
    properties: Json = field(default_factory=dict, hash=False)
    reservable: bool = True
    disabled: Disabled | None = None
    failure: Failure | None = None
    authorized_projects: tuple[str, ...] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    etag: str | None = None


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of resource; ``registration`` and the others are JSON schemas, by attribute and by resource type.

    ``allowed``: the policy rules that let the caller do something with its resources.
    """

    name: str
    noun: str = ""
    nouns: str = ""
    resource_types: tuple[str, ...] = ()
    registration: Json = field(default_factory=dict, hash=False)
    attributes: Json = field(default_factory=dict, hash=False)
    parameters: Json = field(default_factory=dict, hash=False)
    has_candidates: bool = False
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What the cloud has to register; ``resource_id`` is None if it is not registered.

    ``registration`` are the fields that register it, as far as the cloud tells them.
    """

    id: str
    name: str
    state: str | None = None
    servers: int | None = None
    resource_id: str | None = None
    region: str | None = None
    registration: Json = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class Hypervisor:
    """A host of the cloud; ``host_id`` is that of the registered host, None if it is not registered."""

    id: str
    hypervisor_hostname: str
    state: str | None = None
    servers: int | None = None
    host_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many units of a reservation fit, and in which region, if the service has several."""

    count: int
    region: str | None = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A limit that an opening would exceed."""

    code: str
    message: str
    data: Json = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A window in which all that is asked for is free.

    It can start at any time from ``start_date`` to ``last_start_date``; from ``start_date`` it can last until
    ``open_until``, None for beyond what was searched.
    """

    start_date: datetime
    end_date: datetime
    last_start_date: datetime
    open_until: datetime | None = None
    reservations: tuple[Count, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    price: Price | None = None
    waking: WakingHosts | None = None
    moves_others: int = 0


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one part of a requirement leaves of the resources; ``until``: when enough of them are free again."""

    code: str
    remaining: int
    removed: int | None = None
    pointer: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Window:
    """A period of time, its end excluded."""

    start_date: datetime
    end_date: datetime


@dataclass(frozen=True, kw_only=True)
class WhyNot:
    """Why a reservation does not fit into the first window asked for."""

    message: str
    pointer: str | None = None
    window: Window | None = None
    asked: int | None = None
    free: int | None = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """Something smaller that would fit: what to put over the question, and what a new lease would cost then."""

    change: str
    start_date: datetime
    end_date: datetime
    reservations: tuple[Json, ...] | None = field(default=None, hash=False)
    drop: str | None = None
    price: str | None = None
    currency: str | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Why there is no room even if other leases get other hosts.

    ``full_at`` an instant, ``no_arrangement`` has room, ``too_many_moves`` of other leases, or ``not_proven``.
    """

    code: str
    at: datetime | None = None
    hosts: int | None = None
    promised: int | None = None
    asked: int | None = None
    moves_others: int | None = None


@dataclass(frozen=True, kw_only=True)
class Extension:
    """How far a lease can be extended, and what is in the way then."""

    open_until: datetime | None = None
    limited_by: str | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Availability:
    """The answer to a question about free time; if not ``complete``, go on asking from ``searched_until``."""

    as_of: datetime
    earliest: datetime
    latest: datetime
    duration_seconds: int | None = None
    searched_until: datetime | None = None
    complete: bool = True
    openings: tuple[Opening, ...] = ()
    not_checked: tuple[str, ...] = ()
    reasons: tuple[WhyNot, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    extension: Extension | None = None
    proof: Proof | None = None


@dataclass(frozen=True, kw_only=True)
class Block:
    """A period in which a resource is not free.

    ``kind``: ``mine``, ``other``, ``lease``, ``cleaning`` or ``out_of_use``.
    """

    kind: str
    start: datetime
    end: datetime | None = None
    used: Mapping[str, int] | None = field(default=None, hash=False)
    lease_id: str | None = None
    reservation_id: str | None = None
    name: str | None = None
    status: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    code: str | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class CalendarRow:
    """A resource and the periods in which it is not free, sorted by their start."""

    id: str
    type: str
    name: str | None = None
    label: str | None = None
    reservable: bool = True
    capacity: Mapping[str, int] = field(default_factory=dict, hash=False)
    properties: Json = field(default_factory=dict, hash=False)
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value of a property, and how many resources have it."""

    value: Any
    count: int


@dataclass(frozen=True, kw_only=True)
class Property:
    """A property of resources, by which they can be chosen."""

    name: str
    type: str
    private: bool = False
    values: tuple[Value, ...] = ()
    truncated: bool = False
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, kw_only=True)
class Feed:
    """A link for calendar programs; ``url`` is told only when it is made."""

    id: str
    kind: str
    name: str | None = None
    url: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """To whom events are sent; ``secret``, with which messages are signed, is told only when it is made.

    ``project_id`` is None of one that is told everything. ``behind``: how many entries may still have to be told.
    """

    id: str
    url: str | None = None
    events: tuple[str, ...] = ()
    state: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    channel: str | None = None
    lease_id: str | None = None
    batch: bool = False
    reason: str | None = None
    position: int | None = None
    behind: int | None = None
    last_delivered_at: datetime | None = None
    failing_since: datetime | None = None
    dead: int | None = None
    dropped: int | None = None
    digest: str | None = None
    time_zone: str | None = None
    secret: str | None = None
    revision: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class DeliveryFailure:
    """A message that a receiver has refused for good."""

    id: str
    position: int
    type: str
    subject: str
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Span:
    """A time from a start to an end."""

    start_date: datetime
    end_date: datetime


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """One occurrence of a series: its lease, or why there is none and when it would have fitted."""

    recurrence_id: str
    start_date: datetime
    end_date: datetime
    state: str
    lease_id: str | None = None
    lease_status: str | None = None
    changed: bool = False
    reason: str | None = None
    opening: Span | None = None
    price: Price | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """Leases that recur. A list tells no ``occurrences``; of one that was only tried, ``id`` is None.

    ``start``, ``exdates`` and ``rdates`` are local times of ``time_zone``.
    """

    id: str | None
    name: str = ""
    project_id: str = ""
    user_id: str = ""
    status: str = ""
    reason: str | None = None
    rule: str = ""
    start: str = ""
    time_zone: str = ""
    duration: str | None = None
    until_local: str | None = None
    exdates: tuple[str, ...] = ()
    rdates: tuple[str, ...] = ()
    before_end_date: str | None = None
    fit: str = ""
    max_price: str | None = None
    reminders: tuple[Reminder, ...] = ()
    keep_hosts: bool = False
    reservations: tuple[Mapping[str, Any], ...] = ()
    booked_until: datetime | None = None
    previous_id: str | None = None
    revision: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    occurrences: tuple[Occurrence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HostMove:
    """A lease's move from a host in maintenance to another one, by their ids."""

    reservation_id: str
    from_host: str
    to_host: str
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class AffectedLease:
    """What a maintenance window does to a lease. ``openings`` are starts near its own at which it fits.

    ``note`` is why a lease in use keeps hosts, or how far the moves of its servers are.
    """

    lease_id: str
    name: str = ""
    project_id: str = ""
    user_id: str = ""
    start_date: datetime
    end_date: datetime
    status: str = ""
    outcome: str
    makes_room: bool = False
    hosts: tuple[str, ...] = ()
    moves: tuple[HostMove, ...] = ()
    openings: tuple[datetime, ...] = ()
    done: bool = False
    told_at: datetime | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class MaintenanceImpact:
    """What a maintenance window would do; its ``id`` is another one as soon as that is something else."""

    id: str
    start_date: datetime
    end_date: datetime
    hosts: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    leases: tuple[AffectedLease, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MaintenanceHost:
    """A host of a maintenance window. ``servers`` were on it when the window began; None before."""

    id: str
    name: str = ""
    servers: int | None = None


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """A period in which hosts are booked out. A list tells no ``leases``."""

    id: str
    name: str = ""
    reason: str | None = None
    start_date: datetime
    end_date: datetime
    status: str = ""
    hosts: tuple[MaintenanceHost, ...] = ()
    requirement: Any = None
    pending: str = ""
    active: str = ""
    disable_service: bool = False
    trouble: str | None = None
    revision: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    leases: tuple[AffectedLease, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ManagerWork:
    """An event that a manager has claimed, and since when."""

    event_id: str
    lease_id: str = ""
    event_type: str = ""
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ManagerThread:
    """A background thread of a manager. ``failing_since`` is when its rounds began to fail; None: they do not."""

    name: str
    last_round_at: datetime | None = None
    failing_since: datetime | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Manager:
    """A manager of the service. It is ``up`` if it was seen within the time that a claim lives.

    ``options_agree``: its options are those of all managers that are up. ``work`` has its first twenty claims.
    """

    id: str
    host: str = ""
    version: str = ""
    rpc_version: str = ""
    state: str = ""
    up: bool = False
    started_at: datetime | None = None
    seen_at: datetime | None = None
    clock_offset_ms: int = 0
    work: tuple[ManagerWork, ...] = ()
    regions: tuple[str, ...] = ()
    options_agree: bool = True
    threads: tuple[ManagerThread, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Info:
    """What a client cannot know otherwise: the service's clock, what the caller may do, limits.

    With a ``notice``, a sentence for people, no manager answers at present, and what only managers know is missing.
    """

    now: datetime
    user_id: str = ""
    project_id: str = ""
    allowed: tuple[str, ...] = ()
    resource_types: tuple[str, ...] = ()
    before_end: Json = field(default_factory=dict, hash=False)
    cleaning_seconds: int = 0
    confirm_within_seconds: int = 0
    limits: tuple[Json, ...] = field(default=(), hash=False)
    bounds: Json = field(default_factory=dict, hash=False)
    idempotency_seconds: int = 0
    channels: tuple[str, ...] = ()
    notice: str = ""
