# SPDX-License-Identifier: Apache-2.0
"""Instants as seconds since the epoch, computed by the database: to parse many dates costs more."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from blazar.calendar import timeline

instant_of = lru_cache(maxsize=65_536)(timeline.instant)
"""Returns seconds since the epoch as an instant. The same recur: most leases begin and end at full minutes."""


def seconds(dialect: str, instant: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return the whole seconds since the epoch of an instant, rounded down."""
    match dialect:
        case "postgresql":
            return sa.cast(sa.func.floor(sa.extract("epoch", instant)), sa.BigInteger())
        case "sqlite":
            # Without the fraction, which is rounded to milliseconds otherwise, up to the next second.
            return sa.cast(sa.func.strftime("%s", sa.func.substr(instant, 1, 19)), sa.BigInteger())
    epoch: sa.ColumnElement[datetime] = sa.literal_column("'1970-01-01'")
    return sa.func.timestampdiff(sa.text("SECOND"), epoch, instant, type_=sa.BigInteger())
