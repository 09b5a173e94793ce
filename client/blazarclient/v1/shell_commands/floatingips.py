# SPDX-License-Identifier: Apache-2.0
"""Commands about floating IPs."""

from __future__ import annotations

import argparse
from typing import Any

from blazarclient import command


class ListFloatingIPs(command.ListCommand):
    """List the floating IPs that can be reserved"""

    resource = "floatingip"
    list_columns = ("id", "floating_ip_address", "floating_network_id")


class _OneFloatingIP(command.OneCommand):
    resource = "floatingip"
    name_key = "floating_ip_address"
    given = ("<floating-ip>", "id or address of the floating IP")


class ShowFloatingIP(_OneFloatingIP, command.ShowCommand):
    """Show a floating IP that can be reserved"""


class DeleteFloatingIP(_OneFloatingIP, command.DeleteCommand):
    """Take a floating IP out of the service"""


class CreateFloatingIP(command.CreateCommand):
    """Register a floating IP, so that it can be reserved"""

    resource = "floatingip"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("network_id", metavar="<network-id>", help="id of the external network of the address")
        parser.add_argument("floating_ip_address", metavar="<address>", help="address, outside of the allocation pools")
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        return {"network_id": parsed_args.network_id, "floating_ip_address": parsed_args.floating_ip_address}
