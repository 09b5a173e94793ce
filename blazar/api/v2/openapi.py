# SPDX-License-Identifier: Apache-2.0
"""The paths of version 2 in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Collection

from blazar.api.components import Json, a_list, ref
from blazar.api.operations import in_path
from blazar.api.operations import operation_of_v2 as operation
from blazar.api.v2.components import COMPONENTS

__all__ = ["COMPONENTS", "paths"]


def paths(controllers: Collection[str]) -> Json:
    """Return the paths of these controllers."""
    return {**(_leases() if "leases" in controllers else {}), **(_hosts() if "oshosts" in controllers else {})}


def _leases() -> Json:
    one = ref("LeaseV2")
    return {
        "/v2/leases": {
            "get": operation("list_leases_v2", "List the project's leases; operators see all", 200, a_list(one)),
            "post": operation("create_lease_v2", "Create a lease", 201, one, body="LeaseCreateV2", errors=(404, 409)),
        },
        "/v2/leases/{lease_id}": {
            "parameters": [in_path("lease_id", "the lease's id")],
            "get": operation("show_lease_v2", "Show a lease", 200, one, errors=(404,)),
            "put": operation("update_lease_v2", "Update a lease", 200, one, body="LeaseUpdateV2", errors=(404, 409)),
            "delete": operation("delete_lease_v2", "Delete a lease", 204, None, errors=(404, 409)),
        },
    }


def _hosts() -> Json:
    one = ref("HostV2")
    return {
        "/v2/os-hosts": {
            "get": operation("list_hosts_v2", "List hosts", 200, a_list(one)),
            "post": operation("create_host_v2", "Register a host", 201, one, body="HostCreateV2", errors=(404, 409)),
        },
        "/v2/os-hosts/{host_id}": {
            "parameters": [in_path("host_id", "the host's id, the number of its hypervisor in Nova")],
            "get": operation("show_host_v2", "Show a host", 200, one, errors=(404,)),
            "put": operation(
                "update_host_v2", "Set and remove capabilities", 200, one, body="HostUpdateV2", errors=(404, 409)
            ),
            "delete": operation("delete_host_v2", "Unregister a host", 204, None, errors=(404, 409)),
        },
    }
