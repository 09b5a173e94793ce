# SPDX-License-Identifier: Apache-2.0
"""What an application serves, and its OpenAPI document, made from the routes; tests hold answers against it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from http import HTTPStatus

from blazar import __version__
from blazar.api.http.faults import describe_codes
from blazar.api.http.microversion import CONVENTIONS, HEADER, MAX_VERSION, MIN_VERSION, Version, as_text
from blazar.api.http.routes import Caching, Parameter, Part, Root, Route, up_to
from blazar.api.http.shapes import Json, ref, type_of, with_examples
from blazar.model.base.paging import Operator
from blazar.resources.request_schemas import SCHEMAS

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
_IF_NONE_MATCH = _header("If-None-Match", "the `ETag` of earlier answers: a 304 if one of them is up to date")
_HEADERS: Json = {
    "x-openstack-request-id": {"schema": _TEXT, "description": "the id of the request in the log"},
    "Cache-Control": {"schema": _TEXT, "description": "no-store; for what may be kept, private, no-cache"},
    "Vary": {"schema": _TEXT, "description": "what the response depends on"},
    "X-Content-Type-Options": {"schema": _TEXT, "description": "nosniff"},
}
_VERSION_HEADERS: Json = {
    HEADER: {"schema": _TEXT, "description": "the API version of the response"},
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
    own = {given.name: given for version in rows for given in version.parameters if given not in shared}
    tags = [_IF_NONE_MATCH] if _has_tags(rows) else []
    described["parameters"] = [*_headers(rows), *tags, *(parameter(given) for given in own.values())]
    described["responses"] = _responses(rows)
    bodies = _distinct([ref(row.body.name) for row in rows if row.body is not None])
    if bodies:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": _any_of(bodies)}}}
    if row.root is Root.V2:
        described["deprecated"] = True
    return described


def parameter(given: Parameter) -> Json:
    """Return the description of a parameter."""
    required = {"required": True} if given.place == "path" else {}
    schema = _TEXT if given.reader is None or given.operators else given.reader.schema
    return {"name": given.name, "in": given.place, **required, "schema": schema, "description": _describe(given)}


def _describe(given: Parameter) -> str:
    if not given.operators:
        return given.description
    prefixes = ", ".join(f"`{operator}:`" for operator in given.operators if operator is not Operator.EQ)
    return f"{given.description}; a value, or one after {prefixes}" if prefixes else given.description


def _range(rows: Sequence[Route]) -> str:
    """Return a sentence about the microversions that have the operation; empty if all have it."""
    since = f"Since version {as_text(rows[0].since)}." if rows[0].is_new else ""
    last = rows[-1].until
    until = f"Until version {as_text(last)}." if last is not None else ""
    return " ".join(filter(None, (since, until)))


def _headers(rows: Sequence[Route]) -> list[Json]:
    """Return the headers of an operation; that of the version names the first and the last that have it."""
    if rows[0].is_open:
        return [_REQUEST_ID]
    if not rows[0].has_versions:
        return [_TOKEN, _REQUEST_ID]
    first, last = as_text(rows[0].since), "latest" if rows[-1].until is None else as_text(rows[-1].until)
    values = " or ".join(dict.fromkeys(f"`reservation {version}`" for version in (first, last)))
    default = as_text(MIN_VERSION)
    missing = f"without it {default}, which does not have this" if rows[0].is_new else f"without it, {default}"
    return [_TOKEN, _header(HEADER, f"{values}; {missing}"), _REQUEST_ID]


def _responses(rows: Sequence[Route]) -> Json:
    row = rows[-1]
    headers = {**_HEADERS, **_VERSION_HEADERS} if row.has_versions else _HEADERS
    schemas: dict[int, list[Json]] = {}
    for route in rows:
        for status, schema in route.answers.items():
            schemas.setdefault(status, []).extend([schema] if schema is not None else [])
    answers = {
        str(status): _response(row.summary, _any_of(_distinct(found)) if found else None, headers, row.as_csv)
        for status, found in schemas.items()
    }
    if _has_tags(rows):
        answers["304"] = _response("What the caller has, by its tag in If-None-Match, is up to date", None, headers)
    return {**answers, **_refusals(rows)}


def _refusals(rows: Sequence[Route]) -> Json:
    row = rows[-1]
    texts = _ERRORS_OF_V2 if row.root is Root.V2 else _ERRORS
    usual = {400} if row.is_open else {400, 401, 403, 500, 503} | ({406} if row.root is Root.V1 else set())
    listed = [row for row in rows if _has_conventions(row)]
    too_large = {413} if any(row.body for row in rows) else set()
    wrong_type = {415} if any(route.body for route in listed) else set()
    # In other versions it is an unknown URL.
    missing = {404} if rows[0].is_new or row.instead else set()
    statuses = usual | too_large | wrong_type | missing | {status for row in rows for status in row.errors}

    def headers(status: int) -> Json:
        return {**_HEADERS, **_CHALLENGE} if status == 401 else _HEADERS

    def text(status: int) -> tuple[str, Json]:
        sentence, schema = texts.get(status, (HTTPStatus(status).phrase, _A))
        if not row.has_versions or status == 401:
            return sentence, schema
        # A malformed version is refused in both shapes, whatever the row.
        both = [_OF_VERSION] if status in (400, 406) else []
        if status == 406:
            return sentence, _OF_VERSION
        before = schema.get("oneOf", [schema])
        if rows[0].since >= CONVENTIONS:
            before = [_B] if status == 404 else []
        after = [_LISTED] if listed or (status == 404 and row.instead) else []
        return sentence, {"oneOf": [*before, *after, *both]}

    return {str(status): _response(*text(status), headers(status), as_page=row.as_page) for status in sorted(statuses)}


def _has_conventions(row: Route) -> bool:
    """Return whether a row serves a version with the conventions of 1.1."""
    is_last = row.until is not None and row.until < CONVENTIONS
    return row.has_versions and not is_last


def _response(
    description: str, schema: Json | None, headers: Json, as_csv: bool = False, as_page: bool = False
) -> Json:
    response: Json = {"description": description, "headers": headers}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
        if as_csv:
            response["content"]["text/csv"] = {"schema": {**_TEXT, "description": "RFC 4180, with a head"}}
        if as_page:
            response["content"]["text/html"] = {"schema": {**_TEXT, "description": "for who follows a link"}}
    return response


def _has_tags(rows: Sequence[Route]) -> bool:
    """Return whether callers may keep what they get, and ask whether it has changed."""
    kept = any(_has_conventions(row) and row.caching is not Caching.NONE for row in rows)
    return kept and rows[-1].method == "GET"


def _distinct(schemas: Sequence[Json]) -> list[Json]:
    return [schema for number, schema in enumerate(schemas) if schema not in schemas[:number]]


def _any_of(schemas: Sequence[Json]) -> Json:
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


DESCRIPTION = """\
Reservation of hosts, of servers and of addresses for a period of time. Dates in requests are UTC, to the minute.

