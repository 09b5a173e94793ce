# SPDX-License-Identifier: Apache-2.0
"""Which leases a caller may see, and act on."""

from __future__ import annotations

from blazar.api.context import Call, identifier
from blazar.api.leases.rules import GET
from blazar.context import allowed
from blazar.model.lease import unknown_lease
from blazar.model.lease_details import LeaseOwner


def visible(call: Call, lease_id: str) -> LeaseOwner:
    """Return whose a lease is; NotFound if the caller may not see it, Denied if not do this."""
    key = identifier(lease_id)
    if key == "-" or key != lease_id:
        raise unknown_lease(lease_id)
    owner = call.manager.leases.owner(key)
    target = {"project_id": owner.project_id, "user_id": owner.user_id}
    if not call.allows(GET.name, target):
        raise unknown_lease(key)
    call.authorize(target)
    allowed(owner)
    return owner
