# SPDX-License-Identifier: Apache-2.0
"""The tables of the journal: what was done to objects of the service, and how far its entries are numbered."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, metadata

journal = sa.Table(
    "journal",
    metadata,
    # The order in which entries are inserted, which is not the order in which they are committed.
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    # The order in which they are read: given once they are committed, and NULL until then.
    sa.Column("position", sa.BigInteger),
    sa.Column("id", Id, nullable=False),
    sa.Column("at", UTC_TIME, nullable=False),
    # What it was done to. It may be gone by now, so that there is no foreign key.
    sa.Column("object_type", sa.String(16), nullable=False),
    sa.Column("object_id", sa.String(255), nullable=False),
    sa.Column("object_name", sa.String(255)),
    # An entry of a lease belongs to the revision that it got by it, which orders them, or had when its owner was
    # told something. NULL of objects without, and of what another project is told, too.
    sa.Column("revision", sa.Integer),
    sa.Column("verb", sa.String(32), nullable=False),
    # Whose the object is then; NULL for the operators'.
    sa.Column("project_id", sa.String(255)),
    sa.Column("user_id", sa.String(255)),
    # Who did it; NULL for the service itself.
    sa.Column("by_user_id", sa.String(255)),
    sa.Column("by_project_id", sa.String(255)),
    sa.Column("by_operator", sa.Boolean, nullable=False),
    # Of the request or the work that did it, and what its caller has sent as such.
    sa.Column("request_id", sa.String(255)),
    sa.Column("global_request_id", sa.String(255)),
    # Lists of field, before, after and reservation; and of reservation, resources gone and come, and how many.
    sa.Column("changes", sa.JSON, nullable=False),
    sa.Column("moves", sa.JSON, nullable=False),
    sa.Column("reason", sa.String(64)),
    sa.Column("snapshot", sa.JSON(none_as_null=True)),
    # The history of an object; entries after one, and those without number; those of a project, of a user; what was
    # done of one kind; what somebody did. All but the first are in the order in which they are read.
    sa.Index("ix_journal_object", "object_type", "object_id", "revision"),
    sa.Index(None, "position", "seq"),
    sa.Index(None, "project_id", "position"),
    sa.Index(None, "user_id", "position"),
    sa.Index(None, "verb", "position"),
    sa.Index(None, "by_user_id", "position"),
)

journal_numbering = sa.Table(
    "journal_numbering",
    metadata,
    # One row: who numbers entries holds it, so that numbers are committed in their order.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # The last number that was given, also if its entry is gone.
    sa.Column("position", sa.BigInteger, nullable=False),
)
