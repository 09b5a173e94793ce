# SPDX-License-Identifier: Apache-2.0
"""What the journal says of subscriptions: neither their secrets, nor more of their URLs than where these lead."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from blazar.model.journal.entries import LONGEST, WHY, FieldChange, JournalEntry, ObjectType, Subject, Verb
from blazar.model.journal.object_entries import Fields, compare_fields
from blazar.model.leases.requests import Actor
from blazar.model.subscriptions.details import Channel, Subscription, SubscriptionState


def tell_subscription(
    before: Subscription | None, after: Subscription, *, at: datetime, by: Actor | None
) -> JournalEntry | None:
    """Return that a subscription was made or changed; None if nothing has changed that is told."""
    changes = compare_fields({} if before is None else _list_fields(before), _list_fields(after))
    if before is None:
        return JournalEntry(_describe(after), at, Verb.CREATED, by, changes)
    if before.url != after.url and not any(change.field == "url" for change in changes):
        # The rest of a URL may be a secret.
        same = mask_url(after.url)
        changes = (*changes, FieldChange("url", same, same))
    return JournalEntry(_describe(after), at, Verb.CHANGED, by, changes) if changes else None


def tell_rewind(before: Subscription, position: int, *, at: datetime, by: Actor | None) -> JournalEntry:
    """Return that a receiver is told again what comes after a position."""
    changes = compare_fields({"position": before.position}, {"position": position})
    return JournalEntry(_describe(before), at, Verb.CHANGED, by, changes)


def tell_settling(
    before: Subscription, verb: Verb, *, dead: int, position: int, at: datetime, by: Actor | None, why: str | None
) -> JournalEntry:
    """Return what an operator did about messages that were refused; so many are left, and that is its place now."""
    was = {"dead": before.dead, "position": before.position}
    changes = compare_fields(was, {"dead": dead, "position": position})
    if why is not None:
        changes = (FieldChange(WHY, None, why[:LONGEST]), *changes)
    return JournalEntry(_describe(before), at, verb, by, changes)


def tell_disabling(before: Subscription, why: str | None, *, at: datetime) -> JournalEntry:
    """Return that the service has given a subscription up."""
    after = replace(before, state=SubscriptionState.DISABLED)
    changes = compare_fields({**_list_fields(before), "reason": None}, {**_list_fields(after), "reason": why})
    return JournalEntry(_describe(after), at, Verb.DISABLED, None, changes)


def tell_unsubscribing(before: Subscription, *, at: datetime, by: Actor | None) -> JournalEntry:
    """Return that a subscription was removed."""
    return JournalEntry(_describe(before), at, Verb.DELETED, by)


def mask_url(url: str | None) -> str | None:
    """Return where a URL leads: path, query and password may be secrets."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}/…"


def _describe(subscription: Subscription) -> Subject:
    """Return a subscription as the subject of an entry; it has no name but what it is for."""
    name = str(subscription.channel) if subscription.url is None else mask_url(subscription.url)
    return Subject(
        ObjectType.SUBSCRIPTION, subscription.id, name, subscription.project_id or None, subscription.user_id
    )


def _list_fields(subscription: Subscription) -> Fields:
    of_mail = {"digest": str(subscription.digest), "time_zone": subscription.time_zone}
    return {
        "channel": str(subscription.channel),
        "url": mask_url(subscription.url),
        "events": frozenset(subscription.events),
        "lease_id": subscription.lease_id,
        "batch": subscription.batch,
        **(of_mail if subscription.channel is Channel.MAIL else {}),
        "state": str(subscription.state),
        "secret_generation": subscription.generation,
    }
