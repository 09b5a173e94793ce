# SPDX-License-Identifier: Apache-2.0
"""What operators should know of cards: aliases that overlap, what no host serves, wide hosts, and quotas of Nova."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from blazar.cmd import assemble
from blazar.model.base.errors import BlazarError
from blazar.model.calendar.cards import Cards, CardSource
from blazar.model.resources.pools import DECLARED
from blazar.model.resources.resource import HOST, Resource
from blazar.resources.hosts.gpus import NO_MODELS, GpuModels
from blazar.resources.hosts.options import UNIFIED_LIMITS, HostSettings
from blazar.resources.hosts.pci_aliases import PciAliases
from blazar.store.store import Store

WIDE = 8
"""So many equal providers, each asked for in a group of its own, take Placement minutes by default."""


def read_card_advice(conf: cfg.ConfigOpts) -> list[str]:
    """Return a sentence for each thing about cards and Nova's quotas that operators should mend or know."""
    refused = _list_refusing_quotas(conf)
    try:
        chosen = HostSettings.configured(conf)
    except BlazarError:
        # The check of plugins tells it.
        return refused
    if not chosen.pci.specs and not chosen.gpus.sources:
        return refused
    try:
        hosts = Store(assemble.database_engine(conf)).resources.of_kind(HOST)
    except (BlazarError, SQLAlchemyError):
        # The check of the database tells it.
        hosts = ()
    return [*refused, *list_card_advice(chosen.pci, hosts, chosen.gpus)]


def _list_refusing_quotas(conf: cfg.ConfigOpts) -> list[str]:
    """Return what is wrong with the quotas of Nova; nothing where its file is another one."""
    if conf.quota.driver != UNIFIED_LIMITS or conf.quota.unified_limits_resource_strategy != "ignore":
        return []
    return [
        "[quota] unified_limits_resource_strategy is ignore: Nova refuses servers of resource classes that have no "
        "limit and are not in unified_limits_resource_list, as those of reservations; set it to require in nova.conf"
    ]


def list_card_advice(aliases: PciAliases, hosts: Collection[Resource], models: GpuModels = NO_MODELS) -> list[str]:
    """Return a sentence for each thing about aliases, models, and the cards of registered hosts."""
    overlaps = [_describe_overlap(aliases, *pair) for pair in aliases.find_overlaps()]
    served = _count_serving(aliases, hosts) if hosts else {}
    missing = [name for name, count in sorted(served.items()) if not count]
    absent = [_describe_missing(aliases, name) for name in missing]
    absent += [
        f"no registered host has the resource class {name} of the GPU model {model}, which cannot be reserved; correct "
        f"[nova] gpu_models, or register hosts with it"
        for model, name in (_list_unserved(models, hosts) if hosts else ())
    ]
    wide = sorted(host.name for host in hosts if any(pool.providers >= WIDE for pool in host.pools))
    if wide:
        absent.append(
            f"host {wide[0]}{f' and {len(wide) - 1} more' if wide[1:] else ''} has {WIDE} or more equal cards: for "
            f"servers with several of them set [workarounds] optimize_for_wide_provider_trees in nova.conf and "
            f"[placement] max_allocation_candidates in placement.conf, or boots may time out"
        )
    return [*overlaps, *absent]


def _count_serving(aliases: PciAliases, hosts: Collection[Resource]) -> Mapping[str, int]:
    """Return how many hosts have the cards of each alias, and nothing but these; overlaps are told before."""
    found = {}
    for name in aliases.specs:
        try:
            wanted = aliases.cards_of(f"{name}:1")
        except ValueError:
            continue
        found[name] = sum(1 for host in hosts if all(_has(host, cards) for cards in wanted))
    return found


def _list_unserved(models: GpuModels, hosts: Collection[Resource]) -> list[tuple[str, str]]:
    """Return the models that are a class which no host has, with the class; those of aliases are told by alias."""
    classes = [(model, name) for model, (way, name) in sorted(models.sources.items()) if way == "class"]
    wanted = {name: Cards(name, 1, source=CardSource.AMOUNT) for _, name in classes}
    return [(model, name) for model, name in classes if not any(_has(host, wanted[name]) for host in hosts)]


def _has(host: Resource, cards: Cards) -> bool:
    return bool(host.capacity.get(cards.resource_class)) and cards.fit(host)


def _describe_overlap(aliases: PciAliases, one: str, other: str) -> str:
    if aliases.in_placement:
        return (
            f"PCI aliases {one} and {other} are of one resource class: hosts with cards of which only some are of both "
            f"are left out for servers that need these; give such cards a resource_class of their own"
        )
    return (
        f"PCI aliases {one} and {other} name the same devices, which cannot be declared by alias then: flavors of both "
        f"are refused; keep one of them"
    )


def _describe_missing(aliases: PciAliases, name: str) -> str:
    if aliases.in_placement:
        (cards,) = aliases.cards_of(f"{name}:1")
        return (
            f"no registered host has cards of PCI alias {name} only, whose class is {cards.resource_class}: flavors of "
            f"it cannot be reserved; see that nova-compute reports its devices ([pci] report_in_placement)"
        )
    return (
        f"no registered host has the property {DECLARED}{name}: flavors of the alias cannot be reserved; declare how "
        f"many devices a host has, as in blazar host-update HOST --extra {DECLARED}{name}=4"
    )
