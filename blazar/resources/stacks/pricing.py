# SPDX-License-Identifier: Apache-2.0
"""What a stack takes of the calendar, from the resources that Heat says it would have. Pure.

Heat shows what only the run of a stack tells as null, as an empty text or as 0: that has no price. A function in a
template may still give one value before and another at the run; what is booked holds then all the same, as servers,
volumes and addresses beyond it are refused when the stack runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from blazar.clouds.ports.stacks import PlannedResource
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.resources.contract.parameters import MOST, quote
from blazar.resources.stacks.source import FLOATING_IP, FREE, KEY_PAIR, SERVER, TEMPLATE, VOLUME


@dataclass(frozen=True, order=True, slots=True)
class ServerPrice:
    """So many servers of a flavor, which is its name or id as in the template."""

    flavor: str
    amount: int


@dataclass(frozen=True, order=True, slots=True)
class VolumePrice:
    """So many volumes of a size (GiB) and a type, empty for the default one of the cloud."""

    volume_type: str
    size_gb: int
    amount: int


@dataclass(frozen=True, order=True, slots=True)
class AddressPrice:
    """So many floating IPs of a network, which is its name or id as in the template."""

    network: str
    amount: int


@dataclass(frozen=True, slots=True)
class StackPrice:
    """All that a stack takes of the calendar, each in order; what it takes of quotas alone is free."""

    servers: tuple[ServerPrice, ...] = ()
    volumes: tuple[VolumePrice, ...] = ()
    addresses: tuple[AddressPrice, ...] = ()


def price_resources(planned: Iterable[PlannedResource]) -> StackPrice:
    """Return what these resources take; InvalidInput names the one that cannot be priced, and why."""
    resources = tuple(planned)
    servers: Counter[str] = Counter()
    volumes: Counter[tuple[str, int]] = Counter()
    addresses: Counter[str] = Counter()
    keys = [r.properties.get("name") for r in resources if r.type == KEY_PAIR]
    for resource in resources:
        match resource.type:
            case t if t == SERVER:
                servers[_flavor_of_server(resource)] += 1
                volumes.update(_disks_of_server(resource))
                _check_key_pair(resource, keys)
            case t if t == VOLUME:
                volumes[
                    _volume_type(resource, resource.properties), _checked_size(resource, resource.properties, "size")
                ] += 1
            case t if t == FLOATING_IP:
                addresses[_network_of_address(resource)] += 1
            case t if t not in FREE:
                raise _refusal(resource, "nothing is known of what this type takes")
    return StackPrice(
        tuple(sorted(ServerPrice(flavor, amount) for flavor, amount in servers.items())),
        tuple(sorted(VolumePrice(kind, size, amount) for (kind, size), amount in volumes.items())),
        tuple(sorted(AddressPrice(network, amount) for network, amount in addresses.items())),
    )


def _flavor_of_server(server: PlannedResource) -> str:
    flavor = server.properties.get("flavor")
    if not isinstance(flavor, str) or not flavor:
        raise _refusal(server, "its flavor is missing, or not known before it runs; give a name, an id or a parameter")
    return flavor


def _disks_of_server(server: PlannedResource) -> list[tuple[str, int]]:
    """Return type and size of each volume that Nova makes for a server."""
    made = []
    for field in ("block_device_mapping", "block_device_mapping_v2"):
        mappings = server.properties.get(field)
        for mapping in mappings if isinstance(mappings, Sequence) and not isinstance(mappings, str) else ():
            if not isinstance(mapping, Mapping):
                raise _refusal(server, f"its {field} is not known before it runs")
            is_local = mapping.get("swap_size") is not None or mapping.get("ephemeral_size") is not None
            # Empty for a volume of the same stack, which has a price of its own.
            if is_local or mapping.get("volume_id") is not None:
                continue
            made.append((_volume_type(server, mapping), _checked_size(server, mapping, "volume_size")))
    return made


def _check_key_pair(server: PlannedResource, keys: Sequence[object]) -> None:
    name = server.properties.get("key_name")
    # Empty for a key pair of the same stack that has no name yet.
    if name in (None, "") or name in keys:
        return
    raise InvalidInput(
        f"resource {quote(server.name)} of type {SERVER} names the key pair {quote(name)}; key pairs belong to "
        f"users, and a stack of a lease is made by the service: put the public key into the template, as a resource "
        f"of type {KEY_PAIR}",
        at=f"/{TEMPLATE}",
    )


def _checked_size(resource: PlannedResource, properties: Mapping[str, object], field: str) -> int:
    size = properties.get(field)
    if size is None or size == 0:
        what = f"its {field} is missing, or not known before it runs"
    elif isinstance(size, bool) or not isinstance(size, int | float | str) or not _is_whole(size):
        what = f"its {field} is {quote(size)}"
    else:
        return int(size)
    raise _refusal(resource, f"{what}; give a whole number of GiB from 1 to {MOST}, or a parameter")


def _is_whole(size: float | str) -> bool:
    if isinstance(size, str):
        return size.isascii() and size.isdigit() and len(size) <= 10 and 1 <= int(size) <= MOST
    return 1 <= size <= MOST and size == int(size)


def _volume_type(resource: PlannedResource, properties: Mapping[str, object]) -> str:
    kind = properties.get("volume_type")
    if kind is None:
        return ""
    if not isinstance(kind, str) or not kind:
        what = f"is {quote(kind)}" if kind else "is not known before it runs"
        raise _refusal(resource, f"its volume_type {what}; give a name, an id or a parameter")
    return kind


def _network_of_address(address: PlannedResource) -> str:
    for field in ("floating_network", "floating_network_id"):
        network = address.properties.get(field)
        if isinstance(network, str) and network:
            return network
    raise _refusal(
        address, "its floating_network is missing, or not known before it runs; give the id of a network or a parameter"
    )


def _refusal(resource: PlannedResource, why: str) -> InvalidInput:
    within = f" of {quote(resource.parent)}" if resource.parent else ""
    return InvalidInput(
        f"resource {quote(resource.name)}{within} of type {quote(resource.type)} cannot be priced: {why}",
        at=f"/{TEMPLATE}",
    )
