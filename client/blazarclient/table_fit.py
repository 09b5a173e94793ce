# SPDX-License-Identifier: Apache-2.0
"""Tables as wide as the terminal: cells are broken where a reader would break them.

cliff gives each column the same room and breaks cells anywhere. Here a date is broken between day and time, an id at
its hyphens, and other texts at blanks; if that is too wide, at more places, and at last there is no table but a block
of lines for each row.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from cliff import lister, show

from blazarclient.text_columns import columns_of, harmless, width_of, wrapped

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}.*")
_CLOCK = re.compile(r"(\d{2}:\d{2}(?::\d{2})?)([+-]\d{2}:\d{2})")
_FOR_SHELLS = re.compile(r"[\\$`]")
LONGEST = 12
"""Characters of a word that is cut anywhere, if nothing else is narrow enough; the last part of an id has as many."""

SAMPLE = 50
"""Rows by which widths are chosen; they are alike, mostly."""

FRAME = 3
"""Columns beside the text of a cell; one more closes the line."""

Breaker = Callable[[str], Sequence[str]]
"""What cuts a word, which has no blanks, into the parts that may stand on lines of their own."""


def _whole(word: str) -> Sequence[str]:
    return [word]


def _usual(word: str) -> Sequence[str]:
    """Return the parts of an id, or of a date with its time; any other word stays whole."""
    if _UUID.fullmatch(word):
        return re.findall(r"[^-]+-?", word)
    if _DATE.fullmatch(word) and "T" in word:
        day, _, clock = word.partition("T")
        return [f"{day}T", clock]
    return [word]


def _fine(word: str) -> Sequence[str]:
    """Return parts that end with a mark; those of a time are the clock and its offset."""
    if found := _CLOCK.fullmatch(word):
        return found.groups()
    parts = _usual(word)
    if len(parts) > 1 or _DATE.fullmatch(word):
        return parts
    return re.findall(r"[^-_,;:/=.]*[-_,;:/=.]+|[^-_,;:/=.]+", word)


def _anywhere(word: str) -> Sequence[str]:
    return [piece for part in _fine(word) for piece in _cut(part)]


def _cut(part: str) -> Iterator[str]:
    piece = ""
    for character in part:
        if columns_of(piece + character) > LONGEST:
            yield piece
            piece = ""
        piece += character
    yield piece


BREAKERS: Sequence[Breaker] = (_whole, _usual, _fine, _anywhere)
_MILD = BREAKERS[:2]


def fitted(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int, breakers: Sequence[Breaker] = BREAKERS
) -> list[list[Any]] | None:
    """Return the rows with line breaks in their cells, so that a table has ``width`` columns; None if it cannot.

    Cells that need none are as they were: a number stays one. ``breakers``: what may be done to words, the mildest
    first, which is taken if it is enough.
    """
    room = width - FRAME * len(columns) - 1
    texts = [[str(cell) for cell in row] for row in rows]
    natural = _widths(columns, texts, None)
    if sum(natural) <= room:
        return [list(row) for row in rows]
    least = [_widths(columns, texts, breaker) for breaker in breakers]
    level = next((n for n, widths in enumerate(least) if sum(widths) <= room), None)
    if level is None:
        return None
    chosen = list(least[level])
    while _widened(chosen, natural, texts[:SAMPLE], breakers[level], room):
        pass
    return [[_broken(cell, wide, breakers[level]) for cell, wide in zip(row, chosen, strict=True)] for row in rows]


def _widths(columns: Sequence[str], rows: Iterable[Sequence[str]], breaker: Breaker | None) -> list[int]:
    """Return the least columns of each cell's longest part, or, with no breaker, of its longest line."""
    widths = [len(column) for column in columns]
    for row in rows:
        for at, text in enumerate(row):
            lines = text.split("\n")
            parts = (
                lines
                if breaker is None
                else [part for line in lines for word in line.split() for part in breaker(word)]
            )
            widths[at] = max([widths[at], *map(columns_of, parts)])
    return widths


def _widened(
    chosen: list[int], natural: Sequence[int], rows: Sequence[Sequence[str]], breaker: Breaker, room: int
) -> bool:
    """Widen the column with most lines so far that it has fewer, if there is room; else the next. False if none."""
    heights = [_height(rows, at, wide, breaker) for at, wide in enumerate(chosen)]
    spare = room - sum(chosen)
    for at in sorted(range(len(chosen)), key=lambda at: -heights[at]):
        for wide in range(chosen[at] + 1, min(natural[at], chosen[at] + spare) + 1):
            if _height(rows, at, wide, breaker) < heights[at]:
                chosen[at] = wide
                return True
    return False


def _height(rows: Sequence[Sequence[str]], at: int, width: int, breaker: Breaker) -> int:
    """Return the lines that the cells of a column take together."""
    return sum(1 + str(_broken(row[at], width, breaker)).count("\n") for row in rows)


def _broken(cell: Any, width: int, breaker: Breaker) -> Any:
    text = str(cell)
    if all(columns_of(line) <= width for line in text.split("\n")):
        return cell
    return "\n".join(part for line in text.split("\n") for part in _lines(line, width, breaker))


