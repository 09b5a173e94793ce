# SPDX-License-Identifier: Apache-2.0
"""The whole service behind its HTTP interface; every answer is held against the OpenAPI document."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jsonschema_rs import Draft202012Validator
from werkzeug.test import TestResponse

from blazar.api.app import create_app
from blazar.api.http.context import EXTENSION, Services
from blazar.api.http.identity import Identity, StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.leases.services import LeaseServices
from blazar.api.leases.v1_0.routes import new_caches
from blazar.rpc.interface import Manager
from tests.world import World


class ValidatingClient(FlaskClient):
    """Checks every answer: documented, in the documented shape, with the headers that every answer has."""

    document: dict[str, Any]

    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        response = super().open(*args, **kwargs)
        path = response.request.path
        assert response.headers["x-openstack-request-id"].startswith("req-")
        if response.status_code == 204:
            assert response.data == b""
            assert "Content-Type" not in response.headers
        # What is fixed in a path comes before what is a parameter, as in the router.
        found = [template for template in self.document["paths"] if matches(template, path)]
        template = min(found, key=lambda template: template.count("{"), default=None)
        methods = self.document["paths"].get(template, {})
        operation = methods.get(response.request.method.lower())
        if operation is None:
            if response.request.method not in ("OPTIONS", "HEAD"):
                assert response.status_code in (401, 404, 405), f"{path} is not documented"
            return response
        documented = operation["responses"].get(str(response.status_code))
        assert documented is not None, f"{response.status_code} of {path} is not documented: {response.text[:300]}"
        if response.status_code < 400:
            assert documented["headers"].keys() <= {name for name, _ in response.headers}
        if "content" in documented and response.request.method != "HEAD":
            assert response.mimetype in documented["content"], f"{response.mimetype} of {path} is not documented"
        if (
            "content" in documented
            and response.request.method != "HEAD"
            and response.mimetype not in ("text/csv", "text/html")
        ):
            schema = documented["content"]["application/json"]["schema"]
            _validator(json.dumps(schema), _Components(self.document["components"])).validate(response.json)
        return response


def matches(template: str, path: str) -> bool:
    if template == path:
        return True
    path = path.removesuffix(".json") or "/"
    return _pattern(template).fullmatch(path) is not None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{[^}]+\}", "[^/]+", template))


class _Components:
    """The components of a document: the same ones are equal."""

    def __init__(self, components: dict[str, Any]) -> None:
        self.components = components

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Components) and other.components is self.components

    def __hash__(self) -> int:
        return id(self.components)


@cache
def _validator(schema: str, components: _Components) -> Draft202012Validator:
    return Draft202012Validator({**json.loads(schema), "components": components.components})


def app_of(
    manager: Manager,
    identity: Identity | None = None,
    *,
    auth_uri: str | None = "standalone",
    served: Served | None = None,
) -> Flask:
    """Return the application over a manager. Its routes are those of the first one: making them takes long."""
    app = copy.copy(_first_app(auth_uri, served))
    services: Services = app.extensions[EXTENSION]
    services = replace(services, manager=manager, identity=identity or StandaloneIdentity())
    app.extensions = {EXTENSION: with_leases(services, rendered=new_caches())}
    return app


def with_leases(services: Services, **changed: Any) -> Services:
    """Return services with another value of what they keep for leases."""
    kept = replace(services.feature(LeaseServices), **changed)
    return replace(services, features={**services.features, LeaseServices: kept})


@cache
def _first_app(auth_uri: str | None, served: Served | None) -> Flask:
    app = create_app(cast(Manager, None), identity=StandaloneIdentity(), auth_uri=auth_uri, served=served)
    # Once it has served, the library lets nobody change what the others share with it.
    assert app.test_client().get("/openapi.json").status_code == 200
    return app


@cache
def _document(served: Served) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(served.document("/"))
    return document


def client_of(app: Flask) -> FlaskClient:
    services: Services = app.extensions[EXTENSION]
    ValidatingClient.document = _document(services.served)
    app.test_client_class = ValidatingClient
    return app.test_client()


@pytest.fixture
def app(world: World) -> Flask:
    return app_of(world.manager)


@pytest.fixture
def http_of() -> Callable[[World], FlaskClient]:
    """Make an HTTP client of any world."""
    return lambda world: client_of(app_of(world.manager))


@pytest.fixture
def http(app: Flask) -> FlaskClient:
    """An HTTP client of a service with three registered hosts."""
    return client_of(app)


def token(user: str = "curie", project: str = "physics", *roles: str) -> dict[str, str]:
    """Return the headers with which somebody speaks."""
    return {"X-Auth-Token": f"{user}:{project}" + (f":{','.join(roles)}" if roles else "")}
