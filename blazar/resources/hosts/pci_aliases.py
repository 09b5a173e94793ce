# SPDX-License-Identifier: Apache-2.0
"""PCI aliases: the words of ``nova.conf`` for devices, which no API of Nova (34) tells; an operator repeats them here.

The rules are those of ``nova.pci.request`` and ``nova.compute.pci_placement_translator``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from oslo_config import types

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.cards import Cards, CardSource
from blazar.model.resources.pools import declared_class
from blazar.resources.contract.parameters import quote

MOST_DEVICES = 64
"""The most devices of one alias in one server: Placement looks for each of them in a group of its own."""

_ID = re.compile(r"[0-9a-fA-F]{4}")
_TYPES = ("type-PCI", "type-PF", "type-VF")
_KEYS = frozenset(
    {
        "name",
        "capability_type",
        "product_id",
        "vendor_id",
        "device_type",
        "numa_policy",
        "resource_class",
        "traits",
        "live_migratable",
    }
)
_STANDARD_CLASSES = frozenset({"PGPU", "VGPU", "FPGA", "PCI_DEVICE", "SRIOV_NET_VF", "VGPU_DISPLAY_HEAD"})
_STANDARD_TRAITS = re.compile(r"(HW|COMPUTE|STORAGE|MISC|OWNER|CUSTOM)_[A-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class AliasSpec:
    """One ``alias`` of ``nova.conf``: the class and traits of its devices in Placement, and their ids, if it has some.

    The class is empty if neither ids nor a class are given.
    """

    name: str
    resource_class: str
    traits: frozenset[str] = frozenset()
    ids: tuple[str, str] | None = None


class AliasType(types.ConfigType):
    """The type of an option that is one alias, as JSON; ValueError says what is wrong with it."""

    def __init__(self) -> None:
        super().__init__(type_name="string value")

    def __call__(self, value: object) -> AliasSpec:
        """Return the alias; ValueError."""
        return value if isinstance(value, AliasSpec) else parse_alias(str(value))

    def __repr__(self) -> str:
        return "PCI alias"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AliasType)

    __hash__ = types.ConfigType.__hash__

    def _formatter(self, value: object) -> str:
        return str(value)


def parse_alias(text: str) -> AliasSpec:
    """Return an alias of ``nova.conf``. ValueError says what Nova would refuse in it."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ValueError(f"a PCI alias is JSON as in nova.conf, and {quote(text)} is not: {error}") from error
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError(f"a PCI alias is an object of texts, and {quote(text)} is not")
    if strange := sorted(given.keys() - _KEYS):
        raise ValueError(f"a PCI alias has no {', '.join(strange)}; Nova knows {', '.join(sorted(_KEYS))}")
    name = given.get("name", "").strip()
    if not name or len(name) > 255 or re.search("[:,]", name):
        raise ValueError(f"the name of a PCI alias is {quote(name)}; give 1 to 255 characters without : and ,")
    vendor, product = given.get("vendor_id"), given.get("product_id")
    for key, value in (("vendor_id", vendor), ("product_id", product)):
        if value is not None and not _ID.fullmatch(value):
            raise ValueError(f"{key} of PCI alias {name} is {quote(value)}; give 4 hexadecimal digits")
    if (kind := given.get("device_type", _TYPES[0])) not in _TYPES:
        raise ValueError(f"device_type of PCI alias {name} is {quote(kind)}; give one of {', '.join(_TYPES)}")
    ids = (vendor.lower(), product.lower()) if vendor and product else None
    resource_class = _class_of(given.get("resource_class", ""), ids)
    return AliasSpec(name, resource_class, _traits_of(given.get("traits", "")), ids)


