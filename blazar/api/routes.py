# SPDX-License-Identifier: Apache-2.0
"""Routes as data. Flask's routing, the OpenAPI document and the policy document are made from these rows.

A row serves a method of a path in a range of microversions. A method that differs between microversions has several
rows, of which each request gets the one for its version; a handler never compares versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from blazar.api.microversion import MIN_VERSION, Version
from blazar.api.readers import Reader
from blazar.api.shapes import Json
from blazar.model.paging import Operator

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
    ``operators`` it is a filter. ``blazar/api/queries.py`` makes such parameters. Of a part of a path with ``is_uuid``
    the policy is told nothing else, for it may be a secret that somebody took for the id.
    """

    name: str
    place: str
    description: str
    policy_name: str | None = None
    reader: Reader | None = None
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

    ``handler`` takes a ``Call`` and the parameters of the path. It returns a value, which ``render`` turns into JSON,
    or a finished response if ``render`` is None.
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
    json_twin: bool = False
    """Is also served with the suffix ``.json``, as in the existing Blazar. New routes are not."""
    since: Version = MIN_VERSION
    until: Version | None = None
    """The first and the last microversion that the row serves; None: all later ones."""

    @property
    def url(self) -> str:
        """The path from the root of the service."""
        return self.root.value + self.path

    @property
    def status(self) -> int:
        """The status of success."""
        return next(iter(self.answers))

    @property
    def is_limited(self) -> bool:
        """Whether there are microversions that the row does not serve."""
        return self.since > MIN_VERSION or self.until is not None

    def serves(self, version: Version | None) -> bool:
        """Return whether the row serves a microversion; None: the API has no microversions."""
        return version is None or (self.since <= version and (self.until is None or version <= self.until))


def within(rows: Iterable[Route], *, since: Version = MIN_VERSION, until: Version | None = None) -> tuple[Route, ...]:
    """Return rows for a range of microversions."""
    return tuple(replace(row, since=since, until=until) for row in rows)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the API: what the leases, or a kind of resource, bring.

    ``reservations`` are the components of its reservation types, as ``shapes.a_reservation`` makes them; ``rules``
    are the rules of its routes, in the order of the policy document, and ``views`` those that decide how much the
    answers of its routes show, or what else they do. ``fields`` describe what a request for such a reservation may
    have at 1.0; the resource type validates them. ``requests`` are the schemas of requests from 1.1 on, by resource
    type, of types of other packages: what the type has as ``schema``. ``controller`` is the name of the part in the
    option ``api_v2_controllers``.
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


def up_to(parts: Iterable[Part], newest: Version) -> tuple[Part, ...]:
    """Return parts as they are if ``newest`` is the highest microversion: without routes and limits beyond it."""

    def known(row: Route) -> Route:
        return replace(row, until=None) if row.until is not None and row.until >= newest else row

    return tuple(
        replace(part, routes=tuple(known(row) for row in part.routes if row.since <= newest)) for part in parts
    )
