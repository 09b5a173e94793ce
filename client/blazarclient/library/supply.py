# SPDX-License-Identifier: Apache-2.0
"""Addresses, what is promised of resources, and how much is free over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blazarclient.exception import NotFound
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path


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


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A reservation's part of a resource; ``count``: how many units, where a resource is shared."""

    id: str
    lease_id: str
    start_date: datetime
    end_date: datetime
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class Promised:
    """A resource and what is promised of it."""

    resource_id: str
    reservations: tuple[Promise, ...] = ()


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


class FloatingIps:
    """Addresses of external networks that can be reserved, for operators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def register(self, network_id: str, address: str) -> FloatingIp:
        """Have an address of an external network reserved from now on."""
        body = {"floating_network_id": network_id, "floating_ip_address": address}
        return decode(FloatingIp, self._transport.ask("POST", "/floatingips", body=body).part("floatingip"))

    def get(self, address_id: str) -> FloatingIp:
        """Return an address by its id."""
        return decode(FloatingIp, self._transport.ask("GET", _path(address_id)).part("floatingip"))

    def find(self, address_or_id: str) -> FloatingIp:
        """Return the address, by itself or by its id. NotFound."""
        for one in self.list():
            if address_or_id in (one.id, one.floating_ip_address):
                return one
        raise NotFound(f"There is no address {address_or_id} that can be reserved")

    def list(self, /, **filters: Any) -> Iterator[FloatingIp]:
        """Yield the addresses, reading page by page."""
        for item in self._transport.pages("/floatingips", "floatingips", query=filters):
            yield decode(FloatingIp, item)

    def delete(self, address_id: str) -> None:
        """Have an address reserved no longer. Conflict if it is promised."""
        self._transport.ask("DELETE", _path(address_id))


def capacity(transport: Transport, query: Mapping[str, Any]) -> Capacity:
    """Return how much is free over time."""
    told = transport.ask("GET", "/capacity", query=query).part("capacity")
    renamed = {**told, "start": told.get("from"), "end": told.get("to")} if isinstance(told, Mapping) else told
    return decode(Capacity, renamed)


def promised(transport: Transport, query: Mapping[str, Any]) -> Iterator[Promised]:
    """Yield what is promised of each host, reading page by page."""
    for item in transport.pages("/os-hosts/allocations", "allocations", query=query):
        yield decode(Promised, item)


def _path(address_id: str) -> str:
    return f"/floatingips/{part_of_path(address_id)}"
