# SPDX-License-Identifier: Apache-2.0
"""The cards that servers of a flavor get, by the rules of Nova (34): amounts, numbered groups, PCI aliases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.cards import Cards, CardSource
from blazar.model.resources.pools import SIZES
from blazar.resources.contract.parameters import MOST, quote
from blazar.resources.hosts.pci_aliases import PciAliases

CARDS = "cards"
ALIAS, POLICY = "pci_passthrough:alias", "group_policy"
_KEY = re.compile(r"(resources|trait)([A-Za-z0-9_-]{1,64}):([A-Z0-9_]{1,255})")
_NUMBERED = re.compile(r"(resources|trait)[^:]+:")
_AMOUNT = re.compile(r"[1-9]\d{0,9}", re.ASCII)
_PCI_CLASS = re.compile(r"CUSTOM_PCI_[0-9A-F]{4}_[0-9A-F]{4}")
"""The class that Nova reports a device by, if its operator names no other."""


def unusable(flavor: Flavor, key: str, what: str) -> InvalidInput:
    """Return the refusal of a flavor for one of its extra specs."""
    return InvalidInput(f"flavor {flavor.id}: its extra spec {key[:80]} {what}; use another flavor")


@dataclass(slots=True)
class _Group:
    amounts: dict[str, int] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    key: str = ""


def resolve_cards(flavor: Flavor, aliases: PciAliases) -> Flavor:
    """Return a flavor with what its aliases mean. InvalidInput."""
    found: tuple[Cards, ...] = ()
    if (text := flavor.extra_specs.get(ALIAS)) is not None:
        try:
            found = aliases.cards_of(text)
        except ValueError as error:
            raise unusable(flavor, ALIAS, str(error)) from error
    return replace(flavor, cards=found)


def check_devices(flavor: Flavor, aliases: PciAliases) -> None:
    """Check that a flavor counts no PCI devices without asking for them. InvalidInput."""
    for cards in cards_of(flavor):
        alias = aliases.alias_of_class(cards.resource_class)
        counted = alias is not None or _PCI_CLASS.fullmatch(cards.resource_class)
        if counted and cards.source in (CardSource.AMOUNT, CardSource.GROUP):
            ask = f"{ALIAS}={alias}:{cards.amount}" if alias is not None else ALIAS
            why = f"counts PCI devices that Nova does not hand to its servers; they are asked for by {ask}"
            raise unusable(flavor, _key_of(flavor, cards.resource_class), why)


def cards_of(flavor: Flavor) -> tuple[Cards, ...]:
    """Return what servers of a flavor take of providers nested in a host, by class. InvalidInput.

    What aliases mean is in the flavor (``resolve_cards``).
    """
    groups = _parse_groups(flavor)
    found = {cards.resource_class: cards for cards in flavor.cards}
    for cards in (*_cards_of_groups(flavor, groups), *_cards_of_amounts(flavor)):
        if cards.resource_class in found:
            key = _key_of(flavor, cards.resource_class)
            raise unusable(flavor, key, "asks for a class that the flavor asks for in another way, too")
        found[cards.resource_class] = cards
    return tuple(found[name] for name in sorted(found))


def format_cards(found: Sequence[Cards]) -> list[dict[str, Any]]:
    """Return what aliases mean, as reservations keep and show it."""
    return [
        {
            "resource_class": cards.resource_class,
            "amount": cards.amount,
            "traits": sorted(cards.traits),
            "source": str(cards.source),
        }
        for cards in found
    ]


def parse_cards(kept: Sequence[Mapping[str, Any]]) -> tuple[Cards, ...]:
    """Return what ``format_cards`` wrote."""
    return tuple(
        Cards(
            str(one["resource_class"]),
            int(one["amount"]),
            traits=frozenset(one["traits"]),
            source=CardSource(one["source"]),
        )
        for one in kept
    )


def _cards_of_amounts(flavor: Flavor) -> tuple[Cards, ...]:
    named = {key.removeprefix("resources:"): int(n) for key, n in flavor.extra_specs.items() if _is_amount(key)}
    return tuple(Cards(name, n, n, source=CardSource.AMOUNT) for name, n in named.items() if n and name not in SIZES)


def _is_amount(key: str) -> bool:
    return key.startswith("resources:") and not key.startswith(f"resources:{CLASS_PREFIX}")


def _cards_of_groups(flavor: Flavor, groups: Mapping[str, _Group]) -> tuple[Cards, ...]:
    apart = _is_isolated(flavor, groups)
    found: dict[str, Cards] = {}
    for group in groups.values():
        ((name, amount),) = group.amounts.items()
        before = found.get(name, Cards(name, 0, 0))
        traits = before.traits | group.traits
        found[name] = Cards(name, before.amount + amount, max(before.unit, amount), traits, CardSource.GROUP, apart)
    if apart and len(found) > 1:
        raise unusable(flavor, POLICY, "is isolate for groups of several classes, which may be left together only")
    return tuple(found.values())


def _is_isolated(flavor: Flavor, groups: Mapping[str, _Group]) -> bool:
    """Return whether several groups have to be from several providers."""
    policy = flavor.extra_specs.get(POLICY)
    if policy not in (None, "none", "isolate"):
        raise unusable(flavor, POLICY, f"is {quote(policy)}; Nova takes none and isolate")
    if policy is None and len(groups) > 1:
        raise unusable(flavor, next(iter(groups.values())).key, f"is in one of several groups, and Nova needs {POLICY}")
    if policy == "isolate" and groups and flavor.cards:
        raise unusable(flavor, POLICY, "is isolate, and groups beside PCI devices may be left together only")
    return policy == "isolate" and len(groups) > 1


def _parse_groups(flavor: Flavor) -> Mapping[str, _Group]:
    found: dict[str, _Group] = {}
    for key, value in sorted(flavor.extra_specs.items()):
        if key.startswith("same_subtree"):
            raise unusable(flavor, key, "asks for groups that lie together, which cannot be reserved")
        if not _NUMBERED.match(key):
            continue
        parsed = _KEY.fullmatch(key)
        if parsed is None:
            raise unusable(flavor, key, "is no resource class or trait of a group, by the rules of Nova")
        what, suffix, name = parsed.groups()
        group = found.setdefault(suffix, _Group())
        group.key = group.key or key
        if what == "trait":
            if value != "required":
                raise unusable(flavor, key, f"is {quote(value)}; a trait of a group can only be 'required'")
            group.traits.add(name)
            continue
        if not _AMOUNT.fullmatch(value) or int(value) > MOST:
            raise unusable(flavor, key, f"is {quote(value)}; an amount is a whole number of 1 to {MOST}")
        if name in SIZES:
            raise unusable(flavor, key, "asks for CPUs, memory or disk in a group of its own, which cannot be reserved")
        group.amounts[name] = int(value)
    for group in found.values():
        if len(group.amounts) != 1:
            how = f"{len(group.amounts)} classes" if group.amounts else "no class"
            raise unusable(flavor, group.key, f"is in a group of {how}; only groups of one class can be reserved")
    return found


def _key_of(flavor: Flavor, resource_class: str) -> str:
    keys = sorted(key for key in flavor.extra_specs if re.fullmatch(f"resources[^:]*:{resource_class}", key))
    return keys[0] if keys else ALIAS
