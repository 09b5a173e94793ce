# SPDX-License-Identifier: Apache-2.0
"""What the second bill is made of: sights of leases, and pieces of time that reservations were promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

FOR_EVER = 1 << 60


class Unit(NamedTuple):
    """One of what is priced by the hour: a host, or the third VCPU of those that a reservation has on a host."""

    measure: str
    resource: str
    number: int = 1


Place = tuple[str, Unit]
"""A unit of a reservation."""


@dataclass(frozen=True)
class Sight:
    """A lease at an instant: whose it is, from when to when, and what each of its reservations has.

    ``is_unused`` is whether the last look found that nobody used it; None if nobody has looked. ``origins`` are the
    leases whose time was dealt out at that instant: one was split, or two were merged.
    """

    at: int
    lease: str
    project: str
    start: int
    end: int
    holds: Mapping[str, frozenset[Unit]]
    origins: tuple[str, ...] = ()
    is_unused: bool | None = None
    asked: int | None = None
    """When its deletion was asked for, if that has taken time."""

    @property
    def places(self) -> Iterator[Place]:
        return ((reservation, unit) for reservation, units in self.holds.items() for unit in units)


@dataclass(frozen=True)
class Piece:
    """Time of a unit that a reservation was promised, with the terms of its booking."""

    reservation: str
    unit: Unit
    project: str
    start: int
    end: int
    booked: int
    lead: int
    count: int
    sku: str

    @property
    def place(self) -> Place:
        return self.reservation, self.unit

    def within(self, start: int, end: int) -> list[Piece]:
        """Return the part of it between two instants, if there is any."""
        start, end = max(start, self.start), min(end, self.end)
        return [replace(self, start=start, end=end)] if start < end else []

    def without(self, start: int, end: int) -> list[Piece]:
        """Return what is left of it without the time between two instants."""
        return self.within(0, start) + self.within(max(end, start), FOR_EVER)


def cut_out(pieces: Sequence[Piece], spans: Iterable[tuple[int, int]]) -> tuple[list[Piece], list[Piece]]:
    """Return what of some pieces lies outside of all spans, and what lies inside of any."""
    outside, inside = list(pieces), list[Piece]()
    for start, end in spans:
        inside += [part for piece in outside for part in piece.within(start, end)]
        outside = [part for piece in outside for part in piece.without(start, end)]
    return outside, inside


def drop(pieces: Iterable[Piece], place: Place, end: int) -> list[Piece]:
    """Return pieces without the time of a host from an instant on."""
    return [part for piece in pieces for part in (piece.within(0, end) if piece.place == place else [piece])]


def cut(span: tuple[int, int], other: tuple[int, int]) -> list[tuple[int, int]]:
    parts = (span[0], min(span[1], other[0])), (max(span[0], other[1]), span[1])
    return [part for part in parts if part[0] < part[1]]
