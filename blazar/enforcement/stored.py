# SPDX-License-Identifier: Apache-2.0
"""Filter notifications as the outbox stores them.

Messages of older versions wait in databases, and older managers read messages of this one: so a test pins the stored
form.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from blazar.enforcement.values import FilterNotification
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Content
from blazar.model.leases.stored import cloud_ids_json, cloud_ids_of, gone_of, saved_state_json, saved_state_of


@cache
def _adapter() -> TypeAdapter[FilterNotification]:
    """Return what reads and writes notifications: making it takes long, and few clouds have filters to notify."""
    return TypeAdapter(FilterNotification)


def dump(notification: FilterNotification) -> str:
    """Return a notification as JSON."""
    content = _adapter().dump_python(notification, mode="json")
    _store(content["view"]["lease"], notification.view.lease)
    if notification.before is not None:
        _store(content["before"]["lease"], notification.before.lease)
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def parse(text: str) -> FilterNotification:
    """Return a stored notification; ValueError."""
    content = json.loads(text)
    try:
        for view in filter(None, (content["view"], content.get("before"))):
            _read(view["lease"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a notification about a lease") from error
    return _adapter().validate_python(content)


def _store(stored: dict[str, Any], lease: Lease) -> None:
    for part, reservation in zip(stored["reservations"], lease.reservations, strict=True):
        del part["unassigned"], part["failed"], part["gone"]
        part["parameters"] = dict(reservation.shown_parameters)
        part["cloud_ids"] = cloud_ids_json(reservation)
    for part, event in zip(stored["events"], lease.events, strict=True):
        part["saved_state"] = saved_state_json(event.saved_state)


def _read(stored: dict[str, Any]) -> None:
    for part in stored["reservations"]:
        part["parameters"] = Content(part["parameters"])
        kept = part["cloud_ids"]
        part["cloud_ids"], part["unassigned"], part["failed"] = cloud_ids_of(kept)
        part["gone"] = gone_of(kept)
    for part in stored["events"]:
        part["saved_state"] = saved_state_of(part.pop("saved_state"))
