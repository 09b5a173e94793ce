# SPDX-License-Identifier: Apache-2.0
"""CADF by keystonemiddleware's audit, as ``[audit]`` says: two messages on the bus for each request that may change.

The journal says what was done; this is for sites whose collector speaks CADF, and also says what was refused. What only
reads goes around it, and so does what has the secret of a feed in its path, which the messages would tell.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg

from blazar.api.http.access import Wsgi, has_secret
from blazar.cmd.sent_later import SentLater
from blazar.messaging import oslo_messaging
from blazar.model.base.errors import InvalidInput

READING = frozenset({"GET", "HEAD", "OPTIONS"})
_BUS = "oslo_messaging_notifications"


class AuditedChanges:
    """Sends requests that may change something through the audit, and all others around it."""

    def __init__(self, app: Wsgi, audit: Wsgi, messages: SentLater) -> None:
        self._app = app
        self._audit = audit
        self.messages = messages

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        quiet = environ.get("REQUEST_METHOD") in READING or has_secret(environ.get("PATH_INFO", ""))
        return (self._app if quiet else self._audit)(environ, start_response)


def put_audit_before(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """Return an application with the audit in front of it, if it is enabled. InvalidInput.

    It belongs between the validation of tokens, which says who asks, and the application.
    """
    if not conf.audit.enabled:
        return app
    # Imported only for those who audit, to save the memory of the library.
    from keystonemiddleware.audit import AuditMiddleware, PycadfAuditApiConfigError

    _limit_tries(conf)
    # It warns of each of its own settings that is no option.
    their_log = logging.getLogger("keystonemiddleware._common.config")
    level = their_log.level
    their_log.setLevel(logging.ERROR)
    try:
        audit = AuditMiddleware(app, oslo_config_config=conf, audit_map_file=conf.audit.map_file)
    except (OSError, PycadfAuditApiConfigError) as error:
        raise InvalidInput(
            f"[audit] map_file {conf.audit.map_file} cannot be read: {error}; copy etc/blazar/api_audit_map.conf there"
        ) from error
    except oslo_messaging.MessagingException as error:
        raise InvalidInput(
            f"[audit_middleware_notifications] cannot be used: {type(error).__name__}; check driver and transport_url"
        ) from error
    finally:
        their_log.setLevel(level)
    # A request would wait for each of its messages, and with a bus that does not answer for as long as that takes.
    audit._notifier = messages = SentLater(audit._notifier.notify, "Messages of the audit", copied=True)
    return AuditedChanges(app, audit, messages)


def _limit_tries(conf: cfg.ConfigOpts) -> None:
    """Have a message be tried twice at most, unless the file says otherwise: by default a dead bus holds all others."""
    from oslo_messaging.opts import list_opts

    for group, options in list_opts():
        if getattr(group, "name", group) == _BUS:
            conf.register_opts(options, group=_BUS)
            conf.set_default("retry", 1, group=_BUS)
