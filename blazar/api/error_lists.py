# SPDX-License-Identifier: Apache-2.0
"""Render errors from microversion 1.1 on: a list of faults, each with a code of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from flask import Response, g, jsonify

from blazar.api import faults, microversion
from blazar.api.context import services
from blazar.api.error_codes import CODES, PREFIX
from blazar.api.info import KINDS_SINCE
from blazar.api.leases.earlier import known_states
from blazar.api.shapes import Json
from blazar.api.urls import link
from blazar.model.errors import BlazarError, Fault

INTERNAL = "Internal error; the log has the reason under the request id."


def wanted() -> bool:
    """Return whether the request asks for a version that has lists of faults."""
    return microversion.has_conventions(g.asked)


def response(found: Iterable[Fault], *, more: Mapping[str, str] | None = None) -> Response:
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
    data = fault.data if g.asked is not None and g.asked >= KINDS_SINCE else known_states(fault.data)
    places = {"pointer": fault.pointer, "parameter": fault.parameter, "header": fault.header, "data": data}
    return {
        "status": status,
        "code": code,
        "title": CODES[fault.code].title,
        "detail": fault.detail,
        "request_id": g.request_id,
        **{name: value for name, value in places.items() if value is not None},
        "links": [{"rel": "help", "href": link(f"/openapi.json#/x-error-codes/{code}")}],
    }


def _is_operator() -> bool:
    caller = g.get("caller")
    return caller is not None and services().policy.allows("admin", caller)
