# SPDX-License-Identifier: Apache-2.0
"""Limits that an operator sets in a real Keystone, read by a configured filter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import openstack
from tests.cloud.deployment import ROOT

CONF = """
[enforcement]
enabled_filters = MaxUnitsFilter
limits_source = unified_limits

[oslo_limit]
auth_section = keystone_authtoken
endpoint_id = {endpoint}

[keystone_authtoken]
auth_type = password
auth_url = {auth_url}
username = {username}
password = {password}
{scope}
user_domain_name = Default
"""

SCRIPT = """
import json, sys
from oslo_config import cfg
from blazar.cmd import assemble, config
from blazar.enforcement import CloudIdentity
from blazar.enforcement.enforcement import Enforcement
from blazar.model.base.errors import BlazarError

conf = config.load(["--config-file", sys.argv[1]], program="blazar-test", conf=cfg.CONF)
assemble.check_plugins(conf)
(rule,) = assemble.enforcement(conf, CloudIdentity(tokens=object())).filters
for project in sys.argv[2:]:
    try:
        print(json.dumps(dict(rule.limits["host"].unified.limits_of(project))))
    except BlazarError as error:
        print(json.dumps([error.status, error.message]))
"""


class Limits:
    """What an operator does in Keystone."""

    def __init__(self) -> None:
        self.session = openstack.access("admin").session
        self._made: list[str] = []

    def make_one(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        made = self.call("POST", f"/{what}s", {what: body})[what]
        self._made.append(f"/{what}s/{made['id']}")
        return dict(made)

    def make_limit(self, what: str, body: dict[str, Any]) -> None:
        (made,) = self.call("POST", f"/{what}", {what: [body]})[what]
        self._made.append(f"/{what}/{made['id']}")

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        filter_ = {"service_type": "identity", "region_name": "RegionOne"}
        answer = self.session.request(path, method, json=body, endpoint_filter=filter_)
        return dict(answer.json()) if answer.content else {}

    def clean(self) -> None:
        for path in reversed(self._made):
            self.call("DELETE", path)


@pytest.fixture
def keystone() -> Iterator[Limits]:
    limits = Limits()
    try:
        yield limits
    finally:
        limits.clean()


@pytest.fixture
def endpoint(keystone: Limits) -> dict[str, Any]:
    service = keystone.make_one("service", {"name": "blazar-limits-test", "type": "reservation-limits-test"})
    body = {"service_id": service["id"], "region_id": "RegionOne", "interface": "public", "url": "http://127.0.0.1:1/"}
    return keystone.make_one("endpoint", body)


Read = Callable[..., list[Any]]


@pytest.fixture
def read(endpoint: dict[str, Any], tmp_path: Path) -> Read:
    def ask(*projects: str, **wrong: str) -> list[Any]:
        login = {**openstack.clouds()["blazar"]["auth"], **wrong}
        conf = tmp_path / "blazar.conf"
        scope = f"project_name = {login['project_name']}\nproject_domain_name = Default"
        text = CONF.format(
            **{key: login[key] for key in ("auth_url", "username", "password")}, scope=scope, endpoint=endpoint["id"]
        )
        conf.write_text(text, encoding="utf-8")
        command = [sys.executable, "-c", SCRIPT, str(conf), *projects]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
        print(done.stderr)
        assert done.returncode == 0
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "["))]

    return ask


def project(name: str) -> str:
    return str(openstack.access(name).session.get_project_id())


def test_what_an_operator_sets_is_the_limit_of_the_project_and_the_default_that_of_others(keystone, endpoint, read):
    where = {"service_id": endpoint["service_id"], "region_id": "RegionOne"}
    for name, number in (("blazar:hosts", 3), ("blazar:host_hours", 100), ("other", 1)):
        keystone.make_limit("registered_limits", {**where, "resource_name": name, "default_limit": number})
    demo, alt = project("demo"), project("alt_demo")
    own = {**where, "resource_name": "blazar:hosts", "resource_limit": 8, "project_id": demo}
    keystone.make_limit("limits", own)
    assert read(demo, alt) == [
        {"blazar:hosts": 8, "blazar:host_hours": 100},
        {"blazar:hosts": 3, "blazar:host_hours": 100},
    ]


def test_a_login_that_keystone_does_not_take_grants_nothing(read):
    ((status, message),) = read(project("demo"), password="wrong")
    assert status == 503
    assert "please try again later" in message
