# SPDX-License-Identifier: Apache-2.0
"""Tables of subscriptions, and of the messages that their receivers have refused for good."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

subscriptions = sa.Table(
    "subscriptions",
    metadata,
    sa.Column("id", Id, primary_key=True),
    # NULL: an operator's, of everything.
    sa.Column("project_id", sa.String(255)),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("channel", sa.String(16), nullable=False),
    # Empty of those by mail.
    sa.Column("url", sa.String(1024), nullable=False),
    # Names of events; and of one lease only, if it is not NULL.
    sa.Column("events", sa.JSON, nullable=False),
    sa.Column("lease_id", Id),
    # Of the leases of its user, in whatever project; the project is empty then.
    sa.Column("own", sa.Boolean, nullable=False, server_default=sa.false()),
    # How often mail is sent, and of which zone its times are.
    sa.Column("digest", sa.String(8), nullable=False, server_default="none"),
    sa.Column("time_zone", sa.String(64), nullable=False, server_default="UTC"),
    sa.Column("batch", sa.Boolean, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", LongText),
    # Its receiver has accepted a message at this URL.
    sa.Column("confirmed", sa.Boolean, nullable=False),
    # How many secrets it has had, and since when it has the last.
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("secret_changed_at", UTC_TIME),
    # The last entry of the journal that was dealt with, and the last one that may concern it.
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("newest", sa.BigInteger, nullable=False),
    # When there is something to send, or the claim of who sends it ends; NULL while there is nothing.
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    # A test is to be sent before anything else.
    sa.Column("testing", sa.Boolean, nullable=False),
    # Failures since the last success; and how often messages were refused that are still to be told, by id.
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("refusals", sa.JSON, nullable=False),
    # Messages that were refused for good, and are not kept any more.
    sa.Column("dropped", sa.Integer, nullable=False, server_default="0"),
    sa.Column("failing_since", UTC_TIME),
    sa.Column("last_delivered_at", UTC_TIME),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    # What is due; the list of a project, oldest first; and of all; those of users.
    sa.Index(None, "due_at"),
    sa.Index(None, "project_id", "created_at"),
    sa.Index(None, "created_at"),
    sa.Index(None, "user_id"),
)

delivery_failures = sa.Table(
    "delivery_failures",
    metadata,
    # The id of the message, which is that of its entry of the journal.
    sa.Column("subscription_id", Id, sa.ForeignKey("subscriptions.id"), primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),
    sa.Column("reason", LongText, nullable=False),
    sa.Column("at", UTC_TIME, nullable=False),
    # Those of a subscription, oldest first; and what is old.
    sa.Index(None, "subscription_id", "at"),
    sa.Index(None, "at"),
)
