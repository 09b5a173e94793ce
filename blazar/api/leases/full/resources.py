# SPDX-License-Identifier: Apache-2.0
"""How resources of leases are named: operators see what they are in the cloud, others labels."""

from __future__ import annotations

from collections.abc import Collection

from blazar.api.leases.full.view import View
from blazar.api.shapes import Json
from blazar.model.lease_details import HeldResource
from blazar.model.resource import FLOATING_IP, NAMED_KINDS
from blazar.resources.floating_ips.registration import address_in

MOST_NAMES = 3
"""More resources than this are not named in a sentence."""


def resource(held: HeldResource, view: View) -> Json:
    """Return how a resource is named to a caller."""
    if view.operator:
        return {"id": held.external_id, "type": held.kind, "name": held.name, "label": held.label}
    if held.kind in NAMED_KINDS:
        name = address_in(held.name) if held.kind == FLOATING_IP else held.name
        return {"id": held.external_id, "type": held.kind, "name": name}
    return {"id": held.label, "type": held.kind, "name": held.name if view.names else None}


def named(held: Collection[HeldResource], view: View) -> str:
    """Return the names of resources in brackets, as part of a sentence; empty if there are none."""
    shown = (resource(each, view) for each in held)
    names = sorted({str(each["name"] or each["id"]) for each in shown})
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return f" ({', '.join([*names[:MOST_NAMES], *more])})" if names else ""
