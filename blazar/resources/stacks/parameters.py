# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of a stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.model.leases.reservation import Content
from blazar.model.leases.secrets import HIDDEN, seal, split_off_secrets, unseal
from blazar.resources.contract.actions import BEFORE_END, checked_action
from blazar.resources.contract.parameters import quote, whole_number
from blazar.resources.contract.schemas import Schema, a_choice, a_request
from blazar.resources.contract.values import Action
from blazar.resources.stacks.documents import iterate_values
from blazar.resources.stacks.pricing import AddressPrice, ServerPrice, StackPrice, VolumePrice
from blazar.resources.stacks.source import ENVIRONMENT, FILES, PARAMETERS, TEMPLATE, StackSource

NAME, TIMEOUT, TAKES = "stack_name", "timeout_mins", "takes"
MOST_MINUTES = 1440
_DOCUMENTS = (TEMPLATE, FILES, ENVIRONMENT, PARAMETERS)
_SECTIONS = ("parameters", "parameter_defaults")
_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,254}")


@dataclass(frozen=True, slots=True)
class Takes:
    """What a stack takes: its price, the ids of its flavors, the resource of each address, and the names of key pairs.

    Flavors and addresses are in the order of the price.
    """

    price: StackPrice
    flavor_ids: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Any) -> Takes:
        """Return what a reservation keeps."""
        price = StackPrice(
            tuple(ServerPrice(server["flavor"], server["amount"]) for server in values["servers"]),
            tuple(VolumePrice(volume["volume_type"], volume["size"], volume["amount"]) for volume in values["volumes"]),
            tuple(AddressPrice(address["network_id"], len(address["resources"])) for address in values["addresses"]),
        )
        names = tuple(name for address in values["addresses"] for name in address["resources"])
        flavor_ids = tuple(server["flavor_id"] for server in values["servers"])
        return cls(price, flavor_ids, names, tuple(values["key_pairs"]))

    @property
    def values(self) -> Json:
        """Return it as a reservation keeps and shows it."""
        left = iter(self.addresses)
        return {
            "servers": [
                {"flavor": price.flavor, "flavor_id": flavor_id, "amount": price.amount}
                for price, flavor_id in zip(self.price.servers, self.flavor_ids, strict=True)
            ],
            "volumes": [
                {"volume_type": volume.volume_type, "size": volume.size_gb, "amount": volume.amount}
                for volume in self.price.volumes
            ],
            "addresses": [
                {"network_id": address.network, "resources": [next(left) for _ in range(address.amount)]}
                for address in self.price.addresses
            ],
            "key_pairs": list(self.keys),
        }


@dataclass(frozen=True, slots=True)
class StackParameters:
    """The parameters that a reservation keeps; ``values`` are all of them, with what is secret."""

    values: Json

    @classmethod
    def checked(cls, given: Json, source: StackSource, takes: Takes) -> StackParameters:
        """Return the parameters of a request; InvalidInput names the field."""
        name, timeout = given.get(NAME), given.get(TIMEOUT)
        if name is not None and not (isinstance(name, str) and _STACK_NAME.fullmatch(name)):
            raise InvalidInput(
                f"{NAME} is {quote(name)}; give a letter and up to 254 letters, digits, '_', '.' or '-'", at=f"/{NAME}"
            )
        if timeout is not None and whole_number(timeout, TIMEOUT, least=1, what="minutes") > MOST_MINUTES:
            raise InvalidInput(f"{TIMEOUT} is {timeout}; give at most {MOST_MINUTES} minutes", at=f"/{TIMEOUT}")
        action = checked_action({BEFORE_END: "default", **given})
        if action == Action.MIGRATION:
            raise InvalidInput(
                f"{BEFORE_END} is {action!r}, which moves servers of hosts; use 'snapshot', 'notification' or 'none'",
                at=f"/{BEFORE_END}",
            )
        documents = {**{key: given.get(key) for key in _DOCUMENTS}, TAKES: takes.values}
        shown, secret = split_off_secrets(documents, mask_hidden(documents, source))
        kept = {NAME: name, TIMEOUT: timeout, BEFORE_END: action}
        return cls(seal({**shown, **kept}, secret))

    @property
    def source(self) -> StackSource:
        """Return what the stack is made of."""
        return StackSource.checked(unseal(self.values))

    @property
    def takes(self) -> Takes:
        """Return what the stack takes."""
        return Takes.of(unseal(self.values)[TAKES])

    @property
    def given_name(self) -> str | None:
        """Return the name that the stack was given; None if it is to have one of ours."""
        name = self.values.get(NAME)
        return name if isinstance(name, str) else None

    def name(self, reservation_id: str) -> str:
        """Return the name of the stack."""
        return self.given_name or f"reservation-{reservation_id}"

    @property
    def timeout(self) -> int | None:
        """Return after how many minutes Heat gives up; None for its default."""
        timeout = self.values.get(TIMEOUT)
        return timeout if isinstance(timeout, int) else None

    @property
    def action(self) -> str:
        """Return the action before the end, as given."""
        return str(self.values[BEFORE_END])

    @classmethod
    def of(cls, content: Content) -> StackParameters:
        """Return the parameters that a reservation keeps."""
        return cls(content.values)

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        return Content(self.values)


