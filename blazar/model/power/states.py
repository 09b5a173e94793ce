# SPDX-License-Identifier: Apache-2.0
"""The power states of a host as a table of moves, what is known of the power of one host, and which are not awake."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model.base.errors import WrongState
from blazar.model.base.values import dataclass, field, replace
from blazar.model.power.addresses import PowerAddress
from blazar.model.power.settings import MINUTE, USUAL_WAKE, PowerPolicy


class PowerState(StrEnum):
    """Whether a host is awake; a host of which nothing is stored is ``on``."""

    ON = "on"
    GOING_OFF = "going_off"
    """Its compute service is being disabled, its servers are looked for, and it is shut down."""
    OFF = "off"
    """It sleeps. It has not failed."""
    WAKING = "waking"
    """Its power is on, and its compute service is awaited."""


class PowerReason(StrEnum):
    """Why a host changes its power state."""

    IDLE = "idle"
    START = "start"
    """A lease starts soon."""
    SPARE = "spare"
    """Too few awake hosts are free for leases that start at once."""
    OPERATOR = "operator"
    NEEDED = "needed"
    """It was booked, found with a server, or disabled by an operator before it was off."""
    REFUSED = "refused"
    """What switches its power did not do it."""
    EXTERNAL = "external"
    """Somebody else has switched it on."""
    DONE = "done"
    """What was asked of it has happened."""
    MISSED = "missed"
    """A lease began before it was awake."""
    TIMED_OUT = "timed_out"
    """It did not wake in time; it has failed."""


MARK = "blazar power"
"""The reason for which the compute service of a host that sleeps is disabled: nobody else's is enabled again."""

MOVES: Mapping[PowerState, Mapping[PowerState, frozenset[PowerReason]]] = {
    PowerState.ON: {
        PowerState.GOING_OFF: frozenset({PowerReason.IDLE}),
        # It did not wake, as its switch was out of reach, and is tried again; or it has shut down after it was opened.
        PowerState.WAKING: frozenset({PowerReason.OPERATOR, PowerReason.NEEDED, PowerReason.REFUSED}),
    },
    PowerState.GOING_OFF: {
        PowerState.OFF: frozenset({PowerReason.DONE}),
        # Its power may be off already: then it is woken, as one that slept.
        PowerState.WAKING: frozenset({PowerReason.NEEDED, PowerReason.REFUSED}),
        PowerState.ON: frozenset({PowerReason.NEEDED, PowerReason.REFUSED}),
    },
    PowerState.OFF: {
        PowerState.WAKING: frozenset(
            {PowerReason.START, PowerReason.SPARE, PowerReason.OPERATOR, PowerReason.EXTERNAL, PowerReason.NEEDED}
        ),
    },
    PowerState.WAKING: {
        PowerState.ON: frozenset({PowerReason.DONE, PowerReason.EXTERNAL, PowerReason.MISSED, PowerReason.TIMED_OUT}),
    },
}
"""For each state the states that may follow, and for which reasons."""


@dataclass(frozen=True, slots=True)
class HostPower:
    """The power of one host: its state ``since`` when and why.

    ``group`` is its class for the spare: hosts of which requests ask for either. ``sleeps`` tells whether it may be
    switched off at all, and ``usable`` whether it takes leases, so that it is of use as a spare. Until ``kept_until``
    it stays on. ``address`` is where it is switched, None: nowhere; ``policy`` is what operators say of its sleep.
    ``attempts`` is what was done so far to reach the state that follows, in the order of the steps, and ``tried_at``
    when it was last switched for that.
    """

    resource_id: int
    state: PowerState
    since: datetime
    reason: PowerReason = PowerReason.DONE
    group: str = ""
    sleeps: bool = True
    usable: bool = True
    kept_until: datetime | None = None
    address: PowerAddress | None = None
    policy: PowerPolicy = PowerPolicy.AUTO
    attempts: int = 0
    tried_at: datetime | None = None

    @property
    def is_awake(self) -> bool:
        """Return whether it is on, and stays so as far as is known."""
        return self.state is PowerState.ON

    @property
    def is_due(self) -> bool:
        """Return whether somebody goes on with it: it changes its state, or was opened while it shut down."""
        return self.state in (PowerState.GOING_OFF, PowerState.WAKING) or (self.is_awake and self.attempts > 0)

    @property
    def can_wake(self) -> bool:
        """Return whether a wake has something to switch: it sleeps, or did not wake and may still have no power."""
        return self.state is PowerState.OFF or (self.is_awake and self.reason is PowerReason.TIMED_OUT)

    def move(self, state: PowerState, reason: PowerReason, at: datetime) -> HostPower:
        """Return it in another state. WrongState if the table has no such move."""
        check_move(self.state, state, reason)
        return replace(self, state=state, since=at, reason=reason, attempts=0, tried_at=None)


