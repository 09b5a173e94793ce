# SPDX-License-Identifier: Apache-2.0
"""Commands about the segments of networks that can be reserved, and their properties."""

from __future__ import annotations

import argparse
from typing import Any

from blazarclient import command, exception
from blazarclient.v1.shell_commands import registered

VLAN = "vlan"


class ListNetworks(command.ListCommand):
    """List the segments of networks that can be reserved"""

    resource = "network"
    list_columns = ("id", "network_type", "physical_network", "segment_id")
    sort_column = "segment_id"


class _OneNetwork(command.OneCommand):
    resource = "network"
    name_key = "segment_id"
    given = ("<network>", "id of the segment, or its number, such as 101")

    def id_of(self, text: str) -> str:
        """Return the id of a segment that is given by id or number. NotFound; NoUniqueMatch."""
        if self.is_id(text):
            return text
        found = self.get_client().network.list()
        return self.only([item for item in found if str(item.get("segment_id")) == text], "network", text)


class ShowNetwork(_OneNetwork, command.ShowCommand):
    """Show a segment that can be reserved"""


class DeleteNetwork(_OneNetwork, command.DeleteCommand):
    """Take a segment out of the service"""


class CreateNetwork(registered.Extras, command.CreateCommand):
    """Register a segment, a VLAN or a VXLAN, so that networks on it can be reserved"""

    resource = "network"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--network-type", metavar="<type>", required=True, help="vlan or vxlan")
        parser.add_argument(
            "--physical-network",
            metavar="<name>",
            help="of a VLAN: the name of its physical network in Neutron, such as physnet1",
        )
        parser.add_argument(
            "--segment",
            metavar="<number>",
            dest="segment_id",
            required=True,
            help="number of the VLAN (1 to 4094) or of the VXLAN (1 to 16777215)",
        )
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        kind, physical = parsed_args.network_type, parsed_args.physical_network
        if kind == VLAN and not physical:
            raise exception.CommandError("A VLAN is on a physical network; give --physical-network", code=400)
        if kind != VLAN and physical:
            raise exception.CommandError("--physical-network goes with --network-type vlan", code=400)
        if not parsed_args.segment_id.isdecimal():
            raise exception.CommandError(f"--segment is {parsed_args.segment_id!r}; give a number, as 101", code=400)
        given = {"network_type": kind, "physical_network": physical or None, "segment_id": int(parsed_args.segment_id)}
        return {**registered.distinct(self.extras(parsed_args), given), **given}


class UpdateNetwork(_OneNetwork, registered.UpdateProperties):
    """Change the properties of a segment"""


class UnsetAttributesNetwork(_OneNetwork, registered.UnsetProperties):
    """Take properties of a segment away"""


class ListNetworkProperties(registered.ListProperties):
    """List the properties by which segments can be chosen"""

    resource = "network"


class ShowNetworkProperty(registered.ShowProperty):
    """Show a property of segments and its values"""

    resource = "network"


class UpdateNetworkProperty(registered.UpdateProperty):
    """Have a property shown to operators only, or to all"""

    resource = "network"
