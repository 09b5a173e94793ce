# SPDX-License-Identifier: Apache-2.0
"""What is newer than the type or kind that it is of: before its microversion nobody knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blazar.api.shapes import Json
from blazar.model.errors import InvalidInput
from blazar.model.lease import Lease
from blazar.model.resource import EVACUABLE, HOST, ResourceKind

_SINCE: Mapping[str, Mapping[str, int]] = {"network": {"subnet": 2}}
"""Parameters of reservations by resource type and name: the 1.x from which it is accepted and shown."""

_FIELDS_SINCE: Mapping[ResourceKind, Mapping[str, int]] = {HOST: {EVACUABLE: 3}}
"""Fields of the registration by kind and name: the 1.x from which it is accepted and described."""


def unknown(resource_type: object, minor: int) -> frozenset[str]:
    """Return the parameters of a resource type that requests and answers of 1.``minor`` do not have."""
    known = _SINCE.get(resource_type, {}) if isinstance(resource_type, str) else {}
    return frozenset(name for name, since in known.items() if since > minor)


def without_newer(values: Mapping[str, Any], resource_type: str, minor: int) -> Json:
    """Return the parameters of a reservation as answers of 1.``minor`` have them."""
    hidden = unknown(resource_type, minor)
    return {key: value for key, value in values.items() if key not in hidden}


def check_known(body: Json, lease: Lease | None = None) -> None:
    """Raise InvalidInput if a request of 1.0, for a new lease or for the change of one, has a newer parameter."""
    found = () if lease is None else lease.reservations
    types: Mapping[str | None, str] = {each.id: each.resource_type for each in found}
    for number, item in enumerate(body.get("reservations", [])):
        id_ = item.get("id")
        # Nobody has looked at it yet, and a new reservation of 1.0 may have anything there.
        resource_type = types.get(id_ if isinstance(id_, str) else None, item.get("resource_type"))
        for name in sorted(unknown(resource_type, 0) & item.keys()):
            since = _SINCE[str(resource_type)][name]
            raise InvalidInput(
                f"reservations[{number}].{name} is unknown at microversion 1.0; leave it out, or ask with the header "
                f"OpenStack-API-Version: reservation 1.{since}",
                pointer=f"/reservations/{number}/{name}",
            )


def known_fields(fields: Json, kind: ResourceKind, minor: int) -> Json:
    """Return the schemas of those fields of the registration of a kind that 1.``minor`` knows, by name."""
    newer = _FIELDS_SINCE.get(kind, {})
    return {name: schema for name, schema in fields.items() if newer.get(name, 0) <= minor}


def check_known_fields(body: Json, kind: ResourceKind, minor: int) -> None:
    """Raise InvalidInput if a registration at 1.``minor`` has a newer field."""
    for name, since in _FIELDS_SINCE.get(kind, {}).items():
        if since > minor and name in body:
            raise InvalidInput(
                f"{name} is unknown at microversion 1.{minor}; leave it out, or ask with the header "
                f"OpenStack-API-Version: reservation 1.{since}",
                pointer=f"/{name}",
            )
