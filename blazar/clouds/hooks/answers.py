# SPDX-License-Identifier: Apache-2.0
"""Answers of hooks: what a status means, when to ask again, and what may be stored and shown. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookResult
from blazar.model.errors import CloudUnavailable
from blazar.model.lease import Json

MOST_BYTES = 4096
"""The limit of what is read of an answer."""

LONGEST_REASON = 200

PASSING = frozenset({408, 425, 429})
"""Statuses below 500 that may change on a retry."""

SOONEST, USUAL, LATEST = timedelta(seconds=1), timedelta(seconds=10), timedelta(hours=1)
"""When a hook that answers 202 is asked again: bounds of its ``Retry-After``, and the time without one."""

DEEPEST = 20
LARGEST = 2**53


MAY_BE_UNUSABLE = frozenset({HookAction.START, HookAction.HEALTH})
"""What a hook may answer 409 to because of the state of its resource."""


def answer_of(
    action: HookAction, status: int, retry_after: str | None, body: bytes | None, now: datetime
) -> HookAnswer:
    """Return what an answer means; ``body`` None if it is too long, or did not arrive whole. CloudUnavailable."""
    if status == 202:
        return HookAnswer(HookResult.NOT_YET, "it is not ready yet (202)", after=after_of(retry_after, now))
    if 200 <= status < 300:
        return HookAnswer(HookResult.DONE, content=None if status == 204 else content_of(body))
    said = _sentence(body)
    if status >= 500 or status in PASSING:
        raise CloudUnavailable(f"its hook answered {status}{said}")
    if 300 <= status < 400:
        return HookAnswer(
            HookResult.REFUSED, f"its hook answered {status}, a redirect, which is never followed; correct the URL"
        )
    if status == 409 and action in MAY_BE_UNUSABLE:
        return HookAnswer(HookResult.UNUSABLE, f"its hook says that it cannot be used at present (409){said}")
    return HookAnswer(HookResult.REFUSED, f"its hook refuses the call ({status}){said}")


def after_of(retry_after: str | None, now: datetime) -> timedelta:
    """Return the time of a ``Retry-After``, seconds or a date, within the bounds."""
    wanted = USUAL
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        wanted = timedelta(seconds=min(int(text[:9]), LATEST.total_seconds()))
    elif text:
        try:
            date = parsedate_to_datetime(text)
            wanted = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
        except (TypeError, ValueError, OverflowError):
            wanted = USUAL
    return min(LATEST, max(SOONEST, wanted))


def content_of(body: bytes | None) -> Json | None:
    """Return the JSON object of an answer if any database can store it and any client read it; else None."""
    try:
        found = json.loads(body or b"", parse_constant=_no_number)
        if not isinstance(found, dict) or not found or not _is_plain(found, 0):
            return None
        # Half a surrogate pair is no text.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _is_plain(value: object, depth: int) -> bool:
    """Return whether a value has only moderate numbers and depth, and texts without NUL, which PostgreSQL refuses."""
    match value:
        case str():
            return "\0" not in value
        case bool() | None:
            return True
        case int() | float():
            return -LARGEST <= value <= LARGEST
        case dict():
            return depth < DEEPEST and all("\0" not in k and _is_plain(v, depth + 1) for k, v in value.items())
        case list():
            return depth < DEEPEST and all(_is_plain(each, depth + 1) for each in value)
    return False


def _sentence(body: bytes | None) -> str:
    """Return what a refusal says, as the end of a sentence: one short printable line."""
    content = content_of(body)
    said = next(
        (t for key in ("message", "error", "detail", "reason") if isinstance(t := (content or {}).get(key), str)), ""
    )
    line = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return f": {line[:LONGEST_REASON]}" if line else ""
