# SPDX-License-Identifier: Apache-2.0
"""Hosts that a hook of the operator switches: signed calls, and answers that are believed no further than they go."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from blazar.clouds.hooks.power import HookPower
from blazar.clouds.outgoing import signing
from blazar.clouds.ports.power import MachinePower, PowerReading, PowerRef
from blazar.context import scope
from blazar.model.base.errors import ClaimLost, CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.resources.resource import VOLUME
from blazarconformance.clock import ManualClock
from tests.clouds.receivers import MASTER, answer, hooks, receiver, silent, verified

ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN


def ref(url, id_="h-1"):
    return PowerRef(id_, f"node-{id_}", PowerAddress(PowerAdapter.HOOK, url))


def power(**more):
    return HookPower(hooks(**more), ManualClock())


@pytest.mark.parametrize(("to", "kind"), [(ON, "host.power_on"), (OFF, "host.power_off")])
def test_a_switch_is_a_signed_message_about_one_host(to, kind):
    with receiver(answer(204)) as heard:
        power(now=lambda: 1_900_000_000.0).begin_switch(ref(heard.url), to, soft=True)
    ((_, headers, body),) = heard.heard
    message = json.loads(body)
    assert (message["type"], message["data"]) == (kind, {"resource": {"id": "h-1", "name": "node-h-1"}, "soft": True})
    (secret,) = signing.secrets_of([MASTER], "h-1")
    assert verified(secret, headers, body, now=1_900_000_000)
    assert headers["webhook-id"].startswith(f"h-1:{kind.partition('.')[2]}:")


def test_a_switch_that_takes_its_time_has_begun():
    with receiver(answer(202)) as heard:
        power().begin_switch(ref(heard.url), OFF, soft=False)


@pytest.mark.parametrize(("status", "error"), [(404, CloudRefused), (409, CloudRefused), (503, CloudUnavailable)])
def test_a_refusal_is_told_from_what_may_pass(status, error):
    with receiver(answer(status, {"message": "no"})) as heard, pytest.raises(error, match="no"):
        power().begin_switch(ref(heard.url), OFF, soft=False)


def test_nothing_is_sent_when_the_claim_has_ended():
    class Ended:
        longest_call = 10.0

        def remaining(self):
            return 5.0

    with receiver(answer(204)) as heard, scope(fence=Ended()), pytest.raises(ClaimLost):
        power().begin_switch(ref(heard.url), OFF, soft=False)
    assert heard.heard == []


def test_the_hosts_of_a_hook_are_asked_for_together():
    said = {"states": {"h-1": "on", "h-2": "off", "h-3": "OFF"}, "watts": {"h-1": 200, "h-2": "8", "h-3": -1}}
    with receiver(answer(200, said)) as heard:
        refs = [ref(heard.url, f"h-{number}") for number in (1, 2, 3, 4)]
        states = power().power_states(refs)
        assert power().power_watts(refs) == {"h-1": 200.0}
    assert [states[f"h-{n}"].state for n in (1, 2, 3, 4)] == [ON, OFF, UNKNOWN, UNKNOWN]
    assert states["h-4"].reason == "its hook does not say whether it is on or off"
    asked = json.loads(heard.heard[0][2])
    assert asked["type"] == "host.power_state"
    assert [one["id"] for one in asked["data"]["resources"]] == ["h-1", "h-2", "h-3", "h-4"]


def test_a_pool_is_asked_for_and_switched_by_types_of_its_own():
    with receiver(answer(200, {"states": {"h-1": "on", "h-2": "off"}})) as heard:
        host, pool = ref(heard.url, "h-1"), replace(ref(heard.url, "h-2"), kind=VOLUME)
        states = power().power_states([host, pool])
        power().begin_switch(pool, ON, soft=False)
        power().begin_switch(pool, OFF, soft=True)
    assert [states[id_].state for id_ in ("h-1", "h-2")] == [ON, OFF]
    types = [json.loads(body)["type"] for _, _, body in heard.heard]
    assert sorted(types[:2]) == ["host.power_state", "volume.power_state"]
    assert types[2:] == ["volume.power_on", "volume.power_off"]


def test_many_hosts_are_asked_for_in_several_calls():
    with receiver(answer(200, {"states": {}})) as heard:
        power().power_states([ref(heard.url, f"h-{number}") for number in range(60)])
    assert sorted(len(json.loads(body)["data"]["resources"]) for _, _, body in heard.heard) == [10, 25, 25]


@pytest.mark.parametrize("given", [answer(202), answer(503), answer(404), answer(200, b"<html>"), silent])
def test_a_hook_that_does_not_say_costs_its_own_hosts_and_is_never_off(given):
    with receiver(given) as bad, receiver(answer(200, {"states": {"h-2": "off"}})) as good:
        states = power(timeout=0.2).power_states([ref(bad.url), ref(good.url, "h-2")])
    assert states["h-1"].state is UNKNOWN
    assert states["h-1"].reason
    assert states["h-2"] == PowerReading(OFF)


def test_a_hook_that_would_not_be_called_is_refused_when_it_is_named():
    with pytest.raises(InvalidInput, match="target is no hook that may be called"):
        power().check_address(PowerAddress(PowerAdapter.HOOK, "https://169.254.169.254/x"))
