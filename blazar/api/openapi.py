# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, made from the routes; the tests validate every response against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from blazar import __version__
from blazar.api import error_codes
from blazar.api.leases.components import components as components_of_leases
from blazar.api.operations import operation, parameter
from blazar.api.routes import Part, Route
from blazar.api.shapes import Json, type_of, with_examples
from blazar.resources.described import SCHEMAS

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
        "x-error-codes": error_codes.described(),
    }


def _path(rows: Sequence[Route]) -> Json:
    """Return the operations of a path; parameters that all of them have stand beside them."""
    shared = [each for each in rows[0].parameters if all(each in row.parameters for row in rows)]
    by_method: dict[str, list[Route]] = {}
    for row in rows:
        by_method.setdefault(row.method.lower(), []).append(row)
    described: Json = {"parameters": [parameter(each) for each in shared]} if shared else {}
    return described | {method: operation(versions, shared) for method, versions in by_method.items()}


def components(parts: Sequence[Part]) -> Json:
    """Return the components of the document, by name."""
    reservations = {name: schema for part in parts for name, schema in part.reservations.items()}
    of_types = requests(parts)
    bodies = [row.body for part in parts for row in part.routes if row.body is not None]
    return {
        **{body.name: with_examples(body.schema, *body.examples) for body in bodies},
        **components_of_leases(reservations, _fields(parts)),
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
