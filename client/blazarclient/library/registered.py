# SPDX-License-Identifier: Apache-2.0
"""What can be done with the registered resources of a kind, whatever the kind is and its values are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, cast

from blazarclient.exception import NotFound, NoUniqueMatch
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Answer, Repeated, Transport, exactly, part_of_path
from blazarclient.library.values import Candidate, RegisteredResource
from blazarclient.library.written import Date, written

KEEP = object()
"""Stands for a value that a change leaves as it is, where None means something."""

T = TypeVar("T")

_OF_EVERY_KIND = frozenset(each.name for each in dataclasses.fields(RegisteredResource))


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


class Registered(Generic[T]):
    """Registered resources of a kind, as values of a type; filters, orders and fields of lists have its names.

    ``called``: what the type calls a field of every kind. Its other own fields are attributes of the resource.
    """

    called: ClassVar[Mapping[str, str]] = {}

    def __init__(self, transport: Transport, kind: str, made: type[T]) -> None:
        self._transport = transport
        self._kind = kind
        self._base = f"/resources/{part_of_path(kind)}"
        self._made = made
        own = {each.name for each in dataclasses.fields(cast(Any, made))}
        self._attributes = own - _OF_EVERY_KIND - self.called.keys()

    def get(self, resource_id: str) -> T:
        """Return one."""
        return self._decoded(self._transport.ask("GET", self._path(resource_id)))

    def find(self, name_or_id: str) -> T:
        """Return the one of this name, or id. NotFound; NoUniqueMatch."""
        found = [str(item["id"]) for item in self._pages({"name": exactly(name_or_id), "fields": "id", "limit": 2})]
        if len(found) > 1:
            raise NoUniqueMatch(f"Several resources are called {name_or_id}; give an id")
        try:
            return self.get(found[0] if found else name_or_id)
        except NotFound as error:
            if error.fault is not None and error.fault.code == "reservation.kind_not_found":
                raise
            raise NotFound(f"There is no {self._kind} {name_or_id}") from None

    def list(
        self,
        /,
        *,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        property: str | Sequence[str] = (),
        **filters: Any,
    ) -> Iterator[T]:
        """Yield them, reading page by page; ``property`` is one ``name:value``, or several."""
        wanted = [property] if isinstance(property, str) else [*property]
        query: dict[str, Any] = {"limit": limit}
        for key, value in filters.items():
            if key in self._attributes and value is not None:
                wanted.append(f"{key}:{str(value).lower() if isinstance(value, bool) else value}")
            elif key == "sort_key":
                query[key] = f"property:{value}" if value in self._attributes else self.called.get(value, value)
            else:
                query[self.called.get(key, key)] = value
        if fields is not None:
            names = ("attributes" if each in self._attributes else self.called.get(each, each) for each in fields)
            query["fields"] = [*dict.fromkeys(names)]
        for item in self._pages({**query, "property": Repeated(wanted) if wanted else None}):
            yield self._value(item)

    def change(
        self,
        resource_id: str,
        *,
        properties: Mapping[str, Any] | None = None,
        disabled: Any = KEEP,
        authorized_projects: Any = KEEP,
        if_match: str | None = None,
    ) -> T:
        """Change one and return it; a property of None is taken away."""
        body: dict[str, Any] = {} if properties is None else {"properties": dict(properties)}
        for key, value in (("disabled", disabled), ("authorized_projects", authorized_projects)):
            if value is not KEEP:
                body[key] = value
        headers = {"If-Match": if_match} if if_match else None
        # A change that was made has another tag: only without one is it the same when it is sent again.
        repeatable = if_match is None
        path = self._path(resource_id)
        return self._decoded(self._transport.ask("PUT", path, body=body, headers=headers, repeatable=repeatable))

    def disable(self, resource_id: str, *, reason: str | None = None, until: Date | None = None) -> T:
        """Have one take no new leases, until it is enabled or ``until`` has come."""
        value: dict[str, Any] = {} if reason is None else {"reason": reason}
        if until is not None:
            value["until"] = written(until)
        return self.change(resource_id, disabled=value)

    def enable(self, resource_id: str) -> T:
        """Have one take leases again."""
        return self.change(resource_id, disabled=None)

    def delete(self, resource_id: str) -> None:
        """Take one out of the service. Conflict if something of it is promised."""
        self._transport.ask("DELETE", self._path(resource_id))

    def refresh(self, resource_id: str) -> T:
        """Have the service read the cloud's data about one again, and return it."""
        return self._decoded(self._transport.ask("POST", f"{self._path(resource_id)}/refresh", repeatable=True))

    def promised(self, /, **filters: Any) -> Iterator[Promised]:
        """Yield what is promised of each, reading page by page. Filters: ``lease_id``, ``reservation_id``."""
        for item in self._transport.pages(f"{self._base}/allocations", "allocations", query=filters):
            yield decode(Promised, item)

    def candidates(self, *, registered: bool | None = None) -> Iterator[Candidate]:
        """Yield what the cloud has to register, registered or not; nothing where the kind cannot tell."""
        query = {"registered": registered}
        for item in self._transport.pages(f"{self._base}/candidates", "candidates", query=query):
            yield decode(Candidate, item)

    def set_private(self, property_name: str, private: bool) -> None:
        """Have a property shown to operators only, or to all."""
        path = f"{self._base}/properties/{part_of_path(property_name)}"
        self._transport.ask("PATCH", path, body={"private": private}, repeatable=True)

    def _registered(self, body: Mapping[str, Any]) -> T:
        return self._decoded(self._transport.ask("POST", self._base, body=body))

    def _pages(self, query: Mapping[str, Any]) -> Iterator[Any]:
        return self._transport.pages(self._base, "resources", query=query)

    def _decoded(self, answer: Answer) -> T:
        found: Any = self._value(answer.part("resource"))
        return cast(T, dataclasses.replace(found, etag=answer.etag))

    def _value(self, item: Any) -> T:
        if not isinstance(item, Mapping):
            return decode(self._made, item)
        attributes = item.get("attributes")
        known = attributes if isinstance(attributes, Mapping) else {}
        # Names of some kinds are for operators; members have the default of the type.
        named = {ours: item[theirs] for ours, theirs in self.called.items() if item.get(theirs) is not None}
        return decode(self._made, {**{key: known[key] for key in self._attributes if key in known}, **item, **named})

    def _path(self, resource_id: str) -> str:
        return f"{self._base}/{part_of_path(resource_id)}"
