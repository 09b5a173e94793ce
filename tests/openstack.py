# SPDX-License-Identifier: Apache-2.0
"""The test cloud (``make cloud``), as tests see it: logins, servers, and what to clean up afterwards."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import yaml
from keystoneauth1.identity import v3

from blazar.clouds.openstack import Access, Credentials, open_cloud
from blazar.model.base.errors import BlazarError, NotFound

HOME = Path(os.environ.get("OPENSTACK_CLOUD_HOME") or Path.home() / ".cache" / "openstack-cloud")
PATIENCE = 300.0
"""Seconds within which the test cloud does anything, also on a busy machine."""

T = TypeVar("T")


def clouds() -> dict[str, Any]:
    """Return the logins that ``make cloud`` wrote; FileNotFoundError if it never ran."""
    found = yaml.safe_load((HOME / "clouds.yaml").read_text(encoding="utf-8"))["clouds"]
    return dict(found)


def auth(login: str) -> v3.Password:
    """Return a login of the test cloud: admin, blazar, demo or alt_demo."""
    return v3.Password(**clouds()[login]["auth"])


def without_login() -> dict[str, str]:
    """Return the variables of this process, without any that log in somewhere, or have programs of others load ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHONPATH"))}


def variables(login: str) -> dict[str, str]:
    """Return a login of the test cloud as the openrc file of a project has it."""
    auth = clouds()[login]["auth"]
    return {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": auth["auth_url"],
        "OS_USERNAME": auth["username"],
        "OS_PASSWORD": auth["password"],
        "OS_PROJECT_NAME": auth["project_name"],
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_IDENTITY_API_VERSION": "3",
        "OS_REGION_NAME": "RegionOne",
    }


@contextmanager
def application_credential(login: str) -> Iterator[dict[str, str]]:
    """An application credential of somebody, with all roles of the login; yield what a program needs to log in."""
    session = access(login).session
    path = f"/users/{session.get_user_id()}/application_credentials"
    where = {"service_type": "identity", "interface": "public"}
    wanted = {"application_credential": {"name": f"test-{uuid.uuid4().hex[:8]}"}}
    made = session.post(path, json=wanted, endpoint_filter=where).json()["application_credential"]
    auth_url = clouds()[login]["auth"]["auth_url"]
    yield {
        "auth_url": auth_url,
        "application_credential_id": made["id"],
        "application_credential_secret": made["secret"],
    }
    session.delete(f"{path}/{made['id']}", endpoint_filter=where)


def access(login: str, **settings: Any) -> Access:
    """Return a way into the test cloud as somebody."""
    return Access(Credentials(auth=auth(login), region="RegionOne", **settings))


@cache
def _operator() -> Any:
    return access("admin").session


def identity(method: str, path: str, body: object = None, **headers: str) -> Any:
    """Ask Keystone as an operator; return its JSON, None if there is none."""
    where = {"service_type": "identity", "interface": "public"}
    answer = _operator().request(path, method, json=body, headers=headers, endpoint_filter=where)
    return answer.json() if answer.content else None


def ids_of(kind: str) -> dict[str, str]:
    """Return the ids of Keystone's roles or projects, by their names."""
    return {one["name"]: one["id"] for one in identity("GET", f"/{kind}")[kind]}


def eventually(look: Callable[[], T], good: Callable[[T], bool] = bool, *, patience: float = PATIENCE) -> T:
    """Look until it is good; return what was seen then. A real cloud has its own clock."""
    end = time.monotonic() + patience
    while True:
        seen = look()
        if good(seen):
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"after {patience:.0f} s it is still {seen!r}")
        time.sleep(0.2)


