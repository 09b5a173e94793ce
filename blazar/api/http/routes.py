# SPDX-License-Identifier: Apache-2.0
"""Routes as data. Flask's routing, the OpenAPI document and the policy document are made from these rows.

A row serves a method of a path from 1.1 on. What 1.0 has is a table of its own, made by ``only_at_1_0``. A method that
differs between microversions has several rows, of which each request gets the one for its version; a handler never
compares versions. Version 2, and what needs no token, have no microversions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from blazar.api.http.microversion import CONVENTIONS, MIN_VERSION, Version
from blazar.api.http.readers import TextReader
from blazar.api.http.shapes import Json
from blazar.model.base.paging import Operator
from blazar.model.base.values import dataclass, field, replace

ADMIN = "rule:admin"
READER = "rule:project_reader_or_admin"
MEMBER = "rule:project_member_or_admin"
"""Checks of rules: operators only, readers and members of the project."""


class Root(Enum):
    """Where a route is mounted: version 1, the deprecated version 2, or the service itself, outside of versions."""

    SERVICE = ""
    V1 = "/v1"
    V2 = "/v2"


class Caching(Enum):
    """What caches may keep of answers from microversion 1.1 on.

    ``WEAK``: with a weak tag, by default a hash of the body; such answers are compressed. ``STRONG``: with the strong
    tag that the handler gives (``Answer.etag``); never compressed. ``NONE``: nothing.
    """

    WEAK = "weak"
    STRONG = "strong"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule: its name, default check and description.

    What a newer route does that a route of 1.0 does as well has the rule of that one in its default check, so that a
    policy file written for 1.0 holds for every way to the same effect.
    """

    name: str
    check: str
    description: str


