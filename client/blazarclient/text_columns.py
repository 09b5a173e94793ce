# SPDX-License-Identifier: Apache-2.0
"""Text as a terminal shows it: the columns that it takes, and lines of so many columns."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

_KEPT = "\n\u00ad\u200c\u200d"
"""Characters that are seen by nobody, and yet belong to texts: line breaks, soft hyphens, joiners."""

_COMMANDS = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that are for a terminal: control characters, and what turns the direction of text."""


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
    if text.isascii() and text.isprintable():
        return text
    return "".join("?" if unicodedata.category(c) in _COMMANDS and c not in _KEPT else c for c in text)


class HarmlessStream:
    """A stream of text that passes on what is harmless; ``raw`` is the stream, for what is known to be so.

    What a command writes may go on into a file, a pager or another terminal: so it does not matter what the stream is.
    """

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text; tabs are between columns."""
        self.raw.write("\t".join(map(harmless, text.split("\t"))))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw_of(stream: Any) -> Any:
    """Return the stream behind a harmless one; any other is returned as it is."""
    return stream.raw if isinstance(stream, HarmlessStream) else stream


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
    text, width = harmless(text), width_of(stream)
    print(wrapped(text, width, indent) if width else text, file=stream, flush=True)
