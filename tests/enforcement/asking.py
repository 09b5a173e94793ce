# SPDX-License-Identifier: Apache-2.0
"""A world that asks an enforcement service, and users of its API."""

from __future__ import annotations

from blazar.enforcement import Occasion
from blazar.enforcement.external import CHECK_CREATE, CHECK_UPDATE, ExternalServiceFilter, Patience, StaticToken
from tests.api.conftest import app_of
from tests.enforcement.conftest import TOKEN
from tests.world import World

ALICE = {"X-Auth-Token": "alice:physics"}
ADMIN = {"X-Auth-Token": "root:operators:admin"}


def asks_all(service, *, seconds: float, allow_on_error: bool = False, **requests) -> ExternalServiceFilter:
    """Return a filter that asks and tells a service everything, and waits so long for each of two answers."""
    names = (CHECK_CREATE, CHECK_UPDATE, *map(str, Occasion))
    return ExternalServiceFilter(
        {name: service.url + name for name in names},
        credential=StaticToken("X-Auth-Token", TOKEN),
        patience=Patience(seconds, 2, allow_on_error),
        **requests,
    )


class Users:
    """Users of the API of a world; alice unless another token is given."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.http = app_of(world.manager).test_client()

    def create(self, *, hosts: int = 1, start: str = "now", end: str = "2030-04-01 20:00", headers=ALICE):
        room = {
            "resource_type": "physical:host",
            "min": hosts,
            "max": hosts,
            "hypervisor_properties": "",
            "resource_properties": "",
        }
        body = {"name": "lab", "start_date": start, "end_date": end, "reservations": [room]}
        return self.http.post("/v1/leases", json=body, headers=headers)

    def change(self, lease, headers=ALICE, **changes):
        return self.http.put(f"/v1/leases/{lease['id']}", json=changes, headers=headers)
