# SPDX-License-Identifier: Apache-2.0
"""Three minutes of ``make soak``; the page of ``tests/soak`` tells what that is."""

from __future__ import annotations

import os

import pytest

from tests.soak.run import soak

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("database", "minutes"), [pytest.param("postgresql", 2, marks=pytest.mark.nightly), ("mariadb", 1)]
)
def test_nothing_is_found_while_managers_are_killed_and_stopped(database, minutes):
    seed = os.environ.get("BLAZAR_SEED")
    report = soak(minutes, database=database, seed=None if seed is None else int(seed))
    print(report)
    assert report.deeds["SIGSTOP"] + report.deeds["kill -9"] >= 4 * minutes
    assert report.leases >= 8 * minutes
    assert not report.findings
