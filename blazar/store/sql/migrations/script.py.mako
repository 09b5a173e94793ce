# SPDX-License-Identifier: Apache-2.0
"""${message[0].upper() + message[1:]}.

Revision ID: ${up_revision}
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = "${up_revision}"
down_revision = ${'"' + down_revision + '"' if down_revision else None}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what this revision has."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Take away what this revision has."""
    ${downgrades if downgrades else "pass"}