@dataclass(frozen=True, slots=True)
class PciAliases:
    """The aliases of a cloud, by name; several specs of a name are alternatives.

    ``in_placement``: Nova looks for devices in Placement. Otherwise only its PciPassthroughFilter counts them, and
    operators declare how many a host has.
    """

    specs: Mapping[str, Sequence[AliasSpec]] = field(default_factory=dict, hash=False)
    in_placement: bool = True

    @classmethod
    def of(cls, specs: Iterable[AliasSpec], *, in_placement: bool) -> PciAliases:
        """Return the aliases of these specs. InvalidInput for those that Nova refuses."""
        named: dict[str, list[AliasSpec]] = {}
        for spec in specs:
            named.setdefault(spec.name, []).append(spec)
        for name, found in named.items():
            if wrong := _find_wrong(found, in_placement=in_placement):
                raise InvalidInput(f"[nova] pci_alias: PCI alias {name} {wrong}")
        return cls({name: tuple(found) for name, found in named.items()}, in_placement)

    def cards_of(self, text: str) -> tuple[Cards, ...]:
        """Return what ``pci_passthrough:alias`` asks for. ValueError says what cannot be promised of it."""
        wanted = _parse_request(text)
        found: dict[str, Cards] = {}
        for name, count in wanted.items():
            one = self._card_of(name)
            before = found.get(one.resource_class, Cards(one.resource_class, 0))
            found[one.resource_class] = Cards(
                one.resource_class, before.amount + count, 1, before.traits | one.traits, one.source
            )
        return tuple(found.values())

    def alias_of_class(self, resource_class: str) -> str | None:
        """Return the alias by which servers get what is counted by a class; None if there is none."""
        if not self.in_placement:
            return None
        return next((name for name, (spec, *_) in self.specs.items() if spec.resource_class == resource_class), None)

    def find_overlaps(self) -> Sequence[tuple[str, str]]:
        """Return the pairs of aliases by which servers may get the same device, in order."""
        names = sorted(self.specs)
        pairs = ((one, other) for at, one in enumerate(names) for other in names[at + 1 :])
        return [(one, other) for one, other in pairs if self._overlap(one, other)]

    def _card_of(self, name: str) -> Cards:
        if name not in self.specs:
            known = f"there are {', '.join(sorted(self.specs))}" if self.specs else "none is known here"
            raise ValueError(
                f"names {quote(name)}, which is no PCI alias that this service knows ({known}); ask its operator to "
                f"add it to [nova] pci_alias"
            )
        if self.in_placement:
            (spec,) = self.specs[name]
            return Cards(spec.resource_class, 1, 1, spec.traits, CardSource.ALIAS)
        others = [other for other in sorted(self.specs) if other != name and self._overlap(name, other)]
        if others:
            raise ValueError(
                f"names {quote(name)}, whose devices servers get by the alias {others[0]}, too, so that how many are "
                f"left of them cannot be told"
            )
        return Cards(declared_class(name), 1, 1, frozenset(), CardSource.DECLARED)

    def _overlap(self, one: str, other: str) -> bool:
        if self.in_placement:
            return self.specs[one][0].resource_class == self.specs[other][0].resource_class
        same_ids = {spec.ids for spec in self.specs[one]} & {spec.ids for spec in self.specs[other]}
        return bool(same_ids) or declared_class(one) == declared_class(other)


NO_ALIASES = PciAliases()


def _find_wrong(specs: Sequence[AliasSpec], *, in_placement: bool) -> str:
    """Return why Nova refuses an alias; empty if it does not."""
    if not in_placement:
        return "" if all(spec.ids for spec in specs) else "needs vendor_id and product_id, as pci_in_placement is false"
    if len(specs) > 1:
        return (
            f"is there {len(specs)} times, which Nova refuses if devices are in Placement; give the devices one "
            f"resource_class, and the alias, too"
        )
    return "" if specs[0].resource_class else "needs vendor_id and product_id, or resource_class"


def _parse_request(text: str) -> Mapping[str, int]:
    """Return how many devices are asked for, by alias."""
    wanted: Counter[str] = Counter()
    for part in text.split(","):
        name, _, number = part.partition(":")
        if not re.fullmatch(r"\s*[1-9]\d{0,2}\s*", number, re.ASCII) or int(number) > MOST_DEVICES or not name.strip():
            raise ValueError(
                f"is {quote(text)}; give aliases with a number of 1 to {MOST_DEVICES} each, as in a100:2 or a100:1,l4:1"
            )
        wanted[name.strip()] += int(number)
    return wanted


def _class_of(name: str, ids: tuple[str, str] | None) -> str:
    if not name:
        return "CUSTOM_PCI_{}_{}".format(*ids).upper() if ids else ""
    upper = name.upper()
    known = upper in _STANDARD_CLASSES or re.fullmatch("CUSTOM_[A-Z0-9_]+", upper)
    return upper if known else _custom(upper)


def _traits_of(text: str) -> frozenset[str]:
    names = [name.strip().upper() for name in text.split(",")]
    return frozenset(name if _STANDARD_TRAITS.fullmatch(name) else _custom(name) for name in names if name)


def _custom(name: str) -> str:
    return "CUSTOM_" + re.sub("[^0-9A-Z]+", "_", name)
