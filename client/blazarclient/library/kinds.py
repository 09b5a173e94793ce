# SPDX-License-Identifier: Apache-2.0
"""Resources of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.registered import Registered
from blazarclient.library.transport import Transport
from blazarclient.library.values import Kind, RegisteredResource


def kinds(transport: Transport) -> tuple[Kind, ...]:
    """Return the kinds of resources that the service has."""
    return tuple(decode(Kind, item) for item in transport.ask("GET", "/resources").items("kinds"))


class Resources(Registered[RegisteredResource]):
    """Registered resources of one kind.

    Filters of lists: ``name``, ``label``, ``reservable``, ``condition`` (``ok``, ``disabled``, ``failed``),
    ``project_id``, ``property`` (``name:value``, one or several), ``requirement``, ``text``, ``sort_key`` and
    ``sort_dir``.
    """

    def __init__(self, transport: Transport, kind: str) -> None:
        super().__init__(transport, kind, RegisteredResource)

    def register(
        self, given: Mapping[str, Any], *, properties: Mapping[str, Any] | None = None, **more: Any
    ) -> RegisteredResource:
        """Register the resource that ``given`` names, by the fields that the kind's ``registration`` describes.

        Conflict if it is registered, or in use; ``disabled`` and ``authorized_projects`` may be given, too.
        """
        return self._registered({**given, "properties": dict(properties or {}), **more})

    def change_attributes(
        self, resource_id: str, attributes: Mapping[str, Any], *, if_match: str | None = None, **more: Any
    ) -> RegisteredResource:
        """Change what the registration has said of a resource, and what ``change`` does besides; return it.

        Only of kinds that let it be changed, such as the capacity of a generic resource. Conflict if more is promised.
        """
        headers = {"If-Match": if_match} if if_match else None
        body = {"attributes": dict(attributes), **more}
        return self._decoded(self._transport.ask("PUT", self._path(resource_id), body=body, headers=headers))
