# SPDX-License-Identifier: Apache-2.0
"""The catalogue of metrics: each family once, by the name that those who feed it use.

No label names a project, a user, a lease, a host or a path: who may read metrics may not read whose leases there are.
``docs/metrics.md`` is made of this; rules and dashboards rely on the names.
"""

from __future__ import annotations

import re

import prometheus_client

from blazar.model.energy.book import EnergyTeller
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.subscriptions.details import Channel
from blazar.observe.families import REGISTRY, Count, Family, Label, Level, Reading, Sampled, Spread

_WORD = re.compile(r"[a-z][a-z0-9_.:-]{0,63}")
_ROUTE = re.compile(r"(/[A-Za-z0-9_.{}-]*)+|unmatched")

_CODE = Label("code", most=120, source="codes of errors, as in the document of the API", form=_WORD)
_EVENT = Label("event", tuple(sorted(EventType)))
_FILTER = Label("filter", most=20, source="enabled filters", form=re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}"))
_KIND = Label("kind", most=40, source="kinds of resources", form=_WORD)
_POWER_STATE = Label("state", tuple(sorted(PowerState)))
_REGION = Label("region", most=60, source="configured regions; empty if there are none")
_RESOURCE_CLASS = Label(
    "resource_class", most=60, source="resource classes of Placement", form=re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
)
_RESOURCE_TYPE = Label("resource_type", most=40, source="enabled resource types", form=_WORD)
_ROUTE_LABEL = Label("route", most=400, source="URLs of the API with names in braces, or `unmatched`", form=_ROUTE)
_SERVICE = Label(
    "service",
    ("nova", "placement", "neutron", "cinder", "glance", "heat", "hooks", "simulated"),
)
_STATE = Label("state", ("free", "allocated", "disabled", "failed", "maintenance"))
_THREAD = Label("thread", most=100, source="background threads, those of a region with its name")
_POOL = Label("pool", most=100, source="`requests`, `start-` and `end-` with the region, `outbox`")
_CHANNEL = Label("channel", ("enforcement", *sorted(Channel)))
_METHOD = Label("method", ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_STATUS = Label("code", most=60, source="statuses of HTTP", form=re.compile(r"[1-5][0-9][0-9]"))


def _outcome(*values: str) -> Label:
    return Label("outcome", values)


# The API.

HTTP_REQUESTS = Count("http_requests_total", "Requests that were answered.", _METHOD, _ROUTE_LABEL, _STATUS)
HTTP_REQUEST_DURATION = Spread(
    "http_request_duration_seconds", "From a request to the end of its answer.", _ROUTE_LABEL
)
HTTP_REQUESTS_IN_PROGRESS = Level("http_requests_in_progress", "Requests being served.", merge="livesum")
REFUSALS = Count("refusals_total", "Requests that were refused, by the code of the error.", _CODE)
TOKEN_VALIDATIONS = Count(
    "token_validations_total",
    "Tokens of requests: unavailable is one that Keystone could not be asked about.",
    _outcome("valid", "invalid", "unavailable"),
)
RPC_CLIENT_CALLS = Count(
    "rpc_client_calls_total",
    "Messages of the API to managers; undelivered is one that no manager took, as without the bus.",
    _outcome("ok", "refused", "error", "timeout", "undelivered"),
)
RPC_CLIENT_CALL_DURATION = Spread("rpc_client_call_duration_seconds", "From such a message to its answer, or none.")

# A manager: requests.

RPC_REQUESTS = Count(
    "rpc_requests_total",
    "Calls that a manager has answered.",
    Label("call", most=200, source="calls of the manager's interface", form=_WORD),
    _outcome("ok", "refused", "error"),
)
RPC_REQUEST_DURATION = Spread("rpc_request_duration_seconds", "From a call to its answer, in the manager.")
WORKER_THREADS = Reading(
    "worker_threads", "Threads that work for requests and events.", _POOL, Label("state", ("busy", "idle"))
)
BOOKINGS = Count(
    "bookings_total",
    "Bookings and changes of bookings, once for each kind of resource in them; no_room counts for the kind that lacks.",
    _KIND,
    _outcome("booked", "no_room", "denied", "contended"),
)
BOOKING_DURATION = Spread(
    "booking_duration_seconds", "From the first plan of a booking to its end, all tries together."
)
BOOKING_RETRIES = Count(
    "booking_retries_total",
    "Bookings that were planned again, as others had booked meanwhile.",
    Label("cause", ("calendar", "lease")),
)
REPACKINGS = Count(
    "repackings_total",
    "Searches for hosts that others leave, for what would be refused: found, proven that there is no way, "
    "found one that moves too many leases, or none of it.",
    _outcome("found", "proven", "too_many", "not_proven"),
)
REPACK_DURATION = Spread(
    "repack_duration_seconds", "How long a search for hosts that others leave took, with what it read."
)
REPACKED_LEASES = Count("repacked_leases_total", "Leases that got other hosts so that another one fitted.")

# A manager: database.

DB_TRANSACTIONS = Count(
    "db_transactions_total",
    "Transactions; retried is a try that met another one, and was made again.",
    Label("kind", ("read", "write")),
    _outcome("ok", "retried", "failed"),
)
DB_TRANSACTION_DURATION = Spread(
    "db_transaction_duration_seconds",
    "From the wait for a connection to the end of a transaction.",
    Label("kind", ("read", "write")),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 20),
)
DB_CONNECTIONS = Reading(
    "db_connections", "Connections to the database: at work, and kept open.", Label("state", ("busy", "idle"))
)

