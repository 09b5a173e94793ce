# SPDX-License-Identifier: Apache-2.0
"""What an application serves: the routes of the enabled versions, and the document that describes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from blazar.api import openapi
from blazar.api.microversion import MAX_VERSION, Version
from blazar.api.routes import Part, Root, Route, up_to

CONTROLLERS = ("oshosts", "leases")
"""Names in option ``api_v2_controllers``: the parts that version 2 has."""

_MARK = "\x00url"
"""Placeholder for the URL of the service in the document; nothing else in it has a NUL character."""


class Served:
    """The routes of ``parts`` in the enabled versions, up to the microversion ``newest``.

    ``enable_v1`` and ``v2_controllers`` are as the options ``enable_v1_api`` and ``[api] api_v2_controllers``.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        enable_v1: bool = True,
        v2_controllers: Collection[str] = CONTROLLERS,
        newest: Version = MAX_VERSION,
    ) -> None:
        parts = up_to(parts, newest)
        self.newest = newest
        roots = {Root.SERVICE, *((Root.V1,) if enable_v1 else ())}
        self.has_v1, self.has_v2 = enable_v1, bool(v2_controllers)
        self.routes: tuple[Route, ...] = tuple(
            row
            for part in parts
            for row in part.routes
            if row.root in roots or (row.root is Root.V2 and part.controller in v2_controllers)
        )
        self.requests = openapi.requests(parts)
        # Rules of all routes and of what their answers show, in the order of the policy document.
        self.rules: tuple[str, ...] = tuple(rule.name for part in parts for rule in (*part.rules, *part.views))
        # Also those of a version that is not enabled: without a token, they are 404 and not 401.
        self.open_urls = frozenset(row.url for part in parts for row in part.routes if row.is_open)
        document = openapi.document(_MARK, self.routes, parts)
        self._text = json.dumps(document, separators=(",", ":")).split(json.dumps(_MARK))

    def document(self, url: str) -> str:
        """Return the OpenAPI document of a service at ``url``, as JSON; only the URL is filled in."""
        return json.dumps(url or "/").join(self._text)
