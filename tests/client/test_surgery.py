# SPDX-License-Identifier: Apache-2.0
"""The client and surgery on leases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from blazarclient.exception import Conflict
from blazarclient.shell import main

from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import World, a_host

HOUR = timedelta(hours=1)
WHO = "curie:physics"
OPERATOR = "root:admin:admin"


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


@pytest.fixture
def way(world):
    with serving(app_of(world.manager)) as way:
        yield way


def run(way, who: str, *words: str) -> int:
    return main(["--os-auth-type", "admin_token", "--os-token", who, "--os-endpoint", way.url, *words])


def label(world: World, lease) -> str:
    (found,) = {each.label for each in world.manager.leases.details(lease.id).held if not each.released}
    return found


def test_a_host_is_swapped_by_its_label(world, way, capsys):
    lease = world.lease(a_host(), start=HOUR, name="training")
    before = label(world, lease)
    assert run(way, WHO, "lease", "swap", "training", "--host", before, "--dry-run") == 0
    assert "Nothing was changed" in capsys.readouterr().err
    assert label(world, lease) == before
    assert run(way, WHO, "lease", "swap", "training", "--host", before) == 0
    assert label(world, lease) != before
    assert run(way, WHO, "lease", "swap", "training", "--host", before) != 0
    assert "has no host" in capsys.readouterr().err


def test_an_operator_names_the_host_that_a_lease_gets(world, way):
    lease = world.lease(a_host(), start=HOUR, name="training")
    (host,) = world.hosts_of(lease)
    free = min({"node-1", "node-2", "node-3"} - {host})
    assert run(way, OPERATOR, "lease", "swap", lease.id, "--host", host, "--for", free) == 0
    assert world.hosts_of(lease) == {free}


@pytest.mark.slow
def test_two_leases_exchange_hosts(world, way):
    lease, other = (world.lease(a_host(), start=HOUR, name=name) for name in ("one", "two"))
    mine, theirs = world.hosts_of(lease), world.hosts_of(other)
    words = ("--host", label(world, lease), "--for", label(world, other), "--with", "two")
    assert run(way, WHO, "lease", "swap", "one", *words) == 0
    assert (world.hosts_of(lease), world.hosts_of(other)) == (theirs, mine)


def test_a_host_with_servers_is_kept(world, way):
    lease = world.lease(a_host())
    world.run()
    (host,) = world.hosts_of(lease)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    with pytest.raises(Conflict, match=server.id):
        library(way.url, WHO).surgery.swap(lease.id, lease.reservations[0].id, label(world, lease))


@pytest.mark.slow
def test_a_lease_is_split_and_merged_again(world, way, capsys):
    lease = world.lease(a_host(2), start=HOUR, hours=4, name="training")
    hosts = world.hosts_of(lease)
    chosen = min(each.label for each in world.manager.leases.details(lease.id).held)
    words = ("lease", "split", "training", "--host", chosen, "--name", "evaluation")
    assert run(way, WHO, *words, "--dry-run") == 0
    assert "Nothing was changed" in capsys.readouterr().err
    assert run(way, WHO, *words) == 0
    assert "evaluation" in capsys.readouterr().out
    assert len(world.hosts_of(lease)) == 1
    assert run(way, WHO, "lease", "merge", "training", "evaluation") == 0
    assert world.hosts_of(lease) == hosts
    world.run()
    first, second = library(way.url, WHO).surgery.split(lease.id, at=lease.window.start + HOUR, name="later")
    assert (second.name, second.start_date) == ("later", first.end_date)
    assert library(way.url, WHO).surgery.merge(first, second).end_date == lease.window.end
    world.run()
    assert run(way, WHO, "lease", "split", "training", "--count", "1", "--at", "tomorrow") != 0
    assert "--count and --at are given; give either" in capsys.readouterr().err
    assert run(way, WHO, "lease", "split", "training") != 0
    assert "Say what goes" in capsys.readouterr().err


def test_what_surgery_refuses_is_told_without_places_in_a_request(world, way, capsys):
    lease = world.lease(a_host(2), start=HOUR, name="training")
    world.lease(a_host(1), start=9 * HOUR, name="later")
    capsys.readouterr()
    stranger = "11111111-2222-4333-8444-000000000001"
    for words in (("split", "training", "--reservation", stranger), ("merge", "training", "later")):
        assert run(way, WHO, "lease", *words) != 0
        err = capsys.readouterr().err
        assert (err.startswith("--reservation: " if words[0] == "split" else "the leases"), "/" in err) == (True, False)
    assert world.now(lease).status is lease.status


def test_parts_are_named_by_reservation_or_number(world, way):
    lease = world.lease(a_host(1), a_host(2), start=HOUR, name="training")
    going = lease.reservations[1].id
    assert run(way, WHO, "lease", "split", "training", "--reservation", going, "--name", "second") == 0
    assert [r.id for r in world.now(lease).reservations] == [lease.reservations[0].id]
    assert run(way, WHO, "lease", "split", "second", "--count", "1", "--name", "third") == 0
    assert sorted(each.name for each in world.manager.leases.all(None)) == ["second", "third", "training"]


def test_hosts_are_given_up_by_name_and_by_number(world, way, capsys):
    lease = world.lease(a_host(3), name="training")
    world.run()
    first, *_ = sorted(each.label for each in world.manager.leases.details(lease.id).held)
    assert run(way, WHO, "lease", "shrink", "training", "--host", first, "--dry-run") == 0
    assert "Nothing was changed" in capsys.readouterr().err
    assert len(world.hosts_of(lease)) == 3
    assert run(way, WHO, "lease", "shrink", "training", "--host", first) == 0
    assert len(world.hosts_of(lease)) == 2
    assert run(way, WHO, "lease", "shrink", "training", "--to", "1") == 0
    (host,) = world.hosts_of(lease)
    assert run(way, WHO, "lease", "shrink", "training", "--host", "moon") != 0
    assert "has no host moon" in capsys.readouterr().err
    world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    assert run(way, WHO, "lease", "shrink", "training", "--to", "0") != 0
    assert "--to" in capsys.readouterr().err
