# SPDX-License-Identifier: Apache-2.0
"""The answer of an enforcement service: status, reason for the user, and whether it may have processed the request.

Only a short part of an answer is read, and no credentials of ours are repeated in messages.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from urllib.parse import urlsplit

import requests
import urllib3

from blazar.clouds.outgoing.calls import Cut, read_body
from blazar.model.base.errors import BlazarError

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may change on a retry."""

NOT_PROCESSED = frozenset({401, 425, 429})
"""Statuses of a service that has not processed the request."""

REASONS = ("message", "error", "detail", "reason")
"""The fields of a refusal that may have the reason: the first one that is a string counts."""

MOST_BYTES = 64 * 1024
"""The limit of what is read of an answer: a sentence for the user needs less."""

LONGEST_REASON = 500


class NoAnswer(BlazarError):
    """The service gave no answer that can be understood.

    ``passing``: a retry may succeed. ``maybe_accepted``: the service may have processed the request nevertheless.
    """

    def __init__(self, message: str, *, passing: bool = False, maybe_accepted: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
        self.maybe_accepted = maybe_accepted


def read_in_time(response: requests.Response, end: float, *, whole: bool) -> bytes:
    """Return the body as far as it arrived in time; NoAnswer if it is needed ``whole`` and is too long or too slow."""
    body, cut = read_body(response, most=MOST_BYTES, end=end)
    if whole and cut is not None:
        too = f"is longer than {MOST_BYTES} bytes" if cut is Cut.TOO_LONG else "took too long"
        raise NoAnswer(f"its answer {too}", maybe_accepted=True)
    return body


def refusal_reason(text: bytes, hidden: Collection[str]) -> str | None:
    """Return the reason for the user in a refusal, on one line; None if there is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    texts = [body.get(key) for key in REASONS] if isinstance(body, dict) else []
    lines = (one_line(text, hidden) for text in texts if isinstance(text, str))
    return next((shown for shown in lines if shown), None)


def one_line(text: str, hidden: Collection[str]) -> str:
    """Return a string as one short, printable line with our secrets removed."""
    for secret in hidden:
        text = text.replace(secret, "***")
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return shown if len(shown) <= LONGEST_REASON else f"{shown[: LONGEST_REASON - 1]}…"


def texts_to_hide(request: requests.PreparedRequest) -> list[str]:
    """Return the strings of a request that must not be shown: its credentials, and the query of its URL."""
    sent = [request.headers.get(name) for name in ("X-Auth-Token", "Authorization")]
    query = urlsplit(request.url or "").query
    return [str(value).removeprefix("Bearer ") for value in (*sent, query) if value]


def may_have_arrived(error: Exception) -> bool:
    """Return whether the service may have received the request before this error."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    unsent = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    return not isinstance(cause, unsent)
