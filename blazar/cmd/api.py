# SPDX-License-Identifier: Apache-2.0
"""blazar-api: the REST API as a separate process, for sites without a WSGI server."""

from __future__ import annotations

import ipaddress
import logging
import signal
import sys
import threading
from types import FrameType

from keystoneauth1 import exceptions as ksa
from oslo_config import cfg

from blazar.api.access import AccessLog
from blazar.api.app import create_app
from blazar.api.identity import KeystoneIdentity
from blazar.api.middleware import ExchangeLog, Wsgi, behind_keystone
from blazar.api.parts import installed
from blazar.api.policy import Policy
from blazar.api.served import Served
from blazar.api.waiters import most_of
from blazar.cmd import config, logs, pages, process, web
from blazar.cmd.config import ConfigurationError
from blazar.messaging import transport
from blazar.model.errors import BlazarError
from blazar.model.lease import LeaseKind
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


def build(conf: cfg.ConfigOpts) -> Wsgi:
    """Return the application with its middleware; ConfigurationError if the configuration is invalid."""
    if not conf.enable_v1_api and not conf.api.api_v2_controllers:
        raise ConfigurationError(
            "[DEFAULT] enable_v1_api is false and [api] api_v2_controllers is empty, so no API would be served; "
            "set one of them"
        )
    _refuse_foreign_database(conf)
    manager = RemoteManager(conf, transport(conf))
    app = create_app(
        manager,
        identity=KeystoneIdentity(),
        policy=Policy(conf),
        auth_uri=None,
        served=Served(installed(), enable_v1=conf.enable_v1_api, v2_controllers=conf.api.api_v2_controllers),
        searches=conf.availability.max_searches,
        default_kind=LeaseKind(conf.api.default_kind),
        bounds=config.api_bounds(conf),
        waiting=most_of(conf.api.threads),
    )
    try:
        served = behind_keystone(app, conf, lambda guarded: pages.before_keystone(guarded, conf))
    except ksa.AuthPluginException as error:
        raise ConfigurationError(f"[keystone_authtoken] has no valid credentials for Keystone: {error}") from error
    # The middleware has registered its options by now.
    section = conf.keystone_authtoken
    if not section.auth_type and not section.auth_section:
        raise ConfigurationError(
            "[keystone_authtoken] has no credentials for Keystone; set auth_type, auth_url, username, … "
            "(without them no token can be validated)"
        )
    process.settle()
    return AccessLog(ExchangeLog(served) if conf.log_exchange else served)


def _refuse_foreign_database(conf: cfg.ConfigOpts) -> None:
    """Raise ForeignTables if the configured database is that of the existing Blazar.

    The API itself needs no database, so an unreachable database does not prevent its start.
    """
    if not conf.database.connection:
        return
    # Imported only if a database is configured, to save the memory of the library.
    from blazar.store.foreign import ForeignTables, foreign

    found: list[ForeignTables] = []

    def look() -> None:
        if (error := foreign(conf.database.connection)) is not None:
            found.append(error)

    looking = threading.Thread(target=look, name="database", daemon=True)
    looking.start()
    looking.join(PATIENCE)
    if found:
        raise found[0]


def _serve(conf: cfg.ConfigOpts) -> None:
    app = build(conf)
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

    def stop(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGHUP, lambda *_: config.read_again(conf))
        LOG.info("blazar-api is listening on %s port %d", host, conf.port)
        server.run()
    except KeyboardInterrupt:
        LOG.info("blazar-api is stopping")
    finally:
        server.close()


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
