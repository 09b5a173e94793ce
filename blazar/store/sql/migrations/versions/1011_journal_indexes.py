# SPDX-License-Identifier: Apache-2.0
"""What was done of one kind, by somebody, or to what is somebody's, is found without reading all of the journal.

Revision ID: 1011
"""

from alembic import op

revision = "1011"
down_revision = "1010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the indexes, in the order in which entries are read; one of them takes the place of another."""
    op.create_index("ix_journal_verb_position", "journal", ["verb", "position"])
    op.create_index("ix_journal_user_id_position", "journal", ["user_id", "position"])
    op.create_index("ix_journal_by_user_id_position", "journal", ["by_user_id", "position"])
    op.drop_index("ix_journal_by_user_id_at", "journal")


def downgrade() -> None:
    """Bring the other one back, and drop them."""
    op.create_index("ix_journal_by_user_id_at", "journal", ["by_user_id", "at"])
    for name in ("by_user_id_position", "user_id_position", "verb_position"):
        op.drop_index(f"ix_journal_{name}", "journal")
