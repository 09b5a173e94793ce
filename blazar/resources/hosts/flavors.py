# SPDX-License-Identifier: Apache-2.0
"""Flavors that projects can use, and what a server of one needs, by the rules of Nova (34).

The rules are those of ``nova.scheduler.utils.ResourceRequest``: sizes of the flavor, unless its extra specs name the
class; dedicated CPUs; required and forbidden traits. A flavor that asks for more than we can promise cannot be
reserved: a refusal is better than a promise that Nova does not keep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from blazar.clouds.ports.compute import Compute, Flavor
from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, NotFound, pointing_at
from blazar.model.calendar.demand import TraitRequirements
from blazar.resources.contract.parameters import MOST, quote
from blazar.resources.hosts.cards import (
    CARDS,
    cards_of,
    check_devices,
    format_cards,
    parse_cards,
    resolve_cards,
    unusable,
)
from blazar.resources.hosts.guest_cells import find_cell_obstacle
from blazar.resources.hosts.pci_aliases import NO_ALIASES, PciAliases

_NAME = re.compile(r"[A-Z0-9_]{1,255}")

_SINGLE: Mapping[str, str] = {
    "accel:device_profile": "accelerators",
    "hw:pmem": "persistent memory",
}
_YES = frozenset({"1", "t", "true", "on", "y", "yes"})

_TRAITS: Mapping[tuple[str, str], tuple[str, bool]] = {
    ("hw:cpu_thread_policy", "require"): ("HW_CPU_HYPERTHREADING", True),
    ("hw:cpu_thread_policy", "isolate"): ("HW_CPU_HYPERTHREADING", False),
    ("hw:maxphysaddr_mode", "passthrough"): ("COMPUTE_ADDRESS_SPACE_PASSTHROUGH", True),
    ("hw:maxphysaddr_mode", "emulate"): ("COMPUTE_ADDRESS_SPACE_EMULATED", True),
    ("hw:tpm_model", "tpm-tis"): ("COMPUTE_SECURITY_TPM_TIS", True),
    ("hw:tpm_model", "tpm-crb"): ("COMPUTE_SECURITY_TPM_CRB", True),
    ("hw:tpm_version", "1.2"): ("COMPUTE_SECURITY_TPM_1_2", True),
    ("hw:tpm_version", "2.0"): ("COMPUTE_SECURITY_TPM_2_0", True),
    ("hw:pci_numa_affinity_policy", "socket"): ("COMPUTE_SOCKET_PCI_NUMA_AFFINITY", True),
    ("os:secure_boot", "required"): ("COMPUTE_SECURITY_UEFI_SECURE_BOOT", True),
}
"""Extra specs that Nova translates into traits; True if the trait is required, False if forbidden."""


def check_reservable(flavor: Flavor, aliases: PciAliases = NO_ALIASES) -> None:
    """Check that servers of a flavor, with what its aliases mean, can be promised. InvalidInput names what cannot."""
    per_instance_of(flavor)
    traits_of(flavor)
    check_devices(flavor, aliases)
    if (found := find_cell_obstacle(flavor)) is not None:
        raise unusable(flavor, *found)


def format_reservable_flavor(flavor: Flavor, field: str, aliases: PciAliases) -> str:
    """Return a flavor that a field has just named as reservations keep it. InvalidInput if it cannot be promised.

    What a reservation keeps is not checked again: it can be changed although its flavor is refused by now, and its
    aliases mean what they did.
    """
    with pointing_at(f"/{field}"):
        resolved = resolve_cards(flavor, aliases)
        check_reservable(resolved, aliases)
    return format_flavor(resolved)


def per_instance_of(flavor: Flavor) -> Amounts:
    """Return the resources that one server needs. InvalidInput if it needs none, or some that cannot be promised."""
    for key, value in flavor.extra_specs.items():
        _check_extra_spec(flavor, key, value)
    named = {
        key.removeprefix("resources:"): _amount_in_extra_spec(flavor, key, value)
        for key, value in flavor.extra_specs.items()
        if key.startswith("resources:")
    }
    if flavor.extra_specs.get("hw:cpu_policy") == "dedicated":
        isolated = flavor.extra_specs.get("hw:emulator_threads_policy") == "isolate"
        named["PCPU"] = flavor.vcpus + int(isolated)
    named |= {cards.resource_class: cards.amount for cards in cards_of(flavor)}
    amounts = {"MEMORY_MB": flavor.memory_mb, "DISK_GB": disk_gb(flavor), **named}
    if not named.keys() & {"VCPU", "PCPU"}:
        amounts["VCPU"] = flavor.vcpus
    if not any(amounts.values()):
        raise InvalidInput(
            f"flavor {flavor.id}: its servers take nothing of a host, so there is nothing to reserve; use another one"
        )
    return Amounts.of(amounts)


def traits_of(flavor: Flavor) -> TraitRequirements:
    """Return the required and forbidden traits. InvalidInput if an extra spec is malformed."""
    wanted: dict[bool, set[str]] = {True: set(), False: set()}
    specs = dict(flavor.extra_specs)
    if "hw:tpm_version" in specs:
        specs.setdefault("hw:tpm_model", "tpm-tis")
    for key, value in specs.items():
        if (key, value) in _TRAITS:
            trait, needed = _TRAITS[key, value]
            wanted[needed].add(trait)
        elif key.startswith("trait:"):
            if value not in ("required", "forbidden") or not _NAME.fullmatch(key.removeprefix("trait:")):
                raise unusable(flavor, key, f"is {quote(value)}; a trait can be 'required' or 'forbidden'")
            wanted[value == "required"].add(key.removeprefix("trait:"))
    return TraitRequirements(frozenset(wanted[True]), frozenset(wanted[False]))


def disk_gb(flavor: Flavor) -> int:
    """Return the disk that a server needs: root, ephemeral and swap, rounded up to GiB."""
    return flavor.disk_gb + flavor.ephemeral_gb - (-flavor.swap_mb // 1024)


def obstacle_of(key: str, value: str) -> str:
    """Return why servers with an extra spec cannot be guaranteed; empty if they can."""
    what = _SINGLE.get(key, "")
    if key == "hw:mem_encryption" and value.lower() in _YES:
        what = "encrypted memory"
    elif key == "hw:cpu_policy" and value == "mixed":
        what = "dedicated and shared CPUs together"
    return f"asks for {what}, which cannot be reserved" if what else ""


def format_flavor(flavor: Flavor) -> str:
    """Return a flavor as JSON with the keys of Nova, as reservations keep and show it, and what its aliases mean."""
    return json.dumps(
        {
            "id": flavor.id,
            "name": flavor.name,
            "vcpus": flavor.vcpus,
            "ram": flavor.memory_mb,
            "disk": flavor.disk_gb,
            "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
            # As in Nova: no swap is an empty string.
            "swap": flavor.swap_mb or "",
            "rxtx_factor": flavor.rxtx_factor,
            "os-flavor-access:is_public": flavor.public,
            "OS-FLV-DISABLED:disabled": False,
            "extra_specs": dict(sorted(flavor.extra_specs.items())),
            **({CARDS: format_cards(flavor.cards)} if flavor.cards else {}),
        }
    )


def parse_flavor(text: str) -> Flavor:
    """Return the flavor that ``text_of`` wrote."""
    kept = json.loads(text)
    return Flavor(
        id=kept["id"],
        name=kept["name"],
        vcpus=kept["vcpus"],
        memory_mb=kept["ram"],
        disk_gb=kept["disk"],
        ephemeral_gb=kept["OS-FLV-EXT-DATA:ephemeral"],
        swap_mb=kept["swap"] or 0,
        rxtx_factor=kept["rxtx_factor"],
        public=kept["os-flavor-access:is_public"],
        extra_specs=kept["extra_specs"],
        cards=parse_cards(kept.get(CARDS, [])),
    )


def _check_extra_spec(flavor: Flavor, key: str, value: str) -> None:
    if key == "aggregate_instance_extra_specs:reservation" or key.startswith(f"resources:{CLASS_PREFIX}"):
        raise InvalidInput(
            f"flavor {flavor.id}: it is the flavor of a reservation; give the one that it was made from, or another"
        )
    if obstacle := obstacle_of(key, value):
        raise unusable(flavor, key, obstacle)


def _amount_in_extra_spec(flavor: Flavor, key: str, value: str) -> int:
    name = key.removeprefix("resources:")
    if not _NAME.fullmatch(name) or not re.fullmatch(r"\d{1,10}", value, re.ASCII) or int(value) > MOST:
        raise unusable(flavor, key, f"is {quote(value)}; an amount is a whole number of at most {MOST}")
    return int(value)


def usable_flavor(compute: Compute, project_id: str, flavor_id: str, field: str) -> Flavor:
    """Return the flavor that a parameter names; NotFound, which names the field, if the project cannot use it."""
    flavor = compute.flavor(flavor_id)
    if flavor is None or not (flavor.public or project_id in _projects_with_access(compute, flavor_id)):
        raise NotFound(f"{field}: there is no flavor {quote(flavor_id)} that your project can use", at=f"/{field}")
    return flavor


def is_usable(compute: Compute, project_id: str, flavor_id: str) -> bool:
    """Return whether a project can use a flavor."""
    try:
        usable_flavor(compute, project_id, flavor_id, "flavor_id")
    except NotFound:
        return False
    return True


def _projects_with_access(compute: Compute, flavor_id: str) -> frozenset[str]:
    try:
        return compute.flavor_access(flavor_id)
    except NotFound:
        # Deleted or made public since it was read.
        return frozenset()
