# SPDX-License-Identifier: Apache-2.0
"""The format of leases in each version of the API, as values; the handlers are shared by all versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from blazar.api.dates import date, instant, moment
from blazar.api.leases import render, schemas, v2
from blazar.api.routes import Body
from blazar.api.shapes import RESERVATION_ID, Json
from blazar.model.lease import Lease
from blazar.model.requests import Moment
from blazar.resources.actions import ALIAS


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFormat:
    """The format of leases in a range of versions.

    ``moment`` parses a start or an end, ``date`` any other date; both take the string and the name of its field.
    ``one`` and ``many`` are the envelope keys of a lease and of a list of leases; None: no envelope.
    """

    cache: str
    """The name of the cache of leases that ``shown`` has rendered; formats with the same rendering share one."""
    component: str
    """The name of the component that describes a rendered lease."""
    created: Body
    changed: Body
    moment: Callable[[str, str], Moment]
    date: Callable[[str, str], datetime]
    shown: Callable[[Lease], Json]
    one: str | None = None
    many: str | None = None


_NEW_LEASE: Json = {
    "name": "nightly-ci",
    "start_date": "2030-04-01 08:00",
    "end_date": "2030-04-01 20:00",
    "before_end_date": None,
    "events": [],
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "max": 2,
            "hypervisor_properties": '[">=", "$vcpus", "16"]',
            "resource_properties": "",
        }
    ],
}
_NEW_LEASE_OF_V2: Json = {
    **_NEW_LEASE,
    "before_end_date": "2030-04-01 19:30",
    "reservations": [{**item, ALIAS: "snapshot"} for item in _NEW_LEASE["reservations"]],
}

V1_0 = LeaseFormat(
    cache="v1",
    component="Lease",
    created=Body("LeaseCreate", schemas.LEASE_CREATE, (_NEW_LEASE,)),
    changed=Body(
        "LeaseUpdate",
        schemas.LEASE_UPDATE,
        (
            {"end_date": "2030-04-01 22:00"},
            {"name": "nightly", "reservations": [{"id": RESERVATION_ID, "max": 3}]},
        ),
    ),
    moment=moment,
    date=date,
    shown=render.lease,
    one="lease",
    many="leases",
)
V2 = LeaseFormat(
    cache="v2",
    component="LeaseV2",
    created=Body("LeaseCreateV2", v2.LEASE_CREATE, (_NEW_LEASE_OF_V2,)),
    changed=Body(
        "LeaseUpdateV2",
        v2.LEASE_UPDATE,
        (
            {"end_date": "2030-04-01T22:00:00Z"},
            {"name": "nightly", "reservations": [{"id": RESERVATION_ID, ALIAS: "migration"}]},
        ),
    ),
    moment=instant,
    date=instant,
    shown=v2.lease,
)
ALL = (V1_0, V2)
