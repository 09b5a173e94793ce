# SPDX-License-Identifier: Apache-2.0
"""What is done next to a host, from what is stored and seen of it alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.calendar.power import HostOutlook
from blazar.clouds.ports.power import MachinePower
from blazar.manager.power.steps import Deed, GoingOff, PowerStep, Sight, take_step
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.states import MARK, HostPower, PowerReason, PowerState
from blazar.resources.contract.kind import Glance
from tests.world import NOON

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
SETTINGS, LEAD = PowerSettings(PowerMode.ON), 30 * MINUTE
ON, OFF = MachinePower.ON, MachinePower.OFF


def going_off(attempts: GoingOff, *, since: timedelta = timedelta(0), tried: timedelta | None = None) -> HostPower:
    """Return a host that has been going off for a time, and was switched so long ago."""
    tried_at = None if tried is None else NOON - tried
    return HostPower(1, PowerState.GOING_OFF, NOON - since, PowerReason.IDLE, attempts=attempts, tried_at=tried_at)


def step(
    host: HostPower,
    power: MachinePower = ON,
    *,
    up: bool = True,
    mark: str | None = MARK,
    servers: int = 0,
    start: timedelta | None = None,
    settings: PowerSettings = SETTINGS,
) -> PowerStep:
    """Return the next step of a host whose next lease begins in so long."""
    outlook = HostOutlook(next_start=None if start is None else NOON + start)
    return take_step(host, Sight(NOON, Glance(up, mark, servers), outlook, power), settings, LEAD)


def last(taken: PowerStep) -> tuple[PowerState, PowerReason]:
    return taken.states[-1].state, taken.states[-1].reason


@pytest.mark.parametrize("late", [timedelta(0), 3 * HOUR], ids=["at once", "after hours"])
def test_a_host_is_not_shut_down_within_the_lead_of_a_lease_whenever_somebody_goes_on(late):
    """Managers may have been away for hours since the plan was made."""
    host = going_off(GoingOff.LOOKED, since=late)
    assert step(host, start=LEAD - MINUTE).deed is Deed.REOPEN
    assert step(host, start=LEAD + SETTINGS.min_off).deed is Deed.SHUT_DOWN


def test_a_host_that_is_open_is_not_shut_down_once_more():
    """Somebody has opened it, or a manager died after it had opened it: a server may be on its way."""
    host = going_off(GoingOff.SHUT_DOWN, tried=2 * MINUTE)
    assert step(host).deed is Deed.SHUT_DOWN
    assert step(host, mark=None).deed is None
    late = going_off(GoingOff.SHUT_DOWN, tried=SETTINGS.shutdown_timeout)
    assert last(step(late, mark=None)) == (PowerState.ON, PowerReason.NEEDED)


def test_a_cut_that_is_lost_is_sent_again_while_nobody_needs_the_host():
    """As Ironic refuses it while it is at work on the node."""
    host = going_off(GoingOff.CUT, tried=MINUTE)
    assert step(host).deed is Deed.CUT
    assert step(host).states == (host,)
    for other in (step(host, OFF), step(host, up=False), step(host, start=10 * MINUTE), step(host, mark=None)):
        assert other.deed is None
    assert last(step(replace(host, tried_at=NOON - 5 * MINUTE))) == (PowerState.ON, PowerReason.REFUSED)


def test_a_host_is_off_only_when_nova_says_so_which_may_take_a_minute_longer():
    """Nova takes a service for up for a minute after it was heard the last time."""
    late = going_off(GoingOff.SHUT_DOWN, tried=SETTINGS.shutdown_timeout)
    waits = step(late, OFF, start=10 * MINUTE)
    assert (waits.deed, last(waits)[0], waits.states[-1].attempts) == (None, PowerState.GOING_OFF, GoingOff.CUT)
    found = step(waits.states[-1], OFF, up=False, start=10 * MINUTE)
    assert [state.state for state in found.states] == [PowerState.OFF, PowerState.WAKING]


@pytest.mark.parametrize(("passed", "state"), [(100 * SECOND, PowerState.GOING_OFF), (2 * MINUTE, PowerState.ON)])
def test_a_short_limit_of_shutdowns_takes_no_host_for_one_that_lies(passed, state):
    short = replace(SETTINGS, shutdown_timeout=10 * SECOND)
    assert last(step(going_off(GoingOff.CUT, tried=passed), OFF, settings=short))[0] is state


def test_a_server_that_is_found_does_not_shorten_what_an_operator_has_asked_for():
    host = replace(going_off(GoingOff.LOOKED), kept_until=NOON + 4 * HOUR)
    assert step(host, servers=1).states[-1].kept_until == NOON + 4 * HOUR
    assert step(going_off(GoingOff.LOOKED), servers=1).states[-1].kept_until == NOON + HOUR
