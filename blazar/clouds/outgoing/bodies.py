# SPDX-License-Identifier: Apache-2.0
"""Bodies of answers, of which no more is read than is of use, and not for longer than there is time."""

from __future__ import annotations

import time
from enum import Enum, auto

import requests


class Cut(Enum):
    """Why a body was not read to its end."""

    TOO_LONG = auto()
    TOO_LATE = auto()


def read_body(response: requests.Response, *, most: int, end: float) -> tuple[bytes, Cut | None]:
    """Return a body as far as it was read, as it was sent, and why no further; None if that is all of it.

    It is read while it has no more than ``most`` bytes, and until ``end`` (``time.monotonic``).
    """
    body = b""
    while part := response.raw.read1(8192, decode_content=False):
        body += part
        if len(body) > most:
            return body, Cut.TOO_LONG
        if time.monotonic() > end:
            return body, Cut.TOO_LATE
    return body, None