# A manager: events.

DUE_EVENTS = Sampled("due_events", "Events whose time has come, and that no manager works on.", _EVENT)
OLDEST_DUE_EVENT_AGE = Sampled("oldest_due_event_age_seconds", "How long the oldest of these is due.", _EVENT)
_LATE = (0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 900, 3600, 14400)
EVENT_LATENESS = Spread(
    "event_lateness_seconds", "From the time of an event to the begin of its work.", _EVENT, buckets=_LATE
)
EVENT_COMPLETION = Spread(
    "event_completion_seconds", "From the time of an event to the end of its work.", _EVENT, buckets=_LATE
)
EVENT_ATTEMPTS = Count(
    "event_attempts_total",
    "Tries of events: retried is one that goes on later, fenced one that lost its claim, gave_up one of an event that "
    "failed for good.",
    _EVENT,
    _outcome("done", "retried", "failed", "fenced", "gave_up"),
)
OVERDUE_ATTEMPTS = Count(
    "overdue_attempts_total",
    "Tries that did not do an event long after its time: a start 10 minutes after it, the other steps of a lease 30.",
    Label("event", ("start_lease", "before_end_lease", "end_lease")),
)
CLAIMS_HELD = Reading("claims_held", "Claims that the manager holds and renews.")
CLAIMS = Count(
    "claims_total",
    "Claims on work: lost_race is one that another manager had first, taken_over one of a manager that is gone, "
    "expired one that could not be renewed in time.",
    _outcome("taken", "lost_race", "taken_over", "expired"),
)
CLOCK_OFFSET = Level("clock_offset_seconds", "Clock of the machine minus that of the database.")

# A manager: clouds.

CLOUD_REQUESTS = Count(
    "cloud_requests_total",
    "Calls to services of clouds; not_sent is one that a silent service, a full pool or the fence kept back.",
    _SERVICE,
    _REGION,
    _outcome("ok", "refused", "unavailable", "timeout", "not_sent"),
)
CLOUD_REQUEST_DURATION = Spread("cloud_request_duration_seconds", "From such a call to its answer, or none.", _SERVICE)
CLOUD_BREAKER_OPEN = Level(
    "cloud_breaker_open", "1 while calls to a service that does not answer are kept back.", _SERVICE, _REGION
)

# Leases and resources.

LEASES = Sampled(
    "leases",
    "Leases that are not deleted.",
    Label("lease_kind", tuple(sorted(LeaseKind))),
    Label("status", tuple(sorted(LeaseStatus))),
)
RESOURCES = Sampled(
    "resources", "Registered resources, each in one state: the worst that it is in.", _KIND, _REGION, _STATE
)
RESOURCES_BY_PROPERTY = Sampled(
    "resources_by_property",
    "The same by the values of `[monitoring] properties`.",
    _KIND,
    Label("property", most=3, source="`[monitoring] properties`"),
    Label("value", most=60, source="values of these properties, 20 of each"),
    _STATE,
)
CAPACITY = Sampled("capacity", "What registered resources have.", _KIND, _REGION, _RESOURCE_CLASS)
CAPACITY_ALLOCATED = Sampled("capacity_allocated", "What of it leases have now.", _KIND, _REGION, _RESOURCE_CLASS)

# The waiting list.

WAITING_LEASES = Sampled("waiting_leases", "Leases that wait, in each type that they ask for.", _RESOURCE_TYPE)
WAITING_OLDEST_AGE = Sampled("waiting_oldest_age_seconds", "How long the first of these waits.", _RESOURCE_TYPE)
WAIT = Spread(
    "wait_seconds",
    "How long leases have waited.",
    _outcome("granted", "timed_out", "withdrawn"),
    buckets=(60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800, 2592000),
)
PROMISES = Count(
    "promises_total",
    "Promised starts: kept is one of a lease that has started, broken one of a lease whose start failed for good.",
    Label("change", ("made", "advanced", "kept", "broken")),
)
QUEUE_PLAN_DURATION = Spread("queue_plan_duration_seconds", "How long a plan of the waiting list takes.")

