# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: leases that keep their hosts until they start."""

from __future__ import annotations

import pytest

from tests.api.leases.test_waiting import ask, fault

HOST = {"resource_type": "physical:host", "min": 1}
LEASE = {"name": "ours", "start_date": "2030-04-03T12:00:00Z", "end_date": "+10h", "reservations": [HOST]}
DAILY = {"name": "daily", "rule": "FREQ=DAILY;COUNT=3", "start": "2030-04-03T12:00", "duration": "PT4H"}


def made(http, **more):
    answer = ask(http, body={**LEASE, **more})
    assert answer.status_code == 201, answer.text
    return answer.json["lease"]


def changed(http, lease, **change):
    answer = ask(http, "PUT", f"/v1/leases/{lease['id']}", change)
    assert answer.status_code == 200, answer.text
    return answer.json["lease"]


def test_a_lease_keeps_its_hosts_if_that_is_asked_for(http):
    assert made(http)["keep_hosts"] is False
    lease = made(http, keep_hosts=True)
    assert lease["keep_hosts"] is True
    assert ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]["keep_hosts"] is True
    (listed,) = ask(http, "GET", "/v1/leases?fields=keep_hosts&status=PENDING&limit=1").json["leases"]
    assert "keep_hosts" in listed


def test_a_dry_run_shows_it(http):
    planned = ask(http, path="/v1/leases?dry_run=true", body={**LEASE, "keep_hosts": True})
    assert planned.json["lease"]["keep_hosts"] is True


@pytest.mark.parametrize("value", ["yes", None, 1], ids=str)
@pytest.mark.parametrize("way", ["lease", "change", "series"])
def test_anything_but_true_or_false_is_refused(http, value, way):
    if way == "series":
        answer = ask(http, path="/v1/series", body={**DAILY, "reservations": [HOST], "keep_hosts": value})
    elif way == "lease":
        answer = ask(http, body={**LEASE, "keep_hosts": value})
    else:
        answer = ask(http, "PUT", f"/v1/leases/{made(http)['id']}", {"keep_hosts": value})
    assert fault(answer) == (400, "invalid_value", "/keep_hosts")
    assert "true or false" in answer.json["errors"][0]["detail"]


def test_it_is_switched_before_the_start_and_told_in_the_history(http):
    lease = made(http)
    kept = changed(http, lease, keep_hosts=True)
    assert (kept["keep_hosts"], kept["revision"] > lease["revision"]) == (True, True)
    again = changed(http, kept, keep_hosts=True)
    assert again["revision"] == kept["revision"]
    # Beside dates, too.
    later = changed(http, kept, keep_hosts=False, end_date="2030-04-04T12:00:00Z")
    assert (later["keep_hosts"], later["end_date"]) == (False, "2030-04-04T12:00:00Z")
    entries = ask(http, "GET", f"/v1/leases/{lease['id']}/history").json["history"]
    told = [(c["before"], c["after"]) for e in entries for c in e["changes"] if c["field"] == "keep_hosts"]
    assert sorted(told) == [("false", "true"), ("true", "false")]


def test_a_lease_that_has_begun_has_its_hosts(http, world):
    lease = made(http, keep_hosts=True, start_date="now")
    world.run()
    answer = ask(http, "PUT", f"/v1/leases/{lease['id']}", {"keep_hosts": False})
    assert fault(answer) == (409, "invalid_state", "/keep_hosts")
    assert "has begun" in answer.json["errors"][0]["detail"]
    # What is as it was is no change.
    assert changed(http, lease, keep_hosts=True, name="mine")["name"] == "mine"


def test_the_version_of_the_existing_service_does_not_know_it(http):
    body = {**LEASE, "start_date": "2030-04-03 12:00", "end_date": "2030-04-03 14:00", "keep_hosts": True}
    assert ask(http, body=body, version="1.0").status_code == 400
    lease = made(http, keep_hosts=True)
    assert "keep_hosts" not in ask(http, "GET", f"/v1/leases/{lease['id']}", version="1.0").json["lease"]


def leases_of(http, series):
    ids = [one["lease_id"] for one in series["occurrences"] if one["lease_id"]]
    return [ask(http, "GET", f"/v1/leases/{id_}").json["lease"] for id_ in ids]


def test_a_series_says_it_for_all_its_leases(http):
    series = ask(http, path="/v1/series", body={**DAILY, "reservations": [HOST], "keep_hosts": True}).json["series"]
    assert series["keep_hosts"] is True
    assert [one["keep_hosts"] for one in leases_of(http, series)] == [True] * 3
    path = f"/v1/series/{series['id']}"
    after = ask(http, "PUT", path, {"keep_hosts": False}).json["series"]
    assert after["keep_hosts"] is False
    assert [one["keep_hosts"] for one in leases_of(http, after)] == [False] * 3
    # Another change of the series leaves what a lease has itself.
    one = changed(http, leases_of(http, after)[1], keep_hosts=True)
    renamed = ask(http, "PUT", path, {"name": "other", "changed": True}).json["series"]
    found = {each["id"]: each["keep_hosts"] for each in leases_of(http, renamed)}
    assert [id_ for id_, keeps in found.items() if keeps] == [one["id"]]


def test_the_parts_of_a_lease_have_it_and_so_has_what_is_merged(http):
    lease = made(http, keep_hosts=True, reservations=[{**HOST, "min": 2}])
    part = {"reservations": [{"id": lease["reservations"][0]["id"], "count": 1}]}
    parts = ask(http, path=f"/v1/leases/{lease['id']}/split", body=part).json["leases"]
    assert [one["keep_hosts"] for one in parts] == [True, True]
    changed(http, parts[1], keep_hosts=False)
    merged = ask(http, path=f"/v1/leases/{lease['id']}/merge", body={"with": parts[1]["id"]})
    assert merged.json["leases"][0]["keep_hosts"] is True, merged.text


def test_who_gets_a_lease_gets_its_lock(http):
    lease = made(http, keep_hosts=True)
    offered = ask(http, path=f"/v1/leases/{lease['id']}/transfer", body={"project_id": "chemistry"})
    assert offered.status_code in (200, 201), offered.text
    taken = ask(http, path=f"/v1/transfers/{lease['id']}/accept", body={}, **{"X-Auth-Token": "lavoisier:chemistry"})
    assert taken.json["lease"]["keep_hosts"] is True, taken.text
