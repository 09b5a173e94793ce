# SPDX-License-Identifier: Apache-2.0
"""Cards: what a server takes of a class from providers of which Placement, and nobody else, chooses each time.

Amounts of a whole host tell how many servers fit only where no choice of Placement can be a wrong one (``Cards.fit``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from blazar.model.base.values import dataclass
from blazar.model.resources.pools import CardPool
from blazar.model.resources.resource import Resource


class CardSource(StrEnum):
    """By what servers get their cards."""

    AMOUNT = "amount"
    """``resources:CLASS``: the whole amount from one provider, the host's own or a nested one."""
    GROUP = "group"
    """``resources1:CLASS``: the amount of each group from one provider."""
    ALIAS = "alias"
    """``pci_passthrough:alias``: one from each provider, which is a PCI device."""
    DECLARED = "declared"
    """The same, of devices that Placement does not know: the operator says how many a host has."""
    PROFILE = "profile"
    """``accel:device_profile``: groups that Cyborg knows."""


@dataclass(frozen=True, slots=True)
class Cards:
    """What one server takes of a class: ``amount`` in all, at most ``unit`` of it from one provider at once.

    Each provider must have the ``traits``. ``apart``: no two groups may be from one provider.
    """

    resource_class: str
    amount: int
    unit: int = 1
    traits: frozenset[str] = frozenset()
    source: CardSource = CardSource.GROUP
    apart: bool = False

    def fit(self, resource: Resource) -> bool:
        """Return whether such servers boot on a host as long as amounts of the class are left, whatever was taken.

        Traits that only some of the providers have do not do: servers that need none would take those that have them.
        Of several providers an amount above one may be left in pieces only. The limits of a class that one provider
        has are those of the whole server, which ``Resource.count_beside`` knows.
        """
        if self.source is CardSource.DECLARED:
            return True
        pools = [pool for pool in resource.pools if pool.resource_class == self.resource_class]
        if self.source is CardSource.ALIAS:
            return bool(pools) and all(pool.is_pci for pool in pools) and self._suit(pools)
        if any(pool.is_pci for pool in pools):
            return False
        if not pools:
            # The host's own provider has the class, or none has.
            own = CardPool(self.resource_class, resource.capacity.get(self.resource_class), traits=resource.traits)
            return self._suit((own,))
        return self._suit(pools)

    def _suit(self, pools: Sequence[CardPool]) -> bool:
        if not all(self.traits <= pool.traits and pool.limits.allows(self.unit) for pool in pools):
            return False
        if sum(pool.providers for pool in pools) == 1:
            return not self.apart
        if self.unit > 1:
            return False
        # Several groups of one server may be left to one provider.
        return self.amount == 1 or all(
            pool.size == 1 or (not self.apart and pool.limits.most >= pool.size) for pool in pools
        )
