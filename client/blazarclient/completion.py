# SPDX-License-Identifier: Apache-2.0
"""Words for shells that complete what is typed."""

from __future__ import annotations

import argparse
from typing import Any

from cliff import complete

from blazarclient import completion_zsh
from blazarclient.help import summary


class Complete(complete.CompleteCommand):
    """Print a script that has bash or zsh complete commands and options"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        for action in parser._actions:
            if action.dest == "shell":
                action.choices = sorted({*(action.choices or ()), "zsh"})
        parser.add_argument("--words", action="store_true", help="print all words, without a script")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print it."""
        if parsed_args.words:
            self.app.stdout.write(" ".join(self._words()) + "\n")
            return 0
        name = parsed_args.name or self.app.NAME
        if parsed_args.shell == "zsh":
            self.app.stdout.write(self._zsh(name))
            return 0
        script = self._formatters[parsed_args.shell].plugin(name, self.app.stdout)
        words = complete.CompleteDictionary()
        for command, _ in self.app.command_manager:
            parts = command.split()
            actions = self.get_actions(parts)
            words.add_command(parts, actions)
            if len(parts) > 1:
                # Each is known by its name with hyphens, too.
                words.add_command(["-".join(parts)], actions)
        script.write(words.get_commands(), words.get_data())
        return 0

    def _zsh(self, name: str) -> str:
        commands = {
            command: completion_zsh.Command(summary(entry), self.get_actions(command.split()))
            for command, entry in self.app.command_manager
        }
        return completion_zsh.script(name, self.app.parser._get_optional_actions(), commands)

    def _words(self) -> list[str]:
        found = set(_flags(self.app.parser))
        for command, _ in self.app.command_manager:
            parts = command.split()
            found.add("-".join(parts))
            found.update(flag for action in self.get_actions(parts) for flag in action.option_strings)
        return sorted(found)


def _flags(parser: Any) -> list[str]:
    return [flag for action in parser._actions for flag in action.option_strings]
