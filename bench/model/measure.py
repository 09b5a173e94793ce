# SPDX-License-Identifier: Apache-2.0
"""Costs of requests, measured: CPU of this process and of the database, statements, rows, bytes of answers.

Both are CPU, which a machine that does other things, too, changes far less than the time until an answer is there.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from sqlalchemy import event
from sqlalchemy.engine import Engine

from bench.ground import Ground, database
from bench.model.costs import Cost, Point
from bench.requests import body, find, look, page
from blazar.cmd import process

Measured = TypeVar("Measured")

SIZES = ((100, 1000), (100, 10_000), (1000, 10_000))
"""Hosts and leases: of the largest each is a tenth in one of the others."""
SAMPLES = 15


def _do_nothing() -> None:
    """Need nothing before or after a request."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is measured, which returns the bytes of its answer, and what has to be done before and after it."""

    act: Callable[[], int]
    before: Callable[[], object] = _do_nothing
    after: Callable[[], object] = _do_nothing

    def measure(self, meter: Callable[[Callable[[], int]], Measured]) -> Measured:
        """Return what a meter says of the request."""
        self.before()
        try:
            return meter(self.act)
        finally:
            self.after()


class Processors:
    """The CPU that was used by this process, and by the processes of PostgreSQL for it, where these are at hand.

    SQLite works in this process; of MariaDB, whose connections are threads, nothing is seen.
    """

    def __init__(self, engine: Engine) -> None:
        self._backends: list[Path] = []
        if engine.dialect.name == "postgresql":
            with engine.connect() as connection:
                query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                pids = connection.exec_driver_sql(query).scalars().all()
            self._backends = [path for pid in pids if os.access(path := Path(f"/proc/{pid}/schedstat"), os.R_OK)]

    def ours(self) -> float:
        """Return the seconds that this process has used."""
        return time.process_time()

    def database(self) -> float:
        """Return the seconds that the database has used for connections that there were when this was made."""
        return sum(int(path.read_text("ascii").split()[0]) for path in self._backends) / 1e9


class Asked:
    """What was asked of a database in a while."""

    def __init__(self) -> None:
        self.statements, self.rows = 0, 0

    def note(self, connection: object, cursor: object, *_: object) -> None:
        self.statements += 1
        self.rows += max(0, getattr(cursor, "rowcount", 0))


@contextmanager
def asked_of(engine: Engine) -> Iterator[Asked]:
    """Note what is asked of an engine in the block."""
    asked = Asked()
    event.listen(engine, "after_cursor_execute", asked.note)
    try:
        yield asked
    finally:
        event.remove(engine, "after_cursor_execute", asked.note)


def measure(base: str, sizes: Sequence[tuple[int, int]] = SIZES, samples: int = SAMPLES) -> Iterator[Point]:
    """Yield what each request costs in each size, as the median of some."""
    for hosts, leases in sizes:
        with database(base) as engine:
            ground = Ground(engine, hosts)
            ground.fill(leases, most=leases)
            process.settle()
            for name, request in requests_of(ground, hosts).items():
                # The first one warms what is kept between requests.
                _, *costs = [request.measure(partial(cost_of, engine)) for _ in range(samples + 1)]
                parts = zip(*((c.cpu_ms, c.database_ms, c.statements, c.rows, c.bytes) for c in costs), strict=True)
                yield Point(name, hosts, leases, Cost(*map(statistics.median, parts)))


def requests_of(ground: Ground, hosts: int) -> Mapping[str, Request]:
    """Return what users ask, by name."""

    def create() -> int:
        answer = ground.http.post("/v1/leases", json=body(ground.kind, ground.kind.filled))
        assert answer.status_code == 201, answer.text
        made.append(answer.json["lease"]["id"])
        return len(answer.data)

    def delete() -> int:
        answer = ground.http.delete(f"/v1/leases/{made.pop()}")
        assert answer.status_code == 204, answer.text
        return 0

    def show() -> int:
        return len(ground.http.get(f"/v1/leases/{made[-1]}").data)

    made: list[str] = []
    return {
        "create": Request(create, after=delete),
        "delete": Request(delete, before=create),
        "show": Request(show, before=create, after=delete),
        "page of 100": Request(partial(page, ground, sort_key="start_date")),
        "find a time": Request(partial(find, ground, hosts)),
        "calendar": Request(partial(look, ground, "calendar", {})),
    }


def cost_of(engine: Engine, act: Callable[[], int]) -> Cost:
    """Return what one request costs. Our CPU is that of API, manager, and the caller, which is small."""
    processors = Processors(engine)
    with asked_of(engine) as asked:
        ours, database = processors.ours(), processors.database()
        size = act()
        ours, database = processors.ours() - ours, processors.database() - database
    return Cost(1000 * ours, 1000 * database, asked.statements, asked.rows, size)
