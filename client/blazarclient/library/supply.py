# SPDX-License-Identifier: Apache-2.0
"""Addresses, and how much is free over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blazarclient.exception import NotFound
from blazarclient.library.decoding import decode
from blazarclient.library.registered import Registered
from blazarclient.library.transport import Transport


@dataclass(frozen=True, kw_only=True)
class FloatingIp:
    """An address that can be reserved."""

    id: str
    floating_network_id: str
    floating_ip_address: str
    subnet_id: str | None = None
    reservable: bool = True
    created_at: datetime | None = None
    updated_at: datetime | None = None
    etag: str | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """Amounts by step, for the resources of one ``group``: property to value."""

    group: Mapping[str, Any] = field(default_factory=dict, hash=False)
    total: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    promised: tuple[int, ...] = ()
    out_of_use: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """How much is free over time; a point is the instant of its step at which the fewest are."""

    as_of: datetime
    start: datetime
    end: datetime
    step_seconds: int
    measure: str = "resource"
    series: tuple[Series, ...] = ()


class FloatingIps(Registered[FloatingIp]):
    """Addresses of external networks that can be reserved, for operators.

    Filters of lists: ``floating_network_id``, ``subnet_id``, ``floating_ip_address``, and those of any kind.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "floatingip", FloatingIp)

    def register(self, network_id: str, address: str) -> FloatingIp:
        """Have an address of an external network reserved from now on."""
        return self._registered({"floating_network_id": network_id, "floating_ip_address": address})

    def find(self, address_or_id: str) -> FloatingIp:
        """Return the address, by itself or by its id. NotFound."""
        found = next(self.list(floating_ip_address=address_or_id, limit=1), None)
        try:
            return self.get(address_or_id if found is None else found.id)
        except NotFound:
            raise NotFound(f"There is no address {address_or_id} that can be reserved") from None


def capacity(transport: Transport, query: Mapping[str, Any]) -> Capacity:
    """Return how much is free over time."""
    told = transport.ask("GET", "/capacity", query=query).part("capacity")
    renamed = {**told, "start": told.get("from"), "end": told.get("to")} if isinstance(told, Mapping) else told
    return decode(Capacity, renamed)