@dataclass
class Servers:
    """Boots servers as an operator or a user, and deletes what it booted."""

    login: str = "admin"
    booted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.access = access(self.login)
        self.nova = self.access.compute
        self.image_id = next(i["id"] for i in self.access.image.get("/images")["images"] if i["name"] == "tiny")

    def flavor_id(self, name: str) -> str:
        found = self.nova.get("/flavors")["flavors"]
        return str(next(f["id"] for f in found if f["name"] == name))

    def boot(
        self,
        name: str = "work",
        *,
        host: str | None = None,
        hint: str | None = None,
        flavor: str = "tiny",
        flavor_id: str | None = None,
        group: str | None = None,
        forced: str | None = None,
        tags: tuple[str, ...] = (),
        wait: bool = True,
    ) -> dict[str, Any]:
        """Boot a server and return it when it is ACTIVE or ERROR.

        ``forced`` puts it onto a host past all filters of the scheduler, as operators can.
        """
        server: dict[str, Any] = {
            "name": name,
            "imageRef": self.image_id,
            "flavorRef": flavor_id or self.flavor_id(flavor),
            "networks": "none",
        }
        if host:
            server["host"] = host
        if forced:
            server["availability_zone"] = f"nova:{forced}"
        if tags:
            server["tags"] = list(tags)
        body: dict[str, Any] = {"server": server}
        hints = {name: value for name, value in (("reservation", hint), ("group", group)) if value}
        if hints:
            body["os:scheduler_hints"] = hints
        made = self.nova.call("POST", "/servers", body=body, microversion="2.74")["server"]
        self.booted.append(made["id"])
        return self.settled(made["id"]) if wait else made

    def show(self, server_id: str) -> dict[str, Any]:
        return dict(self.nova.get(f"/servers/{server_id}", microversion="2.74")["server"])

    def settled(self, server_id: str, statuses: tuple[str, ...] = ("ACTIVE", "ERROR")) -> dict[str, Any]:
        return eventually(lambda: self.show(server_id), lambda server: server["status"] in statuses)

    def show_project(self) -> str:
        """Return the id of the project that the servers belong to."""
        return str(self.access.session.get_project_id())

    def act(self, server_id: str, action: dict[str, Any]) -> None:
        self.nova.call("POST", f"/servers/{server_id}/action", body=action, microversion="2.74")

    def listed(self) -> list[dict[str, Any]]:
        return list(self.nova.pages("/servers/detail", "servers", microversion="2.74"))

    def clean(self) -> None:
        """Delete what was booted, and wait until it is gone."""
        compute = admin_compute()
        for server_id in self.booted:
            compute.begin_server_deletion(server_id)
        for server_id in self.booted:
            eventually(lambda server_id=server_id: self._exists(server_id), lambda there: not there)
        self.booted.clear()

    def _exists(self, server_id: str) -> bool:
        try:
            self.show(server_id)
        except NotFound:
            return False
        return True


