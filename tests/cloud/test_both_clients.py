# SPDX-License-Identifier: Apache-2.0
"""One scenario on a real OpenStack with the client that everybody has and with ours: what they print is the same.

Ours is the one that ``make cloud`` has installed in place of the other, beside the services of the cloud.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import openstack, upstream
from tests.cloud.deployment import Deployment
from tests.cloud.looks import PROGRAMS, installed_client
from tests.openstack import ExternalNetwork

pytestmark = pytest.mark.usefixtures("tidied")

NOBODY = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
"""The id of no lease."""

DAYS = ("--start-date", "2040-01-01 10:00", "--end-date", "2040-01-02 10:00")
HOSTS = 'min=1,max=1,hypervisor_properties=,resource_properties=["==","$gpu","A100"]'
INSTANCES = "resource_type=virtual:instance,vcpus=1,memory_mb=64,disk_gb=1,amount=2,affinity=False"
PRINTED = ("-f", "json")
NAMED = ("-c", "name", "-c", "degraded", *PRINTED)
"""Of a lease that starts meanwhile."""

SCENARIO: tuple[tuple[str, ...], ...] = (
    ("host-list", *PRINTED),
    ("host-create", "compute-4", "--extra", "gpu=A100", *PRINTED),
    ("host-update", "compute-4", "--extra", "rack=r7"),
    ("host-show", "compute-4", *PRINTED),
    ("host-property-list", "--detail", *PRINTED),
    ("lease-create", "hosts", "--physical-reservation", HOSTS, *DAYS, *PRINTED),
    ("lease-create", "lab", "--reservation", INSTANCES, *DAYS, *PRINTED),
    ("lease-create", "running", "--physical-reservation", "min=1,max=1", "--end-date", "2039-01-01 10:00", *NAMED),
    ("until", "running", "ACTIVE"),
    ("lease-show", "running", *PRINTED),
    ("lease-update", "hosts", "--prolong-for", "1h", "--name", "longer"),
    ("lease-show", "longer", *PRINTED),
    ("lease-list", *PRINTED),
    ("lease-list", "--sort-by", "name", "-c", "name", "-c", "status", "-c", "reservations", *PRINTED),
    ("allocation-list", "host", *PRINTED),
    ("allocation-show", "host", "compute-4", *PRINTED),
    ("floatingip-create", "{network}", "{address}", *PRINTED),
    ("lease-create", "web", "--reservation", "resource_type=virtual:floatingip,network_id={network}", *DAYS, *PRINTED),
    ("floatingip-list", *PRINTED),
    ("lease-create", "big", "--physical-reservation", "min=9,max=9", *DAYS),
    ("host-delete", "compute-4"),
    ("lease-show", NOBODY),
    ("lease-delete", "longer"),
    ("until", "longer", ""),
    ("host-unset", "compute-4", "--extra", "rack"),
    ("host-delete", "compute-4"),
)
"""What is typed, as ``blazar`` has it; ``until`` waits for the status of a lease, or until there is none."""

LEFT_OUT = ("--sort-by", "--detail", "lab", "web", "big", "host-show", "host-update", "host-unset", "allocation-show")
PLUGIN = tuple(words for words in SCENARIO if not set(words) & set(LEFT_OUT) and not words[0].startswith("floatingip-"))
"""What is typed to ``openstack``, which starts slowly."""

REFUSED = ("lease-create big", f"lease-show {NOBODY}")

LOOKS = (("host-show", "compute-1", *PRINTED), ("lease-show", NOBODY))

BROKEN = "Could not load 'reservation_host_unset'"
"""What PyPI's plugin says of itself at each command of ``openstack``; the command is not there."""

ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INSTANT = re.compile(r"(?!20[34][09]-01-0)20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?")
"""A time that the scenario did not choose."""

AGGREGATE = "aggregate_id"
"""Counted by Nova."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a command said: its JSON or text on stdout, the last line of stderr, and whether it failed."""

    out: Any
    error: str
    failed: bool


