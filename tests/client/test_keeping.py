# SPDX-License-Identifier: Apache-2.0
"""The client and leases that nobody uses."""

from __future__ import annotations

from datetime import timedelta

import pytest
from blazarclient.exception import Conflict, Forbidden
from blazarclient.shell import main

from blazar.manager.common.settings import Settings
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import NOON, World

HOUR = timedelta(hours=1)
WHO = "curie:physics"


@pytest.fixture
def on(a_world) -> World:
    return a_world(settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))


@pytest.fixture
def way(on):
    with serving(app_of(on.manager)) as way:
        yield way


@pytest.mark.slow
def test_a_lease_that_is_going_to_be_released_is_shown_and_kept_once(on, way, capsys):
    lease = on.lease(hours=48, name="training")
    on.run()
    leases = library(way.url, WHO).leases
    with pytest.raises(Conflict, match="nothing to keep it from"):
        leases.keep(lease.id)
    on.run_to(NOON + 6 * HOUR)
    (seen,) = leases.list(fields=("id", "usage", "release_at"))
    assert (seen.usage, seen.release_at) == ("unused", NOON + 9 * HOUR)
    login = ("--os-auth-type", "admin_token", "--os-token", WHO, "--os-endpoint", way.url)
    assert main([*login, "lease", "show", "training", "--long"]) == 0
    assert "release_at" in capsys.readouterr().out
    assert main([*login, "lease", "keep", "training"]) == 0
    assert "training" in capsys.readouterr().out
    on.run_to(NOON + 13 * HOUR)
    with pytest.raises(Conflict, match="kept once already"):
        leases.keep(lease.id)


def test_an_operator_holds_a_lease_and_lets_go_of_it(on, way, capsys):
    lease = on.lease(hours=48, name="training")
    on.run()
    operator = ("--os-auth-type", "admin_token", "--os-token", "root:operators:admin", "--os-endpoint", way.url)
    mine = library(way.url, WHO).leases
    assert mine.get(lease.id).held is False
    assert main([*operator, "lease", "hold", lease.id]) == 0
    assert mine.get(lease.id).held is True
    capsys.readouterr()
    assert main([*operator, "lease", "show", lease.id, "--long"]) == 0
    assert "never released" in capsys.readouterr().out
    assert main([*operator, "lease", "hold", lease.id, "--let-go"]) == 0
    assert mine.get(lease.id).held is False
    with pytest.raises(Forbidden):
        mine.hold(lease.id)
