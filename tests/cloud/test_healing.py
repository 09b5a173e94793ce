# SPDX-License-Identifier: Apache-2.0
"""A nova-compute that dies, on a real OpenStack: what is promised of its host moves, and says so where it cannot."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests import openstack
from tests.cloud.deployment import Deployment, a_host, deployed, in_minutes
from tests.conftest import fresh_database
from tests.openstack import HOME, eventually

NOVA_NOTICES = 35.0
"""Seconds after which Nova calls a nova-compute down that reports no more (``service_down_time`` is 30 s there)."""
POLL, LOOKS = 3, 4
HEALED_WITHIN = NOVA_NOTICES + (LOOKS + 2) * POLL
MORE = f"""
[physical:host]
polling_interval = {POLL}
failures_before_healing = {LOOKS}
enable_notification_monitor = true
healing_interval = 120

[oslo_messaging_notifications]
transport_url = rabbit://cloud:secret@127.0.0.1:15673/
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One manager that looks every three seconds and hears Nova, and three registered hosts."""
    folder = tmp_path_factory.mktemp("blazar")
    for url in fresh_database("postgresql", folder):
        with deployed(folder, url, more=MORE) as running:
            yield running


@contextlib.contextmanager
def compute_stopped(host: str) -> Iterator[None]:
    """The nova-compute of a host reports no more, as if the host had died."""
    pid = json.loads((HOME / "run" / f"{host}.json").read_text())["pid"]
    os.killpg(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(pid, signal.SIGCONT)
        eventually(lambda: openstack.admin_compute().hypervisor(hostname=host).up, patience=90)


def hosts_of(service: Deployment, lease: str) -> set[str]:
    """Return the names of the hosts that are promised to a lease."""
    names = {host["id"]: host["hypervisor_hostname"] for host in service.call("admin", "GET", "/os-hosts")["hosts"]}
    listed = service.call("admin", "GET", f"/os-hosts/allocations?lease_id={lease}")["allocations"]
    return {names[item["resource_id"]] for item in listed if item["reservations"]}


def flags(lease: dict) -> tuple[bool, bool, bool]:
    (reservation,) = lease["reservations"]
    return reservation["missing_resources"], reservation["resources_changed"], lease["degraded"]


@pytest.mark.nightly
def test_leases_on_a_host_that_dies_are_healed_and_say_what_is_missing_until_it_is_back(service: Deployment):
    # First, as hosts that nobody uses before or after come first; the others follow it.
    later = {"start_date": in_minutes(70), "end_date": in_minutes(90)}
    waiting = service.create(name="waiting", body=later)["id"]
    (dying,) = hosts_of(service, waiting)
    running = service.create(name="running", host=dying)["id"]
    tied = service.create(name="tied", body={"start_date": in_minutes(100), "end_date": in_minutes(110)}, host=dying)[
        "id"
    ]
    service.reaches(running, "ACTIVE")
    (reservation,) = service.lease(running)["reservations"]
    host_id = next(h["id"] for h in service.call("admin", "GET", "/os-hosts")["hosts"] if h["service_name"] == dying)

    with compute_stopped(dying):
        died = time.monotonic()
        eventually(lambda: hosts_of(service, waiting), lambda hosts: hosts != {dying}, patience=HEALED_WITHIN)
        print(f"the waiting lease had another host {time.monotonic() - died:.1f} s after nova-compute stopped")
        assert flags(service.lease(waiting)) == (False, False, False)
        for lease in (running, tied):
            shown = eventually(lambda lease=lease: service.lease(lease), lambda shown: shown["degraded"])
            assert flags(shown) == (True, False, True)
        host = service.call("admin", "GET", f"/os-hosts/{host_id}")["host"]
        assert (host["reservable"], host["failure"]) == (False, "its nova-compute is down")
        # Nothing in use was moved.
        assert hosts_of(service, running) == {dying}
        assert openstack.admin_compute().aggregate(reservation["id"]).hosts == (dying,)
        refused = service.call(
            "demo",
            "POST",
            "/leases",
            {
                "name": "refused",
                "start_date": in_minutes(200),
                "end_date": in_minutes(220),
                "reservations": [a_host(3, 3)],
                "events": [],
            },
        )
        assert refused.status == 409, refused
    back = time.monotonic()
    for lease in (running, tied):
        eventually(
            lambda lease=lease: flags(service.lease(lease)), lambda seen: seen == (False, False, False), patience=30
        )
    print(f"flags were cleared {time.monotonic() - back:.1f} s after Nova had the host again")
    assert service.call("admin", "GET", f"/os-hosts/{host_id}")["host"]["reservable"]
    service.reaches(running, "ACTIVE")
    assert openstack.admin_compute().aggregate(reservation["id"]).hosts == (dying,)


def test_a_host_that_its_operator_disables_in_nova_is_out_of_use_at_once(service: Deployment):
    def reservable() -> bool:
        hosts = service.call("admin", "GET", "/os-hosts")["hosts"]
        return next(host["reservable"] for host in hosts if host["service_name"] == "compute-2")

    # The polls alone would need longer than that.
    within = (LOOKS - 2) * POLL
    for status, expected in (("disabled", False), ("enabled", True)):
        openstack.set_service("compute-2", status=status)
        began = time.monotonic()
        eventually(reservable, lambda seen, expected=expected: seen is expected, patience=within)
        print(f"{status}: known after {time.monotonic() - began:.1f} s")
