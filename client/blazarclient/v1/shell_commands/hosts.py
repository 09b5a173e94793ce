# SPDX-License-Identifier: Apache-2.0
"""Commands about hosts and their properties."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from blazarclient import command
from blazarclient.v1.shell_commands import registered


class ListHosts(command.ListCommand):
    """List the hosts that can be reserved"""

    resource = "host"
    list_columns: Sequence[str] = ("id", "hypervisor_hostname", "vcpus", "memory_mb", "local_gb")
    sort_column = "hypervisor_hostname"


class _OneHost(command.OneCommand):
    resource = "host"
    name_key = "hypervisor_hostname"
    given = ("<host>", "id or hypervisor hostname of the host")

    def is_id(self, text: str) -> bool:
        """Return whether a text is an id and not a name."""
        # As 7, and in another region than the first as RegionTwo:7.
        return text.rpartition(":")[2].isdigit()


class ShowHost(_OneHost, command.ShowCommand):
    """Show a host that can be reserved"""


class DeleteHost(_OneHost, command.DeleteCommand):
    """Take a host out of the service"""


class CreateHost(registered.Extras, command.CreateCommand):
    """Register a host of the cloud, so that it can be reserved"""

    resource = "host"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<host>", help="hypervisor hostname of the host")
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        return {"name": parsed_args.name, **self.extras(parsed_args)}


class UpdateHost(_OneHost, registered.UpdateProperties):
    """Change the properties of a host"""


class UnsetAttributesHost(_OneHost, registered.UnsetProperties):
    """Take properties of a host away"""


class ListHostProperties(registered.ListProperties):
    """List the properties by which hosts can be chosen"""

    resource = "host"


class ShowHostProperty(registered.ShowProperty):
    """Show a property of hosts and its values"""

    resource = "host"


class UpdateHostProperty(registered.UpdateProperty):
    """Have a property shown to operators only, or to all"""

    resource = "host"
