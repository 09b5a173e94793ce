# SPDX-License-Identifier: Apache-2.0
"""A lease goes to its taker while its giver asks for something: what was the giver's to decide is not any more."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.api.leases.services import RenderedLeases
from blazar.api.leases.v1_0.formats import V1_0
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import OfferRequest, Terms
from tests.api.conftest import app_of, client_of, token
from tests.world import PROJECT, World, a_host

HOUR = timedelta(hours=1)
CURIE = token("curie", PROJECT)
GIVER, TAKER = Terms(Actor("curie", PROJECT)), Terms(Actor("turing", "computing"))
IN_1_0, IN_1_1 = {}, {"OpenStack-API-Version": "reservation 1.1"}


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3)


def offered(world: World, request: OfferRequest | None = None):
    lease = world.lease(a_host(2), start=HOUR)
    world.manager.transfers.offer(lease.id, request or OfferRequest("computing"), GIVER)
    return lease


def right_after(world: World, monkeypatch, name: str, terms: Terms = TAKER) -> None:
    """Let the lease go as soon as it was read whose it is, and that the giver may do what was asked for."""
    read = getattr(world.manager.leases, name)

    def once(lease_id: str):
        found = read(lease_id)
        monkeypatch.setattr(world.manager.leases, name, read)
        world.manager.transfers.accept(lease_id, terms)
        return found

    monkeypatch.setattr(world.manager.leases, name, once)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("version", "method", "path", "body"),
    [
        (IN_1_0, "PUT", "", {"name": "mine"}),
        (IN_1_0, "DELETE", "", None),
        (IN_1_1, "GET", "", None),
        (IN_1_1, "PUT", "", {"name": "mine"}),
        (IN_1_1, "PUT", "?dry_run=true", {"name": "mine"}),
        (IN_1_1, "PUT", "", {"name": "a lease"}),
        (IN_1_1, "DELETE", "", None),
        (IN_1_1, "POST", "/transfer", {"project_id": PROJECT}),
        (IN_1_1, "POST", "/transfer", {"project_id": "elsewhere"}),
        (IN_1_1, "DELETE", "/transfer", None),
        (IN_1_1, "POST", "/split", {"at": "2030-04-01T14:00:00Z"}),
    ],
)
def test_what_its_giver_asked_for_just_before_does_not_reach_the_takers_lease(
    world, monkeypatch, version, method, path, body
):
    lease = offered(world)
    right_after(world, monkeypatch, "owner" if version else "one")
    http = client_of(app_of(world.manager))
    answer = http.open(f"/v1/leases/{lease.id}{path}", method=method, json=body, headers={**version, **CURIE})
    assert answer.status_code == 404
    assert "turing" not in answer.text
    found = world.now(lease)
    assert (found.project_id, found.name, found.status, found.offer) == (
        "computing", "a lease", LeaseStatus.PENDING, None
    )  # fmt: skip


def test_the_former_user_of_the_project_asks_again(world, monkeypatch):
    lease = offered(world, OfferRequest(user_id="pierre"))
    right_after(world, monkeypatch, "owner", Terms(Actor("pierre", PROJECT)))
    http = client_of(app_of(world.manager))
    sent = {"method": "PUT", "json": {"name": "ours"}, "headers": {**IN_1_1, **CURIE}}
    assert http.open(f"/v1/leases/{lease.id}", **sent).status_code == 404
    assert http.open(f"/v1/leases/{lease.id}", **sent).status_code == 200


def test_a_list_of_the_giver_does_not_show_what_went_while_it_was_read(world, monkeypatch):
    lease, other = offered(world), world.lease(a_host(1), start=HOUR)
    rendered = RenderedLeases(V1_0.writer)
    listed = world.manager.leases.revisions

    def once(project_id):
        found = listed(project_id)
        monkeypatch.setattr(world.manager.leases, "revisions", listed)
        world.manager.transfers.accept(lease.id, TAKER)
        return found

    monkeypatch.setattr(world.manager.leases, "revisions", once)
    ((text,),) = rendered.pieces(world.manager, PROJECT)
    assert other.id in text.decode()
    assert [len(piece) for piece in rendered.pieces(world.manager, "computing")] == [1]
