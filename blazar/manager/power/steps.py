# SPDX-License-Identifier: Apache-2.0
"""What is done next to a host on its way off, or to one that wakes: pure decisions about what was seen of it.

Each is made from what is stored and seen alone, so that any manager can go on after any other, wherever that stopped.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from blazar.calendar.power import HostOutlook
from blazar.clouds.ports.power import MachinePower
from blazar.model.base.values import dataclass, replace
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.states import MARK, HostPower, PowerReason, PowerState
from blazar.resources.contract.kind import Glance

BETWEEN_LOOKS = timedelta(seconds=15)
"""A server that was on its way when the host was closed is seen by the second look."""

POLL = timedelta(seconds=10)
"""How often a host is looked at that is being switched."""

LOST = timedelta(minutes=1)
"""After how long a host is switched once more that is as it was: what was sent may be lost."""

UP_AFTER_ALL = timedelta(minutes=2)
"""For how long a host without power may be said to be up: Nova waits a minute for a service that it does not hear."""

WATCH = timedelta(seconds=30)
"""How often a host is looked at that was opened after it was told to shut down: before health takes it for failed."""

LEFT_ALONE = timedelta(hours=1)
"""For how long a host stays on, on which a server was found."""

HANDS_OFF = timedelta(hours=4)
"""For how long a host stays on that does not do what it is told, or that somebody else has switched on."""

Reason, State = PowerReason, PowerState


class GoingOff(IntEnum):
    """What was done so far to a host on its way off."""

    BEGUN = 0
    LOOKED = 1
    SHUT_DOWN = 2
    CUT = 3


class Waking(IntEnum):
    """What was done so far to a host that wakes."""

    BEGUN = 0
    SWITCHED_ON = 1
    CUT = 2
    SWITCHED_ON_AGAIN = 3


class Deed(StrEnum):
    """What is done to a host."""

    CLOSE = "close"
    SHUT_DOWN = "shut down"
    CUT = "cut"
    SWITCH_ON = "switch on"
    REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of a host at an instant. Its power is UNKNOWN where nobody asked."""

    now: datetime
    look: Glance
    outlook: HostOutlook
    power: MachinePower = MachinePower.UNKNOWN


@dataclass(frozen=True, slots=True)
class PowerStep:
    """What to do, the states that follow, one after the other, and when to look again."""

    deed: Deed | None
    states: tuple[HostPower, ...]
    pause: timedelta = timedelta(0)


def take_step(host: HostPower, sight: Sight, settings: PowerSettings, lead: timedelta) -> PowerStep:
    """Return the next step of a host that is going off, wakes, or was opened after it was told to shut down."""
    if host.state is State.ON:
        return _watch(host, sight)
    if host.state is State.GOING_OFF:
        if host.attempts >= GoingOff.SHUT_DOWN:
            return _await_off(host, sight, settings, needed=is_needed(host, sight, settings, lead))
        return _prepare_off(host, sight, needed=is_needed(host, sight, settings, lead))
    return _wake(host, sight, settings)


def is_needed(host: HostPower, sight: Sight, settings: PowerSettings, lead: timedelta) -> bool:
    """Tell whether a host must not be switched off after all: by a promise, a server or an operator."""
    if settings.mode is not PowerMode.ON or not host.sleeps or sight.look.occupants:
        return True
    if host.kept_until is not None and host.kept_until > sight.now:
        return True
    # Since the plan was made: one that begins right after what that has looked at is not in the way. That may be long
    # ago, if nobody could go on.
    start, until = sight.outlook.next_start, max(host.since + lead + settings.min_off, sight.now + lead)
    return sight.outlook.in_use or (start is not None and start < until)


def _prepare_off(host: HostPower, sight: Sight, *, needed: bool) -> PowerStep:
    """Close a host, and look at it twice after that, before it is shut down."""
    mark = sight.look.mark
    if needed or mark not in (None, MARK):
        return turn_back(host, sight, Reason.NEEDED, LEFT_ALONE if sight.look.occupants else None)
    if not sight.look.up:
        # It has failed meanwhile, which is for others to see.
        return turn_back(host, sight, Reason.REFUSED)
    if mark is None:
        return PowerStep(Deed.CLOSE, (replace(host, attempts=GoingOff.BEGUN),))
    if host.attempts < GoingOff.LOOKED:
        return PowerStep(None, (replace(host, attempts=GoingOff.LOOKED),), BETWEEN_LOOKS)
    if sight.power is not MachinePower.ON:
        return turn_back(host, sight, Reason.REFUSED, HANDS_OFF)
    return PowerStep(Deed.SHUT_DOWN, (replace(host, attempts=GoingOff.SHUT_DOWN, tried_at=sight.now),), POLL)


