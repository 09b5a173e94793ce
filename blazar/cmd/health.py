# SPDX-License-Identifier: Apache-2.0
"""What an API and a manager look at to know whether they can work, and the pages that tell it.

``/livez`` is for supervisors: 503 if a thread is stuck. ``/readyz`` is for people and alerts: 503 with what does not
work now, with ``?detailed`` as JSON. Load balancers ask ``/healthcheck`` of the API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from keystoneauth1 import exceptions as ksa
from oslo_config import cfg

from blazar.cmd import logins
from blazar.cmd.monitoring import PortAnswer, PortPage
from blazar.model.base.errors import CloudUnavailable, OtherVersion, StoreUnavailable
from blazar.model.managers.presence import Pong
from blazar.observe.readiness import Check, Liveness, Readiness
from blazar.rpc.interface import Manager

if TYPE_CHECKING:
    # An API needs neither the manager nor its database.
    from blazar.manager.service import ManagerService


class ManagerCheck:
    """Asks any manager whether it is there, and remembers what it says of its database."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._pong: Pong | None = None

    def look(self) -> None:
        """Ask a manager. ManagerUnavailable."""
        self._pong = None
        try:
            self._pong = self._manager.service.ping()
        except OtherVersion:
            # One of an earlier version answers all the same.
            return

    def look_at_database(self) -> None:
        """Raise StoreUnavailable if the manager that was asked last does not reach its database."""
        if self._pong is not None and self._pong.database_error is not None:
            raise StoreUnavailable(f"the manager {self._pong.manager_id} says: {self._pong.database_error}")


class KeystoneCheck:
    """Logs in as the user that validates tokens until that has worked; then it asks only whether Keystone is there."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._let_us_in = False

    def look(self) -> None:
        """Ask Keystone. ConfigurationError if it refuses the user, CloudUnavailable if it does not answer."""
        ask = logins.find_keystone if self._let_us_in else logins.log_in_to_keystone
        try:
            ask(self._conf)
        except ksa.ClientException as error:
            raise CloudUnavailable(f"Keystone does not answer: {error}") from error
        self._let_us_in = True


def make_api_readiness(conf: cfg.ConfigOpts, manager: Manager) -> Readiness:
    """Return the checks of an API: a manager, its database, and Keystone."""
    there, keystone = ManagerCheck(manager), KeystoneCheck(conf)
    return Readiness(
        (
            Check("manager", there.look),
            Check("database", there.look_at_database),
            Check("keystone", keystone.look),
        )
    )


def make_manager_readiness(
    manager: Manager, ping: Callable[[], Pong] | None = None, looks: Mapping[str, Callable[[], object]] | None = None
) -> Readiness:
    """Return the checks of a manager: its database, the services of its clouds that ``looks`` looks at by name.

    Where it has a message bus, it has to receive what it sends itself: ``ping``.
    """
    bus = () if ping is None else (Check("bus", ping),)
    services = (Check(name, look) for name, look in (looks or {}).items())
    return Readiness((*bus, Check("database", partial(_look_at_database, manager)), *services))


def make_liveness(manager: ManagerService) -> Liveness:
    """Return when a manager counts as stuck: by the threads on which all its work depends."""
    return Liveness({part.name: part.rounds.seconds_in_round for part in (manager.claims, manager.engine)})


def list_pages(liveness: Liveness, readiness: Readiness) -> dict[str, PortPage]:
    """Return the pages of the monitoring port about the health of a process; they need no token."""
    return {
        "/livez": PortPage(partial(_tell_life, liveness), needs_token=False),
        "/readyz": PortPage(partial(_tell_readiness, readiness), needs_token=False),
    }


def _look_at_database(manager: Manager) -> None:
    pong = manager.service.ping()
    if pong.database_error is not None:
        raise StoreUnavailable(pong.database_error)


def _tell_life(liveness: Liveness, query: Mapping[str, str]) -> PortAnswer:
    stuck = liveness.list_stuck()
    return PortAnswer("\n".join(stuck or ("ok",)).encode(), _status_of(stuck))


def _tell_readiness(readiness: Readiness, query: Mapping[str, str]) -> PortAnswer:
    failures = readiness.list_failures()
    status = _status_of(failures)
    if "detailed" not in query:
        return PortAnswer("\n".join(failures or ("ok",)).encode(), status)
    checks = [state.render() for state in readiness.list_states()]
    told = {"status": "failing" if failures else "ok", "checks": checks}
    return PortAnswer(json.dumps(told).encode(), status, "application/json")


def _status_of(wrong: Sequence[str]) -> HTTPStatus:
    return HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
