# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of servers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from itertools import count

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, pointing_at
from blazar.model.base.json_text import Json
from blazar.model.base.values import asdict, dataclass, field, replace
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.cells import GuestCells
from blazar.model.calendar.demand import TraitRequirements
from blazar.model.leases.reservation import Content
from blazar.model.leases.secrets import seal, split_off_secrets, unseal
from blazar.model.resources.requirements import Requirement
from blazar.resources.contract.actions import BEFORE_END
from blazar.resources.contract.parameters import (
    LONGEST_TEXT,
    RESERVATION,
    cloud_id,
    is_reference,
    quote,
    reference_of,
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    text_of,
    whole_number,
)
from blazar.resources.contract.values import Reference
from blazar.resources.hosts.cards import cards_of
from blazar.resources.hosts.flavors import parse_flavor, per_instance_of, traits_of
from blazar.resources.hosts.gpus import FIELDS as GPU_FIELDS
from blazar.resources.hosts.gpus import GPUS, NO_GPUS, NO_MODELS, GpuModels, GpuParameters, Gpus
from blazar.resources.hosts.guest_cells import cells_of
from blazar.resources.instances.common import checked_affinity, checked_amount, checked_before_end, stored_affinity
from blazar.resources.instances.virtual import SIZES
from blazar.resources.networks.parameters import SUBNET
from blazar.resources.servers.access import (
    PUBLIC_KEY,
    USER_DATA,
    checked_public_key,
    checked_user_data,
    mask_user_data,
)
from blazar.resources.volumes.parameters import VolumeParameters

FLAVOR, IMAGE, NETWORKS, SOURCE = "flavor", "image", "networks", "source_flavor"
KEY_NAME = "key_name"
METADATA, GROUPS, VOLUMES, FLOATING_IP = "metadata", "security_groups", "volumes", "floating_ip"

AUTO, NONE = "auto", "none"

MOST_NETWORKS, MOST_GROUPS, MOST_METADATA, MOST_VOLUMES = 32, 32, 100, 20

DEFAULTS: Json = {
    "amount": 1,
    "name": "",
    FLAVOR: None,
    "affinity": None,
    "resource_properties": "",
    NETWORKS: AUTO,
    KEY_NAME: None,
    PUBLIC_KEY: None,
    USER_DATA: None,
    METADATA: {},
    GROUPS: [],
    VOLUMES: [],
    FLOATING_IP: None,
    BEFORE_END: "default",
}

_METADATA_KEY = re.compile(r"[\w .:-]{1,255}", re.ASCII)
_OURS = "blazar:"
"""The prefix of metadata that the service itself sets."""


Net = str | Reference
"""A network of servers: its id, or the reservation that it is of."""


