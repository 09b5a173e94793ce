# SPDX-License-Identifier: Apache-2.0
"""The grid: requests over hosts × leases."""

from __future__ import annotations

import gc
import itertools
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial

from bench.ground import BEGIN, END, Ground, database
from bench.kinds import Kind, Room
from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.api.leases.services import LeaseServices
from blazar.model.base.clock import zulu
from blazar.store.leases.pages import SORT_KEYS
from tests.statements import counted

FORMAT = "%Y-%m-%d %H:%M"
CREATORS = 8
MODERN = {"OpenStack-API-Version": f"reservation {as_text(MAX_VERSION)}"}
MEMBER = {"X-Auth-Token": "u:another"}
"""Somebody of a project to which nothing is promised: all that is shown is of others, and merged."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement; times in milliseconds. ``hosts`` counts addresses where the type takes these."""

    database: str
    type: str
    request: str
    hosts: int
    leases: int
    median_ms: float
    p99_ms: float
    statements: int
    samples: int


def body(kind: Kind, room: Room, shift: int = 0) -> dict[str, object]:
    start, end = BEGIN + timedelta(minutes=shift), END + timedelta(minutes=shift)
    return {
        "name": "measured",
        "start_date": f"{start:{FORMAT}}",
        "end_date": f"{end:{FORMAT}}",
        "reservations": [{"resource_type": kind.resource_type, **room}],
    }


def measure(
    base: str, hosts: list[int], leases: list[int], kinds: list[Kind], say: Callable[[Figure], None]
) -> Iterator[Figure]:
    """Measure every request on every cell of the grid, each type among leases of its own."""
    for kind, number in itertools.product(kinds, hosts):
        with database(base) as engine:
            ground = Ground(engine, number, kind=kind)
            for count in leases:
                ground.fill(count, most=max(leases))
                for figure in cell(base, ground, number, count):
                    say(figure)
                    yield figure


def cell(base: str, ground: Ground, hosts: int, leases: int) -> Iterator[Figure]:
    """Measure one cell."""
    http, type_ = ground.http, ground.kind.resource_type

    def timed(name: str, samples: int, act: Callable[[], object], after: Callable[[], None] = lambda: None) -> Figure:
        spans = []
        act()
        after()
        with counted(ground.engine) as statements:
            act()
        after()
        gc.collect()
        for _ in range(samples):
            begin = time.perf_counter()
            act()
            spans.append(1000 * (time.perf_counter() - begin))
            after()
        p99 = sorted(spans)[max(0, math.ceil(0.99 * len(spans)) - 1)]
        return Figure(base, type_, name, hosts, leases, statistics.median(spans), p99, statements.count, samples)

    made: list[str] = []

    def create(room: Room) -> Callable[[], None]:
        def act() -> None:
            answer = http.post("/v1/leases", json=body(ground.kind, room))
            assert answer.status_code == 201, answer.text
            made.append(answer.json["lease"]["id"])

        return act

    def remove() -> None:
        for lease in made:
            assert http.delete(f"/v1/leases/{lease}").status_code == 204
        made.clear()

    def get(path: str) -> Callable[[], None]:
        def act() -> None:
            headers = MODERN if path.startswith("/v1/resources") else {}
            answer = http.get(path, headers=headers)
            # A long list is sent while it is read: without its end it is not measured.
            assert answer.status_code == 200
            assert answer.data

        return act

    free = hosts - len(ground.busy)
    for number, (name, room) in enumerate(ground.kind.creates.items()):
        if free >= ground.kind.least_free.get(name, 0):
            yield timed(name, 40 if number else 100, create(room), remove)
    create(ground.kind.filled)()
    yield timed("show", 50, get(f"/v1/leases/{made[0]}"))
    remove()
    slow = leases >= 100_000 or hosts >= 10_000
    yield timed("find a time", 10 if slow else 100, partial(find, ground, hosts))
    for what, token in (("calendar", MEMBER), ("calendar, operator", {}), ("capacity", MEMBER)):
        yield timed(what, 5 if slow else 20, partial(look, ground, what.partition(",")[0], token))
    leases_of_api = ground.app.extensions["blazar"].feature(LeaseServices)
    yield timed("list by created_at, unknown", 5 if slow else 20, partial(page_unknown, ground))
    for key in SORT_KEYS:
        yield timed(f"list by {key}", 5 if slow else 20, partial(page, ground, sort_key=key))
    yield timed("list, past", 5 if slow else 20, partial(page, ground, state="past"))
    begin = time.perf_counter()
    with counted(ground.engine) as statements:
        leases_of_api.rendered["v1"].forget()
        get("/v1/leases")()
    span = 1000 * (time.perf_counter() - begin)
    yield Figure(base, type_, "list, cold", hosts, leases, span, span, statements.count, 1)
    yield timed("list", 5, get("/v1/leases"))
    for name, path in ground.kind.lists.items():
        yield timed(name, 1 if slow else 5, get(path))


