# SPDX-License-Identifier: Apache-2.0
"""The journal with many entries: how fast they are numbered, and how long a page of them takes to read.

``python -m bench --only journal --databases sqlite,postgresql,mariadb``
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from sqlalchemy.engine import Engine

from bench.ground import BEGIN, database
from blazar.model.base.paging import Page
from blazar.model.journal.entries import FieldChange, JournalEntry, ObjectType, Subject, Verb
from blazar.model.journal.views import JournalQuestion
from blazar.model.leases.requests import Actor
from blazar.store.journal.rows import write_entries
from blazar.store.store import Store
from tests.statements import counted

ENTRIES = 300_000
PROJECTS, PEOPLE, LEASES, HOSTS = 500, 2_000, 60_000, 500
AT_ONCE = 5_000
BATCH = 500
PAGE = 50
RUNS = 30


def make_entries(count: int) -> Iterator[JournalEntry]:
    """Yield entries as a year leaves them: nine of ten of leases, the others of hosts."""
    draw, revisions = random.Random(7), Counter[int]()
    for number in range(count):
        at = BEGIN - timedelta(seconds=100 * (count - number))
        project, person = f"project-{draw.randrange(PROJECTS)}", f"user-{draw.randrange(PEOPLE)}"
        if draw.random() < 0.1:
            host = draw.randrange(HOSTS)
            about = Subject(ObjectType.RESOURCE, f"host/{host}", f"node-{host}")
            failure = (FieldChange("failure", None, "the compute service is down"),)
            yield JournalEntry(about, at, Verb.FAILED, None, failure, snapshot={"label": "h-4kq2mz", "region": ""})
            continue
        lease = draw.randrange(LEASES)
        revisions[lease] += 1
        about = Subject(ObjectType.LEASE, _id_of(lease), f"l{lease}", project, person, revisions[lease])
        verb = draw.choice((Verb.CREATED, Verb.STARTED, Verb.EXTENDED, Verb.BEFORE_END, Verb.ENDED))
        changes = (FieldChange("end_date", "2030-05-02T08:00:00Z", "2030-05-03T08:00:00Z"),)
        snapshot = {"status": "ACTIVE", "start_date": "2030-05-01T08:00:00Z", "end_date": "2030-05-03T08:00:00Z"}
        yield JournalEntry(about, at, verb, Actor(person, project), changes, snapshot=snapshot)


def _id_of(lease: int) -> str:
    return f"{lease:08x}-0000-4000-a000-000000000000"


def fill(store: Store, count: int) -> float:
    """Write entries and number them; return how many were numbered in a second."""
    part: list[JournalEntry] = []
    for entry in make_entries(count):
        part.append(entry)
        if len(part) == AT_ONCE:
            write(store, part)
            part = []
    write(store, part)
    begin, done = time.monotonic(), 0
    while numbered := store.journal.number(BATCH, now=BEGIN):
        done += numbered
    return done / (time.monotonic() - begin)


def write(store: Store, entries: list[JournalEntry]) -> None:
    store.transactions.write(lambda connection: write_entries(connection, entries))


def questions() -> Mapping[str, JournalQuestion]:
    """Return what is asked, by its name: each as it is asked in the middle of a long list."""
    middle = str(ENTRIES // 2)
    page = Page(PAGE, "position", after=middle)
    latest = Page(PAGE, "position", descending=True)
    here = JournalQuestion(page)
    return {
        "at a cursor": here,
        "after a position": JournalQuestion(replace(page, after=None), after=ENTRIES // 2),
        "latest": JournalQuestion(latest),
        "latest of a project": JournalQuestion(latest, project_id="project-7"),
        "of a project at a cursor": replace(here, project_id="project-7"),
        "latest of a lease": JournalQuestion(latest, object_type=ObjectType.LEASE, object_id=_id_of(77)),
        "latest of a host": JournalQuestion(latest, object_type=ObjectType.RESOURCE, object_id="host/7"),
        "latest by a user": JournalQuestion(latest, by="user-7"),
        "latest failures": JournalQuestion(latest, verb=Verb.FAILED),
        "latest of what never was": JournalQuestion(latest, verb=Verb.MERGED),
        "with their number": JournalQuestion(replace(latest, with_count=True)),
    }


def measure(base: str) -> Iterator[dict[str, object]]:
    """Yield the speed of numbering on a database, and the time and statements of each page."""
    with database(base) as engine:
        store = Store(engine)
        yield {"database": base, "entries": ENTRIES, "numbered_per_second": round(fill(store, ENTRIES))}
        for name, question in questions().items():
            yield {"database": base, "page": name, **_measure_page(engine, store, question)}


def _measure_page(engine: Engine, store: Store, question: JournalQuestion) -> dict[str, object]:
    with counted(engine) as statements:
        found = store.journal.page(question)
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        store.journal.page(question)
        times.append(1000 * (time.perf_counter() - begin))
    return {
        "found": len(found.items),
        "median_ms": round(statistics.median(times), 1),
        "most_ms": round(max(times), 1),
        "statements": statements.count,
    }
