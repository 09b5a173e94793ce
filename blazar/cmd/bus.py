# SPDX-License-Identifier: Apache-2.0
"""Logging in to the message bus, to find out whether its servers let us in."""

from __future__ import annotations

import ssl
from typing import Any

import amqp
from oslo_config import cfg

from blazar.cmd.config import ConfigurationError
from blazar.messaging import explain_refusal, oslo_messaging


def log_in(conf: cfg.ConfigOpts) -> bool:
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
            _log_in_to(host, url.virtual_host, _tls(conf, host.hostname))
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


def _log_in_to(host: Any, virtual_host: str | None, tls: dict[str, Any] | bool) -> None:
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
