# SPDX-License-Identifier: Apache-2.0
"""A strict credit service and Blazar understand each other: the books are right whatever happens."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from blazar.enforcement import CloudIdentity
from blazar.model.base.errors import Conflict
from blazar.model.leases.requests import Actor
from blazar.model.surgery import OfferRequest, Terms
from tests.enforcement.asking import ADMIN, ALICE, Users, asks_all
from tests.enforcement.conftest import Service
from tests.observed import Killed, ObservedStore, before, failing
from tests.openstack import eventually
from tests.world import World, of_hosts

HOUR = timedelta(hours=1)
HERE = CloudIdentity(auth_url="http://127.0.0.1:1234", region_name="standalone")


class Bank(Users):
    """A world whose leases cost credits, and its API. Hosts have 16 VCPUs, and budgets are in hours of hosts."""

    def __init__(
        self, engine, service: Service, *, beside: Bank | None = None, seconds=1.0, hosts=3, **requests
    ) -> None:
        shared = {"register": False, "cloud": beside.world.simulated, "clock": beside.world.clock} if beside else {}
        rule = asks_all(service, seconds=seconds, **requests)
        super().__init__(
            World(engine, filters=[rule], identity=HERE, state=of_hosts(*[{}] * hosts), hosts=hosts, **shared)
        )
        self.service = service

    def grow(self, lease, hosts: int):
        return self.change(lease, reservations=[{"id": lease["reservations"][0]["id"], "min": hosts, "max": hosts}])

    def delete(self, lease, headers=ALICE):
        return self.http.delete(f"/v1/leases/{lease['id']}", headers=headers)

    def run(self, **span: float) -> None:
        """Let time pass, and everything happen that is due meanwhile."""
        if span:
            self.world.run_to(self.world.clock.now() + timedelta(**span))
        self.world.run()

    @property
    def left(self) -> float:
        """The hours of a host that the project has left."""
        return self.service.books.left("physics")["VCPU"] / 16

    @property
    def leases(self) -> list[dict]:
        return self.http.get("/v1/leases", headers=ALICE).json["leases"]


@pytest.fixture
def bank(sqlite, credits) -> Bank:
    return Bank(sqlite, credits)


@pytest.mark.slow
def test_a_lease_is_paid_prolonged_shortened_grown_and_what_is_left_is_given_back(bank):
    lease = bank.create(start="2030-04-01 13:00").json["lease"]
    bank.run()
    assert bank.left == 100 - 7
    assert bank.change(lease, end_date="2030-04-01 23:00").status_code == 200
    bank.run()
    assert bank.left == 100 - 10
    assert bank.change(lease, end_date="2030-04-01 15:00").status_code == 200
    bank.run()
    assert bank.left == 100 - 2
    assert bank.grow(lease, 3).status_code == 200
    bank.run(hours=1)
    assert bank.left == 100 - 6
    assert bank.change(lease, end_date="2030-04-01 20:00").status_code == 200
    bank.run()
    assert bank.left == 100 - 21
    bank.run(hours=2)
    assert bank.delete(lease).status_code == 204
    bank.run()
    assert bank.left == 100 - 6
    assert bank.service.refused == []


def test_an_end_at_its_time_leaves_the_lease_paid(bank):
    bank.create(hosts=2)
    bank.run(hours=9)
    assert bank.left == 100 - 16
    assert bank.service.asked == ["check-create", "commit-create", "on-end"]


def test_a_lease_deleted_before_its_start_costs_nothing(bank):
    lease = bank.create(start="2030-04-02 12:00", end="2030-04-03 12:00").json["lease"]
    bank.delete(lease)
    bank.run()
    assert bank.left == 100


def test_what_an_operator_does_for_a_user_is_paid_by_the_users_project(bank):
    lease = bank.create().json["lease"]
    assert bank.change(lease, headers=ADMIN, end_date="2030-04-01 22:00").status_code == 200
    bank.run(hours=1)
    assert bank.left == 100 - 10
    assert bank.delete(lease, headers=ADMIN).status_code == 204
    bank.run()
    assert bank.left == 100 - 1
    assert bank.service.books.left("operators")["VCPU"] == 1600


def test_what_the_account_does_not_bear_is_told_to_the_user(bank):
    answer = bank.create(hosts=3, end="2030-04-03 12:00")
    assert answer.status_code == 400
    assert answer.json["error_message"] == "the lease costs 2304 VCPU hours, and the project has 1600 left"
    assert bank.leases == []
    assert bank.left == 100


def test_a_lease_that_the_service_refuses_at_the_last_moment_is_none(bank):
    """The check passes: what it saw is spent by somebody else before the commit."""
    bank.service.after_check = lambda: bank.service.books.credits.update(VCPU=16.0)
    answer = bank.create(hosts=2)
    assert answer.status_code == 400
    assert answer.json["error_message"] == "the lease costs 256 VCPU hours, and the project has 16 left"
    assert bank.leases == []
    bank.run(hours=1)
    assert bank.service.books.consumers == {}
    assert bank.service.refused == [("commit-create", 403)]


@pytest.mark.slow
def test_of_ten_that_want_the_last_credit_one_has_it(engine, credits):
    bank = Bank(engine, credits, seconds=20, hosts=10)
    both = [bank, Bank(engine, credits, beside=bank, seconds=20)]
    credits.books.credits["VCPU"] = 16 * 8

    def all_are_granted() -> None:
        """Let no answer out before all ten were asked about: none is in the books yet."""
        end = time.monotonic() + 30
        while len({body["lease"]["id"] for body in credits.bodies("check-create")}) < 10 and time.monotonic() < end:
            time.sleep(0.01)

    credits.after_check = all_are_granted
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda n: both[n % 2].create(), range(10)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [201] + [400] * 9
    assert all("the project has 0 left" in a.json["error_message"] for a in answers if a.status_code == 400)
    (lease,) = bank.leases
    assert set(credits.books.consumers) == {(lease["id"], "physics")}
    assert bank.left == 0
    bank.run(minutes=5)
    assert set(credits.books.consumers) == {(lease["id"], "physics")}
    assert not bank.world.store.outbox.due(bank.world.clock.now() + 99 * HOUR, 9)


def lost(handler, path):
    """Take note, and let nobody know."""
    if not path.startswith("/commit"):
        return False
    handler.silently(path)
    return True


def test_a_lease_whose_acceptance_is_lost_is_none_and_costs_nothing(bank):
    bank.service.manners = [lost]
    assert bank.create().status_code == 503
    assert bank.leases == []
    assert bank.left == 100 - 8
    bank.service.behaves()
    bank.run(minutes=5)
    assert bank.left == 100
    assert bank.create(end="2030-04-01 20:05").status_code == 201
    assert bank.left == 100 - 8


@pytest.mark.slow
def test_a_change_whose_acceptance_is_lost_is_none_and_costs_nothing(bank):
    lease = bank.create().json["lease"]
    bank.run()
    bank.service.manners = [lost]
    for change in (lambda: bank.change(lease, end_date="2030-04-01 22:00"), lambda: bank.grow(lease, 3)):
        assert change().status_code == 503
        assert bank.left < 100 - 8
        bank.service.behaves()
        bank.run(minutes=5)
        assert bank.left == 100 - 8
        assert bank.leases[0]["end_date"] == "2030-04-01T20:00:00.000000"
        bank.service.manners = [lost]
    bank.service.behaves()
    assert bank.change(lease, end_date="2030-04-01 22:00").status_code == 200
    assert bank.left == 100 - 10


def down(handler, path):
    return path.startswith(("/commit", "/on-end")) and not handler.close()


@pytest.mark.slow
def test_while_the_service_is_down_nothing_changes_and_ends_are_told_when_it_is_back(bank):
    first = bank.create(hosts=1).json["lease"]
    second = bank.create(hosts=1).json["lease"]
    bank.run()
    bank.service.manners = [down]
    assert bank.create().status_code == 503
    assert bank.change(first, end_date="2030-04-01 22:00").status_code == 503
    bank.run(hours=1)
    assert bank.delete(first).status_code == 204
    assert len(bank.leases) == 1
    bank.run(minutes=30)
    assert bank.left == 100 - 16
    bank.service.behaves()
    bank.run(minutes=30)
    assert bank.left == 100 - 1 - 8
    assert bank.change(second, end_date="2030-04-01 21:00").status_code == 200
    assert bank.left == 100 - 1 - 9


@pytest.mark.slow
def test_what_a_slow_service_takes_note_of_after_all_is_taken_back(bank):
    """It goes on with what it was told although nobody waits for the answer any more."""
    given_up, begun, done = threading.Event(), [], []

    def slow(handler, path):
        if path.startswith("/commit"):
            begun.append(path)
            given_up.wait(20)
            handler.silently(path)
            done.append(path)
            return True
        return False

    bank.service.manners = [slow]
    assert bank.create().status_code == 503
    assert bank.leases == []
    given_up.set()
    eventually(lambda: len(done) == len(begun) > 0, patience=10)
    bank.service.behaves()
    bank.run(minutes=5)
    assert bank.left == 100
    assert not [c for c in bank.service.books.consumers.values() if not c.ended]


def test_where_the_operator_allows_it_a_lease_stands_without_an_answer_and_is_paid_later(sqlite, credits):
    bank = Bank(sqlite, credits, allow_on_error=True)
    credits.manners = [down]
    assert bank.create().status_code == 201
    assert bank.left == 100
    credits.behaves()
    bank.run(minutes=5)
    assert bank.left == 100 - 8


def test_a_manager_that_dies_when_the_service_has_accepted_leaves_the_books_right(bank):
    survivor = bank.world.manager
    # At the second write of a lease: what is told is noted, the lease is not.
    dies = before("leases.save", lambda: None, failing(Killed()))
    bank.world.manager = bank.world.another_manager(store=ObservedStore(bank.world.store, dies))
    with pytest.raises(Killed):
        Users(bank.world).create()
    assert bank.left == 100 - 8
    bank.world.clock.by(minutes=1)
    survivor.engine.run_due()
    bank.world.clock.by(minutes=2)
    survivor.outbox.run_due()
    assert survivor.leases.all("physics") == ()
    assert bank.left == 100


def test_a_lease_that_goes_to_another_project_is_paid_by_each_for_its_time(sqlite, credits):
    bank = Bank(sqlite, credits, knows_transfers=True)
    lease = bank.create().json["lease"]
    bank.run(hours=1)
    transfers, taker = bank.world.manager.transfers, Terms(Actor("turing", "computing"))
    transfers.offer(lease["id"], OfferRequest("computing"), Terms(Actor("alice", "physics")))
    transfers.accept(lease["id"], taker)
    bank.run(minutes=1)
    assert bank.left == 100 - 1
    assert credits.books.left("computing")["VCPU"] / 16 == 100 - 7
    bank.world.manager.leases.delete(lease["id"])
    bank.run(minutes=1)
    assert credits.books.left("computing")["VCPU"] / 16 == pytest.approx(100, abs=0.1)


def test_a_service_that_knows_leases_by_their_ids_alone_keeps_them_where_they_are(bank):
    lease = bank.create().json["lease"]
    offered = OfferRequest("computing")
    with pytest.raises(Conflict) as refused:
        bank.world.manager.transfers.offer(lease["id"], offered, Terms(Actor("alice", "physics")))
    assert "external_service_transfers" in refused.value.message
