# SPDX-License-Identifier: Apache-2.0
"""Messages of the outbox: made with a change of a lease, and written in its transaction.

A message exists exactly when the change does, also after a crash, and however many attempts its delivery takes, it
delays no lease. A change that a filter must accept is told before it is made, by a message that is held.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from blazar.context import check_change, scope
from blazar.enforcement import FilterNotification, Occasion, stored
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import make_view
from blazar.model.base.errors import BlazarError
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.use.resource_hours import HELD_BY_REQUEST, OutboxMessage

LOG = logging.getLogger(__name__)


def make_messages(
    runtime: Runtime,
    occasion: Occasion,
    lease: Lease,
    allocations: Collection[Allocation],
    *,
    by: Actor | None = None,
    before: tuple[Lease, Collection[Allocation]] | None = None,
) -> tuple[OutboxMessage, ...]:
    """Return the outbox messages to write with a change; none if no filter listens to the occasion.

    ``before`` is the lease before the change, with its allocations then; ``by`` is the user who asked.
    """
    if not runtime.enforcement.listens_to(occasion):
        return ()
    now = runtime.clock.now()
    context = runtime.enforcement.identity.make_context(lease, by)
    was = make_view(runtime.store, *before) if before else None
    notification = FilterNotification(occasion, context, now, make_view(runtime.store, lease, allocations), was)
    return (OutboxMessage(str(uuid.uuid4()), lease.id, stored.dump(notification), created_at=now, due_at=now),)


def plan_messages(
    runtime: Runtime,
    occasion: Occasion,
    lease: Lease,
    allocations: Collection[Allocation],
    *,
    by: Actor,
    before: tuple[Lease, Collection[Allocation]] | None = None,
) -> tuple[OutboxMessage, ...]:
    """Return the outbox messages of a planned change: held, if a filter must accept the change first.

    A held message is written first, on its own; then it is sent (``call_commit_hooks``), and the result is written with
    the lease. A manager that undoes the request in between, this one or another, finds the message and sends a
    reversal of what may have been accepted (``make_reversals``).
    """
    messages = make_messages(runtime, occasion, lease, allocations, by=by, before=before)
    if not runtime.enforcement.needs_acceptance(occasion, lease.project_id):
        return messages
    return tuple(replace(message, due_at=HELD_BY_REQUEST) for message in messages)


def call_commit_hooks(runtime: Runtime, held: Collection[OutboxMessage]) -> tuple[OutboxMessage, ...]:
    """Send held messages that are written; return what to write of them with the change.

    UsageDenied, EnforcementUnavailable: then the change must not be made.
    """
    return tuple(_commit(runtime, replace(message, stored=True)) for message in held)


def _commit(runtime: Runtime, message: OutboxMessage) -> OutboxMessage:
    notification = stored.parse(message.content)
    try:
        # A manager that was held up sends nothing about a lease: another manager may be undoing the change.
        seconds = check_change()
    except BlazarError as error:
        dropped = replace(message, reason=error.message, finished=True)
        runtime.store.outbox.settle(dropped, at=runtime.clock.now())
        raise
    limit = None if seconds is None else timedelta(seconds=seconds)
    with scope(request_id=f"req-{message.id}", limit=limit):
        outcome = runtime.enforcement.call_commit_hooks(notification)
    now = runtime.clock.now()
    if outcome.error is None and not outcome.later:
        return replace(message, delivered_to=outcome.known, finished=True)
    if outcome.error is None:
        reason = "; ".join(f"{name}: {reason}" for name, reason in outcome.later.items())
        LOG.warning(
            "%s of lease %s was not delivered to all filters, retrying: %s",
            notification.occasion,
            message.lease_id,
            reason,
        )
        due_at = now + runtime.settings.first_retry
        return replace(message, delivered_to=outcome.known, reason=reason, attempts=1, due_at=due_at)
    nothing_to_do = tuple(
        name for name in runtime.enforcement.filters_listening(notification.occasion) if name not in outcome.known
    )
    reason = outcome.error.message
    LOG.warning("%s of lease %s was rejected or not answered: %s", notification.occasion, message.lease_id, reason)
    runtime.store.outbox.settle(
        replace(message, delivered_to=nothing_to_do, reason=reason, finished=not outcome.known), at=now
    )
    raise outcome.error


def make_reversals(runtime: Runtime, lease: Lease) -> tuple[OutboxMessage, ...]:
    """Return the outbox messages of an undone request, with reversals for filters that may have accepted it."""
    if not any(runtime.enforcement.listens_to(occasion) for occasion in (Occasion.CREATED, Occasion.UPDATED)):
        return ()
    written: list[OutboxMessage] = []
    for held in runtime.store.outbox.load_outstanding(lease.id):
        if held.is_held_by_request:
            written.append(replace(held, finished=True, reason=held.reason or "undone"))
            written += _make_reversal(runtime, held, lease)
    return tuple(written)


def _make_reversal(runtime: Runtime, held: OutboxMessage, lease: Lease) -> tuple[OutboxMessage, ...]:
    notification = stored.parse(held.content)
    now = runtime.clock.now()
    if notification.occasion is Occasion.CREATED:
        # As if the lease had never existed: nothing of it was used.
        view = replace(notification.view, lease=replace(notification.view.lease, status=LeaseStatus.DELETING))
        reversal = FilterNotification(Occasion.ENDED, notification.context, min(now, view.window.start), view)
    elif lease.status is LeaseStatus.DELETING or notification.before is None:
        # The message of its end follows.
        return ()
    else:
        reversal = replace(notification, at=now, view=notification.before, before=notification.view)
    if not runtime.enforcement.listens_to(reversal.occasion):
        return ()
    content = stored.dump(reversal)
    due_at = now + runtime.settings.outbox_settling
    LOG.warning("%s of lease %s may have been accepted; a reversal is sent", notification.occasion, lease.id)
    return (
        OutboxMessage(
            str(uuid.uuid4()),
            lease.id,
            content,
            now,
            due_at,
            delivered_to=held.delivered_to,
            reason=f"undone: {held.reason or ''}",
        ),
    )


def make_end_messages(runtime: Runtime, before: Lease, after: Lease) -> tuple[OutboxMessage, ...]:
    """Return the outbox messages for the write that begins the end of a lease, by its event or by a deletion.

    Only the first such write finds the end event UNDONE. A lease whose creation did not finish has no end: no
    filter was notified that it was granted.
    """
    end = before.event(EventType.END)
    begun = end is None or end.status is not EventStatus.UNDONE
    ungranted = before.status in (LeaseStatus.CREATING, LeaseStatus.WAITING, LeaseStatus.TIMED_OUT)
    if begun or ungranted or not runtime.enforcement.listens_to(Occasion.ENDED):
        return ()
    return make_messages(runtime, Occasion.ENDED, after, runtime.store.calendar.of_lease(after.id))
