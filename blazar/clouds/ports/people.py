# SPDX-License-Identifier: Apache-2.0
"""The ports of people: which address of theirs Keystone has, and the mail that is sent there."""

from __future__ import annotations

from typing import Protocol

from blazar.clouds.ports.webhooks import Reception, WebhookReceipt

NO_MAIL = "this service sends no mail: [mail] smtp_url is not set in blazar.conf; ask its operators"
NO_ADDRESS = "Keystone has no e-mail address of this user"


class People(Protocol):
    """What Keystone knows of users."""

    def find_address(self, user_id: str) -> str | None:
        """Return the e-mail address of a user; None if there is none, or no such user.

        CloudUnavailable; CloudRefused if the service user may not read it.
        """


class Mail(Protocol):
    """A server that takes mail."""

    @property
    def enabled(self) -> bool:
        """Whether there is a server; without one nothing is sent."""

    @property
    def sender(self) -> str:
        """The address that mail comes from."""

    def send(self, address: str, message: bytes) -> WebhookReceipt:
        """Send a message (RFC 5322) to an address, within 30 seconds. No errors of its own."""

    def reveal_link(self, subscription_id: str) -> str | None:
        """Return the link by which a reader of mail of a subscription ends that; None if no links are made."""

    def is_secret_of(self, subscription_id: str, secret: str) -> bool:
        """Return whether a secret is that of the link of a subscription."""


class NoPeople:
    """A process that asks Keystone nothing: nobody has an address."""

    def find_address(self, user_id: str) -> str | None:
        """Return None."""
        return None


class NoMail:
    """The mail of a process that sends none."""

    enabled = False
    sender = ""

    def send(self, address: str, message: bytes) -> WebhookReceipt:
        """Send nothing: it may be sent once there is a server."""
        return WebhookReceipt(Reception.FAILED, NO_MAIL)

    def reveal_link(self, subscription_id: str) -> str | None:
        """Return None."""
        return None

    def is_secret_of(self, subscription_id: str, secret: str) -> bool:
        """Return False."""
        return False
