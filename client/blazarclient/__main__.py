# SPDX-License-Identifier: Apache-2.0
"""The ``blazar`` program, and ``python -m blazarclient``: the command of ``shell`` in a process that is its own."""

from __future__ import annotations

import gc
import sys

OBJECTS = 100_000
"""How many more objects there are before garbage is looked for: about as many as a command makes."""

STOPPED = 130
"""The exit code after Ctrl-C."""


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    # What is imported is no garbage, and looking through it again and again takes a quarter of the time of a command.
    gc.set_threshold(OBJECTS)
    try:
        from blazarclient import shell

        return shell.main()
    except KeyboardInterrupt:
        # While it was still being started: what commands do, they tell themselves.
        sys.stderr.write("Stopped.\n")
        return STOPPED
    finally:
        # Nor is it looked for at the end, where the memory goes with the process.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
