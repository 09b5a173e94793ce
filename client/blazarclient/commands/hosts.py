# SPDX-License-Identifier: Apache-2.0
"""Commands for operators of hosts: register many, take out of use and back, see what the cloud has."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import exception, times
from blazarclient.command import exit_code
from blazarclient.commands.base import STOPPED, LibraryCommand, One, Rows, add_zone, local, now_in, plain
from blazarclient.requirement_text import add_requirement, read_requirements
from blazarclient.v1.shell_commands import hosts, registered

if TYPE_CHECKING:
    from blazarclient.library import Host

CONDITIONS = ("ok", "disabled", "failed")
LONG = ("availability_zone", "condition", "reason", "until", "properties")

_STOPS = (exception.NotAuthorized, exception.Forbidden, exception.ServiceUnavailable, exception.NoBlazarEndpoint)
"""What the next host would meet as well."""


def condition(host: Host) -> str:
    """Return in which of ``CONDITIONS`` a host is."""
    return "failed" if host.failure else "disabled" if host.disabled else "ok"


class ListHosts(LibraryCommand, hosts.ListHosts):
    """List the hosts that can be reserved"""

    resource = "host"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--condition", choices=CONDITIONS, help="only hosts in this condition")
        parser.add_argument("--zone", metavar="<zone>", help="only hosts of this availability zone")
        parser.add_argument("--text", metavar="<text>", help="only hosts with this in their names")
        add_requirement(parser, "hosts")
        parser.add_argument("--limit", metavar="<n>", type=int, help="most hosts (default: all)")
        parser.add_argument("--long", action="store_true", help="show zone, condition, why, and properties, too")
        add_zone(parser)
        return parser

    def items(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return the hosts; below microversion 1.1 there are no filters."""
        if parsed_args.limit is not None and parsed_args.limit < 1:
            raise exception.CommandError("--limit is at least 1", code=400)
        filters = {
            "condition": parsed_args.condition,
            "availability_zone": parsed_args.zone,
            "text": parsed_args.text,
            "requirement": read_requirements(parsed_args.requirement),
        }
        asked = {key: value for key, value in filters.items() if value is not None}
        if not (asked or parsed_args.long or parsed_args.limit):
            return super().items(parsed_args)
        if parsed_args.long:
            self.list_columns = (*self.list_columns, *LONG)
        found = [_row(host) for host in self._found(asked, parsed_args.limit)]
        if parsed_args.long and (regions := self._regions([row["id"] for row in found])):
            self.list_columns = (*self.list_columns, "region")
            found = [{**row, "region": region} for row, region in zip(found, regions, strict=True)]
        known = found[0] if found else {}
        if known and parsed_args.sort_by not in known:
            raise exception.CommandError(f"--sort-by is one of {', '.join(sorted(known))}", code=400)
        rows = sorted(found, key=lambda row: _order(row[parsed_args.sort_by]))
        if self.structured(parsed_args):
            return [plain(row) for row in rows]
        zone = times.zone(parsed_args.timezone)
        return [{key: _cell(value, zone) for key, value in row.items()} for row in rows]

    def _regions(self, ids: Sequence[str]) -> list[str | None]:
        """Return the region of each host, None where it cannot be told; an empty list if all are in the first one."""
        named = [each.rpartition(":")[0] for each in ids]
        if not any(named):
            return []
        # Only the ids of other regions say which.
        first = None if all(named) else self._first_region()
        return [each or first for each in named]

    def _first_region(self) -> str | None:
        """Return the name of the first region; None if the service does not tell."""
        try:
            fields = [each.registration.get("properties", {}) for each in self.library.kinds() if each.name == "host"]
        except (exception.Forbidden, exception.UnsupportedVersion):
            return None
        names = [name for each in fields for name in each.get("region", {}).get("enum", [])]
        return names[0] if names else None

    def _found(self, filters: dict[str, Any], limit: int | None) -> Iterator[Host]:
        for number, host in enumerate(self.library.hosts.list(**filters)):
            if number == limit:
                self.tell(f"There are more than {limit}; --limit shows more.")
                return
            yield host


def _cell(value: Any, zone: tzinfo) -> Any:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, datetime):
        return local(value, zone)
    return "" if value is None else value


def _order(value: Any) -> tuple[int, Any]:
    """Return a key to sort by: numbers, then texts, then nothing."""
    if value is None:
        return 2, ""
    return (0, value) if isinstance(value, int | float) else (1, str(plain(value)))


def _row(host: Host) -> dict[str, Any]:
    """Return a host under the names that its amounts have at microversion 1.0."""
    trouble = host.failure or host.disabled
    amounts = {"vcpus": "VCPU", "memory_mb": "MEMORY_MB", "local_gb": "DISK_GB"}
    return {
        "id": host.id,
        "label": host.label,
        "hypervisor_hostname": host.hypervisor_hostname,
        **{name: host.capacity.get(resource_class) for name, resource_class in amounts.items()},
        "availability_zone": host.availability_zone,
        "condition": condition(host),
        "reason": trouble.reason if trouble else None,
        "since": trouble.since if trouble else None,
        "until": host.disabled.until if host.disabled else None,
        "properties": dict(host.properties),
    }


