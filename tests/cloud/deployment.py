# SPDX-License-Identifier: Apache-2.0
"""Managers and API processes as an operator runs them, on the test cloud."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import sqlalchemy as sa
from keystoneauth1.identity import v3

from blazar.api.http.microversion import MAX_VERSION, as_text
from blazar.clouds.ports.compute import Compute
from tests import openstack, upstream
from tests.conftest import RABBITMQ
from tests.proxy import Proxy

ROOT = Path(__file__).parents[2]
NEWEST = as_text(MAX_VERSION)
FREEPOOL = "freepool"
CATALOG_NAME = "blazar-under-test"

CONF = """
[DEFAULT]
transport_url = {bus}
rpc_response_timeout = 20
os_auth_host = {keystone.hostname}
os_auth_port = {keystone.port}
os_admin_username = blazar
os_admin_password = {password}
os_admin_project_name = service
os_region_name = RegionOne

[manager]
rpc_topic = {topic}
claim_ttl = 5
startup_wait = 60
minutes_before_end_lease = {lead}

[cloud]
timeout = 10

[nova]
pci_alias = {{"name": "a100", "vendor_id": "10de", "product_id": "20b5"}}
pci_alias = {{"name": "h100", "resource_class": "CUSTOM_GPU_H100"}}

[database]
connection = {database}

[keystone_authtoken]
auth_type = password
auth_url = {keystone_url}
username = blazar
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
service_token_roles_required = true

