# SPDX-License-Identifier: Apache-2.0
"""``Idempotency-Key``: a request for a lease that is sent again gets the lease that it made."""

from __future__ import annotations

import hashlib
import json
import re

from flask import request

from blazar.api.identity import Caller
from blazar.api.routes import in_header
from blazar.api.shapes import Json
from blazar.model.errors import InvalidInput
from blazar.model.requests import IdempotencyKey

HEADER = "Idempotency-Key"
LONGEST = 255
MEANING = 1
"""Raised when the same body means something else: in all versions from 1.1 on it has meant the same."""
IDEMPOTENCY_KEY = in_header(
    HEADER, f"1 to {LONGEST} visible ASCII characters: however often the request is sent, it makes one"
)
_KEY = re.compile(rf'"([\x21\x23-\x7e]{{1,{LONGEST}}})"|([\x21\x23-\x7e]{{1,{LONGEST}}})')


def key_of(body: Json, caller: Caller, *, route: str = "POST /v1/leases") -> IdempotencyKey | None:
    """Return the key of a request to a route that makes something; None if it has none. InvalidInput if malformed.

    The body counts as it was sent: ``now`` and durations are the same when they are sent again.
    """
    sent = request.headers.get(HEADER)
    if sent is None:
        return None
    match = _KEY.fullmatch(sent.strip())
    if match is None:
        sentence = f"{HEADER} is invalid; give 1 to {LONGEST} visible ASCII characters, in quotes or without"
        raise InvalidInput(sentence, header=HEADER)
    scope = (route, caller.project_id, caller.user_id, match[1] or match[2])
    return IdempotencyKey(_hash(list(scope)), _hash([MEANING, body]))


def _hash(value: list[object]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
