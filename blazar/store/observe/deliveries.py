# SPDX-License-Identifier: Apache-2.0
"""What is still to be told of the journal, by web hook and by mail, in numbers: four statements, however much it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass
from blazar.model.subscriptions.details import Channel, SubscriptionState
from blazar.store.sql.tables import delivery_failures, journal, subscriptions

_S, _F, _J = subscriptions.c, delivery_failures.c, journal.c
_BEHIND = (_S.state == str(SubscriptionState.ACTIVE), _S.newest > _S.position)
# A receiver that has failed is left alone for a while.
_STATE = sa.case((_S.attempts > 0, "waiting"), else_="due")
_UNTOLD = (
    sa.select(_S.channel, _STATE.label("state"), sa.func.sum(_S.newest - _S.position))
    .where(*_BEHIND)
    .group_by(_S.channel, _STATE)
)
_DEAD = sa.select(_S.channel, sa.func.count()).join(delivery_failures, _F.subscription_id == _S.id).group_by(_S.channel)
_FIRST = sa.select(_J.at).where(_J.position > _S.position).order_by(_J.position).limit(1).correlate(subscriptions)
_FIRST_AT = sa.case(
    (_S.project_id.is_(None), _FIRST.scalar_subquery()),
    else_=_FIRST.where(_J.project_id == _S.project_id).scalar_subquery(),
)
_FIRSTS = sa.select(_S.channel, sa.type_coerce(_FIRST_AT, _J.at.type).label("at")).where(*_BEHIND).subquery().c
_OLDEST = sa.select(_FIRSTS.channel, sa.func.min(_FIRSTS.at, type_=_J.at.type)).group_by(_FIRSTS.channel)
_UNNUMBERED = sa.select(sa.func.count()).where(_J.position.is_(None))


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Entries that may still have to be told, and messages that were given up, by channel and state.

    ``oldest``: how long the first of those that may have to be told waits, by channel. ``unnumbered``: entries of the
    journal that have no position yet.
    """

    numbers: Mapping[tuple[str, ...], int]
    oldest: Mapping[str, timedelta]
    unnumbered: int


def read_deliveries(connection: Connection, now: datetime) -> Deliveries:
    """Return what is still to be told."""
    numbers: dict[tuple[str, ...], int] = {
        (str(channel), state): 0 for channel in Channel for state in ("due", "waiting", "dead")
    }
    numbers |= {(channel, state): int(number) for channel, state, number in connection.execute(_UNTOLD)}
    numbers |= {(channel, "dead"): int(number) for channel, number in connection.execute(_DEAD)}
    nothing = timedelta(0)
    oldest = dict.fromkeys(map(str, Channel), nothing)
    oldest |= {channel: max(nothing, now - at) for channel, at in connection.execute(_OLDEST) if at is not None}
    return Deliveries(numbers, oldest, connection.execute(_UNNUMBERED).scalar_one())
