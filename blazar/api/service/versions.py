# SPDX-License-Identifier: Apache-2.0
"""Routes of the service itself, which need no token: versions, health and the OpenAPI document."""

from __future__ import annotations

from flask import Response, jsonify

from blazar.api.http import microversion
from blazar.api.http.answers import link
from blazar.api.http.context import Call
from blazar.api.http.routes import Part, Root, Route
from blazar.api.http.shapes import ERRORS, TEXT, Json, a_list, an_object, ref
from blazar.model.base.errors import BlazarError
from blazar.model.resources.resource import HOST


def _version(call: Call) -> Json:
    return {
        "id": "v1.0",
        "status": "CURRENT",
        "min_version": microversion.as_text(microversion.MIN_VERSION),
        "max_version": microversion.as_text(call.services.served.newest),
        "links": [{"rel": "self", "href": link("/v1")}],
    }


def _versions(call: Call) -> Json:
    second = {"id": "v2.0", "status": "DEPRECATED", "links": [{"rel": "self", "href": link("/v2")}]}
    served = [_version(call)] if call.services.served.has_v1 else []
    if call.services.served.has_v2:
        served.append(second)
    return {"versions": served}


def _version_one(call: Call) -> Json:
    return {"version": _version(call)}


def _healthcheck(call: Call) -> Response:
    try:
        call.manager.resources.properties(HOST, include_private=False)
    except BlazarError as error:
        failing = jsonify({"status": "failing", "reason": error.message})
        failing.status_code = 503
        return failing
    return jsonify({"status": "ok"})


def _openapi(call: Call) -> Response:
    return Response(call.services.served.document(link("")), mimetype="application/json")


_VERSIONS = an_object({"versions": a_list(ref("Version"))})
_VERSION = an_object({"version": ref("Version")})

PART = Part(
    "service",
    routes=(
        *(
            Route(
                root=Root.SERVICE,
                method="GET",
                path=path,
                name=name,
                summary="The versions of the API",
                handler=_versions,
                answers={300: _VERSIONS},
                is_open=True,
            )
            for path, name in (("/", "versions"), ("/versions", "versions_too"))
        ),
        Route(
            root=Root.SERVICE,
            method="GET",
            path="/healthcheck",
            name="healthcheck",
            summary="Check the health of the service",
            handler=_healthcheck,
            answers={200: ref("Health"), 503: ref("Health")},
            errors=(500,),
            is_open=True,
        ),
        Route(
            root=Root.SERVICE,
            method="GET",
            path="/openapi.json",
            name="openapi",
            summary="This document",
            handler=_openapi,
            answers={200: {"type": "object"}},
            is_open=True,
        ),
        *(
            Route(
                root=Root.V1,
                method="GET",
                path=path,
                name=name,
                summary="Version 1 of the API",
                handler=_version_one,
                answers={200: _VERSION},
                is_open=True,
            )
            for path, name in (("", "version"), ("/", "version_too"))
        ),
    ),
    components={
        "Version": an_object(
            {
                "id": TEXT,
                "status": TEXT,
                "min_version": TEXT,
                "max_version": TEXT,
                "links": a_list(an_object({"rel": TEXT, "href": TEXT})),
            },
            optional=("min_version", "max_version"),
            example={
                "id": "v1.0",
                "status": "CURRENT",
                "min_version": "1.0",
                "max_version": "1.1",
                "links": [{"rel": "self", "href": "http://controller:1234/v1"}],
            },
        ),
        "Health": an_object(
            {"status": {"enum": ["ok", "failing"]}, "reason": TEXT}, optional=("reason",), example={"status": "ok"}
        ),
        **ERRORS,
    },
)
