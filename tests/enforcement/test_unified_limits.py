# SPDX-License-Identifier: Apache-2.0
"""Limits from Keystone: what is read of them, for how long, and what happens when there is no answer."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from keystoneauth1 import exceptions as ksa

from blazar.cmd import assemble, config
from blazar.cmd.config import ConfigurationError
from blazar.context import scope
from blazar.enforcement import AllocatedResource, CloudIdentity
from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.limits import MaxConcurrentLeasesFilter, MaxUnitsFilter
from blazar.enforcement.spend import SpendFilter
from blazar.enforcement.unified import UnifiedLimits
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import EnforcementUnavailable, UsageDenied
from blazar.model.use.resource_hours import SpendLimit
from tests.enforcement.builders import a_host, a_view, asking, hours, used


class Keystone:
    """What oslo.limit's enforcer says."""

    def __init__(self, registered: dict[str, int], **projects: dict[str, int]) -> None:
        self.registered = registered
        self.projects = projects
        self.asked: list[str] = []
        self.fails: Exception | None = None
        self.hangs = threading.Event()
        self.hangs.set()
        self.logins = 0

    def log_in(self) -> Keystone:
        self.logins += 1
        return self

    def get_registered_limits(self, names: object) -> list[tuple[str, int]]:
        assert names is None
        self.hangs.wait(5)
        if self.fails:
            raise self.fails
        return list(self.registered.items())

    def get_project_limits(self, project_id: str, names: object) -> list[tuple[str, int]]:
        assert names is None
        self.asked.append(project_id)
        return list(self.projects.get(project_id, {}).items())


@pytest.fixture
def keystone() -> Keystone:
    registered = {"blazar:leases": 2, "blazar:hosts": 3, "blazar:host_hours": 100, "volumes": 7}
    return Keystone(registered, physics={"blazar:hosts": 5}, art={"blazar:leases": -1, "blazar:host_hours": -1})


def limits(keystone: Keystone, **more) -> UnifiedLimits:
    return UnifiedLimits(keystone.log_in, **more)


def test_a_projects_own_limit_counts_more_than_the_registered_one(keystone):
    assert limits(keystone).limits_of("physics") == {"blazar:leases": 2, "blazar:hosts": 5, "blazar:host_hours": 100}
    assert limits(keystone).limits_of("history")["blazar:hosts"] == 3


def test_limits_are_remembered_for_a_while_and_by_project(keystone):
    now = [0.0]
    ours = limits(keystone, keep=30, clock=lambda: now[0])
    for instant, project in ((0, "physics"), (29, "physics"), (29, "art"), (31, "physics"), (31, "art")):
        now[0] = instant
        ours.limits_of(project)
    assert (keystone.asked, keystone.logins) == (["physics", "art", "physics"], 1)
    keystone.registered["blazar:leases"] = 9
    now[0] = 62
    assert ours.limits_of("physics")["blazar:leases"] == 9


def test_without_remembering_every_question_is_asked(keystone):
    ours = limits(keystone, keep=0)
    ours.limits_of("physics")
    ours.limits_of("physics")
    assert keystone.asked == ["physics", "physics"]


@pytest.mark.parametrize("error", [ksa.Unauthorized("who?"), ValueError("Endpoint not found"), ksa.ConnectFailure("x")])
def test_no_answer_is_a_503_that_says_to_try_again_and_the_next_question_finds_keystone_back(keystone, error, caplog):
    ours = limits(keystone)
    keystone.fails = error
    with pytest.raises(EnforcementUnavailable, match="Keystone, which has the limits .* try again later") as refused:
        ours.limits_of("physics")
    assert refused.value.status == 503
    assert f"limits of project physics: {type(error).__name__}" in caplog.text
    keystone.fails = None
    assert ours.limits_of("physics")["blazar:hosts"] == 5
    assert keystone.logins == 2


@pytest.mark.slow
def test_keystone_is_waited_for_only_so_long_and_no_longer_than_the_request_has(keystone):
    keystone.hangs.clear()
    begun = time.monotonic()
    with pytest.raises(EnforcementUnavailable):
        limits(keystone, timeout=0.2).limits_of("physics")
    with scope(limit=timedelta(seconds=0.2)), pytest.raises(EnforcementUnavailable):
        limits(keystone, timeout=60).limits_of("physics")
    assert time.monotonic() - begun < 2
    keystone.hangs.set()


