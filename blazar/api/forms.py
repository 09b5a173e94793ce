# SPDX-License-Identifier: Apache-2.0
"""The differences between the API versions, as values; the handlers are shared by all versions."""

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
    """The format of leases in one version.

    ``moment`` parses a start or an end, ``date`` any other date; both take the string and the name of its field.
    ``one`` and ``many`` are the envelope keys of a lease and of a list of leases; None: no envelope.
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
    """The format of hosts in one version.

    ``host_id`` parses an id from a path; ``one`` and ``many`` are as in ``LeaseForm``.
    """

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
    """Return a value in an envelope with this key; the value itself if the key is None."""
    return value if key is None else {key: value}
