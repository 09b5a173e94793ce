# SPDX-License-Identifier: Apache-2.0
"""How users get into their servers: a public key, and user data, which may have a password and is secret."""

from __future__ import annotations

import base64
import binascii
import re

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json

PUBLIC_KEY, USER_DATA = "public_key", "user_data"

LONGEST_USER_DATA = 65535
"""Characters of base64, as in Nova."""
LONGEST_KEY = 16384

_KEY_TYPES = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]{1,60}")


def mask_user_data(given: Json) -> Json:
    """Return parameters as anybody may see them."""
    return {key: value for key, value in given.items() if key != USER_DATA}


def checked_public_key(value: object) -> str | None:
    """Return a public key in one line; InvalidInput does not quote what may be a private key by mistake."""
    if value is None:
        return None
    parts = value.split(maxsplit=2) if isinstance(value, str) and len(value) <= LONGEST_KEY else []
    if len(parts) < 2 or not _is_key(parts[0], parts[1]) or len(str(value).strip().splitlines()) != 1:
        raise InvalidInput(
            f'{PUBLIC_KEY} cannot be read; give one public key of SSH in one line, as "ssh-ed25519 AAAA… me@here"',
            at=f"/{PUBLIC_KEY}",
        )
    return str(value).strip()


def _is_key(kind: str, data: str) -> bool:
    """Return whether base64 data is a key of a kind: it begins with the kind's own name and its length."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return _KEY_TYPES.fullmatch(kind) is not None and raw.startswith(len(kind).to_bytes(4, "big") + kind.encode())


def checked_user_data(value: object) -> str | None:
    """Return base64 as it is; InvalidInput does not quote it, as it is secret."""
    if value is None:
        return None
    try:
        good = isinstance(value, str) and len(value) <= LONGEST_USER_DATA
        base64.b64decode(value if isinstance(value, str) else "", validate=True)
    except (binascii.Error, ValueError):
        good = False
    if not good:
        raise InvalidInput(
            f"{USER_DATA} cannot be read; give base64 of at most {LONGEST_USER_DATA} characters, as for Nova",
            at=f"/{USER_DATA}",
        )
    return str(value)
