# SPDX-License-Identifier: Apache-2.0
"""The cards of the simulated hosts: what a server that boots takes of nested providers, by the rules of Nova (34).

Where Placement would choose any provider, this one chooses the worst: the one that could serve the most requests.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.clouds.simulated.state import HostState, State
from blazar.model.base.amounts import Amounts
from blazar.model.resources.pools import ONE_TIME_USE, PCI

Taken = dict[str, dict[str, int]]
"""What a server has of which provider: amounts by class, by the name of the provider."""

_SIZES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")


class _CardRequest(NamedTuple):
    resource_class: str
    amount: int
    traits: frozenset[str]


def take_cards(state: State, host: HostState, specs: Mapping[str, str], now: datetime) -> Taken | None:
    """Return what a server of a flavor with these extra specs gets on a host; None if it does not boot there."""
    requests = _list_requests(state, specs)
    if requests is None:
        return None
    used = _sum_used(state, host, now)
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    # Who needs the most traits has the least choice.
    for request in sorted(requests, key=lambda request: (-len(request.traits), -request.amount)):
        if request.resource_class not in {name for inventories in host.nested.values() for name in inventories}:
            if host.inventories.get(request.resource_class, {}).get("total", 0) < request.amount:
                return None
            continue
        apart = set(taken) if specs.get("group_policy") == "isolate" else set()
        fitting = [name for name in host.nested if name not in apart and _has_room(host, name, request, used)]
        if not fitting:
            return None
        chosen = max(fitting, key=lambda name: (len(host.nested_traits.get(name, ())), name))
        taken[chosen][request.resource_class] += request.amount
        used[chosen, request.resource_class] += request.amount
    return {name: dict(amounts) for name, amounts in taken.items()}


def keep_for_cleaning(host: HostState, taken: Taken) -> None:
    """Reserve what a server has of devices that are used once, as Nova does: others get them when they are cleaned."""
    for provider, amounts in taken.items():
        if ONE_TIME_USE in host.nested_traits.get(provider, ()):
            for name in amounts:
                inventory = host.nested[provider][name]
                inventory["reserved"] = inventory["total"]


def sum_uncleaned(state: State, host: HostState, now: datetime) -> Amounts:
    """Return what is reserved of devices that are used once, and in no server any more, by class."""
    used = _sum_used(state, host, now)
    found: Counter[str] = Counter()
    for provider, inventories in host.nested.items():
        if ONE_TIME_USE in host.nested_traits.get(provider, ()):
            for name, inventory in inventories.items():
                found[name] += max(0, int(inventory.get("reserved", 0)) - used[provider, name])
    return Amounts.of(found)


def _list_requests(state: State, specs: Mapping[str, str]) -> Sequence[_CardRequest] | None:
    """Return what each group asks for; None for an alias that Nova does not know."""
    found: list[_CardRequest] = []
    for part in filter(None, specs.get("pci_passthrough:alias", "").split(",")):
        name, _, number = part.partition(":")
        alias = state.pci_aliases.get(name.strip())
        if alias is None:
            return None
        wanted = _CardRequest(alias["resource_class"], 1, frozenset({PCI, *alias.get("traits", ())}))
        found += [wanted] * int(number)
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    traits: dict[str, set[str]] = defaultdict(set)
    for key, value in specs.items():
        if (one := re.fullmatch(r"(resources|trait)([^:]*):(.+)", key)) is None or key.startswith(
            f"resources:{CLASS_PREFIX}"
        ):
            continue
        what, suffix, name = one.groups()
        if what == "trait" and suffix:
            traits[suffix].add(name)
        elif what == "resources" and int(value) and name not in _SIZES:
            # All of what has no number is asked for class by class.
            groups[suffix or f":{name}"][name] = int(value)
    for suffix, amounts in groups.items():
        found += [_CardRequest(name, amount, frozenset(traits[suffix])) for name, amount in amounts.items()]
    return found


def _sum_used(state: State, host: HostState, now: datetime) -> Counter[tuple[str, str]]:
    used: Counter[tuple[str, str]] = Counter()
    for server in state.occupants(host.service_name, now):
        for provider, amounts in server.cards.items():
            for name, amount in amounts.items():
                used[provider, name] += amount
    return used


def _has_room(host: HostState, provider: str, request: _CardRequest, used: Mapping[tuple[str, str], int]) -> bool:
    inventory = host.nested[provider].get(request.resource_class)
    if inventory is None or not request.traits <= set(host.nested_traits.get(provider, ())):
        return False
    free = (inventory["total"] - inventory.get("reserved", 0)) * inventory.get("allocation_ratio", 1.0)
    return request.amount + used[provider, request.resource_class] <= free
