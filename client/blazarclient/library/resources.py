# SPDX-License-Identifier: Apache-2.0
"""Hosts, hypervisors, properties and feeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.registered import Registered
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Feed, Host, Hypervisor, Property


class Hosts(Registered[Host]):
    """Registered hosts. Operators see all of them, members what is public of those that they may reserve.

    Filters of lists: ``hypervisor_hostname``, ``availability_zone``, ``reservable``, ``condition`` (``ok``,
    ``disabled``, ``failed``), ``project_id``, ``property``, ``requirement``, ``text``, ``sort_key``, ``sort_dir``.
    """

    called = MappingProxyType({"hypervisor_hostname": "name"})

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "host", Host)

    def register(self, name: str, *, properties: Mapping[str, Any] | None = None) -> Host:
        """Register a host of the cloud by its hypervisor hostname. Conflict if it is registered, or has servers."""
        return self._registered({"name": name, "properties": dict(properties or {})})

    def hypervisors(self, *, registered: bool | None = None) -> Iterator[Hypervisor]:
        """Yield the hosts of the cloud, registered or not."""
        for each in self.candidates(registered=registered):
            yield Hypervisor(
                id=each.id,
                hypervisor_hostname=each.name,
                state=each.state,
                servers=each.servers,
                host_id=each.resource_id,
            )

    def _value(self, item: Any) -> Host:
        host = super()._value(item)
        return replace(host, cpu_info=_parsed(host.cpu_info))


class Feeds:
    """Links for calendar programs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, /, kind: str = "user", *, name: str | None = None, **values: Any) -> Feed:
        """Make a feed; its ``url`` is a secret and is told only now. ``kind``: user, project, resource, free_busy."""
        body = {"kind": kind, **({} if name is None else {"name": name}), **values}
        return decode(Feed, self._transport.ask("POST", "/feeds", body=body).part("feed"))

    def list(self, /, **filters: Any) -> Iterator[Feed]:
        """Yield the caller's feeds."""
        for item in self._transport.pages("/feeds", "feeds", query=filters):
            yield decode(Feed, item)

    def delete(self, feed_id: str) -> None:
        """Revoke a feed: its link is dead at once."""
        self._transport.ask("DELETE", f"/feeds/{part_of_path(feed_id)}")


def properties(transport: Transport, resource_type: str | None = None) -> tuple[Property, ...]:
    """Return the properties by which resources of a type can be chosen."""
    answer = transport.ask("GET", "/properties", query={"resource_type": resource_type})
    return tuple(decode(Property, item) for item in answer.items("properties"))


def _parsed(text: Any) -> Any:
    """Return what Nova says of the processor; None if that is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