# Whether anybody looks.

SWEEP_FINDINGS = Level(
    "sweep_findings",
    "Of the last sweep: leases that have ended and left something in the cloud, reservations that are not on record, "
    "and types that could not be listed.",
    _REGION,
    Label("what", ("leftover", "unknown", "unlisted")),
)
SWEEP_LAST_SUCCESS = Level("sweep_last_success_timestamp_seconds", "When leftovers were last searched for.", _REGION)
DRIFT_FINDINGS = Sampled(
    "drift_findings",
    "Reservations in use that had something else in the cloud than the books say when they were last looked at.",
    _REGION,
)
DRIFT_LAST_SUCCESS = Level(
    "drift_last_success_timestamp_seconds", "When all reservations in use were last looked at.", _REGION
)
DRIFT_MENDS = Count(
    "drift_mends_total",
    "Reservations whose cloud was to be brought to what the books say.",
    _outcome("mended", "failed"),
)
POLL_LAST_SUCCESS = Level("poll_last_success_timestamp_seconds", "When resources were last polled.", _KIND, _REGION)
HEALINGS = Count(
    "healings_total",
    "Leases with failed resources: healed is one that has others now, missing one that goes on without.",
    _outcome("healed", "missing", "failed"),
)

# Power.

POWER_RESOURCES = Sampled(
    "power_resources", "Registered hosts and pools of volumes by power state; off is asleep.", _KIND, _POWER_STATE
)
POWER_MOVES = Count(
    "power_moves_total",
    "Hosts that came into a power state, and why; timed_out is one that did not wake, missed one that was not awake "
    "when its lease began.",
    _POWER_STATE,
    Label("reason", tuple(sorted(PowerReason))),
)
ENERGY_READS = Count(
    "energy_reads_total",
    "How often a source was read of what hosts draw, or of the carbon of that: adapters, Prometheus, the curve.",
    Label("source", tuple(EnergyTeller)),
    Label("outcome", ("done", "failed")),
)
WAKE_DURATION = Spread(
    "wake_duration_seconds",
    "How long hosts took to wake that were up in time.",
    buckets=(30, 60, 120, 180, 240, 300, 420, 600, 900, 1800, 3600),
)

# Enforcement.

ENFORCEMENT_REQUESTS = Count(
    "enforcement_requests_total",
    "Questions and messages to filters.",
    _FILTER,
    Label("call", ("check", "commit", "end")),
    _outcome("ok", "denied", "unavailable"),
)
ENFORCEMENT_REQUEST_DURATION = Spread("enforcement_request_duration_seconds", "How long such a call takes.", _FILTER)
OUTBOX_MESSAGES = Sampled(
    "outbox_messages",
    "Messages: due now, waiting for their time or for another one of their lease, and given up. For subscriptions, by "
    "webhook or mail: entries of the journal that may have to be sent now, those for receivers that failed and are "
    "called again later, and messages that were given up in the last 30 days.",
    _CHANNEL,
    Label("state", ("due", "waiting", "dead")),
)
OUTBOX_OLDEST_AGE = Sampled("outbox_oldest_age_seconds", "How long the oldest waits that is not delivered.", _CHANNEL)
JOURNAL_UNNUMBERED = Sampled(
    "journal_unnumbered", "Entries of the journal without a position, of which nobody has been notified yet."
)
DELIVERIES = Count("deliveries_total", "Tries to deliver messages.", _CHANNEL, _outcome("delivered", "retried", "dead"))

# Every process.

THREAD_ROUNDS = Count("thread_rounds_total", "Rounds of background threads.", _THREAD, _outcome("ok", "failed"))
THREAD_LAST_ROUND = Level(
    "thread_last_round_timestamp_seconds", "When a background thread last ended a round, or failed.", _THREAD
)
LOG_MESSAGES = Count("log_messages_total", "Lines of the log.", Label("level", ("WARNING", "ERROR", "CRITICAL")))
LOG_FAILURES = Count("log_failures_total", "Lines that could not be written to the log, as its disk is full.")
SAMPLE_TIMESTAMP = Sampled("sample_timestamp_seconds", "When what the database is asked for was last read.")
BUILD_INFO = Level(
    "build_info",
    "1, with what runs.",
    Label("version", most=1, source="the version"),
    Label("rpc_version", most=1, source="the version of the messages"),
)

CATALOGUE: tuple[Family, ...] = tuple(family for family in globals().values() if isinstance(family, Family))
"""All families, in the order of this page."""

for _collect in (
    prometheus_client.ProcessCollector,
    prometheus_client.PlatformCollector,
    prometheus_client.GCCollector,
):
    _collect(registry=REGISTRY)
