# SPDX-License-Identifier: Apache-2.0
"""What one instance may take of a class, and the cards of a host: its nested providers, or what its operator declares.

Declared cards are the PCI devices of an alias where Placement does not know them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass

PCI = "COMPUTE_MANAGED_PCI_DEVICE"
"""The trait of a provider that Nova makes for a PCI device: only ``pci_passthrough:alias`` gives a server one."""

ONE_TIME_USE = "HW_PCI_ONE_TIME_USE"
"""The trait of a PCI device that Nova gives to one server, and to no other until somebody has cleaned it.

Nova sets its ``reserved`` when the server gets it, and never takes that back (``[pci] device_spec``, one_time_use).
"""

DECLARED = "pci:"
"""The prefix of the capability with the number of devices of an alias, as ``pci:a100``."""

_DECLARED_CLASS = "DECLARED_"
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)


SIZES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""The classes that only the own provider of a host has."""

_BANDWIDTHS = "NET_"


@dataclass(frozen=True, slots=True)
class UnitLimits:
    """What one instance may take of a class: at least ``least``, at most ``most``, and a multiple of ``step``.

    Placement's ``min_unit``, ``max_unit`` and ``step_size``. An instance that takes none of the class is not limited.
    """

    least: int = 1
    most: int = 2**31 - 1
    step: int = 1

    def allows(self, amount: int) -> bool:
        """Return whether one instance may take this amount."""
        return self.least <= amount <= self.most and amount % self.step == 0


@dataclass(frozen=True, slots=True)
class CardPool:
    """Equal providers of a class in the tree of a host, as its cards: each has ``size`` of it, ``traits`` and
    ``limits``.

    Whatever a server asks for at once comes from one of them, and Placement chooses which.
    """

    resource_class: str
    size: int
    providers: int = 1
    traits: frozenset[str] = frozenset()
    limits: UnitLimits = UnitLimits()

    @property
    def is_pci(self) -> bool:
        """Return whether Nova hands its devices to servers by aliases only."""
        return PCI in self.traits

    @property
    def is_cleaned(self) -> bool:
        """Return whether its devices have to be cleaned after each server."""
        return ONE_TIME_USE in self.traits


def count_cards(amounts: Amounts) -> int:
    """Return how many cards there are among what a server takes: GPUs and other devices, and parts of them."""
    return sum(n for name, n in amounts if name not in SIZES and not name.startswith(_BANDWIDTHS))


def is_declared(resource_class: str) -> bool:
    """Return whether a class counts declared devices."""
    return resource_class.startswith(_DECLARED_CLASS)


def declared_class(alias: str) -> str:
    """Return the class by which the declared devices of an alias are counted; Placement has none of this name."""
    return _DECLARED_CLASS + re.sub("[^0-9A-Z]+", "_", alias.upper())


def find_wrong_number(name: str, value: str | None) -> str:
    """Return why a capability of a host declares no number of devices; empty if it does, or declares none."""
    if value is None or not name.startswith(DECLARED) or _NUMBER.fullmatch(value):
        return ""
    return "it declares how many PCI devices of the alias the host has, a whole number of at most 9999"


def find_declared_twice(capabilities: Mapping[str, str]) -> tuple[str, str] | None:
    """Return two capabilities that declare devices of one class, as ``pci:a100`` and ``pci:A100``; None if none do."""
    known: dict[str, str] = {}
    for name in sorted(capabilities):
        if name.startswith(DECLARED):
            first = known.setdefault(declared_class(name.removeprefix(DECLARED)), name)
            if first != name:
                return first, name
    return None


def find_fewer_cards(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    """Return the classes of which the capabilities of a host declare fewer devices than before."""
    left = declared_cards(after)
    return frozenset(name for name, amount in declared_cards(before) if left.get(name) < amount)


def declared_cards(capabilities: Mapping[str, str]) -> Amounts:
    """Return the devices that the capabilities of a host declare; a value that is no number declares none."""
    found = {
        name: value for name, value in capabilities.items() if name.startswith(DECLARED) and _NUMBER.fullmatch(value)
    }
    return Amounts.of({declared_class(name.removeprefix(DECLARED)): int(value) for name, value in found.items()})
