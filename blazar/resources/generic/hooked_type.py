# SPDX-License-Identifier: Apache-2.0
"""What resource types have in common whose resources are handed over and taken back by hooks, and its options.

The receiver of a hook cannot be asked what a reservation has. So everything is derived from what is stored: which
resources the reservation has, and which it had before (``reads_history``). A resource without a hook is promised, and
nobody is called.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol, Self

from oslo_config import cfg

from blazar.clouds.hooks.options import HOOK_OPTIONS, SECTION
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.hooks import HookAnswer, Hooks
from blazar.model.base.errors import CloudRefused, Conflict, InvalidInput
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.requirements import Requirement, matches, property_keys
from blazar.model.resources.resource import Resource, noun
from blazar.resources.contract.actions import action_of
from blazar.resources.contract.parameters import MIN, divided_bounds
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Action, Done, NotYet, Progress, Task, Unusable, until_start
from blazar.resources.generic import hook_messages
from blazar.resources.generic.hook_calls import call_hooks
from blazar.resources.generic.parameters import HOOK_URL, MAX, PROPERTIES

LOG = logging.getLogger(__name__)


class Wanted(Protocol):
    """What a reservation asks for: ``least`` to ``most`` whole resources, or an ``amount`` of the units of one."""

    @property
    def least(self) -> int | None:
        """Return the smallest number of whole resources."""

    @property
    def most(self) -> int | None:
        """Return the largest number."""

    @property
    def amount(self) -> int | None:
        """Return the number of units; None for whole resources."""

    @property
    def before_end(self) -> str:
        """Return the action before the end, as stated."""

    @property
    def requirement(self) -> Requirement:
        """Return what a resource must have."""


class Hooked(ResourceType, ABC):
    """The common part of such types: demands, and the calls."""

    asked_for: frozenset[str]
    """Properties that requirements may name, beside those that operators set; never the URL of a hook."""
    advice: str
    """What to ask for instead of a property that no resource has."""
    reads_history = True

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of generic resources."""
        return cls(cloud.hooks, before_end=conf[SECTION].before_end)

    def __init__(self, hooks: Hooks, *, before_end: str = "") -> None:
        self._hooks = hooks
        self._before_end = before_end

    @abstractmethod
    def wanted(self, parameters: Content) -> Wanted:
        """Return what a reservation asks for."""

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a resource must have."""
        return self.wanted(parameters).requirement

    def action(self, parameters: Content) -> Action:
        """Return the action before the end."""
        return action_of(self.wanted(parameters).before_end, self._before_end)

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters with ``min`` and ``max`` divided; None if it has units of one resource."""
        return divided_bounds(parameters, kept, gone) if MIN in parameters.values else None

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: in use it was handed over to the present one."""
        return until_start(task, "was handed over to its project")

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for whole resources. InvalidInput."""
        wanted = self.wanted(parameters)
        allowed = self.asked_for | (known - {HOOK_URL})
        if unknown := sorted(property_keys(wanted.requirement) - allowed):
            raise InvalidInput(
                f"{PROPERTIES} asks for {', '.join('$' + key for key in unknown)}, which no {noun(self.kind)} has; "
                f"use {self.advice}",
                code="unknown_property",
                at=f"/{PROPERTIES}",
            )
        return Demand(
            kind=self.kind,
            min_count=wanted.amount or wanted.least or 1,
            max_count=wanted.amount or wanted.most or 1,
            requirement=wanted.requirement,
        )

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; what is in use stays. Conflict."""
        fresh, held = self.demand(parameters, known=known), frozenset(task.counts)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=held)
        before, after = self.wanted(task.reservation.parameters), self.wanted(parameters)
        misfits = sorted(r.name for r in task.resources if not matches(fresh.requirement, r.properties))
        if misfits and after.requirement != before.requirement:
            raise Conflict(
                f"{PROPERTIES} cannot be changed to this: reservation {task.reservation.id} uses {', '.join(misfits)}, "
                f"which would no longer match",
                at=f"/{PROPERTIES}",
            )
        count = max(1, sum(task.counts.values()))
        if after.amount is not None:
            if after.amount == before.amount:
                # New dates alone add no units, even if some have failed.
                return replace(fresh, min_count=count, max_count=count, kept=dict(task.counts))
            return replace(fresh, kept={id_: min(n, after.amount) for id_, n in task.counts.items()})
        if (after.least, after.most) == (before.least, before.most):
            return replace(fresh, min_count=count, max_count=count, pinned=held)
        if fresh.max_count < len(held):
            raise Conflict(
                f"{MAX} cannot be {fresh.max_count}: reservation {task.reservation.id} uses {len(held)} resources, and "
                f"which of them to take back cannot be chosen; end the lease, or keep them",
                at=f"/{MAX}",
            )
        return replace(fresh, min_count=max(fresh.min_count, len(held)), pinned=held)

    def start(self, task: Task) -> Progress:
        """Ensure that the project has these resources, or units of them, and none that it had before."""
        return self._hand_over(task)

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure the resources from before a change, which are all but ``surplus``; nothing before the start."""
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return Done()
        before = {resource.id for resource in task.former}
        task = replace(task, former=(*task.former, *(r for r in surplus if r.id not in before)))
        try:
            return self._hand_over(task, undoing=True)
        except Unusable as lost:
            # A retry would not help: the lease goes on with the rest.
            LOG.warning("Reservation %s continues without failed resources: %s", task.reservation.id, lost)
            return self._take_back_former(task, undoing=True) or Done()

    def _hand_over(self, task: Task, *, undoing: bool = False) -> Progress:
        tally = call_hooks(self._hooks, task.resources, lambda r: hook_messages.start_message(task, r, undoing=undoing))
        if tally.unusable:
            raise Unusable(tally.unusable)
        tally.raise_failure()
        former = self._take_back_former(task, undoing=undoing)
        waits = [wait for wait in (tally.not_yet, former) if wait is not None]
        if waits:
            return NotYet(min(wait.after for wait in waits), "; ".join(wait.reason for wait in waits))
        return Done(Content({"resources": [_public_fields(resource, answer) for resource, answer in tally.done]}))

    def before_end(self, task: Task) -> Progress:
        """Announce the end to the hook of each resource, unless the action is none."""
        if self.action(task.reservation.parameters) is Action.NONE:
            return Done()
        tally = call_hooks(self._hooks, task.resources, lambda r: hook_messages.before_end_message(task, r))
        tally.failures += [CloudRefused(reason) for reason in tally.unusable.values()]
        tally.raise_failure()
        return tally.not_yet or Done()

    def end(self, task: Task) -> Progress:
        """Ensure that the project has none of the resources, those included that it had before.

        A refusal raises, so that the end is retried, and the resources stay allocated until it succeeds.
        """
        if _never_started(task):
            return Done()
        tally = call_hooks(self._hooks, (*task.resources, *task.former), lambda r: hook_messages.end_message(task, r))
        tally.failures += [CloudRefused(reason) for reason in tally.unusable.values()]
        tally.raise_failure()
        return tally.not_yet or Done()

    def _take_back_former(self, task: Task, *, undoing: bool) -> NotYet | None:
        """Ensure that the project has none of the resources of before; None if so.

        A resource that has failed, and does not answer, keeps nobody from using the others: it is taken back at the
        end of the reservation.
        """
        tally = call_hooks(
            self._hooks, task.former, lambda r: hook_messages.replacement_message(task, r, undoing=undoing)
        )
        failed = {resource.id for resource in task.former if resource.failure is not None}
        tally.failures += [CloudRefused(reason) for id_, reason in tally.unusable.items() if id_ not in failed]
        for error in tally.failures:
            LOG.warning("Reservation %s of lease %s: %s", task.reservation.id, task.lease.id, error.message)
        if failed < {resource.id for resource in task.former}:
            tally.raise_failure()
        return tally.not_yet


def _never_started(task: Task) -> bool:
    """Return whether no manager has ever begun the start of the lease: then nothing was handed over."""
    if task.lease.status is LeaseStatus.STARTING or task.reservation.status is ReservationStatus.ACTIVE:
        return False
    start = task.lease.event(EventType.START)
    return start is not None and start.updated_at is None


def _public_fields(resource: Resource, answer: HookAnswer) -> dict[str, object]:
    """Return what users see of a resource that they have."""
    shown: dict[str, object] = {"id": resource.external_id, "name": resource.name}
    return shown if answer.content is None else {**shown, "answer": dict(answer.content)}


GENERIC_OPTIONS: list[cfg.Opt] = [
    *HOOK_OPTIONS,
    cfg.StrOpt(
        "before_end",
        default="",
        choices=[
            ("", "the same as notification"),
            ("none", "nothing"),
            ("notification", "a notification, and a call of the hook of each resource"),
            ("default", "the same as notification"),
            ("email", "the same as notification; a listener may send the mail"),
        ],
        help="Action before the end of a reservation whose request sets no action, or 'default'.",
    ),
]
