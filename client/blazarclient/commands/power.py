# SPDX-License-Identifier: Apache-2.0
"""``power``: which hosts and pools sleep and why, by what each is switched, and wakes, for operators."""

from __future__ import annotations

import argparse
import itertools
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, check_columns, local, now_in
from blazarclient.exception import CommandError

if TYPE_CHECKING:
    from blazarclient.library.power import HostPower, PowerClass, PowerResults

COLUMNS = ("name", "state", "reason", "since", "kept_until", "policy", "adapter")
KEYS = ("id", "name", "state", "since", "reason", "kept_until", "policy", "adapter", "target", "rehearsed")
LOG = ("at", "before", "seconds", "after", "reason", "rehearsed")
REPORT = (
    *("mode", "to", "switched_hosts", "kept_hosts", "hosts", "slept_hours", "switched_off", "woken"),
    *("failed_wakes", "missed_starts", "classes", "pools"),
)
STATES = ("on", "going_off", "off", "waking")
KINDS = ("host", "volume")
POLICIES = ("auto", "keep")
ADAPTERS = ("redfish", "hook", "ironic", "simulated")


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host", metavar="<host>", help="name or id of a host, or with --kind of a pool")
    _add_kind(parser)
    add_zone(parser)


def _add_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", choices=KINDS, default="host", help="volume: a pool of volumes (default: host)")


class ReportPower(One):
    """Show how many hosts sleep and why, and what that has saved

    Where the service only rehearses it, all figures are those of the dry run.
    """

    answers = REPORT

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--last", metavar="<length>", default="30d", help="how far back is summed up, such as 7d (default: 30d)"
        )
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        with times.named("--last"):
            since = f"-{times.read_duration(parsed_args.last).iso()}"
        report = self.library.power.report(since=since)
        results = report.rehearsed if report.mode == "dry_run" else report.done

        def value(key: str) -> Any:
            if key == "hosts" and not self.structured(parsed_args):
                return _lines(results)
            if key == "classes" and not self.structured(parsed_args):
                return "\n".join(map(_describe_class, report.classes))
            if key == "pools" and not self.structured(parsed_args):
                pools = report.pools
                return f"{pools.asleep} of {pools.switched} with a switch asleep; slept {pools.slept_hours} h together"
            return self.cell(getattr(results if hasattr(results, key) else report, key), zone, parsed_args)

        return [REPORT, tuple(value(key) for key in REPORT)]


def _lines(results: PowerResults) -> str:
    """Return a line about the hosts of each state and reason."""
    return "\n".join(f"{one.hosts} {one.state.replace('_', ' ')} ({one.reason})" for one in results.hosts)


def _describe_class(found: PowerClass) -> str:
    """Return a line about a class of hosts."""
    values = ", ".join(f"{name}={'none' if value is None else value}" for name, value in found.group.items())
    return (
        f"{values or 'all hosts'}: {found.asleep} of {found.hosts} asleep, "
        f"spare {found.spare} ({_tell_source(found)}), woken {found.lead_seconds // 60} min before a start, "
        f"a wake takes {found.wake_seconds // 60} min"
    )


def _tell_source(found: PowerClass) -> str:
    """Return where the spare of a class comes from."""
    if found.spare_source == "asked":
        return f"half more than the {found.asked_at_once} asked for at once"
    if found.spare_source == "share":
        return "a share of its hosts"
    return f"fixed for {found.spare_rule}" if found.spare_rule else "fixed"


class ListPower(Rows):
    """List hosts with their power"""

    answers = COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_kind(parser)
        parser.add_argument("--state", choices=STATES, help="only hosts in this state; off: those that sleep")
        parser.add_argument("--policy", choices=POLICIES, help="only hosts with this policy")
        parser.add_argument(
            "--adapter", choices=(*ADAPTERS, "none"), help="only hosts that are switched so; none: by nothing"
        )
        parser.add_argument("--text", metavar="<text>", help="only hosts with this in their names")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        keys = ("state", "policy", "adapter", "text")
        filters = {key: value for key in keys if (value := getattr(parsed_args, key)) is not None}
        return self.rows(COLUMNS, self.library.power.list(parsed_args.kind, **filters), zone, parsed_args)


