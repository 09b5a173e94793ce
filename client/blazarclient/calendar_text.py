# SPDX-License-Identifier: Apache-2.0
"""The calendar as text: a line for each resource, a column for each step of time.

A function from rows, range and width to lines; nothing of the terminal or of the clock is read here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import groupby

from blazarclient.library.values import Block, CalendarRow
from blazarclient.text_columns import columns_of
from blazarclient.time_axis import Axis, Cell

KINDS = {
    "mine": ("yours", "32"),
    "lease": ("promised", "94"),
    "other": ("of others", "35"),
    "out_of_use": ("out of use", "31"),
    "cleaning": ("cleaning", "33"),
    "partly": ("partly free", ""),
    "shared": ("a part of it promised", ""),
    "free": ("free", "2"),
}
"""What a cell can be, in the order of what a reader looks for: the word of the legend, and the color."""

NAMED = {"mine": "30;42", "lease": "97;44", "other": "97;45", "out_of_use": "97;41", "cleaning": "30;43"}
"""The colors of a name in a bar: both are said, so that it is read on a light ground as well as on a dark one."""

LEAST_CELLS = 10
LEAST_BAR = 6
"""Cells that a lease has at least to have its name in them."""


@dataclass(frozen=True)
class Glyphs:
    """The characters of a chart; ``shared`` has one for each eighth that is promised of a shared resource."""

    mine: str = "█"
    lease: str = "▓"
    other: str = "▒"
    out_of_use: str = "×"
    cleaning: str = "░"
    partly: str = "+"
    free: str = "·"
    shared: str = "▁▂▃▄▅▆▇"
    cut: str = "…"


PLAIN = Glyphs(mine="#", lease="%", other="=", out_of_use="x", cleaning="~", free=".", shared="1234567", cut="~")
"""For terminals and files that have ASCII only."""


@dataclass(frozen=True)
class Mark:
    """One cell of a resource: its character, what it is, and the block that fills it.

    ``extent``: ``partly`` or ``shared`` where only a part of the cell, or of the resource, is taken.
    """

    text: str
    kind: str
    extent: str = ""
    block: Block | None = None
    named: bool = False


def chart(
    rows: Sequence[CalendarRow],
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    width: int,
    properties: Sequence[str] = (),
    color: bool = False,
    glyphs: Glyphs = Glyphs(),
) -> Iterator[str]:
    """Yield the lines of a chart that is ``width`` columns wide.

    ``start``, ``end``, ``now``: aware; the zone of ``start`` is that of the header. ``properties``: names of those
    whose values are shown beside a resource.
    """
    labels = _labels(rows, properties, glyphs, most=max(8, width // 3))
    margin = max([columns_of(label) for label in labels] + [len(_month(start))]) + 1
    axis = Axis.of(start, end, max(LEAST_CELLS, width - margin))
    for line, text in zip(axis.header(now), (_month(start), "", ""), strict=False):
        yield f"{text:{margin}}{line}".rstrip()
    seen: set[str] = set()
    for label, row in zip(labels, rows, strict=True):
        marks = _named([_mark(row, cell, glyphs) for cell in axis.cells], glyphs)
        seen |= {mark.kind for mark in marks} | {mark.extent for mark in marks}
        yield f"{_padded(label, margin)}{_line(marks, color)}".rstrip()
    yield ""
    yield from _wrapped([_legend(kind, glyphs, color) for kind in KINDS if kind in seen], width)
    footer = (f"A column is {axis.step_text}.", f"Times of {start.tzinfo}.")
    yield from _wrapped([(len(text), text) for text in footer], width)


def _month(start: datetime) -> str:
    return f"{start:%Y-%m}"


def _labels(rows: Iterable[CalendarRow], properties: Sequence[str], glyphs: Glyphs, most: int) -> list[str]:
    """Return what stands at the beginning of each line: names, and the values of the properties in columns."""
    texts = [[row.name or row.id, *(str(row.properties.get(name, "")) for name in properties)] for row in rows]
    cells = [[_printable(text, glyphs) for text in line] for line in texts]
    widths = [max(map(columns_of, column)) for column in zip(*cells, strict=True)]
    labels = (
        "  ".join(_padded(text, wide) for text, wide in zip(line, widths, strict=True)).rstrip() for line in cells
    )
    return ["".join(character for character, _ in _cut(label, most, glyphs)) for label in labels]


def _printable(text: str, glyphs: Glyphs) -> str:
    """Return a text of which none is a command to the terminal, and all is in its encoding."""
    return "".join(c if c.isprintable() and (glyphs is not PLAIN or c.isascii()) else "?" for c in text)


def _cut(text: str, room: int, glyphs: Glyphs) -> list[tuple[str, int]]:
    """Return the characters of a printable text with the columns of each, cut to ``room`` columns."""
    characters: list[tuple[str, int]] = []
    for character in text:
        columns = columns_of(character)
        if columns or not characters:
            characters.append((character, max(columns, 1)))
        else:
            # It combines with the one before.
            characters[-1] = (characters[-1][0] + character, characters[-1][1])
    if sum(columns for _, columns in characters) <= room:
        return characters
    while characters and sum(columns for _, columns in characters) >= room:
        characters.pop()
    return [*characters, (glyphs.cut, 1)]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _mark(row: CalendarRow, cell: Cell, glyphs: Glyphs) -> Mark:
    """Return what a cell of a resource is: free, the kind that takes most of it, or how much of it is promised."""
    blocks = [block for block in row.blocks if _overlap(block, cell)]
    if not blocks:
        return Mark(glyphs.free, "free")
    order = list(KINDS)
    whole = [block for block in blocks if block.used is None]
    if not whole:
        first = min(blocks, key=lambda block: order.index(block.kind))
        eighths = int(8 * _peak(blocks, row))
        return Mark(glyphs.shared[min(max(eighths, 1), 7) - 1], first.kind, "shared")
    # Of two that take as much the one that the reader looks for.
    most = max(whole, key=lambda block: (_overlap(block, cell), -order.index(block.kind)))
    if _covered(whole, cell) < cell.end - cell.start:
        return Mark(glyphs.partly, most.kind, "partly")
    return Mark(getattr(glyphs, most.kind), most.kind, block=most)


def _bounds(block: Block, cell: Cell) -> tuple[datetime, datetime]:
    return max(block.start, cell.start), min(block.end or cell.end, cell.end)


def _overlap(block: Block, cell: Cell) -> timedelta:
    begin, finish = _bounds(block, cell)
    return max(finish - begin, timedelta())


def _covered(blocks: Iterable[Block], cell: Cell) -> timedelta:
    """Return how much of a cell blocks cover together."""
    total, reached = timedelta(), cell.start
    for begin, finish in sorted(_bounds(block, cell) for block in blocks):
        total += max(finish - max(begin, reached), timedelta())
        reached = max(reached, finish)
    return total


def _peak(blocks: Sequence[Block], row: CalendarRow) -> float:
    """Return the largest part of a resource, from 0 to 1, that is promised at once in these blocks."""
    most = 0.0
    for instant in {block.start for block in blocks}:
        used: dict[str, int] = {}
        for block in blocks:
            if block.start <= instant and (block.end is None or instant < block.end):
                for name, amount in (block.used or {}).items():
                    used[name] = used.get(name, 0) + amount
        parts = (amount / row.capacity[name] for name, amount in used.items() if row.capacity.get(name))
        most = max(most, *parts, 0.0)
    return most


def _named(marks: Sequence[Mark], glyphs: Glyphs) -> list[Mark]:
    """Write the names of leases into those of their bars that are long enough."""
    named: list[Mark] = []
    for block, group in groupby(marks, key=lambda mark: mark.block):
        bar = list(group)
        name = _printable(block.name, glyphs) if block is not None and block.name else ""
        if name and len(bar) >= LEAST_BAR:
            at = 1
            for character, columns in _cut(name, len(bar) - 2, glyphs):
                bar[at] = dataclasses.replace(bar[at], text=character, named=True)
                # The second half of a wide one.
                bar[at + 1 : at + columns] = [dataclasses.replace(bar[at], text="")] * (columns - 1)
                at += columns
        named += bar
    return named


def _line(marks: Sequence[Mark], color: bool) -> str:
    if not color:
        return "".join(mark.text for mark in marks)
    groups = groupby(marks, key=lambda mark: NAMED[mark.kind] if mark.named else KINDS[mark.kind][1])
    return "".join(f"\x1b[{code}m{''.join(mark.text for mark in group)}\x1b[0m" for code, group in groups)


def _legend(kind: str, glyphs: Glyphs, color: bool) -> tuple[int, str]:
    """Return an entry of the legend, and the columns that it takes."""
    word, code = KINDS[kind]
    glyph = glyphs.shared[3] if kind == "shared" else getattr(glyphs, kind)
    shown = f"\x1b[{code}m{glyph}\x1b[0m" if color and code else glyph
    return len(word) + 2, f"{shown} {word}"


def _wrapped(entries: Iterable[tuple[int, str]], width: int) -> Iterator[str]:
    line, taken = "", 0
    for columns, text in entries:
        if line and taken + 2 + columns > width:
            yield line
            line, taken = "", 0
        line, taken = (f"{line}  {text}", taken + 2 + columns) if line else (text, columns)
    if line:
        yield line


def instant(value: datetime) -> str:
    """Return an instant as programs read it, such as ``2026-11-26T15:00:00Z``."""
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
