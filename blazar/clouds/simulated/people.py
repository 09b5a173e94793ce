# SPDX-License-Identifier: Apache-2.0
"""The simulated people and their mail: addresses that are set, and a server that keeps what it is given."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from blazar.clouds.ports.webhooks import Reception, WebhookReceipt

ACCEPTED = WebhookReceipt(Reception.ACCEPTED)
"""What the server answers unless a test says something else."""


class SimulatedPeople:
    """Implements the port of people: users have the ``addresses`` that are set, by id."""

    def __init__(self, addresses: Mapping[str, str] | None = None) -> None:
        self.addresses = dict(addresses or {})

    def find_address(self, user_id: str) -> str | None:
        """Return the address that is set for a user; None if there is none."""
        return self.addresses.get(user_id)


_SECRET = "s" * 43


class SimulatedMail:
    """Implements the port of mail: ``sent`` is what was accepted, with the address that it went to.

    ``answers`` has what is answered for an address that is not simply served.
    """

    enabled = True
    """There always is a server."""

    sender = "blazar@cloud.example"

    def __init__(self) -> None:
        self.sent: list[tuple[str, EmailMessage]] = []
        self.answers: dict[str, WebhookReceipt] = {}
        self._lock = threading.Lock()

    def send(self, address: str, message: bytes) -> WebhookReceipt:
        """Keep a message, if its address is served."""
        receipt = self.answers.get(address, ACCEPTED)
        if receipt.reception is Reception.ACCEPTED:
            parsed = message_from_bytes(message, policy=default)
            with self._lock:
                self.sent.append((address, parsed))
        return receipt

    def reveal_link(self, subscription_id: str) -> str | None:
        """Return a link whose secret is nothing secret."""
        return f"https://cloud.example/reservation/unsubscribe/{subscription_id}/{_SECRET}"

    def is_secret_of(self, subscription_id: str, secret: str) -> bool:
        """Return whether it is that of these links."""
        return secret == _SECRET
