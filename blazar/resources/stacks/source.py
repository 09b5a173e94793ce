# SPDX-License-Identifier: Apache-2.0
"""Checks a template with its files and environment before Heat sees any of it. Pure.

Heat's engine fetches whatever a type, or an entry of an environment, names by a URL. So every type has to be one of the
catalogue, or a template among the files of the request. Heat gets what was parsed here, not the text, so that it cannot
read anything else than what was checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, replace
from blazar.resources.contract.parameters import LONGEST_TEXT, quote
from blazar.resources.stacks.documents import (
    LARGEST,
    MOST_VALUES,
    Document,
    Path,
    check_text,
    iterate_values,
    parse_document,
    pointer_of,
    size_of,
)

SERVER = "OS::Nova::Server"
VOLUME = "OS::Cinder::Volume"
FLOATING_IP = "OS::Neutron::FloatingIP"
KEY_PAIR = "OS::Nova::KeyPair"

PRICED = frozenset({SERVER, VOLUME, FLOATING_IP})
"""Types that take something that can be reserved."""

AUTO_SCALING_GROUP = "OS::Heat::AutoScalingGroup"
RESOURCE_GROUP = "OS::Heat::ResourceGroup"

GROUPS = {AUTO_SCALING_GROUP: "resource", RESOURCE_GROUP: "resource_def"}
"""Types that make several resources of one definition, with the property that has the definition."""

NOTHING = "OS::Heat::None"
"""The type of a resource that is left out."""

FREE = frozenset(
    {
        KEY_PAIR,
        NOTHING,
        "OS::Cinder::VolumeAttachment",
        "OS::Heat::CloudConfig",
        "OS::Heat::Delay",
        "OS::Heat::RandomString",
        "OS::Heat::ScalingPolicy",
        "OS::Heat::SoftwareConfig",
        "OS::Heat::SoftwareDeployment",
        "OS::Heat::SoftwareDeploymentGroup",
        "OS::Heat::StructuredConfig",
        "OS::Heat::StructuredDeployment",
        "OS::Heat::StructuredDeploymentGroup",
        "OS::Heat::TestResource",
        "OS::Heat::Value",
        "OS::Heat::WaitCondition",
        "OS::Heat::WaitConditionHandle",
        "OS::Neutron::ExtraRoute",
        "OS::Neutron::ExtraRouteSet",
        "OS::Neutron::FloatingIPAssociation",
        "OS::Neutron::Net",
        "OS::Neutron::Port",
        "OS::Neutron::Router",
        "OS::Neutron::RouterInterface",
        "OS::Neutron::SecurityGroup",
        "OS::Neutron::SecurityGroupRule",
        "OS::Neutron::Subnet",
        "OS::Neutron::Trunk",
        "OS::Nova::ServerGroup",
    }
)
"""Types that take nothing but quota of the project."""

KNOWN = PRICED | FREE | GROUPS.keys()


TEMPLATE, FILES, ENVIRONMENT, PARAMETERS = "template", "files", "environment", "parameters"

MOST_FILES = 100

MOST_LEVELS = 5
"""Maximum templates inside each other; Heat has the same limit."""

MOST_RESOURCES = 1000
"""Maximum resources of all templates together, groups counted as one; Heat has the same limit."""

VERSION = "heat_template_version"

_SECTIONS = ("parameters", "parameter_defaults", "resource_registry")
_TEMPLATES = (".yaml", ".template")
AT_RUN_TIME = frozenset({"get_attr", "get_resource"})
"""Functions whose values Heat knows when the stack runs."""

_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:(?!:)|\s*//")
"""Matches what begins like a URL; not the two colons of the name of a type."""


@dataclass(frozen=True, slots=True)
class StackSource:
    """What Heat makes a stack of, checked: JSON objects, the templates among the files by name, and the other files."""

    template: Json
    templates: Mapping[str, Json]
    files: Mapping[str, str]
    environment: Json
    parameters: Json

    @classmethod
    def checked(cls, given: Json) -> StackSource:
        """Return the source in a request; InvalidInput says what cannot be, and where."""
        if given.get(TEMPLATE) is None:
            raise InvalidInput(
                f"Missing parameter {TEMPLATE} (a stack needs a template of Heat, as YAML text or as an object)"
            )
        return _Check(given).checked_source()

    @property
    def at_largest(self) -> StackSource:
        """Return the same with all groups that scale as large as they may be."""
        templates = {name: _scale_to_largest(template) for name, template in self.templates.items()}
        return replace(self, template=_scale_to_largest(self.template), templates=templates)

    @property
    def left_out(self) -> frozenset[str]:
        """Return the types of which nothing is made, as the environment says."""
        registry = self.environment.get("resource_registry")
        found = registry.items() if isinstance(registry, Mapping) else ()
        return frozenset(name for name, target in found if target == NOTHING)

    @property
    def texts(self) -> Mapping[str, str]:
        """Return all files; those that are templates as JSON, which is YAML, too."""
        return {**self.files, **{name: json.dumps(template) for name, template in self.templates.items()}}


@dataclass(frozen=True, slots=True)
class _Place:
    """A template, what sentences call it, and the files whose templates it is within, itself included."""

    document: Document
    name: str
    within: tuple[str, ...] = ()


class _Check:
    """One check, with what it has seen so far."""

    def __init__(self, given: Json) -> None:
        self._left = MOST_VALUES
        self._template = self._parse_document(given[TEMPLATE], TEMPLATE)
        self._files = _checked_files(given.get(FILES))
        self._environment = self._parse_field(given, ENVIRONMENT)
        self._parameters = self._parse_field(given, PARAMETERS)
        self._registry: Mapping[str, str] = {}
        self._nested: dict[str, Document] = {}
        self._resources = 0
        size = sum(size_of(name) + size_of(text) for name, text in self._files.items())
        size += sum(size_of(json.dumps(d.value)) for d in (self._template, self._environment, self._parameters))
        if size > LARGEST:
            raise InvalidInput(
                f"{TEMPLATE}, {FILES}, {ENVIRONMENT} and {PARAMETERS} have {size // 1024} KiB together; give at most "
                f"{LARGEST // 1024} KiB",
                at=f"/{TEMPLATE}",
            )

    def checked_source(self) -> StackSource:
        self._registry = _templates_by_type(self._environment, self._files)
        self._check_functions(self._template, TEMPLATE)
        self._check_template(_Place(self._template, TEMPLATE))
        for target in self._registry.values():
            if target != NOTHING:
                self._check_file(target, ())
        return StackSource(
            self._template.value,
            {name: nested.value for name, nested in self._nested.items()},
            {name: text for name, text in self._files.items() if name not in self._nested},
            {key: value for key, value in self._environment.value.items() if value is not None},
            self._parameters.value,
        )

    def _parse_field(self, given: Json, field: str) -> Document:
        value = given.get(field)
        return self._parse_document({} if value is None else value, field)

    def _parse_document(self, given: object, name: str, pointer: str | None = None) -> Document:
        """Return a document; those of a request have one limit of values together."""
        pointer = f"/{name}" if pointer is None else pointer
        found = parse_document(given, name=name, pointer=pointer)
        self._left -= found.size
        if self._left < 0:
            raise InvalidInput(
                f"{TEMPLATE}, {FILES}, {ENVIRONMENT} and {PARAMETERS} have more than {MOST_VALUES} values together, "
                f"those behind aliases included; make {name} smaller",
                at=pointer,
            )
        return found

    def _check_functions(self, found: Document, name: str) -> None:
        """Check that every ``get_file`` names a file."""
        for path, value in iterate_values(found.value):
            if not isinstance(value, dict) or "get_file" not in value:
                continue
            wanted, pointer = value["get_file"], found.pointer_at((*path, "get_file"))
            where = f"get_file of {name} (at {pointer_of(path)})"
            if not isinstance(wanted, str):
                raise InvalidInput(f"{where} is {quote(wanted)}; give the name of one of the files", at=pointer)
            _refuse_scheme(wanted, f"{where} is", pointer)
            if wanted not in self._files:
                raise InvalidInput(f"{where} is {quote(wanted)}, which {FILES} does not have", at=pointer)

    def _check_template(self, place: _Place) -> None:
        found, name = place.document, place.name
        if not isinstance(found.value.get(VERSION), str):
            raise InvalidInput(
                f"{name} has no {VERSION}; give a template in Heat's own format, as with {VERSION}: 2018-08-31",
                at=found.pointer_at(),
            )
        resources = found.value.get("resources")
        if not isinstance(resources, dict):
            raise InvalidInput(f"{name} has no resources; give it an object of them", at=found.pointer_at())
        for resource, definition in resources.items():
            self._check_resource(definition, resource, place, ("resources", resource))

    def _check_resource(self, definition: object, resource: str, place: _Place, path: Path) -> None:
        found, what = place.document, f"resource {quote(resource)} of {place.name}"
        self._resources += 1
        if self._resources > MOST_RESOURCES:
            raise InvalidInput(
                f"the templates have more than {MOST_RESOURCES} resources, those of files counted wherever they are "
                f"used; make several stacks",
                at=f"/{TEMPLATE}",
            )
        kind = definition.get("type") if isinstance(definition, dict) else None
        if not isinstance(definition, dict) or not isinstance(kind, str):
            raise InvalidInput(
                f"{what} has the type {quote(kind)}; give the name of a type as it is, without a function",
                at=found.pointer_at(path),
            )
        where = found.pointer_at((*path, "type"))
        _refuse_scheme(kind, f"{what} has the type", where)
        target = self._registry.get(kind, kind)
        if target.endswith(_TEMPLATES):
            if target not in self._files:
                raise InvalidInput(
                    f"{what} has the type {quote(kind)}, which {FILES} does not have; give its text there", at=where
                )
            self._check_file(target, place.within)
        elif target not in KNOWN:
            raise InvalidInput(
                f"{what} cannot be priced: nothing is known of what type {quote(kind)} takes; leave it out, or make "
                f"it without a lease",
                at=where,
            )
        elif target in GROUPS:
            self._check_group(definition, resource, place, path)

    def _check_group(self, definition: Json, resource: str, place: _Place, path: Path) -> None:
        what = f"resource {quote(resource)} of {place.name}"
        kind, where = str(definition["type"]), (*path, "properties")
        properties, key = definition.get("properties"), GROUPS[kind]
        inner = properties.get(key) if isinstance(properties, dict) else None
        if not isinstance(properties, dict) or not isinstance(inner, dict):
            raise InvalidInput(
                f"{what} needs {key} in its properties, an object with a type, without a function around it",
                at=place.document.pointer_at(where),
            )
        if kind == AUTO_SCALING_GROUP and properties.get("max_size") is None:
            raise InvalidInput(
                f"{what} cannot be priced: it has no max_size; give the most members that it may have",
                at=place.document.pointer_at(where),
            )
        for bound in ("max_size", "count"):
            if any(isinstance(e, dict) and e.keys() & AT_RUN_TIME for _, e in iterate_values(properties.get(bound))):
                raise InvalidInput(
                    f"{what} cannot be priced: its {bound} is only known when it runs; give a number or a parameter",
                    at=place.document.pointer_at((*where, bound)),
                )
        self._check_resource(inner, f"{resource}.{key}", place, (*where, key))

    def _check_file(self, file: str, within: tuple[str, ...]) -> None:
        pointer, name = f"/{FILES}{pointer_of((file,))}", f"file {quote(file)}"
        if file in within:
            raise InvalidInput(f"{name} is a template that uses itself", at=pointer)
        if len(within) + 1 >= MOST_LEVELS:
            raise InvalidInput(f"{name} is more than {MOST_LEVELS} templates deep; make it flatter", at=pointer)
        if file not in self._nested:
            self._nested[file] = self._parse_document(self._files[file], name, pointer)
            self._check_functions(self._nested[file], name)
        self._check_template(_Place(self._nested[file], name, (*within, file)))


def _scale_to_largest(value: Any) -> Any:
    """Return a part of a template with each group that scales at its maximum."""
    if isinstance(value, list):
        return [_scale_to_largest(part) for part in value]
    if not isinstance(value, dict):
        return value
    made = {key: _scale_to_largest(part) for key, part in value.items()}
    if made.get("type") == AUTO_SCALING_GROUP and isinstance(made.get("properties"), dict):
        made["properties"]["desired_capacity"] = made["properties"].get("max_size")
    return made


def _templates_by_type(environment: Document, files: Mapping[str, str]) -> Mapping[str, str]:
    """Return the templates, or NOTHING, by the types that an environment has them stand for."""
    for section, content in environment.value.items():
        where = environment.pointer_at((section,))
        if section not in _SECTIONS:
            raise InvalidInput(
                f"{ENVIRONMENT} has {quote(section)}; a stack of a lease can have {', '.join(_SECTIONS)} there",
                at=where,
            )
        if content is not None and not isinstance(content, dict):
            raise InvalidInput(f"{section} of {ENVIRONMENT} is not an object", at=where)
    registry = environment.value.get("resource_registry")
    if not isinstance(registry, dict):
        return {}
    for name, target in registry.items():
        where, what = environment.pointer_at(("resource_registry", name)), f"resource_registry of {ENVIRONMENT}"
        if not isinstance(target, str) or name in ("base_url", "resources") or "*" in name:
            raise InvalidInput(
                f"{what} has {quote(name)}; give whole names of types, each with the name of a template in {FILES}",
                at=where,
            )
        _refuse_scheme(name, f"{what} has", where)
        _refuse_scheme(target, f"{what} has, for {quote(name)},", where)
        if target != NOTHING and not (target.endswith(_TEMPLATES) and target in files):
            raise InvalidInput(
                f"{what} has, for {quote(name)}, {quote(target)}; give a name that {FILES} has and that ends with "
                f"{' or '.join(_TEMPLATES)}, or {NOTHING}: another type would hide what it takes",
                at=where,
            )
    return registry


def _checked_files(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidInput(f"{FILES} is not an object; give texts by name", at=f"/{FILES}")
    if len(given) > MOST_FILES:
        raise InvalidInput(f"{FILES} has {len(given)} files; give at most {MOST_FILES}", at=f"/{FILES}")
    for name, text in given.items():
        pointer = f"/{FILES}{pointer_of((name,))}"
        check_text(name, name=f"a name in {FILES}", pointer=pointer)
        if not name or len(name) > LONGEST_TEXT:
            raise InvalidInput(f"{FILES} has the name {quote(name)}; give 1 to {LONGEST_TEXT} characters", at=pointer)
        _refuse_scheme(name, f"{FILES} has the name", pointer)
        if not isinstance(text, str):
            raise InvalidInput(f"{FILES} has {quote(name)}, which is no text; give its text", at=pointer)
        check_text(text, name=f"file {quote(name)}", pointer=pointer)
    return given


def _refuse_scheme(text: str, what: str, pointer: str) -> None:
    if _SCHEME.match(text):
        raise InvalidInput(
            f"{what} {quote(text)}; nothing is fetched for a stack: give a plain name, and its text in {FILES} under "
            f"that name",
            at=pointer,
        )
