# SPDX-License-Identifier: Apache-2.0
"""What zsh completes, asked of a zsh in which the functions of its completion only say how they were called."""

from __future__ import annotations

import argparse
import shutil
import subprocess

import pytest
from blazarclient.completion_zsh import Command, script

from tests.conftest import missing

STUBS = """
_describe() { local -a found; [[ $1 == -o ]] && shift; found=("${(@P)2}"); print -l -- "$1:" $found }
_arguments() { print -l -- "options of $words[1] at $CURRENT:" "${(@)@[2,-1]}" }
_default() { print files }
"""


def options(*adds: tuple[tuple[str, ...], dict[str, object]]) -> list[argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    return [parser.add_argument(*names, **values) for names, values in adds]


CLOUD = options((("--os-cloud",), {"help": "cloud of clouds.yaml"}), (("-v", "--verbose"), {"action": "count"}))
COMMANDS = {
    "calendar": Command("Show what is free", options((("--no-color",), {"action": "store_true"}))),
    "host list": Command("List: hosts", options((("-f",), {"choices": ["csv", "json"], "help": "the [best] 100%%"}))),
    "host property list": Command("List properties", options((("--all",), {"action": "store_true"}))),
    "lease list": Command("List what's booked", options((("--status",), {"metavar": "<a:b>", "action": "append"}))),
}


def completed(*words: str) -> list[str]:
    zsh = shutil.which("zsh")
    if zsh is None:
        missing("zsh", "it is not installed")
    quoted = " ".join(f"'{word}'" for word in ("blazar", *words))
    text = script("blazar", CLOUD, COMMANDS) + STUBS + f"words=({quoted})\nCURRENT={len(words) + 1}\n_blazar\n"
    done = subprocess.run([zsh, "-f"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("host", ""), ["command:", "list:List hosts", "property"]),
        (("host", "property", ""), ["command:", "list:List properties"]),
        (("--os-cloud", "host", "lease", ""), ["command:", "list:List what's booked"]),
        (("--os-cloud", ""), ["files"]),
        (("--os",), ["option:", "--os-cloud:cloud of clouds.yaml", "-v:", "--verbose:"]),
        (("calendar", "--"), ["options of calendar at 2:", "--no-color[]", "*:argument:_default"]),
        (
            ("host-list", "-"),
            ["options of host-list at 2:", "-f[the best 100%]:f:(csv json)", "*:argument:_default"],
        ),
        (
            ("lease", "list", "--status", "ACTIVE", "-"),
            ["options of lease list at 4:", "*--status[]:a b:_default", "*:argument:_default"],
        ),
        (
            ("host", "property", "list", ""),
            ["options of host property list at 2:", "--all[]", "*:argument:_default"],
        ),
    ],
)
def test_zsh_completes(words, found):
    assert completed(*words) == found


def test_the_script_is_for_the_program_of_its_name():
    text = script("my-cloud", CLOUD, COMMANDS)
    assert text.startswith("#compdef my-cloud\n")
    assert "_my_cloud()" in text
    assert "@" not in text.replace("(@)", "").replace('"$@"', "").replace("@P", "")
