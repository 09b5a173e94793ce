# SPDX-License-Identifier: Apache-2.0
"""Who may do what to whose lease, by tokens that Keystone gave: role, own or foreign, operation, version of the API.

The tables are those of the fast tests in ``tests/api``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests import openstack
from tests.cloud.deployment import Deployment, in_minutes
from tests.isolation import (
    LEASE,
    NEW,
    ON_A_LEASE,
    ON_ADDRESSES,
    ON_HOSTS,
    QUERIES,
    SEEN,
    WHO,
    for_hosts,
    ids_in,
    lease_in,
)

both = pytest.mark.parametrize("root", ["/v1", "/v2"])


@pytest.fixture(scope="module")
def logins(service: Deployment) -> Iterator[None]:
    """Users whose only role in their project is the one that the table names."""
    with ExitStack() as users:
        for who, project, role in (
            ("member", "demo", "member"),
            ("reader", "demo", "reader"),
            ("stranger", "alt_demo", "member"),
            ("foreign reader", "alt_demo", "reader"),
            ("service", "alt_demo", "service"),
        ):
            service.knows(who, users.enter_context(openstack.new_user({project: role})))
        yield


def as_whom(who: str) -> str | None:
    return None if who == "nobody" else who


@pytest.fixture
def lease(service: Deployment, logins: None) -> Iterator[str]:
    made = service.create("member", body=LEASE)["id"]
    yield made
    service.call("admin", "DELETE", f"/leases/{made}")


@pytest.fixture(scope="module")
def outside() -> Iterator[openstack.ExternalNetwork]:
    network = openstack.ExternalNetwork(103)
    yield network
    network.clean()


@pytest.fixture
def address(service: Deployment, logins: None, outside: openstack.ExternalNetwork) -> Iterator[str]:
    wanted = {"floating_network_id": outside.id, "floating_ip_address": "198.51.103.10"}
    made = service.call("admin", "POST", "/floatingips", wanted)["floatingip"]["id"]
    yield made
    service.call("admin", "DELETE", f"/floatingips/{made}")


@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("root", "method", "path", "body", "statuses"), ON_A_LEASE)
def test_leases(
    service: Deployment, lease: str, root: str, method: str, path: str, body: Any, statuses: Any, number: int
):
    answer = service.call(as_whom(WHO[number]), method, path.format(lease=lease), body, root=root)
    if answer.status == 201:
        service.call("admin", "DELETE", f"/leases/{lease_in(answer.body)['id']}")
    assert answer.status == statuses[number], answer.body
    if answer.status >= 400:
        assert "own plan" not in str(answer.body)
        assert service.lease(lease, "admin")["name"] == "own plan"


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(("root", "method", "path", "body", "status"), ON_HOSTS)
def test_hosts_are_for_operators(
    service: Deployment, logins: None, root: str, method: str, path: str, body: Any, status: int, who: str
):
    host = service.call("admin", "GET", "/os-hosts")["hosts"][0]["id"]
    if path.endswith("/rack"):
        # The table tells of a property that some host has had; this test may run before the one that sets it.
        service.call("admin", "PUT", f"/os-hosts/{host}", {"rack": "r0"})
    answer = service.call(as_whom(who), method, path.format(host=host), body, root=root)
    assert answer.status == for_hosts(who, status), answer.body


@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_ADDRESSES)
def test_addresses_are_seen_by_all_and_changed_by_operators(
    service: Deployment, address: str, method: str, path: str, body: Any, statuses: Any, number: int
):
    answer = service.call(as_whom(WHO[number]), method, path.format(address=address), body)
    assert answer.status == statuses[number], answer.body


@both
def test_a_list_shows_the_leases_of_ones_own_project_and_operators_all(service: Deployment, lease: str, root: str):
    foreign = service.create("stranger", body={**LEASE, "end_date": in_minutes(60 * 24 * 3650)})["id"]
    names = {lease: "own", foreign: "foreign"}
    seen = {
        who: {names[found] for found in ids_in(service.call(who, "GET", "/leases", root=root).body) & names.keys()}
        for who in SEEN
    }
    service.call("admin", "DELETE", f"/leases/{foreign}")
    assert seen == SEEN


@both
@pytest.mark.parametrize("query", QUERIES)
def test_no_query_shows_more(service: Deployment, lease: str, query: str, root: str):
    project = service.lease(lease, "admin")["project_id"]
    answer = service.call("stranger", "GET", "/leases" + query.format(project=project), root=root)
    assert answer.status == 200
    assert lease not in ids_in(answer.body)


@both
def test_a_lease_cannot_be_made_for_another_project(service: Deployment, lease: str, root: str):
    project = service.lease(lease, "admin")["project_id"]
    answer = service.call("stranger", "POST", "/leases", {**NEW, "project_id": project}, root=root)
    if answer.status == 201:
        service.call("admin", "DELETE", f"/leases/{lease_in(answer.body)['id']}")
    assert answer.status == 400
    assert "project_id" in answer["error_message"]
