"""The OpenAPI document that the service serves; every answer in the tests is held against it."""

from __future__ import annotations

from typing import Any

from blazar import __version__
from blazar.api import schemas

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_TEXT_OR_NULL: Json = {"type": ["string", "null"]}
_NUMBER: Json = {"type": "integer"}
_FLAG: Json = {"type": "boolean"}
_ISO: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$",
    "examples": ["2030-04-01T08:00:00.000000"],
}
_ISO_OR_NULL: Json = {**_ISO, "type": ["string", "null"]}
_SPACED: Json = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", "examples": ["2030-03-30 11:22:33"]}
_SPACED_OR_NULL: Json = {**_SPACED, "type": ["string", "null"]}


def _object(properties: Json, *, optional: tuple[str, ...] = (), more: object = False) -> Json:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


COMPONENTS: Json = {
    "Event": _object(
        {
            "id": _TEXT,
            "lease_id": _TEXT,
            "event_type": _TEXT,
            "time": _ISO_OR_NULL,
            "status": {"enum": ["UNDONE", "IN_PROGRESS", "DONE", "ERROR", None]},
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
        }
    ),
    "Reservation": _object(
        {
            "id": _TEXT,
            "lease_id": _TEXT,
            "resource_id": _TEXT_OR_NULL,
            "resource_type": {"enum": ["physical:host"]},
            "status": {"enum": ["pending", "active", "deleted", "error"]},
            "missing_resources": _FLAG,
            "resources_changed": _FLAG,
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
            "min": {"type": "integer", "minimum": 1},
            "max": {"type": "integer", "minimum": 1},
            "hypervisor_properties": _TEXT_OR_NULL,
            "resource_properties": _TEXT_OR_NULL,
            "before_end": {"enum": ["default", "snapshot", ""]},
        }
    ),
    "Lease": _object(
        {
            "id": _TEXT,
            "name": _TEXT,
            "user_id": _TEXT,
            "project_id": _TEXT,
            "start_date": _ISO,
            "end_date": _ISO,
            "trust_id": _TEXT_OR_NULL,
            "status": {
                "enum": [
                    "CREATING",
                    "PENDING",
                    "STARTING",
                    "ACTIVE",
                    "UPDATING",
                    "TERMINATING",
                    "TERMINATED",
                    "DELETING",
                    "ERROR",
                ]
            },
            "degraded": _FLAG,
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
            "reservations": _list(_ref("Reservation")),
            "events": _list(_ref("Event")),
        }
    ),
    "Host": _object(
        {
            "id": _TEXT,
            "hypervisor_hostname": _TEXT,
            "service_name": _TEXT,
            "hypervisor_type": _TEXT,
            "hypervisor_version": _NUMBER,
            "vcpus": _NUMBER,
            "memory_mb": {**_NUMBER, "description": "MiB"},
            "local_gb": {**_NUMBER, "description": "GiB"},
            "cpu_info": {**_TEXT, "description": "JSON text"},
            "status": {"type": "null"},
            "availability_zone": _TEXT,
            "trust_id": _TEXT_OR_NULL,
            "reservable": _FLAG,
            "created_at": _SPACED,
            "updated_at": _SPACED_OR_NULL,
        },
        more=_TEXT,
    ),
    "Allocation": _object(
        {
            "resource_id": {**_TEXT, "description": "the host's id"},
            "reservations": _list(_object({"id": _TEXT, "lease_id": _TEXT, "start_date": _ISO, "end_date": _ISO})),
        }
    ),
    "PropertyInList": _object(
        {"property": _TEXT, "private": _FLAG, "values": _list(_TEXT)}, optional=("private", "values")
    ),
    "ResourceProperty": _object(
        {
            "id": _TEXT,
            "resource_type": _TEXT,
            "property_name": _TEXT,
            "private": _FLAG,
            "created_at": _ISO,
            "updated_at": _ISO_OR_NULL,
        }
    ),
    "Version": _object(
        {
            "id": _TEXT,
            "status": _TEXT,
            "min_version": _TEXT,
            "max_version": _TEXT,
            "links": _list(_object({"rel": _TEXT, "href": _TEXT})),
        }
    ),
    "Error": {
        "description": "Shape A (ours), B (the URL, method or body is wrong as HTTP) or C (authentication).",
        "oneOf": [
            _object({"error_code": _NUMBER, "error_message": _TEXT, "error_name": {"type": ["integer", "string"]}}),
            _object({"error": _NUMBER, "error_message": _TEXT}),
            _object({"error": _object({"code": _NUMBER, "title": _TEXT, "message": _TEXT})}),
        ],
    },
    "Health": _object({"status": {"enum": ["ok", "failing"]}, "reason": _TEXT}, optional=("reason",)),
    "LeaseCreate": schemas.LEASE_CREATE,
    "LeaseUpdate": schemas.LEASE_UPDATE,
    "HostCreate": schemas.HOST_CREATE,
    "HostUpdate": schemas.HOST_UPDATE,
    "PropertyUpdate": schemas.PROPERTY_UPDATE,
}

