# SPDX-License-Identifier: Apache-2.0
"""Commands about what is promised of resources."""

from __future__ import annotations

import argparse
from typing import Any

from blazarclient import command

PATHS = {"host": "os-hosts", "network": "networks", "device": "devices"}
NAMES = {"host": "hypervisor_hostname", "network": "segment_id", "device": "name"}
"""What a resource is called by, other than by its id."""


class _Allocations(command.BlazarCommand):
    resource = "allocation"
    kind = ""
    """The type of the resources, where the name of the command has it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        if not self.kind:
            parser.add_argument("resource_type", choices=[*PATHS], help="type of the resources")
        parser.set_defaults(**({"resource_type": self.kind} if self.kind else {}))
        parser.add_argument("--reservation-id", metavar="<id>", help="only what is promised to this reservation")
        parser.add_argument("--lease-id", metavar="<id>", help="only what is promised to this lease")
        return parser

    def wanted(self, item: dict[str, Any], parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return an allocation with the reservations that are asked for."""
        filters = {"id": parsed_args.reservation_id, "lease_id": parsed_args.lease_id}
        return {
            **item,
            "reservations": [
                reservation
                for reservation in item["reservations"]
                if all(value is None or reservation[key] == value for key, value in filters.items())
            ],
        }


class ListAllocations(_Allocations, command.ListCommand):
    """List what is promised of every resource"""

    list_columns = ("resource_id", "reservations")
    sort_column = "resource_id"

    def items(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return the allocations."""
        found = self.get_client().allocation.list(PATHS[parsed_args.resource_type], sort_by=parsed_args.sort_by)
        return [self.wanted(item, parsed_args) for item in found]


class ShowAllocation(_Allocations, command.ShowCommand):
    """Show what is promised of a resource"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<resource>", help="id or name of the resource")
        return parser

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return its keys and values."""
        client, kind, found = self.get_client(), parsed_args.resource_type, parsed_args.id
        if not (found.rpartition(":")[2].isdigit() if kind == "host" else self.is_id(found)):
            items = [item for item in getattr(client, kind).list() if str(item[NAMES[kind]]) == found]
            found = self.only(items, kind, found)
        data = client.allocation.get(PATHS[kind], found)
        return self.shown(self.wanted(data, parsed_args), parsed_args)


class ListNetworkAllocations(ListAllocations):
    """List what is promised of every segment"""

    kind = "network"


class ShowNetworkAllocation(ShowAllocation):
    """Show what is promised of a segment"""

    kind = "network"


class ListDeviceAllocations(ListAllocations):
    """List what is promised of every device"""

    kind = "device"


class ShowDeviceAllocation(ShowAllocation):
    """Show what is promised of a device"""

    kind = "device"
