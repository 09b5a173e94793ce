# SPDX-License-Identifier: Apache-2.0
"""What looks at the use of leases have found, and when these are released."""

import sqlalchemy as sa
from alembic import op

from blazar.store.tables import UtcTime

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TIMES = ("used_at", "release_at", "would_release_at")


def upgrade() -> None:
    op.add_column("leases", sa.Column("usage", sa.String(16)))
    for name in TIMES:
        op.add_column("leases", sa.Column(name, UtcTime))


def downgrade() -> None:
    # Earlier versions cannot work on what is due of types that they do not know.
    op.execute("DELETE FROM events WHERE event_type = 'usage_check'")
    for name in reversed(TIMES):
        op.drop_column("leases", name)
    op.drop_column("leases", "usage")
