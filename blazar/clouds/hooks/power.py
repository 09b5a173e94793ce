# SPDX-License-Identifier: Apache-2.0
"""The port of power by hooks: an operator's own service switches hosts and pools, and is called as those of things."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall, HookResult, Hooks
from blazar.clouds.ports.power import MachinePower, PowerReading, PowerRef
from blazar.clouds.side_by_side import ask_each
from blazar.model.base.clock import Clock
from blazar.model.base.errors import BlazarError, CloudRefused, InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.power.addresses import PowerAddress
from blazar.model.resources.resource import HOST, VOLUME

AT_ONCE = 25
"""Hosts that one call asks for: hooks answer with four kilobytes at most."""

CALLERS = 8
"""Calls at the same time."""

ACTIONS = {
    HOST: {MachinePower.ON: HookAction.POWER_ON, MachinePower.OFF: HookAction.POWER_OFF},
    VOLUME: {MachinePower.ON: HookAction.POOL_ON, MachinePower.OFF: HookAction.POOL_OFF},
}
QUESTIONS = {HOST: HookAction.POWER_STATE, VOLUME: HookAction.POOL_STATE}


class HookPower:
    """Implements the port of power for hosts that a hook switches."""

    def __init__(self, hooks: Hooks, clock: Clock) -> None:
        self._hooks = hooks
        self._clock = clock

    def check_address(self, address: PowerAddress) -> None:
        """Raise InvalidInput if the target is no URL that may be called."""
        try:
            self._hooks.check_hook(address.target)
        except InvalidInput as error:
            raise InvalidInput(f"target is no hook that may be called: {error.message}", at="/target") from error

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return what the hooks say, by one call for each 25 hosts with one URL."""
        return {ref.resource_id: _read_state(ref, answer) for ref, answer in self._ask(refs)}

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Call the hook of a host; it may take its time, whether it answers 202 or 204."""
        action = ACTIONS[ref.kind][to]
        data: Json = {"resource": _describe(ref), "soft": soft}
        answer = self._hooks.call_hook(self._message((ref,), action, data))
        if answer.result in (HookResult.REFUSED, HookResult.UNUSABLE):
            raise CloudRefused(answer.reason)

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return the watts that the hooks tell with the states."""
        found = {ref.resource_id: _read_watts(ref, answer) for ref, answer in self._ask(refs)}
        return {id_: watts for id_, watts in found.items() if watts is not None}

    def _ask(self, refs: Collection[PowerRef]) -> Sequence[tuple[PowerRef, HookAnswer | BlazarError]]:
        """Return what was answered of each host; a call that fails costs its own hosts only."""
        by_url: dict[tuple[str, str], list[PowerRef]] = defaultdict(list)
        for ref in refs:
            by_url[ref.address.target, ref.kind].append(ref)
        groups = {
            f"{url} {kind} {begin}": hosts[begin : begin + AT_ONCE]
            for (url, kind), hosts in by_url.items()
            for begin in range(0, len(hosts), AT_ONCE)
        }
        answers = ask_each(groups, self._ask_group, callers=CALLERS)
        return [(ref, answers[key]) for key, hosts in groups.items() for ref in hosts]

    def _ask_group(self, refs: Sequence[PowerRef]) -> HookAnswer | BlazarError:
        data: Json = {"resources": [_describe(ref) for ref in refs]}
        try:
            return self._hooks.ask_hook(self._message(refs, QUESTIONS[refs[0].kind], data))
        except BlazarError as error:
            return error

    def _message(self, refs: Sequence[PowerRef], action: HookAction, data: Json) -> HookCall:
        now = self._clock.now()
        word = action.value.partition(".")[2]
        # A switch that is asked for once more is another one: it has an id of its own.
        message_id = f"{refs[0].resource_id}:{word}:{int(now.timestamp() * 1000)}"
        things = tuple(ref.resource_id for ref in refs)
        return HookCall(things, refs[0].address.target, message_id, action, now, data)


def _describe(ref: PowerRef) -> Json:
    return {"id": ref.resource_id, "name": ref.host}


def _pick(ref: PowerRef, answer: HookAnswer, key: str) -> object:
    """Return what an answer says of a host under a key, as {"states": {ID: "off"}, "watts": {ID: 8.5}}."""
    about = (answer.content or {}).get(key)
    return about.get(ref.resource_id) if isinstance(about, dict) else None


def _read_state(ref: PowerRef, answer: HookAnswer | BlazarError) -> PowerReading:
    if isinstance(answer, BlazarError):
        return PowerReading(MachinePower.UNKNOWN, answer.message)
    if answer.result is not HookResult.DONE:
        return PowerReading(MachinePower.UNKNOWN, answer.reason)
    match _pick(ref, answer, "states"):
        case "on":
            return PowerReading(MachinePower.ON)
        case "off":
            return PowerReading(MachinePower.OFF)
    return PowerReading(MachinePower.UNKNOWN, "its hook does not say whether it is on or off")


def _read_watts(ref: PowerRef, answer: HookAnswer | BlazarError) -> float | None:
    if isinstance(answer, BlazarError) or answer.result is not HookResult.DONE:
        return None
    watts = _pick(ref, answer, "watts")
    if isinstance(watts, bool) or not isinstance(watts, int | float) or not math.isfinite(watts) or watts < 0:
        return None
    return float(watts)
