# SPDX-License-Identifier: Apache-2.0
"""What an enforcement service answered: its status, the reason for the user, and whether it may have taken note.

Little is read of an answer, and nothing of what we proved with who we are is repeated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from urllib.parse import urlsplit

import requests
import urllib3

from blazar.model.errors import BlazarError

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may be different the next time."""

NOT_PROCESSED = frozenset({401, 425, 429})
"""Statuses of a service that has not looked at what it was sent."""

REASONS = ("message", "error", "detail", "reason")
"""Where a refusal says why: the first of these that is a text."""

MOST_BYTES = 64 * 1024
"""What is read of an answer: a sentence for the user needs less."""

LONGEST_REASON = 500


class NoAnswer(BlazarError):
    """The service did not say what can be understood.

    ``passing``: another try may fare better. ``heard``: it may have heard and taken note all the same.
    """

    def __init__(self, message: str, *, passing: bool = False, heard: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
        self.heard = heard


def read(response: requests.Response, end: float, *, whole: bool) -> bytes:
    """Return a body as far as it came in time; NoAnswer if it is needed ``whole`` and has no end."""
    body = b""
    while part := response.raw.read1(8192, decode_content=False):
        body += part
        if len(body) > MOST_BYTES:
            if not whole:
                break
            raise NoAnswer(f"its answer is longer than {MOST_BYTES} bytes", heard=True)
        if time.monotonic() > end:
            if not whole:
                break
            raise NoAnswer("its answer took too long", heard=True)
    return body


def reason(text: bytes, hidden: Collection[str]) -> str | None:
    """Return the sentence for the user in a refusal, on one line; None if there is none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    texts = [body.get(key) for key in REASONS] if isinstance(body, dict) else []
    lines = (line(text, hidden) for text in texts if isinstance(text, str))
    return next((shown for shown in lines if shown), None)


def line(text: str, hidden: Collection[str]) -> str:
    """Return a text on one line that can be read and shown: printable, short, nothing of our secrets in it."""
    for secret in hidden:
        text = text.replace(secret, "***")
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return shown if len(shown) <= LONGEST_REASON else f"{shown[: LONGEST_REASON - 1]}…"


def to_hide(request: requests.PreparedRequest) -> list[str]:
    """Return what of a request is not to be shown: what proves who we are, and the query of its URL."""
    sent = [request.headers.get(name) for name in ("X-Auth-Token", "Authorization")]
    query = urlsplit(request.url or "").query
    return [str(value).removeprefix("Bearer ") for value in (*sent, query) if value]


def was_sent(error: Exception) -> bool:
    """Tell whether the service may have got what it was sent, before this happened."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    unsent = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    return not isinstance(cause, unsent)


def why(error: Exception) -> str:
    """Return what happened in words of our own."""
    match error:
        case requests.exceptions.SSLError():
            return "its certificate can not be trusted, or TLS fails"
        case requests.exceptions.Timeout() | urllib3.exceptions.TimeoutError():
            return "it did not answer in time"
        case requests.exceptions.ConnectionError():
            return "it can not be reached"
    return f"the connection broke ({type(error).__name__})"
