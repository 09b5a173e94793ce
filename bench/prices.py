# SPDX-License-Identifier: Apache-2.0
"""What prices cost: searches with and without a quote, creations with and without a ledger, in pairs.

Each pair is the same request, once with a price list and once as if none was published, in an order that is drawn; so
what else the machine does falls on both. Measured is the time of the processor in the service: that of another process
of a database is not in it. ``python -m bench --only prices --databases sqlite,postgresql``
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial

from sqlalchemy.engine import Engine

from bench.ground import BEGIN, END, Ground, database
from blazar.model.base.clock import zulu
from blazar.model.leases.requests import Actor

PAIRS = 150
MODERN = {"OpenStack-API-Version": "reservation 1.1"}
HOUR = timedelta(hours=1)
DOCUMENT = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2020-01-01T00:00:00Z",
    "time_zone": "Europe/Berlin",
    "prices": [
        {"sku": "host-large", "measure": "host", "requirement": [">=", "$vcpus", 10**6], "per_hour": "3.20"},
        {"sku": "host", "measure": "host", "per_hour": "0.80"},
        {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.013"},
    ],
    "fee": "5.00",
    "hours": [{"days": ["MO", "TU", "WE", "TH", "FR"], "from": "09:00", "to": "18:00", "factor": "1.25"}],
    "lead": [{"below": "PT24H", "factor": "1.10"}],
    "amount": [{"above": 16, "factor": "1.20"}],
    "minimum": "PT1H",
    "round_up": "PT1M",
    "cancellation": [
        {"before_start": "P7D", "share": "0"},
        {"before_start": "PT24H", "share": "0.25"},
        {"share": "0.50"},
    ],
}
"""The list of the page on prices."""


LIMITS = {"search, 2 hosts": 11, "search, 10 hosts": 12, "create": 8}
"""At most how many percent of CPU a price list adds where hosts are few, so that what it adds is most: a fifth above
the mean of measurements. With 1000 hosts and 10 000 leases a ledger costs half of that."""


def list_exceeded(base: str) -> list[str]:
    """Return a sentence for each request to which a price list adds more than its limit."""
    with database(base) as engine:
        ground = _open_ground(engine, hosts=10)
        asked = {f"search, {count} hosts": partial(search, ground, count, 1) for count in (2, 10)}
        found = {name: compare(ground, ask) for name, ask in {**asked, "create": partial(create, ground)}.items()}
    return [
        f"{base}: a price list adds {found[name]['added_percent']} % to a {name}, and {most} % at most"
        for name, most in LIMITS.items()
        if found[name]["added_percent"] > most
    ]


def _open_ground(engine: Engine, hosts: int, leases: int = 0) -> Ground:
    """Return a service with a price list."""
    ground = Ground(engine, hosts)
    if leases:
        ground.fill(leases, most=leases)
    ground.manager.price_lists.publish(DOCUMENT, Actor("olga", "operators"))
    time.sleep(1)
    # What is read for the first time is not what is measured.
    ground.store.resources.catalog("host")
    return ground


def measure(base: str) -> Iterator[dict[str, object]]:
    """Yield what a price list adds to searches and creations on a database."""
    for hosts, leases in ((10, 0), (1000, 10_000)):
        with database(base) as engine:
            ground = _open_ground(engine, hosts, leases)
            here = {"database": base, "hosts": hosts, "leases": leases}
            for count, openings in ((2, 1), (2, 10), (min(hosts, 50), 1)):
                name = f"search, {count} hosts, {openings} openings"
                yield {**here, "request": name, **compare(ground, partial(search, ground, count, openings))}
            yield {**here, "request": "create", **compare(ground, partial(create, ground))}


def compare(ground: Ground, ask: Callable[[], float]) -> dict[str, float]:
    """Return the medians without and with prices, and of what each pair says that they add."""
    draw, plain, priced = random.Random(7), list[float](), list[float]()
    for pair in range(PAIRS + 5):
        found = {}
        for with_prices in draw.sample((False, True), 2):
            with nullcontext() if with_prices else ignoring_prices(ground):
                found[with_prices] = ask()
        if pair >= 5:
            plain.append(found[False])
            priced.append(found[True])
    more = statistics.median(after - before for before, after in zip(plain, priced, strict=True))
    return {
        "plain_ms": round(statistics.median(plain), 3),
        "priced_ms": round(statistics.median(priced), 3),
        "added_ms": round(more, 3),
        "added_percent": round(100 * more / statistics.median(plain), 1),
    }


@contextmanager
def ignoring_prices(ground: Ground) -> Iterator[None]:
    """Let the service know of no price list while the block runs."""
    lists, ledger = ground.store.price_lists, ground.store.bookings._ledger
    known, begin = lists.known, ledger.begin
    lists.known = lambda: ()
    ledger.begin = lambda *_: None
    try:
        yield
    finally:
        lists.known, ledger.begin = known, begin


def search(ground: Ground, count: int, openings: int) -> float:
    """Look for free time; return the milliseconds that it takes."""
    question = {
        "reservations": [{"resource_type": "physical:host", "min": count}],
        "duration": "PT47H",
        "earliest": zulu(BEGIN + HOUR),
        "latest": zulu(END + timedelta(days=10)),
        "limit": openings,
    }
    return _time(lambda: ground.http.post("/v1/availability", json=question, headers=MODERN), 200)


def create(ground: Ground) -> float:
    """Book two hosts after all that is booked, and delete the lease; return the milliseconds of the booking."""
    start = END + 24 * HOUR
    wanted = {
        "name": f"bench-{time.monotonic_ns()}",
        "start_date": zulu(start),
        "end_date": zulu(start + 47 * HOUR),
        "reservations": [{"resource_type": "physical:host", "min": 2}],
    }
    made: list[str] = []

    def book() -> object:
        answer = ground.http.post("/v1/leases", json=wanted, headers=MODERN)
        made.append(answer.json["lease"]["id"])
        return answer

    taken = _time(book, 201)
    ground.http.delete(f"/v1/leases/{made[0]}", headers=MODERN)
    return taken


def _time(ask: Callable[[], object], status: int) -> float:
    begin = time.thread_time()
    answer = ask()
    taken = 1000 * (time.thread_time() - begin)
    assert getattr(answer, "status_code", None) == status, answer
    return taken