def check_move(before: PowerState, after: PowerState, reason: PowerReason) -> None:
    """Raise WrongState if the table has no move from one state to another for that reason."""
    if reason not in MOVES[before].get(after, frozenset()):
        raise WrongState(f"a host that is {before} does not become {after} for the reason {reason}")


USUAL_SHUTDOWN = timedelta(minutes=3)
"""How long a host is taken to shut down."""


@dataclass(frozen=True, slots=True)
class WakingHosts:
    """What a start waits for: so many of its hosts, and of its pools of volumes, sleep, and the last one is ready at
    about that time.
    """

    hosts: int
    ready_at: datetime
    pools: int = 0


@dataclass(frozen=True, slots=True)
class AsleepHosts:
    """The hosts that are not on: by calendar id when each is ready at about, if it is woken now.

    From ``sure_from`` on each start finds its hosts awake, if it needs no more than are switched on within a minute;
    None: it is not known when. So many are as the ``ramp`` says. ``pools`` are those that are pools of volumes.
    """

    ready_at: Mapping[int, datetime] = field(default_factory=dict)
    sure_from: datetime | None = None
    ramp: int = 10
    pools: frozenset[int] = frozenset()

    @property
    def ids(self) -> frozenset[int]:
        """Return the hosts by calendar id."""
        return frozenset(self.ready_at)

    def find_asleep(self, start: datetime) -> frozenset[int]:
        """Return the hosts that a start may find asleep, if all of them are needed by then."""
        if self.sure_from is not None and start >= self.sure_from + time_of_ramp(len(self.ready_at), self.ramp):
            return frozenset()
        return self.ids

    def find_waking(self, ids: Collection[int], start: datetime) -> WakingHosts | None:
        """Return what a start with these hosts waits for; None if they are awake by then."""
        sleeping = self.ids & frozenset(ids)
        ready = self.find_ready(sleeping)
        if ready is None or ready <= start:
            return None
        return WakingHosts(len(sleeping - self.pools), ready, len(sleeping & self.pools))

    def find_ready(self, ids: Collection[int]) -> datetime | None:
        """Return when the last of these hosts is ready; None if all of them are awake."""
        known = [self.ready_at[id_] for id_ in ids if id_ in self.ready_at]
        return max(known) + time_of_ramp(len(known), self.ramp) if known else None


def time_of_ramp(hosts: int, ramp: int) -> timedelta:
    """Return how long after the first hosts the last ones are switched on, with a ``ramp`` of hosts in a minute."""
    return max(0, hosts - 1) // ramp * MINUTE


ALL_AWAKE = AsleepHosts()


def estimate_ready(state: PowerState, since: datetime, now: datetime, wake: timedelta = USUAL_WAKE) -> datetime:
    """Return when a host that is in a state ``since`` then is ready at about, if it is woken now, which takes ``wake``.

    There is a minute for what begins the wake to look, and for the end of one that takes longer than that.
    """
    if state is PowerState.WAKING:
        return max(since + wake, now) + MINUTE
    if state is PowerState.GOING_OFF:
        return max(since + USUAL_SHUTDOWN, now) + wake + MINUTE
    return now + wake + MINUTE
