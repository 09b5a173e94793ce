# SPDX-License-Identifier: Apache-2.0
"""Upstream's own acceptance tests, the Tempest plugin of PyPI, unmodified.

They were written for a DevStack with one compute host, and know three things about it that this cloud must imitate:

* all services are at port 80, each below a path: ``front.py`` is that, as an HTTP proxy, because port 80 is root's;
* a server without a reservation finds no host: the hosts that the tests do not register are in the freepool as well;
* they run one after the other, since some count all hosts and leases.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import openstack, upstream
from tests.cloud.deployment import FREEPOOL, ROOT, deployed
from tests.cloud.front import Front
from tests.conftest import fresh_database

pytestmark = pytest.mark.timeout(1500)

HERE = Path(__file__).parent
PLUGIN = "blazar_tempest_plugin.tests."

WORKS = (
    "api.test_blazar_api.allocations_get_host_name.test_request",
    "api.test_blazar_api.allocations_post_new_host.test_request",
    "api.test_blazar_api.allocations_post_new_lease_lease1.test_request",
    "api.test_blazar_api.allocations_post_new_lease_lease2.test_request",
    "api.test_blazar_api.allocations_list_host_allocations.test_request",
    "api.test_blazar_api.allocations_list_host_allocations_with_lease2.test_request",
    "api.test_blazar_api.allocations_delete_lease2.test_request",
    "api.test_blazar_api.allocations_delete_lease1.test_request",
    "api.test_blazar_api.allocations_delete_host.test_request",
    "api.test_blazar_api.hosts_get_host_name.test_request",
    "api.test_blazar_api.hosts_post_new_host_with_too_long_extra_capability.test_request",
    "api.test_blazar_api.hosts_post_new_host.test_request",
    "api.test_blazar_api.hosts_get_new_host.test_request",
    "api.test_blazar_api.hosts_delete_new_host.test_request",
    "api.test_blazar_api.hosts_get_no_host.test_request",
    "api.test_blazar_api.leases_post_new_lease_with_invalid_time_order.test_request",
    "api.test_blazar_api.leases_post_new_lease_with_bogus_start_time.test_request",
    "api.test_blazar_api.leases_post_new_lease_without_end_date.test_request",
    "api.test_blazar_api.leases_post_new_lease.test_request",
    "api.test_blazar_api.leases_get_new_lease.test_request",
    "api.test_blazar_api.leases_delete_new_lease.test_request",
    "api.test_blazar_api.leases_get_no_lease.test_request",
    "scenario.test_flavor_reservation.TestFlavorReservationScenario.test_flavor_instance_reservation[smoke]",
    "scenario.test_host_reservation.TestHostReservationScenario.test_host_reservation[smoke]",
    "scenario.test_host_reservation.TestHostReservationScenario.test_lease_expiration[smoke]",
    "scenario.test_host_reservation.TestHostReservationScenario.test_update_host_reservation[smoke]",
    "scenario.test_instance_reservation.TestInstanceReservationScenario.test_instance_reservation[smoke]",
    "scenario.test_instance_reservation.TestInstanceReservationScenario.test_lease_expiration[smoke]",
    "scenario.test_instance_reservation.TestInstanceReservationScenario.test_update_instance_reservation[smoke]",
    "scenario.test_reservation_concurrency.TestReservationConcurrencyScenario.test_concurrent_list_lease",
)

CONF = """
[DEFAULT]
log_file = tempest.log
debug = true

[oslo_concurrency]
lock_path = {folder}/locks

[auth]
use_dynamic_credentials = true
create_isolated_networks = false
admin_username = {username}
admin_password = {password}
admin_project_name = {project_name}
admin_domain_name = {user_domain_name}

[identity]
auth_version = v3
uri_v3 = {auth_url}
region = RegionOne

[compute]
image_ref = {image}
flavor_ref = {flavor}
fixed_network_name = private

[validation]
run_validation = false

[service_available]
blazar = true
nova = true
glance = true
neutron = true
cinder = false
swift = false

[resource_reservation]
lease_interval = 2
lease_end_timeout = 300
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test of the plugin ended, and everything it said."""

    status: str
    seconds: float
    told: str


def conf(folder: Path, operator: openstack.Servers) -> Path:
    """Write what Tempest must know of the test cloud."""
    login = openstack.clouds()["admin"]["auth"]
    file = folder / "tempest.conf"
    text = CONF.format(folder=folder, image=operator.image_id, flavor=operator.flavor_id("tiny"), **login)
    file.write_text(text, encoding="utf-8")
    return file


def run(folder: Path, operator: openstack.Servers, front: Front, part: str) -> dict[str, Outcome]:
    """Run the tests of one part of the plugin, one after the other."""
    programs = upstream.programs(HERE / "tempest.txt", ROOT / ".venv-tempest")
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")} | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "http_proxy": front.url,
    }

    def program(name: str, *arguments: str, stdin: bytes | None = None) -> bytes:
        command = [str(programs / name), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=1200, cwd=folder, env=environment)
        (folder / f"{name}.err").write_bytes(done.stderr)
        return done.stdout

    config, chosen = str(conf(folder, operator)), f"^{PLUGIN}{part}"
    told = program("tempest", "run", "--config-file", config, "--regex", chosen, "--serial", "--subunit")
    (folder / "run.subunit").write_bytes(told)
    found: dict[str, Any] = json.loads(program("python", str(HERE / "outcomes.py"), stdin=told))
    assert found, (folder / "tempest.err").read_text(encoding="utf-8")
    return {
        name.removeprefix(PLUGIN): Outcome(test["status"], test["seconds"], "\n".join(test["told"].values()))
        for name, test in found.items()
    }


def close_other_hosts(operator: openstack.Servers) -> None:
    """Leave no host to servers without a reservation once the plugin has registered the one that it takes."""
    compute = openstack.admin_compute()
    services = operator.nova.get("/os-services?binary=nova-compute")["services"]
    pool = compute.aggregate(FREEPOOL)
    for service in services[1:]:
        if service["host"] not in pool.hosts:
            compute.add_host(pool.id, service["host"])


def forget_logins() -> None:
    """Delete the users and projects that the plugin's API tests leave, and a run that was killed."""
    keystone = openstack.access("admin").session
    base = {"service_type": "identity", "interface": "public"}
    for kind in ("users", "projects"):
        for found in keystone.get(f"/{kind}", endpoint_filter=base).json()[kind]:
            if found["name"].startswith("tempest-"):
                keystone.delete(f"/{kind}/{found['id']}", endpoint_filter=base)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    """How each test of the plugin ended; it runs once, on the database that most clouds have."""
    folder = tmp_path_factory.mktemp("tempest")
    operator = openstack.Servers("admin")
    nova = operator.access.session.get_endpoint(service_type="compute", interface="public")
    for url in fresh_database("mariadb", folder):
        with deployed(folder, url, hosts=0, managers=2) as service:
            front = Front({"reservation": service.url, "compute": nova.removesuffix("/v2.1")})
            try:
                # The first part registers a host and gives it back, and with that takes it out of the freepool: it is
                # the first hypervisor, which is not always that of the first service.
                of_the_api = run(folder, operator, front, "api")
                close_other_hosts(operator)
                yield of_the_api | run(folder, operator, front, "scenario")
            finally:
                front.stop()
                forget_logins()


def test_every_test_of_the_plugin_is_named_here(outcomes: dict[str, Outcome]):
    assert set(outcomes) == set(WORKS)


@pytest.mark.parametrize("name", WORKS)
def test_upstream_says_that_it_works(name: str, outcomes: dict[str, Outcome]):
    assert outcomes[name].status == "success", outcomes[name].told
