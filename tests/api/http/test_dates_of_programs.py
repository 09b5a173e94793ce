# SPDX-License-Identifier: Apache-2.0
"""Dates as Python, JavaScript, Go and Java write them are read wherever a request from 1.1 on has a date."""

from __future__ import annotations

import copy

import pytest

from blazar.api.http import readers
from blazar.api.http.openapi import Served
from blazar.api.http.routes import Root
from blazar.api.parts import all_parts
from tests.api.conftest import app_of, client_of, token
from tests.conftest import new_sqlite
from tests.world import World

ADMIN = token("root", "physics", "admin")
LOCAL = ("2030-04-02T08:00:00.5", "2030-04-02T08:00:00.123456", "2030-04-02 08:00:00.123456789", "2030-04-02t08:00")
DATES = (
    *LOCAL,
    "2030-04-02T08:00:00.123456+00:00",
    "2030-04-02T08:00:00.000Z",
    "2030-04-02T08:00:00.123456789Z",
    "2030-04-02T08:00:00+0100",
    "2030-04-02T08:00:00.5+01",
    "2030-04-02t08:00:00z",
    f"2030-04-02T08:00:00.{'9' * 43}Z",
)
WRONG = "2030-04-02T08:00:00,5X"
NAMED = ("from", "to", "at", "until", "latest", "earliest", "start", "end")
"""Names of fields that are dates whatever their description says."""

_RESERVATIONS = [{"resource_type": "physical:host", "min": 1}]
BASES = {
    "/v1/availability": {"reservations": _RESERVATIONS, "duration": "PT1H"},
    "/v1/series/{series_id}": {"name": "z"},
    "/v1/subscriptions/{subscription_id}/replay": {},
    "/v1/availability start_date": {"reservations": _RESERVATIONS, "end_date": "2030-04-03T08:00Z"},
    "/v1/availability end_date": {"reservations": _RESERVATIONS, "start_date": "2030-04-01T13:00Z"},
}
BESIDE = {"latest": {"until": "+P2D"}, "at": {"text": "x"}}
"""What an object with such a date needs."""


def is_date(name, schema):
    words = schema.get("description", "")
    if "string" not in schema.get("type", ()):
        return False
    return name in NAMED or name.endswith("_date") or any(w in words for w in ("a date", "the date", "local time"))


def dates_in(schema, path=()):
    """Yield the paths of the dates in a schema of a body."""
    for name, inner in schema.get("properties", {}).items():
        each, here = inner, (*path, name)
        if "array" in each.get("type", ()) and isinstance(each.get("items"), dict):
            each, here = each["items"], (*here, 0)
        if is_date(name, each):
            yield here
        elif "object" in each.get("type", ()):
            yield from dates_in(each, here)


def rows():
    for row in Served(all_parts()).routes:
        if row.root is not Root.V2 and row.until is None:
            yield row


IN_BODIES = [
    pytest.param(row, path, id=f"{row.method} {row.url} {'.'.join(map(str, path))}")
    for row in rows()
    if row.body is not None
    for path in dates_in(row.body.schema)
    # A duration only, and times of day.
    if not (path[0] in ("before_end_date", "reminders") and "/series" in row.url) and path[0] != "hours"
]
IN_QUERIES = [
    pytest.param(row, each, id=f"{row.method} {row.url} {each.name}")
    for row in rows()
    for each in row.parameters
    if isinstance(each.reader, readers.Date | readers.DateOrDuration | readers.DayOrDate)
]


