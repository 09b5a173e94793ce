# SPDX-License-Identifier: Apache-2.0
"""Commands about resources of any kind: which kinds there are, and what is registered, changed and taken away."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blazarclient import exception, times
from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, now_in, plain
from blazarclient.requirement_text import add_requirement, read_requirements

if TYPE_CHECKING:
    from blazarclient.library import RegisteredResource

CONDITIONS = ("ok", "disabled", "failed")
COLUMNS = ("id", "name", "reservable", "capacity", "properties")
LONG = ("label", "attributes", "condition", "reason", "until", "authorized_projects")
REGION = "region"
SHOWN = ("id", "kind", *COLUMNS[1:], *LONG)


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return values by name of texts such as ``gpu=A100``. CommandError."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise exception.CommandError(f"{option} {text!r} is no pair; write it as name=value", code=400)
        found[name] = value
    return found


def row(resource: RegisteredResource) -> dict[str, Any]:
    """Return the values of a resource by column."""
    trouble = resource.failure or resource.disabled
    return {
        **{name: getattr(resource, name, None) for name in SHOWN},
        "condition": "failed" if resource.failure else "disabled" if resource.disabled else "ok",
        "reason": trouble.reason if trouble else None,
        "until": resource.disabled.until if resource.disabled else None,
        REGION: resource.attributes.get(REGION),
    }


class _OfKind(LibraryCommand):
    resource = "resource"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("kind", metavar="<kind>", help="kind of resource, such as host: see resource types")
        return parser

    def cells(
        self, values: Mapping[str, Any], columns: Sequence[str], parsed_args: argparse.Namespace
    ) -> tuple[Any, ...]:
        """Return the values of columns for the output that was asked for."""
        zone = times.zone(parsed_args.timezone)
        return tuple(
            ", ".join(f"{key}={item}" for key, item in values[column].items())
            if isinstance(values[column], Mapping) and not self.structured(parsed_args)
            else self.cell(values[column], zone, parsed_args)
            for column in columns
        )


class _OneOfKind(_OfKind, One):
    answers = SHOWN

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def fields(self, kind_name: str, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return fields of a registration as the kind has them. CommandError."""
        kind = {each.name: each for each in self.library.kinds()}.get(kind_name)
        known = kind.registration.get("properties", {}) if kind else {}
        return {name: _value(name, text, known.get(name, {})) for name, text in texts.items()}

    def told(self, resource: RegisteredResource, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return what is known of a resource."""
        return [SHOWN, self.cells(row(resource), SHOWN, parsed_args)]


class ListKinds(Rows):
    """List the kinds of resources, the types of reservations that take them, and how one is registered"""

    resource = "kind"

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for them."""
        found = self.library.kinds()
        if self.structured(parsed_args):
            keys = ("name", "noun", "nouns", "resource_types", "registration", "attributes", "parameters")
            return keys, [tuple(plain(getattr(each, key)) for key in keys) for each in found]
        return ("name", "resource_types", "fields"), [
            (each.name, ", ".join(each.resource_types), ", ".join(each.registration.get("properties", {})))
            for each in found
        ]


class ListCandidates(_OfKind, Rows):
    """List what the cloud has of a kind, registered or not, with the fields that register it"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--registered", action="store_true", default=None, help="only those that can be reserved")
        which.add_argument("--unregistered", action="store_false", dest="registered", help="only those that cannot")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for them."""
        found = list(self.library.resources(parsed_args.kind).candidates(registered=parsed_args.registered))
        regions = (REGION,) if any(each.region for each in found) else ()
        columns = ("name", "state", "resource_id", "registration", *regions)
        return columns, [self.cells({c: getattr(each, c) for c in columns}, columns, parsed_args) for each in found]


class ListResources(_OfKind, Rows):
    """List the resources of a kind"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--condition", choices=CONDITIONS, help="only resources in this condition")
        parser.add_argument("--text", metavar="<text>", help="only resources with this in their names")
        parser.add_argument(
            "--property",
            metavar="<name>=<value>",
            action="append",
            default=[],
            help="only resources with this value of an attribute or a property (may be repeated)",
        )
        add_requirement(parser, "resources")
        parser.add_argument("--limit", metavar="<n>", type=int, help="most resources (default: all)")
        parser.add_argument("--long", action="store_true", help="show attributes, condition and why, too")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for them."""
        if parsed_args.limit is not None and parsed_args.limit < 1:
            raise exception.CommandError("--limit is at least 1", code=400)
        filters = {
            "condition": parsed_args.condition,
            "text": parsed_args.text,
            "requirement": read_requirements(parsed_args.requirement),
            "property": [f"{name}:{value}" for name, value in pairs(parsed_args.property, "--property").items()],
        }
        asked = {key: value for key, value in filters.items() if value}
        columns = (*COLUMNS, *LONG) if parsed_args.long else COLUMNS
        found: list[RegisteredResource] = []
        for each in self.library.resources(parsed_args.kind).list(**asked):
            if len(found) == parsed_args.limit:
                self.tell(f"There are more than {parsed_args.limit}; --limit shows more.")
                break
            found.append(each)
        # It is an attribute where the service has several regions.
        if parsed_args.long and any(REGION in each.attributes for each in found):
            columns = (*columns, REGION)
        return columns, [self.cells(row(each), columns, parsed_args) for each in found]


class ShowResource(_OneOfKind):
    """Show a resource"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<resource>", help="id or name of the resource")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Ask for it."""
        return self.told(self.library.resources(parsed_args.kind).find(parsed_args.id), parsed_args)


class RegisterResource(_OneOfKind):
    """Register a resource, so that it can be reserved"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "fields", metavar="<field>=<value>", nargs="+", help="what names it, such as name=cn12: see resource types"
        )
        parser.add_argument(
            "--property", metavar="<name>=<value>", action="append", default=[], help="property (may be repeated)"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Register it."""
        times.zone(parsed_args.timezone)
        properties = pairs(parsed_args.property, "--property")
        given = self.fields(parsed_args.kind, pairs(parsed_args.fields, "The field"))
        made = self.library.resources(parsed_args.kind).register(given, properties=properties)
        return self.told(made, parsed_args)


def _value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Return a value as the schema has it: a text where it may be one, else what the text is in JSON. CommandError."""
    kinds = schema.get("type", "string")
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise exception.CommandError(f"{name} is {text!r}; give it in JSON", code=400) from None


class SetResource(_OneOfKind):
    """Change a resource: its properties, whether it takes new leases, and the projects that may reserve it"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<resource>", help="id or name of the resource")
        parser.add_argument(
            "--property", metavar="<name>=<value>", action="append", default=[], help="property (may be repeated)"
        )
        parser.add_argument(
            "--no-property",
            metavar="<name>",
            action="append",
            default=[],
            help="property to remove (may be repeated)",
        )
        parser.add_argument(
            "--field",
            metavar="<field>=<value>",
            action="append",
            default=[],
            help="field of its registration that its kind lets be changed, such as capacity=4 of a generic resource "
            "(may be repeated)",
        )
        use = parser.add_mutually_exclusive_group()
        use.add_argument("--disable", action="store_true", help="have it take no new leases")
        use.add_argument("--enable", action="store_true", help="have it take leases again")
        parser.add_argument("--reason", metavar="<text>", help="with --disable: why, for other operators")
        parser.add_argument(
            "--until", metavar="<time>", help="with --disable: when it takes leases again by itself, such as +3d"
        )
        projects = parser.add_mutually_exclusive_group()
        projects.add_argument(
            "--project",
            metavar="<id>",
            action="append",
            help="project that may reserve it (may be repeated)",
        )
        projects.add_argument("--all-projects", action="store_true", help="let all projects reserve it")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Change it."""
        change, fields = self._change(parsed_args), pairs(parsed_args.field, "--field")
        if not change and not fields:
            raise exception.CommandError("Nothing to change; give at least one option", code=400)
        resources = self.library.resources(parsed_args.kind)
        given = self.fields(parsed_args.kind, fields) if fields else {}
        found = resources.find(parsed_args.id).id
        made = resources.change_attributes(found, given, **change) if given else resources.change(found, **change)
        return self.told(made, parsed_args)

    def _change(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        change: dict[str, Any] = {}
        properties = pairs(parsed_args.property, "--property")
        if properties or parsed_args.no_property:
            change["properties"] = {**properties, **dict.fromkeys(parsed_args.no_property)}
        if not parsed_args.disable and (parsed_args.reason is not None or parsed_args.until is not None):
            raise exception.CommandError("--reason and --until go with --disable", code=400)
        if parsed_args.disable:
            now = now_in(parsed_args)
            with times.named("--until"):
                until = None if parsed_args.until is None else times.read_time(parsed_args.until, now=now)
            given = {"reason": parsed_args.reason, "until": plain(until)}
            change["disabled"] = {key: value for key, value in given.items() if value is not None}
        elif parsed_args.enable:
            change["disabled"] = None
        if parsed_args.project or parsed_args.all_projects:
            change["authorized_projects"] = parsed_args.project or None
        return change


class UnregisterResource(_OfKind):
    """Take resources out of the service"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<resource>", nargs="+", help="id or name of a resource")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Unregister them one by one."""
        resources = self.library.resources(parsed_args.kind)
        return self.each(parsed_args.id, parsed_args.kind, lambda text: resources.delete(resources.find(text).id))
