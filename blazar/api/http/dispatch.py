# SPDX-License-Identifier: Apache-2.0
"""Register routes in Flask, and choose the route of a request by its microversion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from flask import Flask, Response, current_app, g, jsonify, request
from flask.globals import request_ctx
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Rule

from blazar.api.http import answers, microversion
from blazar.api.http.answers import Answer
from blazar.api.http.context import Call, identifier, services
from blazar.api.http.errors import speaks_v2
from blazar.api.http.faults import BadFrame
from blazar.api.http.identity import Caller
from blazar.api.http.openapi import Served
from blazar.api.http.routes import Route
from blazar.api.http.shapes import Json
from blazar.context import effects, scope
from blazar.model.leases.requests import Actor

_NOBODY = Caller("", "", ())
"""The caller of a route that needs no token."""


class UrlRule(Rule):
    """A rule that finds the view of a URL.

    The library also compiles two functions for each rule that make URLs of views. That takes most of the time in which
    an application is made, and we make no URLs; here they are compiled when one is made.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = super()._compile_builder
        return lambda rule, **values: compiled(append_unknown)(rule, **values)


def register(app: Flask, served: Served) -> None:
    """Add what is served to the application: a rule of Flask for each URL."""
    by_url: dict[str, list[Route]] = {}
    for route in served.routes:
        for url in (route.url, f"{route.url}.json") if route.json_twin else (route.url,):
            by_url.setdefault(url, []).append(route)
    for url, rows in by_url.items():
        methods = [*dict.fromkeys(row.method for row in rows), "OPTIONS"]
        rule = url.replace("{", "<").replace("}", ">")
        app.add_url_rule(rule, url, _View(rows), methods=methods, provide_automatic_options=False)
    if served.has_v2:
        # As in the existing Blazar: version 2 has no version document of its own and answers 405 here.
        app.add_url_rule("/v2", "version/v2", lambda: Response(), methods=[])


def is_open() -> bool:
    """Return whether the request needs no token."""
    view = _view()
    open_rows = [] if view is None else [row for row in view.rows if row.is_open]
    if request.method not in ("GET", "HEAD"):
        return any(row.method == request.method for row in open_rows)
    return request.path in services().served.open_urls or bool(open_rows)


def find_route() -> str | None:
    """Return the URL of the row that serves the request, with names in braces; None if there is none."""
    view = _view()
    return None if view is None else view.rows[0].url


def choose_version() -> None:
    """Set the microversion of the request.

    What does not exist in that version is refused as if it did not exist at all: 404 for the URL, 405 for the method.
    """
    view = _view()
    rows: tuple[Route, ...] = () if view is None else view.rows
    is_known = request.url_rule is not None
    if speaks_v2() or not (is_known or any(row.is_limited for row in rows)):
        return
    version = microversion.read_version(request.headers.get(microversion.HEADER), services().served.newest)
    serving = {} if view is None else view.serving(version)
    if rows and not serving:
        raise _refusal_of_move(rows, version) or NotFound
    method = "GET" if request.method == "HEAD" else request.method
    if not is_known or (method not in serving and any(row.method == method for row in rows)):
        raise MethodNotAllowed(_allowed_methods(rows, version))
    g.version = version


def _view() -> _View | None:
    """Return what serves the request's URL in all its methods and versions."""
    error = request.routing_exception
    if request.url_rule is not None:
        endpoint = request.url_rule.endpoint
    elif isinstance(error, MethodNotAllowed) and error.valid_methods and request_ctx.url_adapter is not None:
        endpoint, _ = request_ctx.url_adapter.match(method=next(iter(error.valid_methods)))
    else:
        return None
    view = current_app.view_functions.get(endpoint)
    return view if isinstance(view, _View) else None


def _refusal_of_move(rows: Iterable[Route], version: microversion.Version) -> BadFrame | None:
    """Return the refusal of a URL of older versions that names another one; None if there is none."""
    instead = next((row.instead for row in rows if row.instead is not None and row.since <= version), None)
    if instead is None:
        return None
    text = f"Version {microversion.as_text(version)} does not have this URL; use {instead}, see /openapi.json."
    return BadFrame(404, text, code="uri_not_found")


def _missing(rows: Iterable[Route], version: microversion.Version | None) -> set[str]:
    """Return the methods that rows have in other versions only."""
    rows = tuple(rows)
    missing = {row.method for row in rows} - {row.method for row in rows if row.serves(version)}
    return missing | ({"HEAD"} if "GET" in missing else set())


def _allowed_methods(rows: Iterable[Route], version: microversion.Version | None) -> list[str]:
    """Return the methods that the request's URL has in a version."""
    adapter = request_ctx.url_adapter
    methods = set(adapter.allowed_methods() if adapter is not None else ())
    return sorted(methods - _missing(rows, version))


def _response(row: Route, found: Any) -> Response:
    """Return the response of what a handler has found."""
    if isinstance(found, Response):
        return found
    answer = found if isinstance(found, Answer) else Answer(found)
    # What the caller has already is not rendered.
    response = None if answer.etag is None else answers.answer_unchanged(answer.etag)
    if response is None:
        content = answer.value if row.render is None else row.render(answer.value)
        response = _write(content)
        response.status_code = answer.status or row.status
    if answer.etag is not None:
        response.headers["ETag"] = answer.etag
    response.headers.update(answer.headers)
    return response


def _write(content: Json | bytes | None) -> Response:
    if isinstance(content, bytes):
        return Response(content, mimetype=answers.JSON)
    return Response() if content is None else jsonify(content)


def _acting(call: Call, method: str) -> AbstractContextManager[object]:
    """Return the scope of a request, in which changes of leases are told to be the caller's."""
    caller = call.caller
    if method == "GET" or caller is _NOBODY:
        return scope()
    return scope(actor=Actor(caller.user_id, caller.project_id, call.is_operator))


def _names_in_path(row: Route, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return what the path of a request names, for the policy, which logs it and may send it to a server."""
    if row.is_open:
        return {}
    uuids = {parameter.name for parameter in row.parameters if parameter.is_uuid}
    return {
        name: "-" if name in uuids and not _UUID.fullmatch(text) else identifier(text)
        for name, text in parameters.items()
    }


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _View:
    """Serves a URL by the row for the method and the microversion of the request."""

    def __init__(self, rows: Iterable[Route]) -> None:
        self.rows = tuple(rows)
        self._serving: dict[microversion.Version | None, Mapping[str, Route]] = {}

    def serving(self, version: microversion.Version | None) -> Mapping[str, Route]:
        """Return the rows that serve a version, by method; they are looked for once."""
        if version not in self._serving:
            self._serving[version] = {row.method: row for row in self.rows if row.serves(version)}
        return self._serving[version]

    def __call__(self, **parameters: str) -> Any:
        if request.method == "OPTIONS":
            return self._options()
        method = "GET" if request.method == "HEAD" else request.method
        row = self.serving(g.version)[method]
        modern = microversion.has_conventions(g.version)
        call = Call(services(), g.get("caller", _NOBODY), row, modern)
        if not row.on_target:
            # What the path names is part of the target: a rule may tell kinds of resources apart.
            call.authorize(
                {
                    **_names_in_path(row, parameters),
                    "project_id": call.caller.project_id,
                    "user_id": call.caller.user_id,
                }
            )
        with effects(), _acting(call, method):
            response = _response(row, row.handler(call, **parameters))
        return answers.finish(response, row.caching, as_csv=row.as_csv) if modern else response

    def _options(self) -> Response:
        response = Response()
        response.allow.update(_allowed_methods(self.rows, g.version))
        return response
