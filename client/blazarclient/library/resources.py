# SPDX-License-Identifier: Apache-2.0
"""Hosts, hypervisors, properties and feeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blazarclient.exception import NotFound, NoUniqueMatch
from blazarclient.library.decoding import decode
from blazarclient.library.registered import Registered
from blazarclient.library.supply import Promised, promised
from blazarclient.library.transport import Transport, exactly, part_of_path
from blazarclient.library.values import Feed, Host, Hypervisor, Property


class Hosts(Registered[Host]):
    """Registered hosts, for operators.

    Filters of lists: ``hypervisor_hostname``, ``availability_zone``, ``reservable``, ``condition`` (``ok``,
    ``disabled``, ``failed``), ``project_id``, ``requirement``, ``text``, ``sort_key``, ``sort_dir``.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "/os-hosts", ("host", "hosts"), Host)

    def register(self, name: str, *, properties: Mapping[str, Any] | None = None) -> Host:
        """Register a host of the cloud by its hypervisor hostname. Conflict if it is registered, or has servers."""
        return self._registered({"name": name, "properties": dict(properties or {})})

    def find(self, name_or_id: str) -> Host:
        """Return the host of this hypervisor hostname, or id. NotFound; NoUniqueMatch."""
        found = list(self.list(hypervisor_hostname=exactly(name_or_id), limit=2))
        if len(found) > 1:
            raise NoUniqueMatch(f"Several hosts are called {name_or_id}; give an id")
        if found:
            return self.get(found[0].id)
        try:
            return self.get(name_or_id)
        except NotFound:
            raise NotFound(f"There is no host {name_or_id}") from None

    def promised(self, /, **filters: Any) -> Iterator[Promised]:
        """Yield what is promised of each host, reading page by page. Filters: ``lease_id``, ``reservation_id``."""
        return promised(self._transport, filters)

    def hypervisors(self, *, registered: bool | None = None) -> Iterator[Hypervisor]:
        """Yield the hosts of the cloud, registered or not."""
        for item in self._transport.pages("/hypervisors", "hypervisors", query={"registered": registered}):
            yield decode(Hypervisor, item)

    def set_private(self, property_name: str, private: bool) -> None:
        """Have a property shown to operators only, or to all."""
        self._transport.ask(
            "PATCH", f"/os-hosts/properties/{part_of_path(property_name)}", body={"private": private}, repeatable=True
        )


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
