# SPDX-License-Identifier: Apache-2.0
"""The resources of a template, as the simulated Heat makes them: parameters, groups, and templates among the files.

Of the functions it knows those that most templates have: ``get_param``, ``get_resource``, ``get_attr``, ``get_file``,
``str_replace`` of the whole text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from blazar.clouds.ports.stacks import PlannedResource, StackPlan, StackRefused
from blazar.model.base.values import dataclass, field

_GROUPS = {"OS::Heat::ResourceGroup": "resource_def", "OS::Heat::AutoScalingGroup": "resource"}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "OS::Nova::Server": {"key_name": None, "block_device_mapping": None, "block_device_mapping_v2": None},
    "OS::Cinder::Volume": {"size": None, "volume_type": None, "name": None},
    "OS::Neutron::FloatingIP": {"floating_network": None, "port_id": None},
}
_NOTHING = "OS::Heat::None"
_MOST = 1000
"""Maximum resources of a stack, as in Heat."""

_TEXTS = ("flavor", "key_name", "name")
"""Properties that are texts in Heat whatever a template has."""

_EMPTY = {"size": 0}
"""What properties have whose value only the run tells; the others have null."""

EXTERNAL = "external_id"
"""The property here of a resource that is there already: a stack neither makes nor deletes it."""

Where = tuple[str, ...]
"""The names of a resource and of those that it is part of."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The expansion of a plan. ``id_of`` returns the id of a resource, empty as long as there is none."""

    plan: StackPlan
    id_of: Callable[[Where], str] = lambda where: ""
    left: Iterator[int] = field(default_factory=lambda: iter(range(_MOST)))
    """One for each resource that may still be expanded, groups included: an empty one has no end otherwise."""
    read: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The templates among the files that were read."""

    def resources(self) -> tuple[tuple[Where, PlannedResource], ...]:
        """Return all resources with where they are; StackRefused."""
        given = {**_section(self.plan, "parameters"), **self.plan.parameters}
        defaults = _section(self.plan, "parameter_defaults")
        try:
            template: Mapping[str, Any] = self.plan.template
            if unknown := given.keys() - template.get("parameters", {}).keys():
                raise refuse_template(f"The Parameter ({min(unknown)}) was not defined in template.")
            return tuple(self._of_template(template, {**defaults, **given}, ()))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            # Heat checks each value, and says what is wrong with it; here, that something is.
            raise refuse_template(f"It cannot be read ({type(error).__name__}).") from error

    def _of_template(
        self, template: Mapping[str, Any], given: Mapping[str, object], where: Where
    ) -> Iterator[tuple[Where, PlannedResource]]:
        parameters = _parameters(template, given)
        for name, definition in template["resources"].items():
            yield from self._of_resource(definition, parameters, where, name)

    def _of_resource(
        self, definition: Mapping[str, Any], parameters: Mapping[str, object], within: Where, name: str
    ) -> Iterator[tuple[Where, PlannedResource]]:
        if next(self.left, None) is None:
            raise refuse_template("Maximum resources per stack exceeded.")
        where = (*within, name)
        kind = _section(self.plan, "resource_registry").get(definition["type"], definition["type"])
        properties = definition.get("properties", {})
        if kind in self.plan.files:
            yield from self._of_template(self._template(kind), self._resolve(properties, parameters, within), where)
        elif kind in _GROUPS:
            inner = properties[_GROUPS[kind]]
            count = self._resolve(
                properties.get("count", properties.get("desired_capacity", properties.get("min_size", 1))),
                parameters,
                within,
            )
            for index in range(int(count or 0)):
                member = json.loads(json.dumps(inner).replace("%index%", str(index)))
                yield from self._of_resource(member, parameters, where, str(index))
        elif kind == _NOTHING:
            # Whatever it is called, it has no properties.
            yield where, PlannedResource(name, definition["type"], {EXTERNAL: ""}, within[-1] if within else "")
        elif not kind.startswith("OS::"):
            raise refuse_template(f"The Resource Type ({kind}) could not be found.")
        else:
            found = {**_DEFAULTS.get(kind, {}), **self._resolve(properties, parameters, within)}
            found |= {key: str(found[key]) for key in _TEXTS if isinstance(found.get(key), int)}
            shown = {key: _EMPTY.get(key) if value is None else value for key, value in found.items()}
            # A size that was not given is null; one that the run tells is 0.
            shown |= {key: None for key in found if key not in properties}
            if "external_id" in definition:
                shown[EXTERNAL] = definition["external_id"]
            yield where, PlannedResource(name, definition["type"], shown, within[-1] if within else "")

    def _template(self, file: str) -> Mapping[str, Any]:
        """Return the template in a file, which is read once however many resources are of it."""
        if file not in self.read:
            self.read[file] = yaml.safe_load(self.plan.files[file])
        return self.read[file]

    def _resolve(self, value: Any, parameters: Mapping[str, object], within: Where) -> Any:
        if isinstance(value, list):
            return [self._resolve(part, parameters, within) for part in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            match function:
                case "get_param":
                    return _parameter(parameters, argument)
                case "get_resource":
                    return self.id_of((*within, argument))
                case "get_attr":
                    return None
                case "get_file":
                    return self.plan.files[argument]
                case "str_replace":
                    if isinstance(argument["template"], dict) and "get_resource" in argument["template"]:
                        # Heat checks a template before there is anything that has an id.
                        raise refuse_template('"str_replace" template must be a string')
                    found = self._resolve(argument, parameters, within)
                    if not isinstance(found["template"], str):
                        raise refuse_template('"str_replace" template must be a string')
                    return str(found["params"].get(found["template"], found["template"]))
        return {key: self._resolve(part, parameters, within) for key, part in value.items()}


def refuse_template(sentence: str) -> StackRefused:
    """Return the refusal of a template."""
    return StackRefused(f"Heat refused the template: {sentence}", sentence)


def _parameters(template: Mapping[str, Any], given: Mapping[str, object]) -> Mapping[str, object]:
    found = {}
    for name, schema in template.get("parameters", {}).items():
        value = given.get(name)
        if value is None and "default" not in schema:
            raise refuse_template(f"The Parameter ({name}) was not provided.")
        found[name] = schema["default"] if value is None else value
    return found


def _parameter(parameters: Mapping[str, object], argument: Any) -> object:
    name, *keys = argument if isinstance(argument, list) else [argument]
    if name not in parameters:
        raise refuse_template(f"The Parameter ({name}) was not defined in template.")
    found: Any = parameters[name]
    for key in keys:
        found = found[key]
    return found


def _section(plan: StackPlan, name: str) -> Mapping[str, Any]:
    found = plan.environment.get(name)
    return found if isinstance(found, dict) else {}
