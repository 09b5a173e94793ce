# SPDX-License-Identifier: Apache-2.0
"""Servers of a size with an ephemeral disk and extra specs: wherever they are asked for, shown, changed and counted."""

from __future__ import annotations

from typing import Any

import pytest

from blazar.resources.hosts.options import HostSettings
from tests.api.conftest import app_of, client_of, token
from tests.world import PROJECT, World, of_hosts

SPECS = {"hw:cpu_policy": "dedicated"}
MORE = {"ephemeral_gb": 30, "extra_specs": SPECS}
# As a service that books for others sends it.
SERVERS: dict[str, Any] = {
    "resource_type": "virtual:instance",
    **{"amount": 1, "vcpus": 4, "memory_mb": 4096, "disk_gb": 20, "affinity": None, "resource_properties": ""},
    **MORE,
}
VERSIONS = ("1.0", "1.1")


class Site:
    """A host with disk for two such servers and CPUs for as many, and a member who speaks a version."""

    def __init__(self, world: World, version: str) -> None:
        self.world, self.version = world, version
        self._http = client_of(app_of(world.manager))

    def ask(self, method: str, path: str, body: Any = None, *, version: str | None = None) -> Any:
        headers = {**token(), "OpenStack-API-Version": f"reservation {version or self.version}"}
        return self._http.open(path, method=method, json=body, headers=headers)

    def book(self, path: str = "/v1/leases", **changes: Any) -> Any:
        dates = {"start_date": "2030-04-01 13:00", "end_date": "2030-04-01 15:00"}
        if self.version != "1.0":
            dates = {key: value.replace(" ", "T") + ":00Z" for key, value in dates.items()}
        return self.ask("POST", path, {"name": "n", **dates, "reservations": [{**SERVERS, **changes}]})

    def change(self, lease: Any, **changes: Any) -> Any:
        body = {"reservations": [{"id": lease["reservations"][0]["id"], **changes}]}
        return self.ask("PUT", f"/v1/leases/{lease['id']}", body)

    def flavor(self, lease: Any) -> Any:
        found = self.world.simulated.compute.flavor(lease["reservations"][0]["id"])
        ours = ("aggregate_instance_extra_specs:reservation", "resources:CUSTOM_RESERVATION")
        specs = {key: value for key, value in found.extra_specs.items() if not key.startswith(ours)}
        return (found.disk_gb, found.ephemeral_gb, specs)


@pytest.fixture
def a_site(a_world):
    state = of_hosts({"local_gb": 100, "inventories": {"PCPU": {"total": 8}}})

    def make(version: str = "1.1", allowed: tuple[str, ...] | None = None) -> Site:
        settings = None if allowed is None else HostSettings(extra_specs=allowed)
        return Site(a_world(hosts=1, state=state, host_settings=settings), version)

    return make


@pytest.fixture(params=VERSIONS)
def site(request, a_site):
    return a_site(request.param)


def shown(lease: Any) -> dict[str, Any]:
    return {key: value for key, value in lease["reservations"][0].items() if key in MORE}


def test_the_flavor_has_them_and_answers_show_them(site):
    made = site.book()
    assert made.status_code == 201, made.text
    lease = made.json["lease"]
    assert site.flavor(lease) == (20, 30, SPECS)
    for version in VERSIONS:
        assert shown(site.ask("GET", f"/v1/leases/{lease['id']}", version=version).json["lease"]) == MORE
        assert shown(site.ask("GET", "/v1/leases", version=version).json["leases"][0]) == MORE


@pytest.mark.parametrize("without", [{"ephemeral_gb": 0, "extra_specs": {}}, {"ephemeral_gb": None}], ids=str)
def test_without_them_answers_are_as_ever(a_site, without):
    site = a_site("1.0")
    lease = site.book(**{"extra_specs": None, **without}).json["lease"]
    assert (shown(lease), site.flavor(lease)) == ({}, (20, 0, {}))


