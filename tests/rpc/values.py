# SPDX-License-Identifier: Apache-2.0
"""Values of the model as hypothesis makes them up: everything that a call may carry."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import strategies as st

from blazar.model.base.amounts import Amounts
from blazar.model.base.moments import NOW, Duration, LocalDay
from blazar.model.base.paging import Condition, Operator, Page, Position
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.service_info import ReadBounds, ServiceFacts, StatedLimit
from blazar.model.base.week_hours import WeekHours
from blazar.model.base.window import Window
from blazar.model.billing.budgets import BudgetPage, BudgetQuestion, BudgetSource, BudgetUnit, ProjectBudget
from blazar.model.billing.charges import CarbonState, Charge, ChargeCategory, ChargeLine, ChargeStatus, LineEnergy
from blazar.model.billing.comparison import MonthComparison, ProjectComparison
from blazar.model.billing.published import PriceChange, Publication, PublishedList
from blazar.model.billing.statements import (
    ChargePage,
    ChargeQuestion,
    CorrectionRequest,
    MadeCharge,
    Statement,
    StatementPage,
    StatementQuestion,
    StatementState,
    StatementTotal,
)
from blazar.model.calendar.allocations import Allocation, AllocationPage, AllocationQuestion, ResourceAllocations
from blazar.model.calendar.views import (
    Block,
    BlockKind,
    BlockLease,
    CalendarPage,
    CalendarQuestion,
    CalendarRow,
    Capacity,
    CapacityPoint,
    CapacityQuestion,
    CapacitySeries,
    OutOfUse,
    PropertySummaries,
    PropertySummary,
    PropertyValueCount,
    Range,
    Viewer,
)
from blazar.model.energy.carbon import LeaseCarbon, LeaseEnergy
from blazar.model.energy.consumption import EnergySource
from blazar.model.energy.unbooked import UnbookedEnergy, UnbookedPart
from blazar.model.feeds import Feed, FeedContent, FeedItem, FeedKind, FeedOwner, FeedPage, FeedQuestion, FeedRequest
from blazar.model.journal.entries import (
    FieldChange,
    HistoryPage,
    NamedMove,
    NumberedEntry,
    ObjectType,
    PastEntry,
    Subject,
    Verb,
)
from blazar.model.journal.views import JournalPage, JournalQuestion
from blazar.model.leases.details import (
    BookedLease,
    HeldResource,
    ImmediateVerdict,
    LeaseDetails,
    LeaseFilter,
    LeaseMark,
    LeaseOwner,
    LeasePage,
    LeaseRows,
    LeaseState,
)
from blazar.model.leases.lease import (
    Event,
    Lease,
    LeaseRevision,
    PartOfSeries,
    SavedAllocation,
    SavedState,
    TransferOffer,
)
from blazar.model.leases.reminders import Anchor, Reminder
from blazar.model.leases.requests import (
    Actor,
    EventRequest,
    IdempotencyKey,
    LeaseChange,
    LeaseRequest,
    ReservationChange,
    ReservationRequest,
)
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.maintenance.windows import (
    ActivePolicy,
    AffectedLease,
    Answer,
    HostMove,
    Impact,
    Maintenance,
    MaintenanceChange,
    MaintenanceHost,
    MaintenancePage,
    MaintenanceQuestion,
    MaintenanceRequest,
    MaintenanceStatus,
    Outcome,
    PendingPolicy,
)
from blazar.model.managers.presence import KnownManager, ManagerFacts, ManagerState, ManagerWork, Pong, ThreadFacts
from blazar.model.problems.problems import (
    Problem,
    ProblemAction,
    ProblemKind,
    ProblemPage,
    ProblemQuestion,
    Repair,
    RepairRequest,
)
from blazar.model.reports.capacity import (
    AmountTime,
    CapacityGroup,
    CapacityReport,
    CapacityReportQuestion,
    CapacityRow,
    CapacitySums,
)
from blazar.model.reports.demand import DemandGroup, DemandQuestion, DemandReport, DemandRow, DemandSums
from blazar.model.reports.forecast import (
    Accuracy,
    DayForecast,
    Expected,
    Forecast,
    ForecastQuestion,
    ForecastRow,
    UnmetDemand,
)
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.states import ResourceState
from blazar.model.reports.usage import UsageGroup, UsageQuestion, UsageReport, UsageRow, UsageSums
from blazar.model.resources.changes import Disabling, Registration, ResourceChange
from blazar.model.resources.pages import (
    Candidate,
    PropertyPage,
    ResourcePage,
    ResourceQuestion,
    VisiblePage,
    VisibleResource,
)
from blazar.model.resources.pools import CardPool, UnitLimits
from blazar.model.resources.resource import (
    KINDS,
    KindDescription,
    KindList,
    KindShape,
    PropertyValues,
    Resource,
    ResourceProperty,
)
from blazar.model.rules.open_time import OpenTime
from blazar.model.rules.values import AppliesTo, BookingRule, Gap, Hours, OpenAt, WrittenRule
from blazar.model.subscriptions.details import (
    Channel,
    DeliveryFailure,
    Digest,
    FailurePage,
    MadeSubscription,
    Rewind,
    Subscription,
    SubscriptionChange,
    SubscriptionPage,
    SubscriptionQuestion,
    SubscriptionRequest,
    SubscriptionState,
)
from blazar.model.surgery import (
    MergeRequest,
    OfferPage,
    OfferRequest,
    Operated,
    Partner,
    PartRequest,
    SplitRequest,
    SwapRequest,
    Terms,
)
from blazar.model.use.policy import LeaseUse, Usage

texts = st.text(max_size=12)
numbers = st.integers(-(2**63), 2**63)
floats = st.floats(allow_nan=False, allow_infinity=False)
instants = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1)).map(
    lambda instant: instant.replace(microsecond=0, fold=0, tzinfo=UTC)
)
moments = instants | st.just(NOW)
windows = st.builds(
    lambda start, seconds: Window(start, start + timedelta(seconds=seconds)), instants, st.integers(1, 10**8)
)
json = st.recursive(
    st.none() | st.booleans() | numbers | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
parameters = st.dictionaries(texts, json, max_size=4)
facts = st.dictionaries(texts, st.none() | st.booleans() | numbers | floats | texts, max_size=5)
words = st.dictionaries(texts, texts, max_size=3)
amounts = st.dictionaries(texts, st.integers(0, 2**40), max_size=3).map(Amounts.of)


def several(strategy: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


contents = parameters.map(Content)
saved_states = st.builds(
    SavedState,
    allocations=st.none() | several(st.builds(SavedAllocation, texts, numbers, numbers, st.none() | amounts), 2),
    undone=st.integers(0, 9),
    action_asked_at=st.none() | instants,
)
maybe_text = st.none() | texts
maybe_instant = st.none() | instants
causes = st.builds(
    Cause,
    code=st.sampled_from(ReasonCode),
    servers=st.integers(0, 99),
    # One at most, as for the sets of a reservation.
    resources=st.frozensets(numbers, max_size=1),
    until=maybe_instant,
)


events = st.builds(
    Event,
    id=texts,
    event_type=st.sampled_from([kind.value for kind in EventType]) | texts,
    time=maybe_instant,
    status=st.none() | st.sampled_from(EventStatus),
    created_at=instants,
    updated_at=maybe_instant,
    due_at=maybe_instant,
    claimed_by=maybe_text,
    claimed_at=maybe_instant,
    attempts=st.integers(0, 99),
    reason=maybe_text,
    saved_state=st.none() | saved_states,
    cause=st.none() | causes,
    trouble_since=maybe_instant,
)
lease_uses = st.builds(LeaseUse, st.sampled_from(Usage), *[maybe_instant] * 3)
reservations = st.builds(
    Reservation,
    id=texts,
    resource_type=texts,
    resource_id=maybe_text,
    status=st.sampled_from(ReservationStatus),
    created_at=instants,
    updated_at=maybe_instant,
    missing_resources=st.booleans(),
    resources_changed=st.booleans(),
    parameters=contents,
    cloud_ids=contents,
    # One at most: the order in which a set prints is not that of another with the same members.
    unassigned=st.frozensets(numbers, max_size=1),
    failed=st.frozensets(numbers, max_size=1),
    missing_since=maybe_instant,
    changed_since=maybe_instant,
)
leases = st.builds(
    Lease,
    id=texts,
    name=texts,
    user_id=texts,
    project_id=texts,
    window=windows,
    status=st.sampled_from(LeaseStatus),
    created_at=instants,
    updated_at=maybe_instant,
    trust_id=maybe_text,
    degraded=st.booleans(),
    deleted_at=maybe_instant,
    revision=st.integers(0, 2**31),
    kind=st.sampled_from(LeaseKind),
    end_reason=st.none() | st.sampled_from(EndReason),
    use=st.none() | lease_uses,
    reservations=several(reservations, 2),
    events=several(events, 2),
    series=st.none()
    | st.builds(
        PartOfSeries,
        texts,
        st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(microsecond=0, fold=0)),
        st.booleans(),
    ),
    offer=st.none() | st.builds(TransferOffer, texts, maybe_text, maybe_text, texts, instants, instants),
)
revisions = st.builds(LeaseRevision, id=texts, revision=st.integers(0, 2**31))
lease_rows = st.builds(
    LeaseRows,
    read=numbers,
    leases=several(
        st.tuples(texts, numbers, *[texts] * 5, maybe_text, texts, st.booleans(), texts, maybe_text),
    ),
    reservations=several(
        st.tuples(*[texts] * 3, maybe_text, texts, st.booleans(), st.booleans(), *[texts] * 3, maybe_text, maybe_text)
    ),
    events=several(st.tuples(*[texts] * 3, maybe_text, maybe_text, texts, maybe_text)),
    waiting=several(leases),
)
durations = st.builds(
    Duration, *[st.integers(0, 99)] * 4, zone=st.sampled_from(["UTC", "Europe/Paris"]), backward=st.booleans()
)
details = st.builds(
    LeaseDetails,
    leases,
    several(
        st.builds(
            HeldResource,
            texts,
            numbers,
            st.sampled_from(KINDS),
            texts,
            texts,
            texts,
            st.integers(1, 99),
            st.none() | amounts,
            st.booleans(),
        )
    ),
)
positions = st.builds(Position, maybe_text, texts)
conditions = st.builds(Condition, texts, st.sampled_from(Operator), several(texts))
lease_filters = st.builds(
    LeaseFilter,
    state=st.sampled_from(LeaseState),
    project_id=maybe_text,
    text=maybe_text,
    begin=st.none() | moments,
    end=st.none() | moments,
    conditions=several(conditions),
    with_reservations=st.booleans(),
    with_events=st.booleans(),
)
pages = st.builds(Page, st.integers(1, 1000), texts, st.booleans(), st.none() | texts | positions, st.booleans())
marks = st.builds(LeaseMark, texts, numbers, numbers)
lease_pages = st.builds(LeasePage, several(details, 2), st.none() | positions, st.none() | numbers, several(marks))
booked_leases = st.builds(
    BookedLease, details, st.booleans(), st.none() | st.integers(5, 600).map(lambda seconds: timedelta(seconds=seconds))
)
keys = st.builds(IdempotencyKey, texts, texts)
reminders = st.builds(
    Reminder,
    at=instants | st.integers(-(10**8), 10**8).map(lambda seconds: timedelta(seconds=seconds)),
    text=texts,
    anchor=st.none() | st.sampled_from(Anchor),
    sent_at=maybe_instant,
    skipped_at=maybe_instant,
)
lease_requests = st.builds(
    LeaseRequest,
    name=texts,
    user_id=texts,
    project_id=texts,
    start=moments,
    end=moments | durations,
    before_end=maybe_instant | durations,
    exact=st.booleans(),
    dry_run=st.booleans(),
    key=st.none() | keys,
    reservations=several(st.builds(ReservationRequest, texts, parameters)),
    events=several(st.builds(EventRequest, texts, maybe_instant)),
    operator=st.booleans(),
    kind=st.sampled_from(LeaseKind),
    reminders=several(reminders),
)
lease_changes = st.builds(
    LeaseChange,
    name=maybe_text,
    start=st.none() | moments,
    end=st.none() | moments | durations,
    before_end=maybe_instant | durations,
    resets_before_end=st.booleans(),
    revisions=st.none() | several(numbers),
    exact=st.booleans(),
    dry_run=st.booleans(),
    reservations=several(st.builds(ReservationChange, texts, parameters, maybe_text, several(texts))),
    names=st.booleans(),
    asked_by=st.none() | st.builds(Actor, texts, texts, st.booleans()),
    key=st.none() | keys,
    reminders=st.none() | several(reminders),
)
resources = st.builds(
    Resource,
    id=st.integers(1, 2**31),
    kind=st.sampled_from(KINDS),
    external_id=texts,
    name=texts,
    attributes=facts,
    capabilities=words,
    capacity=amounts,
    reservable=st.booleans(),
    created_at=instants,
    updated_at=maybe_instant,
    limits=st.dictionaries(texts, st.builds(UnitLimits, *[st.integers(1, 2**31)] * 3), max_size=2),
    # Of several, equal sets would not always print the same.
    traits=st.frozensets(texts, max_size=1),
    pools=st.lists(
        st.builds(CardPool, texts, numbers, numbers, st.frozensets(texts, max_size=1), st.builds(UnitLimits)),
        max_size=2,
    ).map(tuple),
    disabled=st.booleans(),
    failure=maybe_text,
    failed_since=maybe_instant,
    authorized_projects=st.none() | st.frozensets(texts, max_size=1),
    label=texts,
    revision=numbers,
    disabled_reason=maybe_text,
    disabled_since=maybe_instant,
    disabled_until=maybe_instant,
)
allocations = st.builds(
    Allocation,
    kind=st.sampled_from(KINDS),
    resource_id=st.integers(1, 2**31),
    lease_id=texts,
    reservation_id=texts,
    window=windows,
    count=st.integers(1, 99),
    per_instance=st.none() | amounts,
)
shapes = st.builds(KindShape, texts, texts, parameters, parameters, several(texts), several(texts), st.booleans())
kind_descriptions = st.builds(KindDescription, st.sampled_from(KINDS), shapes, several(texts), st.booleans())
visible_resources = st.builds(
    VisibleResource, texts, st.sampled_from(KINDS), maybe_text, st.booleans(), amounts, facts, words
)
resource_allocations = st.builds(ResourceAllocations, resources, several(allocations))
properties = st.builds(
    ResourceProperty,
    id=texts,
    kind=st.sampled_from(KINDS),
    name=texts,
    private=st.booleans(),
    created_at=instants,
    updated_at=maybe_instant,
)
property_values = st.builds(PropertyValues, properties, several(texts))

projects = st.none() | several(texts)
disablings = st.builds(Disabling, maybe_text, maybe_instant, st.none() | durations)
wanted_revisions = st.none() | several(numbers)
rest_of_a_page = (st.none() | positions, st.none() | numbers)
allocation_questions = st.builds(AllocationQuestion, pages, several(conditions))
resource_questions = st.builds(ResourceQuestion, pages, several(conditions), maybe_text, maybe_text)
registrations = st.builds(Registration, parameters, words, st.booleans(), projects, disablings)
resource_changes = st.builds(
    ResourceChange,
    st.dictionaries(texts, maybe_text, max_size=3),
    st.none() | st.booleans(),
    projects,
    st.booleans(),
    st.none() | disablings,
    wanted_revisions,
)

kinds = st.sampled_from(KINDS)
values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
ranges = st.builds(Range, st.none() | moments | durations, st.none() | moments | durations)
viewers = st.builds(Viewer, texts, st.booleans(), st.booleans(), st.booleans())
calendar_questions = st.builds(
    CalendarQuestion, viewers, pages, ranges, texts, maybe_text, st.none() | several(texts), st.booleans()
)
capacity_questions = st.builds(
    CapacityQuestion, viewers, ranges, st.none() | durations, texts, maybe_text, several(texts), texts
)
blocks = st.builds(
    Block,
    st.sampled_from(BlockKind),
    instants,
    maybe_instant,
    st.none() | amounts,
    maybe_text,
    maybe_text,
    st.none() | st.sampled_from(OutOfUse),
    maybe_text,
)
rows = st.builds(
    CalendarRow,
    texts,
    st.sampled_from(KINDS),
    maybe_text,
    maybe_text,
    st.booleans(),
    amounts,
    st.dictionaries(texts, values, max_size=3),
    several(blocks),
)
calendar_pages = st.builds(
    CalendarPage,
    instants,
    windows,
    several(rows),
    st.dictionaries(texts, st.builds(BlockLease, *[texts] * 5), max_size=2),
    st.none() | positions,
    st.none() | numbers,
)
points = several(numbers)
capacity_points = st.builds(CapacityPoint, *[numbers] * 4)
capacities = st.builds(
    Capacity,
    instants,
    windows,
    st.integers(60, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
    several(st.builds(CapacitySeries, st.dictionaries(texts, values, max_size=2), *[points] * 4, capacity_points)),
)
summaries = st.builds(
    PropertySummary,
    texts,
    st.booleans(),
    st.booleans(),
    several(st.builds(PropertyValueCount, values, numbers)),
    st.booleans(),
    st.none() | numbers,
    st.none() | numbers,
)
feed_kinds = st.sampled_from(FeedKind)
feed_owners = st.builds(FeedOwner, texts, texts)
feed_requests = st.builds(FeedRequest, feed_kinds, texts, feed_owners, maybe_text, maybe_text, maybe_text)
feed_questions = st.builds(FeedQuestion, pages, st.none() | feed_owners, maybe_text, maybe_text)
maybe_number = st.none() | numbers
lease_carbon = st.builds(LeaseCarbon, numbers, numbers, maybe_number, st.booleans(), st.booleans(), st.booleans())
lease_energies = st.builds(
    LeaseEnergy,
    *[instants, numbers, maybe_number, st.none() | st.sampled_from(EnergySource), numbers, st.none() | lease_carbon],
)
feeds = st.builds(
    Feed,
    *[texts, feed_kinds, texts, texts, texts, instants, instants],
    *[maybe_instant, maybe_text, maybe_number, maybe_text, maybe_text],
)
feed_items = st.builds(
    FeedItem,
    *[texts, texts, texts, windows, maybe_instant, numbers, st.booleans(), instants, instants],
    several(st.tuples(texts, numbers)),
)
feed_contents = st.builds(FeedContent, feeds, windows, several(feed_items), several(windows))

maintenance_statuses = st.sampled_from(MaintenanceStatus)
pending_policies = st.sampled_from(PendingPolicy)
affected_leases = st.builds(
    AffectedLease,
    *[texts, numbers, texts, texts, texts, windows, texts, st.sampled_from(Outcome), several(texts)],
    several(st.builds(HostMove, texts, texts, texts, numbers)),
    several(instants),
    *[st.booleans(), st.booleans(), maybe_instant, maybe_text],
)
active_policies = st.sampled_from(ActivePolicy)
maintenances = st.builds(
    Maintenance,
    *[texts, texts, maybe_text, windows, maintenance_statuses],
    several(st.builds(MaintenanceHost, texts, texts, maybe_number)),
    *[maybe_text, pending_policies, st.booleans(), numbers, instants, maybe_instant, maybe_text],
    several(affected_leases),
    active_policies,
)
impacts = st.builds(Impact, texts, windows, several(texts), several(affected_leases))
problem_kinds = st.sampled_from(ProblemKind)
problem_actions = st.sampled_from(ProblemAction)
problems = st.builds(
    Problem,
    *[texts, problem_kinds, instants, texts, several(texts), several(problem_actions), maybe_text, texts],
)
local_days = st.dates(date(1971, 1, 1), date(8999, 12, 31)).map(lambda day: LocalDay(day.year, day.month, day.day))
report_instants = st.none() | local_days | moments
usage_groups, steps = several(st.sampled_from(UsageGroup)), st.sampled_from(ReportStep)
capacity_groups, demand_groups = several(st.sampled_from(CapacityGroup)), several(st.sampled_from(DemandGroup))
capacity_sums = st.builds(
    CapacitySums,
    numbers,
    st.dictionaries(st.sampled_from(ResourceState), numbers),
    st.dictionaries(texts, st.builds(AmountTime, numbers, numbers)),
)
capacity_rows = st.builds(CapacityRow, windows, several(maybe_text), capacity_sums)
demand_sums = st.builds(DemandSums, *[numbers] * 3, st.dictionaries(texts, numbers), *[numbers] * 3)
demand_rows = st.builds(DemandRow, windows, several(texts), demand_sums)
day_forecasts = st.builds(
    DayForecast, st.dates(), numbers, numbers, st.none() | st.builds(Expected, *[numbers] * 3), numbers
)
forecast_rows = st.builds(ForecastRow, several(maybe_text), day_forecasts)
accuracies = st.builds(Accuracy, numbers, st.none() | st.floats(0, 1))
unmet_demands = st.builds(UnmetDemand, texts, *[numbers] * 3)
usage_rows = st.builds(UsageRow, windows, several(maybe_text), st.builds(UsageSums, *[numbers] * 8))
unbooked_parts = st.builds(
    UnbookedPart, numbers, st.none() | numbers, st.none() | st.sampled_from(EnergySource), numbers, st.none() | numbers
)
unbooked = st.none() | st.builds(UnbookedEnergy, unbooked_parts, unbooked_parts)
documents = st.dictionaries(texts, st.recursive(texts | numbers, lambda part: st.lists(part, max_size=2), max_leaves=3))
published_lists = st.builds(PublishedList, numbers, instants, instants, texts, maybe_text)
hours_of_rules = st.builds(
    Hours,
    st.builds(
        OpenTime,
        texts,
        several(st.builds(WeekHours, st.frozensets(numbers), numbers, numbers)),
        st.frozensets(st.dates()),
    ),
    st.sampled_from(OpenAt),
    numbers,
)
of_rules = st.builds(
    AppliesTo, st.none() | st.frozensets(texts), st.frozensets(texts), st.none() | st.frozensets(texts)
)
booking_rules = st.builds(
    BookingRule,
    *[texts, numbers, hours_of_rules | st.builds(Gap, numbers, numbers, st.booleans()), of_rules, st.booleans()],
    *[texts, instants, st.none() | instants],
)
price_changes = st.builds(PriceChange, texts, maybe_text, maybe_text)
budgets = st.builds(
    ProjectBudget,
    project_id=texts,
    source=st.sampled_from(BudgetSource),
    unit=st.sampled_from(BudgetUnit),
    limit_name=maybe_text,
    measure=maybe_text,
    window=st.none() | windows,
    limit=st.none() | numbers,
    used=st.none() | numbers,
    held=st.none() | numbers,
)
months = st.dates(date(1970, 1, 1), date(9999, 12, 1))
month_comparisons = st.builds(
    MonthComparison, months, several(st.builds(ProjectComparison, texts, numbers, numbers)), numbers, st.booleans()
)
charge_categories, charge_statuses = st.sampled_from(ChargeCategory), st.sampled_from(ChargeStatus)
line_energies = st.builds(
    LineEnergy, numbers, st.sampled_from(EnergySource), st.none() | numbers, st.none() | st.sampled_from(CarbonState)
)
charge_lines = st.builds(
    ChargeLine,
    *(windows, charge_categories, charge_statuses, numbers, maybe_text, maybe_text, st.none() | numbers, numbers),
    *(st.fractions(), numbers, st.none() | line_energies),
)
charges = st.builds(
    Charge,
    *(numbers, texts, texts, texts, charge_lines, texts, instants, texts, st.none() | numbers, maybe_text),
    *(st.none() | months, maybe_text),
)
statement_totals = st.builds(
    StatementTotal, charge_categories, charge_statuses, maybe_text, *[numbers] * 3, *[st.none() | numbers] * 2
)
statements = st.builds(
    Statement,
    *(
        texts,
        months,
        st.sampled_from(StatementState),
        texts,
        st.integers(0, 9),
        several(statement_totals),
        numbers,
        texts,
    ),
)
charge_questions = st.builds(
    ChargeQuestion,
    *(pages, maybe_text, maybe_text, st.none() | months, st.none() | charge_categories, st.none() | numbers),
)
maintenance_answers = st.builds(Answer, impacts, st.none() | maintenances)

spans = st.integers(0, 10**8).map(lambda seconds: timedelta(seconds=seconds))

partners = st.none() | st.builds(Partner, texts, texts)
swaps = st.builds(SwapRequest, texts, texts, maybe_text, partners)
parts = st.builds(PartRequest, texts, several(texts), maybe_number)
splits = st.builds(SplitRequest, several(parts), maybe_instant, maybe_text)
offer_requests = st.builds(OfferRequest, maybe_text, maybe_text, maybe_text)
actors = st.builds(Actor, texts, texts, st.booleans())
terms = st.builds(
    Terms,
    actors,
    st.booleans(),
    wanted_revisions,
    st.booleans(),
    st.none() | keys,
)
operated = st.builds(Operated, several(details), st.booleans())

actors = st.builds(Actor, texts, texts, st.booleans())
past_entries = st.builds(
    PastEntry,
    *[texts, instants, st.sampled_from(Verb), st.none() | actors],
    several(st.builds(FieldChange, texts, maybe_text, maybe_text, maybe_text)),
    several(st.builds(NamedMove, texts, several(texts), several(texts), numbers, numbers)),
    maybe_text,
)
history_pages = st.builds(HistoryPage, several(past_entries), st.none() | positions, maybe_number)
subjects = st.builds(
    Subject, st.sampled_from(ObjectType), texts, maybe_text, maybe_text, maybe_text, st.none() | numbers
)
journal_questions = st.builds(
    JournalQuestion,
    *[pages, maybe_text, maybe_number, st.none() | st.sampled_from(ObjectType), maybe_text],
    *[st.none() | st.sampled_from(Verb), maybe_text, report_instants, report_instants, maybe_text, maybe_text],
)
journal_pages = st.builds(
    JournalPage,
    several(st.builds(NumberedEntry, numbers, subjects, past_entries, maybe_text, maybe_text)),
    st.none() | positions,
    maybe_number,
    st.dictionaries(texts, texts, max_size=2),
)
channels, subscription_states = st.sampled_from(Channel), st.sampled_from(SubscriptionState)
digests = st.sampled_from(Digest)
subscriptions = st.builds(
    Subscription,
    *[texts, maybe_text, texts, channels, maybe_text, several(texts), instants, maybe_text, st.booleans()],
    *[subscription_states, maybe_text, st.booleans(), numbers, numbers, numbers],
    *[maybe_instant, maybe_instant, maybe_instant, numbers, numbers, maybe_instant, maybe_text],
    *[st.booleans(), digests, texts, numbers],
)
made_subscriptions = st.builds(MadeSubscription, subscriptions, st.booleans())
subscription_requests = st.builds(
    SubscriptionRequest,
    *[maybe_text, texts, maybe_text, several(texts), maybe_text, st.booleans(), channels, st.none() | keys],
)
subscription_changes = st.builds(
    SubscriptionChange,
    *[maybe_text, st.none() | several(texts), st.none() | st.booleans(), st.none() | subscription_states],
    *[st.booleans(), st.none() | digests, maybe_text, wanted_revisions],
)
subscription_questions = st.builds(SubscriptionQuestion, pages, maybe_text, several(subscription_states))
subscription_pages = st.builds(SubscriptionPage, several(subscriptions), st.none() | positions, maybe_number)
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "leases.all": {"project_id": maybe_text},
    "leases.revisions": {"project_id": maybe_text},
    "leases.by_id": {"lease_ids": st.lists(texts)},
    "leases.rows": {"lease_ids": st.lists(texts)},
    "leases.one": {"lease_id": texts},
    "leases.create": {"request": lease_requests},
    "leases.update": {"lease_id": texts, "change": lease_changes},
    "leases.delete": {"lease_id": texts, "revisions": st.none() | several(numbers)},
    "leases.owner": {"lease_id": texts},
    "leases.details": {"lease_id": texts},
    "leases.verdict": {"lease_id": texts},
    "leases.confirm": {"lease_id": texts},
    "leases.keep": {"lease_id": texts, "again": st.booleans()},
    "leases.hold": {"lease_id": texts, "held": st.booleans()},
    "leases.history": {"lease_id": texts, "page": pages},
    "journal.page": {"question": journal_questions},
    "leases.page": {"wanted": lease_filters, "page": pages, "known": several(marks)},
    "leases.book": {"request": lease_requests},
    "leases.replay": {"key": keys},
    "leases.change": {"lease_id": texts, "change": lease_changes},
    "resources.all": {"kind": kinds},
    "resources.one": {"kind": kinds, "resource_id": texts},
    "resources.register": {"kind": kinds, "request": registrations},
    "resources.change": {"kind": kinds, "resource_id": texts, "change": resource_changes},
    "resources.refresh": {"kind": kinds, "resource_id": texts},
    "resources.unregister": {"kind": kinds, "resource_id": texts, "revisions": wanted_revisions},
    "resources.page": {"kind": kinds, "question": resource_questions},
    "resources.allocation_page": {"kind": kinds, "question": allocation_questions},
    "resources.property_page": {"kind": kinds, "page": pages, "include_private": st.booleans()},
    "resources.kinds": {},
    "resources.visible_page": {"kind": kinds, "question": resource_questions, "viewer": viewers},
    "resources.visible": {"kind": kinds, "resource_id": texts, "viewer": viewers},
    "resources.candidates": {"kind": kinds},
    "resources.move": {"kind": kinds, "resource_id": texts, "reservation_id": texts},
    "resources.allocations": {
        "kind": kinds,
        "resource_id": maybe_text,
        "lease_id": maybe_text,
        "reservation_id": maybe_text,
    },
    "resources.properties": {"kind": kinds, "include_private": st.booleans()},
    "resources.set_property": {"kind": kinds, "name": texts, "private": st.booleans()},
    "calendar.page": {"question": calendar_questions},
    "calendar.capacity": {"question": capacity_questions},
    "calendar.properties": {"viewer": viewers, "resource_type": texts},
    "subscriptions.page": {"question": subscription_questions},
    "subscriptions.one": {"subscription_id": texts},
    "subscriptions.create": {"request": subscription_requests},
    "subscriptions.replay": {"key": keys},
    "subscriptions.change": {"subscription_id": texts, "change": subscription_changes},
    "subscriptions.test": {"subscription_id": texts},
    "subscriptions.mine": {"user_id": texts},
    "subscriptions.change_mine": {"user_id": texts, "change": subscription_changes},
    "subscriptions.check_link": {"subscription_id": texts, "secret": texts},
    "subscriptions.unsubscribe": {"subscription_id": texts, "secret": texts},
    "subscriptions.rewind": {"subscription_id": texts, "wanted": st.builds(Rewind, st.none() | numbers, maybe_instant)},
    "subscriptions.failures": {"subscription_id": texts, "page": pages},
    "subscriptions.delete": {"subscription_id": texts, "revisions": wanted_revisions},
    "feeds.page": {"question": feed_questions},
    "feeds.one": {"feed_id": texts, "owner": st.none() | feed_owners},
    "feeds.create": {"request": feed_requests, "secret_hash": texts},
    "feeds.delete": {"feed_id": texts, "owner": st.none() | feed_owners},
    "feeds.content": {"secret_hash": texts},
    "transfers.offer": {"lease_id": texts, "request": offer_requests, "terms": terms},
    "transfers.withdraw": {"lease_id": texts, "terms": terms},
    "transfers.page": {"taker": actors, "page": pages},
    "transfers.one": {"lease_id": texts, "taker": actors},
    "transfers.accept": {"lease_id": texts, "terms": terms},
    "transfers.decline": {"lease_id": texts, "terms": terms},
    "surgery.merge": {"lease_id": texts, "request": st.builds(MergeRequest, texts), "terms": terms},
    "surgery.split": {"lease_id": texts, "request": splits, "terms": terms},
    "surgery.swap": {"lease_id": texts, "request": swaps, "terms": terms},
    "maintenances.page": {
        "question": st.builds(MaintenanceQuestion, pages, several(maintenance_statuses)),
    },
    "maintenances.one": {"maintenance_id": texts},
    "problems.page": {
        "question": st.builds(ProblemQuestion, pages, several(problem_kinds), maybe_text, maybe_text, maybe_instant)
    },
    "problems.one": {"problem_id": texts},
    "reports.capacity": {
        "question": st.builds(
            CapacityReportQuestion,
            *[texts, report_instants, report_instants, capacity_groups, steps, maybe_text, st.booleans()],
        )
    },
    "reports.demand": {
        "question": st.builds(DemandQuestion, *[report_instants, report_instants, demand_groups, steps, maybe_text])
    },
    "reports.forecast": {
        "question": st.builds(ForecastQuestion, texts, numbers, capacity_groups, maybe_text, st.booleans())
    },
    "reports.lease_energy": {"lease_id": texts},
    "reports.usage": {
        "question": st.builds(
            UsageQuestion,
            *[texts, report_instants, report_instants, usage_groups, steps],
            *[maybe_text, maybe_text, maybe_text, st.booleans(), st.booleans()],
        )
    },
    "problems.act": {
        "problem_id": texts,
        "action": problem_actions,
        "request": st.builds(RepairRequest, texts, st.booleans(), maybe_text),
    },
    "maintenances.create": {
        "request": st.builds(
            MaintenanceRequest,
            *[texts, moments, instants | durations, several(texts), maybe_text, maybe_text],
            *[pending_policies, st.booleans(), maybe_text, active_policies],
        ),
        "dry_run": st.booleans(),
    },
    "maintenances.change": {
        "maintenance_id": texts,
        "change": st.builds(
            MaintenanceChange,
            *[maybe_text, st.none() | moments, st.none() | instants | durations, maybe_text, wanted_revisions],
        ),
        "dry_run": st.booleans(),
    },
    "price_lists.all": {},
    "price_lists.one": {"version": numbers},
    "price_lists.publish": {"document": documents, "by": actors, "dry_run": st.booleans()},
    "rules.all": {},
    "rules.one": {"name": texts},
    "rules.write": {"name": texts, "document": documents, "revisions": wanted_revisions},
    "rules.delete": {"name": texts, "revisions": wanted_revisions},
    "statements.page": {"question": st.builds(StatementQuestion, pages, maybe_text)},
    "statements.one": {"project_id": texts, "month": months},
    "charges.page": {"question": charge_questions},
    "charges.correct": {"request": st.builds(CorrectionRequest, numbers, numbers, texts), "key": st.none() | keys},
    "charges.replay": {"key": keys},
    "budgets.page": {"question": st.builds(BudgetQuestion, pages, maybe_text, st.none() | local_days | moments)},
    "maintenances.end": {"maintenance_id": texts, "revisions": wanted_revisions},
    "maintenances.delete": {"maintenance_id": texts, "revisions": wanted_revisions},
    "service.facts": {"project_id": texts},
    "service.ping": {},
    "service.managers": {},
}
manager_states = st.sampled_from(ManagerState)
ANSWERS: dict[str, st.SearchStrategy[object]] = {
    "leases.all": several(leases),
    "leases.revisions": several(revisions),
    "leases.by_id": several(leases),
    "leases.rows": lease_rows,
    "leases.one": leases,
    "leases.create": leases,
    "leases.update": leases,
    "leases.delete": st.none(),
    "leases.owner": st.builds(LeaseOwner, texts, texts, texts, st.booleans()),
    "leases.details": details,
    "leases.verdict": st.sampled_from(ImmediateVerdict),
    "leases.confirm": details,
    "leases.keep": details,
    "leases.hold": details,
    "leases.history": history_pages,
    "journal.page": journal_pages,
    "leases.page": lease_pages,
    "leases.book": booked_leases,
    "leases.replay": st.none() | booked_leases,
    "leases.change": details,
    "resources.all": several(resources),
    "resources.one": resources,
    "resources.candidates": several(st.builds(Candidate, texts, texts, texts, numbers, maybe_text)),
    "resources.kinds": st.builds(KindList, several(kind_descriptions)),
    "resources.visible_page": st.builds(VisiblePage, several(visible_resources), *rest_of_a_page),
    "resources.visible": visible_resources,
    "resources.page": st.builds(ResourcePage, several(resources), *rest_of_a_page),
    "resources.allocation_page": st.builds(AllocationPage, several(resource_allocations), *rest_of_a_page),
    "resources.property_page": st.builds(PropertyPage, several(property_values), *rest_of_a_page),
    "resources.register": resources,
    "resources.change": resources,
    "resources.refresh": resources,
    "resources.unregister": st.none(),
    "resources.move": resource_allocations,
    "resources.allocations": several(resource_allocations),
    "resources.properties": several(property_values),
    "resources.set_property": properties,
    "calendar.page": calendar_pages,
    "calendar.capacity": capacities,
    "calendar.properties": st.builds(PropertySummaries, several(summaries)),
    "subscriptions.page": subscription_pages,
    "subscriptions.one": subscriptions,
    "subscriptions.create": made_subscriptions,
    "subscriptions.replay": st.none() | made_subscriptions,
    "subscriptions.change": subscriptions,
    "subscriptions.test": subscriptions,
    "subscriptions.mine": subscriptions,
    "subscriptions.change_mine": subscriptions,
    "subscriptions.check_link": st.none(),
    "subscriptions.unsubscribe": st.none(),
    "subscriptions.rewind": subscriptions,
    "subscriptions.failures": st.builds(
        FailurePage,
        several(st.builds(DeliveryFailure, texts, numbers, texts, texts, texts, instants)),
        st.none() | positions,
        maybe_number,
    ),
    "subscriptions.delete": st.none(),
    "feeds.page": st.builds(FeedPage, several(feeds), st.none() | positions, maybe_number),
    "feeds.one": feeds,
    "feeds.create": feeds,
    "feeds.delete": st.none(),
    "feeds.content": feed_contents,
    "surgery.merge": operated,
    "transfers.offer": details,
    "transfers.withdraw": st.none(),
    "transfers.page": st.builds(OfferPage, several(details), st.none() | positions, maybe_number),
    "transfers.one": details,
    "transfers.accept": operated,
    "transfers.decline": st.none(),
    "surgery.split": operated,
    "surgery.swap": operated,
    "maintenances.page": st.builds(MaintenancePage, several(maintenances), st.none() | positions, maybe_number),
    "maintenances.one": maintenances,
    "problems.page": st.builds(ProblemPage, several(problems), st.none() | positions, maybe_number, st.booleans()),
    "problems.one": problems,
    "reports.capacity": st.builds(
        CapacityReport, windows, texts, steps, instants, capacity_groups, several(capacity_rows)
    ),
    "reports.demand": st.builds(DemandReport, windows, texts, steps, instants, demand_groups, several(demand_rows)),
    "reports.forecast": st.builds(
        Forecast, instants, texts, capacity_groups, several(forecast_rows), accuracies, several(unmet_demands)
    ),
    "reports.lease_energy": lease_energies,
    "reports.usage": st.builds(
        UsageReport, windows, texts, steps, instants, usage_groups, several(usage_rows), unbooked
    ),
    "problems.act": st.builds(Repair, texts, problem_actions, st.booleans(), several(texts)),
    "maintenances.create": maintenance_answers,
    "maintenances.change": maintenance_answers,
    "price_lists.all": several(published_lists),
    "price_lists.one": published_lists,
    "price_lists.publish": st.builds(
        Publication,
        published_lists,
        several(price_changes),
        several(texts),
        several(numbers),
        several(texts),
        st.none() | month_comparisons,
    ),
    "rules.all": several(booking_rules),
    "rules.one": booking_rules,
    "rules.write": st.builds(WrittenRule, booking_rules, st.booleans()),
    "rules.delete": st.none(),
    "statements.page": st.builds(StatementPage, several(statements), positions, st.none() | numbers),
    "statements.one": statements,
    "charges.page": st.builds(ChargePage, several(charges), positions, st.none() | numbers),
    "charges.correct": st.builds(MadeCharge, charges, st.booleans()),
    "charges.replay": st.none() | st.builds(MadeCharge, charges, st.booleans()),
    "budgets.page": st.builds(BudgetPage, several(budgets), positions),
    "maintenances.end": maintenances,
    "maintenances.delete": st.none(),
    "service.ping": st.builds(Pong, texts, texts, texts, manager_states, instants, st.none() | floats, maybe_text),
    "service.managers": several(
        st.builds(
            KnownManager,
            st.builds(
                ManagerFacts,
                *[texts, texts, numbers, texts, instants, texts, manager_states, spans, several(texts), texts],
                several(st.builds(ThreadFacts, texts, maybe_instant, maybe_instant, maybe_text)),
            ),
            instants,
            st.booleans(),
            st.booleans(),
            several(st.builds(ManagerWork, texts, texts, texts, maybe_instant)),
        )
    ),
    "service.facts": st.builds(
        ServiceFacts,
        instants,
        several(texts),
        texts,
        spans,
        spans,
        spans,
        several(st.builds(StatedLimit, texts, numbers, texts)),
        st.builds(ReadBounds, spans, spans, spans, spans, *[numbers] * 5),
        spans,
        several(texts),
    ),
}
