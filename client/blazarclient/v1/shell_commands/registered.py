# SPDX-License-Identifier: Apache-2.0
"""What commands about hosts, segments of networks and devices have in common: their properties."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from blazarclient import command, exception


class Extras(command.BlazarCommand):
    """A command that takes properties."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--extra",
            metavar="<key>=<value>",
            action="append",
            dest="extra_capabilities",
            default=[],
            help=f"property by which the {self.resource} can be chosen (may be repeated)",
        )
        return parser

    def extras(self, parsed_args: argparse.Namespace) -> dict[str, str]:
        """Return the properties that are given."""
        found: dict[str, str] = {}
        for pair in parsed_args.extra_capabilities or ():
            key, _, value = pair.partition("=")
            if not key:
                raise exception.CommandError(f"--extra {pair!r} has no key; write it as gpu=A100", code=400)
            found[key] = value
        return found


class UpdateProperties(Extras, command.UpdateCommand):
    """Changes properties."""

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        values = self.extras(parsed_args)
        if not values:
            raise exception.CommandError("Nothing is changed; name a property, such as --extra gpu=A100", code=400)
        return {"values": values}


class UnsetProperties(command.UpdateCommand):
    """Takes properties away."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--extra",
            metavar="<key>",
            action="append",
            dest="extra_capabilities",
            required=True,
            help="property to take away (may be repeated)",
        )
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        return {"values": dict.fromkeys(parsed_args.extra_capabilities)}


class ListProperties(command.ListCommand):
    """Lists properties."""

    list_columns: Sequence[str] = ("property",)
    sort_column = "property"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--detail", action="store_true", help="show their values, and whether they are private")
        parser.add_argument("--all", action="store_true", help="list private ones as well (for operators)")
        return parser

    def items(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return the properties."""
        if parsed_args.detail:
            self.list_columns = ("property", "private", "property_values")
        found: list[dict[str, Any]] = getattr(self.get_client(), self.resource).list_properties(
            detail=parsed_args.detail, all=parsed_args.all, sort_by=parsed_args.sort_by
        )
        return found


class _OneProperty(command.BlazarCommand):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("property_name", metavar="<property>", help="name of the property")
        return parser


class ShowProperty(_OneProperty, command.ShowCommand):
    """Shows a property and its values."""

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return its keys and values."""
        found = getattr(self.get_client(), self.resource).get_property(parsed_args.property_name)
        if getattr(parsed_args, "formatter", "table") == "table":
            return self.shown(found, parsed_args)
        # Elsewhere its values have always been a list.
        keys = tuple(sorted(found))
        return [keys, tuple(found[key] for key in keys)]


class UpdateProperty(_OneProperty):
    """Has a property shown to operators only, or to all."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--private", action="store_true", help="only operators see and use it")
        which.add_argument("--public", action="store_true", help="all see and use it")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it."""
        manager = getattr(self.get_client(), self.resource)
        manager.set_property(parsed_args.property_name, private=parsed_args.private)
        print(f"Updated {self.resource} property: {parsed_args.property_name}", file=self.app.stdout)


def distinct(extras: dict[str, str], given: dict[str, Any]) -> dict[str, str]:
    """Return properties none of which is also given by an option. CommandError."""
    if twice := next((key for key in extras if key in given), None):
        raise exception.CommandError(f"{twice} is given twice; leave --extra {twice}=… out", code=400)
    return extras