_VERSION_HEADER: Json = {
    "name": "OpenStack-API-Version",
    "in": "header",
    "schema": _TEXT,
    "description": "`reservation 1.0`; without it, 1.0",
}
_TOKEN_HEADER: Json = {
    "name": "X-Auth-Token",
    "in": "header",
    "schema": _TEXT,
    "description": "Who is asking. In standalone mode `<user>:<project>[:<role>,…]`, or nothing for the admin of demo.",
}
_HEADERS: Json = {"x-openstack-request-id": {"schema": _TEXT, "description": "names the request in the log"}}


def document(url: str) -> Json:
    """Return the document for a service at a URL."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Blazar, the reservation service",
            "version": __version__,
            "description": "Reservation of hosts for a period of time. Dates in requests are UTC, to the minute.",
        },
        "servers": [{"url": url or "/"}],
        "paths": _paths(),
        "components": {"schemas": COMPONENTS},
    }


def _paths() -> Json:
    lease_id = _path_parameter("lease_id", "the lease's id")
    host_id = _path_parameter("host_id", "the host's id, the number of its hypervisor in Nova")
    narrow = [_query("lease_id", "only of this lease"), _query("reservation_id", "only of this reservation")]
    flags = [_query("detail", "with values and privacy"), _query("all", "private ones too (operators)")]
    lease, host = {"lease": _ref("Lease")}, {"host": _ref("Host")}
    return {
        "/": {
            "get": _operation(
                "versions", "The versions of the API", {300: {"versions": _list(_ref("Version"))}}, open_=True
            )
        },
        "/versions": {
            "get": _operation(
                "versions2", "The versions of the API", {300: {"versions": _list(_ref("Version"))}}, open_=True
            )
        },
        "/v1": {"get": _operation("version", "Version 1", {200: {"version": _ref("Version")}}, open_=True)},
        "/healthcheck": {
            "get": {
                "operationId": "healthcheck",
                "summary": "Whether the service can work",
                "responses": {str(s): _response("Health", _ref("Health")) for s in (200, 503)},
            }
        },
        "/v1/leases": {
            "get": _operation("list_leases", "List leases", {200: {"leases": _list(_ref("Lease"))}}),
            "post": _operation("create_lease", "Create a lease", {201: lease}, body="LeaseCreate", errors=(404, 409)),
        },
        "/v1/leases/{lease_id}": {
            "parameters": [lease_id],
            "get": _operation("show_lease", "Show a lease", {200: lease}, errors=(404,)),
            "put": _operation("update_lease", "Change a lease", {200: lease}, body="LeaseUpdate", errors=(404, 409)),
            "delete": _operation("delete_lease", "End a lease for good", {204: None}, errors=(404, 409)),
        },
        "/v1/os-hosts": {
            "get": _operation("list_hosts", "List hosts", {200: {"hosts": _list(_ref("Host"))}}),
            "post": _operation("create_host", "Register a host", {201: host}, body="HostCreate", errors=(404, 409)),
        },
        "/v1/os-hosts/{host_id}": {
            "parameters": [host_id],
            "get": _operation("show_host", "Show a host", {200: host}, errors=(404,)),
            "put": _operation("update_host", "Set capabilities", {200: host}, body="HostUpdate", errors=(404, 409)),
            "delete": _operation("delete_host", "Give a host back", {204: None}, errors=(404, 409)),
        },
        "/v1/os-hosts/allocations": {
            "parameters": narrow,
            "get": _operation(
                "list_allocations", "What is promised", {200: {"allocations": _list(_ref("Allocation"))}}
            ),
        },
        "/v1/os-hosts/{host_id}/allocation": {
            "parameters": [host_id, *narrow],
            "get": _operation(
                "show_allocation",
                "What is promised of a host",
                {200: {"allocation": _ref("Allocation")}},
                errors=(404,),
            ),
        },
        "/v1/os-hosts/properties": {
            "parameters": flags,
            "get": _operation(
                "list_properties", "List capabilities", {200: {"resource_properties": _list(_ref("PropertyInList"))}}
            ),
        },
        "/v1/os-hosts/properties/{name}": {
            "parameters": [_path_parameter("name", "a capability's name")],
            "patch": _operation(
                "set_property",
                "Show a capability to everybody, or to operators only",
                {200: {"resource_property": _ref("ResourceProperty")}},
                body="PropertyUpdate",
                errors=(404,),
            ),
        },
    }


def _operation(
    name: str,
    summary: str,
    answers: dict[int, Json | None],
    *,
    body: str | None = None,
    errors: tuple[int, ...] = (),
    open_: bool = False,
) -> Json:
    responses: Json = {}
    for status, envelope in answers.items():
        responses[str(status)] = _response("Success", None if envelope is None else _object(envelope))
    common = () if open_ else (400, 401, 403, 406, 500, 503)
    for status in sorted({*common, *errors, *((413,) if body else ())}):
        responses[str(status)] = _response("Refused, with a sentence that says why", _ref("Error"))
    operation: Json = {"operationId": name, "summary": summary, "responses": responses}
    if not open_:
        operation["parameters"] = [_TOKEN_HEADER, _VERSION_HEADER]
    if body:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(body)}}}
    return operation


def _response(description: str, schema: Json | None) -> Json:
    response: Json = {"description": description, "headers": _HEADERS}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
    return response


def _path_parameter(name: str, description: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT, "description": description}


def _query(name: str, description: str) -> Json:
    return {"name": name, "in": "query", "schema": _TEXT, "description": description}
