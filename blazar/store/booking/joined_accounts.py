# SPDX-License-Identifier: Apache-2.0
"""What is known of two leases that become one, or of one that becomes two: when what each has was booked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from blazar.model.billing import accounts
from blazar.model.billing.accounts import LeaseAccount
from blazar.model.billing.following import Following, list_following
from blazar.model.billing.uses import LeaseFacts
from blazar.model.leases.states import EndReason
from blazar.store.booking.allocation_writes import note_booked_at, note_resources_booked_at
from blazar.store.booking.commit import Commit


def keep_booked_at(
    connection: Connection, commit: Commit, found: Mapping[str, LeaseAccount], facts: Mapping[str, LeaseFacts]
) -> None:
    """Write of two leases that become one when what is charged otherwise than the rest was booked."""
    merged = {write.after.id for write in commit.leases if write.after.end_reason is EndReason.MERGED}
    if not merged or len(found) < 2:
        return
    if not commit.follows:
        younger = accounts.find_younger(*found.values())
        note_booked_at(connection, younger.lease_id, choose_noted(younger, facts))
        return
    first, second = sorted(found.values(), key=lambda account: account.lease_id in merged)
    for one in list_follows(first, second, commit.follows, facts):
        if one.noted_at is not None and one.noted_at != one.booked_at:
            note_resources_booked_at(connection, one, one.noted_at)


def list_follows(
    first: LeaseAccount, second: LeaseAccount, follows: Mapping[str, str], facts: Mapping[str, LeaseFacts]
) -> Sequence[Following]:
    """Return how what two leases have goes on, where one follows the other."""
    had, comes = facts[first.lease_id].uses, facts[second.lease_id].uses
    booked = [use.booked_at for use in (*had, *comes) if use.booked_at is not None]
    return list_following(had, comes, follows, min(first.first_booked_at, second.first_booked_at, *booked))


def choose_noted(younger: LeaseAccount, facts: Mapping[str, LeaseFacts]) -> datetime:
    """Return by when all counts as booked that the younger of two leases was booked with."""
    return accounts.choose_noted_at(younger, {use.booked_at for one in facts.values() for use in one.uses})


def find_origins(part: LeaseFacts, was: LeaseFacts) -> Mapping[str, str]:
    """Return of which reservation of a lease each one of a part of it was: it has the same resources of it."""
    had = {(use.resource_id, use.booked_at): use.reservation_id for use in was.uses if use.is_live}
    return {use.reservation_id: had[key] for use in part.uses if (key := (use.resource_id, use.booked_at)) in had}
