# SPDX-License-Identifier: Apache-2.0
"""Leases of unusual shapes, and what each route answers about them: the table of ``test_every_shape.py``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from blazar.api.http.context import EXTENSION
from blazar.api.leases.services import Waiters
from blazar.manager.common.notifications import render_payload
from blazar.model.leases.requests import ReservationRequest
from tests.api.conftest import app_of, client_of, token, with_leases
from tests.world import World, a_host

Json = dict[str, Any]

OWNER, OPERATOR, TAKER = token(), token("root", "admin", "admin"), token("turing", "computing")
ANY = {"resource_properties": ""}
HOST = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", **ANY}
SERVER = {
    "resource_type": "virtual:instance",
    "vcpus": 1,
    "memory_mb": 64,
    "disk_gb": 0,
    "amount": 1,
    "affinity": None,
    **ANY,
}
ADDRESS = ReservationRequest("virtual:floatingip", {"network_id": "public", "amount": 1})
START = "2030-09-01T10:00:00Z"


@dataclass(frozen=True)
class Shape:
    """How long a lease lasts, when that ends, and what it reserves."""

    name: str
    duration: str
    reservations: tuple[Json, ...]
    end: str = ""

    @property
    def until(self) -> str:
        """Return when a lease ends, as its request has it."""
        return self.end or f"+{self.duration}"

    @property
    def waits_beside(self) -> bool:
        """Return whether one waits for its turn beside the others: for hosts, of which others have all but one."""
        return HOST in self.reservations


SHAPES = (
    Shape("empty", "PT2H", ()),
    Shape("of a second", "PT1S", (HOST,)),
    Shape("of 15 years", "P5475D", (HOST,), "2045-09-20T10:00:00Z"),
    Shape("of one", "PT2H", (HOST,)),
    Shape("of most", "PT2H", (SERVER,) * 100),
)


@dataclass(frozen=True)
class Ask:
    """A request, and with which status it is refused to a lease in a state or of a shape; it is served otherwise.

    The path may have the ids of the lease in braces; its first part up to a question mark is that of a route.
    """

    method: str
    path: str
    body: Json | None = None
    refused: Mapping[str, int] = field(default_factory=dict)
    who: Mapping[str, str] = field(default_factory=lambda: OWNER)
    version: str = "1.1"

    def expected(self, shape: str, state: str) -> int | None:
        """Return the status of a refusal; None: it is served."""
        for key in (state, shape, "all"):
            if key in self.refused:
                return self.refused[key] or None
        return None


class Scene:
    """A service in which somebody waits, every feature works, with leases of one shape."""

    def __init__(self, world: World, shape: Shape) -> None:
        self.world, self.shape = world, shape
        world.waits = True
        app = app_of(world.manager)
        waits = Waiters(sleep=self._let_pass, clock=world.clock.elapsed)
        app.extensions = {EXTENSION: with_leases(app.extensions[EXTENSION], waiters=waits)}
        self.http: FlaskClient = client_of(app)
        world.register_addresses(100)
        world.lease(ADDRESS, project="biology", hours=24 * 30)
        world.lease(ADDRESS, project="biology", wait=timedelta(days=60))
        world.run()

    def _let_pass(self, seconds: float) -> None:
        self.world.run_to(self.world.clock.now() + timedelta(seconds=seconds))

    def ask(self, asked: Ask, ids: Mapping[str, str]) -> TestResponse:
        """Send a request."""
        path = asked.path
        for name, value in ids.items():
            path = path.replace(f"{{{name}}}", value)
        headers = {"OpenStack-API-Version": f"reservation {asked.version}", **asked.who}
        body = asked.body and json.loads(_filled(json.dumps(asked.body), ids, self.shape))
        return self.http.open(path, method=asked.method, json=body, headers=headers)

    def in_state(self, state: str) -> Json:
        """Make a lease of the shape, and have it come into a state."""
        wanted = list(self.shape.reservations)
        body: Json = {"name": state, "start_date": START if state == "pending" else "now", "end_date": self.shape.until}
        if state == "waiting":
            # Others have the rest for so long.
            self.world.lease(a_host(5 if "min" in wanted[0] else 6), hours=24 * 20, project="biology")
            wanted = [{**each, "min": 2, "max": 2} if "min" in each else each for each in wanted]
            body |= {"wait": {"until": "+P30D"}}
        if not wanted:
            body |= {"start_date": "2030-09-01 10:00", "end_date": "2030-09-01 12:00"} if state == "pending" else {}
            body |= {"end_date": "2030-04-01 14:00"} if state != "pending" else {}
        made = self._made({**body, "reservations": wanted})
        if state == "past":
            assert self.ask(Ask("DELETE", "/v1/leases/{lease_id}"), ids_of(made)).status_code == 204
        return made

    def _made(self, body: Json) -> Json:
        known = bool(body["reservations"])
        headers = {"OpenStack-API-Version": f"reservation {'1.1' if known else '1.0'}", **OWNER}
        made = self.http.post("/v1/leases", json=body, headers=headers)
        assert made.status_code == 201, made.text
        self.world.run()
        return made.json["lease"]

    def told(self) -> int:
        """Return how often the message bus was told of a lease, each time in a form that it takes."""
        return len([json.dumps(render_payload(lease)) for _, lease in self.world.notifier.told])


def ids_of(lease: Json) -> Json:
    """Return the ids that a path may have."""
    first = next(iter(lease["reservations"]), {"id": "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d"})
    return {"lease_id": lease["id"], "reservation_id": first["id"]}


def _filled(text: str, ids: Mapping[str, str], shape: Shape) -> str:
    for name, value in ids.items():
        text = text.replace(f'"{{{name}}}"', json.dumps(value))
    text = text.replace('"{until}"', json.dumps(shape.until))
    text = text.replace('"{length}"', json.dumps(shape.duration))
    return text.replace('"{reservations}"', json.dumps(shape.reservations))


SERVED = 0
WAITS = {"waiting": 409}
OVER = {**WAITS, "past": 409}
GONE = {**WAITS, "past": 404}
NOT_OFFERED = {"waiting": 404, "past": 404}
NOT_ACTIVE = {**GONE, "pending": 409}
LEASE = "/v1/leases/{lease_id}"
REMINDER = {"at": "-PT1M", "text": "copy the results"}

OF_A_LEASE: tuple[Ask, ...] = (
    Ask("GET", LEASE),
    *(Ask("GET", path, refused={"past": 404}, version="1.0") for path in (LEASE, "/v2/leases/{lease_id}")),
    *(Ask("GET", f"{LEASE}/{what}", refused={"past": 404}, version="1.0") for what in ("hosts", "networks", "devices")),
    Ask("GET", f"{LEASE}/history"),
    Ask("GET", f"{LEASE}/energy"),
    Ask("POST", f"{LEASE}/merge?dry_run=true", {"with": "{twin_id}"}, refused={**GONE, "waiting": 400}),
    Ask("POST", f"{LEASE}/keep", refused={**GONE, "all": 409}),
    Ask("POST", f"{LEASE}/confirm", refused={"all": 409}),
    Ask("PUT", f"{LEASE}/hold", who=OPERATOR, refused={**NOT_ACTIVE, "empty": 409}),
    Ask("DELETE", f"{LEASE}/hold", who=OPERATOR, refused={**NOT_ACTIVE, "empty": 409}),
    Ask("PUT", f"{LEASE}?dry_run=true", {"name": "b"}, refused=OVER),
    Ask("PUT", LEASE, {"name": "a"}, refused=OVER),
    *(Ask("PUT", path, {"name": "c"}, refused=GONE, version="1.0") for path in (LEASE, "/v2/leases/{lease_id}")),
    Ask("PUT", LEASE, {"end_date": "+PT3H"}, refused=OVER),
    Ask("PUT", LEASE, {"before_end_date": "-PT1M"}, refused=OVER),
    Ask("PUT", LEASE, {"before_end_date": None}, refused=OVER),
    Ask("PUT", LEASE, {"extend_if_free": {"until": "+PT4H"}}, refused=OVER),
    Ask("PUT", LEASE, {"reminders": [REMINDER]}, refused=OVER),
    Ask("PUT", LEASE, {"reminders": []}, refused=OVER),
    Ask("POST", "/v1/availability", {"lease_id": "{lease_id}"}, refused=GONE),
    Ask("POST", "/v1/availability", {"lease_id": "{lease_id}", "end_date": "+P2D"}, refused=GONE),
    Ask(
        "POST",
        f"{LEASE}/reservations/{{reservation_id}}/swap",
        {"host": "no-host"},
        refused={**GONE, "empty": 404, "of most": 409, "all": 400},
    ),
    Ask(
        "POST",
        f"{LEASE}/split?dry_run=true",
        {"at": "2030-09-01T11:00:00Z"},
        refused={**GONE, "active": 409, "of most": 409},
    ),
    Ask(
        "POST",
        f"{LEASE}/split",
        {"reservations": [{"id": "{reservation_id}"}]},
        refused={**GONE, "of most": SERVED, "all": 400},
    ),
    Ask("POST", f"{LEASE}/transfer", {"project_id": "computing"}, refused=GONE),
    Ask("GET", "/v1/transfers", who=TAKER),
    Ask("GET", "/v1/transfers/{lease_id}", who=TAKER, refused=NOT_OFFERED),
    Ask("DELETE", f"{LEASE}/transfer", refused=NOT_OFFERED),
    Ask("POST", f"{LEASE}/transfer", {"project_id": "computing"}, refused=GONE),
    Ask("POST", "/v1/transfers/{lease_id}/decline", who=TAKER, refused=NOT_OFFERED),
    Ask("POST", f"{LEASE}/transfer", {"user_id": "meitner"}, refused=GONE),
    Ask("POST", "/v1/transfers/{lease_id}/accept", who=token("meitner"), refused=NOT_OFFERED),
)
"""What is asked of each lease."""

BETWEEN = "from=2030-09-01T00:00:00Z&to=2030-09-02T00:00:00Z"
NO_RESERVATIONS = {"empty": 400}
NO_QUESTION = {**NO_RESERVATIONS, "of most": 400, "of 15 years": 400}
QUESTION = {"reservations": "{reservations}", "duration": "{length}"}
SERIES = {
    "name": "s",
    "rule": "FREQ=DAILY;COUNT=3",
    "start": "2030-09-10T10:00",
    "duration": "{length}",
    "reservations": "{reservations}",
}
WINDOW = {"name": "w", "start_date": "2030-09-01T09:00:00Z", "end_date": "+PT4H", "hosts": ["1"], "active": "list"}
EARLIER = {
    "name": "e",
    "start_date": "2030-09-20 10:00",
    "end_date": "2030-09-20 12:00",
    "reservations": "{reservations}",
    "events": [],
}
NEW = {"name": "n", "end_date": "{until}", "reservations": "{reservations}"}

BESIDE_LEASES: tuple[Ask, ...] = (
    Ask("GET", "/v1/leases?state=all"),
    *(Ask("GET", path, version="1.0") for path in ("/v1/leases", "/v2/leases")),
    Ask("GET", "/v1/leases?state=past&with_count=true"),
    Ask("GET", f"/v1/calendar?{BETWEEN}"),
    Ask("GET", f"/v1/calendar?{BETWEEN}", who=OPERATOR),
    Ask("GET", f"/v1/capacity?{BETWEEN}&step=PT30M"),
    Ask("GET", "/v1/capacity?resource_type=virtual:instance&from=now&to=%2BP5500D&step=P100D", refused={"all": 400}),
    Ask("GET", "/v1/os-hosts/allocations", who=OPERATOR, version="1.0"),
    Ask("GET", "/v1/os-hosts/{host_id}/allocation", who=OPERATOR, version="1.0"),
    *(Ask("GET", f"/v1/{kind}/allocations", who=OPERATOR, version="1.0") for kind in ("networks", "devices")),
    Ask("GET", "/v1/resources/{kind}/allocations", who=OPERATOR),
    Ask("GET", "/v1/resources/{kind}/{resource_id}/allocations", who=OPERATOR),
    Ask(
        "POST",
        "/v1/availability",
        QUESTION,
        refused=NO_QUESTION,
    ),
    Ask(
        "POST",
        "/v1/availability",
        {**QUESTION, "explain": True},
        refused=NO_QUESTION,
    ),
)
"""What is asked while leases of the shape are there."""

MAKING: tuple[Ask, ...] = (
    Ask("POST", "/v1/leases", {**NEW, "start_date": "2030-09-20T10:00:00Z"}, NO_RESERVATIONS),
    Ask("POST", "/v1/leases?dry_run=true", {**NEW, "start_date": "2030-09-21T10:00:00Z"}, NO_RESERVATIONS),
    *(Ask("POST", "/v1/leases", {**NEW, "kind": kind}, NO_RESERVATIONS) for kind in ("immediate", "scheduled")),
    Ask("POST", "/v1/leases", {**NEW, "kind": "retries", "wait": {"until": "+P1D"}}, NO_RESERVATIONS),
    Ask("POST", "/v1/leases", {**NEW, "reminders": [REMINDER]}, {"of a second": 400, **NO_RESERVATIONS}),
    Ask("POST", "/v1/leases", {**NEW, "kind": "best_effort"}, {"all": 403, **NO_RESERVATIONS}),
    Ask("POST", "/v1/leases", {**NEW, "kind": "best_effort"}, {"of most": 400, **NO_RESERVATIONS}, who=OPERATOR),
    Ask("POST", "/v1/leases", {**NEW, "wait": {"until": "+P1D"}, "extend_if_free": {"until": "+P1D"}}, NO_RESERVATIONS),
    *(Ask("POST", f"/v{number}/leases", EARLIER, version="1.0") for number in (1, 2)),
    Ask("POST", "/v1/series?dry_run=true", SERIES, {**NO_RESERVATIONS, "of 15 years": 400}),
    Ask("POST", "/v1/series", SERIES, {**NO_RESERVATIONS, "of 15 years": 400}),
)
"""What makes more of the shape; each is deleted before the next."""

OF_A_SERIES: tuple[Ask, ...] = (
    Ask("GET", "/v1/series"),
    Ask("GET", "/v1/series/{series_id}"),
    Ask("PUT", "/v1/series/{series_id}", {"name": "t"}),
    Ask("PUT", "/v1/series/{series_id}", {"rule": "FREQ=DAILY;COUNT=2"}),
    Ask("PUT", "/v1/series/{series_id}", {"reservations": "{reservations}"}),
    Ask("DELETE", "/v1/series/{series_id}"),
)
"""What is asked of a series of such leases."""

WINDOWS = "/v1/maintenances"
OF_A_WINDOW: tuple[Ask, ...] = (
    Ask("GET", WINDOWS, who=OPERATOR),
    Ask("GET", f"{WINDOWS}/{{maintenance_id}}", who=OPERATOR),
    Ask("PATCH", f"{WINDOWS}/{{maintenance_id}}", {"end_date": "+PT5H"}, who=OPERATOR),
    Ask("POST", f"{WINDOWS}/{{maintenance_id}}/end", who=OPERATOR, refused={"all": 409}),
    Ask("DELETE", f"{WINDOWS}/{{maintenance_id}}", who=OPERATOR),
)
"""What is asked of a maintenance window over such leases."""

OF_A_FEED: tuple[Ask, ...] = (
    Ask("GET", "/v1/feeds"),
    Ask("GET", "/v1/feeds/{feed_id}"),
    Ask("GET", "/feeds/{secret}.ics", version="1.0"),
    Ask("DELETE", "/v1/feeds/{feed_id}"),
)
"""What is asked of a feed with such leases."""

MADE_BEFORE = (
    ("DELETE", "/v1/leases/{lease_id}"),
    ("DELETE", "/v2/leases/{lease_id}"),
    ("POST", "/v1/maintenances"),
    ("POST", "/v1/feeds"),
    ("GET", "/v1/subscriptions"),
    ("GET", "/v1/subscriptions/mine"),
    ("PATCH", "/v1/subscriptions/mine"),
    ("POST", "/v1/subscriptions"),
    ("POST", "/v1/subscriptions/{subscription_id}/test"),
    ("POST", "/v1/subscriptions/{subscription_id}/replay"),
    ("GET", "/v1/subscriptions/{subscription_id}/failures"),
    ("GET", "/v1/subscriptions/{subscription_id}"),
    ("PATCH", "/v1/subscriptions/{subscription_id}"),
    ("DELETE", "/v1/subscriptions/{subscription_id}"),
    ("POST", "/v1/leases"),
    ("PUT", "/v1/os-hosts/{host_id}/allocation"),
    ("PUT", "/v1/devices/{device_id}/allocation"),
    ("PUT", "/v1/resources/{kind}/{resource_id}/allocations"),
)
"""What tests ask themselves, to make and end what is in the table; what needs emptied hosts, or has no leases."""

OTHERS = (
    "/",
    "/versions",
    "/healthcheck",
    "/openapi.json",
    "/v1",
    "/v1/",
    "/v1/info",
    "/v1/history",
    "/v1/properties",
    "/v1/os-hosts",
    "/v1/floatingips",
    "/v1/networks",
    "/v1/devices",
    "/v1/budgets",
    "/v1/charges",
    "/v1/statements",
    "/v1/managers",
    "/v1/power",
    "/v1/price-lists",
    "/v1/rules",
    "/unsubscribe/{subscription_id}/{link_secret}",
    "/v1/problems",
    "/v1/reports/capacity",
    "/v1/reports/demand",
    "/v1/reports/forecast",
    "/v1/reports/usage",
    "/v1/resources",
    "/v2/os-hosts",
    "/v1/networks/{network_id}/allocation",
    "/v1/devices/{device_id}/allocation",
)
"""What has nothing to do with leases of hosts: these, and what is below them but allocations."""
