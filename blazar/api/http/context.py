# SPDX-License-Identifier: Apache-2.0
"""What a handler gets: the services of the application, and the call that it handles."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Protocol, TypeVar, cast

from flask import current_app, request

from blazar.api.http import queries
from blazar.api.http.bodies import check, is_whole, normalize, read_object, refuse_body, without_unchanged
from blazar.api.http.identity import Caller, Identity
from blazar.api.http.openapi import Served
from blazar.api.http.queries import Query
from blazar.api.http.routes import Route
from blazar.api.http.shapes import Json
from blazar.model.base.paging import DEFAULT_BOUNDS, ApiBounds
from blazar.model.base.values import dataclass
from blazar.rpc.interface import Manager

EXTENSION = "blazar"
Feature = TypeVar("Feature")
_PLAUSIBLE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Authorizer(Protocol):
    """Decides by rule, caller and target; ``Policy`` does so."""

    def allows(self, rule: str, caller: Caller, target: Mapping[str, str] | None = None) -> bool:
        """Return whether the rule allows the caller to act on the target (default: the caller's own project)."""

    def check(self, rule: str, caller: Caller, target: Mapping[str, str] | None = None) -> None:
        """Raise Denied, which names the rule, if the rule does not allow it."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of an application, and what it serves; ``bounds`` limit the lists of answers.

    ``features`` are the values that features keep for the application, by their class. ``final_refusals``: at 1.0 and
    in version 2 a lease that cannot be had is a 400.
    """

    manager: Manager
    identity: Identity
    policy: Authorizer
    served: Served
    features: Mapping[type[object], object]
    bounds: ApiBounds = DEFAULT_BOUNDS
    final_refusals: bool = False

    def feature(self, kind: type[Feature]) -> Feature:
        """Return the value of this class that a feature keeps."""
        return cast(Feature, self.features[kind])


def services() -> Services:
    """Return the services of the application that serves this request."""
    return cast(Services, current_app.extensions[EXTENSION])


@dataclass(frozen=True)
class Call:
    """A request whose caller is known, and the route that serves it.

    ``modern``: it asks for a version with the conventions of 1.1, in which an unknown query parameter is refused.
    """

    services: Services
    caller: Caller
    route: Route
    modern: bool = False

    @property
    def manager(self) -> Manager:
        """The manager to ask."""
        return self.services.manager

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query as they were sent, for rows of 1.0."""
        return request.args

    @property
    def asked(self) -> Query:
        """The query, read as the row declares it. InvalidInput, which names the parameter."""
        sent = queries.decode_query(request.query_string)
        return queries.read(self.route.parameters, sent, self.services.bounds.pages)

    @cached_property
    def is_operator(self) -> bool:
        """Whether the caller is an operator."""
        return self.services.policy.allows("admin", self.caller)

    def allows(self, rule: str, target: Mapping[str, str] | None = None) -> bool:
        """Return whether a rule allows the caller to act on the target (default: the own project)."""
        return self.services.policy.allows(rule, self.caller, target)

    def authorize(self, target: Mapping[str, str] | None = None) -> None:
        """Raise Denied unless the route's rule allows the caller to act on the target (default: the own project).

        From 1.1 on also InvalidInput, if the query cannot be read or a body is not taken; who may not do this does not
        learn what is wrong.
        """
        if self.route.rule is not None:
            self.services.policy.check(self.route.rule.name, self.caller, target)
        if self.modern and not self.route.is_open:
            _ = self.asked
            if self.route.body is None and self.route.method in ("POST", "PUT"):
                refuse_body(request)

    def body(self) -> Json:
        """Return the body; BadFrame or InvalidInput if it does not match the schema of the route."""
        return self.checked(self.read())

    def read(self) -> Json:
        """Return the body before it is validated; BadFrame if it is no JSON object. It can be read once."""
        return read_object(request)

    def checked(self, body: Json, fixed: Collection[tuple[str, ...]] = ()) -> Json:
        """Return a body that was read; InvalidInput if it does not match the schema of the route.

        ``fixed`` are the paths of what it has otherwise than the object, and cannot be changed.
        """
        if self.route.body is not None:
            check(body, self.route.body.schema, fixed=fixed)
        return body

    def changes(
        self,
        shown: Callable[[], Mapping[str, object]],
        sent: Json | None = None,
        *,
        current: Callable[[], None],
    ) -> Json:
        """Return the body of a change (``sent``: read before), without what it has as it is ``shown``; InvalidInput.

        It is empty if nothing is changed, also where an empty body is none. ``current`` raises PreconditionFailed for
        a tag of before: an outdated object differs in what the service sets, too, and its tag says more than that.
        """
        body = normalize(self.read() if sent is None else sent)
        if self.route.body is None:
            return body
        schema = self.route.body.schema
        if is_whole(body, schema):
            current()
        change = without_unchanged(body, schema, lambda: normalize(dict(shown())))
        return self.checked(change.body, change.fixed) if change.body or not body else change.body


def identifier(text: str) -> str:
    """Return an id from a path or a query, without ``.json``.

    Anything that cannot be an id becomes ``-``, which no object has: the result is an ordinary 404, and no database
    gets characters that it cannot store.
    """
    text = text.removesuffix(".json")
    return text if _PLAUSIBLE.fullmatch(text) else "-"
