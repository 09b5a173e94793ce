# SPDX-License-Identifier: Apache-2.0
"""Server of a manager on the message bus."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from oslo_config import cfg

from blazar.context import CallerIds, Pool, effects, limit_wait, scope
from blazar.messaging import NAMESPACE, VERSION, oslo_messaging, target
from blazar.model.base.clock import Clock, SystemClock
from blazar.model.base.errors import BlazarError, OtherVersion
from blazar.model.leases.details import LeaseOwner
from blazar.model.leases.requests import Actor
from blazar.observe import metrics
from blazar.observe.spans import PARENT, Side, span
from blazar.rpc import codec
from blazar.rpc.interface import Manager

LOG = logging.getLogger(__name__)

_UNKNOWN_CALL = (
    "blazar-manager is of another version than blazar-api and does not know this request, as during an upgrade; "
    "nothing was done, please try again when all managers are upgraded"
)
_MALFORMED_MESSAGE = (
    "blazar-manager does not understand blazar-api; are they of one version? Nothing was done, please try again when "
    "all of them are upgraded"
)

PREFETCH = 4
"""Messages that the bus sends to a manager before it has taken earlier ones; few, as others may be idle."""


class Endpoint:
    """The one method that can be called remotely: it takes the name of a call, and its arguments as strings.

    The context of a call may have a ``deadline``, at which the caller stops waiting, and ``after``, the key of the last
    item of a list that the caller has already (``skip``, from an API of an earlier version: how many it has). Every
    answer has the manager's time (``now``), in which deadlines are given.
    """

    def __init__(self, manager: Manager, clock: Clock | None = None, pool: Pool | None = None) -> None:
        self.target = oslo_messaging.Target(namespace=NAMESPACE, version=VERSION)
        self._manager = manager
        self._clock = clock or SystemClock()
        self._pool = pool

    @oslo_messaging.expose  # type: ignore[untyped-decorator]
    def ask(self, context: Mapping[str, Any], call: str, arguments: Mapping[str, str]) -> dict[str, str]:
        """Make a call; return its answer, or its error, as a message."""
        begin = time.perf_counter()
        message = self._answer(context, call, arguments)
        metrics.RPC_REQUESTS.add(str(call), codec.read_outcome(message))
        metrics.RPC_REQUEST_DURATION.note(time.perf_counter() - begin)
        message["now"] = repr(self._clock.now().timestamp())
        return message

    def _answer(self, context: Mapping[str, Any], call: str, arguments: Mapping[str, str]) -> dict[str, str]:
        request_id = context.get("request_id")
        try:
            values = codec.decode_arguments(call, arguments)
            after, skip = context.get("after"), _whole_number_or_zero(context.get("skip"))
            with (
                effects(),
                scope(
                    request_id=str(request_id) if request_id else None,
                    local_id=_text(context.get("local_id")),
                    caller=_caller(context.get("caller")),
                    pool=self._pool,
                    actor=_actor(context.get("actor")),
                    owners=_owners(context.get("owners")),
                ),
                limit_wait(_instant(context.get("deadline")), self._clock),
                span(f"serve {call}", side=Side.SERVER, parent=_text(context.get(PARENT))),
            ):
                noun, name = call.split(".")
                answer = getattr(getattr(self._manager, noun), name)(**values)
                return codec.encode_answer(call, answer, after=after if isinstance(after, str) else None, skip=skip)
        except BlazarError as error:
            LOG.debug("Request %s: %s: %s", request_id, type(error).__name__, error.message)
            return codec.encode_error(error)
        except codec.UnknownCall as error:
            LOG.error("Request %s is not known to this version of the manager: %s", request_id, error)
            return codec.encode_error(OtherVersion(_UNKNOWN_CALL))
        except codec.MalformedMessage as error:
            LOG.error("Request %s cannot be decoded: %s", request_id, error)
            return codec.encode_error(OtherVersion(_MALFORMED_MESSAGE))
        except Exception:
            # The edge of the process: the API answers 500, and this log has the traceback.
            LOG.exception("Request %s failed unexpectedly", request_id)
            return codec.encode_error(BlazarError("Internal Server Error"))


class _BoundedServer(oslo_messaging.rpc.server.RPCServer):  # type: ignore[misc]  # a library without types
    """Takes at most one request more than it has threads.

    The library itself takes all requests and queues them in this process, while other managers are idle.
    """

    def __init__(self, threads: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = threading.Semaphore(threads)

    def _on_incoming(self, incoming: Any) -> None:
        self._free.acquire()
        super()._on_incoming(incoming)

    def _process_incoming(self, incoming: Any) -> None:
        try:
            super()._process_incoming(incoming)
        finally:
            self._free.release()


def server(
    conf: cfg.ConfigOpts,
    transport: Any,
    manager: Manager,
    *,
    name: str,
    clock: Clock | None = None,
    pool: Pool | None = None,
) -> Any:
    """Return a server on the topic of managers, to be started and stopped.

    ``clock`` is the one of all managers, ``pool`` that of the configuration.
    """
    with contextlib.suppress(cfg.NoSuchOptError, cfg.NoSuchGroupError):
        # By default the library takes all messages, and other managers get none of them.
        conf.set_default("rabbit_qos_prefetch_count", PREFETCH, group="oslo_messaging_rabbit")
    return oslo_messaging.get_rpc_server(
        transport,
        target(conf.manager.rpc_topic, server=name),
        [Endpoint(manager, clock, pool or pool_of(conf))],
        access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
        server_cls=partial(_BoundedServer, conf.manager.rpc_threads),
    )


def pool_of(conf: cfg.ConfigOpts) -> Pool:
    """Return the threads that take requests.

    A blazar-api may have fewer, each of which waits for one here: of those, too, only a part may wait in one region.
    """
    return Pool("requests", min(conf.manager.rpc_threads, conf.api.threads), regions=max(1, len(conf.cloud.regions)))


def _instant(text: object) -> datetime | None:
    """Return the instant in a context; None if it is missing or malformed."""
    try:
        return datetime.fromtimestamp(float(str(text)), UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _actor(value: object) -> Actor | None:
    """Return who asks, as a context has it; None if it is missing, as from an API of an earlier version."""
    if not isinstance(value, Mapping):
        return None
    user_id, project_id = value.get("user_id"), value.get("project_id")
    if not isinstance(user_id, str) or not isinstance(project_id, str):
        return None
    return Actor(user_id, project_id, value.get("operator") is True)


def _caller(value: object) -> CallerIds | None:
    """Return who sent the request, as a context has it; None if it is missing, as from an API of an earlier version."""
    match value:
        case [str(user_id), str(project_id)]:
            return CallerIds(user_id, project_id)
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _owners(value: object) -> tuple[LeaseOwner, ...]:
    """Return whose the leases were that the caller may act on, as a context has it; none from an earlier version."""
    if not isinstance(value, Sequence):
        return ()
    return tuple(LeaseOwner(str(id_), str(project), str(user), deleted=False) for id_, project, user in value)


def _whole_number_or_zero(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else 0
