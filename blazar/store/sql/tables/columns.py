# SPDX-License-Identifier: Apache-2.0
"""The columns of all tables: the types of their values, and how their keys and indexes are named.

Times are naive UTC in the database and aware UTC outside (``UtcTime``). Strings compare byte by byte on every database;
for MariaDB and MySQL the migrations set that (``migrations.mysql``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=NAMING)


def _aware(value: datetime | None) -> datetime | None:
    # ``replace`` takes five times as long, and long lists have hundreds of thousands of times.
    return None if value is None else datetime.combine(value, value.time(), UTC)


def _parse(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(f"{text}+00:00")


_MYSQL = ("mysql", "mariadb")

KNOWN_TIMES = 1024
"""How many of the last instants are remembered as they are written: a request writes the same few again and again."""


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An instant with microseconds; use ``UTC_TIME``."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        """Return the column type of a dialect: MySQL would store whole seconds by default."""
        if dialect.name not in _MYSQL:
            return dialect.type_descriptor(sa.DateTime())
        # The package loads all its drivers, and is imported only by those who use MySQL.
        from sqlalchemy.dialects.mysql import DATETIME

        return dialect.type_descriptor(DATETIME(fsp=6))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC, without its zone; a time that has none is a bug of ours."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no zone")
        return value.astimezone(UTC).replace(tzinfo=None)

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], Any]:
        """Remove the zone as above, once for each instant. Optimized for rows with many times, most of them alike."""
        write = super().bind_processor(dialect)
        assert write is not None
        return lru_cache(KNOWN_TIMES)(write)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        """Add the zone. Optimized for lists of thousands: one call per value instead of three with the usual hook."""
        if dialect.name == "sqlite":
            # It keeps times as text, which is read with the zone in one step.
            return _parse
        read = self.impl_instance.result_processor(dialect, coltype)
        if read is None:
            return _aware
        parse: Callable[[Any], Any] = read
        return lambda value: None if value is None else _aware(parse(value))


UTC_TIME = UtcTime()
"""One for all columns, so that they remember together."""


class _LongText(sa.types.TypeDecorator[str]):
    """A text that is not limited to 64 KiB on MySQL, as the usual one is there; use ``LongText``."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        """Return the column type of a dialect."""
        if dialect.name not in _MYSQL:
            # As it is: a descriptor of psycopg's dialect would be that of a VARCHAR.
            return self.impl_instance
        from sqlalchemy.dialects.mysql import MEDIUMTEXT

        return dialect.type_descriptor(MEDIUMTEXT())


LongText = _LongText()
Id = sa.String(36)