def hidden_names(source: StackSource) -> frozenset[str]:
    """Return the parameters that the template, or one among its files, says are hidden.

    Defaults in an environment are for the templates among the files, too.
    """
    sections = [template.get("parameters") for template in (source.template, *source.templates.values())]
    found = [item for section in sections if isinstance(section, Mapping) for item in section.items()]
    return frozenset(name for name, schema in found if isinstance(schema, Mapping) and schema.get("hidden"))


def hidden_parts(source: StackSource) -> frozenset[str]:
    """Return the values of hidden parameters, and all that is in them."""
    hidden = hidden_names(source)
    sections = [source.parameters, *(source.environment.get(name) for name in _SECTIONS)]
    given = [section[name] for section in sections if isinstance(section, Mapping) for name in hidden & section.keys()]
    # Heat may tell a part of a list or an object, also its keys.
    inside = [part for value in given for part in iterate_values(value)]
    keys = (key for path, _ in inside for key in path[-1:] if isinstance(key, str))
    return frozenset(str(part) for _, part in inside) | frozenset(keys)


def mask_hidden(given: Json, source: StackSource) -> Json:
    """Return parameters as anybody may see them: without the values of hidden ones, also in what the stack takes."""
    hidden = hidden_names(source)
    environment = {
        key: _hide_values(value, hidden) if key in _SECTIONS and isinstance(value, Mapping) else value
        for key, value in source.environment.items()
    }
    # What has nothing to hide is shown as it was given, a text as a text.
    found: dict[str, tuple[Any, Any]] = {
        PARAMETERS: (source.parameters, _hide_values(source.parameters, hidden)),
        ENVIRONMENT: (source.environment, environment),
    }
    if TAKES in given:
        found[TAKES] = given[TAKES], _hide_names(given[TAKES], hidden_parts(source))
    return {**given, **{key: after for key, (before, after) in found.items() if before != after}}


def _hide_values(values: Json, hidden: frozenset[str]) -> Json:
    return {key: HIDDEN if key in hidden else value for key, value in values.items()}


def _hide_names(taken: Any, hidden: frozenset[str]) -> Any:
    """Return what a stack takes with the names masked that only a hidden parameter says."""
    if isinstance(taken, Mapping):
        return {key: _hide_names(value, hidden) for key, value in taken.items()}
    if isinstance(taken, list):
        return [_hide_names(value, hidden) for value in taken]
    return HIDDEN if isinstance(taken, str) and taken in hidden else taken


_YAML = "application/yaml"
_DOCUMENT: Schema = {"type": ["object", "string", "null"], "contentMediaType": _YAML, "default": None}

SCHEMA = a_request(
    {
        "template": {
            "type": ["object", "string"],
            "contentMediaType": _YAML,
            "title": "Template",
            "description": "a template of Heat, as YAML text or as an object",
        },
        "files": {
            "type": ["object", "null"],
            "additionalProperties": {
                "type": "string",
                "contentMediaType": "text/plain",
                "description": "the text of the file",
            },
            "title": "Files",
            "description": "the texts of files that the template names, by name",
            "default": None,
        },
        "environment": {**_DOCUMENT, "title": "Environment", "description": "an environment of Heat"},
        "parameters": {**_DOCUMENT, "title": "Parameters", "description": "values of parameters, by name"},
        "stack_name": {
            "type": ["string", "null"],
            "maxLength": 255,
            "title": "Name",
            "description": "a name that no other stack of the project has, or null",
            "default": None,
        },
        "timeout_mins": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": 1440,
            "title": "Minutes to make it",
            "description": "a whole number of minutes, or null",
            "default": None,
        },
        "before_end": a_choice("default", "none", "notification", "snapshot", title="At the end"),
    },
    required=("template",),
    fixed=("template", "files", "environment", "parameters", "stack_name", "timeout_mins", "before_end"),
    example={
        "template": {
            "heat_template_version": "2018-08-31",
            "resources": {
                "web": {"type": "OS::Nova::Server", "properties": {"flavor": "m1.small", "image": "ubuntu"}},
            },
        },
        "stack_name": "web",
    },
)
