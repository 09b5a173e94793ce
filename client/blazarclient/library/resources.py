# SPDX-License-Identifier: Apache-2.0
"""Hosts, hypervisors, properties and feeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blazarclient.exception import NotFound, NoUniqueMatch
from blazarclient.library.decoding import decode
from blazarclient.library.leases import Date, written
from blazarclient.library.supply import Promised, promised
from blazarclient.library.transport import Answer, Transport, exactly, part_of_path
from blazarclient.library.values import Feed, Host, Hypervisor, Property

KEEP = object()
"""Stands for a value that a change leaves as it is, where None means something."""


class Hosts:
    """Registered hosts, for operators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def register(self, name: str, *, properties: Mapping[str, Any] | None = None) -> Host:
        """Register a host of the cloud by its hypervisor hostname. Conflict if it is registered, or has servers."""
        return _host(
            self._transport.ask("POST", "/os-hosts", body={"name": name, "properties": dict(properties or {})})
        )

    def get(self, host_id: str) -> Host:
        """Return a host."""
        return _host(self._transport.ask("GET", _path(host_id)))

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

    def list(
        self, /, *, fields: Sequence[str] | None = None, limit: int | None = None, **filters: Any
    ) -> Iterator[Host]:
        """Yield hosts, reading page by page.

        Filters: ``hypervisor_hostname``, ``availability_zone``, ``reservable``, ``condition`` (``ok``, ``disabled``,
        ``failed``), ``project_id``, ``requirement``, ``text``, ``sort_key``, ``sort_dir``.
        """
        for item in self._transport.pages("/os-hosts", "hosts", query={"fields": fields, "limit": limit, **filters}):
            yield decode(Host, item)

    def change(
        self,
        host_id: str,
        *,
        properties: Mapping[str, Any] | None = None,
        disabled: Any = KEEP,
        authorized_projects: Any = KEEP,
        if_match: str | None = None,
    ) -> Host:
        """Change a host and return it; a property of None is taken away."""
        body: dict[str, Any] = {} if properties is None else {"properties": dict(properties)}
        for key, value in (("disabled", disabled), ("authorized_projects", authorized_projects)):
            if value is not KEEP:
                body[key] = value
        headers = {"If-Match": if_match} if if_match else None
        # A change that was made has another tag: only without one is it the same when it is sent again.
        answer = self._transport.ask("PUT", _path(host_id), body=body, headers=headers, repeatable=if_match is None)
        return _host(answer)

    def disable(self, host_id: str, *, reason: str | None = None, until: Date | None = None) -> Host:
        """Have a host take no new leases, until it is enabled or ``until`` has come."""
        value: dict[str, Any] = {} if reason is None else {"reason": reason}
        if until is not None:
            value["until"] = written(until)
        return self.change(host_id, disabled=value)

    def enable(self, host_id: str) -> Host:
        """Have a host take leases again."""
        return self.change(host_id, disabled=None)

    def delete(self, host_id: str) -> None:
        """Take a host out of the service. Conflict if something of it is promised."""
        self._transport.ask("DELETE", _path(host_id))

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


def _host(answer: Answer) -> Host:
    return dataclasses.replace(decode(Host, answer.part("host")), etag=answer.etag)


def _path(host_id: str) -> str:
    return f"/os-hosts/{part_of_path(host_id)}"
