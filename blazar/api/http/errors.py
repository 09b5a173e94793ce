# SPDX-License-Identifier: Apache-2.0
"""Render errors as HTTP responses.

From microversion 1.1 on an error is a list of faults with codes. Before there are four shapes.

Shape A: errors of the application (``error_message``). Shape B: errors of the framework (unknown URL, wrong method,
body that is not JSON). Shape C: the 401 of Keystone's middleware. Version 2 uses shape A for invalid bodies too, and
shape D for unknown URLs and wrong methods.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from flask import Response, current_app, g, jsonify, request
from werkzeug.exceptions import (
    BadRequest,
    ClientDisconnected,
    HTTPException,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from blazar.api.http import access, faults, microversion
from blazar.api.http.answers import link
from blazar.api.http.context import services
from blazar.api.http.faults import CODES, PREFIX, BadFrame
from blazar.api.http.shapes import Json
from blazar.context import RETRY_SECONDS
from blazar.model.base.errors import BlazarError, Fault, NotEnoughResources

INTERNAL = "Internal error; the log has the reason under the request id."


def wants_list() -> bool:
    """Return whether the request asks for a version that has lists of faults."""
    return microversion.has_conventions(g.asked)


def list_faults(found: Iterable[Fault], *, more: Mapping[str, str] | None = None) -> Response:
    """Render faults of one answer; its status is that of the first one. ``more`` are further keys of each item."""
    listed = list(found)[: faults.MOST]
    code = CODES[listed[0].code]
    rendered = jsonify({"errors": [{**_item(fault, code.status), **(more or {})} for fault in listed]})
    rendered.status_code = code.status
    if code.retry_after is not None:
        rendered.headers["Retry-After"] = str(code.retry_after)
    return rendered


def faults_of(error: BlazarError) -> tuple[Fault, ...]:
    """Return the faults of an error as the caller may read them; of a bug nothing but the request id is told."""
    if type(error) is BlazarError:
        return (Fault("internal_error", INTERNAL),)
    found = error.faults(operator=_is_operator())
    # A manager of a later version may know codes that this process does not.
    return tuple(fault if fault.code in CODES else replace(fault, code=type(error).code) for fault in found)


def _item(fault: Fault, status: int) -> Json:
    code = PREFIX + fault.code
    return {
        "status": status,
        "code": code,
        "title": CODES[fault.code].title,
        "detail": fault.detail,
        "request_id": g.request_id,
        **({} if fault.at is None else {fault.at.kind: fault.at.name}),
        **({} if fault.data is None else {"data": fault.data}),
        "links": [{"rel": "help", "href": link(f"/openapi.json#/x-error-codes/{code}")}],
    }


def _is_operator() -> bool:
    caller = g.get("caller")
    return caller is not None and services().policy.allows("admin", caller)


LOG = logging.getLogger(__name__)

_BUG = "INTERNAL_SERVER_ERROR"
"""The ``error_name`` of an internal error, whether it occurred in the API or in the manager."""


def speaks_v2() -> bool:
    """Return whether the path of the request belongs to version 2."""
    return request.path == "/v2" or request.path.startswith("/v2/")


def application_error(error: BlazarError) -> Response:
    """Render an error of the application as a list of faults or in shape A."""
    access.note_of(request.environ).error = error.code
    if error.status >= 500:
        # Why others do not answer is in the log once a minute, and in each answer.
        level = logging.ERROR if type(error) is BlazarError else logging.DEBUG
        LOG.log(level, "Response %d to request %s: %s", error.status, _request_ids(), error.message)
    if wants_list():
        return list_faults(faults_of(error))
    response = _shape_a(_status(error), error.message)
    wait = error.retry_after
    if wait is None and error.status == 503 and request.method in ("GET", "HEAD", "OPTIONS"):
        wait = RETRY_SECONDS
    if wait is not None:
        response.headers["Retry-After"] = str(wait)
    return response


def _status(error: BlazarError) -> int:
    """Return the status of an error at 1.0 and in version 2: what an operator wants to be final is a 400.

    That is a lease for which there is not enough, or that names what the cloud does not have. Programs for the
    existing Blazar send a request again at any status but 400 and 500.
    """
    books = request.method == "POST" and request.path.removesuffix(".json") in ("/v1/leases", "/v2/leases")
    is_final = isinstance(error, NotEnoughResources) or (books and error.status in (404, 409))
    return 400 if services().final_refusals and is_final else error.status


def unexpected_error(error: Exception) -> Response:
    """Render an internal error; its traceback is logged with the request's id."""
    access.note_of(request.environ).error = "internal_error"
    LOG.exception("Request %s failed with an unexpected exception", _request_ids(), exc_info=error)
    if wants_list():
        return list_faults([Fault("internal_error", INTERNAL)])
    return _shape_a(500, "Internal Server Error")


def version_error(error: BadFrame) -> Response:
    """Render an error of the version header in shape B and as a list of faults: nobody knows which one is read."""
    access.note_of(request.environ).error = error.code
    listed = list_faults([Fault(error.code, error.message, error.at)], more=error.more)
    response = jsonify({"error": error.status, "error_message": error.message, **(listed.get_json() or {})})
    response.status_code = error.status
    return response


def frame_error(error: BadFrame | HTTPException) -> Response:
    """Render a list of faults, shape B, or the shape that version 2 uses instead."""
    access.note_of(request.environ).error = _code(error)
    if wants_list():
        return _list_error(error)
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


def _list_error(error: BadFrame | HTTPException) -> Response:
    """Render an error of the framework as a list of faults."""
    if isinstance(error, BadFrame):
        return list_faults([Fault(error.code, error.message, error.at)])
    response = list_faults([Fault(_code(error), _text(error))])
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _code(error: BadFrame | HTTPException) -> str:
    return error.code if isinstance(error, BadFrame) else _CODES.get(error.code or 500, "invalid_value")


def refuse_nobody() -> Response:
    """Render a 401 in shape C."""
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
        return f"The body is too large; it must be smaller than {current_app.config['MAX_CONTENT_LENGTH']} bytes."
    return _TEXTS.get(type(error)) or error.description or error.name


_CODES = {404: "uri_not_found", 405: "method_not_allowed", 413: "body_too_large", 500: "internal_error"}
"""The codes of werkzeug's errors by status."""

_TEXTS: dict[type[HTTPException], str] = {
    BadRequest: "The HTTP request is malformed; check its Host header and its path.",
    ClientDisconnected: "The body is shorter than its Content-Length.",
    NotFound: "This URL does not exist; /openapi.json lists all paths (they have no trailing slash).",
    MethodNotAllowed: "This URL does not support this method; see the Allow header and /openapi.json.",
}
