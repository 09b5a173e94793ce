# SPDX-License-Identifier: Apache-2.0
"""A cloud of two projects. Everything of the other one, and every host, bears a mark that no answer may have."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from blazar.api.http.routes import Root, Route
from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import State
from blazar.clouds.simulated.state import NetworkState, SubnetState
from blazar.model.base.errors import CloudRefused
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import events, feeds, leases, reservations, resources, subscriptions
from tests.api.conftest import app_of, token
from tests.prices import a_document
from tests.rules import a_rule
from tests.tables import new_sqlite, sqlite_engine
from tests.world import NOON, ManualClock, World, a_host, addresses, flavored, host_request, instances, of_hosts

HOUR = timedelta(hours=1)
MARK = "vega"
"""In every name of the other project, and of every host: no answer to others has it."""
OWN, OTHER = "physics", f"project-of-{MARK}"
PEOPLE = {
    "member": token("curie", OWN, "member", "reader"),
    "reader": token("pierre", OWN, "reader"),
}
OPERATOR = {**token("root", "demo", "admin"), "OpenStack-API-Version": "reservation 1.1"}
THEIRS = {**token(f"user-of-{MARK}", OTHER, "member", "reader"), "OpenStack-API-Version": "reservation 1.1"}
MINE = {**PEOPLE["member"], "OpenStack-API-Version": "reservation 1.1"}
NEWEST = {"OpenStack-API-Version": "reservation 1.1"}
SERIES = {
    "rule": "FREQ=DAILY;COUNT=1",
    "start": "2030-08-05T10:00",
    "duration": "PT1H",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}
HOSTS, RESTRICTED = 6, 6
"""How many hosts there are, and the one that only the other project may use."""
CLEANING = timedelta(minutes=10)
_REQUEST_ID = re.compile(r"req-[0-9a-f-]{36}")
_PLACE = re.compile(r"\{(\w+)\}")
Names = Mapping[str, str]
"""What a request names, by placeholder. ``my_…`` are always the caller's; the others are, in turn, nobody's, too."""


def host_name(number: int) -> str:
    return f"{MARK}-host-{number}"


def host_id(number: int) -> str:
    return f"77{number:04}"


def on(number: int) -> str:
    """Return the requirement that only this host meets."""
    return json.dumps(["==", "$slot", str(number)])


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, without what differs each time: its status, headers and text."""

    status: int
    headers: tuple[tuple[str, str], ...]
    text: str

    def renamed(self, names: Names, others: Names) -> Told:
        """Return the answer with what the one request has named instead of what the other has."""
        text, headers = self.text, {name: "" for name, _ in self.headers}
        for place, value in names.items():
            text = text.replace(value, others[place])
        return Told(self.status, tuple(headers.items()), text)


class Marked:
    """The cloud, and requests to the service on it; ``own``, ``theirs`` and ``nobodys`` are the names in requests."""

    def __init__(self, world: World, own: Names, theirs: Names, nobodys: Names) -> None:
        self.world = world
        self.own, self.theirs, self.nobodys = own, theirs, nobodys
        # Other tests hold answers against the document; here that would take most of the time.
        self.http: FlaskClient = app_of(world.manager).test_client()

    def copy(self, folder: Path) -> Marked:
        """Return the same cloud once more."""
        # The last one who leaves a database writes all of it into the one file.
        self.world.engine.dispose()
        engine = sqlite_engine(shutil.copy(str(self.world.engine.url.database), folder / "copy.sqlite"))
        with self.world.simulated.inspect() as state:
            copied = state.copy()
        clock = ManualClock(self.world.clock.instant)
        world = World(engine, state=copied, clock=clock, register=False, cleaning_time=CLEANING)
        return Marked(world, self.own, self.theirs, self.nobodys)

    def ask(self, row: Route, version: str, who: str, ask: Any, names: Names) -> TestResponse:
        """Send a request as somebody, with these names for its placeholders."""
        sent = {**PEOPLE[who], **ask.headers}
        if row.root is not Root.V2:
            sent["OpenStack-API-Version"] = f"reservation {version}"
        url = filled(row.url, names) + ("?" + filled(ask.query, names) if ask.query else "")
        return self.http.open(url, method=row.method, json=filled(ask.body, names), headers=sent)

    def told(self, answer: TestResponse) -> Told:
        """Return an answer without its request id."""
        request_id = answer.headers["x-openstack-request-id"]
        headers = tuple(sorted((name, text) for name, text in answer.headers if text != request_id))
        return Told(answer.status_code, headers, answer.text.replace(request_id, ""))

    def secrets(self) -> frozenset[str]:
        """Return all that names the other project, its people, leases and feeds, and the hosts."""
        theirs = sa.select(leases.c.id).where(leases.c.project_id == OTHER)
        with self.world.engine.connect() as connection:
            found = {MARK, *connection.scalars(theirs)}
            for table in (reservations, events):
                found |= {*connection.scalars(sa.select(table.c.id).where(table.c.lease_id.in_(theirs)))}
            found |= {*connection.scalars(sa.select(feeds.c.id).where(feeds.c.project_id == OTHER))}
            found |= {*connection.scalars(sa.select(subscriptions.c.id).where(subscriptions.c.project_id == OTHER))}
            found |= {*connection.scalars(sa.select(resources.c.external_id).where(resources.c.kind == str(HOST)))}
        hidden = next(each.label for each in self.hosts() if each.external_id == host_id(RESTRICTED))
        servers = {each.id for each in self.world.simulated.operators.list_servers()}
        return frozenset(found | servers | {hidden})

    def hosts(self) -> tuple[Any, ...]:
        return self.world.manager.resources.all(HOST)


