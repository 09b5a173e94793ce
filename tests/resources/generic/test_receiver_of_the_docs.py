# SPDX-License-Identifier: Apache-2.0
"""The receiver on the page about generic resources, run as it stands there, with leases over real HTTP."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from blazar.clouds.outgoing import signing
from blazar.clouds.ports.hooks import HookAction, HookResult
from blazar.model.leases.states import LeaseStatus
from blazar.resources.generic.kind import GenericResources
from blazar.resources.generic.type import Generic
from tests.clouds.receivers import MASTER, a_call, hooks
from tests.world import NOON, World, things, units

PAGE = Path(__file__).parents[3] / "docs" / "generic-resources.md"
HOUR = timedelta(hours=1)


@pytest.fixture
def world(sqlite) -> World:
    """Real hooks; everything else is simulated."""
    calling = hooks()
    return World(
        sqlite,
        hosts=0,
        types=[lambda *_: Generic(calling)],
        kinds=lambda *_: {GenericResources.kind: GenericResources(calling)},
    )


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def run(tmp_path, port) -> Iterator[object]:
    """Return a function that starts the receiver with the secrets of a resource."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    script = tmp_path / "receiver.py"
    script.write_text(code, encoding="utf-8")
    started = []

    def begin(*secrets: str, capacity: int = 1) -> None:
        more = {"HOOK_SECRETS": " ".join(secrets), "CAPACITY": str(capacity), "PORT": str(port)}
        started.append(
            subprocess.Popen([sys.executable, str(script)], env={**os.environ, **more}, stderr=subprocess.DEVNULL)
        )
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.02)

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_leases_share_a_resource_by_it_and_give_it_back(world, run, port):
    licence = world.register_thing("licence", capacity=3, hook_url=f"http://127.0.0.1:{port}/")
    run(*signing.secrets_of([MASTER], licence.external_id), capacity=3)
    world.manager.monitor.run_once()
    assert world.manager.resources.one("generic", licence.external_id).failure is None
    shared = [world.lease(units(2), start=HOUR), world.lease(units(1), start=HOUR)]
    world.run_to(NOON + HOUR)
    assert [world.now(lease).status for lease in shared] == [LeaseStatus.ACTIVE] * 2
    whole = world.lease(things(), start=2 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    assert [world.now(lease).status for lease in (*shared, whole)] == [LeaseStatus.TERMINATED] * 2 + [
        LeaseStatus.ACTIVE
    ]
    world.run_to(NOON + 5 * HOUR)
    assert world.now(whole).status is LeaseStatus.TERMINATED


def test_it_refuses_what_is_not_signed_for_it_and_waits_while_it_is_in_use(run, port):
    run(*signing.secrets_of([MASTER], "thing-1"))
    url, calling = f"http://127.0.0.1:{port}/", hooks()
    assert calling.call_hook(a_call(url, thing_id="thing-2")).result is HookResult.REFUSED
    assert hooks(now=lambda: time.time() - 3600).call_hook(a_call(url)).result is HookResult.REFUSED
    assert calling.call_hook(a_call(url)).result is HookResult.DONE
    assert calling.call_hook(a_call(url, reservation_id="r-2")).result is HookResult.NOT_YET
    assert calling.call_hook(a_call(url, HookAction.END, reservation_id="r-3", amount=0)).result is HookResult.DONE
    assert calling.call_hook(a_call(url, reservation_id="r-2")).result is HookResult.NOT_YET
    assert calling.call_hook(a_call(url, HookAction.END, amount=0)).result is HookResult.DONE
    assert calling.call_hook(a_call(url, reservation_id="r-2")).result is HookResult.DONE
