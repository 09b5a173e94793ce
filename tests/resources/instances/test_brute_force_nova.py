# SPDX-License-Identifier: Apache-2.0
"""No server that is promised fails to boot, whatever cards an adversary chooses for those before it.

The host here is Placement by its own rules, each group of a server a search of its own; where Placement would choose
any providers, all choices are tried.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import hypothesis.strategies as st
from hypothesis import given, settings

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.placement import ProviderInventory, combine_inventories
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.calendar.demand import Demand
from blazar.model.resources.pools import PCI
from blazar.model.resources.resource import HOST, Resource
from blazar.resources.hosts.cards import cards_of, resolve_cards
from blazar.resources.hosts.flavors import check_reservable, per_instance_of
from blazar.resources.hosts.gpus import GpuModels
from blazar.resources.hosts.pci_aliases import PciAliases, parse_alias
from tests.builders import a_host

A, B = "CUSTOM_A", "CUSTOM_B"
FAST = "CUSTOM_FAST"
ALIASES = PciAliases.of(
    [
        parse_alias('{"name": "any", "resource_class": "CUSTOM_A"}'),
        parse_alias('{"name": "fast", "resource_class": "CUSTOM_A", "traits": "fast"}'),
    ],
    in_placement=True,
)
MODELS = GpuModels.of({"any": "alias/any", "fast": "alias/fast", "b": "class/CUSTOM_B"}, ALIASES)
OWN = ProviderInventory({"VCPU": {"total": 100}})

Group = tuple[str, int, frozenset[str]]


@st.composite
def providers(draw: st.DrawFn) -> tuple[ProviderInventory, ...]:
    """Providers of a host, mostly alike: otherwise nothing is promised."""
    every = draw(st.sampled_from([frozenset(), frozenset({PCI})]))
    usual = draw(st.sampled_from([frozenset(), frozenset({FAST})]))
    alike = {"total": draw(st.integers(1, 3)), "max_unit": draw(st.integers(1, 3)), "step_size": 1}
    found = []
    for _ in range(draw(st.integers(1, 3))):
        traits = every | draw(st.sampled_from([usual, usual, usual, frozenset({FAST})]))
        other = {"total": draw(st.integers(1, 3)), "max_unit": 3, "step_size": draw(st.sampled_from([1, 2]))}
        limits = draw(st.sampled_from([alike, alike, alike, other]))
        found.append(ProviderInventory({draw(st.sampled_from([A, A, A, B])): limits}, traits))
    return tuple(found)


@st.composite
def flavors(draw: st.DrawFn) -> Flavor:
    specs: dict[str, str] = {}
    how = draw(st.sampled_from(["amount", "alias", "groups", "groups", "both", "model"]))
    if how == "model":
        asked = {"gpus": draw(st.integers(1, 3)), "gpu_model": draw(st.sampled_from([*MODELS.sources]))}
        return MODELS.check(asked).add_to(Flavor("f", "f", 1, 0, 0))
    if how in ("alias", "both"):
        specs["pci_passthrough:alias"] = f"{draw(st.sampled_from(['any', 'fast']))}:{draw(st.integers(1, 3))}"
    if how in ("amount", "both"):
        specs[f"resources:{B if how == 'both' else A}"] = str(draw(st.integers(1, 3)))
    if how == "groups":
        unit = draw(st.sampled_from([1, 1, 2]))
        for number in range(1, draw(st.integers(1, 3)) + 1):
            specs[f"resources{number}:{draw(st.sampled_from([A, A, A, B]))}"] = str(unit)
            if draw(st.booleans()):
                specs[f"trait{number}:{FAST}"] = "required"
        specs["group_policy"] = draw(st.sampled_from(["none", "isolate"]))
    return Flavor("f", "f", 1, 0, 0, extra_specs=specs)


def groups_of(flavor: Flavor) -> list[Group]:
    """What Nova asks Placement for, group by group."""
    found: list[Group] = []
    for key, value in flavor.extra_specs.items():
        if key == "pci_passthrough:alias":
            name, number = value.split(":")
            needed = frozenset({PCI} | ({FAST} if name == "fast" else set()))
            found += [(A, 1, needed)] * int(number)
        elif key.startswith("resources"):
            prefix, name = key.split(":")
            trait = f"trait{prefix.removeprefix('resources')}:{FAST}"
            found.append((name, int(value), frozenset({FAST} if trait in flavor.extra_specs else ())))
    return found


def choices(flavor: Flavor, host: tuple[ProviderInventory, ...], used: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All ways in which Placement could give a server its groups: how much is used of each provider afterwards.

    None, if it could give the server a PCI device that it does not ask for by alias: Nova would hand none over.
    """
    groups = groups_of(flavor)
    isolated = flavor.extra_specs.get("group_policy") == "isolate" and len(groups) > 1
    found = set()
    for chosen in product(range(len(host)), repeat=len(groups)):
        if isolated and len(set(chosen)) < len(chosen):
            continue
        taken: Counter[int] = Counter()
        for at, (name, amount, traits) in zip(chosen, groups, strict=True):
            taken[at] += amount if name in host[at].inventories and traits <= host[at].traits else 99
        if all(_allows(host[at], amount, used[at]) for at, amount in taken.items()):
            if any(
                PCI in host[at].traits and PCI not in traits for at, (_, _, traits) in zip(chosen, groups, strict=True)
            ):
                return []
            found.add(tuple(before + taken[at] for at, before in enumerate(used)))
    return sorted(found)


def _allows(provider: ProviderInventory, amount: int, used: int) -> bool:
    (limits,) = provider.inventories.values()
    return used + amount <= limits["total"] and amount <= limits["max_unit"] and amount % limits["step_size"] == 0


def resource_of(host: tuple[ProviderInventory, ...]) -> Resource:
    found = combine_inventories(OWN, host)
    return replace(a_host(1), capacity=found.capacity, limits=found.limits, traits=found.traits, pools=found.pools)


def count_promised(flavor: Flavor, resource: Resource, used: Amounts) -> int:
    """How many servers of a flavor the calendar promises on a host beside what is used."""
    try:
        resolved = resolve_cards(flavor, ALIASES)
        check_reservable(resolved)
    except InvalidInput:
        return 0
    demand = Demand(HOST, 1, 1, per_instance=per_instance_of(resolved), cards=cards_of(resolved))
    assert demand.per_instance is not None
    return resource.count_beside(used, demand.per_instance) if demand.is_met_by(resource) else 0


@settings(max_examples=500)
@given(providers(), st.lists(flavors(), min_size=1, max_size=3), st.data())
def test_a_server_that_is_promised_boots_whatever_was_chosen_for_those_before_it(host, asked, data):
    resource = resource_of(host)
    promised: list[Flavor] = []
    used = Amounts()
    for flavor in asked:
        count = min(count_promised(flavor, resource, used), 3)
        if count and (count := data.draw(st.sampled_from([count, count, 1]))):
            promised += [flavor] * count
            used += per_instance_of(resolve_cards(flavor, ALIASES)).times(count)
    order = data.draw(st.permutations(promised))

    @cache
    def always_boots(at: int, taken: tuple[int, ...]) -> bool:
        if at == len(order):
            return True
        found = choices(order[at], host, taken)
        return bool(found) and all(always_boots(at + 1, then) for then in found)

    assert always_boots(0, (0,) * len(host)), [flavor.extra_specs for flavor in order]
