# SPDX-License-Identifier: Apache-2.0
"""The processes: managers and the API. Both are the real ones but for Keystone, and the cloud is simulated."""

from __future__ import annotations

import logging
import signal
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any
from unittest import mock

import waitress
from oslo_config import cfg

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.policy import Policy
from blazar.api.parts import all_parts
from blazar.cmd import config
from blazar.cmd import manager as program
from blazar.cmd.orders import Orders
from blazar.manager.use import settings as use
from blazar.messaging import transport
from blazar.model.base.clock import SystemClock
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.rpc.client import RemoteManager
from tests.soak.plan import WRONG, Plan, begin_process

LOG_FORMAT = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s: %(message)s"


UNUSED = UsePolicies(
    UsePolicy(
        mode=UseMode.ON,
        unused_after=timedelta(seconds=75),
        warn_before=timedelta(seconds=15),
        undo=timedelta(seconds=5),
    ),
    brake=1,
)
"""When leases that nobody uses are released: sooner than options can say. A change keeps one for a minute more."""

CLOCKS = (timedelta(0), WRONG, -WRONG)
"""How wrong the clocks of the managers' machines are."""


class WrongClock(SystemClock):
    """The clock of a machine that nobody has set."""

    def __init__(self, wrong: timedelta) -> None:
        super().__init__()
        self._wrong = wrong

    def now(self) -> datetime:
        """Return what the clock shows."""
        return super().now() + self._wrong


def manage(plan: Plan, number: int, claim_ttl: int) -> None:
    """Be blazar-manager until SIGTERM."""
    conf = _begin(plan, f"manager-{number}", claim_ttl)
    stopping = Orders()
    signal.signal(signal.SIGTERM, lambda *_: stopping.stop())
    cloud = plan.troubled_cloud(number)
    nobody = SimpleNamespace(auth=None, region=None)
    access = SimpleNamespace(session=None, log_in=lambda: "service", list_looks=dict)
    parts = mock.patch.multiple(
        program,
        credentials=lambda _: nobody,
        Access=lambda _: access,
        open_cloud=lambda *_, **__: cloud.cloud,
        SystemClock=lambda: WrongClock(CLOCKS[number % len(CLOCKS)]),
    )
    with parts, mock.patch.object(use, "read", return_value=UNUSED):
        program.run(conf, stopping)


def serve(plan: Plan, said: Connection) -> None:
    """Be blazar-api, without Keystone, until SIGTERM; say on which port."""
    conf = _begin(plan, "api", None)
    app = create_app(
        RemoteManager(conf, transport(conf)), identity=StandaloneIdentity(), policy=Policy(conf, parts=all_parts())
    )
    server: Any = waitress.create_server(app, host="127.0.0.1", port=0, threads=16)
    said.send(int(server.effective_port))
    server.run()


def _begin(plan: Plan, name: str, claim_ttl: int | None) -> cfg.ConfigOpts:
    begin_process(plan.folder / f"{name}.log")
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, datefmt="%H:%M:%S")
    for noisy in ("alembic", "amqp", "oslo", "oslo_messaging", "stevedore", "waitress.queue"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL if noisy == "waitress.queue" else logging.WARNING)
    # Parts of oslo.messaging look for their options nowhere but there.
    conf = config.load(["--config-file", str(plan.config_file)], program="blazar-soak", conf=cfg.CONF)
    if claim_ttl is not None:
        conf.set_override("claim_ttl", claim_ttl, group="manager")
    return conf
