# SPDX-License-Identifier: Apache-2.0
"""Tables of resources: what may be reserved, with what is known of it."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

inventory_versions = sa.Table(
    "inventory_versions",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

resources = sa.Table(
    "resources",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("external_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    # Empty where no regions are configured; the manager writes that of earlier resources once they are.
    sa.Column("region", sa.String(64), nullable=False, server_default=""),
    # What users see of it: random, and new at each registration.
    sa.Column("label", sa.String(16), nullable=False, unique=True),
    # Raised by every change of what operators see of it; bookings raise its generation only.
    sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
    sa.Column("attributes", sa.JSON, nullable=False),
    sa.Column("capacity", sa.JSON, nullable=False),
    # Limits as [least, most, step] by class. NULL: registered before these were stored; a refresh writes them.
    sa.Column("limits", sa.JSON(none_as_null=True)),
    sa.Column("traits", sa.JSON(none_as_null=True)),
    # Nested providers as [class, each, providers, traits, least, most, step]; NULL for none.
    sa.Column("pools", sa.JSON(none_as_null=True)),
    # False as soon as its removal begins.
    sa.Column("reservable", sa.Boolean, nullable=False),
    # Set by its operator, independent of what monitors find.
    sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
    # Why and since when, NULL if not known; and when it is enabled without another request, NULL for never.
    sa.Column("disabled_reason", LongText),
    sa.Column("disabled_since", UTC_TIME),
    sa.Column("disabled_until", UTC_TIME),
    # Time and reason of its failure; both NULL while it is healthy.
    sa.Column("failed_since", UTC_TIME),
    sa.Column("failure", LongText),
    # The projects that may use it; NULL for all.
    sa.Column("authorized_projects", sa.JSON(none_as_null=True)),
    sa.Column("generation", sa.Integer, nullable=False),
    # 1 while registered and NULL afterwards: unique keys ignore NULLs, so a host may be registered again later.
    sa.Column("live", sa.Integer),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    sa.Column("retired_at", UTC_TIME),
    sa.UniqueConstraint("kind", "external_id", "live"),
    sa.UniqueConstraint("kind", "region", "name", "live"),
    # Resources to enable, earliest first.
    sa.Index(None, "disabled_until"),
)

resource_properties = sa.Table(
    "resource_properties",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("private", sa.Boolean, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    sa.UniqueConstraint("kind", "name"),
)

resource_capabilities = sa.Table(
    "resource_capabilities",
    metadata,
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), primary_key=True),
    sa.Column("property_id", Id, sa.ForeignKey("resource_properties.id"), primary_key=True),
    sa.Column("value", LongText, nullable=False),
    sa.Index(None, "property_id"),
)

# What the last looks at the clouds have found that is not as it should be.
findings = sa.Table(
    "findings",
    metadata,
    # leftover, unknown or drift; then the region, and the id of a reservation as the cloud tells it.
    sa.Column("what", sa.String(16), primary_key=True),
    sa.Column("region", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("resource_type", sa.String(255), nullable=False),
    # NULL of what is not on record. No foreign key: a finding does not keep a lease.
    sa.Column("lease_id", Id),
    sa.Column("since", UTC_TIME, nullable=False),
    sa.Column("seen_at", UTC_TIME, nullable=False),
    sa.Column("detail", LongText, nullable=False),
    # Clean-ups since then, and when the next one may begin: NULL for at any time.
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("next_at", UTC_TIME),
    sa.Index(None, "lease_id"),
)

# Preemptible servers that were told when they are deleted: a row goes soon after that, or when it is withdrawn. Without
# foreign keys: what needs the resource may be gone before the owner of the server is told that it stays.
preemptions = sa.Table(
    "preemptions",
    metadata,
    sa.Column("server_id", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("resource_id", sa.Integer, nullable=False),
    # Whether its owner wants an image of it before.
    sa.Column("saved", sa.Boolean, nullable=False),
    # Which reservation needs its resource, and of which type that is.
    sa.Column("reservation_id", Id, nullable=False),
    sa.Column("resource_type", sa.String(66), nullable=False),
    sa.Column("ends_at", UTC_TIME, nullable=False),
)

# Hosts of leases that are, or were, lent to preemptible servers. Without foreign keys: it is kept what was lent.
lent_hosts = sa.Table(
    "lent_hosts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("reservation_id", Id, nullable=False),
    sa.Column("resource_id", sa.Integer, nullable=False),
    sa.Column("since", UTC_TIME, nullable=False),
    # When its servers go, if that was told; and when they were gone: NULL while it is lent.
    sa.Column("ends_at", UTC_TIME),
    sa.Column("ended_at", UTC_TIME),
    sa.Index(None, "ended_at"),
    sa.Index(None, "reservation_id"),
)
