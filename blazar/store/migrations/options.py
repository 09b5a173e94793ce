# SPDX-License-Identifier: Apache-2.0
"""What every table of MariaDB and MySQL is made with; give it to ``op.create_table`` in each migration."""

from __future__ import annotations

from typing import Any

from alembic import op


def table_options() -> dict[str, Any]:
    """Return options under which texts compare as on the other databases: byte by byte, and with trailing spaces.

    The two servers have different names for that collation.
    """
    mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
    return {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": collation}
