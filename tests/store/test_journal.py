# SPDX-License-Identifier: Apache-2.0
"""The journal on each of the databases: what is written together, and numbered so that no reader misses an entry."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from datetime import timedelta
from functools import partial
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from blazar.context import scope
from blazar.model.base.errors import StoreUnavailable
from blazar.model.base.paging import Page
from blazar.model.journal.entries import ENTRIES, FieldChange, JournalEntry, ObjectType, Subject, Verb
from blazar.model.journal.lease_entries import warn_of_maintenance
from blazar.model.journal.views import JournalQuestion
from blazar.model.leases.requests import Actor
from blazar.store.journal.numbering import FIRST_ENTRIES, PORTION, order_rows
from blazar.store.journal.rows import write_announcement, write_entries
from blazar.store.sql import migrate
from blazar.store.sql.engine import WRITES, make_engine
from blazar.store.sql.tables import journal
from blazar.store.store import Store, StoreLimits
from tests.statements import counted, steps
from tests.world import NOON, World, a_host

LATEST = Page(50, "position", descending=True)
HOSTS = ObjectType.RESOURCE
CURIE = Actor("curie", "physics")


def an_entry(name: str, *, project: str | None = "physics", revision: int | None = None) -> JournalEntry:
    about = Subject(ObjectType.RESOURCE, name, name, project, None, revision)
    return JournalEntry(about, NOON, Verb.CHANGED, CURIE, (FieldChange("rack", None, "7"),))


def write(store: Store, *entries: JournalEntry) -> None:
    store.transactions.write(lambda connection: write_entries(connection, entries))


def names(store: Store, after: int = 0, projects: set[str] | None = None, limit: int = 1000) -> list[str | None]:
    return [entry.about.name for entry in store.journal.entries_after(after, projects, limit).items]


def test_entries_are_read_by_their_positions_once_they_have_them(engine):
    store = Store(engine)
    write(store, an_entry("a"), an_entry("b", project="biology"), an_entry("c", project=None))
    assert names(store) == []
    assert store.journal.last_position() == 0
    assert [
        store.journal.number(2, now=NOON),
        store.journal.number(2, now=NOON),
        store.journal.number(2, now=NOON),
    ] == [2, 1, 0]
    assert names(store) == ["a", "b", "c"]
    assert names(store, 1) == ["b", "c"]
    assert names(store, 0, {"physics", "biology"}) == ["a", "b"]
    assert names(store, 0, None, 2) == ["a", "b"]
    assert store.journal.last_position() == 3
    first = store.journal.entries_after(0, None, 1).items[0]
    assert (first.position, first.past.by, first.past.verb) == (1, CURIE, Verb.CHANGED)
    assert first.past.changes == (FieldChange("rack", None, "7"),)


def test_an_entry_says_which_request_did_it(engine):
    store = Store(engine)
    with scope(request_id="req-cloud", local_id="req-here"):
        write(store, an_entry("a"))
    with scope(request_id="req-here"):
        write(store, an_entry("b"))
    store.journal.number(10, now=NOON)
    found = [(entry.request_id, entry.global_request_id) for entry in store.journal.entries_after(0, None, 10).items]
    assert found == [("req-here", "req-cloud"), ("req-here", None)]


def test_an_entry_of_a_lease_tells_whose_it_is_and_how_it_stands(engine):
    world = World(engine)
    with scope(actor=CURIE):
        lease = world.lease(a_host())
    world.run_to(lease.window.end + timedelta(hours=1))
    assert world.manager.journal_numbering.run_once() == 3 + 4, "three hosts were registered"
    created, *_, ended = world.store.journal.entries_after(0, {"physics"}, 10).items
    assert created.about == Subject(ObjectType.LEASE, lease.id, lease.name, "physics", lease.user_id, 0)
    assert created.past.moves[0].come_count == 1
    assert created.past.moves[0].come
    assert created.snapshot == {
        "status": "CREATING",
        "start_date": "2030-04-01T12:00:00Z",
        "end_date": created.snapshot["end_date"],
        "before_end_date": created.snapshot["before_end_date"],
    }
    assert (ended.past.verb, ended.snapshot["status"], ended.past.by) == (Verb.ENDED, "TERMINATED", None)


def test_nothing_to_number_is_one_read_and_any_number_of_entries_a_few_statements(engine):
    store = Store(engine)
    with counted(engine) as idle:
        assert store.journal.number(500, now=NOON) == 0
    assert idle.count == 1
    counts = []
    for number in (1, 1, 100):
        write(store, *(an_entry(f"n{number}-{item}", revision=1) for item in range(number)))
        with counted(engine) as statements:
            assert store.journal.number(500, now=NOON) == number
        counts.append(statements.count)
    assert counts[1] == counts[2] <= 6


FREQUENT = Verb.CHANGED
RARE = {
    "of a kind": {"verb": Verb.REMOVED},
    "by somebody": {"by": "bohr"},
    "by somebody, of a frequent kind": {"by": "bohr", "verb": FREQUENT},
    "of a project": {"project_id": "chemistry"},
    "of a project, of a frequent kind": {"project_id": "chemistry", "verb": FREQUENT, "object_type": HOSTS},
    "of an object": {"object_type": HOSTS, "object_id": "rare"},
    "of an object, of a frequent kind": {"object_type": HOSTS, "object_id": "rare", "verb": FREQUENT},
}
FIND = {
    name: partial(lambda asked, journal: journal.page(JournalQuestion(LATEST, **asked)), it)
    for name, it in RARE.items()
}
FIND["of a user, who is far behind"] = lambda journal: journal.entries_after(1, None, 50, user_id="curie")


@pytest.mark.parametrize("find", FIND.values(), ids=FIND)
def test_what_is_rare_is_found_in_as_many_steps_however_much_else_there_is(sqlite, find):
    store = Store(sqlite)
    about = Subject(HOSTS, "rare", "rare", "chemistry", "curie")
    rare = (JournalEntry(about, NOON, verb, Actor("bohr", "chemistry")) for verb in (Verb.REMOVED, FREQUENT))
    write(store, an_entry("first"), *rare)
    assert measure_growth(sqlite, store, find) == {"rare"}


def test_the_latest_of_a_type_that_most_are_of_are_found_likewise(sqlite):
    measure_growth(sqlite, Store(sqlite), lambda journal: journal.page(JournalQuestion(LATEST, object_type=HOSTS)))


def measure_growth(engine, store, find) -> set[str | None]:
    """Find entries among some and among twice as many others, in equal steps; return the names of those found."""
    counts = []
    for _ in range(2):
        write(store, *(an_entry(f"host-{number}") for number in range(200)))
        store.journal.number(1000, now=NOON)
        with steps(engine) as done:
            found = find(store.journal).items
        counts.append(done.count)
    assert counts[0] == counts[1] > 0
    return {entry.about.name for entry in found}


def test_entries_of_one_object_get_the_order_of_its_revisions_and_others_that_of_their_insertion():
    rows = [(1, "a", 2), (2, "b", 7), (3, "c", None), (4, "a", 1), (5, "c", None), (6, "a", 3)]
    assert order_rows(rows) == [4, 2, 3, 1, 5, 6]


def test_what_is_committed_later_than_what_has_a_higher_number_is_read_later(engine):
    """The reason for positions: with numbers of insertion the reader would have gone past the first one."""
    if engine.dialect.name == "sqlite":
        pytest.skip("one writer at a time")
    store = Store(engine)
    with engine.execution_options(**{WRITES: True}).begin() as slow:
        write_entries(slow, [an_entry("slow")])
        write(store, an_entry("fast"))
        assert store.journal.number(500, now=NOON) == 1
        assert names(store) == ["fast"]
    seen = store.journal.last_position()
    assert store.journal.number(500, now=NOON) == 1
    assert names(store, seen) == ["slow"]
    with engine.connect() as connection:
        by_insertion = connection.execute(sa.select(journal.c.object_id).order_by(journal.c.seq)).scalars().all()
    assert by_insertion == ["slow", "fast"]


WRITERS, TRANSACTIONS = 6, 40


class Race:
    """Writers whose transactions overlap, two that number, and one that reads on after the last position it saw."""

    def __init__(self, engine: sa.Engine) -> None:
        self.store = Store(engine)
        self.engine = engine
        self.read: list[tuple[int, str]] = []
        self.errors: list[Exception] = []
        self._written = threading.Event()

    def write(self, writer: int) -> None:
        chance = random.Random(writer)
        for number in range(TRANSACTIONS):
            # Opened by hand: the entry is there, and the commit waits for transactions that began after it.
            with self.engine.execution_options(**{WRITES: True}).begin() as connection:
                write_entries(connection, [an_entry(f"{writer}", revision=number)])
                for _ in range(chance.randrange(6)):
                    connection.execute(sa.select(sa.func.count()).select_from(journal)).scalar()

    def number(self) -> None:
        store = Store(self.engine)
        while not self._written.is_set() or store.journal.number(7, now=NOON):
            store.journal.number(7, now=NOON)

    def follow(self) -> None:
        after = 0
        while len(self.read) < WRITERS * TRANSACTIONS:
            for entry in self.store.journal.entries_after(after, {"physics"}, 5).items:
                after = entry.position
                self.read.append((entry.position, f"{entry.about.id}/{entry.about.revision}"))
            if self._written.is_set() and after == self.store.journal.last_position() == WRITERS * TRANSACTIONS:
                break

    def run(self) -> None:
        def guard(work, *arguments):
            try:
                work(*arguments)
            except Exception as error:
                self.errors.append(error)

        writers = [threading.Thread(target=guard, args=(self.write, number)) for number in range(WRITERS)]
        others = [threading.Thread(target=guard, args=(work,)) for work in (self.number, self.number, self.follow)]
        for thread in (*writers, *others):
            thread.start()
        for thread in writers:
            thread.join(60)
        self._written.set()
        for thread in others:
            thread.join(60)
        assert not any(thread.is_alive() for thread in (*writers, *others))


def test_a_reader_misses_nothing_and_reads_nothing_twice_however_transactions_overlap(engine):
    if engine.dialect.name == "sqlite":
        pytest.skip("one writer at a time")
    race = Race(engine)
    race.run()
    assert race.errors == []
    positions, told = zip(*race.read, strict=True)
    assert list(positions) == list(range(1, WRITERS * TRANSACTIONS + 1)), "without gaps, in order"
    every = [f"{writer}/{number}" for writer in range(WRITERS) for number in range(TRANSACTIONS)]
    assert sorted(told) == sorted(every)
    for writer in range(WRITERS):
        revisions = [int(text.partition("/")[2]) for text in told if text.startswith(f"{writer}/")]
        assert revisions == sorted(revisions)


def test_a_long_history_of_anything_loses_its_middle_once_that_is_numbered(engine):
    store = Store(engine, limits=StoreLimits(history_entries=10))
    for number in range(140):
        write(store, replace(an_entry("host"), changes=(FieldChange("rack", None, str(number)),)))
    assert store.journal.number(500, now=NOON) == 140
    write(store, an_entry("other"))
    store.journal.number(500, now=NOON)
    told = [entry for entry in store.journal.entries_after(0, None, 1000).items if entry.about.id == "host"]
    assert len(told) <= FIRST_ENTRIES + 1 + 10 + PORTION
    (out,) = [entry for entry in told if entry.past.verb is Verb.LEFT_OUT]
    assert out.past.changes == (FieldChange(ENTRIES, None, str(140 - len(told) + 1)),)
    assert out.position == told[told.index(out) + 1].position - 1
    assert names(store, 140) == ["other"]
    # New entries go on after all that there ever were.
    write(store, an_entry("last"))
    store.journal.number(500, now=NOON)
    assert store.journal.entries_after(141, None, 5).items[0].position == 142


def test_what_was_done_to_all_but_leases_is_forgotten_after_a_time_and_never_before_it_can_be_read(engine):
    world = World(engine)
    world.lease(a_host())
    store, later = world.store, world.clock.now() + timedelta(days=1)
    assert store.journal.forget(later, 10) == 0, "nothing is numbered"
    store.journal.number(500, now=NOON)
    assert store.journal.forget(world.clock.now() - timedelta(days=1), 10) == 0
    with counted(engine) as statements:
        assert [store.journal.forget(later, 2), store.journal.forget(later, 2)] == [2, 1]
    assert statements.count == 4
    assert [entry.about.object_type for entry in store.journal.entries_after(0, None, 10).items] == [ObjectType.LEASE]
    assert store.journal.last_position() == 4


def test_positions_go_on_where_they_were_although_the_last_entries_are_gone(engine):
    store = Store(engine)
    write(store, an_entry("a"), an_entry("b"))
    store.journal.number(500, now=NOON)
    store.transactions.write(lambda connection: connection.execute(journal.delete()))
    write(store, an_entry("c"))
    store.journal.number(500, now=NOON)
    assert [entry.position for entry in store.journal.entries_after(0, None, 5).items] == [3]


def test_the_user_who_gives_away_a_lease_is_told_of_it_as_it_was_and_the_taker_as_it_is(engine):
    world = World(engine)
    lease = world.lease(a_host())
    found = world.store.leases.one(lease.id)
    with scope(actor=Actor("noether", "maths"), operation=Verb.TRANSFERRED):
        given = replace(found, project_id="maths", user_id="noether")
        world.store.leases.save(found, given, at=world.clock.now())
    world.manager.journal_numbering.run_once()
    last = world.store.journal.last_position()
    by_project = {
        project: world.store.journal.entries_after(last - 2, {project}, 5).items for project in ("physics", "maths")
    }
    told = {project: [(e.past.verb, e.about.user_id) for e in entries] for project, entries in by_project.items()}
    assert told == {"physics": [(Verb.TRANSFERRED, lease.user_id)], "maths": [(Verb.TRANSFERRED, "noether")]}
    history = world.store.history.page(lease.id, replace(Page(10, "at"), with_count=True))
    assert history.count == 2
    assert [str(entry.verb) for entry in history.items] == ["created", "transferred"]


def test_a_commit_of_this_process_wakes_who_numbers_and_that_wakes_who_reads(engine):
    world = World(engine)
    world.manager.journal_numbering.run_once()
    woken: list[int] = []
    store = world.store
    store.journal.listen(lambda: woken.append(store.journal.last_position()))
    world.lease(a_host())
    assert woken == [3]
    assert world.manager.journal_numbering.run_once() == 1
    assert world.manager.journal_numbering.run_once() == 0


def test_histories_of_leases_are_carried_into_the_journal_and_back(database_url):
    engine = make_engine(database_url)
    migrate.upgrade(engine)
    world = World(engine)
    leases = [world.lease(a_host(), name=f"l{number}") for number in range(2)]
    for number in range(3):
        world.clock.by(minutes=1)
        for lease in leases:
            world.change(lease, name=f"{lease.name}-{number}")
    write(world.store, an_entry("host"))
    told = {lease.id: world.store.history.page(lease.id, Page(50, "at")).items for lease in leases}
    assert {len(items) for items in told.values()} == {4}
    # What owners are told of a revision, besides what made it, had no place there.
    last, said = world.now(leases[0]), warn_of_maintenance(leases[0].window, "stays")
    world.store.transactions.write(partial(write_announcement, lease=last, announces=said, at=world.clock.now()))
    migrate.downgrade(engine, "1002")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM lease_history").scalar() == 8
    migrate.upgrade(engine)
    assert {lease.id: world.store.history.page(lease.id, Page(50, "at")).items for lease in leases} == told
    carried = world.store.journal.entries_after(0, {"physics"}, 50).items
    assert [entry.position for entry in carried] == list(range(1, 9))
    assert [entry.past.at for entry in carried] == sorted(entry.past.at for entry in carried)
    assert len({entry.past.id for entry in carried}) == 8
    assert {len(entry.past.id) for entry in carried} == {36}
    for lease in leases:
        of_one = [entry.about.revision for entry in carried if entry.about.id == lease.id]
        assert of_one == sorted(of_one)
    assert world.store.journal.last_position() == 8
    engine.dispose()


def configured(store: Store) -> list[tuple[FieldChange, ...]]:
    store.journal.number(100, now=NOON)
    entries = store.journal.entries_after(0, None, 100).items
    return [entry.past.changes for entry in entries if entry.past.verb is Verb.CONFIGURED]


def test_what_a_giver_is_told_of_a_lease_has_its_bounds_too_and_others_keep_theirs(engine):
    world = World(engine)
    lease = world.lease(a_host())
    store = Store(engine, limits=StoreLimits(history_entries=10))
    given = Subject(ObjectType.LEASE, lease.id, "given", "physics", "curie", None)
    own = replace(given, revision=1, project_id="biology")
    for number in range(150):
        kinds = [given] if number % 2 else [given, replace(given, project_id="art"), replace(own, revision=number + 1)]
        write(store, *(JournalEntry(about, NOON, Verb.TRANSFERRED, CURIE) for about in kinds))
        while store.journal.number(100, now=NOON):
            pass
    entries = store.journal.entries_after(0, None, 1000).items
    told = [entry for entry in entries if entry.about.revision is None and entry.about.project_id == "physics"]
    assert len(told) <= 100 + 1 + 10 + 10
    (out,) = [entry for entry in told if entry.past.verb is Verb.LEFT_OUT]
    assert int(out.past.changes[0].after or "") + len(told) - 1 == 150
    assert (out.about.project_id, out.past.by, told[100]) == ("physics", None, out)
    assert [entry.position for entry in told] == sorted(entry.position for entry in told)
    assert len([entry for entry in entries if entry.about.project_id == "art"]) == 75
    assert len([entry for entry in entries if entry.about.project_id == "biology"]) == 75
    # What is told to one who has given it away is no part of the history of the lease.
    history = store.history.page(lease.id, Page(1000, "at")).items
    assert len(history) == 75 + 1


def test_what_was_configured_is_told_by_names_and_once_by_many_managers(engine):
    store = Store(engine)
    first = {"[manager] claim_ttl": "11", "policy blazar:leases:get": "22"}
    then = {"[manager] claim_ttl": "33", "[mail] sender": "44"}
    for options, version in ((first, "19.0"), (first, "19.0"), (then, "19.0"), (then, "19.1"), ({}, "19.1")):
        note = partial(store.journal.note_configuration, options, version=version, at=NOON)
        starts = [threading.Thread(target=note) for _ in range(4)]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
    assert configured(store) == [
        (
            FieldChange("version", None, "19.0"),
            FieldChange("[manager] claim_ttl", None, "set"),
            FieldChange("policy blazar:leases:get", None, "set"),
        ),
        (
            FieldChange("[mail] sender", None, "set"),
            FieldChange("[manager] claim_ttl", "set", "set"),
            FieldChange("policy blazar:leases:get", "set", None),
        ),
        (FieldChange("version", "19.0", "19.1"),),
        (FieldChange("[mail] sender", "set", None), FieldChange("[manager] claim_ttl", "set", None)),
    ]


def test_the_configuration_is_written_with_the_first_round_after_an_outage(engine):
    world = World(engine)
    world.manager.journal_numbering.tell_configuration({"[manager] claim_ttl": "11"})
    away = StoreUnavailable("the database is away")
    with patch.object(world.store.journal, "note_configuration", side_effect=away), pytest.raises(StoreUnavailable):
        world.manager.journal_numbering.run_once()
    for _ in range(3):
        world.manager.journal_numbering.run_once()
    assert len(configured(world.store)) == 1
