# SPDX-License-Identifier: Apache-2.0
"""What is asked of Neutron for the list of external networks: few calls, whatever there is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from blazar.clouds.openstack.network import MOST_IN_URL, OpenStackNetwork
from blazar.clouds.ports.network import NetworkInfo, Subnet
from tests.clouds.test_access import NOVA as NEUTRON
from tests.clouds.test_access import an_access, sent, web

__all__ = ["web"]


@pytest.fixture
def network(web):
    # The catalog of these tests has one compute service; any will do.
    return OpenStackNetwork(SimpleNamespace(network=an_access().compute))


def a_network(number: int) -> dict[str, object]:
    return {"id": f"n{number}", "name": f"wide {number}", "router:external": True}


def a_subnet(name: str, network: str) -> dict[str, object]:
    pool = {"start": "192.0.2.128", "end": "192.0.2.254"}
    return {"id": name, "network_id": network, "cidr": "192.0.2.0/24", "gateway_ip": None, "allocation_pools": [pool]}


def test_external_networks_are_asked_for_with_all_their_subnets_at_once(web, network):
    web.get(f"{NEUTRON}/networks", json={"networks": [a_network(1), a_network(2), a_network(3)]})
    web.get(f"{NEUTRON}/subnets", json={"subnets": [a_subnet("a", "n2"), a_subnet("b", "n1"), a_subnet("c", "n2")]})
    pools = (("192.0.2.128", "192.0.2.254"),)
    a, b, c = (Subnet(name, "192.0.2.0/24", None, pools) for name in "abc")
    assert network.external_networks() == (
        NetworkInfo("n1", "wide 1", True, (b,)),
        NetworkInfo("n2", "wide 2", True, (a, c)),
        NetworkInfo("n3", "wide 3", True),
    )
    (asked,) = sent(web, "/networks")
    assert asked.qs == {"router:external": ["true"]}
    (asked,) = sent(web, "/subnets")
    assert asked.qs == {"network_id": ["n1", "n2", "n3"]}


def test_without_external_networks_no_subnets_are_asked_for(web, network):
    web.get(f"{NEUTRON}/networks", json={"networks": []})
    assert network.external_networks() == ()
    assert sent(web, "/subnets") == []


def test_all_pages_are_read_and_no_url_is_too_long(web, network):
    def page(request, context):
        start = int(request.qs.get("marker", ["0"])[0])
        link = {"rel": "next", "href": f"http://unreachable.test/networks?marker={start + 50}"}
        items = [a_network(number) for number in range(start, min(start + 50, 130))]
        return {"networks": items, "networks_links": [link] if start < 100 else []}

    def subnets(request, context):
        assert len(request.qs["network_id"]) <= MOST_IN_URL
        return {"subnets": [a_subnet(f"of-{network_id}", network_id) for network_id in request.qs["network_id"]]}

    web.get(f"{NEUTRON}/networks", json=page)
    web.get(f"{NEUTRON}/subnets", json=subnets)
    found = network.external_networks()
    assert [each.id for each in found] == [f"n{number}" for number in range(130)]
    assert all([s.id for s in each.subnets] == [f"of-{each.id}"] for each in found)
    assert (len(sent(web, "/networks")), len(sent(web, "/subnets"))) == (3, 2)
