# SPDX-License-Identifier: Apache-2.0
"""The message bus: oslo.messaging on native threads, its transport, and the address of managers.

The library takes eventlet along unless it is told otherwise before its import; libraries below it import eventlet
wherever it is installed (and it is, as a dependency of theirs), which puts hooks of its own into the process. Here it
counts as not installed.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import amqp
from oslo_config import cfg

from blazar.model.base.errors import InvalidInput

sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
with warnings.catch_warnings():
    # The libraries warn their developers about their own deprecated parts: nothing that our users could act on.
    warnings.simplefilter("ignore")
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
    import oslo_messaging

__all__ = ["NAMESPACE", "VERSION", "explain_refusal", "oslo_messaging", "target", "transport"]

NAMESPACE = "blazar.manager"
VERSION = "2.0"
"""Version 1 is the interface of the existing Blazar, whose calls are names of attributes; they are incompatible."""


def target(topic: str, *, server: str | None = None) -> Any:
    """Return the target of all managers that share a topic, or of one of them."""
    return oslo_messaging.Target(topic=topic, server=server, namespace=NAMESPACE, version=VERSION)


def transport(conf: cfg.ConfigOpts) -> Any:
    """Return the transport of ``transport_url``; InvalidInput if that is malformed."""
    with warnings.catch_warnings():
        # The library warns its own developers.
        warnings.simplefilter("ignore")
        try:
            return oslo_messaging.get_rpc_transport(conf, allowed_remote_exmods=[])
        except (oslo_messaging.MessagingException, cfg.Error, ValueError) as error:
            # The message leaves out the URL, which has a password.
            raise InvalidInput(
                f"[DEFAULT] transport_url cannot be used: {error}; write rabbit://USER:PASSWORD@HOST:5672/"
            ) from error


def explain_refusal(error: BaseException) -> str:
    """Return what RabbitMQ refuses, with what would help as far as that is known."""
    text = " ".join(str(error).split())
    cause: BaseException | None = error
    while cause is not None:
        for kind, advice in _ADVICE:
            if isinstance(cause, kind):
                return f"{text.rstrip('.')}; {advice}"
        cause = cause.__cause__ or cause.__context__
    return text


_LOGIN = "check user, password and virtual host in [DEFAULT] transport_url, and the permissions of the user"
_ADVICE: tuple[tuple[type[BaseException], str], ...] = (
    (amqp.AccessRefused, _LOGIN),
    (amqp.NotAllowed, _LOGIN),
    (
        amqp.PreconditionFailed,
        "it exists with other properties: set amqp_durable_queues and rabbit_quorum_queue in [oslo_messaging_rabbit] "
        "as for the services that share the virtual host, or stop them and delete it",
    ),
)
