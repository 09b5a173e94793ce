# SPDX-License-Identifier: Apache-2.0
"""From 1.1 on the answer of a GET can be sent back by a PUT: what is as it was shown changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.api.http.test_sending_back import OF_TYPE, WHO, world  # noqa: F401 (a fixture that the tests take)
from tests.world import NOON

VERSIONS = ("1.1",)


class Caller:
    """Somebody who speaks a version."""

    def __init__(self, of_world, version: str, who: dict[str, str]) -> None:
        self.http = client_of(app_of(of_world.manager))
        self.headers = {**who, "OpenStack-API-Version": f"reservation {version}"}

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        return self.http.open(path, method=method, json=body, headers={**self.headers, **(headers or {})})


def lease_of(of_world, resource_type: str, start: str) -> str:
    asked = {
        "name": "x",
        "start_date": start,
        "end_date": "2030-04-01T15:00:00Z",
        "extend_if_free": {"until": "+P1D"},
        "reservations": [{"resource_type": resource_type, **OF_TYPE[resource_type]}],
    }
    made = Caller(of_world, "1.1", token()).ask("POST", "/v1/leases", asked)
    assert made.status_code == 201, made.text
    of_world.run_to(NOON)
    of_world.run_to(NOON.replace(minute=1))
    return f"/v1/leases/{made.json['lease']['id']}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("start", ["2030-04-01T13:00:00Z", "2030-04-01T12:00:00Z"], ids=["pending", "active"])
@pytest.mark.parametrize("resource_type", OF_TYPE)
def test_the_answer_of_a_lease_changes_nothing(world, resource_type, start):  # noqa: F811
    path = lease_of(world, resource_type, start)
    told = len(world.notifier.told)
    for version in VERSIONS:
        for who in WHO.values():
            caller = Caller(world, version, who)
            before = caller.ask("GET", path)
            history = Caller(world, "1.1", who).ask("GET", f"{path}/history").json
            after = caller.ask("PUT", path, before.json["lease"])
            assert after.status_code == 200, (version, after.text)
            assert (after.json, after.headers["ETag"]) == (before.json, before.headers["ETag"])
            assert Caller(world, "1.1", who).ask("GET", f"{path}/history").json == history
    assert len(world.notifier.told) == told


@pytest.mark.parametrize("version", VERSIONS)
def test_a_warning_at_the_start_is_as_it_was_shown_and_follows_the_dates(world, version):  # noqa: F811
    caller = Caller(world, version, token())
    short = {"start_date": "2030-04-01T13:00:00Z", "end_date": "2030-04-01T13:30:00Z"}
    hosts = {"resource_type": "physical:host", **OF_TYPE["physical:host"]}
    made = caller.ask("POST", "/v1/leases", {"name": "short", **short, "reservations": [hosts]}).json["lease"]
    assert made["before_end_date"] == made["start_date"]
    path = f"/v1/leases/{made['id']}"
    before = caller.ask("GET", path)
    after = caller.ask("PUT", path, before.json["lease"])
    assert (after.status_code, after.json) == (200, before.json), after.text
    longer = caller.ask("PUT", path, {**before.json["lease"], "end_date": "2030-04-01T18:00:00Z"})
    assert longer.json["lease"]["before_end_date"] == "2030-04-01T17:00:00Z"
    # It cannot be asked for where it was not shown.
    refused = caller.ask("PUT", path, {"before_end_date": "2030-04-01T13:00:00Z"})
    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (400, "/before_end_date")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_of_the_answer_is_made_and_nothing_else(world, version):  # noqa: F811
    path = lease_of(world, "physical:host", "2030-04-01T13:00:00Z")
    caller = Caller(world, version, token())
    before = caller.ask("GET", path).json["lease"]
    after = caller.ask("PUT", path, {**before, "name": "renamed", "end_date": "2030-04-01T18:00:00Z"}).json["lease"]
    assert (after["name"], after["end_date"], after["before_end_date"]) == (
        "renamed",
        "2030-04-01T18:00:00Z",
        "2030-04-01T17:00:00Z",
    )
    assert after["start_date"] == before["start_date"]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_only_the_service_sets_is_named_all_at_once(world, version):  # noqa: F811
    path = lease_of(world, "physical:host", "2030-04-01T13:00:00Z")
    caller = Caller(world, version, token())
    before = caller.ask("GET", path).json["lease"]
    changed = {"id": "other", "status": "ACTIVE", "project_id": "theirs", "created_at": "2030-01-01T00:00:00Z"}
    refused = caller.ask("PUT", path, {**before, **changed})
    assert refused.status_code == 400
    faults = {each["pointer"]: each["code"] for each in refused.json["errors"]}
    assert faults == {f"/{key}": "reservation.read_only_field" for key in changed}
    assert "is set by the service" in refused.json["errors"][0]["detail"]


@pytest.mark.parametrize("version", VERSIONS)
def test_faults_of_the_lease_and_of_each_reservation_are_named_together(world, version):  # noqa: F811
    path = lease_of(world, "physical:host", "2030-04-01T13:00:00Z")
    caller = Caller(world, version, token())
    before = caller.ask("GET", path).json["lease"]
    (reservation,) = before["reservations"]
    changed = {"id": "other", "foo": 1, "reservations": [{**reservation, "status": "active", "bar": 2, "min": "many"}]}
    refused = caller.ask("PUT", path, {**before, **changed})
    assert refused.status_code == 400
    assert {each["pointer"]: each["code"] for each in refused.json["errors"]} == {
        "/id": "reservation.read_only_field",
        "/foo": "reservation.unknown_field",
        "/reservations/0/status": "reservation.read_only_field",
        "/reservations/0/bar": "reservation.unknown_field",
        "/reservations/0/min": "reservation.invalid_value",
    }


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "written",
    [
        lambda date: date.replace("Z", ".000Z"),
        lambda date: date.replace("Z", "+00:00"),
        lambda date: date.replace("Z", ".123456+0000"),
        lambda date: date.replace("T", " ").removesuffix("Z"),
    ],
    ids=["JavaScript", "Python", "offset", "blank"],
)
def test_dates_that_only_the_service_sets_may_be_written_in_another_way(world, written):  # noqa: F811
    path = lease_of(world, "physical:host", "2030-04-01T12:00:00Z")
    caller = Caller(world, "1.1", token())
    before = caller.ask("GET", path)
    lease = before.json["lease"]
    events = [{**each, "time": written(each["time"])} for each in lease["events"]]
    after = caller.ask("PUT", path, {**lease, "created_at": written(lease["created_at"]), "events": events})
    assert (after.status_code, after.json, after.headers["ETag"]) == (200, before.json, before.headers["ETag"])


def test_a_name_that_looks_like_the_same_date_is_another_name(world):  # noqa: F811
    caller = Caller(world, "1.1", token())
    path = lease_of(world, "physical:host", "2030-04-01T13:00:00Z")
    for name in ("2030-04-01T13:00:00Z", "2030-04-01T13:00:00+00:00"):
        lease = caller.ask("GET", path).json["lease"]
        assert caller.ask("PUT", path, {**lease, "name": name}).json["lease"]["name"] == name


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_outdated_is_refused_by_its_tag(world, version):  # noqa: F811
    caller = Caller(world, version, token())
    path = lease_of(world, "physical:host", "2030-04-01T13:00:00Z")
    check_outdated(caller, path, "lease")


def test_an_answer_of_a_series_that_is_outdated_is_refused_by_its_tag(world):  # noqa: F811
    caller = Caller(world, "1.1", token())
    check_outdated(caller, f"/v1/series/{caller.ask('POST', '/v1/series', SERIES).json['series']['id']}", "series")


def check_outdated(caller: Caller, path: str, key: str) -> None:
    """Check that the answer of a GET cannot be sent back with its tag once the object has changed."""
    outdated = caller.ask("GET", path)
    assert caller.ask("PUT", path, {"name": "theirs"}).status_code == 200
    present = caller.ask("GET", path)
    for body in (outdated.json[key], {**outdated.json[key], "name": "mine"}, present.json[key]):
        refused = caller.ask("PUT", path, body, {"If-Match": outdated.headers["ETag"]})
        assert refused.status_code == 412, refused.text
        (fault,) = refused.json["errors"]
        assert (fault["header"], fault["data"]["revision"]) == ("If-Match", present.json[key]["revision"])
    same = caller.ask("PUT", path, present.json[key], {"If-Match": present.headers["ETag"]})
    assert (same.status_code, same.json) == (200, present.json)


@pytest.mark.sample(3)
@pytest.mark.parametrize("body", [{"name": "x"}, {"end_date": "2030-04-01T15:00:00Z"}, {"before_end_date": None}, {}])
def test_the_same_value_alone_is_no_change_either(world, body):  # noqa: F811
    path = lease_of(world, "physical:host", "2030-04-01T13:00:00Z")
    caller = Caller(world, "1.1", token())
    before = caller.ask("GET", path)
    after = caller.ask("PUT", path, body)
    assert (after.status_code, after.json, after.headers["ETag"]) == (200, before.json, before.headers["ETag"])


SERIES = {
    "name": "s",
    "rule": "FREQ=DAILY;COUNT=3",
    "start": "2030-04-02T08:00",
    "duration": "PT4H",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "body",
    [
        *({key: value} for key, value in SERIES.items()),
        {"fit": "all", "time_zone": "UTC", "exdates": [], "rdates": [], "before_end_date": None},
    ],
    ids=lambda body: next(iter(body)),
)
def test_the_same_value_alone_is_no_change_of_a_series_either(world, body):  # noqa: F811
    caller = Caller(world, "1.1", token())
    path = f"/v1/series/{caller.ask('POST', '/v1/series', SERIES).json['series']['id']}"
    before, told = caller.ask("GET", path), len(world.notifier.told)
    after = caller.ask("PUT", path, body)
    assert (after.status_code, after.json, after.headers["ETag"]) == (200, before.json, before.headers["ETag"])
    assert len(world.notifier.told) == told


def test_the_answer_of_a_series_changes_nothing(world):  # noqa: F811
    caller = Caller(world, "1.1", token())
    path = f"/v1/series/{caller.ask('POST', '/v1/series', SERIES).json['series']['id']}"
    before = caller.ask("GET", path)
    after = caller.ask("PUT", path, before.json["series"])
    assert (after.status_code, after.json, after.headers["ETag"]) == (200, before.json, before.headers["ETag"])
