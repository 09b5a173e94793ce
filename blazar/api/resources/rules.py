# SPDX-License-Identifier: Apache-2.0
"""The policy rules of ``/v1/resources``."""

from __future__ import annotations

from blazar.api.routes import ADMIN, READER, Rule

GET = Rule("blazar:resources:get", READER, "List kinds of resources, and what the project may see of resources.")
POST = Rule("blazar:resources:post", ADMIN, "Register a resource.")
PUT = Rule("blazar:resources:put", ADMIN, "Update a resource's properties, disabled flag and authorized projects.")
DELETE = Rule("blazar:resources:delete", ADMIN, "Unregister a resource.")
REFRESH = Rule("blazar:resources:refresh", ADMIN, "Refresh a resource's data from the cloud.")
ALLOCATIONS = Rule("blazar:resources:get_allocations", ADMIN, "List and show allocations of resources.")
CANDIDATES = Rule("blazar:resources:get_candidates", ADMIN, "List what the cloud has to register.")
PROPERTIES = Rule("blazar:resources:get_properties", ADMIN, "List the properties that operators have set.")
PATCH = Rule("blazar:resources:update_properties", ADMIN, "Make a property public or private.")
RULES = (GET, POST, PUT, DELETE, REFRESH, ALLOCATIONS, CANDIDATES, PROPERTIES, PATCH)

PRIVATE = Rule(
    "blazar:resources:get_private",
    ADMIN,
    "See ids, names, conditions and private properties of resources, and those that are restricted to other projects.",
)