All paths of leases, hosts and floating IPs also work with the suffix `.json`; no path has a trailing slash.
Unknown query parameters are ignored. The `error_message` of an error says why the request failed: in an
ApplicationError (the request was understood) or in a FrameError (it is not valid HTTP or JSON).
Version 2 is deprecated. It uses ApplicationErrors instead of FrameErrors, and RoutingErrors for unknown URLs below
`/v2`. From version 1.1 on errors are Errors, whose codes are under `x-error-codes`; unknown query parameters are
refused.
"""


def document(url: str, routes: Iterable[Route], parts: Sequence[Part]) -> Json:
    """Return the document of a service at ``url`` that serves ``routes``, with the components of all parts."""
    paths: dict[str, list[Route]] = {}
    for route in routes:
        paths.setdefault(route.url, []).append(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Blazar, the reservation service", "version": __version__, "description": DESCRIPTION},
        "servers": [{"url": url or "/"}],
        "paths": {path: _path(rows) for path, rows in paths.items()},
        "components": {"schemas": components(parts)},
        "x-error-codes": describe_codes(),
    }


def _path(rows: Sequence[Route]) -> Json:
    """Return the operations of a path; the parts of the path that all of them have stand beside them."""
    shared = [
        given for given in rows[0].parameters if given.place == "path" and all(given in row.parameters for row in rows)
    ]
    by_method: dict[str, list[Route]] = {}
    for row in rows:
        by_method.setdefault(row.method.lower(), []).append(row)
    described: Json = {"parameters": [parameter(given) for given in shared]} if shared else {}
    return described | {method: operation(versions, shared) for method, versions in by_method.items()}


def components(parts: Sequence[Part]) -> Json:
    """Return the components of the document, by name."""
    reservations = {name: schema for part in parts for name, schema in part.reservations.items()}
    of_types = requests(parts)
    bodies = [row.body for part in parts for row in part.routes if row.body is not None]
    combined = [
        part.make_components(reservations, _fields(parts)) for part in parts if part.make_components is not None
    ]
    return {
        **{body.name: with_examples(body.schema, *body.examples) for body in bodies},
        **{name: schema for made in combined for name, schema in made.items()},
        **{
            f"{name}Request": {"examples": [], **of_types[kind], "title": f"a new reservation of {kind}, from 1.1 on"}
            for name, kind in ((name, type_of(schema)) for name, schema in reservations.items())
            if kind in of_types
        },
        **{name: schema for part in parts for name, schema in part.components.items()},
    }


def requests(parts: Sequence[Part]) -> Mapping[str, Json]:
    """Return the schemas of what requests for reservations may have from 1.1 on, by resource type."""
    return {**SCHEMAS, **{name: schema for part in parts for name, schema in part.requests.items()}}


def _fields(parts: Sequence[Part]) -> Json:
    """Return the fields of reservations; a field of several parts has the descriptions of all of them."""
    fields: Json = {}
    for part in parts:
        for name, schema in part.fields.items():
            texts = [known["description"] for known in (fields.get(name), schema) if known]
            fields[name] = {**schema, "description": "; ".join(texts)}
    return fields


CONTROLLERS = ("oshosts", "leases")
"""Names in option ``api_v2_controllers``: the parts that version 2 has."""

_MARK = "\x00url"
"""Placeholder for the URL of the service in the document; nothing else in it has a NUL character."""


class Served:
    """The routes of ``parts`` in the enabled versions, up to the microversion ``newest``.

    ``enable_v1`` and ``v2_controllers`` are as the options ``enable_v1_api`` and ``[api] api_v2_controllers``.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        enable_v1: bool = True,
        v2_controllers: Collection[str] = CONTROLLERS,
        newest: Version = MAX_VERSION,
    ) -> None:
        parts = up_to(parts, newest)
        self.newest = newest
        roots = {Root.SERVICE, *((Root.V1,) if enable_v1 else ())}
        self.has_v1, self.has_v2 = enable_v1, bool(v2_controllers)
        self.routes: tuple[Route, ...] = tuple(
            row
            for part in parts
            for row in part.routes
            if row.root in roots or (row.root is Root.V2 and part.controller in v2_controllers)
        )
        self.requests = requests(parts)
        # Rules of all routes and of what their answers show, in the order of the policy document.
        self.rules: tuple[str, ...] = tuple(rule.name for part in parts for rule in (*part.rules, *part.views))
        # Also those of a version that is not enabled: without a token, they are 404 and not 401.
        self.open_urls = frozenset(row.url for part in parts for row in part.routes if row.is_open)
        content = document(_MARK, self.routes, parts)
        self._text = json.dumps(content, separators=(",", ":")).split(json.dumps(_MARK))

    def document(self, url: str) -> str:
        """Return the OpenAPI document of a service at ``url``, as JSON; only the URL is filled in."""
        return json.dumps(url or "/").join(self._text)