def look(ground: Ground, what: str, token: dict[str, str]) -> int:
    """Show the month of the ground: a page of as many resources as there can be, or steps of an hour.

    Return the bytes of the answer, as what else only reads does.
    """
    more = {"calendar": "limit=1000", "capacity": "step=1h"}[what]
    path = f"/v1/{what}?resource_type={ground.kind.resource_type}&from={zulu(BEGIN)}&to={zulu(END)}&{more}"
    answer = ground.http.get(path, headers={**MODERN, **token})
    assert answer.status_code == 200, answer.text
    return len(answer.data)


def page(ground: Ground, **query: str) -> int:
    """List a page of leases with all that 1.1 shows of them."""
    answer = ground.http.get("/v1/leases", query_string={"limit": 100, **query}, headers=MODERN)
    assert answer.status_code == 200, answer.text
    return len(answer.data)


def page_unknown(ground: Ground) -> int:
    """List a page that the API has not answered before."""
    ground.app.extensions["blazar"].feature(LeaseServices).pages.forget()
    return page(ground, sort_key="created_at")


def find(ground: Ground, hosts: int) -> int:
    """Ask when more fits than is free before the end of the month: so all of the month is searched, and explained."""
    room = ground.kind.searches(hosts, hosts - len(ground.busy))
    question = {
        "reservations": [{"resource_type": ground.kind.resource_type, **room}],
        "duration": "P3D",
        "earliest": zulu(BEGIN),
        "latest": zulu(END + timedelta(days=10)),
    }
    answer = ground.http.post("/v1/availability", json=question, headers=MODERN)
    assert answer.status_code == 200, answer.text
    assert answer.json["availability"]["openings"], answer.text
    return len(answer.data)


def throughput(kind: str, *, hosts: int = 1000, leases: int = 1000, each: int = 25) -> dict[str, object]:
    """Let eight creators book at once; return leases a second."""
    with database(kind) as engine:
        ground = Ground(engine, hosts)
        ground.fill(leases, most=leases)
        statuses: list[int] = []

        def creator(number: int) -> None:
            http = ground.app.test_client()
            for turn in range(each):
                # After the month of the ground, where all hosts are free: the rivals want the same hosts.
                statuses.append(
                    http.post("/v1/leases", json=body(ground.kind, ground.kind.filled, shift=60 * 24 * 40)).status_code
                )
                assert turn >= 0 <= number

        threads = [threading.Thread(target=creator, args=(number,)) for number in range(CREATORS)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        span = time.perf_counter() - begin
    return {
        "database": kind,
        "creators": CREATORS,
        "hosts": hosts,
        "leases": leases,
        "created": statuses.count(201),
        "refused": len(statuses) - statuses.count(201),
        "per_second": round(statuses.count(201) / span, 1),
    }


def exponents(figures: list[Figure]) -> list[dict[str, object]]:
    """Return how time grows: the exponent b of time ~ size^b between neighbouring sizes of 1 000 and more."""
    found = []
    for axis, other in (("leases", "hosts"), ("hosts", "leases")):
        groups: dict[tuple[object, ...], list[dict[str, object]]] = {}
        for figure in map(asdict, figures):
            groups.setdefault((figure["database"], figure["type"], figure["request"], figure[other]), []).append(figure)
        for (base, type_, request, size), group in groups.items():
            points = sorted((f for f in group if f[axis]), key=lambda f: f[axis])
            if len(points) < 2:
                continue
            first, last = points[0], points[-1]
            growth = math.log(last["median_ms"] / first["median_ms"]) / math.log(last[axis] / first[axis])
            found.append(
                {
                    "database": base,
                    "type": type_,
                    "request": request,
                    "in": axis,
                    other: size,
                    "exponent": round(growth, 2),
                }
                | {"from": first[axis], "to": last[axis]}
            )
    return found
