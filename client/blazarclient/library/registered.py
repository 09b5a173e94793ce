# SPDX-License-Identifier: Apache-2.0
"""What can be done with registered resources, be they hosts or of any kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from blazarclient.library.decoding import decode
from blazarclient.library.transport import MICROVERSION, Answer, Transport, part_of_path
from blazarclient.library.written import Date, written

KEEP = object()
"""Stands for a value that a change leaves as it is, where None means something."""

T = TypeVar("T")


class Registered(Generic[T]):
    """Registered resources at a path. ``keys``: where an answer has one of them, and several."""

    def __init__(
        self, transport: Transport, path: str, keys: tuple[str, str], made: type[T], microversion: str = MICROVERSION
    ) -> None:
        self._transport = transport
        self._base = path
        self._one, self._many = keys
        self._made = made
        self._version = microversion

    def get(self, resource_id: str) -> T:
        """Return one."""
        return self._decoded(self._ask("GET", self._path(resource_id)))

    def list(self, /, *, fields: Sequence[str] | None = None, limit: int | None = None, **filters: Any) -> Iterator[T]:
        """Yield them, reading page by page."""
        query = {"fields": fields, "limit": limit, **filters}
        for item in self._transport.pages(self._base, self._many, query=query, microversion=self._version):
            yield decode(self._made, item)

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
        answer = self._ask("PUT", self._path(resource_id), body=body, headers=headers, repeatable=if_match is None)
        return self._decoded(answer)

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
        self._ask("DELETE", self._path(resource_id))

    def _registered(self, body: Mapping[str, Any]) -> T:
        return self._decoded(self._ask("POST", self._base, body=body))

    def _ask(self, method: str, path: str, **more: Any) -> Answer:
        return self._transport.ask(method, path, microversion=self._version, **more)

    def _decoded(self, answer: Answer) -> T:
        found: Any = decode(self._made, answer.part(self._one))
        return cast(T, dataclasses.replace(found, etag=answer.etag))

    def _path(self, resource_id: str) -> str:
        return f"{self._base}/{part_of_path(resource_id)}"