class Service:
    """A service with a lease, a series and a maintenance window."""

    def __init__(self, engine):
        world = World(engine)
        self._http = client_of(app_of(world.manager))
        series = {
            **{"name": "x", "rule": "FREQ=DAILY;COUNT=3", "start": "2030-04-02T08:00", "duration": "PT4H"},
            "reservations": _RESERVATIONS,
        }
        window = {"name": "x", "start_date": "2030-05-01T08:00Z", "end_date": "+PT1H", "hosts": ["1"]}
        lease = {"name": "y", "end_date": "+P1D", "reservations": _RESERVATIONS}
        told = {"url": "https://ci.example/x", "events": ["lease.*"]}
        agreed = {"impact_id": self.ask("POST", "/v1/maintenances?dry_run=true", window)["impact"]["id"]}
        self._ids = {
            **{"host_id": "1", "kind": "host", "resource_id": "1"},
            "lease_id": self.ask("POST", "/v1/leases", lease)["lease"]["id"],
            "subscription_id": self.ask("POST", "/v1/subscriptions", told)["subscription"]["id"],
            "series_id": self.ask("POST", "/v1/series", series)["series"]["id"],
            "maintenance_id": self.ask("POST", "/v1/maintenances", {**window, **agreed})["maintenance"]["id"],
        }

    def ask(self, method, url, body=None, query=None):
        headers = {**ADMIN, "OpenStack-API-Version": "reservation 1.1"}
        return self._http.open(url, method=method, json=body, query_string=query, headers=headers).json

    def ask_old(self, url, body):
        return self._http.post(url, json=body, headers=ADMIN).json

    def refusals(self, row, body=None, query=None):
        """Return where a request to a route is refused for what cannot be read."""
        query = {**(query or {}), **({"dry_run": "true"} if any(p.name == "dry_run" for p in row.parameters) else {})}
        answer = self.ask(row.method, row.url.format(**self._ids), body, query)
        found = (answer or {}).get("errors", ())
        return {each.get("pointer") or each.get("parameter") for each in found if "which is invalid" in each["detail"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    engine = new_sqlite(tmp_path_factory.mktemp("dates") / "blazar.sqlite")
    yield Service(engine)
    engine.dispose()


def body_with(row, path, text):
    """Return a body of a route with a text at a path."""
    url = row.url
    body = copy.deepcopy(BASES.get(f"{url} {path[0]}", BASES.get(url)))
    if body is None:
        body = {} if row.method in ("PUT", "PATCH") or path == ("at",) else copy.deepcopy(dict(row.body.examples[0]))
    first, *rest = path
    value = text
    for key in reversed(rest):
        value = [value] if key == 0 else {**BESIDE.get(key, {}), key: value}
    return {**body, first: value}


def test_the_walk_finds_the_dates():
    assert len(IN_BODIES) > 20
    assert len(IN_QUERIES) > 10
    assert {row.values[0].method for row in IN_BODIES} == {"POST", "PUT", "PATCH"}


@pytest.mark.sample(3)
@pytest.mark.parametrize(("row", "path"), IN_BODIES)
def test_each_date_of_a_body_is_read_as_programs_write_it(service, row, path):
    pointer = "".join(f"/{part}" for part in path)
    assert service.refusals(row, body_with(row, path, WRONG)) == {pointer}
    # Those of a series are of its time zone.
    for text in LOCAL if "/series" in row.url else DATES:
        assert service.refusals(row, body_with(row, path, text)) == set(), text


@pytest.mark.sample(3)
@pytest.mark.parametrize(("row", "parameter"), IN_QUERIES)
def test_each_date_of_a_query_is_read_as_programs_write_it(service, row, parameter):
    assert service.refusals(row, query={parameter.name: WRONG}) == {parameter.name}
    for text in DATES:
        assert service.refusals(row, query={parameter.name: text}) == set(), text
        if parameter.operators and "T" in text:
            assert service.refusals(row, query={parameter.name: f"gte:{text}"}) == set(), text


def test_version_1_0_takes_the_dates_that_it_has_always_taken(service):
    for text in ("2030-04-02T08:00:00.5", "2030-04-02 08:00:00", "2030-04-02T08:00Z"):
        body = {"name": "x", "start_date": text, "end_date": "2030-04-03 08:00", "reservations": [], "events": []}
        assert "invalid date" in service.ask_old("/v1/leases", body)["error_message"]
