# SPDX-License-Identifier: Apache-2.0
"""The enabled filters, in their configured order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint
from typing import Any, Protocol

from oslo_config import cfg, types

from blazar.calendar.counting import Run
from blazar.enforcement.budget import ResourceHoursFilter
from blazar.enforcement.external import ExternalServiceFilter
from blazar.enforcement.limits import (
    LimitFilter,
    MaxConcurrentLeasesFilter,
    MaxLeaseDurationFilter,
    MaxUnitsFilter,
    StartWindowFilter,
)
from blazar.enforcement.rules import list_starts, make_filters
from blazar.enforcement.spend import SpendFilter
from blazar.enforcement.unified import UnifiedLimits
from blazar.enforcement.unified import options as unified_options
from blazar.enforcement.values import (
    AsksService,
    Context,
    Filter,
    FilterNotification,
    KeepsBudgets,
    LimitsSpending,
    NeedsLongerUsage,
    Occasion,
    Question,
    StatesLimits,
    TellsShares,
)
from blazar.model.base import plugins
from blazar.model.base.errors import BlazarError, Conflict, EnforcementUnavailable, InvalidInput, UsageDenied
from blazar.model.base.log_lines import LastingTrouble
from blazar.model.base.service_info import StatedLimit
from blazar.model.base.values import dataclass, field, replace
from blazar.model.base.window import Window, enclose
from blazar.model.billing.budgets import BudgetFacts, ProjectBudget
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.rules.values import BookingRule
from blazar.model.use.resource_hours import ProjectUse, SpendLimit
from blazar.observe.cloud_calls import count_filter_call
from blazar.observe.spans import span

LOG = logging.getLogger(__name__)

NAMESPACE = "blazar.enforcement.filters"
NAMED = "[enforcement] enabled_filters"
ADVICE = "'To add a filter of usage enforcement' in CONTRIBUTING.md"

SILENCE_KNOWN = timedelta(minutes=15)
"""How long a service counts as silent after the last call that it did not answer, if none follows."""

SHARES = cfg.ListOpt(
    "budget_shares",
    item_type=types.Integer(min=1, max=100),
    default=[80, 100],
    help="Shares in percent of a budget of ResourceHoursFilter or SpendFilter. That one is reached is told once for "
    "each project and period: in the journal, and to those who have subscribed to budget.reached. Empty for none.",
)

BUILTIN: Mapping[str, Any] = {
    kind.__name__: kind
    for kind in (
        MaxLeaseDurationFilter,
        MaxConcurrentLeasesFilter,
        MaxUnitsFilter,
        ResourceHoursFilter,
        SpendFilter,
        StartWindowFilter,
        ExternalServiceFilter,
    )
}
"""Our own filters, by their names in ``enabled_filters``. Filters of other packages come by entry point."""
FORMER: Mapping[str, str] = {"MaxReservationLengthFilter": MaxLeaseDurationFilter.__name__}
"""Filters by their former names."""


class Tokens(Protocol):
    """Tokens of the service user."""

    def token(self) -> str:
        """Return a valid token; a BlazarError if there is none."""

    def renew(self) -> None:
        """Discard the token, because a service did not accept it."""


@dataclass(frozen=True, slots=True)
class Commitment:
    """The result of notifying filters of a change before it is committed.

    With an ``error`` the change must not be committed: a filter refuses it, or an insisting filter gave no answer.
    ``known`` are the filters that have recorded it, or may have; ``later`` are the filters that must be notified in a
    retry, with the reasons.
    """

    known: tuple[str, ...] = ()
    later: Mapping[str, str] = field(default_factory=dict)
    error: BlazarError | None = None


@dataclass(frozen=True, slots=True)
class CloudIdentity:
    """What filters may know of the cloud: URL of Keystone, region, source of tokens; all empty without Keystone."""

    auth_url: str | None = None
    region_name: str | None = None
    tokens: Tokens | None = None
    cafile: str | None = None
    limits: UnifiedLimits | None = None
    """Limits from Keystone; None if those of the configuration count."""

    def make_context(self, lease: Lease, by: Actor | None) -> Context:
        """Return the owner of the lease and the caller, with what is known of the cloud."""
        return Context(lease.user_id, lease.project_id, self.auth_url, self.region_name, by)


def builtin_options() -> list[cfg.Opt]:
    """Return the options of our own filters."""
    return [*unified_options(), SHARES, *(option for kind in BUILTIN.values() for option in kind.options)]


class Enforcement:
    """Runs filters in order; the first objection decides. Without filters every lease is granted, at no cost."""

    def __init__(
        self,
        filters: Sequence[Filter] = (),
        *,
        identity: CloudIdentity | None = None,
        exempt: Collection[str] = (),
        shares: Collection[int] = (),
    ) -> None:
        self.identity = identity or CloudIdentity()
        self._exempt = frozenset(exempt)
        self._shares = tuple(sorted(shares))
        self._configured = tuple(filters)
        self.take_rules(())

    def take_rules(self, rules: Sequence[BookingRule]) -> None:
        """Hold to these rules of operators, from the next question on."""
        self._of_rules = make_filters(rules)
        filters: tuple[Filter, ...] = (*self._configured, *self._of_rules)
        self.filters = filters
        self.enabled = bool(filters)
        self.needs_use = any(rule.needs_use for rule in filters)
        self._limiting_spending = tuple(rule for rule in filters if isinstance(rule, LimitsSpending))
        self.needs_spending = bool(self._limiting_spending)
        self._with_longer_usage = tuple(rule for rule in filters if isinstance(rule, NeedsLongerUsage))
        self._occasions = frozenset(occasion for rule in filters for occasion in rule.occasions)

    def list_starts(
        self, lease: Lease, kinds: Collection[str], use: ProjectUse | None, first: datetime, last: datetime
    ) -> Sequence[Run]:
        """Return the runs of starts, in a time, at which rules of operators allow a lease of this length.

        ``kinds`` are those of which it takes resources.
        """
        filters = () if self.exempts(lease.project_id) else self._of_rules
        return list_starts(filters, lease, kinds, () if use is None else use.usage, first, last)

    def stated_limits(self, project_id: str) -> tuple[StatedLimit, ...]:
        """Return the limits on leases of a project that the filters state; none for a project that is exempt."""
        if project_id in self._exempt:
            return ()
        stating = (rule for rule in self.filters if isinstance(rule, StatesLimits))
        return tuple(limit for rule in stating for limit in rule.stated_limits(project_id))

    def complete_use(self, use: ProjectUse, question: Question) -> ProjectUse:
        """Return the use of a project with what the transaction that grants a lease needs; EnforcementUnavailable.

        That is the limit on what it has to pay, and the shares of its other budgets that the lease reaches.
        """
        if self.exempts(use.project_id):
            return use
        if limit := self.find_spend_limit(use.project_id):
            use = replace(use, spend_limit=limit)
        telling = [rule for rule in self.filters if self._shares and isinstance(rule, TellsShares)]
        reached = [one for rule in telling for one in rule.list_reached(question, self._shares)]
        return replace(use, reached=(*use.reached, *reached))

    def find_spend_limit(self, project_id: str) -> SpendLimit | None:
        """Return the most that a project may have to pay for a month; None: any amount. EnforcementUnavailable."""
        if self.exempts(project_id):
            return None
        limits = [rule.spend_limit(project_id) for rule in self._limiting_spending]
        least = min(filter(None, limits), key=lambda limit: limit.nano, default=None)
        return None if least is None else replace(least, shares=self._shares)

    def check_transfer(self) -> None:
        """Raise Conflict if a filter would mix up the leases of two projects that have the same id."""
        if not all(getattr(rule, "knows_transfers", True) for rule in self.filters):
            raise Conflict(
                "leases stay with their project: the service that decides about leases here does not know of "
                "transfers; ask its operators ([enforcement] external_service_transfers)",
                code="not_transferable",
            )

    def list_silent(self, now: datetime) -> Mapping[str, LastingTrouble]:
        """Return the filters that get no answer from their service, by name, and since when.

        What was not asked for long may answer again: then it is not known.
        """
        troubles = {type(rule).__name__: rule.trouble for rule in self.filters if isinstance(rule, AsksService)}
        found = {name: trouble.describe(now) for name, trouble in troubles.items()}
        return {name: one for name, one in found.items() if one is not None and now - one.last_at < SILENCE_KNOWN}

    @property
    def mandatory(self) -> bool:
        """Return whether a filter insists: nothing is granted without its answer."""
        return any(_is_mandatory(rule) for rule in self.filters)

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, identity: CloudIdentity) -> Enforcement:
        """Return the filters that ``[enforcement]`` configures; InvalidInput if a value is not possible."""
        identity = replace(identity, limits=UnifiedLimits.configured(conf, keystone=bool(identity.tokens)))
        filters = []
        for name, kind in load_filters(conf.enforcement.enabled_filters).items():
            try:
                conf.register_opts(kind.options, group="enforcement")
                filters.append(kind.configured(conf.enforcement, identity))
            except (cfg.Error, ValueError) as error:
                # Our options are registered before; those of others may clash with them, or have an invalid value.
                raise InvalidInput(f"[enforcement] {name} cannot be used as configured: {error}") from error
        section = conf.enforcement
        return cls(filters, identity=identity, exempt=section.exempt_projects, shares=section.budget_shares)

    def usage_window(self, window: Window) -> Window | None:
        """Return the time whose usage counts for a lease of this window, None if it is the window itself."""
        far = [rule.usage_window(window) for rule in self._with_longer_usage]
        return enclose(far) if far else None

    def listens_to(self, occasion: Occasion) -> bool:
        """Return whether a filter is to be notified of an occasion."""
        return occasion in self._occasions

    def exempts(self, project_id: str) -> bool:
        """Return whether a project is exempt from all limits."""
        return project_id in self._exempt

    def check(self, question: Question, passed: dict[int, object]) -> None:
        """Return if no filter objects; UsageDenied, EnforcementUnavailable.

        ``passed`` records which filter has accepted which question, over the attempts of one request: an external
        service is not asked the same twice. What depends on the rest of the project's usage is checked in each attempt.
        """
        if self.exempts(question.wanted.project_id):
            return
        substance = question.substance
        for number, rule in enumerate(self.filters):
            if rule.needs_use or passed.get(number) != (rule, substance):
                name = type(rule).__name__
                with span(f"enforce {name}"), count_filter_call(name, "check"):
                    rule.check(question)
                passed[number] = rule, substance

    def refusals(self, question: Question) -> tuple[UsageDenied, ...]:
        """Return all objections of our own limits; no service is asked whether it grants a lease."""
        if self.exempts(question.wanted.project_id):
            return ()
        found = []
        for rule in self.filters:
            if isinstance(rule, LimitFilter):
                try:
                    rule.check(question)
                except UsageDenied as error:
                    found.append(error)
        return tuple(found)

    def filters_not_asked(self, project_id: str) -> tuple[str, ...]:
        """Return the names of the filters that ``refusals`` does not ask about leases of a project."""
        if self.exempts(project_id):
            return ()
        return tuple(type(rule).__name__ for rule in self.filters if not isinstance(rule, LimitFilter))

    def needs_acceptance(self, occasion: Occasion, project_id: str) -> bool:
        """Return whether a project's lease is granted or changed only if the filters that hear of that accept it."""
        return occasion in self._occasions and project_id not in self._exempt

    def filters_listening(self, occasion: Occasion) -> tuple[str, ...]:
        """Return the names of the filters that are to be notified of an occasion."""
        return tuple(type(rule).__name__ for rule in self.filters if occasion in rule.occasions)

    def call_commit_hooks(self, notification: FilterNotification) -> Commitment:
        """Notify filters of a change before it is committed, until one of them does not accept it."""
        known: list[str] = []
        later: dict[str, str] = {}
        for rule in self.filters:
            if notification.occasion not in rule.occasions:
                continue
            name = type(rule).__name__
            try:
                with count_filter_call(name, "commit"):
                    rule.notify(notification)
            except Exception as error:
                # Filters of other packages may raise anything.
                maybe_accepted = getattr(error, "maybe_accepted", not isinstance(error, UsageDenied))
                refused = isinstance(error, UsageDenied) or _is_mandatory(rule)
                if not isinstance(error, BlazarError):
                    LOG.exception("Filter %s raised an unexpected error", name)
                if refused and maybe_accepted:
                    known.append(name)
                if refused:
                    return Commitment(
                        tuple(known), later, error if isinstance(error, UsageDenied) else _unanswered_error(error)
                    )
                later[name] = error.message if isinstance(error, BlazarError) else type(error).__name__
            else:
                known.append(name)
        return Commitment(tuple(known), later)

    def notify(
        self, notification: FilterNotification, told: Collection[str], failed: Callable[[str, Exception], None]
    ) -> tuple[str, ...]:
        """Notify the filters that are still to be notified; return the names of all that are finished.

        A filter that refuses permanently is finished, too.
        """
        know = list(told)
        for rule in self.filters:
            name = type(rule).__name__
            if name in know or notification.occasion not in rule.occasions:
                continue
            try:
                with count_filter_call(name, "end" if notification.occasion is Occasion.ENDED else "commit"):
                    rule.notify(notification)
            except UsageDenied as error:
                failed(name, error)
                know.append(name)
            except BlazarError as error:
                failed(name, error)
            except Exception as error:
                # Filters of other packages may raise anything: the other filters are notified nevertheless.
                failed(name, error)
            else:
                know.append(name)
        return tuple(know)


