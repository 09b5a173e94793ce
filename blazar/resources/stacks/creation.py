# SPDX-License-Identifier: Apache-2.0
"""Makes the stack of a reservation, and removes it whatever its state."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.stacks import (
    COMPLETE,
    CREATE,
    DELETE,
    FAILED,
    IN_PROGRESS,
    Stack,
    StackExists,
    StackPlan,
    StackRefused,
)
from blazar.model.base.errors import CloudRefused, Conflict, NotFound, RoleMissing
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.resources.contract.parameters import quote
from blazar.resources.contract.values import Done, NotYet, Progress, Task
from blazar.resources.floating_ips.registration import BLAZAR, reservation_tag
from blazar.resources.networks.teardown import Teardown
from blazar.resources.stacks.parameters import NAME, StackParameters
from blazar.resources.stacks.source import StackSource

LOG = logging.getLogger(__name__)

MOST_TRIES = 3
"""How often a stack is made, and how often its deletion is tried with nothing gained."""

SOON, LATER = timedelta(seconds=2), timedelta(seconds=15)

LONGEST = timedelta(seconds=30)
"""How often a stack is looked at at least while Heat makes it."""

MOST_LOOKS = 75
"""How often Heat is asked for a stack that is being deleted, ever more slowly: twenty minutes."""

_NETWORK = "OS::Neutron::Net"
_ID, _REASON, _TRIES, _LOOKS = "stack_id", "stack_reason", "tries", "looks"

Mask = Callable[[str], str]
"""Returns a sentence of Heat without what is secret."""


def plan_of(name: str, source: StackSource, timeout: int | None) -> StackPlan:
    """Return what Heat makes a stack of."""
    return StackPlan(name, source.template, source.texts, source.environment, source.parameters, timeout)


def _pause_before_look(looks: int) -> timedelta:
    """Return how long a stack that is being made is left alone after so many looks: an eighth of its time so far.

    Small stacks are there within seconds, large ones take an hour, and what it is late grows with what it took.
    """
    return min(LONGEST, SOON * 1.125 ** max(0, min(looks, 99) - 8))


@dataclass(frozen=True, slots=True)
class StackRecord:
    """What is recorded of a reservation: its stack, what has failed of the last one, and how often.

    ``looks`` is how often it was looked at while it was being made, or deleted.
    """

    id: str | None = None
    reason: str = ""
    tries: int = 0
    looks: int = 0

    @classmethod
    def of(cls, content: Content) -> StackRecord:
        """Return what a reservation keeps."""
        id_, tries, looks = (content.values.get(key) for key in (_ID, _TRIES, _LOOKS))
        return cls(
            id_ if isinstance(id_, str) else None,
            str(content.values.get(_REASON) or ""),
            tries if isinstance(tries, int) else 0,
            looks if isinstance(looks, int) else 0,
        )

    @property
    def content(self) -> Content:
        """Return it as a reservation keeps and shows it."""
        counts = {key: count for key, count in ((_TRIES, self.tries), (_LOOKS, self.looks)) if count}
        return Content({_ID: self.id, _REASON: self.reason or None, **counts})

    def add_failure(self, reason: str) -> StackRecord:
        """Return it after one more failure."""
        return replace(self, reason=reason[:1000], tries=self.tries + 1, looks=0)


class StackMaking:
    """Ensures the stacks of reservations. A stack is known by its recorded id, or else by its tag."""

    def __init__(self, cloud: Cloud) -> None:
        self._stacks = cloud.stacks
        self._teardown = Teardown(cloud.segments)

    def ensure_stack(self, task: Task, plan: Callable[[], StackPlan], mask: Mask) -> Progress:
        """Ensure that the stack is complete. One that fails is deleted and made again; CloudRefused after some."""
        record = StackRecord.of(task.reservation.cloud_ids)
        if task.reservation.status is ReservationStatus.ACTIVE:
            # What its users have deleted or changed is theirs.
            return Done()
        stack = self._find_stack(task, record)
        if stack is None:
            return self._make_stack(task, record, plan, mask)
        record = replace(record, id=stack.id)
        if stack.action == CREATE and stack.state not in (COMPLETE, FAILED):
            seen = replace(record, looks=record.looks + 1)
            return NotYet(_pause_before_look(record.looks), f"stack {stack.id} is being made", cloud_ids=seen.content)
        if stack.action not in (CREATE, DELETE) or (stack.action, stack.state) == (CREATE, COMPLETE):
            # An action of another kind is one of its users, who have it already.
            return Done(StackRecord(stack.id).content)
        if stack.state == FAILED:
            record = record.add_failure(mask(stack.reason))
            self._clear_networks(task, stack)
            self._begin_deletion(task, stack)
        if record.tries >= MOST_TRIES:
            # What is recorded stays below that, so that a change of the lease leads to one more try.
            times = "was made {} times, and failed" if stack.action == CREATE else "failed {} times, and stays"
            raise CloudRefused(f"the stack {times.format(record.tries)}: {record.reason}")
        return NotYet(SOON, f"stack {stack.id} has failed and is being deleted: {record.reason}", _WAIT, record.content)

    def check_name(self, task: Task, name: str) -> None:
        """Check that the project has no stack of a name. Conflict; those of leases may be on their way out."""
        for stack in self._stacks.stacks_named(task.lease.project_id, name):
            if BLAZAR not in stack.tags and stack.action != DELETE:
                raise Conflict(
                    f"{NAME} is {quote(name)}, and the project has a stack of that name; give another one, leave it "
                    f"out, or delete the stack"
                )

    def reservations_with_stacks(self, project_id: str) -> frozenset[str]:
        """Return the reservations that have stacks in a project; none where the service user has no role any more."""
        try:
            found = self._stacks.stacks_tagged(project_id, BLAZAR)
        except RoleMissing:
            return frozenset()
        there = [stack.tags for stack in found if (stack.action, stack.state) != (DELETE, IN_PROGRESS)]
        prefix = reservation_tag("")
        return frozenset(tag.removeprefix(prefix) for tags in there for tag in tags if tag.startswith(prefix))

    def progress_unchanged(self, task: Task) -> Progress:
        """Return that nothing is to be done."""
        return Done()

    def delete_stack(self, task: Task, mask: Mask) -> Progress:
        """Ensure that there is no stack of the reservation.

        What keeps one from going is cleared, a few times; then it is left, and reported: its servers, volumes and
        addresses go with the reservations that they are of.
        """
        record = StackRecord.of(task.reservation.cloud_ids)
        # Tries to make it do not count here.
        tries = record.tries if record.reason.startswith(_STAYS) else 0
        record = replace(record, tries=tries)
        try:
            stack = self._find_stack(task, record)
            if stack is None:
                return Done(StackRecord(record.id).content)
            record = replace(record, id=stack.id, looks=record.looks if stack.action == DELETE else 0)
            if stack.action == DELETE and stack.state != FAILED and record.looks < MOST_LOOKS:
                pause = SOON * min(15, 1 + record.looks // 5)
                seen = replace(record, looks=record.looks + 1)
                return NotYet(pause, f"stack {stack.id} is being deleted", cloud_ids=seen.content)
            if stack.action == DELETE:
                # One that was left halfway by a Heat that died has no reason, and stays so until it is told again.
                record = record.add_failure(f"{_STAYS}: {mask(stack.reason) or 'it is being deleted for too long'}")
                self._clear_networks(task, stack)
            self._begin_deletion(task, stack)
        except RoleMissing as error:
            record = record.add_failure(f"{_STAYS}: {error.message}")
        if record.tries > MOST_TRIES:
            LOG.error(
                "Stack %s of reservation %s in project %s stays; delete it: %s",
                record.id,
                task.reservation.id,
                task.lease.project_id,
                record.reason,
            )
            return Done(record.content)
        reason = record.reason or "the stack is being deleted"
        return NotYet(LATER if record.tries else SOON, reason, _WAIT, record.content)

    def _make_stack(self, task: Task, record: StackRecord, plan: Callable[[], StackPlan], mask: Mask) -> NotYet:
        tags = frozenset({BLAZAR, reservation_tag(task.reservation.id)})
        try:
            id_ = self._stacks.begin_stack(task.lease.project_id, plan(), tags=tags)
        except StackRefused as error:
            raise CloudRefused(mask(error.message)).because(error.cause) from None
        except StackExists:
            # That of an earlier lease, or of an earlier try, keeps its name for a moment; any other can be renamed.
            return NotYet(
                LATER,
                "the project has a stack of that name; delete it, or wait",
                _WAIT,
                replace(record, id=None).content,
            )
        return NotYet(SOON, f"stack {id_} is being made", cloud_ids=replace(record, id=id_).content)

    def _find_stack(self, task: Task, record: StackRecord) -> Stack | None:
        """Return the stack that is there."""
        project = task.lease.project_id
        found = None if record.id is None else self._stacks.stack(project, record.id)
        if found is None:
            marked = self._stacks.stacks_tagged(project, reservation_tag(task.reservation.id))
            # Users can copy tags to stacks of their own, but no two stacks of a project have one name.
            name = StackParameters.of(task.reservation.parameters).name(task.reservation.id)
            found = next((stack for stack in marked if stack.name == name), None)
        # Heat keeps what it has deleted for a while.
        return None if found is not None and (found.action, found.state) == (DELETE, COMPLETE) else found

    def _begin_deletion(self, task: Task, stack: Stack) -> None:
        with suppress(NotFound):
            self._stacks.begin_stack_deletion(task.lease.project_id, stack.id)

    def _clear_networks(self, task: Task, stack: Stack) -> None:
        """Clear the networks of a stack of what users have built on them."""
        if stack.action != DELETE:
            return
        for stack_resource in self._stacks.stack_resources(task.lease.project_id, stack.id):
            if stack_resource.type == _NETWORK and stack_resource.physical_id:
                with suppress(NotFound, Conflict):
                    self._teardown.clear_network(stack_resource.physical_id)


_STAYS = "it could not be deleted"
_WAIT = Cause(ReasonCode.RESOURCE_NOT_READY)
