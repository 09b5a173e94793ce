# SPDX-License-Identifier: Apache-2.0
"""Commands about devices and their properties."""

from __future__ import annotations

import argparse
from typing import Any

from blazarclient import command
from blazarclient.v1.shell_commands import registered


class ListDevices(command.ListCommand):
    """List the devices that can be reserved"""

    resource = "device"
    list_columns = ("id", "name", "device_type", "device_driver")
    sort_column = "name"


class _OneDevice(command.OneCommand):
    resource = "device"
    given = ("<device>", "id or name of the device")


class ShowDevice(_OneDevice, command.ShowCommand):
    """Show a device that can be reserved"""


class DeleteDevice(_OneDevice, command.DeleteCommand):
    """Take a device out of the service"""


class CreateDevice(registered.Extras, command.CreateCommand):
    """Register a device, so that it can be reserved"""

    resource = "device"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<device>", help="name of the device, without blanks")
        parser.add_argument("--device-type", metavar="<type>", help="container, vm or shell (default: container)")
        parser.add_argument(
            "--device-driver",
            metavar="<driver>",
            help="who hands it over: hook, zun or k8s, which need a --hook-url, or none (default: hook)",
        )
        parser.add_argument("--hook-url", metavar="<url>", help="URL that is called to hand it over and take it back")
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        names = ("name", "device_type", "device_driver", "hook_url")
        given = {name: getattr(parsed_args, name) for name in names if getattr(parsed_args, name) is not None}
        return {**registered.distinct(self.extras(parsed_args), given), **given}


class UpdateDevice(_OneDevice, registered.UpdateProperties):
    """Change the properties of a device"""


class UnsetAttributesDevice(_OneDevice, registered.UnsetProperties):
    """Take properties of a device away"""


class ReallocateDevice(_OneDevice, command.ShowCommand):
    """Have other devices take over the reservations of a lease, or one reservation, from a device"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--lease-id", metavar="<id>", help="lease whose reservations get other devices")
        which.add_argument("--reservation-id", metavar="<id>", help="reservation that gets another device")
        return parser

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Have others take over; return what is still promised of the device."""
        which = "lease_id" if parsed_args.lease_id is not None else "reservation_id"
        values = {which: getattr(parsed_args, which)}
        return self.shown(self.get_client().device.reallocate(self.id_of(parsed_args.id), values), parsed_args)


class ListDeviceProperties(registered.ListProperties):
    """List the properties by which devices can be chosen"""

    resource = "device"


class ShowDeviceProperty(registered.ShowProperty):
    """Show a property of devices and its values"""

    resource = "device"


class UpdateDeviceProperty(registered.UpdateProperty):
    """Have a property shown to operators only, or to all"""

    resource = "device"