def filled(value: Any, names: Names) -> Any:
    """Return a text or JSON value with names for its placeholders."""
    if isinstance(value, str):
        return _PLACE.sub(lambda match: names[match[1].removesuffix("_id")], value)
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    return [filled(each, names) for each in value] if isinstance(value, list) else value


def marked(folder: Path) -> Marked:
    """Make the cloud: leases of both projects in all states, some of one in the way of the other's."""
    world = World(new_sqlite(folder / "first.sqlite"), state=_cloud(), register=False, cleaning_time=CLEANING)
    for number in range(1, HOSTS + 1):
        open_to = (OTHER,) if number == RESTRICTED else None
        capabilities = {"gpu": "A100", "slot": str(number)}
        request = host_request(name=host_name(number), capabilities=capabilities, open_to=open_to)
        world.manager.resources.register(HOST, request)
    world.manager.resources.change(HOST, host_id(RESTRICTED), ResourceChange({f"{MARK}_rack": f"{MARK}-r1"}))
    world.manager.resources.set_property(HOST, f"{MARK}_rack", private=True)
    # Public, and of no host that others may use.
    world.manager.resources.change(HOST, host_id(RESTRICTED), ResourceChange({f"{MARK}_bays": f"{MARK}-b1"}))
    address, *_ = world.register_addresses(10, 11, 12)
    (segment,) = world.register_segments(101)
    device = world.register_device()
    (pool,) = world.register_pools(1)
    world.simulated.operators.offer_flavor(Flavor("small", "m1.small", 1, 512, 1, public=True))
    world.simulated.operators.offer_flavor(Flavor("own-1", "own.small", 1, 512, 1), projects=[OWN])
    world.simulated.operators.offer_flavor(Flavor(f"{MARK}1", f"{MARK}.small", 1, 512, 1), projects=[OTHER])
    late, theirs, mine = _leases(world)
    http = app_of(world.manager).test_client()
    revoked, feed, own_feed = (
        http.post("/v1/feeds", json={"kind": "project", "name": name}, headers=headers).json["feed"]
        for name, headers in ((f"first of {MARK}", THEIRS), (f"feed of {MARK}", THEIRS), ("mine", MINE))
    )
    their_series, own_series = (
        http.post("/v1/series", json={**SERIES, "name": name}, headers={**who, **NEWEST}).json["series"]["id"]
        for name, who in ((f"series of {MARK}", THEIRS), ("mine", MINE))
    )
    their_subscription, own_subscription = (
        http.post(
            "/v1/subscriptions",
            json={"url": f"https://{host}.example/", "events": ["lease.*"]},
            headers={**who, **NEWEST},
        ).json["subscription"]["id"]
        for host, who in ((MARK, THEIRS), ("mine", MINE))
    )
    # Who knows the secret of a live one may read it.
    assert http.delete(f"/v1/feeds/{revoked['id']}", headers=THEIRS).status_code == 204
    # A failed host's lease is degraded, and a reason may be anything that the cloud has said.
    world.simulated.operators.host_down(host_name(2))
    for _ in range(2):
        world.manager.monitor.run_once()
    disabling = Disabling(f"{MARK} has broken it", None)
    world.manager.resources.change(HOST, host_id(4), ResourceChange({}, disabled=True, disabling=disabling))
    labels = {each.external_id: each.label for each in world.manager.resources.all(HOST)}
    begin = NOON + timedelta(days=5)
    window = MaintenanceRequest(
        f"disks of {MARK}", begin, begin + HOUR, hosts=(host_id(RESTRICTED),), reason=f"{MARK} wants more"
    )
    maintenance = world.manager.maintenances.create(window).maintenance
    projects = [{"project_id": OWN, "factor": "0.9"}, {"project_id": OTHER, "factor": "0.123457"}]
    world.manager.price_lists.publish(a_document(projects=projects), Actor(f"user-of-{MARK}", OTHER))
    world.manager.rules.write("gpu", a_rule("gap", {"except_projects": [OTHER]}, at_least="PT1S", over="P1000D"))
    own = {
        "maintenance": mine.id,
        "version": "1",
        "month": "2030-04",
        **{"problem": f"event:{mine.events[0].id}", "action": "retry"},
        **_of(mine, own_feed, own_feed),
        "series": own_series,
        **{"subscription": own_subscription, "link_secret": "x" * 43},
        **{"user": "curie", "project": OWN, "name": "gpu", "flavor": "own-1"},
        **{"label": labels[host_id(1)], "host": host_id(1), "floating_ip": address.external_id},
        "network": segment.external_id,
        "device": device.external_id,
        "pool": pool.external_id,
        **{"kind": "host", "resource": labels[host_id(1)]},
    }
    own |= {f"my_{place}": value for place, value in own.items()}
    other = {
        "maintenance": maintenance.id,
        "problem": f"event:{theirs.events[0].id}",
        **_of(theirs, feed, revoked),
        "series": their_series,
        **{"subscription": their_subscription, "link_secret": "x" * 43},
        **{"user": f"user-of-{MARK}", "project": OTHER, "name": f"{MARK}_rack", "flavor": f"{MARK}1"},
        **{"label": labels[host_id(RESTRICTED)], "host": host_id(RESTRICTED)},
        "resource": labels[host_id(RESTRICTED)],
    }
    missing = {place: _unlike(place, value) for place, value in other.items()}
    assert world.now(late).status == "TERMINATING"
    return Marked(world, own, {**own, **other}, {**own, **missing})