def all_of(*rules: Rule) -> str:
    """Return the check that each of these rules has to allow it."""
    return " and ".join(f"rule:{rule.name}" for rule in rules)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a path or a query, or a header. ``policy_name`` is its name in the policy document, if another.

    From 1.1 on ``reader`` reads the value of a query parameter, which is sent at most ``most`` times; with
    ``operators`` it is a filter. ``blazar/api/http/queries.py`` makes such parameters. Of a part of a path with
    ``is_uuid`` the policy gets nothing else, for it may be a secret that somebody took for the id.
    """

    name: str
    place: str
    description: str
    policy_name: str | None = None
    reader: TextReader | None = None
    operators: tuple[Operator, ...] = ()
    most: int = 1
    is_uuid: bool = False


def in_path(name: str, description: str, *, policy_name: str | None = None, is_uuid: bool = False) -> Parameter:
    """Return a path parameter."""
    return Parameter(name, "path", description, policy_name, is_uuid=is_uuid)


def in_query(name: str, description: str) -> Parameter:
    """Return an optional query parameter."""
    return Parameter(name, "query", description)


def in_header(name: str, description: str) -> Parameter:
    """Return an optional header, for the document alone; the handler reads it."""
    return Parameter(name, "header", description)


@dataclass(frozen=True, slots=True)
class Body:
    """The format of a request body: the name of its component, its schema and valid examples."""

    name: str
    schema: Json
    examples: tuple[Json, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A row of the table.

    ``handler`` takes a ``Call`` and the parameters of the path. It returns a value, which ``render`` turns into JSON
    (None: it is JSON already; a value of None is an answer without a body), or a finished response.
    """

    root: Root
    method: str
    path: str
    """The path below the root, with parameters in braces."""
    name: str
    """The ``operationId``: unique to the method and the path, the same for all versions of them."""
    summary: str
    handler: Callable[..., Any]
    answers: Mapping[int, Json | None]
    """The schema of the response by status; None: no body. The first status is that of success."""
    render: Callable[[Any], Json] | None = None
    rule: Rule | None = None
    """The policy rule, which is checked before the handler; None: any caller may use the route."""
    on_target: bool = False
    """The handler calls ``authorize`` with the object it has found; the caller's own project decides nothing."""
    is_open: bool = False
    """Needs no token, and has no microversions."""
    body: Body | None = None
    caching: Caching = Caching.WEAK
    """What may be kept of the answers of a GET from 1.1 on."""
    errors: tuple[int, ...] = ()
    """Statuses of errors in addition to those that every route has."""
    parameters: tuple[Parameter, ...] = ()
    as_csv: bool = False
    """The answer of success may be CSV instead of JSON."""
    as_page: bool = False
    """The answer is a page, and that of an error is one for who wants it rather than JSON."""
    json_twin: bool = False
    """Is also served with the suffix ``.json``, as in the existing Blazar. New routes are not."""
    since: Version = CONVENTIONS
    until: Version | None = None
    """The first and the last microversion that the row serves; None: all later ones."""
    instead: str | None = None
    """Where later versions have what the row serves; their 404 names it."""

    @property
    def url(self) -> str:
        """The path from the root of the service."""
        return self.root.value + self.path

    @property
    def status(self) -> int:
        """The status of success."""
        return next(iter(self.answers))

    @property
    def has_versions(self) -> bool:
        """Whether requests for the row have a microversion."""
        return self.root is not Root.V2 and not self.is_open

    @property
    def is_new(self) -> bool:
        """Whether the lowest microversion does not have the row."""
        return self.has_versions and self.since > MIN_VERSION

    @property
    def is_limited(self) -> bool:
        """Whether there are microversions that the row does not serve."""
        return self.is_new or self.until is not None

    def serves(self, version: Version | None) -> bool:
        """Return whether the row serves a microversion; None: the request has none."""
        if version is None or not self.has_versions:
            return True
        return self.since <= version and (self.until is None or version <= self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class NounRows:
    """What the rows have in common that list, create, show, change and delete the objects of a noun at 1.0.

    ``key`` is the parameter of the path of one object; ``listed`` and ``shown`` are the schemas of answers, ``render``
    makes the answer of one object. Lists have a twin with the suffix ``.json``.
    """

    root: Root
    path: str
    key: Parameter
    listed: Json
    shown: Json
    render: Callable[[Any], Json]
    on_target: bool = False

    def list(self, handler: Callable[..., Any], rule: Rule, name: str, summary: str, **row: Any) -> Route:
        """Return the row that lists objects."""
        return self._on_list("GET", handler, rule, name, summary, answers={200: self.listed}, **row)

    def create(self, handler: Callable[..., Any], rule: Rule, name: str, summary: str, body: Body) -> Route:
        """Return the row that makes an object."""
        row = {"body": body, "render": self.render, "answers": {201: self.shown}, "errors": (404, 409)}
        return self._on_list("POST", handler, rule, name, summary, **row)

    def show(self, handler: Callable[..., Any], rule: Rule, name: str, summary: str) -> Route:
        """Return the row that shows an object."""
        row = {"render": self.render, "answers": {200: self.shown}, "errors": (404,)}
        return self._on_one("GET", handler, rule, name, summary, **row)

    def update(self, handler: Callable[..., Any], rule: Rule, name: str, summary: str, body: Body) -> Route:
        """Return the row that changes an object."""
        row = {"body": body, "render": self.render, "answers": {200: self.shown}, "errors": (404, 409)}
        return self._on_one("PUT", handler, rule, name, summary, **row)

    def delete(self, handler: Callable[..., Any], rule: Rule, name: str, summary: str, **row: Any) -> Route:
        """Return the row that deletes an object; by default its answer has no body."""
        return self._on_one(
            "DELETE", handler, rule, name, summary, errors=(404, 409), **{"answers": {204: None}, **row}
        )

    def _on_list(self, *row: Any, **more: Any) -> Route:
        method, handler, rule, name, summary = row
        fields = {"method": method, "handler": handler, "rule": rule, "name": name, "summary": summary, **more}
        return Route(root=self.root, path=self.path, json_twin=True, **fields)

    def _on_one(self, *row: Any, **more: Any) -> Route:
        found = replace(self._on_list(*row, **more), path=f"{self.path}/{{{self.key.name}}}", json_twin=False)
        return replace(found, parameters=(self.key,), on_target=self.on_target)


def only_at_1_0(rows: Iterable[Route], *, instead: str | None = None) -> tuple[Route, ...]:
    """Return the table of what only 1.0 has: the rows for existing clients; ``instead`` is where 1.1 has it."""
    return tuple(replace(row, since=MIN_VERSION, until=MIN_VERSION, instead=instead) for row in rows)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the API: what the leases, or a kind of resource, bring.

    ``reservations`` are the components of its reservation types, as ``shapes.a_reservation`` makes them; ``rules``
    are the rules of its routes, in the order of the policy document, and ``views`` those that decide how much the
    answers of its routes show, or what else they do. ``fields`` describe what a request for such a reservation may
    have at 1.0; the resource type validates them. ``requests`` are the schemas of requests from 1.1 on, by resource
    type, of types of other packages: what the type has as ``schema``. ``controller`` is the name of the part in the
    option ``api_v2_controllers``. ``make_components`` makes components of the reservations and fields of all
    parts.
    """

    name: str
    routes: tuple[Route, ...] = ()
    rules: tuple[Rule, ...] = ()
    views: tuple[Rule, ...] = ()
    components: Json = field(default_factory=dict)
    reservations: Json = field(default_factory=dict)
    requests: Json = field(default_factory=dict)
    fields: Json = field(default_factory=dict)
    controller: str | None = None
    make_components: Callable[[Json, Json], Json] | None = None


def up_to(parts: Iterable[Part], newest: Version) -> tuple[Part, ...]:
    """Return parts as they are if ``newest`` is the highest microversion: without routes and limits beyond it."""

    def known(row: Route) -> Route:
        return replace(row, until=None, instead=None) if row.until is not None and row.until >= newest else row

    def has(row: Route) -> bool:
        return not row.has_versions or row.since <= newest

    return tuple(replace(part, routes=tuple(known(row) for row in part.routes if has(row))) for part in parts)
