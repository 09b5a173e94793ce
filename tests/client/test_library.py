# SPDX-License-Identifier: Apache-2.0
"""Our library and openstacksdk's reservation service against the service itself, on a way that loses things."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import openstack
import pytest
from blazarclient import client, exception, sdk
from blazarclient.library.transport import MICROVERSION

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.api.http.openapi import Served
from blazar.api.parts import all_parts
from tests.api.conftest import app_of
from tests.client.serving import Fate, library, logged_in, serving
from tests.world import NOON

ADMIN = "root:demo:admin"
HOST = {"resource_type": "physical:host", "min": 1}
OLD_HOST = {**HOST, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
HOUR = timedelta(hours=1)


@pytest.fixture
def way(world):
    with serving(app_of(world.manager)) as way:
        yield way


@pytest.fixture
def mine(way):
    return library(way.url)


@pytest.fixture
def all_of_it(way):
    return library(way.url, ADMIN)


def booked(reservations, name="training"):
    return list(reservations.leases.list(name=name, state="all"))


def create(reservations, name="training", **more):
    times = {"start_date": NOON + HOUR, "end_date": "+2h"}
    return reservations.leases.create(name, reservations=[HOST], **times, **more)


def test_the_library_speaks_the_newest_microversion():
    assert as_text(MAX_VERSION) == MICROVERSION


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.CUT])
def test_one_lease_is_booked_when_something_is_lost(way, mine, fate):
    way.loses(fate)
    made = create(mine)
    assert way.met == 1
    assert [each.id for each in booked(mine)] == [made.id]


def test_an_uncertain_creation_is_made_certain_by_its_key(way, mine):
    way.loses(rest=Fate.ANSWER_LOST)
    with pytest.raises(exception.Uncertain) as told:
        create(mine)
    way.loses()
    [there] = booked(mine)
    again = create(mine, idempotency_key=told.value.idempotency_key)
    assert again.id == there.id
    assert len(booked(mine)) == 1


def test_an_uncertain_creation_that_never_arrived_is_made_by_its_key(way, mine):
    way.loses(rest=Fate.LOST)
    with pytest.raises(exception.Uncertain) as told:
        create(mine)
    way.loses()
    assert booked(mine) == []
    create(mine, idempotency_key=told.value.idempotency_key)
    assert len(booked(mine)) == 1


def test_one_key_is_one_lease_for_many_at_once(way):
    def one(_):
        return create(library(way.url), idempotency_key="ours").id

    with ThreadPoolExecutor(6) as pool:
        assert len({*pool.map(one, range(6))}) == 1
    assert len(booked(library(way.url))) == 1


@pytest.mark.slow
def test_whatever_is_lost_in_whatever_order_there_are_never_two(way, mine):
    dice = random.Random(20301)
    for number in range(25):
        name = f"lease-{number}"
        way.loses(*dice.choices(list(Fate), k=dice.randint(1, 8)))
        try:
            made = create(mine, name)
        except exception.Uncertain as told:
            way.loses()
            assert len(booked(mine, name)) <= 1
            made = create(mine, name, idempotency_key=told.idempotency_key)
        way.loses()
        assert [each.id for each in booked(mine, name)] == [made.id]
        mine.leases.delete(made.id)
    assert way.met > 25


@pytest.mark.sample(1)
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.CUT])
def test_a_lease_is_extended_once_ended_once_and_deleted_when_answers_are_lost(way, mine, fate):
    made = create(mine)
    way.loses(Fate.ARRIVES, fate)
    assert mine.leases.extend(made.id, HOUR).end_date == NOON + 4 * HOUR
    way.loses(fate)
    mine.leases.delete(made.id)
    assert mine.leases.get(made.id).deleted_at is not None


def test_ending_an_active_lease_twice_is_ending_it(world, way, mine):
    made = mine.leases.create("now", reservations=[HOST], end_date="+2h")
    world.run()
    world.clock.by(minutes=10)
    way.loses(Fate.ANSWER_LOST)
    mine.leases.end(made.id)
    world.run()
    assert mine.leases.get(made.id).status == "TERMINATED"
    assert mine.leases.end(made.id).status == "TERMINATED"


def test_a_lease_from_free_time_to_its_end(world, mine):
    free = mine.availability([HOST], duration="PT2H", latest=NOON + timedelta(days=2))
    opening = free.openings[0]
    tried = create(mine, dry_run=True)
    assert (tried.id, tried.status) == (None, "PENDING")
    dates = {"start_date": opening.start_date, "end_date": opening.end_date}
    made = mine.leases.create("training", reservations=[HOST], **dates)
    world.run()
    ready = mine.leases.wait(made.id, timeout=0)
    assert ready.status == "ACTIVE"
    assert ready.reservations[0].allocations[0].status == "in_use"
    assert mine.leases.find("training").id == made.id
    assert mine.availability(lease_id=made.id).extension is not None
    with pytest.raises(exception.PreconditionFailed):
        mine.leases.change(made.id, name="new", if_match=made.etag)
    assert mine.leases.change(made.id, name="new", if_match=ready.etag).name == "new"


def test_a_refusal_has_reasons_and_what_would_fit(mine):
    create(mine)
    with pytest.raises(exception.NotEnoughResources, match="Not enough hosts available: .*It fits from") as told:
        mine.leases.create("more", reservations=[{**HOST, "min": 3}], start_date=NOON + HOUR, end_date="+2h")
    assert told.value.code == 409
    assert told.value.request_id.startswith("req-")
    assert told.value.fault.data["alternatives"]


def test_what_is_wrong_with_a_request_is_told_item_by_item(mine):
    with pytest.raises(exception.InvalidRequest) as told:
        mine.leases.create("x" * 200, reservations=[{"resource_type": "physical:host", "min": "one"}], end_date="+1h")
    assert {fault.pointer for fault in told.value.faults} == {"/name", "/reservations/0/min"}


@pytest.mark.slow
def test_pages_hold_every_lease_once(mine):
    for number in range(5):
        made = create(mine, f"lease-{number}")
        mine.leases.delete(made.id)
    names = [each.name for each in mine.leases.list(state="all", limit=2)]
    assert sorted(names) == [f"lease-{number}" for number in range(5)]


@pytest.mark.slow
def test_what_an_operator_does(world, all_of_it):
    hosts = list(all_of_it.hosts.list(limit=2))
    assert len(hosts) == 3
    host = all_of_it.hosts.find(hosts[0].hypervisor_hostname)
    changed = all_of_it.hosts.change(host.id, properties={"gpu": "A100"}, if_match=host.etag)
    assert changed.properties["gpu"] == "A100"
    assert all_of_it.hosts.disable(host.id, reason="fan", until="+P3D").disabled.reason == "fan"
    assert all_of_it.hosts.enable(host.id).disabled is None
    all_of_it.hosts.set_private("gpu", True)
    assert {each.host_id for each in all_of_it.hosts.hypervisors()} >= {each.id for each in hosts}
    create(all_of_it)
    assert sum(len(each.reservations) for each in all_of_it.hosts.promised()) == 1
    assert [len(row.blocks) for row in all_of_it.calendar(limit=1)].count(1) == 1
    capacity = all_of_it.capacity(group_by="gpu", step="1h", end="+PT3H")
    assert sum(series.total[0] for series in capacity.series) == 3
    world.register_addresses(10)
    [there] = all_of_it.floating_ips.list()
    assert all_of_it.floating_ips.find(there.floating_ip_address) == all_of_it.floating_ips.get(there.id)
    all_of_it.floating_ips.delete(there.id)
    with pytest.raises(exception.NotFound, match="There is no host nope"):
        all_of_it.hosts.find("nope")


def test_what_a_member_sees_beside_leases(mine):
    assert mine.info().now == NOON
    assert "blazar:leases:post" in mine.info().allowed
    assert "vcpus" in {each.name for each in mine.properties()}
    feed = mine.feeds.create(name="phone")
    assert feed.url.endswith(".ics")
    assert [each.id for each in mine.feeds.list()] == [feed.id]
    mine.feeds.delete(feed.id)
    seen = list(mine.hosts.list(availability_zone="az-1"))
    assert [(each.id[:2], each.hypervisor_hostname, each.disabled) for each in seen] == [("h-", "", None)]
    with pytest.raises(exception.Forbidden):
        list(mine.hosts.promised())


@pytest.fixture
def old_way(world):
    """The way to a service that speaks only microversion 1.0."""
    app = create_app(world.manager, identity=StandaloneIdentity(), served=Served(all_parts(), newest=(1, 0)))
    with serving(app) as way:
        yield way


def test_a_service_of_microversion_1_0_is_told_of_and_nothing_is_booked(world, old_way):
    old = library(old_way.url)
    for ask in (lambda: create(old), old.info, lambda: booked(old), lambda: old.leases.delete("x")):
        with pytest.raises(exception.UnsupportedVersion, match="does not speak microversion .*, which this needs: "):
            ask()
    v1 = client.Client("1", session=logged_in(old_way.url))
    assert v1.lease.list() == []


@pytest.mark.slow
def test_the_managers_of_version_1_serve_with_either_service(way, old_way):
    for url in (way.url, old_way.url):
        v1 = client.Client("1", session=logged_in(url))
        made = v1.lease.create("old", "2030-04-02 09:00", "2030-04-02 10:00", [OLD_HOST], [])
        assert v1.lease.update(made["id"], prolong_for="90s")["end_date"] == "2030-04-02T10:02:00.000000"
        assert v1.lease.update(made["id"])["name"] == "old"
        (host,) = v1.lease.hosts_in_lease(made["id"])
        assert (host["reservable"], host["hypervisor_hostname"]) == (True, None)
        assert v1.lease.additional_details(made["id"]) == {"hosts": [host], "networks": [], "devices": []}
        v1.lease.delete(made["id"])
        with pytest.raises(exception.NotFound, match="^ERROR: ") as told:
            v1.lease.get(made["id"])
        assert (told.value.code, told.value.kwargs["code"]) == (404, 404)


def test_openstacksdk_books_and_waits(world, way):
    login = {"auth_type": "admin_token", "auth": {"endpoint": way.url, "token": "curie:physics"}}
    connection = openstack.connect(load_yaml_config=False, load_envvars=False, **login)
    reservation = sdk.reservation(connection)
    made = reservation.create_lease("training", reservations=[HOST], end_date="+2h")
    world.run()
    assert reservation.wait_for_lease(made).status == "ACTIVE"
    assert [each.id for each in reservation.leases(status="ACTIVE")] == [made.id]
    reservation.delete_lease(made)
    reservation.delete_lease("11111111-2222-4333-8444-000000000001")
    with pytest.raises(openstack.exceptions.NotFoundException):
        reservation.get_lease("11111111-2222-4333-8444-000000000001")


@pytest.mark.slow
def test_openstacksdk_books_hosts_out_for_maintenance(world, way):
    login = {"auth_type": "admin_token", "auth": {"endpoint": way.url, "token": ADMIN}}
    reservation = sdk.reservation(openstack.connect(load_yaml_config=False, load_envvars=False, **login))
    lease = reservation.create_lease("training", reservations=[HOST], start_date=NOON + HOUR, end_date="+2h")
    [host] = {each.resource_id for each in reservation.allocations() if each.reservations}
    window = {"start_date": "2030-04-01T12:30:00Z", "end_date": "+PT6H", "hosts": [host]}
    impact = reservation.maintenance_impact("disks", **window)
    assert [(each.lease_id, each.outcome) for each in impact.leases] == [(lease.id, "moved")]
    assert list(reservation.maintenances()) == []
    made = reservation.create_maintenance("disks", impact_id=impact.id, **window)
    assert reservation.find_maintenance("disks").id == made.id
    assert reservation.update_maintenance(made, end_date="+PT7H").end_date == made.end_date + HOUR
    with pytest.raises(openstack.exceptions.ConflictException, match="delete it instead"):
        reservation.end_maintenance(made)
    reservation.delete_maintenance(made)
    assert reservation.get_maintenance(made).status == "CANCELLED"
    assert reservation.find_maintenance("disks").status == "CANCELLED"
