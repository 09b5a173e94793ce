# SPDX-License-Identifier: Apache-2.0
"""Build operations of the OpenAPI document: headers, parameters, responses and errors."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.api.components import Json, ref

_TEXT: Json = {"type": "string"}
_A, _B, _C, _D = ref("ApplicationError"), ref("FrameError"), ref("AuthenticationError"), ref("RoutingError")
_ERRORS: dict[int, tuple[str, Json]] = {
    400: ("The request is invalid", {"oneOf": [_A, _B]}),
    401: ("The request has no valid token", _C),
    403: ("The policy (the message names the rule) or usage enforcement denies it", _A),
    404: ("It does not exist", {"oneOf": [_A, _B]}),
    406: ("The requested version is not supported", _B),
    409: ("The request conflicts with the current state", _A),
    413: ("The body is too large", _B),
    500: ("Internal error; the log has the traceback under the request id", _A),
    503: ("The cloud or the database is unavailable; retry later", _A),
}
_ERRORS_OF_V2 = {
    **_ERRORS,
    400: (_ERRORS[400][0], _A),
    404: (_ERRORS[404][0], {"oneOf": [_A, _D]}),
    413: (_ERRORS[413][0], _A),
}


def _header(name: str, description: str, schema: Json | None = None) -> Json:
    return {"name": name, "in": "header", "schema": schema or _TEXT, "description": description}


_REQUEST_ID = _header(
    "X-OpenStack-Request-ID",
    "`req-<uuid>`: the caller's request id, logged beside that of the service; other formats are ignored",
)
_TOKEN = _header(
    "X-Auth-Token",
    "The Keystone token. In standalone mode `<user>:<project>[:<role>,…]`; without it, the admin of project demo",
)
_VERSION = _header("OpenStack-API-Version", "`reservation 1.0` or `reservation latest`; without it, 1.0")
_HEADERS: Json = {
    "x-openstack-request-id": {"schema": _TEXT, "description": "the id of the request in the log"},
    "Cache-Control": {"schema": _TEXT, "description": "no-store"},
    "Vary": {"schema": _TEXT, "description": "X-Auth-Token, and OpenStack-API-Version on versioned responses"},
    "X-Content-Type-Options": {"schema": _TEXT, "description": "nosniff"},
}
_VERSION_HEADERS: Json = {
    "OpenStack-API-Version": {"schema": _TEXT, "description": "the API version of the response"},
}
_CHALLENGE: Json = {"WWW-Authenticate": {"schema": _TEXT, "description": "the URI of Keystone"}}


def open_operation(name: str, summary: str, answers: dict[int, Json], *, errors: tuple[int, ...] = ()) -> Json:
    """Return an operation that needs no token."""
    refusals = _refusals(_ERRORS, {400, *errors})
    successes = {str(status): _response(summary, schema, _HEADERS) for status, schema in answers.items()}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [_REQUEST_ID],
        "responses": {**successes, **refusals},
    }


def operation(
    name: str,
    summary: str,
    status: int,
    answer: Json | None,
    *,
    body: str | None = None,
    errors: tuple[int, ...] = (),
) -> Json:
    """Return an operation of version 1; ``answer`` is a schema, ``body`` is the name of a schema."""
    refused = _refusals(_ERRORS, {400, 401, 403, 406, 500, 503, *errors, *((413,) if body else ())})
    responses = {str(status): _response(summary, answer, {**_HEADERS, **_VERSION_HEADERS}), **refused}
    return _described(name, summary, [_TOKEN, _VERSION, _REQUEST_ID], responses, body)


def operation_of_v2(
    name: str,
    summary: str,
    status: int,
    answer: Json | None,
    *,
    body: str | None = None,
    errors: tuple[int, ...] = (),
) -> Json:
    """Return an operation of version 2, which has no microversions and is deprecated."""
    refused = _refusals(_ERRORS_OF_V2, {400, 401, 403, 500, 503, *errors, *((413,) if body else ())})
    responses = {str(status): _response(summary, answer, _HEADERS), **refused}
    return {**_described(name, summary, [_TOKEN, _REQUEST_ID], responses, body), "deprecated": True}


def _described(name: str, summary: str, parameters: list[Json], responses: Json, body: str | None) -> Json:
    described: Json = {"operationId": name, "summary": summary, "parameters": parameters, "responses": responses}
    if body:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body)}}}
    return described


def _refusals(errors: Mapping[int, tuple[str, Json]], statuses: set[int]) -> Json:
    def headers(status: int) -> Json:
        return {**_HEADERS, **_CHALLENGE} if status == 401 else _HEADERS

    return {str(status): _response(*errors[status], headers(status)) for status in sorted(statuses)}


def _response(description: str, schema: Json | None, headers: Json) -> Json:
    response: Json = {"description": description, "headers": headers}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
    return response


def in_path(name: str, description: str) -> Json:
    """Return a path parameter."""
    return {"name": name, "in": "path", "required": True, "schema": _TEXT, "description": description}


def query(name: str, description: str) -> Json:
    """Return an optional query parameter."""
    return {"name": name, "in": "query", "schema": _TEXT, "description": description}
