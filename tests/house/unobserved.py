# SPDX-License-Identifier: Apache-2.0
"""List options whose test in ``options.txt`` passes although their line is taken out of the configuration file.

``python -m tests.house.unobserved [PART …]`` looks at the lines that have one of these parts, or at all; that takes
some minutes. A test that starts a process of its own reads its file there, and is not looked at. One that fails with
its option as well shows nothing, and is listed, too.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from blazar.cmd import config
from tests.house.test_options import listed

_SECTION = re.compile(r"\[(.*)\]\s*$")
ELSEWHERE = frozenset({"[DEFAULT] host", "[DEFAULT] port", "[generic] master_secrets", "[manager] startup_wait"})
"""Options of tests that read their file in another process, or by another way than ``config.load``."""
WITHOUT_EFFECT = frozenset({"[nova] project_id_key"})
"""Options whose help says that they have none."""


def _take_out(file: Path, group: str, name: str) -> None:
    """Take the lines of an option out of a file."""
    kept, section = [], ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if (begin := _SECTION.match(line)) is not None:
            section = begin[1]
        if section != group or not re.match(rf"{name}\s*=", line):
            kept.append(line)
    file.write_text("\n".join([*kept, ""]), encoding="utf-8")


def _passes_without(option: str, test: str) -> bool:
    """Return whether a test passes while its option is in no file."""
    group, name = option[1:].split("] ")
    load = config.load

    def without(arguments: list[str], **more: Any) -> cfg.ConfigOpts:
        for before, argument in zip(arguments, arguments[1:], strict=False):
            if before == "--config-file" and Path(argument).is_file():
                _take_out(Path(argument), group, name)
        return load(arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "load", without)
        # Only a test that fails has seen that the option is away.
        return _run(test) != pytest.ExitCode.TESTS_FAILED


def _run(test: str) -> int:
    """Run a test; return the exit code."""
    with contextlib.redirect_stdout(io.StringIO()):
        return pytest.main(["-q", "-m", "", "-p", "no:cacheprovider", test])


@cache
def _passes(test: str) -> bool:
    return _run(test) == pytest.ExitCode.OK


def main(parts: Sequence[str]) -> int:
    """Print the options, one a line; return how many."""
    found = 0
    for option, test in listed().items():
        wanted = not parts or any(part in f"{option} = {test}" for part in parts)
        if not wanted or option in ELSEWHERE | WITHOUT_EFFECT:
            continue
        if not _passes(test):
            print(f"{option} = {test} fails with the option, too", flush=True)
        elif _passes_without(option, test):
            print(f"{option} = {test} passes without the option", flush=True)
        else:
            continue
        found += 1
    return found


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
