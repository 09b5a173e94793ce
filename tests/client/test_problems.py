# SPDX-License-Identifier: Apache-2.0
"""The client and problems: an operator sees what is in trouble, tries what would be done, and does it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from blazarclient.exception import Forbidden
from blazarclient.shell import main

from blazar.model.leases.states import EventType, LeaseStatus
from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import World, a_host

HOUR = timedelta(hours=1)
OPERATOR = "root:admin:admin"


@pytest.fixture
def late(world: World):
    lease = world.lease(a_host(), start=HOUR, name="training")
    world.clock.to(lease.window.start + timedelta(minutes=2))
    return lease


@pytest.fixture
def way(world):
    with serving(app_of(world.manager)) as way:
        yield way


def run(way, *words: str) -> int:
    return main(["--os-auth-type", "admin_token", "--os-token", OPERATOR, "--os-endpoint", way.url, *words])


def test_a_problem_is_listed_shown_and_acted_on_only_with_yes(world, way, late, capsys):
    problem_id = f"event:{late.event(EventType.START).id}"
    assert run(way, "problem", "list", "--kind", "event", "--lease", late.id) == 0
    assert "start_lease of lease training is due" in capsys.readouterr().out
    assert run(way, "problem", "show", problem_id) == 0
    assert "no manager runs" in capsys.readouterr().out
    assert run(way, "problem", "retry", problem_id, "--reason", "ticket 4711") == 0
    told = capsys.readouterr()
    assert f"{problem_id}: start_lease of lease training would be tried again at once." in told.out
    assert "Nothing was done; repeat it with --yes" in told.err
    assert run(way, "problem", "retry", problem_id, "--reason", "ticket 4711", "--yes") == 0
    world.run()
    assert world.now(late).status is LeaseStatus.ACTIVE
    capsys.readouterr()
    assert run(way, "problem", "list") == 0
    assert "training" not in capsys.readouterr().out
    assert run(way, "problem", "show", problem_id) != 0
    assert "may have been mended" in capsys.readouterr().err


def test_of_several_each_is_told_and_no_more_than_fifty_are_taken(world, way, late, capsys):
    problem_id = f"event:{late.event(EventType.START).id}"
    assert run(way, "problem", "give-up", problem_id, "event:nothing", "--reason", "x") != 0
    told = capsys.readouterr().err
    assert "nobody has tried it yet" in told
    assert "there is no problem 'event:nothing'" in told
    assert "repeat it" not in told
    assert run(way, "problem", "retry", *(["event:x"] * 51), "--reason", "x") != 0
    assert "50 at most at once" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(way, "problem", "retry", problem_id)


def test_members_have_no_problems(way):
    with pytest.raises(Forbidden):
        list(library(way.url, "curie:physics").problems.list())
