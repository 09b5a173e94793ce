# SPDX-License-Identifier: Apache-2.0
"""Limits that operators set in Keystone for each project: unified limits, read with oslo.limit.

The library says what the limits are. Whether a lease keeps them is decided by our filters: what counts depends on
dates, and is decided with the booking itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from typing import Any, Protocol

from oslo_config import cfg
from oslo_limit import limit as library
from oslo_limit import opts

from blazar.context import current
from blazar.model.errors import EnforcementUnavailable, InvalidInput

LOG = logging.getLogger(__name__)

PREFIX = "blazar:"
"""With which the names of our registered limits begin."""

GROUP = "oslo_limit"
LOGIN = ("auth_type", "auth_section")
ENDPOINT = ("endpoint_id", "endpoint_service_type", "endpoint_service_name")
"""Options of which one must be set."""

CONFIGURATION, UNIFIED = "configuration", "unified_limits"
THREADS = 4
"""Questions to Keystone at a time: those that it does not answer keep others waiting, and no more than that."""

MOST_PROJECTS = 10_000
"""Projects whose limits are remembered."""


class Reader(Protocol):
    """What we need of ``oslo_limit.limit.Enforcer``."""

    def get_registered_limits(self, resources_to_check: Any) -> list[tuple[str, int]]:
        """Return all registered limits, by name with their defaults, if asked for None."""

    def get_project_limits(self, project_id: str, resources_to_check: Any) -> list[tuple[str, int]]:
        """Return all limits of a project's own, if asked for None."""


def options() -> list[cfg.Opt]:
    """Return the options of where limits come from."""
    return [
        cfg.StrOpt(
            "limits_source",
            default=CONFIGURATION,
            choices=[
                (CONFIGURATION, "the options below, alike for all projects"),
                (UNIFIED, "Keystone, by project; [oslo_limit] says how it is asked"),
            ],
            help="Where the limits of MaxConcurrentLeasesFilter, MaxUnitsFilter and ResourceHoursFilter come from.",
        ),
        cfg.FloatOpt(
            "unified_limits_timeout",
            default=5.0,
            min=0.1,
            max=300.0,
            help="Seconds that Keystone has to say the limits of a project; part of request_limit.",
        ),
        cfg.IntOpt(
            "unified_limits_cache",
            default=30,
            min=0,
            help="Seconds for which the limits of a project are remembered; 0 for not at all.",
        ),
    ]


class UnifiedLimits:
    """The limits of projects, each remembered for a while. Any number of threads may ask."""

    def __init__(
        self,
        connect: Callable[[], Reader],
        *,
        timeout: float = 5.0,
        keep: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._timeout = timeout
        self._keep = keep
        self._clock = clock
        self._reader: Reader | None = None
        self._known: dict[str, tuple[float, Mapping[str, int]]] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="limits")

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, *, keystone: bool) -> UnifiedLimits | None:
        """Return what the configuration says, None if limits do not come from Keystone; InvalidInput.

        The library itself reads ``cfg.CONF``; another one, as of a tool, is only looked through.
        """
        section = conf.enforcement
        if section.limits_source != UNIFIED:
            return None
        if not keystone:
            raise InvalidInput(
                f"[enforcement] limits_source is {UNIFIED}, and there is no Keystone in this mode; set {CONFIGURATION}"
            )
        if conf is not cfg.CONF:
            conf.register_opts([cfg.StrOpt(name) for name in LOGIN + ENDPOINT], group=GROUP)
        ours = conf[GROUP]
        if not any(ours[name] for name in LOGIN):
            raise InvalidInput(
                f"[enforcement] limits_source is {UNIFIED}, and [{GROUP}] does not say how to log in to Keystone; set "
                "auth_type, auth_url, username, …, or auth_section = keystone_authtoken"
            )
        if not any(ours[name] for name in ENDPOINT):
            raise InvalidInput(
                f"[enforcement] limits_source is {UNIFIED}, and [{GROUP}] does not say whose limits; set endpoint_id "
                "(as openstack endpoint list --service reservation shows it), or endpoint_service_type = reservation"
            )
        timeout = section.unified_limits_timeout
        return cls(lambda: _log_in(timeout), timeout=timeout, keep=section.unified_limits_cache)

    def of(self, project_id: str) -> Mapping[str, int]:
        """Return the limits of a project by name, -1 for any number. EnforcementUnavailable."""
        now = self._clock()
        kept = self._known.get(project_id)
        if kept is not None and now - kept[0] < self._keep:
            return kept[1]
        left = current().remaining()
        seconds = self._timeout if left is None else min(self._timeout, left)
        try:
            found = self._threads.submit(self._read, project_id).result(seconds)
        except TooSlow as error:
            raise self._unavailable(project_id, f"it did not answer within {seconds:.1f} s") from error
        except Exception as error:
            # The border to a library, which lets through what those below it raise.
            raise self._unavailable(project_id, f"{type(error).__name__}: {error}") from error
        with self._lock:
            if len(self._known) >= MOST_PROJECTS:
                self._known.clear()
            self._known[project_id] = now, found
        return found

    def _read(self, project_id: str) -> Mapping[str, int]:
        reader = self._reader or self._connect()
        found = {**dict(reader.get_registered_limits(None)), **dict(reader.get_project_limits(project_id, None))}
        # Only a reader that has worked is kept: what was wrong with the other may be mended by now.
        self._reader = reader
        return {name: number for name, number in found.items() if name.startswith(PREFIX)}

    def _unavailable(self, project_id: str, reason: str) -> EnforcementUnavailable:
        LOG.error("Keystone does not say the limits of project %s: %s", project_id, reason)
        return EnforcementUnavailable(
            "Keystone, which has the limits of the project, can not be asked at the moment; please try again later"
        )


def _log_in(timeout: float) -> Reader:
    """Return a reader; it finds Keystone by ``[oslo_limit]``, as the library will have it."""
    # Once more, now that the file is read: auth_section may name a group of which nothing is registered yet.
    opts.register_opts(cfg.CONF)
    # Without a limit of its own the library would wait for ever, and keep a thread of ours.
    cfg.CONF.set_default("timeout", timeout, group=GROUP)
    reader: Reader = library.Enforcer(_usage, cache=False)
    return reader


def _usage(project_id: str | None, names: Any) -> dict[str, int]:
    # The library asks for it before it enforces a limit, which we never let it do.
    raise NotImplementedError("limits are held by the filters")
