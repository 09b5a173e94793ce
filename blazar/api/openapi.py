# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document of the service; the tests validate every response against it."""

from __future__ import annotations

from collections.abc import Collection

from blazar import __version__
from blazar.api.components import COMPONENTS, Json, a_list, an_object, ref
from blazar.api.operations import in_path, open_operation, operation, query
from blazar.api.v2 import openapi as v2

DESCRIPTION = """\
Reservation of hosts, of servers and of addresses for a period of time. Dates in requests are UTC, to the minute.

All paths of leases, hosts and floating IPs also work with the suffix `.json`; no path has a trailing slash.
Unknown query parameters are ignored. The `error_message` of an error says why the request failed: in an
ApplicationError (the request was understood) or in a FrameError (it is not valid HTTP or JSON).
Version 2 is deprecated. It uses ApplicationErrors instead of FrameErrors, and RoutingErrors for unknown URLs below
`/v2`.
"""


def document(url: str, *, with_v1: bool, v2_controllers: Collection[str]) -> Json:
    """Return the document of a service at ``url`` for the API versions and version 2 controllers that it serves."""
    first = {**_version_one(), **_leases(), **_hosts(), **_floating_ips()} if with_v1 else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Blazar, the reservation service", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": url or "/"}],
        "paths": {**_service(), **first, **v2.paths(v2_controllers)},
        "components": {"schemas": {**COMPONENTS, **v2.COMPONENTS}},
    }


def _service() -> Json:
    versions = an_object({"versions": a_list(ref("Version"))})
    return {
        "/": {"get": open_operation("versions", "The versions of the API", {300: versions})},
        "/versions": {"get": open_operation("versions_too", "The versions of the API", {300: versions})},
        "/healthcheck": {
            "get": open_operation(
                "healthcheck",
                "Check the health of the service",
                {200: ref("Health"), 503: ref("Health")},
                errors=(500,),
            )
        },
        "/openapi.json": {"get": open_operation("openapi", "This document", {200: {"type": "object"}})},
    }


def _version_one() -> Json:
    version = an_object({"version": ref("Version")})
    return {
        "/v1": {"get": open_operation("version", "Version 1 of the API", {200: version})},
        "/v1/": {"get": open_operation("version_too", "Version 1 of the API", {200: version})},
    }


def _leases() -> Json:
    one, all_ = an_object({"lease": ref("Lease")}), an_object({"leases": a_list(ref("Lease"))})
    return {
        "/v1/leases": {
            "get": operation("list_leases", "List the project's leases; operators see all", 200, all_),
            "post": operation("create_lease", "Create a lease", 201, one, body="LeaseCreate", errors=(404, 409)),
        },
        "/v1/leases/{lease_id}": {
            "parameters": [in_path("lease_id", "the lease's id")],
            "get": operation("show_lease", "Show a lease", 200, one, errors=(404,)),
            "put": operation("update_lease", "Update a lease", 200, one, body="LeaseUpdate", errors=(404, 409)),
            "delete": operation("delete_lease", "Delete a lease", 204, None, errors=(404, 409)),
        },
    }


def _hosts() -> Json:
    host_id = in_path("host_id", "the host's id, the number of its hypervisor in Nova")
    narrow = [
        query("lease_id", "only allocations of this lease"),
        query("reservation_id", "only allocations of this reservation"),
    ]
    flags = [
        query("detail", "any value: include values and the private flag"),
        query("all", "any value: include private capabilities (operators only)"),
    ]
    one, all_ = an_object({"host": ref("Host")}), an_object({"hosts": a_list(ref("Host"))})
    promised = an_object({"allocation": ref("Allocation")})
    promises = an_object({"allocations": a_list(ref("Allocation"))})
    known = an_object({"resource_property": ref("ResourceProperty")})
    listed = an_object({"resource_properties": a_list(ref("PropertyInList"))})
    return {
        "/v1/os-hosts": {
            "get": operation("list_hosts", "List hosts", 200, all_),
            "post": operation("create_host", "Register a host", 201, one, body="HostCreate", errors=(404, 409)),
        },
        "/v1/os-hosts/{host_id}": {
            "parameters": [host_id],
            "get": operation("show_host", "Show a host", 200, one, errors=(404,)),
            "put": operation(
                "update_host", "Set and remove capabilities", 200, one, body="HostUpdate", errors=(404, 409)
            ),
            "delete": operation("delete_host", "Unregister a host", 204, None, errors=(404, 409)),
        },
        "/v1/os-hosts/allocations": {
            "parameters": narrow,
            "get": operation("list_allocations", "List the allocations of all hosts", 200, promises),
        },
        "/v1/os-hosts/{host_id}/allocation": {
            "parameters": [host_id, *narrow],
            "get": operation("show_allocation", "Show the allocations of a host", 200, promised, errors=(404,)),
            "put": operation(
                "move_reservation",
                "Move a reservation from this host to another",
                200,
                promised,
                body="AllocationUpdate",
                errors=(404, 409),
            ),
        },
        "/v1/os-hosts/{host_id}/refresh": {
            "parameters": [host_id],
            "post": operation("refresh_host", "Refresh a host's data from the cloud", 200, one, errors=(404, 409)),
        },
        "/v1/os-hosts/properties": {
            "parameters": flags,
            "get": operation("list_properties", "List the capabilities of hosts", 200, listed),
        },
        "/v1/os-hosts/properties/{name}": {
            "parameters": [in_path("name", "a capability's name")],
            "patch": operation(
                "set_property",
                "Make a capability public, or private to operators",
                200,
                known,
                body="PropertyUpdate",
                errors=(404,),
            ),
        },
    }


def _floating_ips() -> Json:
    one, all_ = an_object({"floatingip": ref("FloatingIp")}), an_object({"floatingips": a_list(ref("FloatingIp"))})
    return {
        "/v1/floatingips": {
            "get": operation("list_floating_ips", "List the addresses that can be reserved", 200, all_),
            "post": operation(
                "create_floating_ip", "Register an address", 201, one, body="FloatingIpCreate", errors=(404, 409)
            ),
        },
        "/v1/floatingips/{floating_ip_id}": {
            "parameters": [in_path("floating_ip_id", "the id of the address")],
            "get": operation("show_floating_ip", "Show an address", 200, one, errors=(404,)),
            "delete": operation("delete_floating_ip", "Unregister an address", 204, None, errors=(404, 409)),
        },
    }
