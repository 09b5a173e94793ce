# SPDX-License-Identifier: Apache-2.0
"""Each change that a lease can have costs what the second bill of ``tests/slow/money`` says, to nine decimals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.slow.money.compare import differences
from tests.slow.money.members import DAY, HOUR
from tests.slow.money.site import Json, Request, Site, date_of
from tests.slow.test_month_of_money import CHEAP, DEAR, list_recomputed

pytestmark = pytest.mark.slow


class Member:
    """Somebody who changes leases at a minute, counted in hours from the first."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.begin = site.now - site.now % 60 + 60
        self.wait(0)

    def at(self, hours: float) -> str:
        return date_of(self.begin + round(hours * HOUR))

    def wait(self, hours: float) -> None:
        self.site.pass_to(self.begin + round(hours * HOUR))

    def publish(self) -> None:
        """Publish a list by which all is dearer, what was booked until then apart."""
        self.site.pass_to(self.site.now + 1)
        self.site.publish({**DEAR, "time_zone": "Europe/Berlin", "valid_from": date_of(self.site.now // 900 * 900)})

    def ask(self, method: str, path: str, body: Json | None = None, *, project: str = "physics", **more: tuple) -> Json:
        found = self.site.ask(Request("curie", project, method, path, body), **more)
        assert found is not None, (path, dict(self.site.refused))
        return found

    def book(self, start: float, end: float, *counts: int) -> Json:
        parts = [
            {
                "resource_type": "physical:host",
                "min": n,
                "max": n,
                "resource_properties": "",
                "hypervisor_properties": "",
            }
            for n in counts
        ]
        body = {"name": "work", "start_date": self.at(start), "end_date": self.at(end), "reservations": parts}
        return self.ask("POST", "/v1/leases", body)["lease"]

    def change(self, lease: Json, **dates: float) -> None:
        self.ask("PUT", f"/v1/leases/{lease['id']}", {f"{name}_date": self.at(value) for name, value in dates.items()})

    def resize(self, lease: Json, count: int) -> None:
        part = {"id": lease["reservations"][0]["id"], "min": count, "max": count}
        self.ask("PUT", f"/v1/leases/{lease['id']}", {"reservations": [part]})

    def delete(self, lease: Json, project: str = "physics") -> None:
        self.ask("DELETE", f"/v1/leases/{lease['id']}", project=project)

    def split(self, lease: Json, **body: object) -> list[Json]:
        return self.ask("POST", f"/v1/leases/{lease['id']}/split", body, origins=(lease["id"],))["leases"]

    def merge(self, lease: Json, other: Json) -> None:
        body = {"with": other["id"]}
        self.ask("POST", f"/v1/leases/{lease['id']}/merge", body, origins=(lease["id"], other["id"]))

    def give(self, lease: Json) -> None:
        self.ask("POST", f"/v1/leases/{lease['id']}/transfer", {"project_id": "biology"})
        self.ask("POST", f"/v1/transfers/{lease['id']}/accept", project="biology")

    def fail(self, lease: Json, *, up: bool = False) -> None:
        """Let a host of a lease fail, or be well again."""
        host = min(one["resource"]["name"] for one in self.site.leases[lease["id"]]["reservations"][0]["allocations"])
        operators = self.site.world.simulated.operators
        (operators.host_up if up else operators.host_down)(host)
        self.site.down = set() if up else {host}
        self.site.work("poll")


def prolong(member: Member) -> None:
    lease, other = member.book(30, 50, 2), member.book(30, 50.01, 4)
    member.publish()
    member.change(lease, end=60)
    member.wait(31)
    member.change(other, end=70.1)


def shorten(member: Member) -> None:
    lease, other = member.book(30, 50, 2), member.book(30, 50.01, 4)
    member.wait(3)
    member.change(lease, end=40.02)
    member.wait(4)
    member.change(lease, end=42.03)
    member.wait(31)
    member.change(other, end=40.01)


def resize(member: Member) -> None:
    lease = member.book(30, 50.01, 2)
    member.wait(1)
    member.publish()
    for hours, count in ((2, 9), (3, 6), (4, 1), (31, 5)):
        member.wait(hours)
        member.resize(lease, count)


def move(member: Member) -> None:
    lease = member.book(30, 50.01, 4)
    for hours, start in ((2, 40), (4, 10), (5, 70)):
        member.wait(hours)
        member.change(lease, start=start, end=start + 20)


def move_past_the_lead(member: Member) -> None:
    """What is left of a lease that is moved keeps its lead; what comes to it has the lead of then."""
    lease, other = member.book(22, 40.01, 2), member.book(23.5, 30, 1)
    member.wait(0.1)
    member.change(other, start=25, end=31)
    member.resize(other, 3)
    member.wait(1)
    member.change(lease, start=26, end=42)
    member.wait(1.5)
    member.resize(lease, 4)
    member.wait(2)
    member.change(lease, start=20)
    member.wait(2.2)
    member.change(lease, start=28)


def split_later_than_the_lead(member: Member) -> None:
    lease = member.book(23, 60, 2)
    member.wait(1)
    _, other = member.split(lease, at=member.at(30))
    member.wait(2)
    member.change(other, start=31, end=62)


def delete(member: Member) -> None:
    leases = [member.book(30, 50, 2), member.book(30, 31, 4), member.book(30, 50.01, 1)]
    for hours, lease in zip((8, 30.2, 32.3), leases, strict=True):
        member.wait(hours)
        member.delete(lease)


def transfer(member: Member) -> None:
    lease, other = member.book(30, 50, 2), member.book(30, 60.01, 4)
    member.wait(20)
    member.publish()
    member.wait(21)
    member.give(lease)
    member.wait(32.003)
    member.give(other)
    member.wait(35)
    member.delete(other, "biology")


def split_by_units(member: Member) -> None:
    lease, other = member.book(30, 50, 4), member.book(30, 50, 3, 1)
    member.wait(20)
    member.publish()
    part = {"id": lease["reservations"][0]["id"], "count": 1}
    first, _ = member.split(lease, reservations=[part])
    member.delete(first)
    member.wait(33)
    first, second = member.split(other, reservations=[{"id": other["reservations"][0]["id"]}])
    member.give(second)
    member.delete(first)


def split_by_time(member: Member) -> None:
    lease = member.book(30, 50, 4)
    member.wait(20)
    member.publish()
    first, second = member.split(lease, at=member.at(40.01))
    member.wait(32)
    member.merge(first, second)
    member.wait(41)
    member.delete(first)


def merge(member: Member) -> None:
    lease, early = member.book(30, 50, 1), member.book(60, 80, 2)
    member.wait(10)
    other, late = member.book(30, 50, 2), member.book(60, 80, 1)
    member.merge(late, early)
    member.wait(31.002)
    member.merge(other, lease)
    member.wait(34)
    member.delete(other)


def merge_extended(member: Member) -> None:
    """Each of leases that become one keeps the price of its extensions."""
    lease, other, third = member.book(30, 50, 1), member.book(30, 45, 2), member.book(30, 52, 1)
    member.wait(1)
    member.change(other, end=52)
    member.publish()
    member.wait(5)
    member.change(lease, end=52)
    member.merge(other, lease)
    member.wait(9)
    member.change(other, start=29)
    member.change(third, start=29)
    member.wait(10)
    member.merge(third, other)
    member.split(third, reservations=[{"id": third["reservations"][0]["id"], "count": 2}])
    member.wait(33)
    member.change(third, end=60)


def lose(member: Member) -> None:
    lease = member.book(1, 9.01, 4)
    for hours, up in ((3.01, False), (5.02, True), (8, False)):
        member.wait(hours)
        member.fail(lease, up=up)


def start_late(member: Member) -> None:
    lease, other = member.book(1, 2.01, 2), member.book(1, 50, 4)
    member.site.world.clock.by(hours=1, seconds=1805)
    member.site.work("run")
    member.wait(7)
    member.delete(other)
    assert lease["status"] == "PENDING"


CHANGES = (
    *(prolong, shorten, resize, move, move_past_the_lead, delete, transfer),
    *(split_by_units, split_by_time, split_later_than_the_lead, merge, merge_extended, lose, start_late),
)


@pytest.fixture
def site(sqlite_url: str, tmp_path: Path) -> Iterator[Site]:
    """A site two days before clocks are put forward, with a price list."""
    upgrade(make_engine(sqlite_url))
    now = datetime(2030, 3, 29, 12, tzinfo=UTC)
    made = Site(sqlite_url, tmp_path, hosts=16, now=now, accelerated=2, seed=1)
    made.publish({**CHEAP, "time_zone": "Europe/Berlin"})
    yield made
    made.close()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_costs_what_the_second_bill_says(site: Site, change: Callable[[Member], None]) -> None:
    change(Member(site))
    site.work("poll")
    site.pass_to(site.now + 10 * DAY)
    site.work("close")
    site.pass_to(site.now + 40 * DAY)
    site.work("close")
    found = [*differences(site), *list_recomputed(site)]
    assert not found, "\n".join(found)
