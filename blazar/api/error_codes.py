# SPDX-License-Identifier: Apache-2.0
"""The catalogue of errors from microversion 1.1 on: the status and the title of each code.

A code never changes its status or its title, and neither of them holds values. docs/api.md explains each code;
``/openapi.json`` has the catalogue under ``x-error-codes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blazar.api.shapes import Json

PREFIX = "reservation."
SOON, LATER = 1, 5


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code: its HTTP status, its words as a phrase, and the seconds after which to retry, if that may help."""

    status: int
    title: str
    retry_after: int | None = None


CODES: Mapping[str, ErrorCode] = {
    "invalid_json": ErrorCode(400, "Invalid JSON"),
    "missing_field": ErrorCode(400, "Missing field"),
    "unknown_field": ErrorCode(400, "Unknown field"),
    "read_only_field": ErrorCode(400, "Read-only field"),
    "invalid_value": ErrorCode(400, "Invalid value"),
    "invalid_date": ErrorCode(400, "Invalid date"),
    "date_in_past": ErrorCode(400, "Date in the past"),
    "invalid_window": ErrorCode(400, "Invalid window"),
    "malformed_requirement": ErrorCode(400, "Malformed requirement"),
    "unknown_property": ErrorCode(400, "Unknown property"),
    "unknown_reference": ErrorCode(400, "Unknown reference"),
    "out_of_bounds": ErrorCode(400, "Out of bounds"),
    "unknown_query_parameter": ErrorCode(400, "Unknown query parameter"),
    "invalid_query": ErrorCode(400, "Invalid query"),
    "invalid_marker": ErrorCode(400, "Invalid marker"),
    "invalid_version": ErrorCode(400, "Invalid version"),
    "version_unsupported": ErrorCode(406, "Version not supported"),
    "forbidden": ErrorCode(403, "Forbidden"),
    "limit_exceeded": ErrorCode(403, "Limit exceeded"),
    "lease_not_found": ErrorCode(404, "Lease not found"),
    "reservation_not_found": ErrorCode(404, "Reservation not found"),
    "transfer_not_found": ErrorCode(404, "Transfer not found"),
    "host_not_found": ErrorCode(404, "Host not found"),
    "floating_ip_not_found": ErrorCode(404, "Floating IP not found"),
    "device_not_found": ErrorCode(404, "Device not found"),
    "network_not_found": ErrorCode(404, "Network segment not found"),
    "resource_not_found": ErrorCode(404, "Resource not found"),
    "kind_not_found": ErrorCode(404, "Kind not found"),
    "feed_not_found": ErrorCode(404, "Feed not found"),
    "series_not_found": ErrorCode(404, "Series not found"),
    "maintenance_not_found": ErrorCode(404, "Maintenance window not found"),
    "property_not_found": ErrorCode(404, "Property not found"),
    "uri_not_found": ErrorCode(404, "URI not found"),
    "method_not_allowed": ErrorCode(405, "Method not allowed"),
    "body_too_large": ErrorCode(413, "Body too large"),
    "unsupported_media_type": ErrorCode(415, "Unsupported media type"),
    "not_enough_resources": ErrorCode(409, "Not enough resources"),
    "not_handed_over": ErrorCode(409, "Not handed over"),
    "others_wait": ErrorCode(409, "Others wait"),
    "lease_waits": ErrorCode(409, "Lease waits"),
    "contention": ErrorCode(409, "Contention", SOON),
    "lease_busy": ErrorCode(409, "Lease busy", SOON),
    "lease_ended": ErrorCode(409, "Lease ended"),
    "not_threatened": ErrorCode(409, "Not threatened"),
    "kept_already": ErrorCode(409, "Kept already"),
    "already_registered": ErrorCode(409, "Already registered"),
    "resource_in_use": ErrorCode(409, "Resource in use"),
    "host_has_servers": ErrorCode(409, "Host has servers"),
    "lease_has_servers": ErrorCode(409, "Lease has servers"),
    "not_transferable": ErrorCode(409, "Not transferable"),
    "invalid_state": ErrorCode(409, "Invalid state"),
    "impact_changed": ErrorCode(409, "Impact changed"),
    "cloud_refused": ErrorCode(409, "Cloud refused"),
    "role_missing": ErrorCode(409, "Role missing"),
    "idempotency_key_reused": ErrorCode(409, "Idempotency key reused"),
    "request_in_progress": ErrorCode(409, "Request in progress", SOON),
    "precondition_failed": ErrorCode(412, "Precondition failed"),
    "too_many_requests": ErrorCode(429, "Too many requests", SOON),
    "internal_error": ErrorCode(500, "Internal error"),
    "cloud_unavailable": ErrorCode(503, "Cloud unavailable", LATER),
    "database_unavailable": ErrorCode(503, "Database unavailable", LATER),
    "manager_unavailable": ErrorCode(503, "Manager unavailable", LATER),
    "enforcement_unavailable": ErrorCode(503, "Enforcement unavailable", LATER),
    "identity_unavailable": ErrorCode(503, "Identity unavailable", LATER),
}


def described() -> Json:
    """Return the catalogue as the document has it: by full code."""
    return {PREFIX + code: {"status": each.status, "title": each.title} for code, each in CODES.items()}
