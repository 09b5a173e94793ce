# SPDX-License-Identifier: Apache-2.0
"""Three minutes of ``make soak``; the page of ``tests/soak`` tells what that is. And that it cuts what it says."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from blazar.store.sql.engine import make_engine
from tests.conftest import fresh_database
from tests.soak.cutter import Cutter, Spared
from tests.soak.run import soak

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("database", "minutes", "cut"), [pytest.param("postgresql", 2, 20, marks=pytest.mark.nightly), ("mariadb", 1, None)]
)
def test_nothing_is_found_while_managers_are_killed_and_stopped(database, minutes, cut):
    seed = os.environ.get("BLAZAR_SEED")
    report = soak(minutes, database=database, seed=None if seed is None else int(seed), cut=cut)
    print(report)
    assert report.deeds["SIGSTOP"] + report.deeds["kill -9"] >= 4 * minutes
    assert report.leases >= 8 * minutes
    assert not report.findings
    assert cut is None or report.deeds["connections cut"] >= 3 * minutes


def ask(engine):
    """Return what a statement on a connection that is open says: nothing if it was cut."""
    with engine.connect() as connection:
        try:
            return connection.exec_driver_sql("SELECT 7").scalar()
        except sa.exc.OperationalError:
            return None


@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_all_connections_are_cut_but_those_of_who_checks(database, tmp_path):
    with contextmanager(fresh_database)(database, tmp_path) as url:
        ours, theirs, deeds = make_engine(url), make_engine(url), Counter()
        spared = Spared(ours)
        assert (ask(ours), ask(theirs)) == (7, 7)
        cutter = Cutter(url, 0.1, spared, deeds)
        pause = threading.Event()
        cutter.start()
        while not deeds["connections cut"] and not pause.wait(0.05):
            assert cutter.is_alive()
        cutter.stopping.set()
        cutter.join()
        assert (ask(ours), ask(theirs)) == (7, None)
        assert deeds == {"connections cut": 1}
        assert ask(theirs) == 7
        ours.dispose()
        theirs.dispose()


def test_nobody_cuts_unless_asked(tmp_path):
    deeds = Counter()
    cutter = Cutter(
        "postgresql://nowhere.invalid/x", None, Spared(make_engine("postgresql://nowhere.invalid/x")), deeds
    )
    cutter.start()
    cutter.join(10)
    assert not cutter.is_alive()
    assert not deeds
