# SPDX-License-Identifier: Apache-2.0
"""The settings of a manager that operators choose."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from blazar.calendar.placement import Strategy
from blazar.calendar.repack.values import MOST_LEASES, RepackMode
from blazar.model.base.service_info import ReadBounds
from blazar.model.base.values import dataclass, field
from blazar.model.leases.limits import Bounds
from blazar.model.leases.states import LeaseKind
from blazar.model.power.settings import PowerSettings
from blazar.model.reports.periods import ReportSettings
from blazar.model.resources.resource import HOST, ResourceKind
from blazar.model.series.checks import SeriesLimits
from blazar.model.use.policy import UsePolicies


def draw_seed() -> int:
    """Return a seed for a choice by chance."""
    return random.getrandbits(32)


@dataclass(frozen=True, slots=True)
class RepackSettings:
    """Whether leases that have not started get other hosts, so that others fit.

    None does that begins within ``notice``, or that was moved ``most_moves`` times; for one that is booked or changed
    at most ``most_leases`` do. Where the search gives up, a solver goes on for ``exact``, if it is installed.
    """

    mode: RepackMode = RepackMode.EQUAL
    notice: timedelta = timedelta(hours=2)
    most_moves: int = 10
    most_leases: int = MOST_LEASES
    exact: timedelta = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the manager.

    ``strategy`` is how resources are chosen. ``seed`` gives each choice by chance its seed.
    ``before_end_lead`` is the time between the before_end event and the end, if the request names none (zero: no such
    event); ``before_end_leads`` overrides it by resource type. ``before_end`` is the action before the end of hosts
    whose reservation names none. A claim on an event that its owner does not renew for
    ``claim_ttl`` may be taken over. ``request_limit`` is how long a request may spend in calls to the cloud; then it is
    answered, and the work is continued (or undone) in the background.
    ``outbox_attempts`` is the maximum of delivery attempts for an outbox message, ``outbox_claim`` how long one attempt
    may take before another manager may take over, and ``outbox_wait`` how long a change waits for the outstanding
    messages of its lease. A reversal of what may have been accepted is sent after ``outbox_settling``, when no service
    still processes the earlier message.
    Every ``polling_interval`` (zero: never) the state of resources is polled, for at most ``poll_limit``;
    ``failures_before_healing`` consecutive polls must agree before a resource counts as failed, or as recovered. Leases
    that begin within ``healing_interval`` are healed (zero: all), at once and at that interval; ``heal_active``: also
    those in use. ``patience`` is how long a request waits for other work on its lease to finish.
    ``bounds`` limits what one project may hold, ``reads`` what one request may read.
    ``search_range`` is the longest range that is searched for free time, ``search_placements`` how many placements one
    search may cost, ``search_limit`` how long it may take. ``explain_refusals``: a refused lease or change says why and
    what would fit.
    ``kinds`` are the kinds of lease that may be booked. An immediate lease that is not handed over within
    ``immediate_timeout`` is refused. ``confirm_within`` is for how long a lease may be unconfirmed (zero: each is
    firm at once), ``quote_holds`` for how long a price that was quoted holds (zero: not at all).
    ``max_waiting`` is how many leases of a project may wait for their turn; ``tries`` is how many tries of a lease of
    the kind ``retries`` may fail if its request does not say, and ``most_tries`` how many it may ask for. At
    most ``promises`` leases that wait are promised a start later than they asked for; it is moved to an earlier one
    only if that is at least ``promise_notice`` ahead. ``project_weights`` are those of projects on the waiting list by
    their ids; others weigh 1.
    ``max_series`` is how many series a project may have that have not ended, and ``series`` limits each of them.
    ``offer_lifetime`` is how long a lease is offered to another project.
    ``idempotency_retention`` is how long the keys of requests are remembered, ``past_history`` how many entries the
    histories of the past leases of a project have together (None: any number), ``keep_journal`` for how long it is
    kept what was done to other objects (None: for ever). ``provider`` is who is to be paid, as bills name it.
    ``use_policies`` say which leases are released because nobody uses them, ``reports`` by whose days reports are.
    Preemptible servers are told ``preemption_notice`` before a start deletes them (zero: not at all); hosts of leases
    that lend them are lent when they were not used for ``lend_after``.
    ``power`` says which hosts sleep while nobody needs them, ``repack`` which leases may get other hosts.
    ``event_source`` is what messages to subscribers name as their source, and ``mail_pause`` the time between two mails
    of a subscription. ``own_events`` are those of their own leases that users are told by mail from the first on.
    Every ``sweep_interval`` (zero: never) the cloud is searched for leftovers of finished leases, which are removed,
    or with ``sweep_dry_run`` only reported. Every ``drift_interval`` (zero: never) reservations in use are looked at,
    and with ``drift_mend`` brought to what the books say.
    Every ``sample_interval`` (zero: never) is read what metrics tell of leases and resources, also by the values of
    ``sample_properties``.
    """

    before_end_lead: timedelta = timedelta(minutes=60)
    before_end_leads: Mapping[str, timedelta] = field(default_factory=dict)
    before_end: str = ""
    strategy: Strategy = Strategy.PACK
    seed: Callable[[], int] = draw_seed
    booking_attempts: int = 12
    claim_ttl: timedelta = timedelta(seconds=20)
    recheck_interval: timedelta = timedelta(milliseconds=250)
    first_retry: timedelta = timedelta(seconds=1)
    longest_retry: timedelta = timedelta(seconds=60)
    snapshot_grace: timedelta = timedelta(minutes=10)
    request_limit: timedelta = timedelta(seconds=15)
    outbox_attempts: int = 20
    outbox_longest_retry: timedelta = timedelta(minutes=10)
    outbox_claim: timedelta = timedelta(seconds=60)
    outbox_wait: timedelta = timedelta(seconds=5)
    outbox_settling: timedelta = timedelta(seconds=60)
    polling_interval: timedelta = timedelta(seconds=60)
    poll_limit: timedelta = timedelta(seconds=60)
    failures_before_healing: int = 2
    healing_interval: timedelta = timedelta(minutes=60)
    heal_active: bool = False
    patience: timedelta = timedelta(seconds=5)
    bounds: Bounds = Bounds()
    reads: ReadBounds = ReadBounds()
    search_range: timedelta = timedelta(days=366)
    search_placements: int = 2000
    search_limit: timedelta = timedelta(seconds=15)
    explain_refusals: bool = True
    max_waiting: int = 20
    max_series: int = 20
    series: SeriesLimits = SeriesLimits()
    tries: int = 3
    most_tries: int = 10
    promises: int = 100
    project_weights: Mapping[str, float] = field(default_factory=dict)
    promise_notice: timedelta = timedelta(0)
    offer_lifetime: timedelta = timedelta(hours=24)
    idempotency_retention: timedelta = timedelta(hours=24)
    past_history: int | None = 50_000
    keep_journal: timedelta | None = timedelta(days=400)
    provider: str = "OpenStack"
    kinds: frozenset[LeaseKind] = frozenset(LeaseKind)
    immediate_timeout: timedelta = timedelta(seconds=45)
    confirm_within: timedelta = timedelta(minutes=15)
    quote_holds: timedelta = timedelta(minutes=10)
    use_policies: UsePolicies = UsePolicies()
    preemption_notice: timedelta = timedelta(0)
    lend_after: timedelta = timedelta(minutes=30)
    power: PowerSettings = PowerSettings()
    repack: RepackSettings = RepackSettings()
    reports: ReportSettings = ReportSettings()
    event_source: str = "/reservation"
    mail_pause: timedelta = timedelta(minutes=3)
    own_events: tuple[str, ...] = ()
    sweep_interval: timedelta = timedelta(minutes=10)
    sweep_dry_run: bool = False
    sample_interval: timedelta = timedelta(0)
    sample_properties: tuple[str, ...] = ()
    drift_interval: timedelta = timedelta(hours=1)
    drift_mend: bool = False
    starters: int = 192
    enders: int = 32
    longest_sleep: timedelta = timedelta(seconds=5)

    def pause_after(self, attempts: int) -> timedelta:
        """Return how long work rests that has failed once more, after so many attempts."""
        return min(self.longest_retry, self.first_retry * (1 << min(attempts, 16)))

    def strategy_of(self, kind: ResourceKind) -> Strategy:
        """Return how resources of a kind are chosen: what lets hosts sleep is for hosts only."""
        return Strategy.PACK if self.strategy is Strategy.COMPACT and kind != HOST else self.strategy

    def lead_before_end(self, resource_types: Collection[str]) -> timedelta:
        """Return the before_end lead of a lease with these resource types: their longest."""
        leads = [self.before_end_leads.get(name, self.before_end_lead) for name in resource_types]
        return max(leads, default=self.before_end_lead)