def _await_off(host: HostPower, sight: Sight, settings: PowerSettings, *, needed: bool) -> PowerStep:
    """Wait for a host that is shutting down, and cut its power once that takes too long and nobody needs it.

    It is off when its switch says so, and its compute service is gone: a switch may lie.
    """
    up, now = sight.look.up, sight.now
    if sight.power is MachinePower.OFF and not up:
        off = host.move(State.OFF, Reason.DONE, now)
        return PowerStep(None, (off, off.move(State.WAKING, Reason.NEEDED, now)) if needed else (off,))
    is_cut, tried_at = host.attempts >= GoingOff.CUT, host.tried_at or host.since
    # To a host that is open again a server may come at any moment.
    may_go = not needed and sight.look.mark == MARK
    if now < tried_at + (max(settings.shutdown_timeout, UP_AFTER_ALL) if is_cut else settings.shutdown_timeout):
        is_lost = up and sight.power is MachinePower.ON and now >= tried_at + LOST
        deed = Deed.CUT if is_cut else Deed.SHUT_DOWN
        return PowerStep(deed, (host,), LOST) if may_go and is_lost else PowerStep(None, (host,), POLL)
    may_go = may_go and not is_cut
    if may_go or (not is_cut and sight.power is MachinePower.OFF):
        cut = replace(host, attempts=GoingOff.CUT, tried_at=now)
        return PowerStep(Deed.CUT if may_go else None, (cut,), POLL)
    reason = Reason.NEEDED if host.attempts < GoingOff.CUT else Reason.REFUSED
    if up:
        return turn_back(host, sight, reason, HANDS_OFF)
    # It may have lost its power without a word.
    return PowerStep(None, (replace(host.move(State.WAKING, reason, now), kept_until=now + HANDS_OFF),))


def turn_back(host: HostPower, sight: Sight, reason: PowerReason, kept: timedelta | None = None) -> PowerStep:
    """Open a host that was on its way off; it stays on for a while, if it does not go off after all."""
    back = host.move(State.ON, reason, sight.now)
    if kept is not None:
        # An operator may have asked for more.
        back = replace(back, kept_until=max(back.kept_until or sight.now, sight.now + kept))
    if host.attempts >= GoingOff.SHUT_DOWN:
        # What was sent cannot be taken back.
        back = replace(back, attempts=host.attempts, tried_at=host.tried_at)
    return PowerStep(Deed.REOPEN, (back,), WATCH)


def _watch(host: HostPower, sight: Sight) -> PowerStep:
    """Wake a host that went off after it was opened, as it took longer to shut down than anybody waited for it."""
    if sight.power is MachinePower.OFF and not sight.look.up:
        return PowerStep(None, (host.move(State.WAKING, host.reason, sight.now),))
    if host.kept_until is None or host.kept_until <= sight.now:
        return PowerStep(None, (replace(host, attempts=0, tried_at=None),))
    return PowerStep(None, (host,), WATCH)


def accept_refusal(host: HostPower, deed: Deed, sight: Sight) -> PowerStep:
    """Return the step of a host whose switch has refused a deed."""
    if host.state is State.GOING_OFF:
        if host.attempts < GoingOff.SHUT_DOWN or sight.look.up:
            return turn_back(host, sight, Reason.REFUSED, HANDS_OFF)
        back = host.move(State.WAKING, Reason.REFUSED, sight.now)
        return PowerStep(None, (replace(back, kept_until=sight.now + HANDS_OFF),))
    return _fail(host, sight) if deed is Deed.CUT else PowerStep(None, (host,), LOST)


def _wake(host: HostPower, sight: Sight, settings: PowerSettings) -> PowerStep:
    """Switch a host on, and off and on again if it does not come up and there is time; then it has failed."""
    if sight.look.up:
        reason = Reason.EXTERNAL if host.reason is Reason.EXTERNAL else Reason.DONE
        return PowerStep(Deed.REOPEN, (host.move(State.ON, reason, sight.now),))
    begun_at = host.tried_at or host.since
    if sight.now >= begun_at + settings.wake_timeout:
        return _try_again(host, sight, settings)
    if host.attempts == Waking.CUT and sight.power is not MachinePower.OFF and sight.now < begun_at + LOST:
        return PowerStep(None, (host,), POLL)
    if host.attempts in (Waking.BEGUN, Waking.CUT):
        return PowerStep(Deed.SWITCH_ON, (replace(host, attempts=host.attempts + 1, tried_at=sight.now),), POLL)
    is_lost = sight.power is MachinePower.OFF and sight.now >= begun_at + LOST
    return PowerStep(Deed.SWITCH_ON if is_lost else None, (host,), POLL)


def _try_again(host: HostPower, sight: Sight, settings: PowerSettings) -> PowerStep:
    """Cut the power of a host that did not wake, if a second attempt fits before a lease needs it."""
    start = sight.outlook.next_start
    fits = not sight.outlook.in_use and (start is None or start >= sight.now + settings.wake_timeout)
    if fits and host.attempts < Waking.CUT and not sight.look.occupants:
        return PowerStep(Deed.CUT, (replace(host, attempts=Waking.CUT, tried_at=sight.now),), POLL)
    return _fail(host, sight)


def _fail(host: HostPower, sight: Sight) -> PowerStep:
    """Give a host up that did not wake. It is open once it comes up after all, and until then it has failed."""
    return PowerStep(Deed.REOPEN, (host.move(State.ON, Reason.TIMED_OUT, sight.now),))
