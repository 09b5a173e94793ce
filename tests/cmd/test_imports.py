# SPDX-License-Identifier: Apache-2.0
"""What processes import when they start, and what a start costs: large libraries only where they are used."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cmd.conftest import Program
from tests.cmd.stub import PASSWORD

UNUSED = {
    "blazar.cmd.api": {
        "alembic",
        "openstack",
        "sqlalchemy",
        "icalendar",
        "blazar.manager.service",
        "blazar.store.store",
    },
    "blazar.cmd.manager": {
        "sqlalchemy.dialects.mysql",
        "sqlalchemy.dialects.postgresql",
        "jsonschema",
        "alembic",
        "flask",
        "openstack",
        "keystonemiddleware",
        "keystoneclient",
        "icalendar",
        "jinja2",
    },
}


def list_loaded(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(UNUSED))
def test_a_process_starts_without_the_libraries_that_it_does_not_use(module):
    assert not UNUSED[module] & list_loaded(module)


@dataclass(frozen=True)
class Cost:
    """What a process has taken: seconds of CPU, and MiB that are resident."""

    cpu_s: float
    rss_mb: float


LIMITS = {"api": Cost(1.8, 106), "manager": Cost(2.0, 105)}
"""What a start may cost: a fifth more CPU than on two busy cores of 2026, and a twentieth more memory.

The least of some starts counts."""
STARTS = 3


def read_cost(program: Program) -> Cost:
    folder = Path(f"/proc/{program.process.pid}")
    # Behind the name, which may have spaces: user and system time are the 14th and 15th field of all.
    fields = (folder / "stat").read_text("ascii").rpartition(")")[2].split()
    (resident,) = re.findall(r"^VmRSS:\s+(\d+) kB", (folder / "status").read_text("ascii"), re.M)
    ticks = int(fields[11]) + int(fields[12])
    return Cost(ticks / os.sysconf("SC_CLK_TCK"), int(resident) / 1024)


@pytest.fixture
def lines(working, stub) -> dict[str, list[str]]:
    """The configurations of both processes, with everything that they need."""
    login = ["[keystone_authtoken]", "auth_type = v3password", f"auth_url = {stub.url}/v3", "username = blazar"]
    login += ["user_domain_id = default", "project_name = service", "project_domain_id = default"]
    api = ["[DEFAULT]", "transport_url = fake://", "host = 127.0.0.1", "port = 0", *login, f"password = {PASSWORD}"]
    return {"api": api, "manager": working()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), [("api", "is listening on"), ("manager", "has started, with the service")])
def test_a_start_costs_little(start, lines, name, words):
    costs = []
    for _ in range(STARTS):
        program = start(name, *lines[name])
        program.says(words)
        costs.append(read_cost(program))
        assert program.stop() == 0
    print(*costs, sep="\n")
    assert min(cost.cpu_s for cost in costs) <= LIMITS[name].cpu_s, costs
    assert min(cost.rss_mb for cost in costs) <= LIMITS[name].rss_mb, costs


@pytest.mark.slow
def test_a_process_starts_for_a_user_without_a_home():
    code = """
import os, pwd
def none(uid): raise KeyError(uid)
pwd.getpwuid = none
os.environ.pop("HOME", None)
import blazar.cmd.manage, blazar.cmd.manager, openstack.config
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
