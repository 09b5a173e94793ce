"""Who may do what to whose lease, by tokens that Keystone gave: role, own or foreign, operation, version of the API."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1.identity import v3

from blazar.clouds.openstack import Credentials, connect
from tests import openstack
from tests.cloud.deployment import Deployment, a_host, in_minutes

WHO = ("admin", "member", "reader", "stranger", "foreign reader", "service", "nobody")
"""``member`` and ``reader`` have just that role in the lease's project; the strangers have it in another."""

LEASE = {"name": "work", "start_date": "2031-05-01 10:00", "end_date": "2031-05-01 12:00", "events": []}
NEW = {**LEASE, "reservations": [a_host()]}

ON_A_LEASE = [
    #                                      admin member reader stranger foreign reader service nobody
    ("GET", "/leases/{lease}", None, (200, 200, 200, 403, 403, 403, 401)),
    ("GET", "/leases/{lease}.json", None, (200, 200, 200, 403, 403, 403, 401)),
    ("PUT", "/leases/{lease}", {"name": "x"}, (200, 200, 403, 403, 403, 403, 401)),
    ("POST", "/leases", NEW, (201, 201, 403, 201, 403, 403, 401)),
    ("DELETE", "/leases/{lease}", None, (204, 204, 403, 403, 403, 403, 401)),
]
ON_HOSTS = [
    ("GET", "/os-hosts", None, 200),
    ("GET", "/os-hosts/{host}", None, 200),
    ("POST", "/os-hosts", {"name": "no-such-host"}, 404),
    ("PUT", "/os-hosts/{host}", {"rack": "r1"}, 200),
    ("DELETE", "/os-hosts/0", None, 404),
    ("GET", "/os-hosts/allocations", None, 200),
    ("GET", "/os-hosts/{host}/allocation", None, 200),
    ("GET", "/os-hosts/properties", None, 200),
    ("PATCH", "/os-hosts/properties/rack", {"private": False}, 200),
]
"""What an operator gets; everybody else gets 403, and nobody 401."""


@pytest.fixture(scope="module")
def logins(service: Deployment) -> Iterator[None]:
    """Users whose only role in their project is the one that the table names."""
    keystone = openstack.access("admin").session
    base = {"service_type": "identity", "interface": "public"}

    def ask(method: str, path: str, body: object = None) -> Any:
        answer = keystone.request(path, method, json=body, endpoint_filter=base)
        return answer.json() if answer.content else None

    projects = {p["name"]: p["id"] for p in ask("GET", "/projects")["projects"]}
    roles = {r["name"]: r["id"] for r in ask("GET", "/roles")["roles"]}
    login = openstack.clouds()["demo"]["auth"]
    made = []
    for who, project, role in (
        ("member", "demo", "member"),
        ("reader", "demo", "reader"),
        ("stranger", "alt_demo", "member"),
        ("foreign reader", "alt_demo", "reader"),
        ("service", "alt_demo", "service"),
    ):
        name, password = f"test-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
        user = ask("POST", "/users", {"user": {"name": name, "password": password, "domain_id": "default"}})["user"]
        made.append(user["id"])
        ask("PUT", f"/projects/{projects[project]}/users/{user['id']}/roles/{roles[role]}")
        auth = {**login, "username": name, "password": password, "project_name": project}
        service.access[who] = connect(Credentials(auth=v3.Password(**auth), region="RegionOne"))
    yield
    for user_id in made:
        ask("DELETE", f"/users/{user_id}")


def as_whom(who: str) -> str | None:
    return None if who == "nobody" else who


@pytest.fixture
def lease(service: Deployment, logins: None) -> Iterator[str]:
    made = service.create("member", body=LEASE)["id"]
    yield made
    service.call("admin", "DELETE", f"/leases/{made}")


@pytest.mark.parametrize("number", range(len(WHO)), ids=WHO)
@pytest.mark.parametrize(("method", "path", "body", "statuses"), ON_A_LEASE)
def test_leases(service: Deployment, lease: str, method: str, path: str, body: Any, statuses: Any, number: int):
    answer = service.call(as_whom(WHO[number]), method, path.format(lease=lease), body)
    assert answer.status == statuses[number], answer.body
    if answer.status == 201:
        service.call("admin", "DELETE", f"/leases/{answer['lease']['id']}")


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(("method", "path", "body", "status"), ON_HOSTS)
def test_hosts_are_for_operators(
    service: Deployment, logins: None, method: str, path: str, body: Any, status: int, who: str
):
    host = service.call("admin", "GET", "/os-hosts")["hosts"][0]["id"]
    answer = service.call(as_whom(who), method, path.format(host=host), body)
    assert answer.status == {"admin": status, "nobody": 401}.get(who, 403), answer.body


def test_a_list_shows_the_leases_of_ones_own_project_and_operators_all(service: Deployment, lease: str):
    foreign = service.create("stranger", body={**LEASE, "end_date": in_minutes(60 * 24 * 3650)})["id"]
    seen = {
        who: {item["id"] for item in service.call(who, "GET", "/leases").body.get("leases", [])} & {lease, foreign}
        for who in WHO[:-1]
    }
    service.call("admin", "DELETE", f"/leases/{foreign}")
    assert seen == {
        "admin": {lease, foreign},
        "member": {lease},
        "reader": {lease},
        "stranger": {foreign},
        "foreign reader": {foreign},
        "service": set(),
    }


@pytest.mark.parametrize("query", ["?all_tenants=1", "?project_id={project}", "?all_projects=True"])
def test_no_query_shows_more(service: Deployment, lease: str, query: str):
    project = service.lease(lease, "admin")["project_id"]
    answer = service.call("stranger", "GET", "/leases" + query.format(project=project))
    assert lease not in {item["id"] for item in answer.body.get("leases", [])}


def test_a_lease_can_not_be_made_for_another_project(service: Deployment, lease: str):
    project = service.lease(lease, "admin")["project_id"]
    answer = service.call("stranger", "POST", "/leases", {**NEW, "project_id": project})
    if answer.status == 201:
        service.call("admin", "DELETE", f"/leases/{answer['lease']['id']}")
        assert answer["lease"]["project_id"] != project
    else:
        assert answer.status == 400


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/leases"), ("GET", "/leases/{lease}"), ("PUT", "/leases/{lease}"), ("GET", "/os-hosts")],
)
def test_version_2_shows_nothing_to_anybody_while_it_is_not_there(
    service: Deployment, lease: str, method: str, path: str, who: str
):
    answer = service.call(as_whom(who), method, path.format(lease=lease), {}, root="/v2")
    assert answer.status == (401 if who == "nobody" else 404)
    assert "work" not in str(answer.body)
