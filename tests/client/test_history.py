# SPDX-License-Identifier: Apache-2.0
"""The client and histories of leases."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest
from blazarclient.library import history, transport
from blazarclient.shell import main

from blazar.model.base.errors import StoreUnavailable
from blazar.model.leases.requests import LeaseChange
from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import World, a_host

WHO = "curie:physics"


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


@pytest.fixture
def way(world):
    with serving(app_of(world.manager)) as way:
        yield way


def run(way, *words: str) -> int:
    return main(["--os-auth-type", "admin_token", "--os-token", WHO, "--os-endpoint", way.url, *words])


def test_a_history_is_listed_by_name_and_after_its_end_by_id(world, way, capsys):
    lease = world.lease(a_host(), start=timedelta(hours=1), name="training")
    assert run(way, "lease", "update", "training", "--name", "evaluation") == 0
    capsys.readouterr()
    assert run(way, "lease", "history", "evaluation") == 0
    shown = capsys.readouterr().out
    assert "name: training -> evaluation" in shown
    assert "curie" in shown
    assert run(way, "lease", "delete", lease.id) == 0
    world.run()
    capsys.readouterr()
    assert run(way, "lease", "history", lease.id, "-f", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["verb"] for each in told] == ["created", "changed", "deleted"]
    (move,) = told[0]["resources"]
    assert move["come_count"] == 1


def test_the_library_tells_the_latest_first_if_asked(world, way):
    lease = world.lease(a_host(), start=timedelta(hours=1))
    reservations = library(way.url, WHO)
    reservations.leases.change(lease.id, name="other")
    first, *rest = reservations.history.of(lease.id, newest_first=True)
    assert (first.verb, first.by.user_id, first.changes[0].after) == ("changed", "curie", "other")
    assert [each.verb for each in rest] == ["created"]


def test_the_journal_is_listed_and_followed(world, way, capsys):
    lease = world.lease(a_host(), start=timedelta(hours=1), name="training")
    assert run(way, "lease", "update", "training", "--name", "evaluation") == 0
    world.manager.journal_numbering.run_once()
    capsys.readouterr()
    assert run(way, "journal", "list", "--type", "lease") == 0
    shown = capsys.readouterr().out
    assert "lease training" in shown
    assert "lease evaluation" in shown
    assert shown.index("created") < shown.index("changed"), "the latest last"
    assert run(way, "journal", "list", "--object", lease.id, "--verb", "changed", "-f", "json") == 0
    (changed,) = json.loads(capsys.readouterr().out)
    assert changed["object"]["id"] == lease.id
    assert changed["changes"][0]["after"] == "evaluation"
    assert run(way, "journal", "list", "--limit", "1", "-f", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["position"] == changed["position"]
    assert run(way, "journal", "list", "--project", "biology") == 4
    assert "own one" in capsys.readouterr().err


def test_the_library_follows_the_journal_without_missing_an_entry(world, way):
    reservations = library(way.url, WHO)
    lease = world.lease(a_host(), start=timedelta(hours=1))
    world.manager.journal_numbering.run_once()
    seen = []
    for entry in reservations.history.follow(after=0, every=0):
        seen.append(entry)
        if len(seen) < 3:
            reservations.leases.change(lease.id, name=f"n{len(seen)}")
            world.manager.journal_numbering.run_once()
        else:
            break
    assert [entry.verb for entry in seen] == ["created", "changed", "changed"]
    assert [entry.position for entry in seen] == sorted({entry.position for entry in seen})
    latest = next(reservations.history.list(newest_first=True, limit=1))
    assert (latest.position, latest.object.name, latest.by.user_id) == (seen[-1].position, "n2", "curie")
    assert latest.request_id
    since = list(reservations.history.list(since=latest.at, verb="created"))
    assert [entry.position for entry in since] in ([], [seen[0].position])


def test_following_goes_on_when_the_service_is_away_for_a_while(world, way, capsys, monkeypatch):
    lease = world.lease(a_host(), start=timedelta(hours=1))
    world.manager.journal_numbering.run_once()
    page, pauses = world.manager.journal.page, []

    def page_or_fail(*asked):
        if 1 <= len(pauses) <= 3:
            raise StoreUnavailable("the database is not available")
        return page(*asked)

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            world.manager.leases.change(lease.id, LeaseChange(name="another"))
            world.manager.journal_numbering.run_once()
        if len(pauses) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(world.manager.journal, "page", page_or_fail)
    monkeypatch.setattr(history, "time", SimpleNamespace(sleep=pause))
    monkeypatch.setattr(transport, "PAUSES", ())
    run(way, "journal", "follow", "--every", "7")
    told = capsys.readouterr()
    assert told.out.count("changed") == 1
    assert told.err.count("it is asked again") == 1
    assert pauses == [7] * 6


@pytest.mark.parametrize("every", ["inf", "nan", "-1", "0", "x"])
def test_looks_come_in_a_time_that_there_is(way, capsys, every):
    with pytest.raises(SystemExit):
        run(way, "journal", "follow", "--every", every)
    assert "is no number of seconds from 0.1 to 3600" in capsys.readouterr().err


def test_a_service_that_never_answered_is_told_at_once(way, capsys):
    assert run(SimpleNamespace(url="http://127.0.0.1:9/v1"), "journal", "follow", "--after", "0") == 7
    assert "No connection" in capsys.readouterr().err
