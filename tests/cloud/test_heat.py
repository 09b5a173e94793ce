# SPDX-License-Identifier: Apache-2.0
"""Heat, with our client in place of the one that it requires: stacks with hosts, leases, and servers in them.

``make cloud`` starts Heat; ``OPENSTACK_CLOUD_SERVICES=none make cloud`` does not.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import openstack
from tests.cloud.deployment import Deployment, in_minutes
from tests.cloud.looks import PROGRAMS, host_of, installed_client, pool
from tests.conftest import missing
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left", "heat")

STACK = "test-reservations"
HOST = "compute-4"
"""The one host that Heat registers."""

START = "start"
"""The resource that waits for the start of the lease. Heat itself waits for none: it holds it back until it is told."""
CREATED_WITHIN = 300.0
"""Seconds that the parts of the stack get, of a machine that does much else."""
HELD_BACK = {"resource_registry": {"resources": {START: {"hooks": "pre-create"}}}}


def template(*reservations: dict[str, Any], servers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A host, a lease that follows it, and servers that follow the start of the lease."""
    lease = {
        "name": STACK,
        # Heat books only after it has registered the host, and a minute that is over by then is past.
        "start_date": in_minutes(2),
        "end_date": in_minutes(60),
        "before_end_date": in_minutes(50),
        "reservations": list(reservations),
    }
    common = {"image": "tiny", "networks": [{"network": "private"}]}
    return {
        "heat_template_version": "2021-04-16",
        "resources": {
            "host": {
                "type": "OS::Blazar::Host",
                "properties": {"name": HOST, "extra_capability": {"rack": "r7"}},
            },
            "lease": {"type": "OS::Blazar::Lease", "depends_on": "host", "properties": lease},
            START: {"type": "OS::Heat::Delay", "depends_on": "lease", "properties": {"min_wait": 1}},
            **{
                name: {"type": "OS::Nova::Server", "depends_on": START, "properties": {**common, **properties}}
                for name, properties in servers.items()
            },
        },
        "outputs": {
            "host": {"value": {"get_attr": ["host", "hypervisor_hostname"]}},
            "lease": {"value": {"get_resource": "lease"}},
            "reservations": {"value": {"get_attr": ["lease", "reservations"]}},
        },
    }


def of_reservation(number: int, key: str) -> dict[str, Any]:
    return {"get_attr": ["lease", "reservations", number, key]}


def types(*words: str) -> Any:
    """Type a command of ``openstack`` as an operator, and return its JSON."""
    command = [str(PROGRAMS / "openstack"), *words]
    environment = openstack.without_login() | openstack.variables("admin")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout) if "json" in words else done.stdout


def names(kind: str) -> list[str]:
    return [one["Stack Name"] for one in types(kind, "list", "-f", "json")]


@pytest.fixture(scope="module")
def heat() -> None:
    """Heat runs, with our client."""
    kinds = [service["type"] for service in openstack.identity("GET", "/services")["services"]]
    engine = openstack.HOME / "run" / "heat-engine.json"
    if "orchestration" not in kinds or not engine.exists():
        missing("Heat", "the test cloud runs without it; type OPENSTACK_CLOUD_SERVICES=cinder,heat make cloud")


@pytest.fixture
def no_stack() -> Iterator[None]:
    yield
    if STACK in names("stack"):
        types("stack", "delete", "--yes", "--wait", STACK)


def stacked() -> list[dict[str, Any]]:
    """Return the servers of the stack."""
    return [server for server in openstack.Servers("admin").listed() if server["name"].startswith(STACK)]


def is_held_back() -> bool:
    """Tell whether all is made that goes before the start of the lease."""
    return START in str(types("stack", "hook", "poll", STACK, "-f", "json"))


def outputs() -> dict[str, Any]:
    shown = eventually(
        lambda: types("stack", "show", STACK, "-f", "json"),
        lambda stack: stack["stack_status"] != "CREATE_IN_PROGRESS",
        patience=CREATED_WITHIN,
    )
    assert shown["stack_status"] == "CREATE_COMPLETE", shown["stack_status_reason"]
    return {output["output_key"]: output["output_value"] for output in shown["outputs"]}


def test_the_engine_of_heat_runs_with_our_client():
    record = openstack.HOME / "run" / "heat-engine.json"
    pid = json.loads(record.read_text(encoding="utf-8"))["pid"]
    assert str(PROGRAMS / "heat-engine") in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    file = installed_client()
    # The process has loaded these files: it started after they came.
    assert record.stat().st_mtime > file.stat().st_ctime


def test_a_stack_with_a_host_a_lease_and_servers_in_it_comes_up_and_goes_down(
    service: Deployment, compute, no_stack, tmp_path
):
    whole = {"resource_type": "physical:host", "min": 1, "max": 1, "resource_properties": '["==", "$rack", "r7"]'}
    small = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 64, "disk_gb": 1}
    servers = {
        "on_host": {"flavor": "tiny", "scheduler_hints": {"reservation": of_reservation(0, "id")}},
        "of_flavor": {"flavor": of_reservation(1, "flavor_id")},
    }
    file = tmp_path / "stack.yaml"
    file.write_text(yaml.safe_dump(template(whole, small, servers=servers)), encoding="utf-8")
    held_back = tmp_path / "environment.yaml"
    held_back.write_text(yaml.safe_dump(HELD_BACK), encoding="utf-8")
    types("stack", "create", "--template", str(file), "--environment", str(held_back), STACK)
    eventually(is_held_back, patience=CREATED_WITHIN)
    (booked,) = service.call("admin", "GET", "/leases")["leases"]
    service.reaches(booked["id"], "ACTIVE", patience=CREATED_WITHIN, login="admin")
    types("stack", "hook", "clear", "--pre-create", STACK, START)
    found = outputs()
    assert (found["host"], found["lease"]) == (HOST, booked["id"])
    lease = service.lease(found["lease"], "admin")
    assert (lease["name"], lease["status"]) == (STACK, "ACTIVE")
    assert {event["event_type"] for event in lease["events"]} == {"start_lease", "before_end_lease", "end_lease"}
    hosts, instances = (reservation["id"] for reservation in lease["reservations"])
    assert [hosts, instances] == [reservation["id"] for reservation in found["reservations"]]
    assert pool(compute, hosts) == {HOST}
    booted = {server["name"].split("-")[2]: server for server in stacked()}
    assert {name: server["status"] for name, server in booted.items()} == dict.fromkeys(servers, "ACTIVE")
    assert host_of(booted["on_host"]) == HOST
    assert host_of(booted["of_flavor"]) in {"compute-1", "compute-2", "compute-3"}

    types("stack", "delete", "--yes", "--wait", STACK)
    assert names("stack") == []
    assert stacked() == []
    assert service.call("admin", "GET", f"/leases/{lease['id']}").status == 404
    registered = [host["hypervisor_hostname"] for host in service.call("admin", "GET", "/os-hosts")["hosts"]]
    assert registered == ["compute-1", "compute-2", "compute-3"]
    assert pool(compute, "freepool") == set(registered)
    assert compute.flavor(instances) is None
