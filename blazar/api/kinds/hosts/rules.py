# SPDX-License-Identifier: Apache-2.0
"""The policy rules of hosts, which all versions share."""

from __future__ import annotations

from blazar.api.routes import ADMIN, Rule

GET = Rule("blazar:oshosts:get", ADMIN, "List and show hosts.")
POST = Rule("blazar:oshosts:post", ADMIN, "Register a host.")
PUT = Rule("blazar:oshosts:put", ADMIN, "Update a host's capabilities, disabled flag and authorized projects.")
DELETE = Rule("blazar:oshosts:delete", ADMIN, "Unregister a host.")
REFRESH = Rule("blazar:oshosts:refresh", ADMIN, "Refresh a host's data from the cloud.")
