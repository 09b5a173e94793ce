# SPDX-License-Identifier: Apache-2.0
"""What users keep secret is nowhere but where it is needed, and nowhere at all once nobody needs it any more."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.api.http.microversion import MAX_VERSION, MIN_VERSION, as_text
from blazar.api.http.openapi import Served
from blazar.api.http.routes import Root
from blazar.api.parts import all_parts
from blazar.clouds.ports.stacks import StackRefused
from blazar.enforcement import Occasion
from blazar.enforcement.payload import notification_body, question_body
from blazar.manager.common.notifications import render_payload
from blazar.manager.series.occurrences import CHUNK
from blazar.model.base.errors import CloudRefused
from blazar.model.leases.secrets import HIDDEN
from blazar.store.sql.tables import metadata
from tests.api.conftest import app_of, token
from tests.manager.enforcement.recording import RecordingFilter
from tests.resources.stacks.test_life import FLAVORS, server, template, volume
from tests.world import NOON, TYPES, World, a_host

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MARK = "c2VjcmV0LXdvcmQtb2YtY3VyaWU="
"""The secret, which is base64 as well as a word."""
PEOPLE = {
    "member": token("curie"),
    "reader": token("pierre", "physics", "reader"),
    "operator": token("root", "demo", "admin"),
    "taker": token("turing", "computing"),
}
NEWEST = as_text(MAX_VERSION)
VERSIONS = [f"1.{minor}" for minor in range(MIN_VERSION[1], MAX_VERSION[1] + 1)]
ONCE = ("/openapi.json",)
"""What is the same for everybody, and takes long."""
WORD = {"word": {"type": "string", "hidden": True}}
ONE = server(user_data={"get_param": "word"})
OF_FILE = {"one.yaml": json.dumps(template(WORD, one=ONE))}
NESTED = template(
    {"given": {"type": "string"}}, one={"type": "one.yaml", "properties": {"word": {"get_param": "given"}}}
)


def _stack(**given: Any) -> dict[str, Any]:
    return {"resource_type": "virtual:stack", "template": template(WORD, one=ONE), **given}


SECRETS: Mapping[str, Mapping[str, Any]] = {
    "user data": {
        "resource_type": "virtual:server",
        **{"amount": 1, "image": "cirros", "vcpus": 1, "memory_mb": 512, "disk_gb": 1},
        "user_data": MARK,
    },
    "hidden parameter": _stack(parameters={"word": MARK}),
    "hidden parameter in a text": _stack(parameters=f"word: {MARK}"),
    "hidden parameter of a template that is a text": _stack(
        template=json.dumps(template(WORD, one=ONE)), parameters={"word": MARK}
    ),
    "hidden object": _stack(
        template=template({"word": {"type": "json", "hidden": True}}, one=ONE), parameters={"word": {"key": [MARK]}}
    ),
    "parameter of an environment": _stack(environment={"parameters": {"word": MARK}}),
    "default of an environment": _stack(environment=f"parameter_defaults: {{word: {MARK}}}"),
    "default for a file": _stack(
        template=NESTED, files=OF_FILE, parameters={"given": "x"}, environment={"parameter_defaults": {"word": MARK}}
    ),
}


def test_there_is_a_secret_for_every_type_that_keeps_some(sqlite):
    world = World(sqlite, hosts=1)
    cloud, settings = world.simulated.cloud, world.host_settings
    keep = {kind.resource_type for make in TYPES if (kind := make(cloud, settings)).has("masked")}
    assert keep == {given["resource_type"] for given in SECRETS.values()}


@cache
def served() -> Served:
    """Return what is served; telling takes long."""
    return Served(all_parts())


class Service:
    """A service in which everything that anybody is told is heard."""

    def __init__(self, engine: Any, caplog: pytest.LogCaptureFixture) -> None:
        # Where a service is told of each change, series do not change.
        self.books = RecordingFilter(occasions=frozenset({Occasion.CREATED, Occasion.ENDED}))
        self.world = World(engine, filters=[self.books])
        self.world.waits = True
        self.world.register_pools(1)
        for flavor in FLAVORS:
            self.world.simulated.operators.offer_flavor(flavor)
        self.http = app_of(self.world.manager).test_client()
        self.caplog = caplog
        self.leases: list[str] = []
        self.series: list[str] = []

    def ask(self, method: str, url: str, body: Any = None, *, who: str = "member", version: str = NEWEST, **more: str):
        """Send a request, and check that the answer does not have the secret."""
        sent = {"OpenStack-API-Version": f"reservation {version}", **PEOPLE[who]}
        answer = self.http.open(url, method=method, json=body, headers={**sent, **more})
        assert answer.status_code < 500, answer.text
        assert MARK[:-1] not in f"{answer.headers}{answer.text}", (method, url, who, version)
        return answer

    def done(self, method: str, url: str, body: Any = None, **more: Any) -> Any:
        answer = self.ask(method, url, body, **more)
        assert answer.status_code < 300, (method, url, answer.text)
        return answer.json

    def look(self, *, needed: bool) -> None:
        """Check all that anybody can read, and all that was told and written down; ``needed`` by whom it keeps."""
        for url, versions in self._urls():
            # What is not in the database any more may be in a cache.
            for version in versions if needed else {versions[0], versions[-1]}:
                for who in ("reader", "operator", "taker") if url not in ONCE else ("member",):
                    self.ask("GET", url, who=who, version=version)
        for url, versions in self._urls(self.leases[:2], self.series[:2]):
            for version in versions if needed else {versions[0], versions[-1]}:
                for who in ("reader", "operator"):
                    self.ask("GET", url, who=who, version=version)
        told = [render_payload(lease) for _, lease in self.world.notifier.told]
        asked = [question_body(each) for each in self.books.asked]
        committed = [notification_body(each) for each in self.books.told]
        assert MARK not in repr((told, asked, committed, self.books.asked, self.books.told))
        places = {place for place, row in self._rows() if MARK in row}
        assert places <= ({"reservations", "series"} if needed else set())
        if not needed:
            self.world.manager.key_expiry.run_once()
            assert not self._files_with(MARK)
        assert MARK[:-1] not in self.heard()

    def heard(self) -> str:
        """Return all that was logged."""
        return "\n".join(f"{record.getMessage()} {record.exc_text or ''}" for record in self.caplog.records)

    def shown(self) -> Any:
        """Return the first lease as its project sees it."""
        return self.done("GET", f"/v1/leases/{self.leases[0]}")["lease"]

    def kept_by(self, table: str) -> bool:
        """Return whether a table has the secret."""
        return any(MARK in row for place, row in self._rows() if place == table)

    def _urls(self, leases: Sequence[str] = (), series: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
        """Yield all URLs of these leases and series, with the versions that serve them; by default those of neither."""
        names = {"{lease_id}": leases, "{series_id}": series} if leases or series else {"{kind}": ["host"]}
        for row in served().routes:
            if row.method != "GET":
                continue
            urls = [] if leases or series else [row.url]
            for place, ids in names.items():
                if place in row.url:
                    urls = [row.url.replace(place, id_) for id_ in ids]
            last = VERSIONS[-1] if row.until is None else as_text(row.until)
            versions = VERSIONS[VERSIONS.index(as_text(row.since)) : VERSIONS.index(last) + 1]
            for url in urls:
                if "{" not in url:
                    yield url, versions if row.root is Root.V1 else ["1.0"]

    def _files_with(self, text: str) -> list[str]:
        """Return the files of the database in which a text is, as of rows that were deleted or written over."""
        file = Path(str(self.world.engine.url.database))
        return [each.name for each in file.parent.glob(f"{file.name}*") if text.encode() in each.read_bytes()]

    def _rows(self) -> Iterator[tuple[str, str]]:
        with self.world.engine.connect() as connection:
            for table in metadata.sorted_tables:
                for row in connection.execute(sa.select(table)):
                    yield str(table.name), str(row)


@pytest.fixture
def service(sqlite, caplog) -> Service:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, "blazar")
    return Service(sqlite, caplog)


def lease_of(*reservations: Any, start: str = "2030-04-01T14:00Z", **more: Any) -> dict[str, Any]:
    return {"name": "x", "start_date": start, "end_date": "2030-04-01T18:00Z", "reservations": reservations, **more}


def series_of(*reservations: Any, **more: Any) -> dict[str, Any]:
    when = {"rule": "FREQ=DAILY;COUNT=3", "start": "2030-04-03T10:00", "duration": "PT1H"}
    return {"name": "daily", **when, "reservations": reservations, **more}


def once_by(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key.replace(" ", "-")}


def make_leases(service: Service, given: Any, key: str) -> None:
    """Make, change, split, merge, give away leases, and be refused some."""
    made = []
    for version in (*VERSIONS, VERSIONS[-1]):
        old = {"start_date": "2030-04-01 14:00", "end_date": "2030-04-01 18:00", "events": []}
        body = lease_of(given, **(old if version == "1.0" else {}))
        made.append(service.done("POST", "/v1/leases", body, version=version)["lease"]["id"])
    service.done("POST", "/v1/leases?dry_run=true", lease_of(given))
    question = {"start_date": "2030-04-01T14:00Z", "end_date": "2030-04-01T15:00Z", "reservations": [given]}
    service.done("POST", "/v1/availability", question)
    once = [service.done("POST", "/v1/leases", lease_of(given), **once_by(key)) for _ in range(2)]
    assert once[0]["lease"]["id"] == once[1]["lease"]["id"]
    first, other = made[0], once[0]["lease"]["id"]
    service.leases.append(first)
    service.done("PUT", f"/v1/leases/{first}", {"name": "renamed", "end_date": "2030-04-01T17:00Z"})
    service.ask("POST", f"/v1/leases/{first}/split", {"at": "2030-04-01T16:00Z"})
    service.ask("POST", f"/v1/leases/{made[1]}/merge", {"with": made[2]})
    service.ask("POST", f"/v1/leases/{other}/transfer", {"project_id": "computing"})
    service.ask("GET", "/v1/transfers", who="taker")
    service.ask("POST", f"/v1/transfers/{other}/accept", who="taker")
    # Refused, and as wrong as can be.
    service.ask("POST", "/v1/leases", lease_of({**given, "before_end": MARK[:3], "colour": "red"}))
    service.ask("POST", "/v1/leases", lease_of({**given, "template": 7, "amount": 10**9}))


@pytest.mark.slow
def test_a_lease_keeps_it_for_its_start_and_forgets_it_with_its_end(service):
    for name, given in SECRETS.items():
        make_leases(service, given, name)
    service.world.run_to(NOON + 3 * HOUR)
    service.look(needed=True)
    service.world.run_to(NOON + DAY)
    service.look(needed=False)


@pytest.mark.slow
def test_a_lease_forgets_it_when_it_is_deleted(service):
    for name, given in SECRETS.items():
        make_leases(service, given, name)
    for lease in service.done("GET", "/v1/leases", who="operator")["leases"]:
        service.done("DELETE", f"/v1/leases/{lease['id']}", who="operator")
    service.world.run()
    service.look(needed=False)


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["deleted", "timed out", "served"])
def test_a_lease_that_waits_keeps_it_until_it_is_over(service, ends):
    service.world.lease(a_host(3), project="biology", hours=24)
    service.world.run()
    wait = {"wait": {"until": "+12h" if ends != "served" else "+3d"}}
    for given in SECRETS.values():
        body = {"name": "x", "end_date": "+2h", "reservations": [given], **wait}
        service.leases.append(service.done("POST", "/v1/leases", body)["lease"]["id"])
    service.world.run()
    if ends == "deleted":
        service.look(needed=True)
        for lease in service.leases:
            service.done("DELETE", f"/v1/leases/{lease}")
    service.world.run_to(NOON + (4 * DAY if ends == "served" else 13 * HOUR))
    service.look(needed=False)


def make_series(service: Service, given: Any, key: str) -> None:
    service.done("POST", "/v1/series?dry_run=true", series_of(given))
    for _ in range(2):
        made = service.done("POST", "/v1/series", series_of(given), **once_by(key))["series"]
    service.series.append(made["id"])
    url, (shown,) = f"/v1/series/{made['id']}", made["reservations"]
    # What is shown can be sent back, and means what was there.
    back = {key: value for key, value in shown.items() if value is not None}
    changes: list[dict[str, Any]] = [{"name": "other"}, {"reservations": [given]}, {"reservations": [back]}]
    for change in changes:
        service.done("PUT", f"{url}?dry_run=true", change)
        service.done("PUT", url, change)
        assert service.kept_by("series")
    later = service.done("PUT", url, {"from": "2030-04-04T10:00:00", "name": "later"})["series"]
    service.series.append(later["id"])
    service.ask("POST", "/v1/series", series_of({**given, "colour": "red", "before_end": "x"}))
    service.leases += [each["lease_id"] for each in later["occurrences"]][:1]


@pytest.mark.slow
def test_a_series_keeps_it_until_it_has_ended(service):
    for name, given in SECRETS.items():
        make_series(service, given, name)
    service.look(needed=True)
    service.world.run_to(NOON + 8 * DAY)
    service.look(needed=False)


@pytest.mark.slow
def test_a_series_forgets_it_when_it_is_deleted(service):
    for name, given in SECRETS.items():
        make_series(service, given, name)
    service.world.run_to(NOON + 2 * DAY - HOUR)
    for each in service.series:
        service.done("DELETE", f"/v1/series/{each}?running=true")
    service.world.run()
    service.look(needed=False)


@pytest.mark.slow
def test_a_series_that_fails_forgets_it(service):
    """The first of its leases are made, and then another cannot be: none stays."""
    service.world.faults.fail_before("create_flavor", CloudRefused("no"), times=99)
    answer = service.ask("POST", "/v1/series", series_of(SECRETS["user data"], rule=f"FREQ=DAILY;COUNT={CHUNK + 1}"))
    assert answer.status_code == 202, answer.text
    service.series.append(answer.json["series"]["id"])
    service.world.run()
    service.world.run()
    assert service.done("GET", f"/v1/series/{service.series[0]}")["series"]["status"] == "FAILED"
    service.look(needed=False)


@pytest.mark.slow
def test_a_cloud_that_repeats_it_is_not_repeated(service):
    service.world.faults.fail_before("begin_stack", StackRefused("no", f"no: {MARK}"), times=40)
    # Clients bring the first 300 characters of what is refused, in one line.
    service.world.faults.fail_before("begin_boot", CloudRefused(f"no: {MARK[:-1]}..."), times=40)
    for given in SECRETS.values():
        service.leases.append(service.done("POST", "/v1/leases", lease_of(given))["lease"]["id"])
    service.world.run_to(NOON + 3 * HOUR)
    service.look(needed=True)
    service.world.run_to(NOON + DAY)
    service.look(needed=False)


def test_a_hidden_parameter_that_names_a_flavor_is_not_shown_by_what_the_stack_takes(service):
    flavored = template(WORD, one=server(flavor={"get_param": "word"}))
    for word, status in (("small", 201), ("no-flavor", 400), ("", 400)):
        body = lease_of({"resource_type": "virtual:stack", "template": flavored, "parameters": {"word": word}})
        answer = service.ask("POST", "/v1/leases", body)
        assert answer.status_code == status, answer.text
        assert "no-flavor" not in answer.text + service.heard()
        if status == 201:
            service.leases.append(answer.json["lease"]["id"])
    (stack,) = (each for each in service.shown()["reservations"] if each["resource_type"] == "virtual:stack")
    assert (stack["takes"]["servers"][0]["flavor"], stack["parameters"]) == (HIDDEN, {"word": HIDDEN})
    service.world.run_to(NOON + 3 * HOUR)
    assert service.shown()["status"] == "ACTIVE"
    service.world.run_to(NOON + DAY)
    assert service.shown()["status"] == "TERMINATED"


def test_a_refusal_of_a_part_does_not_say_the_name_that_is_hidden(service):
    for given in (MARK, f'"{MARK}"', {MARK: 1}, {"a": MARK}):
        for properties in ({"volume_type": {"get_param": "word"}}, {"size": {"get_param": "word"}}):
            kind = "string" if isinstance(given, str) else "json"
            hidden = template({"word": {"type": kind, "hidden": True}}, one=volume(**properties))
            for asked in (
                {"parameters": {"word": given}},
                {"environment": json.dumps({"parameters": {"word": given}})},
            ):
                stack = {"resource_type": "virtual:stack", "template": hidden, **asked}
                answer = service.ask("POST", "/v1/leases", lease_of(stack))
                assert answer.status_code in (400, 404), answer.text
                detail = answer.json["errors"][0]["detail"]
                assert HIDDEN in detail
                assert f"give a{HIDDEN}" not in detail
    assert MARK[:-1] not in service.heard()


def test_what_is_never_delivered_does_not_have_it(service):
    service.books.deaf = 10**6
    for given in SECRETS.values():
        service.done("POST", "/v1/leases", lease_of(given))
    assert service.kept_by("reservations")
    assert not service.kept_by("outbox")


def test_an_error_of_the_database_does_not_repeat_it(service):
    with service.world.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE reservations RENAME TO gone"))
    sent = {"OpenStack-API-Version": f"reservation {NEWEST}", **PEOPLE["member"]}
    answer = service.http.post("/v1/leases", json=lease_of(SECRETS["user data"]), headers=sent)
    assert answer.status_code >= 500
    assert "INSERT INTO reservations" in service.heard()
    assert MARK not in answer.text + service.heard()
