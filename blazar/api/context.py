# SPDX-License-Identifier: Apache-2.0
"""What the handlers share: the manager, the policy, and who is asking."""

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
    """What an application is made of, and which versions of the API it serves; ``rendered`` has the lists of each."""

    manager: Manager
    identity: Identity
    policy: Policy
    rendered: Mapping[str, RenderedLeases]
    enable_v1: bool
    v2_controllers: frozenset[str]


def services() -> Services:
    """Return the services of the application that handles this request."""
    return cast(Services, current_app.extensions[EXTENSION])


def caller() -> Caller:
    """Return who is asking."""
    return cast(Caller, g.caller)


def speaks_v2() -> bool:
    """Tell whether the request is for version 2, whatever comes of it."""
    return request.path == "/v2" or request.path.startswith("/v2/")


def identifier(text: str) -> str:
    """Return an id from a path or a query, without ``.json``.

    What can be no id of ours becomes ``-``, which nothing has: it is not found like any other, and
    does not reach a database with characters that it can not store.
    """
    text = text.removesuffix(".json")
    return text if _PLAUSIBLE.fullmatch(text) else "-"
