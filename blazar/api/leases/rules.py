# SPDX-License-Identifier: Apache-2.0
"""The policy rules of leases."""

from __future__ import annotations

from blazar.api.routes import ADMIN, MEMBER, READER, Rule, all_of

GET = Rule("blazar:leases:get", READER, "List and show leases.")
POST = Rule("blazar:leases:post", MEMBER, "Create a lease.")
PUT = Rule("blazar:leases:put", MEMBER, "Update a lease.")
BEST_EFFORT = Rule(
    "blazar:leases:best_effort", ADMIN, "Create a lease for which servers of others are moved away (kind best_effort)."
)
DELETE = Rule("blazar:leases:delete", MEMBER, "Delete a lease.")
KEEP = Rule("blazar:leases:keep", all_of(PUT), "Keep a lease that is not used from being released.")
HOLD = Rule("blazar:leases:hold", f"{ADMIN} and {all_of(PUT)}", "Never release a lease because it is not used.")
