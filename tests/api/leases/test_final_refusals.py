# SPDX-License-Identifier: Apache-2.0
"""What a lease that cannot be had is, for programs that send a request again after any status but 400 and 500."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.api.http.context import EXTENSION
from tests.api.conftest import app_of, client_of, token

CURIE = token("curie", "physics")
HOSTS = {"resource_type": "physical:host", "min": 7, "max": 7, "hypervisor_properties": "", "resource_properties": ""}
FLAVOR = {"resource_type": "flavor:instance", "flavor_id": "no-such", "amount": 1, "affinity": "None"}


def ask(world, reservation, *, final: bool, url: str = "/v1/leases", version: str = "1.0"):
    app = app_of(world.manager)
    app.extensions = {EXTENSION: replace(app.extensions[EXTENSION], final_refusals=final)}
    body = {
        "name": "x",
        "start_date": "2030-04-02 08:00",
        "end_date": "2030-04-02 09:00",
        "reservations": [reservation],
    }
    headers = {**CURIE, "OpenStack-API-Version": f"reservation {version}"}
    return client_of(app).post(url, json=body, headers=headers)


@pytest.mark.parametrize("url", ["/v1/leases", "/v1/leases.json", "/v2/leases"])
@pytest.mark.parametrize(("reservation", "status"), [(HOSTS, 409), (FLAVOR, 404)], ids=["too few", "unknown"])
def test_a_lease_that_cannot_be_had_is_final_if_an_operator_wants_it(world, url, reservation, status):
    today = ask(world, reservation, final=False, url=url)
    final = ask(world, reservation, final=True, url=url)
    assert (today.status_code, final.status_code) == (status, 400)
    assert final.json["error_code"] == 400
    assert final.json["error_message"] == today.json["error_message"]


def test_a_change_that_cannot_be_had_is_final_as_well_and_a_lease_that_is_not_there_is_not_there(world):
    lease = world.lease()
    app = app_of(world.manager)
    app.extensions = {EXTENSION: replace(app.extensions[EXTENSION], final_refusals=True)}
    http = client_of(app)
    more = {"reservations": [{"id": lease.reservations[0].id, "min": 9, "max": 9}]}
    assert http.put(f"/v1/leases/{lease.id}", json=more, headers=CURIE).status_code == 400
    assert http.put("/v1/leases/none", json={"name": "x"}, headers=CURIE).status_code == 404


def test_newer_versions_answer_as_ever(world):
    reservation = {"resource_type": "physical:host", "min": 7}
    assert ask(world, reservation, final=True, version="1.1").status_code == 409