[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 10
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


def in_minutes(number: int) -> str:
    """Return the minute that begins in so many minutes, as users write it; 0 is the one that runs."""
    return minute(datetime.now(UTC) + timedelta(minutes=number))


@dataclass
class Answer:
    """A status and what came with it."""

    status: int
    body: Any
    took: float

    def __getitem__(self, key: str) -> Any:
        return self.body[key]


@dataclass
class Deployment:
    """``managers`` and ``apis`` processes on one database and one bus, that can be killed and started again."""

    folder: Path
    database: str
    managers: int = 1
    apis: int = 1
    lead: int = 0
    more: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        bus = urlsplit(RABBITMQ)
        self.rabbitmq = Proxy(bus.hostname or "127.0.0.1", bus.port or 5672)
        login = openstack.clouds()["blazar"]["auth"]
        keystone = urlsplit(login["auth_url"])
        text = CONF.format(
            bus=RABBITMQ.replace(f":{bus.port or 5672}", f":{self.rabbitmq.port}"),
            keystone=keystone,
            keystone_url=login["auth_url"],
            password=login["password"],
            database=self.database,
            topic=f"blazar-test-{uuid.uuid4().hex[:8]}",
            lead=self.lead,
        )
        self.conf = self.folder / "blazar.conf"
        self.conf.write_text(text + self.more, encoding="utf-8")
        self.access: dict[str, openstack.Access] = {}
        self.registered: list[dict[str, Any]] = []

    # Processes

    def start(self) -> None:
        self.run("blazar.cmd.db_manage", "upgrade", "head")
        for number in range(self.managers):
            self.start_one(f"manager-{number}")
        for number in range(self.apis):
            self.start_one(f"api-{number}")
        self.wait_until_ready()

    def run(self, module: str, *arguments: str) -> str:
        """Run one of our commands to its end."""
        command = [sys.executable, "-m", module, "--config-file", str(self.conf), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start_one(self, name: str) -> None:
        kind = name.split("-")[0]
        command = [sys.executable, "-m", f"blazar.cmd.{kind}", "--config-file", str(self.conf)]
        if kind == "api":
            self.ports.setdefault(name, free_port())
            own = self.folder / f"{name}.conf"
            own.write_text(f"[DEFAULT]\nhost = 127.0.0.1\nport = {self.ports[name]}\n", encoding="utf-8")
            command += ["--config-file", str(own)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)

    def wait_until_ready(self) -> None:
        openstack.eventually(lambda: self.call("demo", "GET", "/leases").status, lambda status: status == 200)
        for name in self.ports:
            openstack.eventually(lambda name=name: self.call("demo", "GET", "/leases", api=name).status == 200)

    def kill(self, name: str, how: int = signal.SIGKILL) -> None:
        self.processes[name].send_signal(how)
        self.processes[name].wait(60)

    def revive(self) -> None:
        """Start what a test has killed, and mend what it has cut."""
        self.rabbitmq.mend()
        for name, process in self.processes.items():
            if process.poll() is not None:
                self.start_one(name)
        self.wait_until_ready()

    def stop(self) -> None:
        self.rabbitmq.cut()
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(60)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    # Requests

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['api-0']}"

    def knows(self, login: str, auth: dict[str, Any]) -> None:
        """Let a user of a test's own make requests, under this name."""
        self.access[login] = openstack.Access(openstack.Credentials(auth=v3.Password(**auth), region="RegionOne"))

    def token(self, login: str) -> str:
        if login not in self.access:
            self.access[login] = openstack.access(login)
        return str(self.access[login].session.get_token())

    def call(
        self,
        login: str | None,
        method: str,
        path: str,
        body: object = None,
        *,
        api: str = "api-0",
        root: str = "/v1",
        version: str = "1.0",
    ) -> Answer:
        """Make a request as somebody; status 0 if nobody listens."""
        headers = {"X-Auth-Token": self.token(login)} if login else {}
        if version != "1.0":
            headers["OpenStack-API-Version"] = f"reservation {version}"
        began = time.monotonic()
        try:
            answer = requests.request(
                method, f"http://127.0.0.1:{self.ports[api]}{root}{path}", json=body, headers=headers, timeout=60
            )
        except requests.ConnectionError:
            return Answer(0, {}, time.monotonic() - began)
        took = time.monotonic() - began
        try:
            return Answer(answer.status_code, answer.json(), took)
        except ValueError:
            return Answer(answer.status_code, answer.text, took)

    def create(
        self, login: str = "demo", *, name: str = "work", body: dict[str, Any] | None = None, **room: Any
    ) -> Any:
        """Create a lease; by default from now on, for an hour, on one host."""
        whole = {
            "name": name,
            "start_date": "now",
            "end_date": in_minutes(61),
            "reservations": [a_host(**room)],
            "events": [],
            **(body or {}),
        }
        answer = self.call(login, "POST", "/leases", whole)
        assert answer.status == 201, answer
        return answer["lease"]

    def lease(self, lease_id: str, login: str = "demo") -> Any:
        answer = self.call(login, "GET", f"/leases/{lease_id}")
        assert answer.status == 200, answer
        return answer["lease"]

    def forget_leases(self) -> None:
        """Delete all leases of everybody, and wait until they are gone."""

        def left() -> list[Any]:
            found = list(self.call("admin", "GET", "/leases")["leases"])
            for lease in found:
                # One that is being started may be refused; it is asked again.
                self.call("admin", "DELETE", f"/leases/{lease['id']}")
            return found

        openstack.eventually(left, lambda leases: not leases)

    def register_hosts(self, number: int) -> None:
        """Register the first hosts of the cloud."""
        for name in (f"compute-{which}" for which in range(1, number + 1)):
            answer = self.call("admin", "POST", "/os-hosts", {"name": name})
            assert answer.status == 201, answer
        self.registered = self.hosts()

    def hosts(self) -> list[dict[str, Any]]:
        """Return what is said of each host, but when."""
        found = self.call("admin", "GET", "/os-hosts")["hosts"]
        return [{key: value for key, value in host.items() if key != "updated_at"} for host in found]

    def renew(self) -> None:
        """Forget all leases and what else was registered, and register the same hosts again if they have changed."""
        self.forget_leases()
        for kind in self.call("admin", "GET", "/resources", version=NEWEST)["kinds"]:
            if kind["name"] != "host":
                self._unregister(kind["name"])
        if self.hosts() != self.registered:
            self._unregister("host")
            self.register_hosts(len(self.registered))

    def _unregister(self, kind: str) -> None:
        path = f"/resources/{kind}"
        for one in self.call("admin", "GET", path, version=NEWEST)["resources"]:
            gone = self.call("admin", "DELETE", f"{path}/{one['id']}", version=NEWEST)
            assert gone.status == 204, gone

    def reaches(self, lease_id: str, status: str, *, login: str = "demo", patience: float = openstack.PATIENCE) -> Any:
        """Wait until a lease has a status, and return it."""
        return openstack.eventually(
            lambda: self.lease(lease_id, login), lambda lease: lease["status"] == status, patience=patience
        )

    def end(self, lease_id: str, login: str = "demo") -> None:
        answer = self.call(login, "PUT", f"/leases/{lease_id}", {"end_date": "now"})
        assert answer.status == 200, answer

    def book(self, *leases: tuple[str, float, float]) -> list[str]:
        """Book leases of a host each, from and until so many seconds from now; return their ids."""
        project = str(openstack.access("demo").session.get_project_id())
        requests = [{"project": project, "host": host, "start": start, "end": end} for host, start, end in leases]
        command = [sys.executable, "-m", "tests.cloud.book", str(self.conf)]
        done = subprocess.run(
            command, input=json.dumps(requests), capture_output=True, text=True, timeout=300, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    def sql(self, query: str) -> list[Any]:
        engine = sa.create_engine(self.database)
        try:
            with engine.connect() as connection:
                return list(connection.execute(sa.text(query)).mappings())
        finally:
            engine.dispose()

    # Programs of others

    def blazar(self, login: str, *arguments: str) -> str:
        """Run the client of PyPI with a Keystone password and the endpoint of the catalog; return what it prints."""
        return self._program("blazar", login, arguments)

    def openstack(self, login: str, *arguments: str) -> str:
        return self._program("openstack", login, arguments)

    def tries(self, program: str, login: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(upstream.programs() / program), *arguments]
        environment = openstack.without_login() | openstack.variables(login)
        return subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment)

    def _program(self, program: str, login: str, arguments: tuple[str, ...]) -> str:
        done = self.tries(program, login, *arguments)
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def a_host(minimum: int = 1, maximum: int = 1, *, host: str | None = None, **more: Any) -> dict[str, Any]:
    """Ask for hosts, or for a certain one."""
    return {
        "resource_type": "physical:host",
        "min": minimum,
        "max": maximum,
        "hypervisor_properties": f'["==", "$hypervisor_hostname", "{host}"]' if host else "",
        "resource_properties": "",
        **more,
    }


@contextlib.contextmanager
def deployed(folder: Path, database: str, *, hosts: int = 3, **requests: Any) -> Iterator[Deployment]:
    """A deployment in the catalog of the test cloud, with a freepool and registered hosts; all gone afterwards."""
    openstack.tidy()
    service = Deployment(folder, database, **requests)
    compute = openstack.admin_compute()
    with _endpoint(service), _freepool(compute):
        try:
            service.start()
            service.register_hosts(hosts)
            yield service
        finally:
            service.stop()
            clean(compute)
            openstack.forget_images()


def clean(compute: Compute) -> None:
    """Empty every pool and forget it, whatever a test left there."""
    pools = [a for a in compute.aggregates() if a.name == FREEPOOL or (a.availability_zone or "").startswith("blazar_")]
    for pool in pools:
        for host in pool.hosts:
            for server in compute.servers_on(host):
                compute.begin_server_deletion(server.id)
            openstack.eventually(lambda host=host: compute.servers_on(host), lambda left: not left)
            openstack.eventually(lambda host=host, pool=pool: openstack.has_left(compute, pool.id, host))
        compute.delete_aggregate(pool.id)


@contextlib.contextmanager
def _freepool(compute: Compute) -> Iterator[None]:
    clean(compute)
    compute.create_aggregate(FREEPOOL, None, {})
    yield


@contextlib.contextmanager
def _endpoint(service: Deployment) -> Iterator[None]:
    """An entry in Keystone's catalog, where the clients look for us."""
    service.ports["api-0"] = free_port()
    ask = openstack.identity
    for old in ask("GET", f"/services?type=reservation&name={CATALOG_NAME}")["services"]:
        ask("DELETE", f"/services/{old['id']}")
    made = ask("POST", "/services", {"service": {"type": "reservation", "name": CATALOG_NAME}})["service"]
    for interface in ("public", "internal"):
        endpoint = {"service_id": made["id"], "interface": interface, "region_id": "RegionOne"}
        ask("POST", "/endpoints", {"endpoint": {**endpoint, "url": f"{service.url}/v1"}})
    try:
        yield
    finally:
        ask("DELETE", f"/services/{made['id']}")
