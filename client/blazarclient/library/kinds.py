# SPDX-License-Identifier: Apache-2.0
"""Resources of any kind, at microversion 1.2, and from 1.3 on what only that knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from blazarclient.exception import NotFound, NoUniqueMatch, UnsupportedVersion
from blazarclient.library.decoding import decode
from blazarclient.library.registered import Registered
from blazarclient.library.supply import Promised
from blazarclient.library.transport import KINDS, Repeated, Transport, exactly, part_of_path
from blazarclient.library.values import Candidate, Kind, RegisteredResource

MICROVERSION = "1.2"

_NEWER = frozenset({"evacuable"})
"""Fields of registrations that 1.3 knows: asked for only where one is given, for services before it."""


def kinds(transport: Transport) -> tuple[Kind, ...]:
    """Return the kinds of resources that the service has."""
    try:
        answer = transport.ask("GET", "/resources", microversion=KINDS)
    except UnsupportedVersion:
        answer = transport.ask("GET", "/resources", microversion=MICROVERSION)
    return tuple(decode(Kind, item) for item in answer.items("kinds"))


class Resources(Registered[RegisteredResource]):
    """Registered resources of one kind.

    Filters of lists: ``name``, ``label``, ``reservable``, ``condition`` (``ok``, ``disabled``, ``failed``),
    ``project_id``, ``property`` (``name:value``, one or several), ``requirement``, ``text``, ``sort_key`` and
    ``sort_dir``.
    """

    def __init__(self, transport: Transport, kind: str) -> None:
        super().__init__(
            transport, f"/resources/{part_of_path(kind)}", ("resource", "resources"), RegisteredResource, MICROVERSION
        )
        self._kind = kind

    def register(
        self, given: Mapping[str, Any], *, properties: Mapping[str, Any] | None = None, **more: Any
    ) -> RegisteredResource:
        """Register the resource that ``given`` names, by the fields that the kind's ``registration`` describes.

        Conflict if it is registered, or in use; ``disabled`` and ``authorized_projects`` may be given, too.
        """
        body = {**given, "properties": dict(properties or {}), **more}
        version = KINDS if _NEWER & given.keys() else MICROVERSION
        return self._decoded(self._transport.ask("POST", self._base, body=body, microversion=version))

    def find(self, name_or_id: str) -> RegisteredResource:
        """Return the resource of this name, or id. NotFound; NoUniqueMatch."""
        found = list(self.list(name=exactly(name_or_id), limit=2))
        if len(found) > 1:
            raise NoUniqueMatch(f"Several resources are called {name_or_id}; give an id")
        try:
            return self.get(found[0].id if found else name_or_id)
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
    ) -> Iterator[RegisteredResource]:
        """Yield the resources, reading page by page; ``property`` is one ``name:value``, or several."""
        wanted = [property] if isinstance(property, str) else list(property)
        filters["property"] = Repeated(wanted) if wanted else None
        return super().list(fields=fields, limit=limit, **filters)

    def change_attributes(
        self, resource_id: str, attributes: Mapping[str, Any], *, if_match: str | None = None, **more: Any
    ) -> RegisteredResource:
        """Change what the registration has said of a resource, and what ``change`` does besides; return it.

        Only of kinds that let it be changed, such as the capacity of a generic resource. Conflict if more is promised.
        """
        headers = {"If-Match": if_match} if if_match else None
        body = {"attributes": dict(attributes), **more}
        return self._decoded(self._ask("PUT", self._path(resource_id), body=body, headers=headers))

    def refresh(self, resource_id: str) -> RegisteredResource:
        """Have the service read the cloud's data about a resource again, and return it."""
        return self._decoded(self._ask("POST", f"{self._path(resource_id)}/refresh", repeatable=True))

    def promised(self, /, **filters: Any) -> Iterator[Promised]:
        """Yield what is promised of each resource, page by page. Filters: ``lease_id``, ``reservation_id``."""
        path = f"{self._base}/allocations"
        for item in self._transport.pages(path, "allocations", query=filters, microversion=MICROVERSION):
            yield decode(Promised, item)

    def candidates(self, *, registered: bool | None = None) -> Iterator[Candidate]:
        """Yield what the cloud has to register, registered or not; nothing where the kind cannot tell."""
        asked = partial(
            self._transport.pages, f"{self._base}/candidates", "candidates", query={"registered": registered}
        )
        try:
            found = list(asked(microversion=KINDS))
        except UnsupportedVersion:
            found = list(asked(microversion=MICROVERSION))
        for item in found:
            yield decode(Candidate, item)

    def set_private(self, property_name: str, private: bool) -> None:
        """Have a property shown to operators only, or to all."""
        path = f"{self._base}/properties/{part_of_path(property_name)}"
        self._ask("PATCH", path, body={"private": private}, repeatable=True)