class RegisterHosts(Rows, registered.Extras):
    """Register hosts of the cloud, so that they can be reserved; tell what became of each"""

    resource = "host"
    # A sentence says it.
    nothing = ""
    answers = ("host", "outcome", "id", "reason")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("names", metavar="<host>", nargs="*", help="hypervisor hostname of a host of the cloud")
        parser.add_argument("--all", action="store_true", help="all hosts of the cloud that are not registered")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Register them one by one; one that is refused does not stop the others."""
        if bool(parsed_args.names) == parsed_args.all:
            raise exception.CommandError("Name the hosts to register, or give --all", code=400)
        properties = self.extras(parsed_args)
        found = [(name, "") for name in dict.fromkeys(parsed_args.names)] if parsed_args.names else self._unregistered()
        if not found:
            self.tell("All hosts of the cloud are registered.")
        return self.answers, [
            self._registered(name, {**properties, "region": region} if region else properties) for name, region in found
        ]

    def _unregistered(self) -> list[tuple[str, str]]:
        """Return the name of each and the region before its id: in all but the first, that is how it is found."""
        found = self.library.hosts.hypervisors(registered=False)
        return sorted((each.hypervisor_hostname, each.id.rpartition(":")[0]) for each in found)

    def _registered(self, name: str, properties: dict[str, str]) -> tuple[str, ...]:
        if getattr(self, "_stopped", False):
            return name, "not tried", "", ""
        try:
            host = self.library.hosts.register(name, properties=properties)
        except exception.BlazarClientException as error:
            self.outcome = self.outcome or exit_code(error)
            self._stopped = isinstance(error, _STOPS)
            return name, "refused", "", str(error)
        except KeyboardInterrupt:
            # What became of the others is not lost with it.
            self.outcome, self._stopped = STOPPED, True
            return name, "stopped", "", "it may be registered: see host list"
        return name, "registered", host.id, ""


class _OneHost(One):
    resource = "host"
    answers = ("id", "hypervisor_hostname", "reservable", "condition", "reason", "until")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<host>", help="id or hypervisor hostname of the host")
        add_zone(parser)
        return parser

    def told(self, host: Host, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return whether a host takes leases, and why not."""
        disabled = host.disabled
        zone = times.zone(parsed_args.timezone)
        values = {
            "id": host.id,
            "hypervisor_hostname": host.hypervisor_hostname,
            "reservable": host.reservable,
            "condition": condition(host),
            "reason": self.cell(disabled.reason if disabled else None, zone, parsed_args),
            "until": self.cell(disabled.until if disabled else None, zone, parsed_args),
        }
        return [tuple(values), tuple(values.values())]


class DisableHost(_OneHost):
    """Have a host take no new leases"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--reason", metavar="<text>", help="why, for other operators")
        parser.add_argument("--until", metavar="<time>", help="when it takes leases again by itself, such as +3d")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Disable it."""
        now = now_in(parsed_args)
        with times.named("--until"):
            until = None if parsed_args.until is None else times.read_time(parsed_args.until, now=now)
        host = self.library.hosts.find(parsed_args.id)
        return self.told(self.library.hosts.disable(host.id, reason=parsed_args.reason, until=until), parsed_args)


class EnableHost(_OneHost):
    """Have a host take leases again"""

    def take_action(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Enable it."""
        times.zone(parsed_args.timezone)
        host = self.library.hosts.find(parsed_args.id)
        return self.told(self.library.hosts.enable(host.id), parsed_args)


class ListHypervisors(Rows):
    """List the hosts of the cloud, registered or not"""

    resource = "hypervisor"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--registered", action="store_true", default=None, help="only those that can be reserved")
        which.add_argument("--unregistered", action="store_false", dest="registered", help="only those that cannot")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for them."""
        columns = ("id", "hypervisor_hostname", "state", "servers", "host_id")
        found = self.library.hosts.hypervisors(registered=parsed_args.registered)
        return columns, [
            tuple("" if (value := getattr(each, column)) is None else value for column in columns) for each in found
        ]


class _Properties(LibraryCommand):
    resource = "property"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--resource-type", metavar="<type>", help="of resources that serve this type (default: physical:host)"
        )
        return parser


class ListProperties(_Properties, Rows):
    """List the properties by which resources can be chosen, with their most frequent values"""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for them."""
        found = self.library.properties(parsed_args.resource_type)
        if self.structured(parsed_args):
            keys = ("name", "type", "private", "values", "truncated", "minimum", "maximum")
            return keys, [tuple(plain(getattr(each, key)) for key in keys) for each in found]
        return ("name", "type", "private", "values"), [
            (each.name, each.type, each.private, _values(each)) for each in found
        ]


class ShowProperty(_Properties, Rows):
    """Show the values of a property, and how many resources have each"""

    need_sort_by_cliff = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<property>", help="name of the property")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for it."""
        found = {each.name: each for each in self.library.properties(parsed_args.resource_type)}
        if parsed_args.name not in found:
            raise exception.NotFound(f"There is no property {parsed_args.name}; there are {', '.join(sorted(found))}")
        if found[parsed_args.name].truncated:
            self.tell("These are the most frequent values.")
        return ("value", "count"), [(each.value, each.count) for each in found[parsed_args.name].values]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


_SHOWN_VALUES = 5


def _values(item: Any) -> str:
    """Return the most frequent values of a property in a line, or its range."""
    if item.minimum is not None and item.maximum is not None and item.minimum < item.maximum:
        return f"{_number(item.minimum)} to {_number(item.maximum)}"
    most = sorted(item.values, key=lambda value: -value.count)
    told = ", ".join(f"{value.value} ({value.count})" for value in most[:_SHOWN_VALUES])
    return f"{told}, …" if len(most) > _SHOWN_VALUES else told
