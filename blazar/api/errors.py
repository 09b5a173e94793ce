# SPDX-License-Identifier: Apache-2.0
"""Errors as clients read them: one place, four shapes.

Shape A is ours (``error_message``), shape B is the framework's (an unknown URL, a wrong method, a body that is no
JSON), shape C is that of Keystone's middleware (401). Version 2 has shape A for what is wrong with a body, too, and a
shape D for unknown URLs and wrong methods.
"""

from __future__ import annotations

import logging

from flask import Response, current_app, g, jsonify
from werkzeug.exceptions import (
    BadRequest,
    ClientDisconnected,
    HTTPException,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from blazar.api.context import speaks_v2
from blazar.model.errors import BlazarError

LOG = logging.getLogger(__name__)

_BUG = "INTERNAL_SERVER_ERROR"
"""What clients know a bug of ours by, in whichever process it is."""


class BadFrame(Exception):
    """The request is wrong as HTTP, before anybody looks at what it means; rendered in shape B."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def application_error(error: BlazarError) -> Response:
    """Render shape A."""
    if type(error) is BlazarError or error.status >= 500:
        LOG.error("Answering %d to request %s: %s", error.status, _request_ids(), error.message)
    response = _shape_a(error.status, error.message)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def unexpected_error(error: Exception) -> Response:
    """Render a bug of ours; what happened is in the log, under the request's id."""
    LOG.exception("Request %s failed unexpectedly", _request_ids(), exc_info=error)
    return _shape_a(500, "Internal Server Error")


def frame_error(error: BadFrame | HTTPException) -> Response:
    """Render shape B, or what version 2 has in its place."""
    if isinstance(error, BadFrame):
        status, message = error.status, error.message
    else:
        status = error.code or 500
        message = _text(error)
    if not speaks_v2():
        response = jsonify({"error": status, "error_message": message})
    elif isinstance(error, NotFound | MethodNotAllowed):
        response = jsonify({"code": status, "title": error.name, "description": message})
    else:
        response = _shape_a(status, message)
    response.status_code = status
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def unauthenticated() -> Response:
    """Render shape C."""
    message = "The request you have made requires authentication."
    response = jsonify({"error": {"code": 401, "title": "Unauthorized", "message": message}})
    response.status_code = 401
    if (uri := current_app.config["BLAZAR_AUTH_URI"]) is not None:
        response.headers["WWW-Authenticate"] = f'Keystone uri="{uri}"'
    return response


def _shape_a(status: int, message: str) -> Response:
    name = _BUG if status == 500 and not speaks_v2() else status
    response = jsonify({"error_code": status, "error_message": message, "error_name": name})
    response.status_code = status
    return response


def _request_ids() -> str:
    return f"{g.request_id} ({g.global_id})" if g.global_id else str(g.request_id)


def _text(error: HTTPException) -> str:
    if isinstance(error, RequestEntityTooLarge):
        return f"The body is too big; it must have less than {current_app.config['MAX_CONTENT_LENGTH']} bytes."
    return _TEXTS.get(type(error)) or error.description or error.name


_TEXTS: dict[type[HTTPException], str] = {
    BadRequest: "This is no proper HTTP request; look at its Host header and its path.",
    ClientDisconnected: "The body is shorter than its Content-Length says.",
    NotFound: "There is nothing at this URL; see /openapi.json for what there is (paths have no trailing slash).",
    MethodNotAllowed: "This URL does not take this method; see the Allow header and /openapi.json.",
}
