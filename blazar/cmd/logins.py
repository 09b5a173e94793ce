# SPDX-License-Identifier: Apache-2.0
"""Logins that are tried, to find out whether servers let us in: those of the message bus, and Keystone.

With the login of ``[keystone_authtoken]`` the API validates the tokens of its users.
"""

from __future__ import annotations

import ssl
from typing import Any

import amqp
from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading
from keystoneauth1.session import Session
from oslo_config import cfg

from blazar.clouds.openstack.options import tls_verification
from blazar.cmd.config import ConfigurationError
from blazar.messaging import explain_refusal, oslo_messaging

GROUP = "keystone_authtoken"

PATIENCE = 3.0
"""Seconds that Keystone has to answer."""


def has_token_login(conf: cfg.ConfigOpts) -> bool:
    """Return whether there is such a login; a machine with managers only needs none."""
    loading.register_auth_conf_options(conf, GROUP)
    return bool(conf[GROUP].auth_type or conf[GROUP].auth_section)


def log_in_to_keystone(conf: cfg.ConfigOpts) -> None:
    """Log in; ConfigurationError if Keystone refuses the user. ClientException if it does not answer."""
    try:
        _make_session(conf).get_token()
    except ksa.Unauthorized as error:
        raise ConfigurationError(
            f"Keystone does not accept the user of [{GROUP}]: wrong user, password, project or domain ({error})"
        ) from error


def find_keystone(conf: cfg.ConfigOpts) -> None:
    """Ask Keystone for its versions, without a login. ClientException if it does not answer."""
    session = _make_session(conf)
    session.get(session.auth.auth_url, authenticated=False)


def _make_session(conf: cfg.ConfigOpts) -> Session:
    """Return a session with the login of that section."""
    # Imported only where tokens are validated: a manager does not, and its library is large.
    from keystonemiddleware import opts

    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group)
    section = conf[GROUP]
    cert = (section.certfile, section.keyfile) if section.certfile and section.keyfile else section.certfile
    login = loading.load_auth_from_conf_options(conf, GROUP)
    return Session(auth=login, verify=tls_verification(conf, GROUP), cert=cert, timeout=PATIENCE)


def log_in_to_bus(conf: cfg.ConfigOpts) -> bool:
    """Log in to each server of ``transport_url``; ConfigurationError says which one refuses it, and why.

    Return False for another bus than RabbitMQ: only its driver knows how to log in, and all that is checked is that
    there is one.
    """
    try:
        url = oslo_messaging.TransportURL.parse(conf)
        # The driver registers its options.
        oslo_messaging.get_rpc_transport(conf).cleanup()
    except oslo_messaging.MessagingException as error:
        raise ConfigurationError(f"[DEFAULT] transport_url cannot be used: {error}") from error
    if url.transport not in ("rabbit", "kombu"):
        return False
    for host in url.hosts or [oslo_messaging.TransportHost("localhost", 5672)]:
        try:
            _log_in_to_server(host, url.virtual_host, _tls(conf, host.hostname))
        except (OSError, amqp.AMQPError) as error:
            text = f"{host.hostname} port {host.port}: {explain_refusal(error)}"
            raise ConfigurationError(text) from error
    return True


def _tls(conf: cfg.ConfigOpts, name: str) -> dict[str, Any] | bool:
    """Return how the driver uses TLS, in the form that the library below it takes."""
    options = conf.oslo_messaging_rabbit
    if not options.ssl:
        return False
    files = {
        "ssl_key_file": ("keyfile", options.ssl_key_file),
        "ssl_cert_file": ("certfile", options.ssl_cert_file),
        "ssl_ca_file": ("ca_certs", options.ssl_ca_file),
    }
    found: dict[str, Any] = {}
    for option, (key, path) in files.items():
        if not path:
            continue
        try:
            open(path, encoding="utf-8").close()
        except OSError as error:
            # The error of OpenSSL does not say which file it is about.
            raise ConfigurationError(
                f"[oslo_messaging_rabbit] {option} {path} cannot be read: {error.strerror}"
            ) from error
        found[key] = path
    if options.ssl_ca_file:
        found |= {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": name}
    return found or True


def _log_in_to_server(host: Any, virtual_host: str | None, tls: dict[str, Any] | bool) -> None:
    connection = amqp.Connection(
        f"{host.hostname}:{host.port or 5672}",
        userid=host.username or "guest",
        password=host.password or "guest",
        virtual_host=virtual_host or "/",
        ssl=tls,
        connect_timeout=5,
        read_timeout=5,
    )
    connection.connect()
    connection.close()
