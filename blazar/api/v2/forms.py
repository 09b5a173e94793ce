# SPDX-License-Identifier: Apache-2.0
"""Formats of version 2, for the shared handlers."""

from __future__ import annotations

import re

from blazar.api.dates import instant
from blazar.api.forms import HostForm, Json, LeaseForm
from blazar.api.host_requests import capabilities, capability_changes
from blazar.api.v2 import render, schemas
from blazar.model.errors import InvalidInput
from blazar.model.requests import HostChange, HostRequest

VERSION = "v2"
CONTROLLERS = ("oshosts", "leases")
"""Names in option ``api_v2_controllers`` for ``/v2/os-hosts`` and ``/v2/leases``."""

_NUMBER = re.compile(r"[0-9]{1,64}")


def host_id(text: str) -> str:
    """Return the host id from a path; InvalidInput if it is not a number."""
    text = text.removesuffix(".json")
    if not _NUMBER.fullmatch(text):
        raise InvalidInput(
            f"the host id {text[:80]!r} is not a number; give the number of its hypervisor, as in /v2/os-hosts/12"
        )
    return str(int(text))


def _request(body: Json) -> HostRequest:
    names = {body[key] for key in ("name", "hypervisor_hostname") if key in body}
    if len(names) > 1:
        raise InvalidInput("name and hypervisor_hostname are aliases and differ; give one of them")
    given_id = str(int(body["id"])) if "id" in body else None
    return HostRequest(next(iter(names), None), given_id, capabilities(body.get("extra_capas", {})))


def _change(body: Json) -> HostChange:
    return HostChange(capability_changes(body["extra_capas"]))


LEASES = LeaseForm(
    version=VERSION,
    created=schemas.LEASE_CREATE,
    changed=schemas.LEASE_UPDATE,
    moment=instant,
    date=instant,
    shown=render.lease,
    one=None,
    many=None,
)
HOSTS = HostForm(
    version=VERSION,
    created=schemas.HOST_CREATE,
    changed=schemas.HOST_UPDATE,
    host_id=host_id,
    request=_request,
    change=_change,
    shown=render.host,
    one=None,
    many=None,
)
