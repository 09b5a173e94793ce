# SPDX-License-Identifier: Apache-2.0
"""What ``blazar --help`` and ``blazar help`` print."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
from typing import Any

import autopage.argparse
from cliff import help as cliff_help

from blazarclient.text_columns import raw_of


def print_help(app: Any) -> None:
    """Print the options of the program, and each command once with what it does."""
    pager = autopage.argparse.help_pager(raw_of(app.stdout))
    with pager as out:
        autopage.argparse.use_color_for_parser(app.parser, pager.to_terminal())
        app.parser.print_help(out)
        out.write("\ncommands:\n")
        commands = sorted(app.command_manager)
        width = max(len(name) for name, _ in commands)
        for name, entry in commands:
            out.write(f"  {name:<{width}}  {summary(entry)}\n")
        out.write("\nA name of several words may have hyphens: lease-list. 'blazar help <command>' tells more.\n")


def summary(entry: Any) -> str:
    """Return what a command does: the first line of its class, read from the source, since imports take their time."""
    module, _, name = entry.value.partition(":")
    source = _source(module)
    found = re.search(rf'^class {name}\b[^:]*:\n    """([^"\n]*)', source, re.MULTILINE)
    text = found[1] if found else (inspect.getdoc(entry.load()) or "").partition("\n")[0]
    return text.rstrip(".")


def _source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    read = getattr(spec.loader, "get_source", None) if spec else None
    return (read(module) if read else None) or ""


class Help(cliff_help.HelpCommand):
    """Print help about a command"""

    def get_epilog(self) -> str:
        """Return nothing: cliff would read the lists of files of all packages to learn which one this command is of."""
        return ""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print it."""
        if parsed_args.cmd:
            return int(super().take_action(parsed_args))
        print_help(self.app)
        return 0
