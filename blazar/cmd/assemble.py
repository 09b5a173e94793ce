# SPDX-License-Identifier: Apache-2.0
"""Assemble a manager from its configuration, a database and a cloud."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import Engine

from blazar.clouds import energy, prometheus, prometheus_hosts
from blazar.clouds.mail import SmtpMail
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Metrics
from blazar.clouds.ports.energy import CarbonSource, HostMeters
from blazar.clouds.ports.people import Mail, NoPeople, People
from blazar.clouds.ports.webhooks import Webhooks
from blazar.clouds.redfish.power import RedfishPower
from blazar.clouds.webhooks import HttpWebhooks
from blazar.cmd import config, plugins
from blazar.cmd.config import ConfigurationError
from blazar.cmd.logs import list_log_troubles
from blazar.cmd.sent_later import SentLater
from blazar.enforcement import CloudIdentity, Enforcement
from blazar.manager.common.notifications import MessagingNotifier, Notifier, Send
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.messaging import oslo_messaging
from blazar.model.base.clock import Clock
from blazar.model.base.errors import InvalidInput
from blazar.model.resources.regions import Regions
from blazar.model.subscriptions.events import check_events
from blazar.store.sql import engine as database
from blazar.store.store import Store, StoreLimits

LOG = logging.getLogger(__name__)


def manager(
    conf: cfg.ConfigOpts,
    *,
    engine: Engine,
    clouds: Mapping[str, Cloud],
    clock: Clock,
    notifier: Notifier | None = None,
    identity: CloudIdentity | None = None,
    people: People | None = None,
) -> ManagerService:
    """Return a manager that is not started yet; ConfigurationError if the configuration is invalid.

    ``clouds`` has the cloud of each region, with an empty name if no regions are configured. ``identity`` is how
    filters of usage enforcement reach Keystone, and ``people`` what it knows of users; None without Keystone.
    """
    regions = config.regions(conf)
    types, kinds = plugins.make_types_for(conf, regions, clouds)
    store = _open_store(conf, engine)
    _check_regions(store, regions)
    return ManagerService(
        store,
        clock,
        settings(conf),
        Plugins(
            types=types,
            kinds=kinds,
            notifier=notifier or _notifier(conf),
            enforcement=enforcement(
                conf, identity or CloudIdentity(region_name=conf.os_region_name, cafile=conf.cafile)
            ),
            regions=regions,
            **_measuring(conf, clouds),
            **_telling(conf, people, clock),
        ),
    )


def _open_store(conf: cfg.ConfigOpts, engine: Engine) -> Store:
    try:
        terms = energy.read_terms(conf[energy.SECTION])
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error
    return Store(
        engine,
        cleaning_time=config.cleaning_time(conf),
        limits=StoreLimits(conf.api.history_entries, conf.api.ended_leases, conf.database.kept_uses),
        energy=terms,
    )


def settings(conf: cfg.ConfigOpts) -> Settings:
    """Return the settings of a manager of the configured region."""
    source = f"/reservation/{conf.os_region_name}" if conf.os_region_name else "/reservation"
    pause = timedelta(seconds=conf.mail.pause)
    try:
        own = check_events(conf.mail.defaults, operator=False)
    except InvalidInput as error:
        raise ConfigurationError(f"[mail] defaults: {error.message}") from error
    return replace(config.manager_settings(conf), event_source=source, mail_pause=pause, own_events=own)


def _check_regions(store: Store, regions: Regions) -> None:
    """Give the default region to what has none. ConfigurationError if there are regions, and none are configured."""
    known = store.regions.list_used()
    if not regions:
        if named := sorted(known - {""}):
            raise ConfigurationError(
                f"resources lie in the regions {', '.join(named)}, and [cloud] regions names none; name these"
            )
        return
    store.regions.adopt_region(regions.default)
    for lost in sorted(known - {"", *regions}):
        LOG.error("Resources lie in the region %s, which [cloud] regions does not name: its leases wait", lost)


def enforcement(conf: cfg.ConfigOpts, identity: CloudIdentity) -> Enforcement:
    """Return the enabled filters; ConfigurationError if a filter is unknown or wrongly configured."""
    try:
        return Enforcement.configured(conf, identity)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def metrics(conf: cfg.ConfigOpts) -> Metrics:
    """Return the source of measurements of servers; ConfigurationError if its options cannot be."""
    try:
        return prometheus.metrics(conf.unused, conf.cafile)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def _measuring(conf: cfg.ConfigOpts, clouds: Mapping[str, Cloud]) -> dict[str, Any]:
    """Return what servers, and the carbon of the site, are measured by, and what switches the power of hosts."""
    powers = {region: cloud.power for region, cloud in clouds.items()}
    return {"metrics": metrics(conf), "carbon": carbon(conf), "meters": meters(conf), "powers": powers}


def _telling(conf: cfg.ConfigOpts, people: People | None, clock: Clock) -> dict[str, Any]:
    """Return what subscribers are told by, and what tells operators that the log cannot be written."""
    by = {"webhooks": webhooks(conf, clock), "mail": mail(conf), "people": people or NoPeople()}
    return {**by, "log_troubles": list_log_troubles()}


def webhooks(conf: cfg.ConfigOpts, clock: Clock | None = None) -> Webhooks:
    """Return the sender of web hooks; ConfigurationError if its options cannot be."""
    try:
        return HttpWebhooks.configured(conf, clock)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def carbon(conf: cfg.ConfigOpts) -> CarbonSource:
    """Return what tells the carbon of the site; ConfigurationError if its options, or its file, cannot be."""
    try:
        return energy.read_carbon(conf[energy.SECTION], conf.cafile)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def meters(conf: cfg.ConfigOpts) -> HostMeters:
    """Return what keeps what hosts drew; ConfigurationError if its options cannot be."""
    try:
        return prometheus_hosts.meters(conf[energy.SECTION], conf.cafile, config.regions(conf))
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def bmcs(conf: cfg.ConfigOpts) -> RedfishPower:
    """Return what asks BMCs; ConfigurationError if its options cannot be."""
    try:
        return RedfishPower.configured(conf)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def mail(conf: cfg.ConfigOpts) -> Mail:
    """Return what gives mail to a server; ConfigurationError if its options cannot be."""
    try:
        return SmtpMail.configured(conf)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def _send_later(send: Send) -> Send:
    """Return what has a notification sent: events and requests do not wait for a bus that does not answer."""
    return SentLater(send, "Notifications about leases").notify


def _notifier(conf: cfg.ConfigOpts) -> Notifier:
    try:
        return MessagingNotifier(conf, conf.notifications.publisher_id, _send_later)
    except (oslo_messaging.MessagingException, ValueError) as error:
        # The message omits the URL, which contains a password.
        raise ConfigurationError(
            f"transport_url of [oslo_messaging_notifications], or else of [DEFAULT], cannot be used: {error}"
        ) from error


def database_engine(conf: cfg.ConfigOpts) -> Engine:
    """Return the engine of the configured database, not connected yet. Raises ConfigurationError and InvalidInput."""
    if not conf.database.connection:
        raise ConfigurationError("[database] connection is not set; give the SQLAlchemy URL of the database")
    return database.make_engine(
        conf.database.connection,
        pool_size=conf.database.max_pool_size,
        recycle=conf.database.connection_recycle_time,
        overflow=conf.database.max_overflow,
        pool_timeout=conf.database.pool_timeout,
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
    enforcement(conf, CloudIdentity(tokens=_Later()))
    config.manager_settings(conf)
    metrics(conf)
    webhooks(conf)
    mail(conf)
    bmcs(conf)
    carbon(conf)
    meters(conf)
