"""A manager that answers over the message bus."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from blazar.clouds.scope import scope
from blazar.manager.messaging import oslo_messaging
from blazar.model.errors import BlazarError
from blazar.rpc import codec
from blazar.rpc.interface import Manager
from blazar.rpc.target import NAMESPACE, VERSION, target

LOG = logging.getLogger(__name__)


class Endpoint:
    """The one method that can be called: it takes the name of a call of the interface, and its arguments as texts."""

    def __init__(self, manager: Manager) -> None:
        self.target = oslo_messaging.Target(namespace=NAMESPACE, version=VERSION)
        self._manager = manager

    @oslo_messaging.expose  # type: ignore[untyped-decorator]
    def ask(self, context: Mapping[str, Any], call: str, arguments: Mapping[str, str]) -> dict[str, str]:
        """Make a call; the answer is a message in any case, an error being one too."""
        request_id = context.get("request_id")
        try:
            values = codec.decode_arguments(call, arguments)
            with scope(request_id=str(request_id) if request_id else None):
                return codec.encode_answer(call, getattr(self._manager, call)(**values))
        except BlazarError as error:
            LOG.debug("Request %s: %s: %s", request_id, type(error).__name__, error.message)
            return codec.encode_error(error)
        except codec.Garbled as error:
            LOG.error("Request %s can not be understood: %s", request_id, error)
            return codec.encode_error(BlazarError("the manager does not understand the API; are they of one version?"))
        except Exception:
            # The border of the process: the API says 500, and what happened is here.
            LOG.exception("Request %s failed unexpectedly", request_id)
            return codec.encode_error(BlazarError("Internal Server Error"))


def server(conf: cfg.ConfigOpts, transport: Any, manager: Manager, *, name: str) -> Any:
    """Return a server on the topic of managers, to be started and stopped."""
    return oslo_messaging.get_rpc_server(
        transport,
        target(conf.manager.rpc_topic, server=name),
        [Endpoint(manager)],
        access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
    )
