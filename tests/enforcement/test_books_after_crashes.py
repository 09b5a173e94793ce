# SPDX-License-Identifier: Apache-2.0
"""Whatever a manager dies of and whenever: the books of a strict service agree with the leases that there are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

import credit_service as strict
import pytest

from blazar.context import current
from blazar.enforcement import CloudIdentity, FilterNotification, NotDelivered, NotificationRefused, Occasion, Question
from blazar.enforcement.payload import notification_body, question_body
from blazar.model.base.errors import BlazarError, UsageDenied
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import OfferRequest, Terms
from tests.observed import Killed
from tests.world import NOON, PROJECT, World, a_host, of_hosts

HOUR = timedelta(hours=1)
HERE = CloudIdentity(auth_url="http://127.0.0.1:1234", region_name="standalone")


class Death:
    """Comes at a step of one manager: before or after a write, a call of the cloud, or a message."""

    def __init__(self) -> None:
        self.left = 0
        self.dead = False

    def at(self, step: int) -> None:
        self.left, self.dead = step, False

    def never(self) -> None:
        self.at(0)

    def step(self, *_: object) -> None:
        if self.dead:
            raise Killed
        if self.left:
            self.left -= 1
            if not self.left:
                self.dead = True
                raise Killed


class Service:
    """A filter that asks the strict service without a network between; ``loses`` answers, of those it took note of."""

    needs_use: ClassVar[bool] = False
    occasions: ClassVar[frozenset[Occasion]] = frozenset(Occasion)
    mandatory: ClassVar[bool] = True

    def __init__(self, death: Death) -> None:
        self.books = strict.Books({"VCPU": 10**6, "MEMORY_MB": 10**12, "DISK_GB": 10**12})
        self.death = death
        self.loses = 0

    def check(self, question: Question) -> None:
        try:
            self.books.hear("/check-update" if question.current else "/check-create", question_body(question), None)
        except strict.Denied as denied:
            raise UsageDenied(str(denied)) from None

    def notify(self, notification: FilterNotification) -> None:
        self.death.step()
        try:
            self.books.hear(f"/{notification.occasion}", notification_body(notification), current().request_id)
        except strict.Denied as denied:
            raise NotificationRefused(str(denied)) from None
        self.death.step()
        if self.loses and notification.occasion is not Occasion.ENDED:
            self.loses -= 1
            raise NotDelivered("the answer is lost")


class House:
    """A manager that may die at any step, and another one that does not."""

    def __init__(self, engine) -> None:
        self.death = Death()
        self.service = Service(self.death)
        self.world = World(engine, hosts=4, state=of_hosts(*[{}] * 4), filters=[self.service], identity=HERE)
        shared = {"register": False, "cloud": self.world.simulated, "clock": self.world.clock}
        self.other = World(engine, filters=[self.service], identity=HERE, **shared)
        transactions = self.world.store.transactions
        write = transactions.write

        def mortal(work):
            self.death.step()
            result = write(work)
            self.death.step()
            return result

        transactions.write = mortal
        self.world.faults.on_call = self.death.step

    def settle(self) -> None:
        """Let the other manager bring everything to its end."""
        self.death.never()
        for minutes in (1, 2, 12, 12):
            self.world.clock.by(minutes=minutes)
            for _ in range(3):
                self.other.manager.engine.run_due()
                self.other.manager.outbox.run_due()

    def agrees(self) -> None:
        """Nobody pays for leases that do not exist, and all that exist are paid."""
        leases = {(lease.id, lease.project_id): lease for lease in self.other.manager.leases.all(None)}
        paid = {id_: c for id_, c in self.service.books.consumers.items() if not c.ended}
        assert paid.keys() == leases.keys()
        for id_, lease in leases.items():
            assert lease.status in (LeaseStatus.PENDING, LeaseStatus.ACTIVE)
            hosts = len(self.other.hosts_of(lease))
            assert paid[id_].requests["VCPU"] == 16 * hosts
            assert paid[id_].end == lease.window.end.replace(tzinfo=None)
            assert paid[id_].start == lease.window.start.replace(tzinfo=None)
        assert not self.other.store.outbox.due(self.world.clock.now() + timedelta(days=9999), 9)

    def clear(self) -> None:
        for lease in self.other.manager.leases.all(None):
            self.other.manager.leases.delete(lease.id)
        self.settle()
        assert not [c for c in self.service.books.consumers.values() if not c.ended]


def create(house: House, lease: Lease | None) -> None:
    house.world.lease(a_host(2), start=HOUR, hours=8)


def prolong(house: House, lease: Lease | None) -> None:
    assert lease
    house.world.change(lease, end=lease.window.end + HOUR)


def shorten(house: House, lease: Lease | None) -> None:
    assert lease
    house.world.change(lease, end=lease.window.end - HOUR)


def grow(house: House, lease: Lease | None) -> None:
    assert lease
    house.world.resize(lease, min=3, max=3)


def delete(house: House, lease: Lease | None) -> None:
    assert lease
    house.world.manager.leases.delete(lease.id)


def transfer(house: House, lease: Lease | None) -> None:
    assert lease
    house.other.manager.transfers.offer(lease.id, OfferRequest("computing"), Terms(Actor("curie", PROJECT)))
    house.world.manager.transfers.accept(lease.id, Terms(Actor("turing", "computing")))


REQUESTS: dict[str, tuple[Callable[[House, Lease | None], None], bool | None]] = {
    "create": (create, None),
    "prolong before the start": (prolong, False),
    "prolong": (prolong, True),
    "shorten": (shorten, True),
    "grow before the start": (grow, False),
    "grow": (grow, True),
    "delete": (delete, True),
    "transfer before the start": (transfer, False),
    "transfer": (transfer, True),
}
"""What is asked, and of which lease: one that runs, one that does not yet, none."""


@pytest.mark.share(3)
@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1], ids=["heard", "the answer lost"])
@pytest.mark.parametrize(("ask", "running"), REQUESTS.values(), ids=REQUESTS)
def test_a_manager_killed_at_any_step_of_a_request_leaves_books_that_agree_with_the_leases(sqlite, ask, running, lost):
    house = House(sqlite)
    steps = 0
    done = False
    while not done:
        steps += 1
        lease = None
        if running is not None:
            start = timedelta(0) if running else 9 * HOUR
            lease = house.world.lease(a_host(2), start=start, hours=8)
            house.world.run()
        house.service.loses = lost
        house.death.at(steps)
        try:
            ask(house, lease)
            done = not house.death.dead
        except Killed:
            pass
        except BlazarError:
            assert lost
            done = not house.death.dead
        house.service.loses = 0
        house.settle()
        house.agrees()
        house.clear()
    assert steps > 8
    assert house.world.clock.now() > NOON
