# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows as JSON, as the API shows them: in answers, and in the error for an impact that has changed."""

from __future__ import annotations

from blazar.model.clock import zulu
from blazar.model.lease import Json
from blazar.model.maintenance import AffectedLease, Impact, Maintenance


def impact_json(impact: Impact) -> Json:
    """Return what a maintenance window would do."""
    return {
        "id": impact.id,
        "start_date": zulu(impact.window.start),
        "end_date": zulu(impact.window.end),
        "hosts": list(impact.hosts),
        "summary": dict(impact.summary),
        "leases": [lease_json(each) for each in impact.leases],
    }


def lease_json(lease: AffectedLease) -> Json:
    """Return what becomes of a lease."""
    return {
        "lease_id": lease.lease_id,
        "name": lease.name,
        "project_id": lease.project_id,
        "user_id": lease.user_id,
        "start_date": zulu(lease.window.start),
        "end_date": zulu(lease.window.end),
        "status": lease.status,
        "outcome": str(lease.outcome),
        "makes_room": lease.makes_room,
        "hosts": list(lease.hosts),
        "moves": [
            {
                "reservation_id": move.reservation_id,
                "from_host": move.source,
                "to_host": move.target,
                "count": move.count,
            }
            for move in lease.moves
        ],
        "openings": [zulu(each) for each in lease.openings],
        "done": lease.done,
        "told_at": None if lease.told_at is None else zulu(lease.told_at),
        "note": lease.note,
    }


def maintenance_json(maintenance: Maintenance) -> Json:
    """Return a maintenance window, without its leases."""
    changed = maintenance.updated_at
    return {
        "id": maintenance.id,
        "name": maintenance.name,
        "reason": maintenance.reason,
        "start_date": zulu(maintenance.window.start),
        "end_date": zulu(maintenance.window.end),
        "status": str(maintenance.status),
        "hosts": [{"id": host.id, "name": host.name, "servers": host.servers} for host in maintenance.hosts],
        "requirement": maintenance.requirement,
        "pending": str(maintenance.pending),
        "active": str(maintenance.active),
        "disable_service": maintenance.disable_service,
        "trouble": maintenance.trouble,
        "revision": maintenance.revision,
        "created_at": zulu(maintenance.created_at),
        "updated_at": None if changed is None else zulu(changed),
    }
