# SPDX-License-Identifier: Apache-2.0
"""Assemble a manager from its configuration, a database and a cloud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import Engine

from blazar.clouds.ports import Cloud
from blazar.cmd import config
from blazar.cmd.config import ConfigurationError
from blazar.enforcement import Enforcement, Identity
from blazar.manager.common.notifications import MessagingNotifier, Notifier
from blazar.manager.service import ManagerService
from blazar.messaging import oslo_messaging
from blazar.model import extensions
from blazar.model.clock import Clock
from blazar.model.errors import InvalidInput
from blazar.resources import complete
from blazar.resources.base import ResourceType
from blazar.resources.floating_ips.registration import AddressRegistration
from blazar.resources.hosts.registration import HostRegistration
from blazar.store import engine as database
from blazar.store.store import Store

NAMESPACE = "blazar.resource.plugins"


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
    return ManagerService(
        store=Store(engine, cleaning_time=config.cleaning_time(conf)),
        types=resource_types(conf, cloud),
        registration=HostRegistration(cloud, config.host_settings(conf).aggregates),
        addresses=AddressRegistration(cloud.network),
        notifier=notifier or _notifier(conf),
        clock=clock,
        settings=config.manager_settings(conf),
        enforcement=enforcement(conf, identity or Identity(region_name=conf.os_region_name, cafile=conf.cafile)),
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
    _plugins(conf)
    enforcement(conf, Identity(tokens=_Later()))


def resource_types(conf: cfg.ConfigOpts, cloud: Cloud) -> Sequence[ResourceType]:
    """Return the enabled resource types; ConfigurationError if a name is unknown or a type has two plugins."""
    settings = config.host_settings(conf)
    return [plugin(cloud, settings) for plugin in _plugins(conf)]


def _check_complete(name: str, plugin: object, advice: str) -> None:
    try:
        complete.check(plugin)
    except InvalidInput as error:
        raise InvalidInput(
            f"[manager] plugins names {name}, which is incomplete: {error.message}; see {advice}"
        ) from error


def _plugins(conf: cfg.ConfigOpts) -> list[Any]:
    names = conf.manager.plugins
    there = extensions.offered(NAMESPACE)
    unknown = [name for name in names if name not in there]
    if unknown:
        raise ConfigurationError(
            f"[manager] plugins names {', '.join(unknown)}, which is not installed; installed are: "
            f"{', '.join(sorted(there))}"
        )
    advice = "docs/contributing/add-a-resource-type.md"
    try:
        plugins = [extensions.load(there[n], ResourceType, named="[manager] plugins", advice=advice) for n in names]
        for name, plugin in zip(names, plugins, strict=True):
            _check_complete(name, plugin, advice)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error
    seen = [plugin.resource_type for plugin in plugins]
    twice = sorted({name for name in seen if seen.count(name) > 1})
    if twice:
        raise ConfigurationError(f"[manager] plugins has more than one plugin for {', '.join(twice)}")
    return plugins