def test_filters_take_their_number_from_keystone_and_name_it(keystone):
    ours = limits(keystone)
    both = [used(hours(0, 9), lease="a"), used(hours(0, 9), 3, lease="b")]
    with pytest.raises(UsageDenied, match=r"may have 2 at a time \(blazar:leases\)"):
        MaxConcurrentLeasesFilter(99, unified=ours).check(asking(others=both))
    MaxConcurrentLeasesFilter(0, unified=ours).check(asking(a_view(project="art"), others=both))
    with pytest.raises(UsageDenied, match=r"of the 5 that the project may have at a time \(blazar:hosts\) 1 is left"):
        MaxUnitsFilter(99, unified=ours).check(asking(a_view(hosts=2), others=both))
    with pytest.raises(UsageDenied, match=r"of the 100 that the project has in a month \(blazar:host_hours\)"):
        ResourceHoursFilter({}, PeriodCalendar(), unified=ours).check(asking(a_view(hours(1, 102))))
    ResourceHoursFilter({"host": 0}, PeriodCalendar(), unified=ours).check(asking(a_view(hours(1, 102), project="art")))


def test_the_limit_on_money_is_in_whole_units_and_must_be_registered(keystone):
    rule = SpendFilter(1, unified=limits(keystone, keep=0))
    with pytest.raises(EnforcementUnavailable, match="no registered limit blazar:spend"):
        rule.spend_limit("physics")
    keystone.registered["blazar:spend"] = 200
    keystone.projects["art"]["blazar:spend"] = -1
    assert rule.spend_limit("physics") == SpendLimit("blazar:spend", 200 * 10**9)
    assert rule.spend_limit("art") is None


def test_other_units_have_a_limit_if_one_is_registered(keystone):
    servers = AllocatedResource("r-1", a_host(), 3, whole=False, per_instance=Amounts.of({"VCPU": 4}))
    question = asking(replace(a_view(), allocated_resources=(servers,)))
    MaxUnitsFilter(None, unified=limits(keystone)).check(question)
    keystone.registered["blazar:vcpus"] = 11
    with pytest.raises(
        UsageDenied, match=r"of the 11 that the project may have at a time \(blazar:vcpus\) 11 are left"
    ):
        MaxUnitsFilter(None, unified=limits(keystone)).check(question)


def test_a_limit_that_nobody_registered_grants_nothing_and_says_what_to_create(keystone):
    keystone.registered.clear()
    ours = limits(keystone)
    rules = {
        "blazar:leases": MaxConcurrentLeasesFilter(None, unified=ours),
        "blazar:hosts": MaxUnitsFilter(None, unified=ours),
        "blazar:host_hours": ResourceHoursFilter({}, PeriodCalendar(), unified=ours),
    }
    for name, rule in rules.items():
        with pytest.raises(EnforcementUnavailable, match=f"no registered limit.* {name}.*; an operator must create"):
            rule.check(asking(a_view(project="history")))


COMPLETE = {"auth_section": "keystone_authtoken", "endpoint_id": "e"}

PROGRAM = """
import sys
from oslo_config import cfg
from blazar.cmd import assemble, config
assemble.check_plugins(config.load(["--config-file", sys.argv[1]], program="blazar-test", conf=cfg.CONF))
"""
"""How a manager starts: with the global configuration, which the library itself reads."""


def write(tmp_path, given) -> str:
    path = tmp_path / "blazar.conf"
    lines = [f"{name} = {value}" for name, value in given.items()]
    head = ["[enforcement]", "enabled_filters = MaxUnitsFilter", "limits_source = unified_limits", "[oslo_limit]"]
    path.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return str(path)


def check(tmp_path, given, identity=None) -> None:
    conf = config.load(["--config-file", write(tmp_path, given)], program="blazar-test")
    if identity:
        assemble.enforcement(conf, identity)
    else:
        assemble.check_plugins(conf)
    assert config.leftovers(conf) == []


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"auth_type": "password", "username": "u", "endpoint_service_type": "x"}])
def test_where_it_says_how_to_ask_limits_may_come_from_keystone(tmp_path, more):
    check(tmp_path, COMPLETE | more)
    # In a process of its own: other tests have imported more of the library.
    started = [sys.executable, "-c", PROGRAM, write(tmp_path, COMPLETE | more)]
    done = subprocess.run(started, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("auth_section", r"\[oslo_limit\] has no credentials for Keystone; set auth_type, auth_url"),
        ("endpoint_id", r"\[oslo_limit\] names no endpoint; set endpoint_id"),
    ],
)
def test_what_is_missing_is_named_before_anything_starts(tmp_path, missing, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        check(tmp_path, {name: value for name, value in COMPLETE.items() if name != missing})


def test_without_keystone_there_are_no_limits_of_it(tmp_path):
    with pytest.raises(ConfigurationError, match="this mode has no Keystone; set configuration"):
        check(tmp_path, COMPLETE, CloudIdentity())
