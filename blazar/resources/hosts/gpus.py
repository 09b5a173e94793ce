# SPDX-License-Identifier: Apache-2.0
"""GPUs of servers that are asked for by size: how many, and of which model. Operators say what a model is in the cloud.

A model is a PCI alias or a resource class, so that its cards are those that flavors get, and the calendar counts both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.cards import Cards
from blazar.model.leases.reservation import Content
from blazar.model.resources.pools import SIZES
from blazar.resources.contract.parameters import quote, stored_number, stored_text, whole_number
from blazar.resources.contract.schemas import Schema
from blazar.resources.hosts.cards import ALIAS, check_devices, format_cards, parse_cards, resolve_cards
from blazar.resources.hosts.pci_aliases import MOST_DEVICES, NO_ALIASES, PciAliases

GPUS, MODEL, MEANING = "gpus", "gpu_model", "gpu_meaning"
FIELDS = (GPUS, MODEL)

SCHEMAS: Schema = {
    GPUS: {
        "type": "integer",
        "minimum": 0,
        "maximum": MOST_DEVICES,
        "title": "GPUs of each",
        "description": f"a whole number from 0 to {MOST_DEVICES}",
        "default": 0,
    },
    MODEL: {
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": 64,
        "title": "GPU model",
        "description": "the name of a model that the service has, or null",
        "default": None,
    },
}

_NAME = re.compile(r"[A-Za-z0-9_. -]{1,64}")
_CLASS = re.compile(r"[A-Z0-9_]{1,255}")


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of one server, with what their model meant when it was chosen: extra specs, and cards of aliases."""

    count: int = 0
    model: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict, hash=False)
    cards: tuple[Cards, ...] = ()

    @classmethod
    def of(cls, content: Content) -> Gpus:
        """Return those that a reservation keeps."""
        if GPUS not in content.values:
            return NO_GPUS
        meaning: Any = content.values[MEANING]
        specs, cards = dict(meaning["extra_specs"]), parse_cards(meaning["cards"])
        return cls(stored_number(content, GPUS), stored_text(content, MODEL), specs, cards)

    @property
    def values(self) -> Json:
        """Return them as a reservation keeps them; nothing, if there are none."""
        if not self.count:
            return {}
        meaning = {"extra_specs": dict(self.extra_specs), "cards": format_cards(self.cards)}
        return {GPUS: self.count, MODEL: self.model, MEANING: meaning}

    def add_to(self, flavor: Flavor) -> Flavor:
        """Return a flavor whose servers get them."""
        specs = {**flavor.extra_specs, **self.extra_specs}
        return replace(flavor, extra_specs=specs, cards=(*flavor.cards, *self.cards))


NO_GPUS = Gpus()


