# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: to whom events are sent, over HTTPS or by mail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import DeliveryFailure, Subscription
from blazarclient.library.written import Date, written


class Subscriptions:
    """Subscriptions of the project; operators see those of all."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        url: str | None,
        events: Sequence[str],
        *,
        lease_id: str | None = None,
        batch: bool = False,
        everything: bool = False,
    ) -> Subscription:
        """Subscribe; the ``secret`` with which messages are signed is told only now.

        ``url`` None: by mail, to the caller's address in Keystone.

        ``events``: names such as ``lease.started`` or ``lease.*``. ``lease_id``: of this lease only. ``batch``: up to
        50 of them in one message. ``everything``: of all projects, for operators.
        """
        body: dict[str, Any] = {"events": list(events)} | ({"channel": "mail"} if url is None else {"url": url})
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

    def mine(self) -> Subscription:
        """Return what the caller is told by mail of their own leases, in whatever project."""
        return _read(self._transport.ask("GET", "/subscriptions/mine"))

    def change_mine(self, **changes: Any) -> Subscription:
        """Change ``events`` (none: no mail), ``digest`` (``none``, ``daily``), ``time_zone`` or ``state``."""
        return _read(self._transport.ask("PATCH", "/subscriptions/mine", body=changes))

    def list(self, /, **filters: Any) -> Iterator[Subscription]:
        """Yield subscriptions. Filters: ``state``, ``project_id`` (for operators), ``limit``."""
        for item in self._transport.pages("/subscriptions", "subscriptions", query=filters):
            yield decode(Subscription, item)

    def change(self, subscription_id: str, /, **changes: Any) -> Subscription:
        """Change ``url``, ``events``, ``batch`` or ``state`` (``active``, ``paused``), or make a ``new_secret``."""
        return _read(self._transport.ask("PATCH", _path(subscription_id), body=changes))

    def test(self, subscription_id: str) -> Subscription:
        """Have a test sent to the receiver; ``state``, ``reason`` and ``last_delivered_at`` tell soon what it did."""
        return _read(self._transport.ask("POST", f"{_path(subscription_id)}/test"))

    def replay(self, subscription_id: str, *, after: int | None = None, since: Date | None = None) -> Subscription:
        """Have all be told again that comes ``after`` a position, or that has happened ``since`` a date."""
        body: dict[str, Any] = {}
        if after is not None:
            body["after"] = after
        if since is not None:
            body["from"] = written(since)
        return _read(self._transport.ask("POST", f"{_path(subscription_id)}/replay", body=body))

    def failures(self, subscription_id: str, /, **filters: Any) -> Iterator[DeliveryFailure]:
        """Yield the messages that the receiver has refused for good in the last 30 days, oldest first."""
        for item in self._transport.pages(f"{_path(subscription_id)}/failures", "failures", query=filters):
            yield decode(DeliveryFailure, item)

    def delete(self, subscription_id: str) -> None:
        """Delete a subscription: nothing more is sent."""
        self._transport.ask("DELETE", _path(subscription_id))


def _path(subscription_id: str) -> str:
    return f"/subscriptions/{part_of_path(subscription_id)}"


def _read(answer: Any) -> Subscription:
    return decode(Subscription, answer.part("subscription"))
