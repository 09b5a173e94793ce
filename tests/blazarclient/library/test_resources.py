# SPDX-License-Identifier: Apache-2.0
"""Hosts, addresses, free time, calendar, capacity, properties and feeds by the library."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from blazarclient import exception

from tests.blazarclient.library.stub import SPOKEN, Says, refused

AS_OF = "2030-04-01T12:00:00Z"
NOON = datetime(2030, 4, 1, 12, tzinfo=UTC)
NOVA = {"hypervisor_hostname": "cn12", "availability_zone": "az-1", "cpu_info": '{"arch": "x86_64"}', "vcpus": 64}
HOST = {"id": "12", "label": "h-1", "name": "cn12", "attributes": NOVA, "capacity": {"VCPU": 64}, "disabled": None}
MISSING = refused(404, "host_not_found", "There is no host.")


def query(asked):
    return parse_qs(urlsplit(asked.path).query)


def test_a_host_is_found_by_its_name_and_by_its_id(reservations, stub):
    host = Says(200, {"resource": HOST}, {"ETag": '"1"'})
    stub.says(Says(200, {"resources": [HOST]}), host)
    assert reservations.hosts.find("cn12").etag == '"1"'
    stub.says(Says(200, {"resources": []}), host)
    assert reservations.hosts.find("12").hypervisor_hostname == "cn12"
    stub.says(Says(200, {"resources": []}), MISSING)
    with pytest.raises(exception.NotFound, match="There is no host cn99"):
        reservations.hosts.find("cn99")


def test_hosts_are_listed_by_what_they_are_called_and_by_what_nova_says_of_them(reservations, stub):
    stub.says(Says(200, {"resources": [HOST]}))
    asked = {"hypervisor_hostname": "in:cn12,cn13", "availability_zone": "az-1", "property": "gpu:A100"}
    [host] = reservations.hosts.list(**asked, condition="ok", sort_key="availability_zone")
    assert (host.hypervisor_hostname, host.availability_zone, host.cpu_info) == ("cn12", "az-1", {"arch": "x86_64"})
    assert query(stub.asked[0]) == {
        "name": ["in:cn12,cn13"],
        "property": ["gpu:A100", "availability_zone:az-1"],
        "condition": ["ok"],
        "sort_key": ["property:availability_zone"],
    }
    fields = ("hypervisor_hostname", "service_name", "cpu_info", "failure")
    list(reservations.hosts.list(fields=fields, sort_key="hypervisor_hostname"))
    assert query(stub.asked[1]) == {"fields": ["name,attributes,failure"], "sort_key": ["name"]}


def test_a_host_is_registered_with_properties(reservations, stub):
    stub.says(Says(201, {"resource": HOST}))
    reservations.hosts.register("cn12", properties={"gpu": "A100"})
    assert stub.asked[0].body == {"name": "cn12", "properties": {"gpu": "A100"}}


def test_none_of_a_change_is_a_value(reservations, stub):
    stub.says(Says(200, {"resource": HOST}))
    reservations.hosts.change("12", properties={"rack": None})
    reservations.hosts.change("12", authorized_projects=None, if_match='"1"')
    assert [asked.body for asked in stub.asked] == [{"properties": {"rack": None}}, {"authorized_projects": None}]
    assert stub.asked[1].headers["If-Match"] == '"1"'


def test_what_is_promised_of_hosts(reservations, stub):
    promise = {"id": "r", "lease_id": "l", "start_date": AS_OF, "end_date": AS_OF, "count": 2}
    stub.says(Says(200, {"allocations": [{"resource_id": "12", "reservations": [promise]}]}))
    [one] = reservations.hosts.promised(lease_id="l")
    assert (one.resource_id, one.reservations[0].count, one.reservations[0].start_date) == ("12", 2, NOON)


def test_an_address_is_found_by_itself(reservations, stub):
    known = {"floating_network_id": "n", "floating_ip_address": "192.0.2.1"}
    address = {"id": "a", "attributes": known, "created_at": None}
    stub.says(Says(200, {"resources": [address]}), Says(200, {"resource": address}, {"ETag": '"1"'}))
    found = reservations.floating_ips.find("192.0.2.1")
    assert (found.id, found.floating_ip_address, found.etag) == ("a", "192.0.2.1", '"1"')
    assert query(stub.asked[0]) == {"property": ["floating_ip_address:192.0.2.1"], "limit": ["1"]}
    stub.says(Says(200, {"resources": []}), refused(404, "floating_ip_not_found", "There is no such address."))
    with pytest.raises(exception.NotFound, match=r"There is no address 192\.0\.2\.9"):
        reservations.floating_ips.find("192.0.2.9")


def test_free_time(reservations, stub):
    opening = {"start_date": AS_OF, "end_date": AS_OF, "last_start_date": AS_OF, "open_until": None}
    why = {"pointer": "/reservations/0", "asked": 4, "free": 1, "message": "1 free", "steps": []}
    answer = {"as_of": AS_OF, "earliest": AS_OF, "latest": AS_OF, "openings": [opening], "reasons": [why]}
    stub.says(Says(200, {"availability": answer}))
    found = reservations.availability([{"resource_type": "physical:host"}], duration="P3D", latest=NOON, limit=1)
    assert stub.asked[0].body == {
        "reservations": [{"resource_type": "physical:host"}],
        "duration": "P3D",
        "latest": "2030-04-01T12:00:00Z",
        "limit": 1,
    }
    assert found.openings[0].open_until is None
    assert found.reasons[0].message == "1 free"


def test_the_calendar_is_read_page_by_page(reservations, stub):
    def page(name, *links):
        row = {"id": name, "type": "host", "blocks": [{"kind": "other", "start": AS_OF, "end": None}]}
        return Says(200, {"calendar": {"as_of": AS_OF, "resources": [row]}, "links": list(links)})

    stub.says(page("a", {"rel": "next", "href": "/v1/calendar?marker=m"}), page("b"))
    rows = list(reservations.calendar(start=NOON, limit=1))
    assert [row.id for row in rows] == ["a", "b"]
    assert rows[0].blocks[0].start == NOON
    assert query(stub.asked[1]) == {"from": ["2030-04-01T12:00:00Z"], "limit": ["1"], "marker": ["m"]}


def test_capacity_by_two_properties(reservations, stub):
    series = [{"group": {"gpu": "A100"}, "total": [8], "free": [1], "promised": [4], "out_of_use": [3]}]
    answer = {"as_of": AS_OF, "from": AS_OF, "to": AS_OF, "step_seconds": 3600, "measure": "VCPU", "series": series}
    stub.says(Says(200, {"capacity": answer}))
    seen = reservations.capacity(step="1h", group_by=["gpu", "rack"], measure="VCPU")
    assert query(stub.asked[0]) == {"step": ["1h"], "group_by": ["gpu", "rack"], "measure": ["VCPU"]}
    assert (seen.start, seen.series[0].free) == (NOON, (1,))
    reservations.capacity(group_by="gpu")
    assert query(stub.asked[1]) == {"group_by": ["gpu"]}


def test_numbers_of_properties_may_be_whole(reservations, stub):
    vcpus = {"name": "vcpus", "type": "number", "minimum": 32, "maximum": 128.5, "values": [{"value": 64, "count": 3}]}
    stub.says(Says(200, {"properties": [vcpus]}))
    [one] = reservations.properties()
    assert (one.minimum, one.maximum, one.values[0].count) == (32, 128.5, 3)


def test_a_feed_tells_its_link_when_it_is_made(reservations, stub):
    feed = {"id": "f", "kind": "user", "name": "phone", "url": "https://cloud.example/feeds/s.ics"}
    stub.says(Says(201, {"feed": feed}))
    assert reservations.feeds.create(name="phone").url == "https://cloud.example/feeds/s.ics"
    assert stub.asked[0].body == {"kind": "user", "name": "phone"}


def test_info_tells_the_clock_of_the_service(reservations, stub):
    stub.says(Says(200, {"info": {"now": AS_OF, "allowed": ["blazar:leases:get"]}}))
    info = reservations.info()
    assert (info.now, info.allowed) == (NOON, ("blazar:leases:get",))


def test_resources_of_any_kind_are_changed_in_one_way(reservations, stub):
    telescope = {"id": "t-1", "kind": "telescope", "name": "hale", "capacity": {"NIGHT": 2}}
    telescopes = reservations.resources("telescope")
    stub.says(Says(200, {"resource": telescope}, {"ETag": '"0.x.2"'}))
    assert telescopes.refresh("t-1").etag == '"0.x.2"'
    assert telescopes.change("t-1", properties={"site": None}, if_match='"0.x.2"').capacity == {"NIGHT": 2}
    assert telescopes.enable("t-1").name == "hale"
    assert [(asked.method, asked.path) for asked in stub.asked] == [
        ("POST", "/v1/resources/telescope/t-1/refresh"),
        ("PUT", "/v1/resources/telescope/t-1"),
        ("PUT", "/v1/resources/telescope/t-1"),
    ]
    assert {asked.headers["OpenStack-API-Version"] for asked in stub.asked} == {SPOKEN}
    stub.says(Says(200, {"allocations": [{"resource_id": "t-1", "reservations": []}]}))
    assert [each.resource_id for each in telescopes.promised(lease_id="l")] == ["t-1"]
    stub.says(Says(204, None))
    telescopes.delete("t-1")
    stub.says(Says(200, {"property": {"name": "site", "private": True}}))
    telescopes.set_private("site", True)
    assert stub.asked[-1].body == {"private": True}


def test_candidates_have_the_fields_that_register_them(reservations, stub):
    telescopes = reservations.resources("telescope")
    keck = {"id": "t-2", "name": "keck", "state": "up"}
    stub.says(Says(200, {"candidates": [{**keck, "registration": {"mirror": 10}, "region": "north"}]}))
    (found,) = telescopes.candidates(registered=False)
    assert (found.name, found.registration, found.region) == ("keck", {"mirror": 10}, "north")


def test_a_kind_tells_parameters_by_resource_type_and_nothing_else(reservations, stub):
    schemas = {"physical:host": {"min": {"type": "integer"}}}
    kind = {"name": "host", "parameters": schemas, "a_later_key": 1}
    stub.says(Says(200, {"kinds": [kind]}))
    (found,) = reservations.kinds()
    assert found.parameters == schemas


def test_a_resource_that_several_have_the_name_of_is_not_chosen(reservations, stub):
    two = [{"id": number, "kind": "telescope", "name": "hale"} for number in ("t-1", "t-2")]
    stub.says(Says(200, {"resources": two}))
    with pytest.raises(exception.NoUniqueMatch, match="Several resources are called hale"):
        reservations.resources("telescope").find("hale")
