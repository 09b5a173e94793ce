# SPDX-License-Identifier: Apache-2.0
"""The tables. The migrations create them; a test compares the two.

Times are naive UTC in the database and aware UTC outside (``UtcTime``). Strings compare byte by byte on every database;
for MariaDB and MySQL the migrations set that (``migrations.options``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=NAMING)


def _aware(value: datetime | None) -> datetime | None:
    return None if value is None else value.replace(tzinfo=UTC)


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An instant with microseconds."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        """Return the column type of a dialect: MySQL would store whole seconds by default."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(sa.DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Remove the zone; an instant in another zone than UTC is a bug of ours."""
        if value is None:
            return None
        if value.utcoffset() != UTC.utcoffset(None):
            raise ValueError(f"{value!r} is not in UTC")
        return value.replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        """Add the zone. Optimized for lists of thousands: one call per value instead of three with the usual hook."""
        read = self.impl_instance.result_processor(dialect, coltype)

        if read is None:
            return _aware
        parse: Callable[[Any], Any] = read
        return lambda value: None if value is None else _aware(parse(value))


LongText = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
Id = sa.String(36)


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
    sa.Column("edits", sa.Integer, nullable=False, server_default="0"),
    sa.Column("attributes", sa.JSON, nullable=False),
    sa.Column("capacity", sa.JSON, nullable=False),
    # Limits as [least, most, step] by class. NULL: registered before these were stored; a refresh writes them.
    sa.Column("limits", sa.JSON(none_as_null=True)),
    sa.Column("traits", sa.JSON(none_as_null=True)),
    # False as soon as its removal begins.
    sa.Column("reservable", sa.Boolean, nullable=False),
    # Set by its operator, independent of what monitors find.
    sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
    # Why and since when, NULL if not known; and when it is enabled without another request, NULL for never.
    sa.Column("disabled_reason", LongText),
    sa.Column("disabled_since", UtcTime),
    sa.Column("disabled_until", UtcTime),
    # Time and reason of its failure; both NULL while it is healthy.
    sa.Column("failed_since", UtcTime),
    sa.Column("failure", LongText),
    # The projects that may use it; NULL for all.
    sa.Column("authorized_projects", sa.JSON(none_as_null=True)),
    sa.Column("generation", sa.Integer, nullable=False),
    # 1 while registered and NULL afterwards: unique keys ignore NULLs, so a host may be registered again later.
    sa.Column("live", sa.Integer),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
    sa.Column("retired_at", UtcTime),
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
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
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

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("trust_id", sa.String(36)),
    sa.Column("starts_at", UtcTime, nullable=False),
    sa.Column("ends_at", UtcTime, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False, server_default="scheduled"),
    sa.Column("status", sa.String(16), nullable=False),
    # NULL before its end.
    sa.Column("end_reason", sa.String(16)),
    # What looks have found, and when it is, or in a dry run would be, released; NULL while nobody looks at it.
    sa.Column("usage", sa.String(16)),
    sa.Column("used_at", UtcTime),
    sa.Column("release_at", UtcTime),
    sa.Column("would_release_at", UtcTime),
    sa.Column("held", sa.Boolean),
    sa.Column("degraded", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
    sa.Column("deleted_at", UtcTime),
    # NULL in leases that never waited.
    sa.Column("queued_at", UtcTime),
    sa.Column("wait_until", UtcTime),
    sa.Column("wait_earliest", UtcTime),
    sa.Column("wait_position", sa.Integer),
    sa.Column("wait_estimate", UtcTime),
    sa.Column("wait_reason", LongText),
    # What it asks for besides, and what became of its tries (``model.waiting_json``).
    sa.Column("wait_terms", sa.JSON(none_as_null=True)),
    # NULL in leases that end when they end.
    sa.Column("extend_until", UtcTime),
    sa.Column("extend_reason", LongText),
    # NULL in leases that are no occurrence of a series; without a foreign key, as a lease may outlive its series. The
    # local start by the rule, and whether somebody changed the lease by itself.
    sa.Column("series_id", Id),
    sa.Column("recurrence_id", sa.String(19)),
    sa.Column("series_changed", sa.Boolean, nullable=False, server_default=sa.false()),
    # NULL in leases that are not offered: to which project, and user of it, until when, and the rest (``store.rows``).
    sa.Column("offered_to", sa.String(255)),
    sa.Column("offered_to_user", sa.String(255)),
    sa.Column("offer_expires_at", UtcTime),
    sa.Column("offer_terms", sa.JSON(none_as_null=True)),
    # The waiting list; and what may be prolonged.
    sa.Index(None, "status", "queued_at"),
    sa.Index(None, "extend_until"),
    sa.Index(None, "series_id"),
    sa.Index(None, "offered_to", "offer_expires_at"),
    # What is not as it was promised, and what is about to be released: few of many.
    sa.Index(None, "degraded", "deleted_at"),
    sa.Index(None, "release_at"),
    # The list of a project, oldest first; and the list of all.
    sa.Index(None, "project_id", "deleted_at", "created_at"),
    # What a project has had since an instant.
    sa.Index(None, "project_id", "ends_at"),
    sa.Index(None, "deleted_at", "created_at"),
    # The list of all, past ones too; and of all that are not deleted, in other orders.
    sa.Index(None, "created_at"),
    sa.Index(None, "deleted_at", "starts_at"),
    sa.Index(None, "deleted_at", "ends_at"),
    sa.Index(None, "deleted_at", "name"),
)

reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("resource_type", sa.String(66), nullable=False),
    sa.Column("resource_id", Id),
    # That of its resources, chosen when it is made; empty as that of resources is.
    sa.Column("region", sa.String(64), nullable=False, server_default=""),
    # The reservation of the same lease that it is a part of; NULL for one that a user asked for.
    sa.Column("parent_id", Id),
    sa.Column("status", sa.String(13), nullable=False),
    sa.Column("missing_resources", sa.Boolean, nullable=False),
    sa.Column("resources_changed", sa.Boolean, nullable=False),
    # Since when these hold; NULL where they do not, or where that is not known.
    sa.Column("missing_since", UtcTime),
    sa.Column("changed_since", UtcTime),
    sa.Column("parameters", sa.JSON, nullable=False),
    sa.Column("artefacts", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
    sa.Index(None, "lease_id"),
    # Reservations to be healed.
    sa.Index(None, "missing_resources", "lease_id"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("event_type", sa.String(66), nullable=False),
    sa.Column("time", UtcTime),
    sa.Column("status", sa.String(13)),
    sa.Column("due_at", UtcTime),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("claimed_at", UtcTime),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reason", LongText),
    # The reason as a code and numbers; NULL for a reason that was written before there were codes.
    sa.Column("cause", sa.JSON(none_as_null=True)),
    # Since when it is late, or when it failed for good.
    sa.Column("trouble_since", UtcTime),
    sa.Column("memo", sa.JSON(none_as_null=True)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
    sa.Index(None, "lease_id"),
    # Due events, earliest first.
    sa.Index(None, "due_at"),
    # For the heartbeat of a manager.
    sa.Index(None, "claimed_by"),
    # Creations that were undone: their leases never were.
    sa.Index(None, "event_type", "status", "lease_id"),
)

allocations = sa.Table(
    "allocations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), nullable=False),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("reservation_id", Id, sa.ForeignKey("reservations.id"), nullable=False),
    sa.Column("starts_at", UtcTime, nullable=False),
    sa.Column("ends_at", UtcTime, nullable=False),
    # The end of the use and of the cleaning after it: until then the resource is not promised to others.
    sa.Column("blocks_until", UtcTime, nullable=False),
    sa.Column("units", sa.Integer, nullable=False),
    sa.Column("unit", sa.JSON(none_as_null=True)),
    # The start of the use, if it was added to a lease that had begun.
    sa.Column("added_at", UtcTime),
    sa.Column("released_at", UtcTime),
    # What is promised in a window; an index-only scan.
    sa.Index("ix_allocations_calendar", "kind", "blocks_until", "starts_at", "resource_id"),
    # Late users, who have not returned their resources: of all resources, and of one.
    sa.Index("ix_allocations_open", "kind", "released_at", "ends_at", "resource_id"),
    sa.Index("ix_allocations_resource", "resource_id", "released_at", "ends_at"),
    sa.Index(None, "lease_id"),
    sa.Index(None, "reservation_id"),
)

project_uses = sa.Table(
    "project_uses",
    metadata,
    sa.Column("project_id", sa.String(255), primary_key=True),
    # Raised by every booking of a project with limited usage, as generations are for resources.
    sa.Column("version", sa.Integer, nullable=False),
)

waiting_list = sa.Table(
    "waiting_list",
    metadata,
    # One row for all kinds of resource, as a lease may have several.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # Raised by each plan that is carried out, so that of two managers with plans of the same state one makes another.
    sa.Column("version", sa.Integer, nullable=False),
    # What the last plan was made of, and when another is due without any change.
    sa.Column("seen", sa.String(255)),
    sa.Column("due_at", UtcTime),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    # A hash of user, project, route and key.
    sa.Column("scope", sa.String(64), primary_key=True),
    # A hash of the body that was sent with it.
    sa.Column("fingerprint", sa.String(64), nullable=False),
    # Of a lease, or a series. Without a foreign key: it is written before it, in the same transaction.
    sa.Column("lease_id", Id, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
    sa.Index(None, "lease_id"),
)

outbox = sa.Table(
    "notices",
    metadata,
    # Messages about one lease are delivered in this order.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    # NULL once it is told.
    sa.Column("content", LongText),
    sa.Column("told", sa.JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    # NULL once it is told, or given up.
    sa.Column("due_at", UtcTime),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reason", LongText),
    sa.Column("finished_at", UtcTime),
    # Messages to deliver: of a lease, and of all, earliest first.
    sa.Index(None, "lease_id", "due_at"),
    sa.Index(None, "due_at"),
)

feeds = sa.Table(
    "feeds",
    metadata,
    sa.Column("id", Id, primary_key=True),
    # SHA-256 of the secret in its link, in hexadecimal.
    sa.Column("secret_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id")),
    sa.Column("resource_type", sa.String(66)),
    sa.Column("requirement", LongText),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("last_used_at", UtcTime),
    # The feeds of a user, oldest first; and of all.
    sa.Index(None, "project_id", "user_id", "created_at"),
    sa.Index(None, "created_at"),
)

series = sa.Table(
    "series",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    # The rule as RFC 5545 has it, and its first start, a local time of the zone.
    sa.Column("rule", sa.String(500), nullable=False),
    sa.Column("starts_local", sa.String(19), nullable=False),
    sa.Column("zone", sa.String(64), nullable=False),
    # Seconds that pass; or, if NULL, the wall clock at the end, days after the start.
    sa.Column("duration", sa.Integer),
    sa.Column("until_local", sa.String(8)),
    sa.Column("until_days", sa.Integer),
    sa.Column("exdates", sa.JSON, nullable=False),
    sa.Column("rdates", sa.JSON, nullable=False),
    # What each lease is made of.
    sa.Column("template", sa.JSON, nullable=False),
    sa.Column("fit", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", LongText),
    sa.Column("previous_id", Id),
    # Up to which start occurrences are on record; NULL if all of them are.
    sa.Column("booked_until", UtcTime),
    sa.Column("ends_running", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
    sa.Column("deleted_at", UtcTime),
    # When there is work on it, or the claim of who works on it expires; as of events.
    sa.Column("due_at", UtcTime),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("attempts", sa.Integer, nullable=False),
    # The list of a project, and of all.
    sa.Index(None, "project_id", "deleted_at", "created_at"),
    sa.Index(None, "deleted_at", "created_at"),
    sa.Index(None, "due_at"),
    # For the heartbeat of a manager.
    sa.Index(None, "claimed_by"),
)

occurrences = sa.Table(
    "occurrences",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("series.id"), primary_key=True),
    # The local start by the rule: it never changes.
    sa.Column("recurrence_id", sa.String(19), primary_key=True),
    # By the rule; the end need not be after the start on a day on which the clocks change.
    sa.Column("starts_at", UtcTime, nullable=False),
    sa.Column("ends_at", UtcTime, nullable=False),
    # What has become of a lease is not written here: the lease says it.
    sa.Column("state", sa.String(16), nullable=False),
    # Without a foreign key: leases are purged before their series.
    sa.Column("lease_id", Id),
    sa.Column("reason", LongText),
    sa.Column("opening_starts_at", UtcTime),
    sa.Column("opening_ends_at", UtcTime),
    sa.Index(None, "series_id", "starts_at"),
    sa.Index(None, "lease_id"),
)

maintenances = sa.Table(
    "maintenances",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("reason", LongText),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("starts_at", UtcTime, nullable=False),
    sa.Column("ends_at", UtcTime, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    # What its hosts were chosen by; NULL if by their ids.
    sa.Column("requirement", LongText),
    sa.Column("pending", sa.String(16), nullable=False),
    sa.Column("active", sa.String(16), nullable=False, server_default="list"),
    sa.Column("disable_service", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    # When there is something to do, or the claim of who does it ends; NULL when nothing follows.
    sa.Column("due_at", UtcTime),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("trouble", LongText),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime),
    # What is due; and the list, oldest first.
    sa.Index(None, "due_at"),
    sa.Index(None, "created_at"),
)

maintenance_resources = sa.Table(
    "maintenance_resources",
    metadata,
    sa.Column("maintenance_id", Id, sa.ForeignKey("maintenances.id"), primary_key=True),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    # The window, or what became of it: the resource is promised to nobody then.
    sa.Column("starts_at", UtcTime, nullable=False),
    sa.Column("blocks_until", UtcTime, nullable=False),
    # How many servers it ran at the start; NULL if that is not known.
    sa.Column("servers", sa.Integer),
    # What is in maintenance in a window.
    sa.Index("ix_maintenance_resources_calendar", "kind", "blocks_until", "starts_at", "resource_id"),
    sa.Index(None, "resource_id"),
)

maintenance_leases = sa.Table(
    "maintenance_leases",
    metadata,
    # A lease has one row in a maintenance window, and its owner one message of each content.
    sa.Column("maintenance_id", Id, sa.ForeignKey("maintenances.id"), primary_key=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), primary_key=True),
    # The order in which leases are moved.
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("outcome", sa.String(32), nullable=False),
    sa.Column("makes_room", sa.Boolean, nullable=False),
    sa.Column("targets", sa.JSON, nullable=False),
    sa.Column("openings", sa.JSON, nullable=False),
    sa.Column("done", sa.Boolean, nullable=False),
    # What its owner should know, NULL for nothing; what it was told last, and when.
    sa.Column("content", sa.String(255)),
    sa.Column("told", sa.String(255)),
    sa.Column("told_at", UtcTime),
    # Why a lease in use keeps hosts, or how far the moves of its servers are.
    sa.Column("note", LongText),
    sa.Index(None, "lease_id"),
)

lease_history = sa.Table(
    "lease_history",
    metadata,
    # An entry belongs to the revision that the lease got by it, which orders them. They are added and never changed.
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("verb", sa.String(32), nullable=False),
    # Who did it; NULL for the service itself.
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("operator", sa.Boolean, nullable=False),
    # Lists of field, before, after and reservation; and of reservation, resources gone and come, and how many.
    sa.Column("changes", sa.JSON, nullable=False),
    sa.Column("moves", sa.JSON, nullable=False),
    sa.Column("reason", sa.String(64)),
)
