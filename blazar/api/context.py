# SPDX-License-Identifier: Apache-2.0
"""Objects that the handlers share: the manager, the policy and the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from flask import current_app, g, request

from blazar.api.identity import Caller, Identity
from blazar.api.policy import Policy
from blazar.api.rendered import RenderedLeases
from blazar.rpc.interface import Manager

EXTENSION = "blazar"
_PLAUSIBLE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of an application and the API versions it serves; ``rendered`` has a lease cache per version."""

    manager: Manager
    identity: Identity
    policy: Policy
    rendered: Mapping[str, RenderedLeases]
    enable_v1: bool
    v2_controllers: frozenset[str]


def services() -> Services:
    """Return the services of the application that serves this request."""
    return cast(Services, current_app.extensions[EXTENSION])


def caller() -> Caller:
    """Return the caller of this request."""
    return cast(Caller, g.caller)


def speaks_v2() -> bool:
    """Return whether the path of the request belongs to version 2."""
    return request.path == "/v2" or request.path.startswith("/v2/")


def identifier(text: str) -> str:
    """Return an id from a path or a query, without ``.json``.

    Anything that cannot be an id becomes ``-``, which no object has: the result is an ordinary 404, and no database
    gets characters that it cannot store.
    """
    text = text.removesuffix(".json")
    return text if _PLAUSIBLE.fullmatch(text) else "-"
