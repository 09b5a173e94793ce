# SPDX-License-Identifier: Apache-2.0
"""Standalone services for tests, at once: each is forked from a process that has imported what all of them need.

To import it takes as long as all the rest of a start. ``tests/cmd/`` starts programs as users do.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from blazar.cmd import standalone

ROOT = Path(__file__).parents[1]

_context = multiprocessing.get_context("forkserver")
# Each child of a program that was started as a module imports that, too.
_context.set_forkserver_preload([standalone.__name__, "pytest"])


class Standalone:
    """``blazar-standalone`` with these arguments, in a process of its own that adds what it says to a log."""

    def __init__(self, arguments: Sequence[str], log: Path, environment: Mapping[str, str] = os.environ) -> None:
        given = (list(arguments), log, dict(environment))
        self._process = _context.Process(target=_run, args=given, daemon=True)
        self._process.start()
        self.log = log

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self, patience: float) -> int:
        """Return the exit code once it has ended, within so many seconds."""
        self._process.join(patience)
        code = self._process.exitcode
        assert code is not None, self.log.read_text(encoding="utf-8")
        return code

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        self._process.kill()
        self._process.join()


def _run(arguments: list[str], log: Path, environment: dict[str, str]) -> None:
    """Be the service."""
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as words:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(words.fileno(), stream.fileno())
    # Who runs the tests in the background has Ctrl-C ignored, and hands that down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(standalone.main(arguments))
