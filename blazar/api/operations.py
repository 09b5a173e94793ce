# SPDX-License-Identifier: Apache-2.0
"""Operations of the OpenAPI document, made from routes: headers, parameters, responses and errors."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from blazar.api.microversion import CONVENTIONS, MIN_VERSION, as_text
from blazar.api.routes import Caching, Parameter, Root, Route
from blazar.api.shapes import Json, ref
from blazar.model.paging import Operator

_TEXT: Json = {"type": "string"}
_A, _B, _C, _D = ref("ApplicationError"), ref("FrameError"), ref("AuthenticationError"), ref("RoutingError")
_LISTED, _OF_VERSION = ref("Errors"), ref("VersionError")
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
_IF_NONE_MATCH = _header("If-None-Match", "the `ETag` of earlier answers: a 304 if one of them is up to date")
_HEADERS: Json = {
    "x-openstack-request-id": {"schema": _TEXT, "description": "the id of the request in the log"},
    "Cache-Control": {"schema": _TEXT, "description": "no-store; for what may be kept, private, no-cache"},
    "Vary": {"schema": _TEXT, "description": "what the response depends on"},
    "X-Content-Type-Options": {"schema": _TEXT, "description": "nosniff"},
}
_VERSION_HEADERS: Json = {
    "OpenStack-API-Version": {"schema": _TEXT, "description": "the API version of the response"},
}
_CHALLENGE: Json = {"WWW-Authenticate": {"schema": _TEXT, "description": "the URI of Keystone"}}


def operation(rows: Sequence[Route], shared: Sequence[Parameter]) -> Json:
    """Return the operation of a method of a path, from its rows for each range of microversions.

    ``shared`` are the parameters that the path describes for all its methods. Where ranges differ, the operation
    allows the schemas of all of them.
    """
    rows = sorted(rows, key=lambda row: row.since)
    row = rows[-1]
    described: Json = {"operationId": row.name, "summary": row.summary}
    if sentence := _range(rows):
        described["description"] = sentence
    own = {each.name: each for version in rows for each in version.parameters if each not in shared}
    tags = [_IF_NONE_MATCH] if _is_kept(rows) else []
    described["parameters"] = [*_headers(row), *tags, *(parameter(each) for each in own.values())]
    described["responses"] = _responses(rows)
    bodies = _distinct([ref(each.body.name) for each in rows if each.body is not None])
    if bodies:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": _any_of(bodies)}}}
    if row.root is Root.V2:
        described["deprecated"] = True
    return described


def parameter(given: Parameter) -> Json:
    """Return the description of a parameter."""
    required = {"required": True} if given.place == "path" else {}
    schema = _TEXT if given.reader is None or given.operators else given.reader.schema
    return {"name": given.name, "in": given.place, **required, "schema": schema, "description": _described(given)}


def _described(given: Parameter) -> str:
    if not given.operators:
        return given.description
    prefixes = ", ".join(f"`{each}:`" for each in given.operators if each is not Operator.EQ)
    return f"{given.description}; a value, or one after {prefixes}" if prefixes else given.description


def _range(rows: Sequence[Route]) -> str:
    """Return a sentence about the microversions that have the operation; empty if all have it."""
    first, last = min(row.since for row in rows), rows[-1].until
    since = f"Since version {as_text(first)}." if first > MIN_VERSION else ""
    until = f"Until version {as_text(last)}." if last is not None else ""
    return " ".join(filter(None, (since, until)))


def _headers(row: Route) -> list[Json]:
    if row.is_open:
        return [_REQUEST_ID]
    return [_TOKEN, _REQUEST_ID] if row.root is Root.V2 else [_TOKEN, _VERSION, _REQUEST_ID]


def _responses(rows: Sequence[Route]) -> Json:
    row = rows[-1]
    headers = _HEADERS if row.is_open or row.root is Root.V2 else {**_HEADERS, **_VERSION_HEADERS}
    schemas: dict[int, list[Json]] = {}
    for each in rows:
        for status, schema in each.answers.items():
            schemas.setdefault(status, []).extend([schema] if schema is not None else [])
    answers = {
        str(status): _response(row.summary, _any_of(_distinct(found)) if found else None, headers)
        for status, found in schemas.items()
    }
    if _is_kept(rows):
        answers["304"] = _response("What the caller has, by its tag in If-None-Match, is up to date", None, headers)
    return {**answers, **_refusals(rows)}


def _refusals(rows: Sequence[Route]) -> Json:
    row = rows[-1]
    texts = _ERRORS_OF_V2 if row.root is Root.V2 else _ERRORS
    usual = {400} if row.is_open else {400, 401, 403, 500, 503} | ({406} if row.root is Root.V1 else set())
    listed = [each for each in rows if _has_conventions(each)]
    too_large = {413} if any(each.body for each in rows) else set()
    wrong_type = {415} if any(each.body for each in listed) else set()
    # In earlier versions it is an unknown URL.
    begins_later = {404} if row.root is Root.V1 and all(each.since > MIN_VERSION for each in rows) else set()
    statuses = usual | too_large | wrong_type | begins_later | {status for each in rows for status in each.errors}

    def headers(status: int) -> Json:
        return {**_HEADERS, **_CHALLENGE} if status == 401 else _HEADERS

    def text(status: int) -> tuple[str, Json]:
        sentence, schema = texts.get(status, (HTTPStatus(status).phrase, _A))
        if row.root is not Root.V1 or row.is_open or status == 401:
            return sentence, schema
        # A malformed version is refused in both shapes, whatever the row.
        both = [_OF_VERSION] if status in (400, 406) else []
        if status == 406:
            return sentence, _OF_VERSION
        before = schema.get("oneOf", [schema])
        if rows[0].since >= CONVENTIONS:
            before = [_B] if status == 404 else []
        after = [_LISTED] if listed else []
        return sentence, {"oneOf": [*before, *after, *both]}

    return {str(status): _response(*text(status), headers(status)) for status in sorted(statuses)}


def _has_conventions(row: Route) -> bool:
    """Return whether a row serves a version with the conventions of 1.1."""
    is_last = row.until is not None and row.until < CONVENTIONS
    return row.root is Root.V1 and not row.is_open and not is_last


def _response(description: str, schema: Json | None, headers: Json) -> Json:
    response: Json = {"description": description, "headers": headers}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
    return response


def _is_kept(rows: Sequence[Route]) -> bool:
    """Return whether callers may keep what they get, and ask whether it has changed."""
    kept = any(_has_conventions(each) and each.caching is not Caching.NONE for each in rows)
    return kept and rows[-1].method == "GET"


def _distinct(schemas: Sequence[Json]) -> list[Json]:
    return [schema for number, schema in enumerate(schemas) if schema not in schemas[:number]]


def _any_of(schemas: Sequence[Json]) -> Json:
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