@dataclass
class User:
    """Types commands with one of the clients; ``variables`` log in."""

    programs: Path
    program: str
    variables: dict[str, str]
    fills: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    host: str = ""
    """The id of the host that the scenario has registered."""

    def types(self, *words: str) -> Told:
        filled = [self._filled(word) for word in words]
        if self.program == "openstack":
            filled = of_plugin(filled)
        command = [str(self.programs / self.program), *filled]
        environment = openstack.without_login() | self.variables | {"BLAZAR_FLAT_JSON": "1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        return Told(self._out(done.stdout, words), self._error(done.stderr), done.returncode != 0)

    def _filled(self, word: str) -> str:
        for name, value in self.fills.items():
            word = word.replace("{" + name + "}", value)
        return word

    def _out(self, text: str, words: tuple[str, ...]) -> Any:
        # PyPI's client says in a line of its own that it has created something, ours on stderr.
        text = re.sub(r"^Created a new \w+:\n", "", text)
        if "json" not in words or not text:
            return self._lasting(text)
        found = json.loads(text)
        if words[0] == "host-create":
            self.host = found["id"]
        return self._lasting(found)

    def _error(self, text: str) -> str:
        lines = [line for line in text.splitlines() if not line.startswith((BROKEN, "Created a new", "Matches: "))]
        # PyPI's client has this before each refusal, ours before some; docs/client.md tells of it.
        return str(self._lasting(lines[-1].removeprefix("ERROR: "))) if lines else ""

    def _known(self, key: str, value: Any) -> Any:
        """Return a value without the difference that docs/client.md tells of: PyPI's client rewrites texts."""
        if key == AGGREGATE or (key in ("id", "resource_id") and value == self.host):
            return key
        return json.loads(value) if key == "cpu_info" else value

    def _lasting(self, value: Any) -> Any:
        """Return it with ids in the order in which they came up, and without times that the scenario did not choose."""
        if isinstance(value, dict):
            return {key: self._lasting(self._known(key, item)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._lasting(item) for item in value]
        if not isinstance(value, str):
            return value
        numbered = ID.sub(lambda found: self.ids.setdefault(found[0], f"id-{len(self.ids)}"), value)
        return INSTANT.sub("then", re.sub(rf'"{AGGREGATE}": \d+', f'"{AGGREGATE}": …', numbered))


def of_plugin(words: list[str]) -> list[str]:
    """Return the words of ``blazar`` as ``openstack`` has them; PyPI's plugin has no ``--physical-reservation``."""
    noun = words[0].replace("-update", "-set").split("-")
    rest = words[1:]
    if "--physical-reservation" in rest:
        at = rest.index("--physical-reservation")
        rest[at : at + 2] = ["--reservation", f"resource_type=physical:host,{rest[at + 1]}"]
    return ["reservation", *noun, *rest]


@pytest.fixture(scope="module", autouse=True)
def ours() -> None:
    """The programs of the cloud are those of our client."""
    installed_client()


@pytest.fixture
def tidied(service: Deployment) -> Iterator[None]:
    """Each test finds the cloud as it was, whatever became of the one before."""
    yield
    tidy(service)


@pytest.fixture(scope="module")
def network() -> Iterator[ExternalNetwork]:
    outside = ExternalNetwork(105)
    assert outside.subnet_id
    yield outside
    outside.clean()


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, str]]]:
    """An operator's login in four ways."""
    with openstack.application_credential("admin") as credential:
        kind, region = "v3applicationcredential", "RegionOne"
        password = openstack.clouds()["admin"]
        file = tmp_path_factory.mktemp("login") / "clouds.yaml"
        clouds = {"password": password, "credential": {"auth_type": kind, "auth": credential, "region_name": region}}
        file.write_text(yaml.safe_dump({"clouds": clouds}), encoding="utf-8")
        file.chmod(0o600)
        yield {
            "a password in variables": openstack.variables("admin"),
            "an application credential in variables": {
                **{f"OS_{name.upper()}": value for name, value in credential.items()},
                "OS_AUTH_TYPE": kind,
                "OS_REGION_NAME": region,
            },
            "a password in clouds.yaml": {"OS_CLIENT_CONFIG_FILE": str(file), "OS_CLOUD": "password"},
            "an application credential in clouds.yaml": {"OS_CLIENT_CONFIG_FILE": str(file), "OS_CLOUD": "credential"},
        }


def told(service: Deployment, user: User) -> list[tuple[str, Told]]:
    """Run the scenario, and leave nothing behind unless it fails; return what each command said."""
    heard: list[tuple[str, Told]] = []
    for words in SCENARIO:
        if words[0] == "until":
            until(service, *words[1:])
            continue
        if user.program == "openstack" and words not in PLUGIN:
            continue
        said = user.types(*words)
        line = " ".join(words)
        assert said.failed == line.startswith(REFUSED) or line == "host-delete compute-4", (line, said)
        heard.append((line, said))
    tidy(service)
    return heard


def tidy(service: Deployment) -> None:
    """Delete what the scenario has left."""
    service.forget_leases()
    for address in service.call("admin", "GET", "/floatingips")["floatingips"]:
        assert service.call("admin", "DELETE", f"/floatingips/{address['id']}").status == 204
    for host in service.call("admin", "GET", "/os-hosts")["hosts"]:
        if host["hypervisor_hostname"] == "compute-4":
            assert service.call("admin", "DELETE", f"/os-hosts/{host['id']}").status == 204


def until(service: Deployment, name: str, status: str) -> None:
    def statuses() -> list[str]:
        return [lease["status"] for lease in service.call("admin", "GET", "/leases")["leases"] if lease["name"] == name]

    openstack.eventually(statuses, lambda found: found == [status] * bool(status))


@pytest.mark.parametrize(
    ("program", "login"),
    [("blazar", "a password in variables"), ("openstack", "an application credential in clouds.yaml")],
)
def test_the_same_scenario_with_each_client_says_the_same(service, network, logins, program, login):
    fills = {"network": network.id, "address": "198.51.105.10"}
    theirs, ours = (
        told(service, User(programs, program, logins[login], fills)) for programs in (upstream.programs(), PROGRAMS)
    )
    for our, their in zip(ours, theirs, strict=True):
        assert our == their


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "login"),
    [("blazar", "an application credential in variables"), ("openstack", "a password in clouds.yaml")],
)
def test_other_logins_see_the_same(service, logins, program, login):
    theirs, ours = (User(programs, program, logins[login]) for programs in (upstream.programs(), PROGRAMS))
    assert [ours.types(*words) for words in LOOKS] == [theirs.types(*words) for words in LOOKS]


@pytest.mark.nightly
def test_our_command_reads_clouds_yaml_as_openstack_does(service, logins):
    variables = User(PROGRAMS, "blazar", logins["a password in variables"]).types(*LOOKS[0])
    assert not variables.failed
    for login in ("a password in clouds.yaml", "an application credential in clouds.yaml"):
        assert User(PROGRAMS, "blazar", logins[login]).types(*LOOKS[0]) == variables