class Moves:
    """Tells the hosts of the test cloud what becomes of the live migrations of servers."""

    folder = HOME / "var" / "nova" / "moves"

    def spoil(self, server_id: str, how: str) -> None:
        """Let a move of a server ``fail``, ``hang``, or be beyond the point of return (``post-copy``)."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / server_id).write_text(how)

    def finish(self, server_id: str) -> None:
        """Let moves of a server be over at once, those under way included."""
        (self.folder / server_id).unlink(missing_ok=True)

    def clean(self) -> None:
        """Let all moves be over, also those of a run that was killed."""
        for file in self.folder.glob("*"):
            file.unlink(missing_ok=True)


class ExternalNetwork:
    """An external network of a test's own, with a pool from .128 on, made when it is first asked for."""

    def __init__(self, third: int = 100) -> None:
        self.cidr = f"198.51.{third}.0/24"
        self._prefix = f"198.51.{third}"
        self._name = f"test-external-{third}"
        self._neutron = access("admin").network
        self._touched = False

    @property
    def id(self) -> str:
        return self._ids[0]

    @property
    def subnet_id(self) -> str:
        return self._ids[1]

    @cached_property
    def _ids(self) -> tuple[str, str]:
        self._touched = True
        self.clean()
        network = str(self._made("network", "/networks", {"name": self._name, "router:external": True})["id"])
        pool = {"start": f"{self._prefix}.128", "end": f"{self._prefix}.254"}
        wanted = {"network_id": network, "cidr": self.cidr, "ip_version": 4, "enable_dhcp": False}
        more = {"gateway_ip": f"{self._prefix}.1", "allocation_pools": [pool], "name": self._name}
        return network, str(self._made("subnet", "/subnets", {**wanted, **more})["id"])

    @cached_property
    def port_id(self) -> str:
        """A port that floating IPs of this network can be attached to, of the project ``demo``."""
        return self.port_of("demo")

    def port_of(self, login: str) -> str:
        """Make another port that floating IPs of this network can be attached to."""
        project = str(access(login).session.get_project_id())
        port = {"network_id": self._inside_id, "name": self._name, "project_id": project}
        return str(self._made("port", "/ports", port)["id"])

    @cached_property
    def _inside_id(self) -> str:
        inside = self._made("network", "/networks", {"name": self._name, "shared": True})["id"]
        wanted = {"network_id": inside, "cidr": "192.168.99.0/24", "ip_version": 4, "name": self._name}
        subnet = self._made("subnet", "/subnets", {**wanted, "enable_dhcp": False})["id"]
        gateway = {"network_id": self.id}
        router = self._made("router", "/routers", {"name": self._name, "external_gateway_info": gateway})["id"]
        self._neutron.call("PUT", f"/routers/{router}/add_router_interface", body={"subnet_id": subnet})
        return str(inside)

    def attach(self, floating_ip_id: str) -> None:
        body = {"floatingip": {"port_id": self.port_id}}
        self._neutron.call("PUT", f"/floatingips/{floating_ip_id}", body=body)

    def take_address(self, address: str) -> None:
        fixed = [{"subnet_id": self.subnet_id, "ip_address": address}]
        self._made("port", "/ports", {"network_id": self.id, "fixed_ips": fixed, "name": self._name})

    def clean(self) -> None:
        """Delete what was made, if anything was; also by a run that was killed."""
        if not self._touched:
            return
        networks = self._named("networks")
        for network in networks:
            for found in self._neutron.get("/floatingips", params={"floating_network_id": network["id"]})[
                "floatingips"
            ]:
                self._neutron.call("DELETE", f"/floatingips/{found['id']}")
        for router in self._named("routers"):
            for subnet in self._named("subnets"):
                with suppress(BlazarError):
                    path = f"/routers/{router['id']}/remove_router_interface"
                    self._neutron.call("PUT", path, body={"subnet_id": subnet["id"]})
            self._neutron.call("DELETE", f"/routers/{router['id']}")
        for kind in ("ports", "subnets", "networks"):
            for found in self._named(kind):
                self._neutron.call("DELETE", f"/{kind}/{found['id']}")

    def _named(self, kind: str) -> list[dict[str, Any]]:
        return list(self._neutron.get(f"/{kind}", params={"name": self._name})[kind])

    def _made(self, kind: str, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
        return dict(self._neutron.call("POST", path, body={kind: wanted})[kind])


def admin_compute() -> Any:
    """Return Nova as an operator sees it."""
    return open_cloud(access("admin")).compute


def set_service(host: str, **values: Any) -> None:
    """Disable (also for a ``disabled_reason``), enable or force down a nova-compute, as operators do."""
    nova = access("admin").compute
    (service,) = nova.get(f"/os-services?binary=nova-compute&host={host}", microversion="2.53")["services"]
    if "disabled_reason" in values:
        nova.call("PUT", f"/os-services/{service['id']}", body=values, microversion="2.53")
        return
    for name, value in values.items():
        nova.call("PUT", f"/os-services/{service['id']}", body={name: value}, microversion="2.53")


def forget_images() -> None:
    """Delete the snapshots that tests have left."""
    glance = access("admin").image
    for image in list(glance.pages("/images", "images")):
        if image["name"].startswith("reserved_"):
            glance.call("DELETE", f"/images/{image['id']}")


@cache
def tidy() -> None:
    """Make the test cloud as it was when it was new, once a run: a run that was killed leaves things behind."""
    Moves().clean()
    compute = admin_compute()
    for hypervisor in compute.hypervisors():
        host = hypervisor.service_name
        if not hypervisor.enabled:
            compute.enable_service(host)
        for server in compute.servers_on(host):
            compute.begin_server_deletion(server.id)
        eventually(lambda host=host: compute.servers_on(host), lambda left: not left)
    for aggregate in compute.aggregates():
        for host in aggregate.hosts:
            eventually(lambda host=host, aggregate=aggregate: has_left(compute, aggregate.id, host))
        compute.delete_aggregate(aggregate.id)
    forget_images()
    # What servers have left that were deleted while they moved.
    placement, names = access("admin").placement, [each.hypervisor_hostname for each in compute.hypervisors()]
    for room in open_cloud(access("admin")).evacuation.rooms(names).values():
        for consumer in room.consumers:
            placement.call("DELETE", f"/allocations/{consumer}")


def has_left(compute: Any, aggregate_id: int, host: str) -> bool:
    """Take a host out of an aggregate; False if Nova does not let it go yet, as it still knows a server on it."""
    try:
        compute.remove_host(aggregate_id, host)
    except NotFound:
        return True
    except BlazarError:
        return False
    return True


@contextmanager
def new_user(roles: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A user with one role in each of some projects, by their names; yield its login, in the first of them."""
    name, password = f"test-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    wanted = {"name": name, "password": password, "domain_id": "default"}
    path = f"/users/{identity('POST', '/users', {'user': wanted})['user']['id']}"
    try:
        for project, role in roles.items():
            identity("PUT", f"/projects/{ids_of('projects')[project]}{path}/roles/{ids_of('roles')[role]}")
        auth = clouds()["demo"]["auth"]
        yield {**auth, "username": name, "password": password, "project_name": next(iter(roles))}
    finally:
        identity("DELETE", path)


@dataclass
class Providers:
    """Changes what hosts have in Placement, past Nova, and takes it back."""

    nested: list[str] = field(default_factory=list)
    marked: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.placement = access("admin").placement

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return dict(self.placement.call(method, path, body=body, microversion="1.30"))

    def inventories(self, host: str) -> dict[str, Any]:
        return dict(self.ask("GET", f"{self._path(host)}/inventories")["inventories"])

    def nest(self, host: str, name: str, inventories: Any) -> None:
        """Give a host's provider a nested one; it stays, empty, because nova-compute cannot bear to see it vanish."""
        for resource_class in inventories:
            self.ask("PUT", f"/resource_classes/{resource_class}")
        path = self._path(name)
        if path is None:
            parent = self._path(host)
            assert parent is not None
            self.ask("POST", "/resource_providers", {"name": name, "parent_provider_uuid": parent.rpartition("/")[2]})
            path = self._path(name)
        self.nested.append(name)
        self._put_inventories(name, inventories)

    def mark(self, host: str, trait: str) -> None:
        self.ask("PUT", f"/traits/{trait}")
        self.marked.append((host, trait))
        self._put_traits(host, {*self._traits(host)["traits"], trait})

    def clean(self) -> None:
        for name in self.nested:
            self._put_inventories(name, {})
        for host, trait in self.marked:
            self._put_traits(host, {*self._traits(host)["traits"]} - {trait})
            self.ask("DELETE", f"/traits/{trait}")

    def allocations(self, server_id: str) -> dict[str, dict[str, int]]:
        """Return what a server has, by the uuid of the provider."""
        found = self.ask("GET", f"/allocations/{server_id}")["allocations"]
        return {provider: dict(one["resources"]) for provider, one in found.items()}

    def unreserve(self, name: str) -> None:
        """Say that what a provider has is reserved no more, as who has cleaned a device does."""
        inventories = self.inventories(name)
        self._put_inventories(name, {key: {**one, "reserved": 0} for key, one in inventories.items()})

    def _path(self, name: str) -> str | None:
        found = self.ask("GET", f"/resource_providers?name={name}")["resource_providers"]
        return f"/resource_providers/{found[0]['uuid']}" if found else None

    def _put_inventories(self, name: str, inventories: Any) -> None:
        path = f"{self._path(name)}/inventories"
        generation = self.ask("GET", path)["resource_provider_generation"]
        self.ask("PUT", path, {"resource_provider_generation": generation, "inventories": inventories})

    def _traits(self, host: str) -> dict[str, Any]:
        return self.ask("GET", f"{self._path(host)}/traits")

    def _put_traits(self, host: str, traits: set[str]) -> None:
        body = {**self._traits(host), "traits": sorted(traits)}
        self.ask("PUT", f"{self._path(host)}/traits", body)


@contextmanager
def servers(login: str = "admin") -> Iterator[Servers]:
    """Servers of somebody, for as long as a test takes."""
    some = Servers(login)
    try:
        yield some
    finally:
        some.clean()