def _cloud() -> State:
    state = of_hosts(*({"name": host_name(number), "vcpus": 64} for number in range(1, HOSTS + 1)))
    state.hosts = {
        host_id(number): replace(host, id=host_id(number)) for number, host in enumerate(state.hosts.values(), start=1)
    }
    subnet = SubnetState("public-subnet", "203.0.113.0/24", "203.0.113.1", [["203.0.113.128", "203.0.113.254"]])
    state.networks["public"] = NetworkState("public", "public", subnets=[subnet])
    return state


def _leases(world: World) -> tuple[Lease, Lease, Lease]:
    """Make the leases; return the one of the other project that ends late, one to come, and an own one to come."""

    def lease(project: str, what: ReservationRequest, start: timedelta, length: timedelta = HOUR) -> Lease:
        name = f"work of {project}"
        return world.lease(what, project=project, name=name, start=start, hours=length / HOUR)

    late = lease(OTHER, a_host(needs=on(1)), timedelta(0))
    lease(OWN, a_host(needs=on(1)), HOUR + CLEANING, 3 * HOUR)
    lease(OWN, a_host(needs=on(2)), timedelta(0), 48 * HOUR)
    lease(OWN, a_host(needs=on(3)), HOUR / 2, 5 * HOUR)
    lease(OWN, a_host(needs=on(5)), timedelta(0), HOUR / 3)
    lease(OTHER, a_host(needs=on(RESTRICTED)), timedelta(0), 48 * HOUR)
    lease(OTHER, addresses(1, required=[11]), 2 * HOUR, 24 * HOUR)
    lease(OWN, addresses(1, required=[10]), 2 * HOUR, 24 * HOUR)
    for project in (OTHER, OWN):
        lease(project, instances(3, needs=on(5)), 24 * HOUR, 12 * HOUR)
        lease(project, flavored(2), 24 * HOUR, 12 * HOUR)
    theirs = lease(OTHER, a_host(needs=on(3)), 48 * HOUR, 24 * HOUR)
    mine = lease(OWN, a_host(needs=on(3)), 24 * HOUR, 12 * HOUR)
    world.run()
    world.simulated.users.boot_server(
        f"server-of-{MARK}", project_id=OTHER, user_id=f"user-of-{MARK}", host=host_name(1)
    )
    world.simulated.durations.deletion = timedelta(days=9)
    refused = f"host {host_name(3)} refused lease {theirs.id} of {OTHER}"
    for minutes in (20, 30, 60, 70):
        world.clock.to(NOON + timedelta(minutes=minutes))
        if minutes == 30:
            world.faults.fail_before("add_host", CloudRefused(refused))
        world.run()
        world.faults.clear()
    return late, theirs, mine


def _of(lease: Lease, feed: Mapping[str, str], read: Mapping[str, str]) -> dict[str, str]:
    secret = read["url"].rpartition("/")[2].removesuffix(".ics")
    reservation, event = lease.reservations[0], lease.events[0]
    return {"lease": lease.id, "reservation": reservation.id, "event": event.id, "feed": feed["id"], "secret": secret}


def _unlike(place: str, value: str) -> str:
    """Return a value of the same form and length that names nothing."""
    if place in ("label", "resource"):
        return "h-zzzzzz"
    if MARK in value:
        return value.replace(MARK, "nova")
    return value[:-3] + ("000" if value.endswith("999") else "999")
