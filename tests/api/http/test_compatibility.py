# SPDX-License-Identifier: Apache-2.0
"""What programs written for the existing Blazar send at API 1.0, and what they get."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.enforcement import Filter
from blazar.enforcement.limits import MaxUnitsFilter
from blazar.model.resources.resource import HOST
from tests.api.conftest import token
from tests.world import World

HOST_RESERVATION = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}
INSTANCE_RESERVATION = {
    "resource_type": "virtual:instance",
    "amount": 1,
    "vcpus": 1,
    "memory_mb": 512,
    "disk_gb": 1,
    "resource_properties": "",
}
LEASE = {
    "name": "x",
    "start_date": "2030-04-02 08:00",
    "end_date": "2030-04-02 20:00",
    "reservations": [HOST_RESERVATION],
}


def post(http, **changes):
    return http.post("/v1/leases", json={**LEASE, **changes}, headers=token())


def create(http, **changes):
    answer = post(http, **changes)
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


def times(lease):
    return {event["event_type"]: event["time"] for event in lease["events"]}


@pytest.mark.parametrize("key", ["event_date", "time"])
def test_an_event_may_give_its_time_as_event_date_or_time(http, key):
    lease = create(http, events=[{"event_type": "reminder", key: "2030-04-02 10:00"}])
    assert times(lease)["reminder"] == "2030-04-02T10:00:00.000000"
    assert times(create(http, name="y", events=[{"event_type": "mine", key: None}]))["mine"] is None


def test_an_event_with_two_different_times_is_refused(http):
    twice = {"event_type": "reminder", "event_date": "2030-04-02 10:00", "time": "2030-04-02 11:00"}
    answer = post(http, events=[twice])
    assert answer.status_code == 400
    assert "event_date and time" in answer.json["error_message"]
    assert create(http, events=[{**twice, "time": "2030-04-02 10:00"}])
    assert post(http, events=[{"event_type": "x", "time": "soon"}]).status_code == 400


def test_an_empty_before_end_date_means_none(http):
    lease = create(http, before_end_date="")
    assert times(lease)["before_end_lease"] == "2030-04-02T19:00:00.000000"
    changed = http.put(f"/v1/leases/{lease['id']}", json={"before_end_date": "", "name": "y"}, headers=token())
    assert (changed.status_code, changed.json["lease"]["name"]) == (200, "y")
    assert times(changed.json["lease"]) == times(lease)


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *((word, True) for word in ("yes", "on", "1", "t", "y", "TRUE", " True ", 1)),
        *((word, False) for word in ("no", "off", "0", "f", "n", "False", 0)),
        *((word, None) for word in ("none", "None", "", None)),
    ],
)
def test_an_affinity_may_be_given_in_all_usual_words(http, said, meant):
    lease = create(http, reservations=[{**INSTANCE_RESERVATION, "affinity": said}])
    assert lease["reservations"][0]["affinity"] is meant


@pytest.mark.parametrize("said", ["perhaps", 2, 1.0, [], {}, "11"])
def test_other_words_for_an_affinity_are_refused(http, said):
    answer = post(http, reservations=[{**INSTANCE_RESERVATION, "affinity": said}])
    assert answer.status_code == 400
    assert "affinity" in answer.json["error_message"]


@pytest.mark.parametrize("cleaning", [0, 60])
def test_a_lease_may_end_in_the_year_9999(http_of, a_world, cleaning):
    world = a_world(hosts=1, cleaning_time=timedelta(minutes=cleaning))
    http = http_of(world)
    lease = create(http, start_date="now", end_date="9999-12-31 23:59")
    assert lease["end_date"] == "9999-12-31T23:59:00.000000"
    world.run()
    assert http.get(f"/v1/leases/{lease['id']}", headers=token()).json["lease"]["status"] == "ACTIVE"
    # Its host is taken for all time, and it can be prolonged no more; but shortened, and deleted.
    assert post(http, start_date="9000-01-01 00:00", end_date="9999-12-31 23:59").status_code == 409
    path = f"/v1/leases/{lease['id']}"
    assert http.put(path, json={"end_date": "9999-12-31 23:58"}, headers=token()).status_code == 200
    assert http.put(path, json={"end_date": "9999-12-31 23:59"}, headers=token()).status_code == 200
    assert http.delete(path, headers=token()).status_code == 204


@pytest.mark.parametrize(
    ("sent", "kept"), [(True, "1"), (False, "0"), ("True", "True"), (5, "5"), (1.5, "1.5"), ("", "")]
)
def test_a_capability_is_stored_as_the_existing_blazar_stores_it(http, world, sent, kept):
    world.manager.resources.unregister(HOST, "3")
    host = http.post("/v1/os-hosts", json={"name": "node-3", "gpu": sent}).json["host"]
    assert host["gpu"] == kept
    assert http.put("/v1/os-hosts/3", json={"ssd": sent}).json["host"]["ssd"] == kept


def filtered(http_of, a_world, *filters: Filter) -> tuple[World, object]:
    world = a_world(filters=filters)
    return world, http_of(world)


def test_a_filter_that_refuses_gives_403_on_create_and_400_on_update(http_of, a_world):
    _, http = filtered(http_of, a_world, MaxUnitsFilter(1))
    refused = post(http, reservations=[{**HOST_RESERVATION, "min": 2, "max": 2}])
    assert (refused.status_code, refused.json["error_code"], refused.json["error_name"]) == (403, 403, 403)
    assert "max_units" in refused.json["error_message"]
    lease = create(http)
    item = {"id": lease["reservations"][0]["id"], "min": 2, "max": 2}
    changed = http.put(f"/v1/leases/{lease['id']}", json={"reservations": [item]}, headers=token())
    assert changed.status_code == 400
