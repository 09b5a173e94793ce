# SPDX-License-Identifier: Apache-2.0
"""How many files a process may have open."""

from __future__ import annotations

import resource

import pytest

from blazar.clouds.openstack.access import POOL
from blazar.cmd import options, process
from blazar.manager.common.settings import Settings


@pytest.fixture
def limits():
    soft, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard < 512:
        pytest.skip("the system's own limit is none to try this on")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    yield min(soft, 512), hard
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_as_far_as_the_system_lets_it_and_never_lowered(limits):
    soft, hard = limits
    assert process.allow_open_files(soft - 1) == soft
    if hard > soft:
        assert process.allow_open_files(soft + 1) == soft + 1
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft + 1, hard)
    assert process.allow_open_files(hard + 1) == hard


def test_every_thread_of_a_manager_that_may_call_the_cloud_keeps_its_connection():
    (requests,) = (option.default for option in options.MANAGER_OPTIONS if option.name == "rpc_threads")
    settings = Settings()
    assert settings.starters + settings.enders + requests <= POOL
