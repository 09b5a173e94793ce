# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: who is told of what happens, by messages over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Subscription


class Subscriptions:
    """Subscriptions of the project; operators see those of all."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        url: str,
        events: Sequence[str],
        *,
        lease_id: str | None = None,
        batch: bool = False,
        everything: bool = False,
    ) -> Subscription:
        """Subscribe; the ``secret`` with which messages are signed is told only now.

        ``events``: names such as ``lease.started`` or ``lease.*``. ``lease_id``: of this lease only. ``batch``: up to
        50 of them in one message. ``everything``: of all projects, for operators.
        """
        body: dict[str, Any] = {"url": url, "events": list(events)}
        if lease_id is not None:
            body["lease_id"] = lease_id
        if batch:
            body["batch"] = True
        if everything:
            body["project_id"] = None
        return _read(self._transport.ask("POST", "/subscriptions", body=body))

    def get(self, subscription_id: str) -> Subscription:
        """Return a subscription. NotFound."""
        return _read(self._transport.ask("GET", _path(subscription_id)))

    def list(self, /, **filters: Any) -> Iterator[Subscription]:
        """Yield subscriptions. Filters: ``state``, ``project_id`` (for operators), ``limit``."""
        for item in self._transport.pages("/subscriptions", "subscriptions", query=filters):
            yield decode(Subscription, item)

    def change(self, subscription_id: str, /, **changes: Any) -> Subscription:
        """Change ``url``, ``events``, ``batch`` or ``state`` (``active``, ``paused``), or make a ``new_secret``."""
        return _read(self._transport.ask("PATCH", _path(subscription_id), body=changes))

    def delete(self, subscription_id: str) -> None:
        """Delete a subscription: nothing more is sent."""
        self._transport.ask("DELETE", _path(subscription_id))


def _path(subscription_id: str) -> str:
    return f"/subscriptions/{part_of_path(subscription_id)}"


def _read(answer: Any) -> Subscription:
    return decode(Subscription, answer.part("subscription"))
