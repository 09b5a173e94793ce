# SPDX-License-Identifier: Apache-2.0
"""The power of hosts as operators see and set it: questions, changes, and the report of what sleeps and is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from blazar.model.base.errors import WrongState
from blazar.model.base.paging import Condition, Page, Position
from blazar.model.base.values import dataclass, replace
from blazar.model.power.addresses import PowerAddress
from blazar.model.power.settings import ClassPower, PowerMode, PowerPolicy
from blazar.model.power.states import HostPower, PowerReason, PowerState
from blazar.model.resources.resource import PropertyValue, Resource, noun

WOKEN_FOR = timedelta(hours=4)
"""For how long a host stays on that an operator wakes; one that shall never sleep has the policy ``keep``."""


@dataclass(frozen=True, slots=True)
class PoweredHost:
    """A registered host and its power; ``rehearsed`` is the power that a dry run alone has given it."""

    host: Resource
    power: HostPower
    rehearsed: HostPower | None = None

    @property
    def switch(self) -> tuple[str, ...] | None:
        """What tells its switch from those of others; None if it has none of its own."""
        return None if self.power.address is None else self.power.address.identify(self.host.region)

    def check_change(self, change: PowerChange, others: Iterable[PoweredHost] = ()) -> None:
        """Raise WrongState if the host would lose its switch while it is not on: nobody could wake it then.

        Nor may it get the switch of one of the ``others``, which would lose its power, and its servers, with this one.
        """
        if change.address is not None and (switch := change.address.identify(self.host.region)) is not None:
            for other in others:
                if other.host.id != self.host.id and other.switch == switch:
                    raise WrongState(
                        f"target is the switch of {noun(other.host.kind)} {other.host.name}, which would go off with "
                        f"{self.host.name}; give that of {self.host.name}, or take it from {other.host.name} first",
                        at="/target",
                    )
        state = self.power.state
        if change.removes_address and self.power.address is not None and state is not PowerState.ON:
            raise WrongState(
                f"{noun(self.host.kind)} {self.host.name} is {state}, and nobody could wake it without adapter and "
                "target; wake it first, and wait until it is on",
                at="/adapter",
            )


def keep_on(hosts: Collection[PoweredHost]) -> Iterator[PoweredHost]:
    """Yield hosts, of which those with the switch of another one do not sleep: they were given it at the same time."""
    switches = Counter(host.switch for host in hosts)
    for host in hosts:
        is_shared = host.switch is not None and switches[host.switch] > 1
        yield replace(host, power=replace(host.power, sleeps=False)) if is_shared else host


@dataclass(frozen=True, slots=True)
class PowerChange:
    """What changes of a host: another ``address``, none any more (``removes_address``), another ``policy``."""

    address: PowerAddress | None = None
    removes_address: bool = False
    policy: PowerPolicy | None = None


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """Which hosts are wanted: all conditions on ``state``, ``policy`` and ``adapter`` (``none``: without one) hold, and
    ``text`` is a part of the name.
    """

    page: Page
    conditions: tuple[Condition, ...] = ()
    text: str | None = None

    def matches(self, found: PoweredHost) -> bool:
        """Tell whether a host is wanted."""
        power = found.power
        adapter = "none" if power.address is None else str(power.address.adapter)
        values = {"state": str(power.state), "policy": str(power.policy), "adapter": adapter}
        named = (self.text or "").casefold() in found.host.name.casefold()
        return named and all(values[condition.key] in condition.values for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class PowerPage:
    """Hosts with their power, and the position of the last one if there are more; ``count`` if asked for."""

    items: tuple[PoweredHost, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class PastMove:
    """A move of a host from one power state, which had ``lasted``, to another; ``rehearsed``: in a dry run only."""

    id: int
    at: datetime
    before: PowerState
    lasted: timedelta
    after: PowerState
    reason: PowerReason
    rehearsed: bool


@dataclass(frozen=True, slots=True)
class PowerLogPage:
    """Moves of a host in their order, and the position of the last one if there are more; ``count`` if asked for."""

    items: tuple[PastMove, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class PowerSums:
    """What has happened within a period: for how long hosts slept together, how many were switched off, woken in time,
    and did not wake; and how many were not awake when a lease that has them began.
    """

    slept: timedelta = timedelta(0)
    switched_off: int = 0
    woken: int = 0
    failed: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many hosts are in a state for a reason."""

    state: PowerState
    reason: PowerReason
    hosts: int


@dataclass(frozen=True, slots=True)
class ClassReport:
    """A class of hosts: the ``values`` that tell it from others, how many ``hosts`` it has, and how many are asleep, in
    a dry run how many would be. ``limits`` are what was learned of it.
    """

    values: Mapping[str, PropertyValue | None]
    hosts: int
    asleep: int
    limits: ClassPower


@dataclass(frozen=True, slots=True)
class PoolReport:
    """How many pools of volumes have an adapter (``switched``), never sleep by policy (``kept``), and are asleep, with
    what has happened of them: in a dry run, what would have.
    """

    switched: int = 0
    kept: int = 0
    asleep: int = 0
    sums: PowerSums = PowerSums()


@dataclass(frozen=True, slots=True)
class PowerReport:
    """What sleeps, why, and what that has saved ``since`` an instant, in truth and in a dry run.

    ``hosts`` and ``rehearsed_hosts`` count hosts by state and reason. ``switched`` are those with an adapter, and
    ``kept`` those that never sleep by policy. ``classes`` are those of the registered hosts.
    """

    mode: PowerMode
    now: datetime
    since: datetime
    switched: int
    kept: int
    hosts: tuple[StateCount, ...] = ()
    rehearsed_hosts: tuple[StateCount, ...] = ()
    sums: PowerSums = PowerSums()
    rehearsed_sums: PowerSums = PowerSums()
    classes: tuple[ClassReport, ...] = ()
    pools: PoolReport = PoolReport()
