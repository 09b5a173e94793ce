# SPDX-License-Identifier: Apache-2.0
"""Options of ``[database]``, with the names of oslo.db."""

from __future__ import annotations

from oslo_config import cfg

from blazar.calendar.kept import KEPT_USES

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        sample_default="postgresql+psycopg://blazar:PASSWORD@HOST/blazar",
        help="SQLAlchemy URL of the database: postgresql+psycopg://blazar:PASSWORD@HOST/blazar, or mysql+pymysql://… "
        "for MariaDB and MySQL.",
    ),
    cfg.IntOpt(
        "max_pool_size",
        default=20,
        min=1,
        help="Number of database connections that a process keeps open; it may briefly open max_overflow more.",
    ),
    cfg.IntOpt(
        "max_overflow",
        default=20,
        min=0,
        help="Number of connections that a process may open for a while, beyond max_pool_size.",
    ),
    cfg.IntOpt(
        "pool_timeout",
        default=30,
        min=1,
        help="Seconds that a request waits for a connection when all of them are in use; then it is answered with 503.",
    ),
    cfg.IntOpt(
        "max_retries",
        min=-1,
        help="How often a starting manager looks again for its database if that cannot be reached, every 2 seconds; "
        "-1 for as often as it takes. Unset: for [manager] startup_wait seconds.",
    ),
    cfg.IntOpt(
        "connection_recycle_time",
        default=1800,
        min=-1,
        help="Seconds after which a connection is replaced, before a firewall or server closes it; -1 for never.",
    ),
    cfg.IntOpt(
        "kept_uses",
        default=KEPT_USES,
        min=0,
        max=100000000,
        help="How many uses of resources, past ones aside, a manager keeps in memory, so that a question about the "
        "calendar reads only what has changed; each takes up to 200 bytes. A kind with more is read again for each "
        "question. 0 to keep none. blazar-manager reads it.",
    ),
]
