# SPDX-License-Identifier: Apache-2.0
"""Secrets of receivers, and signatures as in Standard Webhooks 1.0.0.

No secret is stored. The operator configures master secrets, and the secret of each thing is derived from them and the
thing's id: a reader of the database can forge nothing, and the receiver of one thing cannot forge calls to another.
With several master secrets every call is signed with all, so that one can be replaced without a gap.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence

from blazar.model.base.errors import InvalidInput

LABEL = b"blazar hook of thing 1:"
SUBSCRIPTION_LABEL = b"blazar subscription 1:"
UNSUBSCRIBE_LABEL = b"blazar unsubscribe 1:"
"""Separate these secrets from each other, and from anything else that might be derived from a master secret."""

SHORTEST_MASTER = 32

PREFIX = "whsec_"


def check_master_lengths(masters: Sequence[str], section: str = "generic") -> None:
    """Raise InvalidInput if a master secret is too short; it is not repeated."""
    for number, master in enumerate(masters, start=1):
        if len(master) < SHORTEST_MASTER:
            raise InvalidInput(
                f"[{section}] master_secrets: number {number} has {len(master)} characters, and at least "
                f"{SHORTEST_MASTER} are needed; make one by: openssl rand -base64 32"
            )


def derive_secret(master: str, thing_id: str) -> bytes:
    """Return the secret of a thing: HMAC-SHA256 of its id, 32 bytes."""
    return hmac.digest(master.encode(), LABEL + thing_id.encode(), "sha256")


def derive_subscription_secret(master: str, subscription_id: str, generation: int) -> bytes:
    """Return the secret of a subscription: HMAC-SHA256 of its id and of how often it has got a new one, 32 bytes."""
    return hmac.digest(master.encode(), SUBSCRIPTION_LABEL + f"{subscription_id}:{generation}".encode(), "sha256")


def derive_unsubscribe_secret(master: str, subscription_id: str) -> str:
    """Return the secret of the link that ends the mail of a subscription: HMAC-SHA256 of its id, as part of a URL."""
    digest = hmac.digest(master.encode(), UNSUBSCRIBE_LABEL + subscription_id.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def secret_text(secret: bytes) -> str:
    """Return a secret as receivers are given it."""
    return PREFIX + base64.b64encode(secret).decode()


def secrets_of(masters: Sequence[str], thing_id: str) -> tuple[str, ...]:
    """Return the secrets of a thing as its receiver is given them, that of the first master secret first."""
    return tuple(secret_text(derive_secret(master, thing_id)) for master in masters)


def sign(secrets: Sequence[bytes], *, message_id: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """Return the headers of a signed message; the timestamp is of this attempt."""
    if "." in message_id:
        raise ValueError(f"the id {message_id!r} has a full stop, which parts the signed text")
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(secret, signed, "sha256")).decode() for secret in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
