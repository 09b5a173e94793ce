# SPDX-License-Identifier: Apache-2.0
"""Lending: hosts of a lease in use that it does not use are open to preemptible servers meanwhile.

Which hosts are lent is decided from who uses which, purely. Hosts are kept back, so that who holds the lease finds room
while lent ones are taken back with the notice that preemptible servers get.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass, field


@dataclass(frozen=True, slots=True)
class LendingRules:
    """Hosts not used for ``idle_after`` are lent, but for so many that are kept (None: all), and back in ``notice``."""

    keep: int | None
    idle_after: timedelta
    notice: timedelta


@dataclass(frozen=True, slots=True)
class LentHost:
    """A host of a reservation that is lent, since when; ``ends_at`` is when its servers go, if that was told."""

    reservation_id: str
    resource_id: int
    since: datetime
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LendingPlan:
    """Which hosts are to be lent from now on, and which are to be back at an instant, by calendar id."""

    lent: tuple[int, ...] = ()
    recalled: Mapping[int, datetime] = field(default_factory=dict)


def plan_lending(
    hosts: Collection[int],
    idle_since: Mapping[int, datetime],
    lent: Mapping[int, LentHost],
    rules: LendingRules,
    *,
    now: datetime,
    until: datetime,
) -> LendingPlan:
    """Return which of the hosts of a reservation are lent next, and which taken back.

    ``idle_since`` has those of its ``hosts`` that it does not use, ``lent`` those that are lent, or being taken back.
    It lends up to ``until``, less the notice: then all are back.
    """
    lendable = rules.keep is not None and now + rules.notice < until
    back = min(now + rules.notice, max(until, now))
    opened = [host for host in lent.values() if host.ends_at is None]
    recalled = {
        host.resource_id
        for host in opened
        if not lendable or host.resource_id not in hosts or host.resource_id not in idle_since
    }
    coming = sum(1 for id_, host in lent.items() if host.ends_at is not None and id_ in idle_since)
    spare = sorted((id_ for id_ in idle_since if id_ not in lent), key=lambda id_: (idle_since[id_], id_))
    keep = rules.keep or 0
    missing = keep - len(spare) - coming
    # The last that were lent: those on whose servers least work is lost.
    others = sorted(
        (host for host in opened if host.resource_id not in recalled), key=lambda host: (host.since, host.resource_id)
    )
    recalled |= {host.resource_id for host in others[max(0, len(others) - missing) :]} if missing > 0 else set()
    surplus = max(0, len(spare) + coming - keep) if lendable and not recalled else 0
    ripe = [id_ for id_ in spare if idle_since[id_] <= now - rules.idle_after]
    return LendingPlan(tuple(ripe[:surplus]), dict.fromkeys(sorted(recalled), back))
