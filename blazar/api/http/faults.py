# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a request: the codes of faults, the faults of a body, and malformed HTTP.

A code never changes its status or its title, and neither of them holds values. docs/api.md explains each code;
``/openapi.json`` has the catalogue under ``x-error-codes``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError

from blazar.model.base.errors import Fault, FaultPlace, pointer_to
from blazar.model.base.values import dataclass

READ_ONLY = frozenset(
    {"id", "status", "degraded", "user_id", "project_id", "trust_id", "created_at", "updated_at", "lease_id"}
)
"""Keys of answers that no request may have."""

_ALSO_READ_ONLY = READ_ONLY | {
    "revision",
    "deleted_at",
    "conditions",
    "links",
    "allocations",
    "use",
    "cloud_ids",
    "missing_resources",
    "resources_changed",
    "children",
    "takes",
    "stack_id",
    "stack_reason",
    "server_ids",
    "volume_ids",
}
"""The same, with those of the full answers from 1.1 on, which have faults."""

MOST = 50
"""More faults than this are not listed."""

MOST_ALLOWED = 20
"""More values than this are not listed as those that are allowed."""


def find_faults(
    body: Any, errors: Iterable[tuple[ValidationError, str]], fixed: Collection[tuple[str, ...]] = ()
) -> tuple[Fault, ...]:
    """Return the faults of a body in the body's order, each error with its sentence.

    ``fixed`` are the paths of fields that the object has, and that cannot be changed.
    """
    found = [(path, fault) for error, sentence in errors for path, fault in _find_faults(error, sentence, fixed)]
    found.sort(key=lambda placed: _place(body, placed[0]))
    # A schema with conditions finds some faults twice.
    return tuple({(fault.code, fault.at, fault.detail): fault for _, fault in found}.values())


def _find_faults(
    error: ValidationError, sentence: str, fixed: Collection[tuple[str, ...]]
) -> Iterator[tuple[Sequence[str | int], Fault]]:
    path = tuple(error.absolute_path)
    schema: Any = error.schema
    wanted: Any = error.validator_value
    if error.validator == "required" and isinstance(error.instance, dict):
        # The library has an error for each missing key, of which only the message says which.
        (name,) = (name for name in wanted if error.message.startswith(repr(name)))
        place = (*path, name)
        known = schema.get("properties", {}).get(name, {}).get("description")
        detail = f"{_place_text(place)} is missing" + (f"; give {known}" if known else "")
        yield place, Fault("missing_field", detail, FaultPlace(pointer_to(place)))
    elif error.validator == "additionalProperties" and isinstance(error.instance, dict):
        properties = schema.get("properties", {})
        allowed = sorted(properties)
        for name in islice((name for name in error.instance if name not in properties), MOST):
            yield _not_allowed((*path, name), allowed, is_fixed=(*path, name) in fixed)
    elif error.validator in ("maxItems", "maxProperties"):
        yield path, Fault("out_of_bounds", sentence, FaultPlace(pointer_to(path)), data={"maximum": wanted})
    else:
        values = list(wanted) if error.validator == "enum" else []
        data = {"allowed": values} if 0 < len(values) <= MOST_ALLOWED else None
        yield path, Fault("invalid_value", sentence, FaultPlace(pointer_to(path)), data=data)


def _not_allowed(
    place: tuple[str | int, ...], allowed: Sequence[str], *, is_fixed: bool
) -> tuple[Sequence[str | int], Fault]:
    code, what = "unknown_field", "is unknown"
    if place[-1] in _ALSO_READ_ONLY:
        code, what = "read_only_field", "is set by the service and cannot be given"
    elif is_fixed:
        code, what = "read_only_field", "cannot be changed"
    detail = f"{_place_text(place)} {what}; the allowed fields are: {', '.join(allowed)}"
    return place, Fault(code, detail, FaultPlace(pointer_to(place)))


def _place_text(path: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:80]}" for part in path)
    return text.lstrip(".")


def _place(body: Any, path: Sequence[str | int]) -> list[int]:
    """Return where a path is in the body: the position of each part; what is missing comes last."""
    place: list[int] = []
    for part in path:
        if isinstance(body, dict):
            keys = list(body)
            place.append(keys.index(str(part)) if part in body else len(keys))
            body = body.get(part)
        elif isinstance(body, list) and isinstance(part, int):
            place.append(part)
            body = body[part] if part < len(body) else None
    return place


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
    "subscription_not_found": ErrorCode(404, "Subscription not found"),
    "charge_not_found": ErrorCode(404, "Charge not found"),
    "statement_not_found": ErrorCode(404, "Statement not found"),
    "series_not_found": ErrorCode(404, "Series not found"),
    "maintenance_not_found": ErrorCode(404, "Maintenance window not found"),
    "price_list_not_found": ErrorCode(404, "Price list not found"),
    "rule_not_found": ErrorCode(404, "Rule not found"),
    "problem_not_found": ErrorCode(404, "Problem not found"),
    "property_not_found": ErrorCode(404, "Property not found"),
    "uri_not_found": ErrorCode(404, "URI not found"),
    "method_not_allowed": ErrorCode(405, "Method not allowed"),
    "body_too_large": ErrorCode(413, "Body too large"),
    "unsupported_media_type": ErrorCode(415, "Unsupported media type"),
    "not_enough_resources": ErrorCode(409, "Not enough resources"),
    "not_handed_over": ErrorCode(409, "Not handed over"),
    "others_wait": ErrorCode(409, "Others wait"),
    "lease_waits": ErrorCode(409, "Lease waits"),
    "lease_unconfirmed": ErrorCode(409, "Lease unconfirmed"),
    "nothing_to_confirm": ErrorCode(409, "Nothing to confirm"),
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
    "price_exceeds_maximum": ErrorCode(409, "Price exceeds maximum"),
    "quote_lapsed": ErrorCode(409, "Quote lapsed"),
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


def describe_codes() -> dict[str, Any]:
    """Return the catalogue as the document has it: by full code."""
    return {PREFIX + code: {"status": c.status, "title": c.title} for code, c in CODES.items()}


class BadFrame(Exception):
    """The request is invalid HTTP or JSON, found before its content is validated; rendered in shape B.

    ``code``, ``at`` and ``data`` are what is said from 1.1 on, where the code decides the status, too.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "invalid_json",
        at: FaultPlace | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.at = at
        self.more = more or {}
