# SPDX-License-Identifier: Apache-2.0
"""What the versions of the API differ in, as values. What they have in common is done by the handlers, for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from blazar.api.schemas import Schema
from blazar.model.lease import Lease
from blazar.model.requests import HostChange, HostRequest, Moment
from blazar.model.resource import Resource

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LeaseForm:
    """How a version speaks of leases.

    ``moment`` reads a start or an end, ``date`` any other date; both take the text and the name of its field.
    ``one`` and ``many`` are the keys under which an answer has a lease or a list of them; None: it is the answer.
    """

    version: str
    created: Schema
    changed: Schema
    moment: Callable[[str, str], Moment]
    date: Callable[[str, str], datetime]
    shown: Callable[[Lease], Json]
    one: str | None
    many: str | None


@dataclass(frozen=True, slots=True)
class HostForm:
    """How a version speaks of hosts; ``host_id`` reads one from a path, ``one`` and ``many`` are as for leases."""

    version: str
    created: Schema
    changed: Schema
    host_id: Callable[[str], str]
    request: Callable[[Json], HostRequest]
    change: Callable[[Json], HostChange]
    shown: Callable[[Resource], Json]
    one: str | None
    many: str | None


def enclosed(key: str | None, value: Any) -> Any:
    """Return an answer that has a value under a key, or is the value."""
    return value if key is None else {key: value}
