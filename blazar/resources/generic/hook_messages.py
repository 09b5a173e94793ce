# SPDX-License-Identifier: Apache-2.0
"""Messages to hooks: their ids and contents. Pure.

The id of a message is ``RESERVATION:RESOURCE:ACTION:GENERATION``. All of it is derived from what is stored, so that it
is the same at every retry, by any manager, also after a crash. The generation is another one if the same action is
needed again: the resource was replaced and is back, the number of units has changed, a change of the lease was undone,
or a later end is announced. There is one last message, ``final``, to every resource that a reservation ever had.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from blazar.clouds.ports.hooks import HookAction, HookCall
from blazar.model.base.clock import zulu
from blazar.model.base.json_text import Json
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType
from blazar.model.resources.resource import Resource
from blazar.resources.contract.actions import find_request_time
from blazar.resources.contract.values import Task
from blazar.resources.generic.parameters import AMOUNT, CAPACITY, CLASS, HOOK_URL

TOLD = (CLASS, "device_type", "device_driver", "uid")
"""Attributes of a resource that its hook is told."""

NOBODY = "none"
"""Stands for the reservation in the id of a question about health."""


def start_message(task: Task, resource: Resource, *, undoing: bool = False) -> HookCall:
    """Return the message that hands a resource over, or changes the number of its units."""
    amount = amount_of(task, resource)
    generation = f"{task.turns.get(resource.id, 1)}-{amount}{_change_key(task.lease, undoing)}"
    return _make_message(task, resource, HookAction.START, generation, _due_time(task.lease, EventType.START), amount)


def replacement_message(task: Task, resource: Resource, *, undoing: bool = False) -> HookCall:
    """Return the message that takes a resource back which the reservation has no more, while the lease goes on."""
    change = task.lease.event(EventType.UPDATE)
    at = _due_time(task.lease, EventType.START) if change is None else change.created_at
    generation = f"{task.turns.get(resource.id, 1)}{_change_key(task.lease, undoing)}"
    return _make_message(task, resource, HookAction.END, generation, at, 0)


def end_message(task: Task, resource: Resource) -> HookCall:
    """Return the message that takes a resource back at the end of the reservation."""
    deletion = task.lease.event(EventType.DELETE)
    at = _due_time(task.lease, EventType.END) if deletion is None else deletion.created_at
    return _make_message(task, resource, HookAction.END, "final", at, 0)


def before_end_message(task: Task, resource: Resource) -> HookCall:
    """Return the message that announces the end."""
    due = find_request_time(task) or _due_time(task.lease, EventType.BEFORE_END)
    generation = f"{task.turns.get(resource.id, 1)}-{int(due.timestamp())}"
    return _make_message(task, resource, HookAction.BEFORE_END, generation, due, amount_of(task, resource))


def health_question(resources: Sequence[Resource], at: datetime) -> HookCall:
    """Return the question about the health of resources with one hook; its id is that of the first."""
    message_id = f"{NOBODY}:{resources[0].external_id}:health:{int(at.timestamp())}"
    things = tuple(resource.external_id for resource in resources)
    data = {"resources": [_describe_resource(resource) for resource in resources]}
    return HookCall(things, url_of(resources[0]), message_id, HookAction.HEALTH, at, data)


def amount_of(task: Task, resource: Resource) -> int:
    """Return the number of units that a reservation has of a resource: all, if it has the whole resource."""
    if AMOUNT not in task.reservation.parameters.values:
        return int(resource.attributes.get(CAPACITY) or 1)
    return task.counts.get(resource.id, 0)


def url_of(resource: Resource) -> str:
    """Return the URL of the hook of a resource; empty if it has none."""
    return str(resource.attributes.get(HOOK_URL) or "")


def _make_message(
    task: Task, resource: Resource, action: HookAction, generation: str, at: datetime, amount: int
) -> HookCall:
    lease, reservation = task.lease, task.reservation
    word = action.value.partition(".")[2]
    data = {
        "reservation_id": reservation.id,
        "lease_id": lease.id,
        "project_id": lease.project_id,
        "user_id": lease.user_id,
        "start": zulu(lease.window.start),
        "end": zulu(lease.window.end),
        "amount": amount,
        "resource": _describe_resource(resource),
    }
    message_id = f"{reservation.id}:{resource.external_id}:{word}:{generation}"
    return HookCall((resource.external_id,), url_of(resource), message_id, action, at, data)


def _change_key(lease: Lease, undoing: bool) -> str:
    """Return which change of a lease the generation belongs to.

    A change may have taken a resource back before it was undone, and what undoes it must hand that over once more: so
    a change, its undo and the next change are told apart, while every attempt of each has the same generation.
    """
    change = lease.event(EventType.UPDATE)
    if change is None:
        return "-u" if undoing else ""
    undone = 0 if change.saved_state is None else change.saved_state.undone
    microseconds = change.created_at.timestamp() * 10**6
    return f"-{microseconds:.0f}-{undone}{'u' if undoing else ''}"


def _describe_resource(resource: Resource) -> Json:
    described = {name: resource.attributes[name] for name in TOLD if name in resource.attributes}
    return {"id": resource.external_id, "name": resource.name, **described}


def _due_time(lease: Lease, event_type: EventType) -> datetime:
    event = lease.event(event_type)
    if event is not None and event.time is not None:
        return event.time
    return lease.window.start if event_type is EventType.START else lease.window.end
