# SPDX-License-Identifier: Apache-2.0
"""What an API and a manager look at to know whether they can work."""

from __future__ import annotations

from collections.abc import Callable

from keystoneauth1 import exceptions as ksa
from oslo_config import cfg

from blazar.cmd import logins
from blazar.model.base.errors import CloudUnavailable, OtherVersion, StoreUnavailable
from blazar.model.managers.presence import Pong
from blazar.observe.readiness import Check, Readiness
from blazar.rpc.interface import Manager


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
    ping: Callable[[], object], measure_database: Callable[[], object], log_in: Callable[[], object]
) -> Readiness:
    """Return the checks of a manager: its own answer over the message bus, its database, and Keystone."""
    return Readiness((Check("bus", ping), Check("database", measure_database), Check("keystone", log_in)))
