# SPDX-License-Identifier: Apache-2.0
"""The port of hooks: HTTP calls by which things outside of the cloud are handed over and taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from blazar.model.base.errors import CloudRefused
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass


class HookAction(StrEnum):
    """What a hook is asked to do, as the ``type`` of its message."""

    START = "reservation.start"
    END = "reservation.end"
    BEFORE_END = "reservation.before_end"
    HEALTH = "reservation.health"
    POWER_OFF = "host.power_off"
    POWER_ON = "host.power_on"
    POWER_STATE = "host.power_state"
    POOL_OFF = "volume.power_off"
    POOL_ON = "volume.power_on"
    POOL_STATE = "volume.power_state"


class HookResult(StrEnum):
    """What a hook answers."""

    DONE = "done"
    NOT_YET = "not yet"
    UNUSABLE = "unusable"
    """The thing cannot be used at present, and was not handed over."""
    REFUSED = "refused"
    """A permanent refusal: the same call would be refused again."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call. ``message_id`` is the same at every retry, and so is ``at``, when that happened which it is about.

    ``things`` are the ids of what it is about, from which the secrets are derived that sign it; ``data`` is a JSON
    object of less than 16 kB.
    """

    things: tuple[str, ...]
    url: str
    message_id: str
    action: HookAction
    at: datetime
    data: Json


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer: a sentence for operators, the time after which to ask again, and what the hook wants to be shown."""

    result: HookResult
    reason: str = ""
    after: timedelta = timedelta(0)
    content: Json | None = None


CHANGES = frozenset({"call_hook"})
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Hooks(Protocol):
    """The calls of hooks. CloudUnavailable if there is no answer, or one that may be another later (429, 5xx)."""

    def check_hook(self, url: str) -> None:
        """Raise InvalidInput, with the reason, if hooks at this URL would not be called."""

    def call_hook(self, call: HookCall) -> HookAnswer:
        """Hand over, take back, or announce the end."""

    def ask_hook(self, call: HookCall) -> HookAnswer:
        """Ask for the health of things with one hook; this changes nothing.

        The content of the answer may have ``failures``: sentences by the ids of things that have failed.
        """


class NoHooks:
    """The hooks of a process that calls none."""

    def check_hook(self, url: str) -> None:
        """Raise CloudRefused."""
        raise CloudRefused("this process calls no hooks")

    def call_hook(self, call: HookCall) -> HookAnswer:
        """Raise CloudRefused."""
        raise CloudRefused("this process calls no hooks")

    def ask_hook(self, call: HookCall) -> HookAnswer:
        """Raise CloudRefused."""
        raise CloudRefused("this process calls no hooks")