@dataclass(frozen=True, slots=True)
class ServerParameters(GpuParameters):
    """The parameters of a reservation of servers, named as in the API.

    ``flavor`` is the id of the flavor that they are like; None if only sizes were given. ``source_flavor`` is that
    flavor as JSON text, as it was when it was chosen. ``networks`` are ids and references, or 'auto' or 'none'.
    ``volumes`` and ``floating_ip`` are references. ``user_data`` is secret.
    """

    amount: int
    name: str
    image: str
    flavor: str | None
    vcpus: int
    memory_mb: int
    disk_gb: int
    affinity: bool | None
    resource_properties: str | None
    networks: tuple[Net, ...] | str
    key_name: str | None
    public_key: str | None
    user_data: str | None = field(repr=False)
    metadata: Mapping[str, str]
    security_groups: tuple[str, ...]
    volumes: tuple[Reference, ...]
    floating_ip: Reference | None
    source_flavor: str | None
    before_end: str
    gpus_of_each: Gpus = NO_GPUS
    """Those that are asked for beside sizes; a flavor has its own."""

    @classmethod
    def checked(
        cls, given: Json, source: str | None, models: GpuModels = NO_MODELS, kept: Gpus = NO_GPUS
    ) -> ServerParameters:
        """Return the parameters of a request that has all of them, and its flavor; InvalidInput names the field."""
        action = checked_before_end(given)
        sizes = {size: whole_number(given[size], size, least=least, what=what) for size, (least, what) in SIZES.items()}
        if given[NETWORKS] == "none" and given[FLOATING_IP] is not None:
            raise InvalidInput(
                f"{FLOATING_IP} is given, and {NETWORKS} is 'none': an address needs a port on a network; name "
                f"a network, or leave {FLOATING_IP} out",
                at=f"/{FLOATING_IP}",
            )
        gpus = models.check(given, kept)
        if gpus.count and given[FLAVOR] is not None:
            raise InvalidInput(f"{GPUS} is given, and a {FLAVOR}, which has its own; leave one out", at=f"/{GPUS}")
        return cls(
            checked_amount(given),
            _checked_name(given),
            cloud_id(given[IMAGE], IMAGE, "an image"),
            None if given[FLAVOR] is None else cloud_id(given[FLAVOR], FLAVOR, "a flavor"),
            **sizes,
            affinity=checked_affinity(given),
            resource_properties=requirement_text(given["resource_properties"], "resource_properties"),
            networks=networks_of(given[NETWORKS]),
            key_name=text_of(given, KEY_NAME),
            public_key=checked_public_key(given[PUBLIC_KEY]),
            user_data=checked_user_data(given[USER_DATA]),
            metadata=_checked_metadata(given[METADATA]),
            security_groups=groups_of(given[GROUPS]),
            volumes=_check_named_once(_checked_volumes(given[VOLUMES])),
            floating_ip=_checked_address(given[FLOATING_IP]),
            source_flavor=source,
            before_end=action,
            gpus_of_each=gpus,
        )

    @classmethod
    def of(cls, content: Content) -> ServerParameters:
        """Return the parameters that a reservation keeps."""
        content = Content(unseal(content.values))
        return cls(
            stored_number(content, "amount"),
            stored_text(content, "name", ""),
            stored_text(content, IMAGE),
            stored_maybe_text(content, FLAVOR),
            **{size: stored_number(content, size) for size in SIZES},
            affinity=stored_affinity(content),
            resource_properties=stored_maybe_text(content, "resource_properties"),
            networks=networks_of(content.values[NETWORKS]),
            key_name=stored_maybe_text(content, KEY_NAME),
            public_key=stored_maybe_text(content, PUBLIC_KEY),
            user_data=stored_maybe_text(content, USER_DATA),
            metadata=_checked_metadata(content.values[METADATA]),
            security_groups=groups_of(content.values[GROUPS]),
            volumes=_checked_volumes(content.values.get(VOLUMES, [])),
            floating_ip=_checked_address(content.values.get(FLOATING_IP)),
            source_flavor=stored_maybe_text(content, SOURCE),
            before_end=stored_text(content, BEFORE_END, "default"),
            gpus_of_each=Gpus.of(content),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        rest = {key: value for key, value in self.values.items() if key not in GPU_FIELDS}
        kept = {**rest, **self.gpus_of_each.values}
        return Content(seal(*split_off_secrets(kept, mask_user_data(kept))))

    @property
    def values(self) -> Json:
        """Return the parameters as a request has them, with the source flavor."""
        networks = (
            self.networks
            if isinstance(self.networks, str)
            else [_network_as_json(network) for network in self.networks]
        )
        lists = {NETWORKS: networks, GROUPS: list(self.security_groups), METADATA: dict(self.metadata)}
        address = None if self.floating_ip is None else _network_as_json(self.floating_ip)
        tied = {VOLUMES: [_network_as_json(volume) for volume in self.volumes], FLOATING_IP: address}
        plain = {key: value for key, value in asdict(self).items() if key != "gpus_of_each"}
        return {**plain, **lists, **tied, **{key: getattr(self, key) for key in GPU_FIELDS}}

    @property
    def references(self) -> tuple[Reference, ...]:
        """Return what they name of the same lease."""
        given = () if isinstance(self.networks, str) else self.networks
        networks = (replace(net, misfit=_obstacle_to_network) for net in given if isinstance(net, Reference))
        volumes = (replace(volume, misfit=self._obstacle_to_volumes, exclusive=True) for volume in self.volumes)
        address = () if self.floating_ip is None else (replace(self.floating_ip, exclusive=True),)
        return (*networks, *volumes, *address)

    def _obstacle_to_volumes(self, volumes: Content) -> str:
        """Return why a reservation of volumes cannot be named; empty if each server gets one of its volumes."""
        wanted = VolumeParameters.of(volumes)
        if not wanted.makes_volumes:
            return "which is a quota: it has no volumes to attach; name one of the mode 'volume'"
        if wanted.amount < self.amount:
            there = f"{wanted.amount} volume{'s' if wanted.amount > 1 else ''}"
            return f"which has {there} for {self.amount} servers; give it an amount of at least {self.amount}"
        return ""

    def choose_name(self, reservation_id: str, taken: Collection[str]) -> str:
        """Return the name of one more server: of several, with the first number that is not taken."""
        name = self.name or f"reservation-{reservation_id}"
        if self.amount == 1:
            return name
        return next(candidate for number in count(1) if (candidate := f"{name[:240]}-{number}") not in taken)

    @property
    def source(self) -> Flavor | None:
        """Return the source flavor, as it was when it was chosen; None if only sizes were given."""
        return None if self.source_flavor is None else parse_flavor(self.source_flavor)

    @property
    def like(self) -> Flavor:
        """Return the source flavor, or what the sizes and GPUs would be as a flavor."""
        if (source := self.source) is not None:
            return source
        return self.gpus_of_each.add_to(Flavor("", "", self.vcpus, self.memory_mb, self.disk_gb))

    @property
    def requirement(self) -> Requirement:
        """Return what a host must have."""
        return requirement_of(resource_properties=self.resource_properties)

    @property
    def per_instance(self) -> Amounts:
        """Return what one server takes of its host."""
        return per_instance_of(self.like)

    @property
    def traits(self) -> TraitRequirements:
        """Return the traits that a host must have, or must not."""
        return traits_of(self.like)

    @property
    def cards(self) -> tuple[Cards, ...]:
        """Return the cards of one server."""
        return cards_of(self.like)

    @property
    def cells(self) -> GuestCells | None:
        """Return the NUMA cells of one server; None if it has none of its own."""
        return cells_of(self.like)


def _checked_name(given: Json) -> str:
    """Return the name of servers, empty for the usual one; InvalidInput if Nova would refuse it when they boot."""
    name = text_of(given, "name") or ""
    if name != name.strip() or not all(map(_is_plain, name)):
        raise InvalidInput(
            f"name is {quote(name)}; give printable characters, without a blank at the beginning or end, and without "
            f"emoji",
            at="/name",
        )
    return name


def _is_plain(character: str) -> bool:
    """Return whether Nova lets names have a character: it is printable, and one of the first 65535 of Unicode."""
    category = unicodedata.category(character)
    return character < "\uffff" and category[0] != "C" and category not in ("Zl", "Zp")


def networks_of(value: object) -> tuple[Net, ...] | str:
    """Return the networks of servers: ids and references, or 'auto' or 'none'; InvalidInput."""
    if value in (AUTO, NONE):
        return str(value)
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_NETWORKS:
        raise InvalidInput(
            f'{NETWORKS} is {quote(value)}; give "auto", "none", or a list of 1 to {MOST_NETWORKS} objects such as '
            f'{{"uuid": "<id of a network>"}} and {{"reservation": 0}}',
            at=f"/{NETWORKS}",
        )
    return tuple(_checked_network(item, index) for index, item in enumerate(value))


def _checked_network(item: object, index: int) -> Net:
    if is_reference(item):
        return reference_of(item, f"/{NETWORKS}/{index}", "network")
    with pointing_at(f"/{NETWORKS}/{index}"):
        if not isinstance(item, dict) or item.keys() != {"uuid"} or not isinstance(item["uuid"], str):
            raise InvalidInput(
                f'{NETWORKS}[{index}] is {quote(item)}; give an object such as {{"uuid": "<id of a network>"}}, or '
                f'{{"reservation": 0}} for a network of the same lease'
            )
        return cloud_id(item["uuid"], f"{NETWORKS}[{index}].uuid", "a network", pointer="/uuid")


def _checked_volumes(value: object) -> tuple[Reference, ...]:
    """Return the reservations whose volumes are attached; InvalidInput."""
    if not isinstance(value, list) or len(value) > MOST_VOLUMES:
        raise InvalidInput(
            f'{VOLUMES} is {quote(value)}; give a list of at most {MOST_VOLUMES} objects such as {{"reservation": 0}}',
            at=f"/{VOLUMES}",
        )
    return tuple(reference_of(item, f"/{VOLUMES}/{index}", "virtual:volume") for index, item in enumerate(value))


def _check_named_once(volumes: tuple[Reference, ...]) -> tuple[Reference, ...]:
    """Return references to volumes; InvalidInput if one is named twice, as a volume is attached to a server once."""
    named = [volume.reservation for volume in volumes]
    for index, reference in enumerate(volumes):
        if reference.reservation in named[:index]:
            raise InvalidInput(
                f"{VOLUMES} names reservation {quote(reference.reservation)} twice; name it once, and all its volumes "
                f"are attached",
                at=reference.pointer,
            )
    return volumes


def _checked_address(value: object) -> Reference | None:
    return None if value is None else reference_of(value, f"/{FLOATING_IP}", "virtual:floatingip")


def _network_as_json(value: Net) -> Json:
    return {"uuid": value} if isinstance(value, str) else {RESERVATION: value.reservation}


def groups_of(value: object) -> tuple[str, ...]:
    """Return the names or ids of security groups; InvalidInput."""
    fits = isinstance(value, list) and len(value) <= MOST_GROUPS
    if not fits or not all(isinstance(name, str) and 0 < len(name) <= LONGEST_TEXT for name in value):  # type: ignore[attr-defined]
        raise InvalidInput(
            f"{GROUPS} is {quote(value)}; give a list of at most {MOST_GROUPS} names or ids of security groups",
            at=f"/{GROUPS}",
        )
    return tuple(value)  # type: ignore[arg-type]


def _obstacle_to_network(network: Content) -> str:
    """Return why a reserved network cannot be named; empty if it has a subnet from the start."""
    if network.values.get(SUBNET) is not None:
        return ""
    return (
        f"which has no {SUBNET}, and Nova boots no server on a network without one; give it one, as requests can from "
        f"microversion 1.1 on"
    )


def _checked_metadata(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or len(value) > MOST_METADATA:
        raise InvalidInput(
            f"{METADATA} is {quote(value)}; give an object of at most {MOST_METADATA} strings", at=f"/{METADATA}"
        )
    for key, text in value.items():
        fits = isinstance(text, str) and len(text) <= LONGEST_TEXT and _METADATA_KEY.fullmatch(key)
        if not fits or key.startswith(_OURS):
            raise InvalidInput(
                f"{METADATA} has {quote(key)}: {quote(text)}; keys have 1 to 255 of a-z A-Z 0-9, blanks and "
                f". : _ -, do not begin with {_OURS!r}, and values are strings of at most {LONGEST_TEXT} characters",
                at=f"/{METADATA}",
            )
    return dict(value)
