# SPDX-License-Identifier: Apache-2.0
"""Pure: what is in trouble, told as problems, in sentences for operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta

from blazar.manager.leases.lifecycle import is_claimed
from blazar.manager.repair.conditions import explain_conditions
from blazar.model.base.clock import spell
from blazar.model.base.reasons import spell_count
from blazar.model.energy.book import EnergyTeller
from blazar.model.leases.lease import Event
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.managers.presence import KnownManager, ManagerState
from blazar.model.problems.problems import Problem, ProblemAction, ProblemKind
from blazar.model.problems.troubles import (
    CloudFinding,
    DeadLetters,
    FailedResource,
    KeptHost,
    LostManager,
    TroubledEvent,
    TroubledLease,
    TroubleLimits,
    Troubles,
)
from blazar.model.resources.resource import HOST, noun
from blazar.model.subscriptions.details import SubscriptionState

GIVEN_UP = frozenset(
    {
        EventType.START,
        EventType.BEFORE_END,
        EventType.END,
        EventType.CREATE,
        EventType.UPDATE,
        EventType.DELETE,
        EventType.CLEAN_UP,
        EventType.EVACUATE,
    }
)
"""Events that a lease can go on without; the others only look, or refuse a lease, and never take long."""

AT_ONCE = TroubleLimits().due
"""How long an event that was tried may be due before it is said that no manager takes it."""


def list_problems(troubles: Troubles, *, now: datetime, claim_ttl: timedelta) -> tuple[Problem, ...]:
    """Return the problems of what is in trouble, the oldest first."""
    found = [
        *(explain_event(troubled, now=now, claim_ttl=claim_ttl) for troubled in troubles.events),
        *map(explain_lease, troubles.leases),
        *map(explain_resource, troubles.resources),
        *map(explain_kept_host, troubles.kept),
        *map(explain_finding, troubles.findings),
        *map(explain_manager, troubles.managers),
        *map(explain_letters, troubles.letters),
        *explain_conditions(troubles.conditions, polls_before=now - TroubleLimits().failed),
    ]
    return tuple(sorted(found, key=lambda problem: (problem.since, problem.id)))


def explain_event(troubled: TroubledEvent, *, now: datetime, claim_ttl: timedelta) -> Problem:
    """Return the problem that an event in trouble is."""
    event, lease = troubled.event, troubled.lease
    return Problem(
        f"{ProblemKind.EVENT}:{event.id}",
        ProblemKind.EVENT,
        lease.since,
        f"{event.event_type} of lease {lease.name} {_state_event(event, now)}",
        tuple(describe_event(event, now, claim_ttl)),
        list_event_actions(event, lease, now=now, claim_ttl=claim_ttl),
        lease.id,
        lease.region,
    )


def _state_event(event: Event, now: datetime) -> str:
    if event.status is EventStatus.ERROR:
        return "has failed"
    if is_claimed(event, now):
        return "has been worked on for a long time"
    if event.attempts:
        return f"has failed {spell_count(event.attempts, 'time')}"
    if event.trouble_since is not None and event.due_at is not None and event.due_at > now - AT_ONCE:
        return "does not get on"
    return "is due, and nobody works on it"


def describe_event(event: Event, now: datetime, claim_ttl: timedelta) -> Iterator[str]:
    """Yield why an event is as it is, who works on it, and what comes next."""
    if event.reason:
        yield f"The last reason is: {event.reason}."
    if event.attempts:
        yield f"It has been tried {spell_count(event.attempts, 'time')} in vain."
    if event.due_at is None:
        yield "It is not tried again by itself."
    elif is_claimed(event, now):
        since = "" if event.claimed_at is None else f" since {spell(event.claimed_at)}"
        yield f"{describe_holder(event.claimed_by)} works on it{since}."
        yield f"Its claim lasts until {spell(event.due_at)}, unless it is renewed."
        if event.due_at > now + claim_ttl:
            yield "No claim lasts as long as that: a clock was wrong when it was written; release it."
    else:
        if event.claimed_by:
            yield f"{describe_holder(event.claimed_by)} has worked on it; its claim has ended, and was not renewed."
        if event.due_at > now:
            yield f"It is tried again at {spell(event.due_at)}."
        elif event.reason and event.due_at > now - AT_ONCE:
            yield f"It is tried again now, since {spell(event.due_at)}."
        else:
            yield f"It is due since {spell(event.due_at)}: no manager runs, or all their threads are busy."


_TOLD_TO_END = frozenset({ManagerState.DRAINING, ManagerState.STOPPING})


def list_lost_managers(known: Collection[KnownManager]) -> tuple[LostManager, ...]:
    """Return the managers that are not seen any more, and have not ended as they were told to.

    Those that were started again on their machines are none. Neither is one that was told to end, and whose work others
    have: it was killed before it had finished.
    """
    started = sorted((one for one in known if one.up), key=lambda one: one.facts.started_at)
    lost: list[LostManager] = []
    unseen = (one for one in known if not one.up and (one.work or one.facts.state not in _TOLD_TO_END))
    for gone in sorted(unseen, key=lambda one: one.seen_at):
        follows = (one for one in started if one.facts.host == gone.facts.host and one.facts.started_at >= gone.seen_at)
        if (successor := next(follows, None)) is not None:
            # A manager follows one other: of two that have crashed, one is still not there.
            started.remove(successor)
            continue
        lost.append(LostManager(gone.id, gone.facts.host, gone.facts.version, gone.seen_at, len(gone.work)))
    return tuple(lost)


def describe_holder(token: str | None) -> str:
    """Return who has made a claim, from its token: the machine and the process of a manager."""
    host, _, rest = (token or "").partition(":")
    pid = rest.partition(":")[0]
    return f"The manager on {host} with process id {pid}" if host and pid else "A manager"


def list_event_actions(
    event: Event, lease: TroubledLease, *, now: datetime, claim_ttl: timedelta
) -> tuple[ProblemAction, ...]:
    """Return what can be done about an event as it is now."""
    if is_claimed(event, now):
        far = event.due_at is not None and event.due_at > now + claim_ttl
        return (ProblemAction.RELEASE,) if far else ()
    if event.due_at is None:
        return (ProblemAction.RETRY,) if explain_no_retry(event, lease.status, lease.ends_at, now) is None else ()
    if event.event_type in GIVEN_UP and event.status is EventStatus.IN_PROGRESS:
        return (ProblemAction.RETRY, ProblemAction.GIVE_UP)
    return (ProblemAction.RETRY,)


def explain_no_retry(event: Event, status: LeaseStatus, ends_at: datetime, now: datetime) -> str | None:
    """Return why an event that is over cannot be tried again, as a sentence without its end; None if it can."""
    if event.status is not EventStatus.ERROR:
        return f"the event is {event.status}"
    if ends_at <= now:
        return "the lease has ended"
    wanted = {EventType.START: LeaseStatus.ERROR, EventType.BEFORE_END: LeaseStatus.ACTIVE}
    needed = next((state for kind, state in wanted.items() if event.event_type == kind), None)
    if needed is None:
        return f"a failed {event.event_type} cannot be repeated"
    return None if status is needed else f"the lease is {status}"


def explain_lease(lease: TroubledLease) -> Problem:
    """Return the problem that a lease in trouble is."""
    failed = lease.status is LeaseStatus.ERROR
    return Problem(
        f"{ProblemKind.LEASE}:{lease.id}",
        ProblemKind.LEASE,
        lease.since,
        f"Lease {lease.name} " + ("has failed" if failed else f"has been {lease.status} for a long time"),
        (
            f"It belongs to project {lease.project_id}.",
            f"It lasts from {spell(lease.starts_at)} to {spell(lease.ends_at)}.",
            "Its events say why: list the problems of this lease.",
        ),
        (ProblemAction.END,),
        lease.id,
        lease.region,
    )


def explain_resource(resource: FailedResource) -> Problem:
    """Return the problem that a failed resource is."""
    return Problem(
        f"{ProblemKind.RESOURCE}:{resource.label}",
        ProblemKind.RESOURCE,
        resource.failed_since,
        f"{resource.kind} {resource.name} has failed",
        (
            f"The monitor says: {resource.failure}." if resource.failure else "The monitor does not say why.",
            "Once that is mended, it is seen within minutes, or at once by checking again.",
        ),
        (ProblemAction.RECHECK,),
        region=resource.region,
        resource_id=f"{resource.kind}/{resource.external_id}",
    )


def explain_kept_host(host: KeptHost) -> Problem:
    """Return the problem that a host or pool is which stays on, since it did not wake."""
    what = noun(host.kind)
    named = host.name if host.kind == HOST else f"{host.name} --kind {host.kind}"
    return Problem(
        f"{ProblemKind.POWER}:{host.label}",
        ProblemKind.POWER,
        host.since,
        f"{what.capitalize()} {host.name} did not wake, and is kept on",
        (
            "It was switched on, and did not come up in time; its policy is keep, so that it is not switched off.",
            f"What was tried says: blazar power log {named}; look at its console and its switch.",
            f"Once it wakes as it should: blazar power set {named} --policy auto.",
            f"If it is to stay on for good: blazar power set {named} --adapter none.",
        ),
        region=host.region,
        resource_id=f"{host.kind}/{host.external_id}",
    )


def explain_manager(manager: LostManager) -> Problem:
    """Return the problem that a manager is which is not seen any more."""
    claims = "It has claims on {} that no other manager has taken over: none is up, or all are busy."
    return Problem(
        f"{ProblemKind.MANAGER}:{manager.id}",
        ProblemKind.MANAGER,
        manager.seen_at,
        f"The manager on {manager.host} is not seen any more",
        (
            "It has crashed, hangs, or does not reach the database: its log says why; start it again.",
            claims.format(spell_count(manager.claims, "event"))
            if manager.claims
            else "Other managers have taken over what it worked on.",
            "It is no problem any more once a manager has been started there, and is forgotten after a day.",
        ),
    )


def explain_letters(letters: DeadLetters) -> Problem:
    """Return the problem that messages are which the receiver of a subscription has refused for good."""
    whose = "an operator" if letters.project_id is None else f"project {letters.project_id}"
    idle = letters.state != SubscriptionState.ACTIVE
    return Problem(
        letters.problem_id,
        ProblemKind.DELIVERY,
        letters.at,
        f"The receiver of subscription {letters.subscription_id} has refused {spell_count(letters.number, 'message')}",
        (
            f"The subscription belongs to {whose}.",
            f"The first one is {letters.type} of {letters.subject}, at position {letters.first}.",
            f"The receiver says: {letters.reason}.",
            *((f"The subscription is {letters.state}: nothing is sent now.",) if idle else ()),
        ),
        (ProblemAction.RETRY, ProblemAction.DROP),
    )


_ACTIONS = {ProblemKind.DRIFT: (ProblemAction.MEND,), ProblemKind.CHARGE: (), ProblemKind.ENERGY: ()}
"""What can be done about findings of a kind, where that is not to end something."""


def explain_finding(finding: CloudFinding) -> Problem:
    """Return the problem that something found in a cloud is, in the ledger, or of a source of energy."""
    summary, *more = _describe_finding(finding)
    return Problem(
        finding.problem_id,
        finding.what,
        finding.since,
        summary,
        (*more, f"It was seen last at {spell(finding.seen_at)}."),
        _ACTIONS.get(finding.what, (ProblemAction.END,)),
        finding.lease_id,
        finding.region,
    )


_SILENT: Mapping[EnergyTeller, Callable[[str], tuple[str, ...]]] = {
    EnergyTeller.ADAPTERS: lambda why: (
        "Adapters do not tell what hosts draw",
        why,
        "Meanwhile hosts have what is told otherwise, or their rated power, and figures say so.",
        "blazar power list names the adapters of hosts; of these some tell no watts at all: where none is to tell any, "
        "set [energy] ask_adapters to false.",
    ),
    EnergyTeller.PROMETHEUS: lambda why: (
        "Prometheus does not tell what hosts draw",
        why,
        "What it still has of the last 24 hours is asked for once it answers; until then hosts have what is told "
        "otherwise, or their rated power, and figures say so.",
        "Try [energy] prometheus_query at [energy] prometheus_url, with the name of a host in the place of {host}.",
    ),
    EnergyTeller.CARBON: lambda why: (
        "The carbon curve does not go on",
        why,
        "Hours that are missing have the mean of that hour in the seven days before, and then none: figures say so.",
        "See to the file of [energy] carbon_file, or to the service of carbon_url; it is read again within the hour.",
    ),
}
"""What is said of a source of energy that is silent: the summary first. It is no problem any more once it tells."""


def _describe_finding(finding: CloudFinding) -> Iterator[str]:
    if finding.what is ProblemKind.CHARGE:
        yield f"What is charged for lease {finding.lease_id} is not what is on record of it"
        yield from (f"{line[:1].upper()}{line[1:]}." for line in finding.detail.splitlines())
        return
    if finding.what is ProblemKind.ENERGY:
        yield from _SILENT[EnergyTeller(finding.key)](f"{finding.detail[:1].upper()}{finding.detail[1:]}.")
        return
    named = f"reservation {finding.key} ({finding.resource_type})"
    if finding.what is ProblemKind.LEFTOVER:
        yield f"Something of {named} is left in the cloud, although its lease is over"
        tried = spell_count(finding.tries, "time")
        yield f"It has been cleaned up {tried} since; what is left may bear its mark, and not be ours."
        if finding.next_at is not None:
            yield f"The next clean-up begins at {spell(finding.next_at)}."
    elif finding.what is ProblemKind.UNKNOWN:
        yield f"Something of {named} is in the cloud, which is not on record"
        yield "It belongs to another Blazar, or to a lease that a restored backup does not have."
    else:
        yield f"What {named} has in the cloud is not as it should be"
        yield f"{finding.detail[:1].upper()}{finding.detail[1:]}."
