# SPDX-License-Identifier: Apache-2.0
"""blazar-api: the REST API as a separate process, for sites without a WSGI server."""

from __future__ import annotations

import ipaddress
import logging
import signal
import sys
import threading
from functools import partial

from keystoneauth1 import exceptions as ksa
from oslo_config import cfg

from blazar.api.app import create_app
from blazar.api.http.access import AccessLog, Wsgi
from blazar.api.http.identity import KeystoneIdentity
from blazar.api.http.middleware import ExchangeLog, behind_keystone
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.leases.services import most_of
from blazar.api.parts import all_parts
from blazar.cmd import audit, config, health, logins, logs, monitoring, pages, process, tracing, web
from blazar.cmd.config import ConfigurationError
from blazar.cmd.lease_options import read_defaults
from blazar.messaging import transport
from blazar.model.base.errors import BlazarError
from blazar.observe.readiness import Liveness, Readiness
from blazar.rpc.client import RemoteManager

LOG = logging.getLogger("blazar.api")

PATIENCE = 3.0
"""Seconds that a starting API waits for the check of the database."""


def main() -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    try:
        conf = configure(sys.argv[1:])
        _serve(conf)
    except (BlazarError, cfg.Error, OSError) as error:
        print(f"blazar-api: {error}", file=sys.stderr)
        return 1
    return 0


def configure(arguments: list[str], *, files: list[str] | None = None) -> cfg.ConfigOpts:
    """Read the configuration and set up logging."""
    conf = config.load(arguments, program="blazar-api", files=files, conf=cfg.CONF)
    logs.start(conf)
    for leftover in config.leftovers(conf):
        LOG.warning("Option %s is set in the configuration and not used", leftover)
    return conf


def build(conf: cfg.ConfigOpts, manager: RemoteManager | None = None, readiness: Readiness | None = None) -> Wsgi:
    """Return the application with its middleware; ConfigurationError if the configuration is invalid.

    Without a ``manager`` it connects to the message bus with the first request: a WSGI server may fork before that. Nor
    does it look at what it needs before somebody asks whether it is well.
    """
    _check_versions(conf)
    _refuse_foreign_database(conf)
    manager = manager or RemoteManager(conf, transport(conf))
    checks = readiness or health.make_api_readiness(conf, manager)
    app = create_app(
        manager,
        identity=KeystoneIdentity(),
        policy=Policy(conf, parts=all_parts()),
        auth_uri=None,
        served=Served(all_parts(), enable_v1=conf.enable_v1_api, v2_controllers=conf.api.api_v2_controllers),
        searches=conf.availability.max_searches,
        defaults=read_defaults(conf),
        bounds=config.api_bounds(conf),
        waiting=most_of(conf.api.threads),
        final_refusals=conf.api.final_refusals,
    )
    try:
        add_pages, balancer = partial(pages.before_keystone, conf=conf), checks.answer_balancer
        inside = audit.put_audit_before(app, conf)
        served = behind_keystone(inside, conf, add_pages, cafile=conf.cafile, explain_refusal=balancer)
    except ksa.AuthPluginException as error:
        raise ConfigurationError(f"[keystone_authtoken] has no valid credentials for Keystone: {error}") from error
    # The middleware has registered its options by now.
    section = conf.keystone_authtoken
    if not section.auth_type and not section.auth_section:
        raise ConfigurationError(
            "[keystone_authtoken] has no credentials for Keystone; set auth_type, auth_url, username, … "
            "(without them no token can be validated)"
        )
    _check_login(conf)
    process.settle()
    return AccessLog(ExchangeLog(served) if conf.log_exchange else served)


def _check_versions(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if no version of the API would be served."""
    if not conf.enable_v1_api and not conf.api.api_v2_controllers:
        raise ConfigurationError(
            "[DEFAULT] enable_v1_api is false and [api] api_v2_controllers is empty, so no API would be served; "
            "set one of them"
        )


def _check_login(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if Keystone does not let the user in who validates tokens.

    While Keystone does not answer, the API serves all the same, and refuses requests with 503.
    """
    try:
        logins.log_in_to_keystone(conf)
    except ksa.ClientException as error:
        LOG.warning("Keystone cannot be reached yet to validate tokens; requests are refused until it can: %s", error)


def _refuse_foreign_database(conf: cfg.ConfigOpts) -> None:
    """Raise ForeignTables if the configured database is that of the existing Blazar.

    The API itself needs no database, so an unreachable database does not prevent its start.
    """
    if not conf.database.connection:
        return
    # Imported only if a database is configured, to save the memory of the library.
    from blazar.store.sql.revisions import ForeignTables, find_foreign_tables

    found: list[ForeignTables] = []

    def look() -> None:
        if (error := find_foreign_tables(conf.database.connection)) is not None:
            found.append(error)

    looking = threading.Thread(target=look, name="database", daemon=True)
    looking.start()
    looking.join(PATIENCE)
    if found:
        raise found[0]


def _serve(conf: cfg.ConfigOpts) -> None:
    manager = RemoteManager(conf, transport(conf))
    readiness = health.make_api_readiness(conf, manager)
    app = build(conf, manager, readiness)
    host = conf.host
    try:
        server = web.server(
            app,
            host=f"[{host}]" if _is_ipv6(host) else host,
            port=conf.port,
            threads=conf.api.threads,
            connections=conf.api.connections,
            trusts_proxy=bool(conf.oslo_middleware.enable_proxy_headers_parsing),
        )
    except OSError as error:
        raise ConfigurationError(
            f"[DEFAULT] host {host} and port {conf.port} cannot be listened on: {error.strerror or error}"
        ) from error

    serving = web.Serving(server)
    stop_tracing = tracing.start(conf, "blazar-api")
    liveness = Liveness({"the loop that accepts": serving.seconds_in_turn})
    port = monitoring.open_port(conf, monitoring.list_pages() | health.list_pages(liveness, readiness))
    try:
        serving.stop_on_signals(partial(_drain, conf, readiness), conf.api.drain_seconds)
        signal.signal(signal.SIGHUP, lambda *_: config.read_again(conf))
        manager.connect()
        readiness.start()
        LOG.info("blazar-api is listening on %s port %d", host, conf.port)
        process.say_ready(f"listening on {host} port {conf.port}")
        process.feed_watchdog(liveness.list_stuck, threading.Event())
        serving.run(_say_stopping)
    except KeyboardInterrupt:
        LOG.info("blazar-api stops at once, as it is asked again")
    finally:
        server.close()
        stop_tracing()
        port.stop()


def _drain(conf: cfg.ConfigOpts, readiness: Readiness) -> None:
    """Tell load balancers to send nothing more, and others that this is so."""
    readiness.begin_drain()
    if conf.api.drain_seconds:
        process.say_status(f"draining for {conf.api.drain_seconds} s")


def _say_stopping() -> None:
    LOG.info("blazar-api is stopping")
    process.say_stopping()


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
