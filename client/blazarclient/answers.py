# SPDX-License-Identifier: Apache-2.0
"""What the service, or something on the way to it, answers when it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from blazarclient.exception import BlazarClientException, Fault, refusal

_TAG = re.compile(r"<[^>]*>")
_HIDDEN = re.compile(r"(?is)<(style|script|head)\b.*?</\1>")
_LONGEST = 400
"""Characters of a text that is no answer of the service, such as the page of a proxy."""


def refused(status: int, body: object, headers: object, *, prefix: str = "") -> BlazarClientException:
    """Return the error for an answer with a status of 400 or more.

    ``body``: the decoded JSON, or the text as it came. ``headers``: a mapping without regard to case.
    """
    found = faults(status, body)
    return refusal(
        status,
        found,
        message=prefix + " ".join(str(fault) for fault in found),
        request_id=_header(headers, "x-openstack-request-id"),
        retry_after=seconds_to_wait(_header(headers, "Retry-After")),
    )


def faults(status: int, body: object) -> tuple[Fault, ...]:
    """Return what a body says is wrong, in each of the shapes in which services and proxies say it; at least one."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return (Fault(status, _plain(status, str(body))),)
    if isinstance(body, Mapping):
        if listed := _listed(status, body.get("errors")):
            return listed
        for key in ("error_message", "message", "detail", "faultstring"):
            if isinstance(text := body.get(key), str) and text:
                return (Fault(status, text),)
            if isinstance(text, Mapping):
                return faults(status, text)
        if isinstance(inner := body.get("error"), str | Mapping) and inner:
            return (Fault(status, inner),) if isinstance(inner, str) else faults(status, inner)
    return (Fault(status, _plain(status, "" if body is None else json.dumps(body, default=str))),)


def seconds_to_wait(value: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, 10.2.3): a number, or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    # A date with -0000 has no zone, and is in UTC.
    when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())


def _listed(status: int, errors: object) -> tuple[Fault, ...]:
    if not isinstance(errors, list):
        return ()
    return tuple(_fault(status, item) for item in errors if isinstance(item, Mapping))


def _fault(status: int, item: Mapping[str, Any]) -> Fault:
    data = item.get("data")
    return Fault(
        status=_number(item.get("status"), status),
        detail=str(item.get("detail") or item.get("title") or f"HTTP {status}"),
        code=_text(item, "code"),
        title=_text(item, "title"),
        pointer=_text(item, "pointer"),
        parameter=_text(item, "parameter"),
        header=_text(item, "header"),
        data=data if isinstance(data, Mapping) else {},
    )


def _text(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None


def _number(value: object, default: int) -> int:
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        return default


def _plain(status: int, text: str) -> str:
    """Return a text without markup, in one line."""
    words = " ".join(_TAG.sub(" ", _HIDDEN.sub(" ", text)).split())
    if len(words) > _LONGEST:
        words = words[:_LONGEST] + "…"
    return f"HTTP {status}: {words}" if words else f"HTTP {status} without a word of explanation"


def _header(headers: object, name: str) -> str | None:
    get = getattr(headers, "get", None)
    value = get(name) if callable(get) else None
    return value if isinstance(value, str) else None
