"""The OpenAPI document that the service serves; every answer in the tests is held against it."""

from __future__ import annotations

from blazar import __version__
from blazar.api.components import COMPONENTS, Json, a_list, an_object, ref

DESCRIPTION = """\
Reservation of hosts for a period of time. Dates in requests are UTC, to the minute.

Every path below `/v1/leases` and `/v1/os-hosts` is also there with the suffix `.json`; none has a trailing slash.
Query parameters that are not named here are ignored. What is refused is refused with a sentence that tells why:
as `error_message` of an ApplicationError (the request is understood) or a FrameError (it is wrong as HTTP or JSON).
"""

_TEXT: Json = {"type": "string"}
_A, _B, _C = ref("ApplicationError"), ref("FrameError"), ref("AuthenticationError")
_ERRORS: dict[int, tuple[str, Json]] = {
    400: ("The request makes no sense", {"oneOf": [_A, _B]}),
    401: ("Nobody knows who is asking", _C),
    403: ("The policy does not allow it; the message names the rule", _A),
    404: ("It does not exist", {"oneOf": [_A, _B]}),
    406: ("The version asked for is not served", _B),
    409: ("Not in the present state of things", _A),
    413: ("The body is too big", _B),
    500: ("A bug of the service; its log has the request's id", _A),
    503: ("The cloud or the database does not answer; try again later", _A),
}


def _header(name: str, description: str, schema: Json | None = None) -> Json:
    return {"name": name, "in": "header", "schema": schema or _TEXT, "description": description}


_REQUEST_ID = _header(
    "X-OpenStack-Request-ID",
    "`req-<uuid>`: an id of the caller's own that is logged with the service's; anything else is ignored",
)
_PARAMETERS = [
    _header(
        "X-Auth-Token",
        "Who is asking. In standalone mode `<user>:<project>[:<role>,…]`, or nothing for the admin of demo",
    ),
    _header("OpenStack-API-Version", "`reservation 1.0` or `reservation latest`; without it, 1.0"),
    _REQUEST_ID,
]
_HEADERS: Json = {"x-openstack-request-id": {"schema": _TEXT, "description": "names the request in the log"}}
_VERSION_HEADERS: Json = {
    "OpenStack-API-Version": {"schema": _TEXT, "description": "the version that the answer is in"},
    "Vary": {"schema": _TEXT, "description": "OpenStack-API-Version"},
}
_CHALLENGE: Json = {"WWW-Authenticate": {"schema": _TEXT, "description": "where tokens come from"}}


