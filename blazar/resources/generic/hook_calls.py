# SPDX-License-Identifier: Apache-2.0
"""Calls the hooks of several resources side by side, so that slow ones do not add up.

A call takes up to ten seconds by default: one after the other, a lease of ten instruments would start more than a
minute late. What the hooks answer is kept in the order of the resources, whichever answers first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta

from blazar.clouds.ports.hooks import HookAnswer, HookCall, HookResult, Hooks
from blazar.model.base.errors import BlazarError, ClaimLost, CloudRefused, CloudUnavailable
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import NotYet
from blazar.resources.generic import hook_messages

CALLERS = 8
"""Threads that call the hooks of one reservation at the same time."""


@dataclass(slots=True)
class HookTally:
    """What the hooks of several resources answered, by the resource."""

    done: list[tuple[Resource, HookAnswer]] = field(default_factory=list)
    waiting: list[tuple[Resource, HookAnswer]] = field(default_factory=list)
    unusable: dict[int, str] = field(default_factory=dict)
    failures: list[BlazarError] = field(default_factory=list)

    def raise_failure(self) -> None:
        """Raise what went wrong, a refusal first: a retry does not help there."""
        for failure in sorted(self.failures, key=lambda error: isinstance(error, CloudUnavailable)):
            text = "; ".join(failure.message for failure in self.failures)
            raise type(failure)(text).because(failure.cause) from failure

    @property
    def not_yet(self) -> NotYet | None:
        """Return when to ask again; None if nothing is waited for."""
        if not self.waiting:
            return None
        after = min((answer.after for _, answer in self.waiting), default=timedelta(0))
        return NotYet(after, "; ".join(f"{resource.name}: {answer.reason}" for resource, answer in self.waiting))


def call_hooks(hooks: Hooks, resources: Sequence[Resource], message: Callable[[Resource], HookCall]) -> HookTally:
    """Call the hook of each resource, whatever the others answer; return what they answered. ClaimLost.

    At most ``CALLERS`` at a time. An error that is no ``BlazarError`` is raised when the calls that have begun are
    over; no other begins.
    """
    tally = HookTally()
    for resource, answer in zip(resources, _ask_hooks(hooks, resources, message), strict=True):
        if isinstance(answer, BlazarError):
            tally.failures.append(type(answer)(f"{resource.name}: {answer.message}").because(answer.cause))
            continue
        match answer.result:
            case HookResult.DONE:
                tally.done.append((resource, answer))
            case HookResult.NOT_YET:
                tally.waiting.append((resource, answer))
            case HookResult.UNUSABLE:
                tally.unusable[resource.id] = f"{resource.name}: {answer.reason}"
            case HookResult.REFUSED:
                tally.failures.append(CloudRefused(f"{resource.name}: {answer.reason}"))
    return tally


def _ask_hooks(
    hooks: Hooks, resources: Sequence[Resource], message: Callable[[Resource], HookCall]
) -> Sequence[HookAnswer | BlazarError]:
    if len(resources) < 2:
        return [_ask_hook(hooks, resource, message) for resource in resources]
    over: list[BaseException] = []

    def ask(resource: Resource) -> HookAnswer | BlazarError:
        if over:
            raise over[0]
        try:
            return _ask_hook(hooks, resource, message)
        except BaseException as error:
            # Told before this thread takes the next resource: the one that waits for the answers may be later.
            over.append(error)
            raise

    with ThreadPoolExecutor(min(CALLERS, len(resources)), thread_name_prefix="hook-call") as pool:
        # Each thread has the fence, the deadline and the request id of this one.
        asked = [pool.submit(copy_context().run, ask, resource) for resource in resources]
        return [answer.result() for answer in asked]


def _ask_hook(hooks: Hooks, resource: Resource, message: Callable[[Resource], HookCall]) -> HookAnswer | BlazarError:
    """Return what the hook of one resource answers; a resource without a hook is ready."""
    if not hook_messages.url_of(resource):
        return HookAnswer(HookResult.DONE)
    try:
        return hooks.call_hook(message(resource))
    except ClaimLost:
        raise
    except BlazarError as error:
        return error
