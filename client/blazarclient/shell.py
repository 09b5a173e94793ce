# SPDX-License-Identifier: Apache-2.0
"""The ``blazar`` command."""

from __future__ import annotations

import argparse
import importlib
import io
import itertools
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cliff import app, commandmanager

import blazarclient
from blazarclient.cloud_options import add_options
from blazarclient.text_columns import HarmlessStream, harmless

_V1 = "blazarclient.v1.shell_commands"
_NEW = "blazarclient.commands"

COMMANDS: Mapping[str, str] = {
    "lease list": f"{_NEW}.listing:ListLeases",
    "lease show": f"{_NEW}.listing:ShowLease",
    "lease create": f"{_NEW}.create:CreateLease",
    "lease update": f"{_NEW}.update:UpdateLease",
    "lease delete": f"{_NEW}.change:DeleteLease",
    "lease extend": f"{_NEW}.change:ExtendLease",
    "lease move": f"{_NEW}.change:MoveLease",
    "lease end": f"{_NEW}.change:EndLease",
    "lease confirm": f"{_NEW}.change:ConfirmLease",
    "lease keep": f"{_NEW}.change:KeepLease",
    "lease hold": f"{_NEW}.change:HoldLease",
    "lease swap": f"{_NEW}.surgery:SwapHost",
    "lease shrink": f"{_NEW}.surgery:ShrinkLease",
    "lease split": f"{_NEW}.surgery:SplitLease",
    "lease history": f"{_NEW}.history:LeaseHistory",
    "lease energy": f"{_NEW}.reports:LeaseEnergy",
    "lease merge": f"{_NEW}.surgery:MergeLeases",
    "lease transfer": f"{_NEW}.transfers:OfferLease",
    "lease watch": f"{_NEW}.watch:WatchLease",
    "history": f"{_NEW}.listing:History",
    "journal list": f"{_NEW}.history:ListJournal",
    "journal follow": f"{_NEW}.history:FollowJournal",
    "why": f"{_NEW}.watch:Why",
    "transfer list": f"{_NEW}.transfers:ListOffers",
    "transfer show": f"{_NEW}.transfers:ShowOffer",
    "transfer accept": f"{_NEW}.transfers:AcceptOffer",
    "transfer decline": f"{_NEW}.transfers:DeclineOffer",
    "transfer withdraw": f"{_NEW}.transfers:WithdrawOffer",
    "maintenance impact": f"{_NEW}.maintenance:ImpactOfMaintenance",
    "maintenance create": f"{_NEW}.maintenance:CreateMaintenance",
    "maintenance list": f"{_NEW}.maintenance:ListMaintenances",
    "maintenance show": f"{_NEW}.maintenance:ShowMaintenance",
    "maintenance change": f"{_NEW}.maintenance:ChangeMaintenance",
    "maintenance end": f"{_NEW}.maintenance:EndMaintenance",
    "maintenance delete": f"{_NEW}.maintenance:DeleteMaintenances",
    "manager list": f"{_NEW}.managers:ListManagers",
    "manager show": f"{_NEW}.managers:ShowManager",
    "power report": f"{_NEW}.power:ReportPower",
    "power list": f"{_NEW}.power:ListPower",
    "power show": f"{_NEW}.power:ShowPower",
    "power set": f"{_NEW}.power:SetPower",
    "power wake": f"{_NEW}.power:WakeHosts",
    "power log": f"{_NEW}.power:LogPower",
    "price-list list": f"{_NEW}.price_lists:ListPriceLists",
    "price-list show": f"{_NEW}.price_lists:ShowPriceList",
    "price-list publish": f"{_NEW}.price_lists:PublishPriceList",
    "problem list": f"{_NEW}.problems:ListProblems",
    "problem show": f"{_NEW}.problems:ShowProblem",
    "problem retry": f"{_NEW}.problems:RetryProblems",
    "problem release": f"{_NEW}.problems:ReleaseProblems",
    "problem give-up": f"{_NEW}.problems:GiveUpProblems",
    "problem end": f"{_NEW}.problems:EndProblems",
    "problem mend": f"{_NEW}.problems:MendProblems",
    "problem recheck": f"{_NEW}.problems:RecheckProblems",
    "problem drop": f"{_NEW}.problems:DropProblems",
    "budget list": f"{_NEW}.budgets:ListBudgets",
    "statement list": f"{_NEW}.statements:ListStatements",
    "statement show": f"{_NEW}.statements:ShowStatement",
    "statement export": f"{_NEW}.statements:ExportStatement",
    "charge list": f"{_NEW}.statements:ListCharges",
    "charge correct": f"{_NEW}.statements:CorrectCharge",
    "report usage": f"{_NEW}.reports:ReportUsage",
    "report capacity": f"{_NEW}.reports:ReportCapacity",
    "report demand": f"{_NEW}.reports:ReportDemand",
    "report unbooked": f"{_NEW}.reports:ReportUnbooked",
    "report forecast": f"{_NEW}.reports:ReportForecast",
    "rule list": f"{_NEW}.rules:ListRules",
    "rule show": f"{_NEW}.rules:ShowRule",
    "rule write": f"{_NEW}.rules:WriteRule",
    "rule delete": f"{_NEW}.rules:DeleteRules",
    "series list": f"{_NEW}.series:ListSeries",
    "series show": f"{_NEW}.series:ShowSeries",
    "series create": f"{_NEW}.series:CreateSeries",
    "series change": f"{_NEW}.series:ChangeSeries",
    "series delete": f"{_NEW}.series:DeleteSeries",
    "feed list": f"{_NEW}.feeds:ListFeeds",
    "feed create": f"{_NEW}.feeds:CreateFeed",
    "feed delete": f"{_NEW}.feeds:DeleteFeed",
    "subscription list": f"{_NEW}.subscriptions:ListSubscriptions",
    "subscription show": f"{_NEW}.subscriptions:ShowSubscription",
    "subscription create": f"{_NEW}.subscriptions:CreateSubscription",
    "subscription change": f"{_NEW}.subscriptions:ChangeSubscription",
    "subscription mine": f"{_NEW}.subscriptions:OwnSubscription",
    "subscription test": f"{_NEW}.subscriptions:TestSubscription",
    "subscription replay": f"{_NEW}.subscriptions:ReplaySubscription",
    "subscription failures": f"{_NEW}.subscriptions:ListFailures",
    "subscription delete": f"{_NEW}.subscriptions:DeleteSubscriptions",
    "find": f"{_NEW}.find:Find",
    "host list": f"{_NEW}.hosts:ListHosts",
    "host show": f"{_V1}.hosts:ShowHost",
    "host create": f"{_V1}.hosts:CreateHost",
    "host update": f"{_V1}.hosts:UpdateHost",
    "host unset": f"{_V1}.hosts:UnsetAttributesHost",
    "host delete": f"{_V1}.hosts:DeleteHost",
    "host register": f"{_NEW}.hosts:RegisterHosts",
    "host disable": f"{_NEW}.hosts:DisableHost",
    "host enable": f"{_NEW}.hosts:EnableHost",
    "host property list": f"{_V1}.hosts:ListHostProperties",
    "host property show": f"{_V1}.hosts:ShowHostProperty",
    "host property set": f"{_V1}.hosts:UpdateHostProperty",
    "resource types": f"{_NEW}.resources:ListKinds",
    "resource candidates": f"{_NEW}.resources:ListCandidates",
    "resource list": f"{_NEW}.resources:ListResources",
    "resource show": f"{_NEW}.resources:ShowResource",
    "resource register": f"{_NEW}.resources:RegisterResource",
    "resource set": f"{_NEW}.resources:SetResource",
    "resource unregister": f"{_NEW}.resources:UnregisterResource",
    "floatingip list": f"{_V1}.floatingips:ListFloatingIPs",
    "floatingip show": f"{_V1}.floatingips:ShowFloatingIP",
    "floatingip create": f"{_V1}.floatingips:CreateFloatingIP",
    "floatingip delete": f"{_V1}.floatingips:DeleteFloatingIP",
    "network list": f"{_V1}.networks:ListNetworks",
    "network show": f"{_V1}.networks:ShowNetwork",
    "network create": f"{_V1}.networks:CreateNetwork",
    "network update": f"{_V1}.networks:UpdateNetwork",
    "network unset": f"{_V1}.networks:UnsetAttributesNetwork",
    "network delete": f"{_V1}.networks:DeleteNetwork",
    "network property list": f"{_V1}.networks:ListNetworkProperties",
    "network property show": f"{_V1}.networks:ShowNetworkProperty",
    "network property set": f"{_V1}.networks:UpdateNetworkProperty",
    "network allocation list": f"{_V1}.allocations:ListNetworkAllocations",
    "network allocation show": f"{_V1}.allocations:ShowNetworkAllocation",
    "device list": f"{_V1}.devices:ListDevices",
    "device show": f"{_V1}.devices:ShowDevice",
    "device create": f"{_V1}.devices:CreateDevice",
    "device update": f"{_V1}.devices:UpdateDevice",
    "device unset": f"{_V1}.devices:UnsetAttributesDevice",
    "device delete": f"{_V1}.devices:DeleteDevice",
    "device reallocate": f"{_V1}.devices:ReallocateDevice",
    "device property list": f"{_V1}.devices:ListDeviceProperties",
    "device property show": f"{_V1}.devices:ShowDeviceProperty",
    "device property set": f"{_V1}.devices:UpdateDeviceProperty",
    "device allocation list": f"{_V1}.allocations:ListDeviceAllocations",
    "device allocation show": f"{_V1}.allocations:ShowDeviceAllocation",
    "allocation list": f"{_V1}.allocations:ListAllocations",
    "allocation show": f"{_V1}.allocations:ShowAllocation",
    "calendar": f"{_NEW}.calendar:ShowCalendar",
    "hypervisor list": f"{_NEW}.hosts:ListHypervisors",
    "property list": f"{_NEW}.hosts:ListProperties",
    "capacity": f"{_NEW}.capacity:ShowCapacity",
    "property show": f"{_NEW}.hosts:ShowProperty",
    "complete": "blazarclient.completion:Complete",
    "help": "blazarclient.help:Help",
}
"""Commands and their classes, by ``module:class``; each is as well known by its name with hyphens.

The modules are imported for ``blazar --help``, too: they import keystoneauth and what needs it only within functions.
"""