def test_both_disks_are_counted_together_and_dedicated_cpus_as_such(a_site):
    site = a_site()
    assert site.book("/v1/leases?dry_run=true", amount=2).status_code == 200
    assert site.book("/v1/leases?dry_run=true", amount=3).status_code == 409
    assert site.book("/v1/leases?dry_run=true", ephemeral_gb=80).status_code == 200
    assert site.book("/v1/leases?dry_run=true", ephemeral_gb=81).status_code == 409
    assert site.book("/v1/leases?dry_run=true", vcpus=9, ephemeral_gb=0).status_code == 409
    assert site.book("/v1/leases?dry_run=true", vcpus=9, ephemeral_gb=0, extra_specs={}).status_code == 200
    site.version = "1.0"
    lease = site.book(amount=2).json["lease"]
    assert site.book(disk_gb=1, ephemeral_gb=0).status_code == 409
    (allocation,) = site.world.store.calendar.of_lease(lease["id"])
    assert dict(allocation.per_instance) == {"PCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 50}


def test_before_the_start_they_change_and_the_flavor_follows(site):
    lease = site.book().json["lease"]
    assert site.change(lease, amount=2).status_code == 200
    assert site.flavor(lease) == (20, 30, SPECS)
    assert site.change(lease, extra_specs={"hw:cpu_cores": "2"}, amount=1).status_code == 200
    assert site.flavor(lease) == (20, 30, {"hw:cpu_cores": "2"})
    assert site.change(lease, ephemeral_gb=81).status_code == 409
    changed = site.change(lease, ephemeral_gb=0, extra_specs={})
    assert (changed.status_code, shown(changed.json["lease"]), site.flavor(lease)) == (200, {}, (20, 0, {}))


def test_in_use_they_stay_and_can_be_sent_back(site):
    lease = site.book().json["lease"]
    site.world.run_to(site.world.clock.now().replace(hour=13, minute=1))
    for changes in ({"ephemeral_gb": 1}, {"extra_specs": {}}):
        refused = site.change(lease, **changes)
        assert (refused.status_code, next(iter(changes)) in refused.text) == (409, True), refused.text
    assert site.change(lease, **MORE).status_code == 200
    assert site.flavor(lease) == (20, 30, SPECS)
    booted = site.world.simulated.users.boot_reserved(lease["reservations"][0]["id"], project_id=PROJECT, name="work")
    assert (booted.host, booted.amounts.get("DISK_GB")) == ("node-1", 50)


def test_a_whole_lease_with_them_can_be_sent_back(a_site):
    site = a_site()
    path = f"/v1/leases/{site.book().json['lease']['id']}"
    lease = site.ask("GET", path).json["lease"]
    assert site.ask("PUT", path, lease).json["lease"] == lease
    (reservation,) = lease["reservations"]
    changed = site.ask("PUT", path, {**lease, "reservations": [{**reservation, "ephemeral_gb": 10}]})
    assert (changed.status_code, shown(changed.json["lease"])) == (200, {**MORE, "ephemeral_gb": 10})


def test_series_and_openings_have_them_too(a_site):
    site = a_site()
    question = {"duration": "PT2H", "latest": "+P2D", "limit": 1}
    fits, too_large = ({**question, "reservations": [{**SERVERS, "amount": count}]} for count in (2, 3))
    assert site.ask("POST", "/v1/availability", fits).json["availability"]["openings"]
    assert not site.ask("POST", "/v1/availability", too_large).json["availability"]["openings"]
    rule = {"name": "s", "time_zone": "UTC", "start": "2030-04-02T09:00", "rule": "FREQ=DAILY;COUNT=2"}
    made = site.ask("POST", "/v1/series", {**rule, "duration": "PT2H", "reservations": [SERVERS]})
    assert made.status_code == 201, made.text
    series = site.ask("GET", f"/v1/series/{made.json['series']['id']}").json["series"]
    assert {key: series["reservations"][0][key] for key in MORE} == MORE
    for occurrence in series["occurrences"]:
        assert shown(site.ask("GET", f"/v1/leases/{occurrence['lease_id']}").json["lease"]) == MORE


OUTSIDE = (
    *("resources:VCPU", "resources:CUSTOM_RESERVATION_X", "resources1:VGPU", "resources_a:VGPU", "Resources:VCPU"),
    *("trait:CUSTOM_A", "trait1:CUSTOM_A", "aggregate_instance_extra_specs:reservation", "capabilities:vcpus"),
    *("aggregate_instance_extra_specs:ssd", "reservation", "reservation:a", "affinity_id", "group_policy", "ssd"),
    *("blazar:preemptible", "blazar:x", " trait:CUSTOM_A"),
)
UNCOUNTED = ("pci_passthrough:alias", "accel:device_profile", "hw:pmem")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_leads_out_of_the_reserved_capacity_is_refused_whatever_is_allowed(a_site, version):
    site = a_site(version, allowed=("*",))
    for name in (*OUTSIDE, *UNCOUNTED, "a/b:c", "", "ü:x"):
        refused = site.book(extra_specs={"hw:cpu_cores": "1", name: "1"})
        assert (refused.status_code, "extra_specs" in refused.text) == (400, True), name
        assert not name.isascii() or name in refused.text
    assert site.book(extra_specs={"vendor:speed": "1"}).status_code == 201


WRONG = (
    *({"hw:cpu_policy": "mixed"}, {"hw:cpu_policy": "banana"}, {"hw:cpu_policy": 1}, {"hw:cpu_policy": None}),
    *({"hw:cpu_policy": ""}, {"hw:cpu_cores": "x" * 256}, {"hw:cpu_cores": "0"}, {"hw:cpu_cores": {"a": "b"}}),
    *({"hw:mem_page_size": "large"}, {"quota:cpu_shares": "9"}, {f"hw:{n}": "1" for n in range(65)}),
    *([], "hw:cpu_policy=dedicated", 7, True),
)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_makes_no_sense_is_refused_and_the_field_named(a_site, version):
    site = a_site(version)
    for specs in WRONG:
        refused = site.book(extra_specs=specs)
        assert (refused.status_code, "extra_specs" in refused.text) == (400, True), specs
    for size in (-1, 1.5, "much", True, 2**31, [], {}):
        refused = site.book(ephemeral_gb=size)
        assert (refused.status_code, "ephemeral_gb" in refused.text) == (400, True), size
    assert site.book(disk_gb=2**31 - 1, ephemeral_gb=1).status_code == 400


def test_what_is_no_longer_allowed_may_stay(a_site):
    site = a_site()
    lease = site.book().json["lease"]
    site.world.host_settings = HostSettings(extra_specs=())
    later = Site(site.world, "1.1")
    later._http = client_of(app_of(site.world.another_manager()))
    assert later.change(lease, extra_specs=SPECS, vcpus=2).status_code == 200
    refused = later.change(lease, extra_specs={**SPECS, "hw:cpu_cores": "1"})
    assert (refused.status_code, "hw:cpu_cores is not allowed here, nor is any other" in refused.text) == (400, True)


def test_what_operators_add_to_the_flavor_stays(a_site):
    site = a_site()
    lease = site.book().json["lease"]
    id_ = lease["reservations"][0]["id"]
    site.world.simulated.compute.set_flavor_specs(id_, {"quota:disk_read_iops_sec": "9", "hw:cpu_cores": "3"})
    site.world.run_to(site.world.clock.now().replace(hour=13, minute=1))
    assert site.flavor(lease) == (20, 30, {**SPECS, "quota:disk_read_iops_sec": "9"})
    assert PROJECT in site.world.simulated.compute.flavor_access(id_)
