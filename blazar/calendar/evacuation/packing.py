# SPDX-License-Identifier: Apache-2.0
"""Packs servers into the room of other hosts: all of them, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blazar.calendar.evacuation.values import Candidate, Occupant, Target
from blazar.model.amounts import Amounts

MOST_STEPS = 20_000
"""How many places are tried for one set of hosts: a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Servers of one host that go to one target: those of a group with affinity, or a single one."""

    source: str
    servers: tuple[Occupant, ...]
    amounts: Amounts
    traits: frozenset[str]
    groups: frozenset[str]
    avoid: frozenset[str]


class Room:
    """What is free on the targets, ``headroom`` percent of each left aside."""

    def __init__(self, targets: Iterable[Target], headroom: int) -> None:
        self._targets = tuple(targets)
        self._free: dict[str, dict[str, int]] = {}
        self._groups: dict[str, set[str]] = {}
        for each in self._targets:
            used = dict(each.used)
            self._free[each.name] = {
                name: amount * (100 - headroom) // 100 - used.get(name, 0) for name, amount in each.capacity
            }
            self._groups[each.name] = set(each.groups)

    def places(self, bundle: Bundle, besides: frozenset[str]) -> Sequence[str]:
        """Return the targets that have room for a bundle now, without those ``besides``, in their order."""
        return [t.name for t in self._targets if t.name not in besides | bundle.avoid and self._fits(bundle, t)]

    def _fits(self, bundle: Bundle, target: Target) -> bool:
        free = self._free[target.name]
        return (
            bundle.traits <= target.traits
            and not bundle.groups & self._groups[target.name]
            and all(free.get(name, 0) >= amount for name, amount in bundle.amounts)
        )

    def take(self, bundle: Bundle, target: str) -> None:
        """Put a bundle onto a target."""
        self._change(bundle, target, -1)
        self._groups[target] |= bundle.groups

    def give_back(self, bundle: Bundle, target: str) -> None:
        """Take a bundle off a target, where nothing else of its groups is."""
        self._change(bundle, target, 1)
        self._groups[target] -= bundle.groups

    def _change(self, bundle: Bundle, target: str, sign: int) -> None:
        free = self._free[target]
        for name, amount in bundle.amounts:
            free[name] = free.get(name, 0) + sign * amount


def bundles_of(host: Candidate) -> tuple[Bundle, ...]:
    """Return the servers of a host in bundles."""
    by_group: dict[str, list[Occupant]] = {}
    for each in host.occupants:
        by_group.setdefault(each.together or f"\0{each.id}", []).append(each)
    return tuple(_bundle(host.name, servers) for servers in by_group.values())


def _bundle(source: str, servers: Sequence[Occupant]) -> Bundle:
    amounts = Amounts()
    for each in servers:
        amounts = amounts + each.amounts
    traits = frozenset[str]().union(*(each.traits for each in servers))
    groups = frozenset(each.apart for each in servers if each.apart)
    avoid = frozenset[str]().union(*(each.avoid for each in servers))
    return Bundle(source, tuple(servers), amounts, traits, groups, avoid)


def packed(
    bundles: Sequence[Bundle], targets: Iterable[Target], *, headroom: int, besides: frozenset[str]
) -> Mapping[str, str] | None:
    """Return the target of each server, by id; None if no place for all of them together is found.

    The largest goes first, into the first target that takes it; what then finds none sends the one before it on to its
    next place. That finds a place for all if there is one, unless ``MOST_STEPS`` are spent.
    """
    room = Room(targets, headroom)
    order = sorted(bundles, key=lambda each: _size(each.amounts), reverse=True)
    ways: list[list[str]] = []
    taken: list[str] = []
    for _ in range(MOST_STEPS):
        if len(taken) == len(order):
            return {s.id: target for each, target in zip(order, taken, strict=True) for s in each.servers}
        if len(ways) == len(taken):
            ways.append(list(reversed(room.places(order[len(taken)], besides))))
        if ways[-1]:
            taken.append(ways[-1].pop())
            room.take(order[len(taken) - 1], taken[-1])
            continue
        ways.pop()
        if not taken:
            return None
        room.give_back(order[len(taken) - 1], taken.pop())
    return None


def _size(amounts: Amounts) -> tuple[int, int, int]:
    return amounts.get("MEMORY_MB"), amounts.get("VCPU"), amounts.get("DISK_GB")
