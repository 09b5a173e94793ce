# SPDX-License-Identifier: Apache-2.0
"""What kinds have in common whose things have hooks: the hooks are asked whether these work."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.hooks import HookAnswer, HookResult, Hooks
from blazar.context import current
from blazar.model.base.errors import BlazarError, CloudUnavailable
from blazar.model.resources.resource import Resource, noun
from blazar.resources.contract.kind import CalendarReads, Kind, Polled
from blazar.resources.generic import hook_messages

MOST_ASKED = 40
"""Resources that one question names: each adds a signature to a header."""

LONGEST_FAILURE = 200

ASKERS = 8
"""Threads that ask hooks at the same time."""

ASKING_SECONDS = 30.0
"""How long one poll begins to ask; the hooks that it does not reach come first in the next one."""


class HookedKind(Kind):
    """The common part of such kinds. Their registration calls nobody; a resource without a hook counts as healthy."""

    def __init__(self, hooks: Hooks, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._hooks = hooks
        self._now = now
        self._asked: dict[str, float] = {}
        self._answered: dict[str, str | None] = {}
        self._lock = threading.Lock()

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the kind; its options are those of the hooks."""
        return cls(cloud.hooks)

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return which resources are well, by their hooks: a call for each hook and each ``MOST_ASKED`` resources.

        Hooks that were asked longest ago come first, for as long as there is time; for the others the last answer
        counts. CloudUnavailable if none of several hooks can be reached: that is rather our own network.
        """
        hooked = [resource for resource in registered if hook_messages.url_of(resource)]
        groups = sorted(_group_by_hook(hooked), key=lambda group: self._asked.get(group[0].external_id, 0.0))
        left = current().remaining()
        end = time.monotonic() + min(ASKING_SECONDS, ASKING_SECONDS if left is None else left / 2)
        with ThreadPoolExecutor(min(ASKERS, max(1, len(groups))), thread_name_prefix="hook-health") as pool:
            asked = [pool.submit(copy_context().run, self._ask_hook, group, end) for group in groups]
            reached = [answer.result() for answer in asked]
        if len(hooked) > 1 and not any(was_reached is not False for was_reached in reached):
            raise CloudUnavailable(f"no hook of any {noun(hooked[0].kind)} can be reached")
        if len(registered) > 1:
            known = {resource.external_id for resource in registered}
            self._answered = {id_: answer for id_, answer in self._answered.items() if id_ in known}
            self._asked = {id_: at for id_, at in self._asked.items() if id_ in known}
        healthy = {resource.name: None for resource in registered}
        return Polled(healthy | {r.name: self._answered.get(r.external_id, r.failure) for r in hooked})

    def _ask_hook(self, group: Sequence[Resource], end: float) -> bool | None:
        """Ask one hook, and keep its answer; return whether it could be reached, None if it was not asked."""
        if time.monotonic() >= end:
            return None
        failures: Mapping[str, str | None]
        reached = True
        try:
            failures = _failures_in_answer(
                group, self._hooks.ask_hook(hook_messages.health_question(group, self._now()))
            )
        except CloudUnavailable as error:
            failures, reached = dict.fromkeys((resource.external_id for resource in group), error.message), False
        except BlazarError as error:
            failures = dict.fromkeys((resource.external_id for resource in group), error.message)
        with self._lock:
            self._asked |= dict.fromkeys((resource.external_id for resource in group), time.monotonic())
            self._answered |= failures
        return reached


def _group_by_hook(resources: Collection[Resource]) -> list[Sequence[Resource]]:
    """Return resources by their hooks, so many in each group as one question may name."""
    groups: dict[str, list[Resource]] = defaultdict(list)
    for resource in sorted(resources, key=lambda resource: resource.id):
        groups[hook_messages.url_of(resource)].append(resource)
    return [
        group[first : first + MOST_ASKED] for group in groups.values() for first in range(0, len(group), MOST_ASKED)
    ]


def _failures_in_answer(group: Sequence[Resource], answer: HookAnswer) -> Mapping[str, str | None]:
    """Return why resources have failed, by their ids; None for those that are well."""
    if answer.result in (HookResult.UNUSABLE, HookResult.REFUSED):
        return dict.fromkeys((resource.external_id for resource in group), answer.reason)
    told = (answer.content or {}).get("failures")
    known = told if isinstance(told, dict) else {}
    ids = (resource.external_id for resource in group)
    # Null is how JSON says that there is no failure.
    return {id_: None if known.get(id_) is None else _one_line(known[id_]) for id_ in ids}


def _one_line(text: object) -> str:
    """Return what a hook says of a failure as one short line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line[:LONGEST_FAILURE] or "its hook says that it has failed"
