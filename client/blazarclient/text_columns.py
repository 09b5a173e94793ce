# SPDX-License-Identifier: Apache-2.0
"""Text as a terminal shows it: the columns that it takes, and lines of so many columns."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from typing import Any

_KEPT = "\n\u200c\u200d"
"""Characters that are not printable, and yet belong to texts."""


def columns_of(text: str) -> int:
    """Return the columns that a text of one line takes: two for what is wide, none for what combines."""
    return sum(0 if _joined(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _joined(character: str) -> bool:
    # Variation selectors and joiners have no combining class.
    return bool(unicodedata.combining(character)) or unicodedata.category(character) in ("Mn", "Me", "Cf")


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Return a text of which no line has more than ``width`` columns, broken at blanks only.

    What begins further in goes on even further in, and what does not goes on with ``indent``. What has no blank stays
    whole: it may be an address or an id that somebody copies.
    """
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width, indent))


def _parts(line: str, width: int, indent: str) -> Iterator[str]:
    if columns_of(line) <= width:
        yield line
        return
    margin = line[: len(line) - len(line.lstrip())]
    following = margin + "  " if margin else indent
    part = ""
    for word in line.split():
        if not part:
            part = margin + word
        elif columns_of(f"{part} {word}") <= width:
            part = f"{part} {word}"
        else:
            yield part
            part = following + word
    yield part


def harmless(text: str) -> str:
    """Return a text without what would be a command to a terminal, such as a name of a lease may have in it."""
    return "".join(c if c.isprintable() or c in _KEPT else "?" for c in text)


def width_of(stream: Any) -> int | None:
    """Return the columns of the terminal that a stream is, None if it is none."""
    try:
        if not stream.isatty():
            return None
        shown = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return None
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdigit() and int(given) else shown or None


def say(text: str, stream: Any, indent: str = "") -> None:
    """Write sentences; in a terminal, words are not broken at its edge."""
    width = width_of(stream)
    print(wrapped(harmless(text), width, indent) if width else text, file=stream, flush=True)