class _OneHost(One):
    """A command whose answer is a host with its power."""

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_host(parser)
        return parser

    def told(self, host: HostPower, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return the keys and values of a host."""
        zone = now_in(parsed_args).tzinfo or timezone.utc

        def value(key: str) -> Any:
            if key == "rehearsed" and host.rehearsed is not None and not self.structured(parsed_args):
                since = self.cell(host.rehearsed.since, zone, parsed_args)
                return f"{host.rehearsed.state} since {since} ({host.rehearsed.reason})"
            return self.cell(getattr(host, key), zone, parsed_args)

        return [KEYS, tuple(value(key) for key in KEYS)]


class ShowPower(_OneHost):
    """Show the power of a host"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.told(self.library.power.find(parsed_args.host, kind=parsed_args.kind), parsed_args)


class SetPower(_OneHost):
    """Set by what a host is switched, and whether it ever is

    Passwords are in blazar.conf of the managers, never here.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--adapter", choices=(*ADAPTERS, "none"), help="by what it is switched; none: by nothing")
        parser.add_argument("--target", metavar="<target>", help="what the adapter calls it: a URL, a name or an id")
        parser.add_argument("--policy", choices=POLICIES, help="keep: it is never switched off")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Set it."""
        check_columns(parsed_args, KEYS)
        changes = _read_changes(parsed_args)
        power, kind = self.library.power, parsed_args.kind
        found = power.find(parsed_args.host, kind=kind)
        return self.told(power.change(found.id, kind=kind, **changes), parsed_args)


def _read_changes(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return what options say. CommandError."""
    adapter, target, policy = parsed_args.adapter, parsed_args.target, parsed_args.policy
    changes: dict[str, Any] = {} if policy is None else {"policy": policy}
    if adapter == "none" and target is None:
        changes |= {"adapter": None, "target": None}
    elif adapter == "none":
        raise CommandError("--adapter none has no --target; leave it out", code=400)
    elif adapter is not None and target is not None:
        changes |= {"adapter": adapter, "target": target}
    elif adapter is not None or target is not None:
        raise CommandError("--adapter and --target go together; give both", code=400)
    if not changes:
        raise CommandError("Nothing is to change; give --adapter and --target, or --policy", code=400)
    return changes


class WakeHosts(LibraryCommand):
    """Wake hosts that sleep, and have them stay on for four hours"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("hosts", metavar="<host>", nargs="+", help="name or id of a host, or with --kind of a pool")
        _add_kind(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Wake each; the first that cannot be woken ends it."""
        zone, power = now_in(parsed_args).tzinfo or timezone.utc, self.library.power
        for text in parsed_args.hosts:
            found = power.find(text, kind=parsed_args.kind)
            host = power.wake(found.id, kind=parsed_args.kind)
            until = local(host.kept_until, zone) if host.kept_until else ""
            print(f"{host.name} is {host.state.replace('_', ' ')}, and stays on until {until}", file=self.app.stdout)


class LogPower(Rows):
    """List what has become of the power of a host, the latest first"""

    answers = LOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_host(parser)
        parser.add_argument("--limit", metavar="<n>", type=int, default=50, help="most lines (default: 50)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        if parsed_args.limit < 1:
            raise CommandError("--limit is at least 1", code=400)
        zone, power = now_in(parsed_args).tzinfo or timezone.utc, self.library.power
        found = power.find(parsed_args.host, kind=parsed_args.kind)
        moves = power.log(found.id, parsed_args.kind, sort_dir="desc")
        return self.rows(LOG, itertools.islice(moves, parsed_args.limit), zone, parsed_args)