WRONGLY_WRITTEN = 2
"""The exit code for a command that there is not, as argparse has it for an option that there is not."""

_WORDS = "bash-completion"
_MARK = "\0"
_NOISY = ("stevedore", "urllib3", "cliff", "asyncio")


class _HarmlessLines(logging.Formatter):
    """Log lines, which may quote what others wrote."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return harmless(super().format(record))


class Command:
    """A command whose module is imported only when it is used."""

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def load(self) -> Any:
        """Return the class."""
        module, _, name = self.value.partition(":")
        return getattr(importlib.import_module(module), name)


class Commands(commandmanager.CommandManager):
    """The commands of ``COMMANDS``."""

    def __init__(self) -> None:
        super().__init__("")
        for name, value in COMMANDS.items():
            self.commands[name] = Command(name, value)
            self.add_legacy_command(name.replace(" ", "-"), name)

    def add_command(self, name: str, command_class: Any) -> None:
        """Add a command, unless there is one of the name."""
        if name not in COMMANDS:
            super().add_command(name, command_class)

    def find_command(self, argv: list[str]) -> tuple[Any, str, list[str]]:
        """Return class, name and arguments of a command; ValueError with what may have been meant."""
        try:
            found: tuple[Any, str, list[str]] = super().find_command(argv)
        except ValueError:
            raise ValueError(self._unknown(argv)) from None
        return found

    def _unknown(self, argv: list[str]) -> str:
        # Only for mistakes; a command that is written rightly starts sooner without it.
        import difflib

        words = list(itertools.takewhile(lambda word: not word.startswith("-"), argv))
        typed = " ".join(words[:2]).replace("-", " ")
        near = sorted(name for name in self.commands if name.startswith(typed + " "))
        near = near or difflib.get_close_matches(typed, self.commands, n=3)
        meant = f"did you mean {', '.join(near)}?" if near else "'blazar help' lists all"
        return f"{' '.join(words[:3]) or ' '.join(argv)} is no command of blazar; {meant}"


class BlazarShell(app.App):
    """The application. ``client``: of version 1, made when a command first needs it."""

    NAME = "blazar"

    def __init__(self) -> None:
        # Names are of members, and terminals of operators. What a command writes goes through here, whatever it is.
        out: Any = HarmlessStream(sys.stdout)
        err: Any = HarmlessStream(sys.stderr)
        super().__init__(
            description="Reserve resources of an OpenStack cloud, now or for later.",
            version=blazarclient.__version__,
            command_manager=Commands(),
            deferred_help=True,
            stdout=out,
            stderr=err,
        )
        self._client: Any = None
        self._adapter: Any = None
        self._unknown = False
        self._last = 0

    @property
    def client(self) -> Any:
        """The client of version 1."""
        if self._client is None:
            from blazarclient.v1.client import Client

            self._client = Client(session=self.adapter, service_type=self.adapter.service_type)
        return self._client

    @client.setter
    def client(self, value: Any) -> None:
        self._client = value

    @property
    def adapter(self) -> Any:
        """A keystoneauth adapter for the service, with the region, interface and endpoint of the options."""
        if self._adapter is None:
            from blazarclient.authentication import adapter

            self._adapter = adapter(self.options)
        return self._adapter

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: dict[str, Any] | None = None
    ) -> argparse.ArgumentParser:
        """Return the parser of the options that come before the command."""
        settings = {"usage": "blazar [option ...] <command> [argument ...]", "allow_abbrev": False, "prog": self.NAME}
        parser: argparse.ArgumentParser = super().build_option_parser(
            description, version, {**settings, **(argparse_kwargs or {})}
        )
        for action in parser._actions:
            if action.dest == "version":
                action.version = f"{self.NAME} {version}"  # type: ignore[attr-defined]
        add_options(parser, sys.argv[1:])
        return parser

    def run(self, argv: list[str]) -> int:
        """Run a command, or those that are typed, and return an exit code."""
        self._unknown = False
        code = int(super().run(self._prepared(argv)))
        if self._unknown:
            return WRONGLY_WRITTEN
        return self._last if self.interactive_mode else code

    def _prepared(self, argv: list[str]) -> list[str]:
        """Return arguments with those marked that are of the command though this program has them as well."""
        at = self._command_at(argv)
        if argv[at:] == [_WORDS]:
            return [*argv[:at], "complete", "--words"]
        try:
            command, _, _ = self.command_manager.find_command(argv[at:])
        except ValueError:
            return argv
        own = getattr(command, "own_options", ())
        marked = (_MARK + word if word.partition("=")[0] in own else word for word in argv[at:])
        return [*argv[:at], *marked]

    def _command_at(self, argv: list[str]) -> int:
        """Return the index of the first word of the command: the first that is neither option nor value of one."""
        valued = {flag for action in self.parser._actions if action.nargs is None for flag in action.option_strings}
        index = 0
        while index < len(argv) and argv[index].startswith("-"):
            index += 2 if argv[index] in valued else 1
        return min(index, len(argv))

    def initialize_app(self, argv: list[str]) -> None:
        """Check that there is such a command; ValueError if not."""
        argv[:] = [word.removeprefix(_MARK) for word in argv]
        if argv:
            self._find(argv)

    def _find(self, argv: list[str]) -> None:
        try:
            self.command_manager.find_command(argv)
        except ValueError:
            self._unknown = True
            raise

    def print_help_if_requested(self) -> None:
        """Print help instead of doing anything, if it is asked for."""
        if self.options.deferred_help:
            from blazarclient.help import print_help

            print_help(self)
            raise SystemExit(0)

    def interact(self) -> None:
        """Run the commands that are typed, or that come from a pipe."""
        # Who reads them would take the arguments of the process for commands.
        arguments, sys.argv = sys.argv, sys.argv[:1]
        self.interactive_app_factory = _interactive
        try:
            super().interact()
        finally:
            sys.argv = arguments

    def run_subcommand(self, argv: list[str]) -> int:
        """Run a command; return its exit code."""
        try:
            self._find(argv)
        except ValueError as error:
            print(error, file=self.stderr)
            self._last = WRONGLY_WRITTEN
            return self._last
        self._last = int(super().run_subcommand(argv))
        return self._last

    def configure_logging(self) -> None:
        """Have warnings written to stderr, more with ``-v``, and all but noise with ``--debug`` or ``-vv``."""
        root = logging.getLogger()
        level = logging.WARNING if self.options.verbose_level < 2 else logging.INFO
        if self.options.debug or self.options.verbose_level > 2:
            level = logging.DEBUG
        root.setLevel(logging.DEBUG if self.options.log_file else level)
        for name in _NOISY:
            logging.getLogger(name).setLevel(logging.WARNING)
        for handler in [handler for handler in root.handlers if handler.get_name() == self.NAME]:
            # Of an earlier run in the same process.
            root.removeHandler(handler)
        self._log_to(logging.StreamHandler(self.stderr), self.CONSOLE_MESSAGE_FORMAT, level)
        if self.options.log_file:
            self._log_to(logging.FileHandler(self.options.log_file), self.LOG_FILE_MESSAGE_FORMAT, logging.DEBUG)

    def _log_to(self, handler: logging.Handler, form: str, level: int) -> None:
        handler.set_name(self.NAME)
        handler.setLevel(level)
        handler.setFormatter(_HarmlessLines(form))
        logging.getLogger().addHandler(handler)


def _interactive(*parts: Any) -> Any:
    # It takes a tenth of a second, and only who types commands needs it.
    from cliff.interactive import InteractiveApp

    made = InteractiveApp(*parts)
    made.prompt = f"({BlazarShell.NAME}) " if sys.stdin.isatty() else ""
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            # A name that the encoding has no characters for is written by their numbers.
            stream.reconfigure(errors="backslashreplace")
    return BlazarShell().run(list(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
