# SPDX-License-Identifier: Apache-2.0
"""Who may do what with leases, and what a caller sees of them."""

from __future__ import annotations

from blazar.api.http.answers import Tags
from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import ADMIN, MEMBER, READER, Rule, all_of
from blazar.context import note_owner
from blazar.model.base.values import dataclass
from blazar.model.leases.details import LeaseDetails, LeaseOwner
from blazar.model.leases.lease import unknown_lease

GET = Rule("blazar:leases:get", READER, "List and show leases.")
POST = Rule("blazar:leases:post", MEMBER, "Create a lease.")
PUT = Rule("blazar:leases:put", MEMBER, "Update a lease.")
BEST_EFFORT = Rule(
    "blazar:leases:best_effort", ADMIN, "Create a lease for which servers of others are moved away (kind best_effort)."
)
DELETE = Rule("blazar:leases:delete", MEMBER, "Delete a lease.")
CONFIRM = Rule("blazar:leases:confirm", all_of(PUT), "Confirm a lease that was booked to be confirmed.")
KEEP = Rule("blazar:leases:keep", all_of(PUT), "Keep a lease that is not used from being released.")
HOLD = Rule("blazar:leases:hold", f"{ADMIN} and {all_of(PUT)}", "Never release a lease because it is not used.")


NAMES = "blazar:calendar:get_names"
"""The rule that shows names of resources to those who are no operators."""


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: everything to an operator; ``names`` of resources to others by policy."""

    operator: bool
    names: bool

    @property
    def mark(self) -> str:
        """The view in a tag, with the minor version in whose shape leases are shown."""
        return f"1.{'a' if self.operator else 'n' if self.names else 'm'}"

    @property
    def tags(self) -> Tags:
        """The strong tags of leases."""
        return Tags(f".{self.mark}", parted=True)

    def tag_of(self, details: LeaseDetails) -> str:
        """Return the tag of a lease; what it costs may change without a new revision."""
        return self.tags.of(details.lease.revision, "" if details.price is None else repr(details.price))


def view_of(call: Call) -> View:
    """Return what a caller may see."""
    return View(call.is_operator, call.allows(NAMES))


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
    note_owner(owner)
    return owner