def document(url: str) -> Json:
    """Return the document for a service at a URL."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Blazar, the reservation service", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": url or "/"}],
        "paths": {**_service(), **_leases(), **_hosts()},
        "components": {"schemas": COMPONENTS},
    }


def _service() -> Json:
    versions = an_object({"versions": a_list(ref("Version"))})
    version = an_object({"version": ref("Version")})
    return {
        "/": {"get": _open("versions", "The versions of the API", {300: versions})},
        "/versions": {"get": _open("versions_too", "The versions of the API", {300: versions})},
        "/v1": {"get": _open("version", "Version 1 of the API", {200: version})},
        "/v1/": {"get": _open("version_too", "Version 1 of the API", {200: version})},
        "/healthcheck": {
            "get": _open(
                "healthcheck", "Whether the service can work", {200: ref("Health"), 503: ref("Health")}, errors=(500,)
            )
        },
        "/openapi.json": {"get": _open("openapi", "This document", {200: {"type": "object"}})},
    }


def _leases() -> Json:
    one, all_ = {"lease": ref("Lease")}, {"leases": a_list(ref("Lease"))}
    return {
        "/v1/leases": {
            "get": _operation("list_leases", "List the project's leases; operators see all", 200, all_),
            "post": _operation("create_lease", "Create a lease", 201, one, body="LeaseCreate", errors=(404, 409)),
        },
        "/v1/leases/{lease_id}": {
            "parameters": [_in_path("lease_id", "the lease's id")],
            "get": _operation("show_lease", "Show a lease", 200, one, errors=(404,)),
            "put": _operation("update_lease", "Change a lease", 200, one, body="LeaseUpdate", errors=(404, 409)),
            "delete": _operation("delete_lease", "End a lease for good", 204, None, errors=(404, 409)),
        },
    }


def _hosts() -> Json:
    host_id = _in_path("host_id", "the host's id, the number of its hypervisor in Nova")
    narrow = [_query("lease_id", "only of this lease"), _query("reservation_id", "only of this reservation")]
    flags = [
        _query("detail", "any value: with values and privacy"),
        _query("all", "any value: private ones too (operators)"),
    ]
    one, all_ = {"host": ref("Host")}, {"hosts": a_list(ref("Host"))}
    promised, promises = {"allocation": ref("Allocation")}, {"allocations": a_list(ref("Allocation"))}
    known, listed = (
        {"resource_property": ref("ResourceProperty")},
        {"resource_properties": a_list(ref("PropertyInList"))},
    )
    return {
        "/v1/os-hosts": {
            "get": _operation("list_hosts", "List hosts", 200, all_),
            "post": _operation("create_host", "Register a host", 201, one, body="HostCreate", errors=(404, 409)),
        },
        "/v1/os-hosts/{host_id}": {
            "parameters": [host_id],
            "get": _operation("show_host", "Show a host", 200, one, errors=(404,)),
            "put": _operation(
                "update_host", "Set and take away capabilities", 200, one, body="HostUpdate", errors=(404, 409)
            ),
            "delete": _operation("delete_host", "Give a host back to the cloud", 204, None, errors=(404, 409)),
        },
        "/v1/os-hosts/allocations": {
            "parameters": narrow,
            "get": _operation("list_allocations", "What is promised of every host", 200, promises),
        },
        "/v1/os-hosts/{host_id}/allocation": {
            "parameters": [host_id, *narrow],
            "get": _operation("show_allocation", "What is promised of a host", 200, promised, errors=(404,)),
        },
        "/v1/os-hosts/properties": {
            "parameters": flags,
            "get": _operation("list_properties", "List the capabilities that hosts have", 200, listed),
        },
        "/v1/os-hosts/properties/{name}": {
            "parameters": [_in_path("name", "a capability's name")],
            "patch": _operation(
                "set_property",
                "Show a capability to everybody, or to operators only",
                200,
                known,
                body="PropertyUpdate",
                errors=(404,),
            ),
        },
    }


def _open(name: str, summary: str, answers: dict[int, Json], *, errors: tuple[int, ...] = ()) -> Json:
    """Return an operation that asks nobody who they are."""
    refusals = {str(status): _refusal(status) for status in (400, *errors)}
    successes = {str(status): _response(summary, schema, _HEADERS) for status, schema in answers.items()}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [_REQUEST_ID],
        "responses": {**successes, **refusals},
    }


def _operation(
    name: str,
    summary: str,
    status: int,
    envelope: Json | None,
    *,
    body: str | None = None,
    errors: tuple[int, ...] = (),
) -> Json:
    answer = None if envelope is None else an_object(envelope)
    responses = {str(status): _response(summary, answer, {**_HEADERS, **_VERSION_HEADERS})}
    for refused in sorted({400, 401, 403, 406, 500, 503, *errors, *((413,) if body else ())}):
        responses[str(refused)] = _refusal(refused)
    operation: Json = {"operationId": name, "summary": summary, "parameters": _PARAMETERS, "responses": responses}
    if body:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    return operation


def _refusal(status: int) -> Json:
    description, schema = _ERRORS[status]
    return _response(description, schema, {**_HEADERS, **_CHALLENGE} if status == 401 else _HEADERS)


def _response(description: str, schema: Json | None, headers: Json) -> Json:
    response: Json = {"description": description, "headers": headers}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
    return response


def _in_path(name: str, description: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT, "description": description}


def _query(name: str, description: str) -> Json:
    return {"name": name, "in": "query", "schema": _TEXT, "description": description}
