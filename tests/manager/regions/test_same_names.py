# SPDX-License-Identifier: Apache-2.0
"""Both regions have hosts of the same names: what is done with one of them touches nothing in the other region."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blazar.clouds.outgoing import signing
from blazar.cmd.db_manage import main
from blazar.model.base.errors import Conflict
from blazar.model.base.moments import NOW, Duration
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationRequest
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, HOST, NETWORK, Resource, ResourceKind
from blazar.model.surgery import Partner, PartRequest, SplitRequest, SwapRequest
from tests.manager.regions.world import HOUR, REGIONS, TwoRegions, hosts_in
from tests.manager.surgery.steps import OPERATOR
from tests.people import PeopledCloud
from tests.world import (
    a_host,
    a_network,
    address_request,
    addresses,
    device_request,
    devices,
    segment_request,
    thing_request,
    units,
)

BOTH = pytest.mark.parametrize("region", REGIONS.names)
IDS = {"R1": "1", "R2": "R2:1"}
"""Of the hosts called node-1."""


@pytest.fixture
def two(sqlite) -> TwoRegions:
    return TwoRegions(sqlite)


def cloud_of(two: TwoRegions, region: str) -> PeopledCloud:
    return {"R1": two.simulated, "R2": two.second}[region]


def held(two: TwoRegions, lease: Lease) -> list[tuple[str, str]]:
    """Return region and name of what a lease has."""
    found = two.store.resources.by_ids({each.resource_id for each in two.store.calendar.of_lease(lease.id)})
    return sorted((resource.region, resource.name) for resource in found.values())


def picture(two: TwoRegions) -> dict[tuple[str, str], object]:
    """Return all that is known of each host: what is stored, who has it when, and how it is in its cloud."""
    promised = two.store.calendar.load_live(HOST)

    def look(host: Resource) -> object:
        users = {(each.reservation_id, each.window) for each in promised if each.resource_id == host.id}
        with cloud_of(two, host.region).inspect() as state:
            (compute,) = (each for each in state.hosts.values() if each.name == host.name)
            there = {each.name for each in state.aggregates.values() if compute.service_name in each.hosts}
            return host, users, there, compute.enabled

    return {(host.region, host.name): look(host) for host in two.store.resources.of_kind(HOST)}


Act = Callable[[], object]
"""What is done with node-1 of a region, after all is prepared in both."""


def named(region: str, name: str) -> ReservationRequest:
    return a_host(needs=f'["and", ["==", "$hypervisor_hostname", "{name}"], ["==", "$region", "{region}"]]')


def lease_of(two: TwoRegions, region: str, name: str) -> Lease:
    """Return a lease that has a host, and asks for any of its region."""
    (taken,) = {"node-1", "node-2"} - {name}
    in_the_way = two.lease(named(region, taken), start=HOUR)
    lease = two.lease(hosts_in(region), start=HOUR)
    two.manager.leases.delete(in_the_way.id)
    assert held(two, lease) == [(region, name)]
    return lease


def book(two: TwoRegions, region: str) -> Act:
    return lambda: two.lease(named(region, "node-1"))


def start(two: TwoRegions, region: str) -> Act:
    lease_of(two, region, "node-1")
    return lambda: two.run_to(two.clock.now() + HOUR)


def swap_for_it(two: TwoRegions, region: str) -> Act:
    leases = {each: lease_of(two, each, "node-2") for each in REGIONS}
    request = SwapRequest(leases[region].reservations[0].id, "node-2", "node-1")
    return lambda: two.manager.surgery.swap(leases[region].id, request, OPERATOR)


def swap_it_away(two: TwoRegions, region: str) -> Act:
    leases = {each: lease_of(two, each, "node-1") for each in REGIONS}
    request = SwapRequest(leases[region].reservations[0].id, "node-1")
    return lambda: two.manager.surgery.swap(leases[region].id, request, OPERATOR)


def exchange_it(two: TwoRegions, region: str) -> Act:
    pairs = {each: [lease_of(two, each, "node-1"), two.lease(hosts_in(each), start=HOUR)] for each in REGIONS}
    has, wants = pairs[region]
    partner = Partner(has.id, has.reservations[0].id)
    request = SwapRequest(wants.reservations[0].id, "node-2", "node-1", partner)
    return lambda: two.manager.surgery.swap(wants.id, request, OPERATOR)


def split_it_off(two: TwoRegions, region: str) -> Act:
    leases = {each: two.lease(hosts_in(each, 2, 2), start=HOUR) for each in REGIONS}
    request = SplitRequest((PartRequest(leases[region].reservations[0].id, resources=("node-1",)),))
    return lambda: two.manager.surgery.split(leases[region].id, request, OPERATOR)


def move_a_lease_off_it(two: TwoRegions, region: str) -> Act:
    leases = {each: lease_of(two, each, "node-1") for each in REGIONS}
    return lambda: two.manager.resources.move(HOST, IDS[region], leases[region].reservations[0].id)


def maintain_it(two: TwoRegions, region: str) -> Act:
    for each in REGIONS:
        lease_of(two, each, "node-1")
    needs = named(region, "node-1").parameters["resource_properties"]
    request = MaintenanceRequest("disks", NOW, Duration(days=1), requirement=needs, disable_service=True)

    def act() -> None:
        two.manager.maintenances.create(request)
        two.manager.maintenance_work.run_once()

    return act


def lose_it(two: TwoRegions, region: str) -> Act:
    for each in REGIONS:
        lease_of(two, each, "node-1")
    cloud_of(two, region).operators.host_down("node-1")

    def act() -> None:
        for _ in range(3):
            two.manager.monitor.run_once()

    return act


def refresh_it(two: TwoRegions, region: str) -> Act:
    for each in REGIONS:
        cloud_of(two, each).operators.host_down("node-1")
    return lambda: two.manager.resources.refresh(HOST, IDS[region])


def change_it(two: TwoRegions, region: str) -> Act:
    return lambda: two.manager.resources.change(HOST, IDS[region], ResourceChange({"rack": "r1"}, disabled=True))


def unregister_it(two: TwoRegions, region: str) -> Act:
    return lambda: two.manager.resources.unregister(HOST, IDS[region])


@BOTH
@pytest.mark.parametrize(
    "prepare",
    [
        book,
        start,
        swap_for_it,
        swap_it_away,
        exchange_it,
        split_it_off,
        move_a_lease_off_it,
        maintain_it,
        lose_it,
        refresh_it,
        change_it,
        unregister_it,
    ],
)
def test_what_is_done_with_a_host_touches_no_other_region(two, prepare, region):
    act = prepare(two, region)
    before = picture(two)
    act()
    after = picture(two)
    changed = {host for host in before if before[host] != after.get(host)}
    assert (region, "node-1") in changed
    assert {place for place, _ in changed} == {region}


def test_leases_of_two_regions_exchange_no_hosts(two):
    # It is not what it asks for that keeps it in its region.
    here, there = two.lease(a_host(), start=HOUR), two.lease(within("R2", a_host()), start=HOUR)
    for lease, other in ((here, there), (there, here)):
        partner = Partner(other.id, other.reservations[0].id)
        request = SwapRequest(lease.reservations[0].id, "node-1", "node-1", partner)
        with pytest.raises(Conflict, match="lies in the region R.*exchanged within a region only"):
            two.manager.surgery.swap(lease.id, request, OPERATOR)
    assert [held(two, lease) for lease in (here, there)] == [[("R1", "node-1")], [("R2", "node-1")]]


def test_a_notification_confirms_the_failure_of_no_host_of_another_region(two):
    for region in REGIONS:
        cloud_of(two, region).operators.host_down("node-1")
    two.manager.monitor.hint("node-1")
    two.manager.monitor.run_once()
    failed = [(host.region, host.name) for host in two.store.resources.of_kind(HOST) if host.failure]
    # Nova's notifications are received from the first region only.
    assert failed == [("R1", "node-1")]
    two.manager.monitor.run_once()
    assert all(host.failure for host in two.store.resources.of_kind(HOST) if host.name == "node-1")


def within(region: str, request: ReservationRequest) -> ReservationRequest:
    return ReservationRequest(request.resource_type, {**request.parameters, "region": region})


@BOTH
@pytest.mark.parametrize(
    ("kind", "registration", "request_"),
    [
        (FLOATING_IP, address_request("public", "203.0.113.21"), addresses(required=[21])),
        (NETWORK, segment_request(5), a_network()),
        (GENERIC, thing_request("microscope-1"), units(needs='["==", "$name", "microscope-1"]')),
        (DEVICE, device_request("edge-1"), devices(resource_properties='["==", "$name", "edge-1"]')),
    ],
    ids=[FLOATING_IP, NETWORK, GENERIC, DEVICE],
)
def test_what_else_has_one_name_in_both_is_booked_in_the_region_that_is_named(
    two, kind: ResourceKind, registration, request_, region
):
    (name,) = {two.register_one(kind, each, registration).name for each in REGIONS}
    assert held(two, two.lease(within(region, request_))) == [(region, name)]


def test_secrets_of_one_of_several_things_of_a_name_are_asked_for_by_its_id(two, tmp_path, capsys):
    here, there = (two.register_one(GENERIC, region, thing_request("microscope-1")) for region in REGIONS)
    master = "m" * 40
    lines = f"[database]\nconnection = {two.engine.url}\n[generic]\nmaster_secrets = {master}\n"
    (tmp_path / "blazar.conf").write_text(lines, "utf-8")
    secrets = ["--config-file", str(tmp_path / "blazar.conf"), "hook-secrets"]
    assert main([*secrets, "microscope-1"]) == 1
    assert f"give the id of one: {here.external_id}, {there.external_id}" in capsys.readouterr().err
    assert main([*secrets, there.external_id]) == 0
    assert capsys.readouterr().out.split() == [signing.secret_text(signing.derive_secret(master, there.external_id))]
