# SPDX-License-Identifier: Apache-2.0
"""Limits that operators set in Keystone for each project: unified limits, read with oslo.limit.

The library only provides the limits. Our filters decide whether a lease is within them: what counts depends on dates,
and is decided with the booking itself.
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
from oslo_limit import opts

from blazar.context import current
from blazar.model.base.errors import EnforcementUnavailable, InvalidInput

LOG = logging.getLogger(__name__)

PREFIX = "blazar:"
"""The prefix of the names of our registered limits."""

GROUP = "oslo_limit"
LOGIN = ("auth_type", "auth_section")
ENDPOINT = ("endpoint_id", "endpoint_service_type", "endpoint_service_name")
"""Options of which at least one must be set."""

CONFIGURATION, UNIFIED = "configuration", "unified_limits"
THREADS = 4
"""Concurrent calls to Keystone: if Keystone does not answer, only these threads block."""

MOST_PROJECTS = 10_000
"""Maximum number of projects whose limits are cached."""

# Before the file is read, as importing the library itself would, which happens later: see _log_in.
opts.register_opts(cfg.CONF)


class LimitReader(Protocol):
    """The part of ``oslo_limit.limit.Enforcer`` that we use."""

    def get_registered_limits(self, resources_to_check: Any) -> list[tuple[str, int]]:
        """Return all registered limits, by name with their defaults, if called with None."""

    def get_project_limits(self, project_id: str, resources_to_check: Any) -> list[tuple[str, int]]:
        """Return all limits of a project's own, if called with None."""


def options() -> list[cfg.Opt]:
    """Return the options for the source of limits."""
    return [
        cfg.StrOpt(
            "limits_source",
            default=CONFIGURATION,
            choices=[
                (CONFIGURATION, "the options below, the same for all projects"),
                (UNIFIED, "Keystone, by project; [oslo_limit] configures the access"),
            ],
            help="Where the limits of MaxConcurrentLeasesFilter, MaxUnitsFilter, ResourceHoursFilter "
            "and SpendFilter come from.",
        ),
        cfg.FloatOpt(
            "unified_limits_timeout",
            default=5.0,
            min=0.1,
            max=300.0,
            help="Seconds within which Keystone must return the limits of a project; part of request_limit.",
        ),
        cfg.IntOpt(
            "unified_limits_cache",
            default=30,
            min=0,
            help="Seconds for which the limits of a project are cached; 0 disables the cache.",
        ),
    ]


class UnifiedLimits:
    """The limits of projects, each cached for a while. Thread-safe."""

    def __init__(
        self,
        connect: Callable[[], LimitReader],
        *,
        timeout: float = 5.0,
        keep: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._timeout = timeout
        self._keep = keep
        self._clock = clock
        self._reader: LimitReader | None = None
        self._known: dict[str, tuple[float, Mapping[str, int]]] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="limits")

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, *, keystone: bool) -> UnifiedLimits | None:
        """Return the limits as configured, None if they do not come from Keystone; InvalidInput.

        The library itself reads ``cfg.CONF``; another configuration, such as that of a tool, is only checked.
        """
        section = conf.enforcement
        if section.limits_source != UNIFIED:
            return None
        if not keystone:
            raise InvalidInput(
                f"[enforcement] limits_source is {UNIFIED}, but this mode has no Keystone; set {CONFIGURATION}"
            )
        if conf is not cfg.CONF:
            conf.register_opts([cfg.StrOpt(name) for name in LOGIN + ENDPOINT], group=GROUP)
        ours = conf[GROUP]
        if not any(ours[name] for name in LOGIN):
            raise InvalidInput(
                f"[enforcement] limits_source is {UNIFIED}, but [{GROUP}] has no credentials for Keystone; set "
                "auth_type, auth_url, username, …, or auth_section = keystone_authtoken"
            )
        if not any(ours[name] for name in ENDPOINT):
            raise InvalidInput(
                f"[enforcement] limits_source is {UNIFIED}, but [{GROUP}] names no endpoint; set endpoint_id "
                "(as openstack endpoint list --service reservation shows it), or endpoint_service_type = reservation"
            )
        timeout = section.unified_limits_timeout
        return cls(lambda: _log_in(timeout), timeout=timeout, keep=section.unified_limits_cache)

    def limits_of(self, project_id: str) -> Mapping[str, int]:
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
            # The library passes on exceptions of the libraries below it.
            raise self._unavailable(project_id, f"{type(error).__name__}: {error}") from error
        with self._lock:
            if len(self._known) >= MOST_PROJECTS:
                self._known.clear()
            self._known[project_id] = now, found
        return found

    def _read(self, project_id: str) -> Mapping[str, int]:
        reader = self._reader or self._connect()
        found = {**dict(reader.get_registered_limits(None)), **dict(reader.get_project_limits(project_id, None))}
        # Only a reader that has worked is kept: the configuration may have been corrected since.
        self._reader = reader
        return {name: number for name, number in found.items() if name.startswith(PREFIX)}

    def _unavailable(self, project_id: str, reason: str) -> EnforcementUnavailable:
        LOG.error("Keystone did not return the limits of project %s: %s", project_id, reason)
        return EnforcementUnavailable(
            "Keystone, which has the limits of the project, is not available; please try again later"
        )


def _log_in(timeout: float) -> LimitReader:
    """Return a reader; the library finds Keystone by ``[oslo_limit]``."""
    # It imports all of openstacksdk, which most processes can do without.
    from oslo_limit import limit as library

    # Registered a second time, now that the file is read: auth_section may name a group with no registered options yet.
    opts.register_opts(cfg.CONF)
    # Without a time limit of its own the library would wait for ever, and keep a thread of ours.
    cfg.CONF.set_default("timeout", timeout, group=GROUP)
    if not cfg.CONF[GROUP].cafile and cfg.CONF.cafile:
        cfg.CONF.set_override("cafile", cfg.CONF.cafile, group=GROUP)
    reader: LimitReader = library.Enforcer(_usage, cache=False)
    return reader


def _usage(project_id: str | None, names: Any) -> dict[str, int]:
    # The library needs it to enforce a limit, which it never does for us.
    raise NotImplementedError("the filters enforce the limits")
