# SPDX-License-Identifier: Apache-2.0
"""Long output is shown a screen at a time, by the program that ``PAGER`` names."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blazarclient.text_columns import raw_of, width_of

USUAL = "less"
LESS = "FRX"
"""Options of less, unless ``LESS`` has others: colors are kept, the screen is not cleared, what is short is printed."""

ENCODING = "utf-8"


def page(lines: Sequence[str], stream: Any, environment: Mapping[str, str], *, wanted: bool = True) -> None:
    """Write lines; where the stream is a terminal and has fewer, through a pager, if there is one and it is wanted.

    The lines are harmless but for their colors, which a harmless stream would not pass on. To leave the pager before
    the end is no error: the user has seen enough.
    """
    stream = raw_of(stream)
    command = _command(environment) if wanted and _is_long(lines, stream) else []
    if command:
        with contextlib.suppress(OSError):
            _through(command, lines, stream, environment)
            return
        # There is no such program, or it cannot be run.
    for line in lines:
        print(line, file=stream)


def _is_long(lines: Sequence[str], stream: Any) -> bool:
    if width_of(stream) is None:
        return False
    # One line of the screen is the prompt's.
    return len(lines) >= shutil.get_terminal_size().lines


def _command(environment: Mapping[str, str]) -> list[str]:
    """Return the words of the pager, none if there shall be none."""
    try:
        words = shlex.split(environment.get("PAGER", USUAL))
    except ValueError:
        return []
    return [] if words == ["cat"] or environment.get("TERM") == "dumb" else words


def _through(command: Sequence[str], lines: Sequence[str], stream: Any, environment: Mapping[str, str]) -> None:
    """Run the pager until it ends. OSError if it cannot be started."""
    stream.flush()
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        env={"LESS": LESS, **environment},
        encoding=getattr(stream, "encoding", None) or ENCODING,
        errors="replace",
    )
    # Ctrl-C is the pager's: less ends a search with it.
    with _without_interrupts():
        with contextlib.suppress(BrokenPipeError):
            process.communicate("".join(f"{line}\n" for line in lines))
        process.wait()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