def find_budget_window(enforcement: Enforcement, at: datetime) -> Window | None:
    """Return the time whose usage counts for the budgets of an instant; None if there are no such budgets."""
    keeping = (rule for rule in enforcement.filters if isinstance(rule, KeepsBudgets))
    far = [window for rule in keeping if (window := rule.budget_window(at)) is not None]
    return enclose(far) if far else None


def list_budgets(enforcement: Enforcement, facts: BudgetFacts) -> tuple[ProjectBudget, ...]:
    """Return the budgets of a project; none for one that is exempt. EnforcementUnavailable."""
    if enforcement.exempts(facts.project_id):
        return ()
    keeping = (rule for rule in enforcement.filters if isinstance(rule, KeepsBudgets))
    return tuple(budget for rule in keeping for budget in rule.list_budgets(facts))


def _unanswered_error(error: Exception) -> EnforcementUnavailable:
    LOG.error(
        "Lease not granted, a filter gave no answer: %s",
        error.message if isinstance(error, BlazarError) else type(error).__name__,
    )
    return EnforcementUnavailable(
        "the external service that decides about leases did not accept the change in time, and nothing was changed; "
        "please try again later"
    )


def _is_mandatory(rule: Filter) -> bool:
    return bool(getattr(rule, "mandatory", False))


def load_filters(names: Sequence[str]) -> Mapping[str, Any]:
    """Return the classes of filters by name, in order. InvalidInput lists the available names."""
    names = [FORMER.get(name, name) for name in names]
    others: dict[str, EntryPoint] = {}
    for point in plugins.entry_points_of(NAMESPACE).values() if set(names) - BUILTIN.keys() else ():
        others |= {point.attr: point, point.name: point}
    unknown = [name for name in names if name not in BUILTIN and name not in others]
    if unknown:
        raise InvalidInput(
            f"[enforcement] enabled_filters names {', '.join(unknown)}, which is not installed; available are: "
            f"{', '.join(sorted({*BUILTIN, *others}))}"
        )
    members = plugins.members_of(Filter)
    kinds = [BUILTIN.get(name) or plugins.load(others[name], members, named=NAMED, advice=ADVICE) for name in names]
    # A filter named by its entry point and by its class would be notified once, but asked twice.
    twice = sorted({name for name, kind in zip(names, kinds, strict=True) if kinds.count(kind) > 1})
    if twice:
        raise InvalidInput(f"[enforcement] enabled_filters names {', '.join(twice)} more than once; once is enough")
    return dict(zip(names, kinds, strict=True))
