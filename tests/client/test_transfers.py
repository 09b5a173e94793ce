# SPDX-License-Identifier: Apache-2.0
"""The client and leases that go to another project."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from blazarclient.exception import Conflict, NotFound, PreconditionFailed
from blazarclient.shell import main

from tests.api.conftest import app_of
from tests.client.serving import Fate, library, serving
from tests.world import World, a_host

HOUR = timedelta(hours=1)
GIVER = "curie:physics"
TAKER = "lavoisier:chemistry"


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


@pytest.fixture
def way(world):
    with serving(app_of(world.manager)) as way:
        yield way


@pytest.fixture
def lease(world):
    return world.lease(a_host(2), start=HOUR, name="training")


def run(way, who: str, *words: str) -> int:
    return main(["--os-auth-type", "admin_token", "--os-token", who, "--os-endpoint", way.url, *words])


def told(way, capsys, who: str, *words: str) -> object:
    capsys.readouterr()
    assert run(way, who, *words, "-f", "json") == 0
    return json.loads(capsys.readouterr().out)


def owner(world: World, lease) -> tuple[str, str]:
    now = world.now(lease)
    return now.project_id, now.user_id


@pytest.mark.slow
def test_a_lease_is_offered_shown_and_accepted(world, way, lease, capsys):
    assert run(way, GIVER, "lease", "transfer", "training", "--to-project", "chemistry", "--message", "for you") == 0
    assert run(way, GIVER, "lease", "show", "training", "--long") == 0
    assert "to project chemistry, until " in capsys.readouterr().out
    (offer,) = told(way, capsys, TAKER, "transfer", "list")
    assert (offer["id"], offer["name"], offer["from_project_id"], offer["message"]) == (
        lease.id,
        "training",
        "physics",
        "for you",
    )
    shown = told(way, capsys, TAKER, "transfer", "show", "training")
    (reservation,) = shown["reservations"]
    assert (reservation["resource_type"], reservation["count"], shown["status"]) == ("physical:host", 2, "PENDING")
    would_be = told(way, capsys, TAKER, "transfer", "accept", "training", "--dry-run")
    assert (would_be["project_id"], would_be["user_id"]) == ("chemistry", "lavoisier")
    assert owner(world, lease) == ("physics", "curie")
    assert run(way, TAKER, "transfer", "accept", "training", "--revision", str(shown["revision"])) == 0
    assert owner(world, lease) == ("chemistry", "lavoisier")
    assert told(way, capsys, TAKER, "transfer", "list") == []
    assert run(way, GIVER, "lease", "show", "training") == 3


def test_a_dry_run_offers_nothing(way, lease, capsys):
    assert run(way, GIVER, "lease", "transfer", "training", "--to-project", "chemistry", "--dry-run") == 0
    assert "The lease could go" in capsys.readouterr().err
    assert told(way, capsys, TAKER, "transfer", "list") == []


def test_an_offer_to_a_user_of_the_project_is_for_this_user(world, way, lease, capsys):
    assert run(way, GIVER, "lease", "transfer", "training", "--to-user", "marie") == 0
    assert run(way, "pierre:physics", "transfer", "accept", "training") == 3
    assert "No lease training is offered" in capsys.readouterr().err
    assert run(way, "marie:physics", "transfer", "accept", "training") == 0
    assert owner(world, lease) == ("physics", "marie")


@pytest.mark.parametrize(
    ("who", "words"), [(GIVER, ("transfer", "withdraw", "training")), (TAKER, ("transfer", "decline", "training"))]
)
def test_an_offer_that_is_withdrawn_or_declined_is_gone(world, way, lease, who, words):
    assert run(way, GIVER, "lease", "transfer", "training", "--to-project", "chemistry") == 0
    assert run(way, who, *words) == 0
    assert run(way, TAKER, "transfer", "accept", lease.id) == 3
    assert run(way, who, *words) == 3
    assert owner(world, lease) == ("physics", "curie")


def test_servers_keep_a_lease_with_its_project(world, way, capsys):
    lease = world.lease(a_host(), name="busy")
    world.run()
    (host,) = world.hosts_of(lease)
    server = world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    assert run(way, GIVER, "lease", "transfer", "busy", "--to-project", "chemistry") == 6
    assert server.id in capsys.readouterr().err
    with pytest.raises(Conflict) as refusal:
        library(way.url, GIVER).transfers.offer(lease.id, project_id="chemistry", dry_run=True)
    assert refusal.value.faults[0].code == "reservation.lease_has_servers"


def test_a_lease_that_has_changed_is_not_accepted_as_it_was_seen(world, way, lease):
    library(way.url, GIVER).transfers.offer(lease.id, project_id="chemistry")
    taker = library(way.url, TAKER).transfers
    seen = taker.find("training")
    library(way.url, GIVER).leases.change(lease.id, name="other")
    with pytest.raises(PreconditionFailed):
        taker.accept(seen, if_match=seen.etag)
    assert run(way, TAKER, "transfer", "accept", "other", "--revision", str(seen.lease.revision)) == 6
    assert owner(world, lease) == ("physics", "curie")
    assert taker.accept(seen, if_match=taker.get(seen).etag).project_id == "chemistry"


@pytest.mark.sample(2)
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.CUT])
def test_whatever_is_lost_a_lease_goes_once(world, way, lease, fate):
    way.loses(fate)
    assert library(way.url, GIVER).transfers.offer(lease.id, project_id="chemistry").project_id == "chemistry"
    way.loses(fate)
    assert library(way.url, TAKER).transfers.accept(lease.id).user_id == "lavoisier"
    assert owner(world, lease) == ("chemistry", "lavoisier")
    verbs = [each.verb for each in library(way.url, TAKER).history.of(lease.id)]
    assert verbs == ["created", "offered", "transferred"]


def test_whatever_is_lost_an_offer_is_declined_once(way, lease):
    library(way.url, GIVER).transfers.offer(lease.id, project_id="chemistry")
    way.loses(Fate.ANSWER_LOST)
    library(way.url, TAKER).transfers.decline(lease.id)
    with pytest.raises(NotFound):
        library(way.url, TAKER).transfers.decline(lease.id)
