# SPDX-License-Identifier: Apache-2.0
"""The calls about problems: what operators see of them, and what they do about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from blazar.manager.common.runtime import Runtime
from blazar.manager.repair.drift import Drift
from blazar.manager.repair.ends import Ends
from blazar.manager.repair.events import EventRepairs
from blazar.manager.repair.explanations import list_lost_managers, list_problems
from blazar.manager.repair.settling import DeliveryRepairs, ResourceRepairs
from blazar.manager.requests.resource_lists import page_of
from blazar.model.base.clock import zulu
from blazar.model.base.errors import WrongState
from blazar.model.base.values import dataclass, replace
from blazar.model.managers.presence import KnownManager, list_conditions
from blazar.model.problems.problems import (
    Problem,
    ProblemAction,
    ProblemKind,
    ProblemPage,
    ProblemQuestion,
    Repair,
    RepairRequest,
    unknown_problem,
)
from blazar.model.problems.troubles import CloudFinding, TroubleLimits, Troubles
from blazar.store.subscriptions.dead_letters import MOST as MOST_SUBSCRIPTIONS

Act = Callable[[Troubles, RepairRequest], tuple[str, ...]]
"""What is done about the only trouble that is given; it returns sentences about what was done, or would be."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """What acts on problems, by what these are about."""

    events: EventRepairs
    ends: Ends
    drift: Drift
    deliveries: DeliveryRepairs
    resources: ResourceRepairs


class ProblemService:
    """Shows problems, which are computed for each request, and acts on them."""

    def __init__(self, runtime: Runtime, repairs: Repairs) -> None:
        self._runtime = runtime
        self._limits = TroubleLimits()
        self.events, self.ends = events, ends = repairs.events, repairs.ends
        drift, deliveries, resources = repairs.drift, repairs.deliveries, repairs.resources
        event, lease, found = ProblemKind.EVENT, ProblemKind.LEASE, ProblemKind.LEFTOVER
        sent = ProblemKind.DELIVERY
        self._acts: Mapping[tuple[ProblemKind, ProblemAction], Act] = {
            (event, ProblemAction.RETRY): lambda of, request: events.retry(*_event_of(of), request),
            (event, ProblemAction.RELEASE): lambda of, request: events.release(*_event_of(of), request),
            (event, ProblemAction.GIVE_UP): lambda of, request: events.give_up(*_event_of(of), request),
            (lease, ProblemAction.END): lambda of, request: ends.end_lease(of.leases[0].id, request),
            (found, ProblemAction.END): lambda of, request: ends.end_leftover(_finding_of(of), request),
            (ProblemKind.DRIFT, ProblemAction.MEND): lambda of, request: drift.mend(_finding_of(of), request),
            (ProblemKind.UNKNOWN, ProblemAction.END): lambda of, request: ends.end_unknown(_finding_of(of), request),
            (sent, ProblemAction.RETRY): lambda of, request: deliveries.retry(of.letters[0], request),
            (sent, ProblemAction.DROP): lambda of, request: deliveries.drop(of.letters[0], request),
            (ProblemKind.RESOURCE, ProblemAction.RECHECK): lambda of, request: resources.recheck(
                of.resources[0], request
            ),
        }

    def page(self, question: ProblemQuestion) -> ProblemPage:
        """Return a page of the problems, the oldest first, in eight statements. InvalidInput: region, marker."""
        if question.region is not None:
            self._runtime.regions.check_known([question.region])
        now = self._runtime.clock.now()
        troubles = self._runtime.store.troubles.read(now, self._limits, lease_id=question.lease_id)
        if question.lease_id is None:
            letters = self._runtime.store.dead_letters.read(now)
            more = troubles.more or len(letters) >= MOST_SUBSCRIPTIONS
            known = self._list_managers(now)
            lost, conditions = list_lost_managers(known), list_conditions(known)
            troubles = replace(troubles, managers=lost, conditions=conditions, letters=letters, more=more)
        every = list_problems(troubles, now=now, claim_ttl=self._runtime.settings.claim_ttl)
        found = [problem for problem in every if _is_wanted(problem, question)]
        page = question.page
        shown, following = page_of(
            found, page, value_of=lambda problem: zulu(problem.since), id_of=lambda problem: problem.id
        )
        return ProblemPage(tuple(shown), following, len(found) if page.with_count else None, troubles.more)

    def one(self, problem_id: str) -> Problem:
        """Return a problem, in five statements at most. NotFound if there is none, or no longer."""
        return self._read(problem_id)[0]

    def act(self, problem_id: str, action: ProblemAction, request: RepairRequest) -> Repair:
        """Do something about a problem, or say what would be done. NotFound, Conflict, WrongState, InvalidInput."""
        problem, troubles = self._read(problem_id)
        act = self._acts.get((problem.kind, action))
        if act is None:
            known = ", ".join(str(known) for kind, known in self._acts if kind is problem.kind)
            raise WrongState(f"{action} is no action on a problem of this kind; there is {known or 'none'}")
        return Repair(problem_id, action, request.dry_run, act(troubles, request))

    def check_books(self) -> tuple[str, ...]:
        """Return what is wrong in the books by themselves, as sentences."""
        return self._runtime.store.book_checks.find_faults(self._runtime.clock.now(), self._runtime.settings.claim_ttl)

    def _read(self, problem_id: str) -> tuple[Problem, Troubles]:
        now = self._runtime.clock.now()
        kind, region, key = parse_problem_id(problem_id)
        if kind in _OF_MANAGERS:
            known = self._list_managers(now)
            troubles = Troubles(managers=list_lost_managers(known), conditions=list_conditions(known))
        elif kind is ProblemKind.DELIVERY:
            troubles = Troubles(letters=self._runtime.store.dead_letters.read(now, key))
        else:
            troubles = self._runtime.store.troubles.read(now, self._limits, only=(kind, region, key))
        every = list_problems(troubles, now=now, claim_ttl=self._runtime.settings.claim_ttl)
        return _find(every, problem_id), troubles

    def _list_managers(self, now: datetime) -> tuple[KnownManager, ...]:
        return self._runtime.store.managers.all(now=now, claim_ttl=self._runtime.settings.claim_ttl)


_OF_MANAGERS = frozenset({ProblemKind.MANAGER, ProblemKind.LOG, ProblemKind.ENFORCEMENT, ProblemKind.POLL})
"""Kinds of problems that managers tell, or that they are."""


def parse_problem_id(problem_id: str) -> tuple[ProblemKind, str | None, str]:
    """Return the kind of a problem, its region if its id has one, and what it is about. NotFound for no such id."""
    kind, _, rest = problem_id.partition(":")
    if kind not in set(map(str, ProblemKind)) or not rest:
        raise unknown_problem(problem_id)
    if kind in _OF_MANAGERS:
        return ProblemKind(kind), None, rest
    if kind == ProblemKind.DELIVERY:
        # What it is about is the subscription; the position says which of its messages are meant.
        return ProblemKind.DELIVERY, None, rest.rpartition(":")[0]
    region, colon, key = rest.rpartition(":")
    return ProblemKind(kind), region if colon else None, key


def _find(problems: Iterable[Problem], problem_id: str) -> Problem:
    found = next((problem for problem in problems if problem.id == problem_id), None)
    if found is None:
        raise unknown_problem(problem_id)
    return found


def _event_of(troubles: Troubles) -> tuple[str, str]:
    """Return the lease and the event that are in trouble, by id."""
    (troubled,) = troubles.events
    return troubled.lease.id, troubled.event.id


def _finding_of(troubles: Troubles) -> CloudFinding:
    return troubles.findings[0]


def _is_wanted(problem: Problem, question: ProblemQuestion) -> bool:
    return (
        (not question.kinds or problem.kind in question.kinds)
        and question.region in (None, problem.region)
        and (question.older_than is None or problem.since < question.older_than)
    )