class GpuParameters:
    """Parameters of servers of a size, of which each has GPUs."""

    __slots__ = ()
    gpus_of_each: Gpus

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of a server, beside those of a flavor."""
        return self.gpus_of_each.count

    @property
    def gpu_model(self) -> str | None:
        """Return the model of these GPUs."""
        return self.gpus_of_each.model


@dataclass(frozen=True, slots=True)
class GpuModels:
    """The models that requests may name, in order: each is an alias or a class, as ``alias/a100`` or ``class/VGPU``."""

    sources: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    aliases: PciAliases = NO_ALIASES

    @classmethod
    def of(cls, given: Mapping[str, str], aliases: PciAliases) -> GpuModels:
        """Return the models of the configuration. InvalidInput says what is wrong with one."""
        found = {}
        for model, source in given.items():
            way, _, name = source.partition("/")
            if wrong := _find_wrong(model, way, name, aliases):
                raise InvalidInput(f"[nova] gpu_models: {quote(model)} {wrong}")
            found[model] = (way, name)
        return cls(found, aliases)

    @property
    def names_of_specs(self) -> frozenset[str]:
        """Return the extra specs that models stand for."""
        return frozenset(name for way, of in self.sources.values() for name in _make_specs(way, of, 1))

    def check(self, given: Json, kept: Gpus = NO_GPUS) -> Gpus:
        """Return the GPUs of a request; what is ``kept`` and does not change means what it did. InvalidInput."""
        asked, model = given.get(GPUS), given.get(MODEL)
        what = "how many GPUs a server has, a whole number"
        count = 0 if asked is None else whole_number(asked, GPUS, least=0, most=MOST_DEVICES, what=what)
        if model is not None and not isinstance(model, str):
            raise _refusal(MODEL, f"is {quote(model)}; give {self._say_choice()}")
        if (count, model) == (kept.count, kept.model):
            return kept
        if not count:
            if model and model != kept.model:
                raise _refusal(GPUS, f"is missing, and {MODEL} is {quote(model)}; give both, or none of them")
            return NO_GPUS
        if not model:
            raise _refusal(MODEL, f"is missing, and {GPUS} is {count}; give {self._say_choice()}")
        return self._choose(model, count)

    def _choose(self, model: str, count: int) -> Gpus:
        if model not in self.sources:
            raise _refusal(MODEL, f"is {quote(model)}; give {self._say_choice()}")
        specs = _make_specs(*self.sources[model], count)
        try:
            cards = self.aliases.cards_of(specs[ALIAS]) if ALIAS in specs else ()
        except ValueError as error:
            raise _refusal(MODEL, f"is {quote(model)}, which cannot be reserved: its PCI alias {error}") from error
        return Gpus(count, model, specs, cards)

    def show_in(self, schema: Schema) -> Schema:
        """Return the schema of a request with these models as the choice; without the fields if there are none."""
        rest = {name: one for name, one in schema["properties"].items() if name not in FIELDS}
        if not self.sources:
            return {**schema, "properties": rest}
        properties = dict(schema["properties"])
        choice = {"enum": [*self.sources, None], "description": f"{self._say_choice()}, or null"}
        texts = ("type", "minLength", "maxLength")
        plain = {key: value for key, value in properties[MODEL].items() if key not in texts}
        return {**schema, "properties": {**properties, MODEL: {**plain, **choice}}}

    def _say_choice(self) -> str:
        if not self.sources:
            return "null, and no gpus: the operator of this service offers no model"
        *first, last = self.sources
        return f"one of {', '.join(first)} and {last}" if first else f"{last}, which is the only one"


NO_MODELS = GpuModels()


def _refusal(field_: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field_} {why}", at=f"/{field_}")


def _make_specs(way: str, name: str, count: int) -> Mapping[str, str]:
    # All of a class from one provider: Nova's driver looks at one allocation of it only.
    return {ALIAS: f"{name}:{count}"} if way == "alias" else {f"resources:{name}": str(count)}


def _find_wrong(model: str, way: str, name: str, aliases: PciAliases) -> str:
    """Return why a model cannot be offered; empty if it can."""
    if not _NAME.fullmatch(model):
        return "is no name of a model; give 1 to 64 letters, digits, blanks and . _ -"
    match way:
        case "alias":
            return "" if name in aliases.specs else f"is the alias {quote(name)}, which is not in [nova] pci_alias"
        case "class":
            return _find_wrong_class(name, aliases)
        case "profile":
            return "is a device profile, whose accelerators cannot be reserved; offer an alias or a class"
    return "is neither alias/NAME nor class/NAME, as in A100:alias/a100"


def _find_wrong_class(name: str, aliases: PciAliases) -> str:
    if not _CLASS.fullmatch(name) or name in SIZES or name.startswith(CLASS_PREFIX):
        return f"is the class {quote(name)}, which is none of GPUs; give one as VGPU or CUSTOM_GPU_A100"
    flavor = resolve_cards(Flavor("", "", 1, 1, 0, extra_specs={f"resources:{name}": "1"}), aliases)
    try:
        check_devices(flavor, aliases)
    except InvalidInput:
        return f"is the class {name} of PCI devices, which servers get by their alias only; offer alias/NAME"
    return ""
