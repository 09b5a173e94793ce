# SPDX-License-Identifier: Apache-2.0
"""The port of power: whether hosts are on, how they are switched, and what they draw."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

from blazar.model.base.errors import CloudRefused
from blazar.model.base.values import dataclass
from blazar.model.power.addresses import PowerAddress
from blazar.model.resources.resource import HOST, ResourceKind


class MachinePower(StrEnum):
    """The power of a machine. Unknown is neither: nobody may take it for off."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PowerRef:
    """A host, by the external id of its resource and its name, and where its power is switched.

    ``kind`` tells what else may be switched from hosts.
    """

    resource_id: str
    host: str
    address: PowerAddress
    kind: ResourceKind = HOST


@dataclass(frozen=True, slots=True)
class PowerReading:
    """What a machine says of its power; ``reason`` is a sentence for operators if that is unknown."""

    state: MachinePower
    reason: str = ""


def by_id(refs: Collection[PowerRef]) -> Mapping[str, PowerRef]:
    """Return hosts by the id of their resource."""
    return {ref.resource_id: ref for ref in refs}


CHANGES = frozenset({"begin_switch"})
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Power(Protocol):
    """The power of hosts. A machine that does not answer costs no other one its answer."""

    def check_address(self, address: PowerAddress) -> None:
        """Raise InvalidInput, with the reason, if a host at this address could not be switched."""

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return a reading for each host, by the id of its resource; unknown for those that do not answer."""

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Begin to switch a host on or off; it may take minutes, and ``power_states`` says when it is done.

        ``soft`` asks the operating system to shut down, which it may ignore. Nothing happens if it is so already.
        CloudUnavailable if there is no answer: it may have been switched all the same. CloudRefused if it is refused.
        """

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return the watts that each host draws now, by the id of its resource; those not measured are left out."""


class NoPower:
    """The power of a cloud whose hosts nobody can switch."""

    def check_address(self, address: PowerAddress) -> None:
        """Raise CloudRefused."""
        raise CloudRefused("this process switches no hosts")

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return that nothing is known."""
        return {ref.resource_id: PowerReading(MachinePower.UNKNOWN, "this process switches no hosts") for ref in refs}

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Raise CloudRefused."""
        raise CloudRefused("this process switches no hosts")

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return that nothing is measured."""
        return {}
