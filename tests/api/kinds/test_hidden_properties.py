# SPDX-License-Identifier: Apache-2.0
"""A property that is hidden from members: no guess of its values is answered, however it is asked."""

from __future__ import annotations

import itertools
import json
import urllib.parse
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of, token
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
MEMBER = token("curie")
NEWEST = {"OpenStack-API-Version": "reservation 1.1"}
GRANTED = ["==", "$level", "1"]
"""What leases were granted before the property was hidden."""
GUESSES = [
    *(["==", "$level", value] for value in ("2", "9")),
    ["<", "$level", "2"],
    [">=", "$level", "9"],
    ["and", GRANTED, ["==", "$gpu", "A100"]],
    ["not", GRANTED],
]


class Asking:
    """A service with leases and a series that name a property which is hidden by now."""

    def __init__(self, engine: Any) -> None:
        self.world = world = World(engine, hosts=4, register=False)
        world.waits = True
        for number in range(1, 5):
            world.register(f"node-{number}", level=str(number), gpu="A100")
        asked = json.dumps(GRANTED)
        self.http = app_of(world.manager).test_client()
        self.lease = world.lease(a_host(needs=asked), start=HOUR)
        self.shared = world.lease(instances(needs=asked), start=5 * HOUR)
        self.taken = world.lease(a_host(needs=asked), start=9 * HOUR, project="biology")
        self.waiting = world.lease(a_host(needs=asked), hours=90, wait=timedelta(days=9))
        body = {"name": "x", "rule": "FREQ=DAILY;COUNT=2", "start": "2030-05-02T10:00", "duration": "PT1H"}
        made = self.ask("POST", "/v1/series", {**body, "reservations": [host(GRANTED)]})
        assert made.status_code == 201, made.text
        self.series, self.body = made.json["series"]["id"], body
        self._take_over()
        world.manager.resources.set_property(HOST, "level", private=True)

    def ask(self, method: str, url: str, body: Any = None, *, who: dict[str, str] = MEMBER, version: str = "1.1"):
        sent = {**who, "OpenStack-API-Version": f"reservation {version}"}
        return self.http.open(url, method=method, json=body, headers=sent)

    def _take_over(self) -> None:
        giver = token("darwin", "biology")
        assert self.ask("POST", f"/v1/leases/{self.taken.id}/transfer", {"project_id": "physics"}, who=giver)
        assert self.ask("POST", f"/v1/transfers/{self.taken.id}/accept").status_code == 200

    def ways(self, guess: Any) -> Iterator[tuple[str, str, str, Any]]:
        """Yield all ways to ask for a requirement: the version, method, URL and body."""
        text, quoted = json.dumps(guess), urllib.parse.quote(json.dumps(guess))
        for url in ("/v1/calendar", "/v1/capacity", "/v1/resources/host"):
            yield "1.1", "GET", f"{url}?requirement={quoted}", None
        new = {"name": "x", "start_date": "2030-04-11T10:00Z", "end_date": "2030-04-11T12:00Z"}
        for kind, what in itertools.product((host, server), (guess,)):
            reserved = {"reservations": [kind(what)]}
            yield "1.1", "POST", "/v1/leases", {**new, **reserved}
            yield "1.1", "POST", "/v1/leases", {**new, **reserved, "wait": {"until": "+30d"}}
            yield "1.1", "POST", "/v1/leases?dry_run=true", {**new, **reserved}
            yield "1.1", "POST", "/v1/availability", {**reserved, "duration": "PT1H"}
            yield "1.1", "POST", "/v1/series?dry_run=true", {**self.body, **reserved}
            yield "1.1", "PUT", f"/v1/series/{self.series}?dry_run=true", reserved
            yield "1.1", "PUT", f"/v1/series/{self.series}", reserved
            yield "1.1", "POST", "/v1/feeds", {"kind": "free_busy", "name": "x", "requirement": text, **reserved}
        old = {"name": "x", "start_date": "2030-04-11 10:00", "end_date": "2030-04-11 12:00", "events": []}
        kept = {"min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": text}
        yield "1.0", "POST", "/v1/leases", {**old, "reservations": [{"resource_type": "physical:host", **kept}]}
        for lease in (self.lease, self.shared, self.taken, self.waiting):
            id_ = lease.reservations[0].id
            for field in ("resource_properties", "hypervisor_properties"):
                if field[0] == "h" and lease is self.shared:
                    continue
                # Else what was granted would be asked for besides, which is another requirement, too.
                beside = {"resource_properties": ""} if field[0] == "h" else {}
                yield "1.0", "PUT", f"/v1/leases/{lease.id}", {"reservations": [{"id": id_, **beside, field: text}]}
                change = {
                    "reservations": [{"id": id_, **({"resource_properties": []} if beside else {}), field: guess}]
                }
                yield "1.1", "PUT", f"/v1/leases/{lease.id}?dry_run=true", change
                yield "1.1", "PUT", f"/v1/leases/{lease.id}", change
                yield "1.1", "POST", "/v1/availability", {"lease_id": lease.id, **change, "duration": "PT1H"}
                yield "1.1", "PUT", f"/v1/leases/{lease.id}?dry_run=true", {**change, "end_date": "+3h"}


def host(requirement: Any) -> dict[str, Any]:
    return {"resource_type": "physical:host", "min": 1, "resource_properties": requirement}


def server(requirement: Any) -> dict[str, Any]:
    size = {"amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": 1}
    return {"resource_type": "virtual:instance", **size, "resource_properties": requirement}


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    return Asking(new_sqlite(tmp_path_factory.mktemp("hidden") / "blazar.sqlite"))


def told(answer: Any) -> str:
    """Return an answer without what differs each time."""
    return str(answer.text).replace(answer.headers["x-openstack-request-id"], "")


@pytest.mark.slow
def test_no_guess_is_answered_however_it_is_asked(asking):
    first = list(asking.ways(["==", "$nobody_has_it", "1"]))
    nothing = [asking.ask(method, url, body, version=version) for version, method, url, body in first]
    expected = [(each.status_code, told(each).replace("nobody_has_it", "level")) for each in nothing]
    for way, (status, _) in zip(first, expected, strict=True):
        # Lists of hosts are for operators, and what waits is not changed at all.
        refused = 409 if way[1] == "PUT" and asking.waiting.id in way[2] else 400
        assert status == refused, way
    for guess in GUESSES:
        for way, wanted in zip(asking.ways(guess), expected, strict=True):
            version, method, url, body = way
            answer = asking.ask(method, url, body, version=version)
            assert (answer.status_code, told(answer)) == wanted, (way, answer.text)


def test_what_was_granted_may_stay_word_for_word(asking):
    for lease in (asking.lease, asking.shared, asking.taken):
        same = {"id": lease.reservations[0].id, "resource_properties": GRANTED}
        url = f"/v1/leases/{lease.id}?dry_run=true"
        for change in ({"reservations": [same]}, {"end_date": "+2h", "reservations": [same]}, {"end_date": "+2h"}):
            answer = asking.ask("PUT", url, change)
            assert answer.status_code == 200, answer.text
        question = {"lease_id": lease.id, "reservations": [same], "duration": "PT1H"}
        assert asking.ask("POST", "/v1/availability", question).status_code == 200
    assert asking.world.clock.now() == NOON
