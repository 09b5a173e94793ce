# SPDX-License-Identifier: Apache-2.0
"""Two regions of one Keystone; the second has the services of the first, behind proxies that can be cut.

So there is one capacity, and ids are the same in both; what is seen is which way calls go, and what an outage stops.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from tests import openstack
from tests.cloud.deployment import NEWEST, Answer, Deployment, deployed
from tests.conftest import fresh_database
from tests.openstack import eventually
from tests.proxy import Proxy

SECOND = "RegionTwo"
SERVICES = ("compute", "placement", "network", "image", "block-storage", "orchestration")
CONF = f"\n[cloud]\nregions = RegionOne, {SECOND}\n"
BURST = 64
"""Requests at one time: twice as many as a manager has threads, four times as many as a blazar-api."""
LATE = 5.0
"""Seconds after which a start or an end in a region that works is not punctual."""


@contextmanager
def second_region(
    services: Collection[str] = SERVICES, *, plain: Collection[str] = (), make: Callable[[str, int], Proxy] = Proxy
) -> Iterator[list[Proxy]]:
    """A region in the catalog whose endpoints lead through proxies; gone afterwards, whatever happens.

    Services that are ``plain`` have their endpoints as they are.
    """
    ask = openstack.identity
    forget_second()
    proxies: dict[int, Proxy] = {}
    try:
        ask("POST", "/regions", {"region": {"id": SECOND}})
        types = {each["id"]: each["type"] for each in ask("GET", "/services")["services"]}
        for known in ask("GET", "/endpoints?region_id=RegionOne")["endpoints"]:
            if types[known["service_id"]] not in (*services, *plain):
                continue
            url = urlsplit(known["url"])
            port = url.port or 80
            made = {key: known[key] for key in ("service_id", "interface", "url")} | {"region_id": SECOND}
            if types[known["service_id"]] in services:
                if port not in proxies:
                    proxies[port] = make(url.hostname or "127.0.0.1", port)
                made["url"] = known["url"].replace(f":{port}", f":{proxies[port].port}")
            ask("POST", "/endpoints", {"endpoint": made})
        yield list(proxies.values())
    finally:
        forget_second()
        for proxy in proxies.values():
            proxy.cut()


def forget_second() -> None:
    ask = openstack.identity
    for endpoint in ask("GET", f"/endpoints?region_id={SECOND}")["endpoints"]:
        ask("DELETE", f"/endpoints/{endpoint['id']}")
    if any(each["id"] == SECOND for each in ask("GET", "/regions")["regions"]):
        ask("DELETE", f"/regions/{SECOND}")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, list[Proxy]]]:
    """A service of two regions; compute-1 and compute-2 are registered in the first, compute-3 in the second."""
    folder = tmp_path_factory.mktemp("regions")
    with ExitStack() as stack:
        proxies = stack.enter_context(second_region())
        for url in fresh_database("postgresql", folder):
            service = stack.enter_context(deployed(folder, url, hosts=2, more=CONF))
            answer = service.call("admin", "POST", "/os-hosts", {"name": "compute-3", "region": SECOND})
            assert answer.status == 201, answer
            assert answer["host"]["id"].startswith(f"{SECOND}:")
            try:
                yield service, proxies
            finally:
                for proxy in proxies:
                    proxy.cut()
                    proxy.mend()
                service.forget_leases()


def lateness(service: Deployment, lease: str, event: str) -> float:
    """Return how many seconds after its time an event was done."""
    found = service.call("demo", "GET", f"/leases/{lease}", version=NEWEST)["lease"]["events"]
    (of,) = [each for each in found if each["event_type"] == event]
    due, done = (datetime.fromisoformat(of[key]).astimezone(UTC) for key in ("time", "finished_at"))
    return (done - due).total_seconds()


def test_while_a_region_is_down_the_other_is_punctual_and_it_catches_up(two: tuple[Deployment, list[Proxy]]):
    service, proxies = two
    here, there = service.book(("compute-1", 15, 25), ("compute-3", 15, 3600))
    for proxy in proxies:
        proxy.cut()
    try:
        service.reaches(here, "ACTIVE")
        lists: list[Answer] = []

        def status_after_a_list() -> str:
            lists.append(service.call("demo", "GET", "/leases"))
            return str(service.lease(here)["status"])

        eventually(status_after_a_list, lambda status: status != "ACTIVE")
        longest = max(each.took for each in lists)
        service.reaches(here, "TERMINATED")
        assert service.lease(there)["status"] in ("PENDING", "STARTING")
        began = time.monotonic()
        another = service.create(host="compute-2")["id"]
        took = time.monotonic() - began
        service.reaches(another, "ACTIVE")
        late = [lateness(service, here, event) for event in ("start_lease", "end_lease")]
        print(f"start and end late by {late} s, longest list {longest:.1f} s, a booking {took:.1f} s")
        assert max(late) <= LATE
        assert took < LATE
        assert longest < LATE
    finally:
        for proxy in proxies:
            proxy.mend()
    began = time.monotonic()
    lease = service.reaches(there, "ACTIVE")
    print(f"caught up {time.monotonic() - began:.1f} s after it was back")
    (reservation,) = lease["reservations"]
    pools = [a.name for a in openstack.admin_compute().aggregates() if "compute-3" in a.hosts]
    assert reservation["id"] in pools
    for one in (there, another):
        service.end(one)
        service.reaches(one, "TERMINATED")


@pytest.mark.nightly
def test_a_burst_of_requests_on_a_region_that_begins_to_hang_keeps_no_others_waiting(
    two: tuple[Deployment, list[Proxy]],
):
    service, proxies = two
    here, there = service.book(("compute-1", 15, 25), ("compute-3", 15, 3600))

    def find(region: str) -> Answer:
        """Ask for a host that is not there, for which Nova of that region is asked."""
        return service.call("admin", "POST", "/os-hosts", {"name": "nobody", "region": region})

    assert find("RegionOne").status == find(SECOND).status == 404
    for proxy in proxies:
        proxy.cut()
        proxy.mend(silent=True)
    try:
        with ThreadPoolExecutor(BURST) as threads:
            burst = [threads.submit(find, SECOND) for _ in range(BURST)]
            other = [service.call("demo", "GET", "/leases"), find("RegionOne")]
            another = service.create(host="compute-2")["id"]

            def status_after_two_more() -> str:
                other.extend([service.call("demo", "GET", "/leases"), find("RegionOne")])
                return str(service.lease(here)["status"])

            eventually(status_after_two_more, lambda status: status == "TERMINATED")
            answers = [each.result() for each in burst]
        assert {each.status for each in other} == {200, 404}
        assert {each.status for each in answers} == {503}, {str(each.body) for each in answers}
        longest, slow = max(each.took for each in other), sum(each.took > LATE for each in answers)
        late = [lateness(service, here, event) for event in ("start_lease", "end_lease")]
        service.reaches(another, "ACTIVE")
        print(
            f"start and end late by {late} s; the longest of {len(other)} other requests took {longest:.1f} s; "
            f"{slow} of {BURST} that hung took more than {LATE:.0f} s"
        )
        assert max(late) <= LATE
        assert longest < LATE
        assert slow <= BURST / 4
    finally:
        for proxy in proxies:
            proxy.cut()
            proxy.mend()
    service.reaches(there, "ACTIVE")
    for one in (there, another):
        service.end(one)
        service.reaches(one, "TERMINATED")


def test_each_region_is_checked(two: tuple[Deployment, list[Proxy]]):
    service, _ = two
    command = [sys.executable, "-m", "blazar.cmd.status", "--config-file", str(service.conf), "upgrade", "check"]
    rows = [
        row.split() for row in subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.splitlines()
    ]
    for name in ("Nova", "Freepool", "Placement", "Neutron", "Cinder", "Glance", "Heat"):
        assert [row[1:] for row in rows if row[0] == name] == [["Success", "RegionOne"], ["Success", SECOND]], rows