def _lines(text: str, width: int, breaker: Breaker) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and columns_of(f"{line} {word}") <= width:
            line = f"{line} {word}"
            continue
        if columns_of(word) <= width:
            if line:
                yield line
            line = word
            continue
        for number, part in enumerate(breaker(word)):
            joined = f"{line} {part}" if line and number == 0 else line + part
            if line and columns_of(joined) > width:
                yield line
                joined = part
            line = joined
    yield line


def blocks(columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int) -> Iterator[str]:
    """Yield the rows as blocks of lines, each with the name of a column and its value."""
    margin = max(map(len, columns)) + 2
    for number, row in enumerate(rows):
        if number:
            yield ""
        for column, cell in zip(columns, row, strict=True):
            first, *others = wrapped(str(cell), max(LONGEST, width - margin)).split("\n")
            yield f"{column:{margin}}{first}".rstrip()
            yield from (" " * margin + line for line in others)


_STRUCTURED = ("json", "yaml")
"""Formats in which nothing is a command: all that is no plain text is written as an escape."""


def _safe(cell: Any) -> Any:
    return harmless(cell) if isinstance(cell, str) else cell


def _safe_of(formatter: str, cell: Any) -> Any:
    """Return a cell as a format can have it: a shell that reads it must find nothing to carry out."""
    if formatter in _STRUCTURED or cell is None or isinstance(cell, bool | int | float):
        return cell
    text = harmless(str(cell)) if isinstance(cell, str) or formatter == "shell" else cell
    # The formatter writes it in double quotes, and escapes nothing else than these.
    return _FOR_SHELLS.sub(r"\\\g<0>", text) if formatter == "shell" else text


def _is_address(word: str, longer: int) -> bool:
    return "://" in word and columns_of(word) > longer


def _name_of(formatter: str, column: str) -> str:
    """Return the name of a column as a format can have it; in a shell it is one of a variable."""
    return re.sub(r"[^\w .:-]", "_", column, flags=re.ASCII) if formatter == "shell" else _safe_of(formatter, column)


class Fitting:
    """A formatter of tables that makes them as wide as the terminal.

    ``asked``: columns that are shown in any case. ``nothing``: what is written instead of a table without rows.
    """

    def __init__(self, formatter: Any, width: int, asked: Sequence[str], nothing: str) -> None:
        self.formatter = formatter
        self.width = width
        self.asked = asked
        self.nothing = nothing

    def emit_list(
        self, column_names: Sequence[str], data: Iterable[Sequence[Any]], stdout: Any, parsed_args: argparse.Namespace
    ) -> None:
        """Write a table, or blocks of lines where no table is narrow enough."""
        names, rows = list(column_names), [[_safe(cell) for cell in row] for row in data]
        if not rows and not parsed_args.print_empty:
            stdout.write(self.nothing)
            return
        cells = fitted(names, rows, self.width, _MILD)
        if cells is None:
            # Columns with nothing in them take the room of others.
            kept = [at for at, name in enumerate(names) if name in self.asked or any(row[at] != "" for row in rows)]
            names, rows = [names[at] for at in kept], [[row[at] for at in kept] for row in rows]
            cells = fitted(names, rows, self.width)
        if cells is not None:
            self.formatter.emit_list(names, cells, stdout, parsed_args)
            return
        for line in blocks(names, rows, self.width):
            print(line, file=stdout)


class FittedLister(lister.Lister):
    """A list whose table is as wide as the terminal."""

    nothing = "There are none.\n"
    """What a terminal shows instead of a table without rows; others get an empty line."""

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any) -> int:
        """Write the table, or the data in the format that was asked for."""
        room = self.room(parsed_args)
        column_names = [_safe_of(parsed_args.formatter, name) for name in column_names]
        data = (tuple(_safe_of(parsed_args.formatter, cell) for cell in row) for row in data)
        if room is not None:
            self.formatter: Any = Fitting(self.formatter, room, parsed_args.columns or (), self.nothing)
        return int(super().produce_output(parsed_args, column_names, data) or 0)

    def room(self, parsed_args: argparse.Namespace) -> int | None:
        """Return the columns that a table may have, None where nothing says it."""
        if parsed_args.formatter != "table":
            return None
        if parsed_args.max_width > 0:
            return int(parsed_args.max_width)
        if parsed_args.fit_width:
            return shutil.get_terminal_size().columns
        return width_of(self.app.stdout)


class SafeShowOne(show.ShowOne):
    """Keys and values, which give a terminal no commands."""

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any) -> int:
        """Write the table, or the data in the format that was asked for."""
        width = width_of(self.app.stdout) if parsed_args.formatter == "table" else None
        data = [_safe_of(parsed_args.formatter, cell) for cell in data]
        column_names = [_name_of(parsed_args.formatter, name) for name in column_names]
        if width is None:
            return int(super().produce_output(parsed_args, column_names, data) or 0)
        data = [_safe(cell) for cell in data]
        room = width - max(map(len, column_names), default=0) - 2 * FRAME - 1
        if not parsed_args.columns and any(_is_address(word, room) for cell in data for word in str(cell).split()):
            # Somebody has to copy it.
            for line in blocks(column_names, [data], width):
                print(line, file=self.app.stdout)
            return 0
        return int(super().produce_output(parsed_args, column_names, data) or 0)
