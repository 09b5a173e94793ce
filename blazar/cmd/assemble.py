# SPDX-License-Identifier: Apache-2.0
"""Assemble a manager from its configuration, a database and a cloud."""

from __future__ import annotations

from oslo_config import cfg
from sqlalchemy.engine import Engine

from blazar.clouds.ports import Cloud
from blazar.cmd import config, plugins
from blazar.cmd.config import ConfigurationError
from blazar.enforcement import Enforcement, Identity
from blazar.manager.common.notifications import MessagingNotifier, Notifier
from blazar.manager.service import ManagerService, Plugins
from blazar.messaging import oslo_messaging
from blazar.model.clock import Clock
from blazar.model.errors import InvalidInput
from blazar.store import engine as database
from blazar.store.store import Store


def manager(
    conf: cfg.ConfigOpts,
    *,
    engine: Engine,
    cloud: Cloud,
    clock: Clock,
    notifier: Notifier | None = None,
    identity: Identity | None = None,
) -> ManagerService:
    """Return a manager that is not started yet; ConfigurationError if the configuration is invalid.

    ``identity`` is how filters of usage enforcement reach Keystone; None without Keystone.
    """
    types, kinds = plugins.made(conf, cloud)
    return ManagerService(
        Store(engine, cleaning_time=config.cleaning_time(conf)),
        clock,
        config.manager_settings(conf),
        Plugins(
            types=types,
            kinds=kinds,
            notifier=notifier or _notifier(conf),
            enforcement=enforcement(conf, identity or Identity(region_name=conf.os_region_name, cafile=conf.cafile)),
        ),
    )


def enforcement(conf: cfg.ConfigOpts, identity: Identity) -> Enforcement:
    """Return the enabled filters; ConfigurationError if a filter is unknown or wrongly configured."""
    try:
        return Enforcement.configured(conf, identity)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def _notifier(conf: cfg.ConfigOpts) -> Notifier:
    try:
        return MessagingNotifier(conf, conf.notifications.publisher_id)
    except (oslo_messaging.MessagingException, ValueError) as error:
        # The message omits the URL, which contains a password.
        raise ConfigurationError(
            f"transport_url of [oslo_messaging_notifications], or else of [DEFAULT], cannot be used: {error}"
        ) from error


def database_engine(conf: cfg.ConfigOpts) -> Engine:
    """Return the engine of the configured database, not connected yet. Raises ConfigurationError and InvalidInput."""
    if not conf.database.connection:
        raise ConfigurationError("[database] connection is not set; give the SQLAlchemy URL of the database")
    return database.connect(
        conf.database.connection,
        pool_size=conf.database.max_pool_size,
        recycle=conf.database.connection_recycle_time,
    )


class _Later:
    """Stands in for the service user during validation, when no token is requested."""

    def token(self) -> str:
        raise NotImplementedError

    def renew(self) -> None:
        raise NotImplementedError


def check_plugins(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if a plugin or filter is unknown or wrongly configured; does not call the cloud."""
    plugins.check(conf)
    enforcement(conf, Identity(tokens=_Later()))
