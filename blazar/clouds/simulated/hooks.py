# SPDX-License-Identifier: Apache-2.0
"""The simulated hooks: each thing has a receiver that knows which reservations have it."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall, HookResult
from blazar.clouds.simulated.service import SimulatedService
from blazar.clouds.simulated.state import ThingState
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json

REMEMBERED = 100
"""Message ids that a receiver remembers, to do nothing twice."""


class SimulatedHooks(SimulatedService):
    """Implements the port of hooks."""

    def check_hook(self, url: str) -> None:
        """Refuse what is no URL of a hook; every host is allowed."""
        with self._calls.reading("check_hook"):
            if urlsplit(url).scheme not in ("http", "https"):
                raise InvalidInput("hook_url cannot be used: give an https:// URL", at="/hook_url")

    def call_hook(self, call: HookCall) -> HookAnswer:
        """Hand over or take back, in the time of ``Durations.hook``."""
        with self._calls.changing("call_hook") as state:
            (thing_id,) = call.things
            thing = state.things.setdefault(thing_id, ThingState())
            thing.name = _name(call)
            if thing.unusable is not None and call.action is HookAction.START:
                return HookAnswer(HookResult.UNUSABLE, thing.unusable)
            if call.message_id in thing.heard:
                return HookAnswer(HookResult.DONE, content=_handed_over(call))
            now = self._clock.now()
            ready_at = thing.ready_at.setdefault(call.message_id, (now + self._durations.hook).isoformat())
            left = datetime.fromisoformat(ready_at) - now
            if left.total_seconds() > 0 and call.action is not HookAction.BEFORE_END:
                return HookAnswer(HookResult.NOT_YET, "it is being handed over", after=left)
            thing.ready_at.pop(call.message_id)
            thing.heard = [*thing.heard, call.message_id][-REMEMBERED:]
            reservation_id, amount = str(call.data["reservation_id"]), call.data["amount"]
            if call.action is HookAction.START and isinstance(amount, int):
                thing.users[reservation_id] = amount
            if call.action is HookAction.END:
                thing.users.pop(reservation_id, None)
            return HookAnswer(HookResult.DONE, content=_handed_over(call))

    def ask_hook(self, call: HookCall) -> HookAnswer:
        """Return the failures of things."""
        with self._calls.reading("ask_hook") as state:
            known = {id_: state.things[id_] for id_ in call.things if id_ in state.things}
            failures = {id_: thing.failure for id_, thing in known.items() if thing.failure is not None}
            return HookAnswer(HookResult.DONE, content={"failures": failures})


def _handed_over(call: HookCall) -> Json | None:
    return {"address": f"{call.things[0]}.simulated.example"} if call.action is HookAction.START else None


def _name(call: HookCall) -> str:
    about = call.data["resource"]
    return str(about["name"]) if isinstance(about, dict) else ""
