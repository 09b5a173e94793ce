# SPDX-License-Identifier: Apache-2.0
"""Formats of version 1: every response in an envelope, capabilities beside a host's own keys."""

from __future__ import annotations

from blazar.api import render, schemas
from blazar.api.context import identifier
from blazar.api.dates import date, moment
from blazar.api.forms import HostForm, Json, LeaseForm
from blazar.api.host_requests import capabilities, capability_changes, flag, projects
from blazar.model.requests import HostChange, HostRequest
from blazar.model.resource import ResourceKind, unknown

VERSION = "v1"


def host_id(text: str) -> str:
    """Return the host id from a path; NotFound if it cannot be an id."""
    key = identifier(text)
    if key == "-":
        raise unknown(ResourceKind.HOST, text)
    return key


def _request(body: Json) -> HostRequest:
    given = {key: value for key, value in body.items() if key not in schemas.HOST_CREATE["properties"]}
    return HostRequest(
        body.get("name"),
        str(int(body["id"])) if "id" in body else None,
        capabilities(given),
        disabled=flag(body.get("disabled", False)),
        open_to=projects(body.get("authorized_projects")),
    )


def _change(body: Json) -> HostChange:
    given = {key: value for key, value in body.items() if key not in schemas.HOST_UPDATE["properties"]}
    return HostChange(
        capability_changes(given),
        disabled=flag(body["disabled"]) if "disabled" in body else None,
        open_to=projects(body.get("authorized_projects")),
        sets_projects="authorized_projects" in body,
    )


LEASES = LeaseForm(
    version=VERSION,
    created=schemas.LEASE_CREATE,
    changed=schemas.LEASE_UPDATE,
    moment=moment,
    date=date,
    shown=render.lease,
    one="lease",
    many="leases",
)
HOSTS = HostForm(
    version=VERSION,
    created=schemas.HOST_CREATE,
    changed=schemas.HOST_UPDATE,
    host_id=host_id,
    request=_request,
    change=_change,
    shown=render.host,
    one="host",
    many="hosts",
)
