# SPDX-License-Identifier: Apache-2.0
"""What a repacking is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from blazar.calendar.maintenance import PromisedPiece, Span
from blazar.model.base.values import dataclass, field, replace


class RepackMode(StrEnum):
    """Which other hosts leases may get that have not started."""

    OFF = "off"
    EQUAL = "equal"
    """Those that are equal in all that users can see."""
    ANY = "any"
    """All that meet what they have asked for."""


MOST_LEASES = 20
"""How many leases get other hosts for one request."""

MOST_CONFLICTS = 4
"""How many pieces leave a host together for one that takes it."""

DEPTH = 2
"""How many classes of hosts are relieved one for the other."""


@dataclass(frozen=True, slots=True)
class WholeNeed:
    """``count`` whole hosts out of ``hosts``, all of ``pinned`` among them; up to ``most`` if these are free then.

    Nothing moves for more than ``count``.
    """

    count: int
    hosts: frozenset[int]
    pinned: frozenset[int] = frozenset()
    most: int = 0

    def __post_init__(self) -> None:
        if not len(self.pinned) <= self.count or not self.count:
            raise ValueError(f"{len(self.pinned)} hosts are pinned of {self.count}")


@dataclass(frozen=True, slots=True)
class RepackProblem:
    """What is promised, and what is needed besides in one ``window``, whose end includes the cleaning.

    ``choices`` has, by the group of movable pieces, the hosts that each of them may have. A movable piece whose own
    host is not among these stays where it is, and so does one that shares its host. ``closed`` has the maintenance
    windows by host.
    """

    window: Span
    needs: Sequence[WholeNeed]
    pieces: Sequence[PromisedPiece]
    choices: Mapping[str, frozenset[int]]
    closed: Mapping[int, Sequence[Span]] = field(default_factory=dict)

    def drop_far(self) -> RepackProblem:
        """Return it with no more than what is on hosts that matter: those needed, and where what is there may go."""
        hosts = frozenset().union(*(need.hosts | need.pinned for need in self.needs))
        left = list(self.choices.values())
        while more := [choice for choice in left if not hosts.isdisjoint(choice)]:
            hosts = hosts.union(*more)
            left = [choice for choice in left if hosts.isdisjoint(choice)]
        return replace(self, pieces=[piece for piece in self.pieces if piece.resource_id in hosts])

    def drop_others(self) -> RepackProblem:
        """Return it with no more than what meets the window."""
        return replace(self, pieces=[piece for piece in self.pieces if piece.meets(self.window)])


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RepackLimits:
    """How far a search goes; ``is_spent`` is asked again and again whether it took long enough.

    ``exact`` is for how many seconds a solver goes on where the search gives up, if it is installed.
    """

    leases: int = MOST_LEASES
    conflicts: int = MOST_CONFLICTS
    depth: int = DEPTH
    exact: float = 0
    is_spent: Callable[[], bool] = _never


@dataclass(frozen=True, slots=True)
class RepackMove:
    """A piece that goes to another host, for the same time."""

    piece: PromisedPiece
    to: int


@dataclass(frozen=True, slots=True)
class Repack:
    """The hosts of each need, in their order, once all ``moves`` are made together."""

    hosts: tuple[frozenset[int], ...]
    moves: tuple[RepackMove, ...]


@dataclass(frozen=True, slots=True)
class FullAt:
    """The proof that no arrangement holds it all: ``promised`` + ``asked`` are more than ``hosts`` at an instant.

    ``promised`` counts what can be nowhere but on these hosts, and ``asked`` what is needed of them.
    """

    at: int
    hosts: frozenset[int]
    promised: int
    asked: int


@dataclass(frozen=True, slots=True)
class HostPrice:
    """What each of some hosts costs at an instant, in a proof by prices."""

    hosts: frozenset[int]
    at: int
    price: int


@dataclass(frozen=True, slots=True)
class NoArrangement:
    """The proof that no arrangement holds it all, though at each single instant one does.

    If all that is promised and needed pays ``prices`` for its time on the cheapest of the hosts that it may have, it
    pays more than all hosts together cost. Without prices no way was left when all were tried.
    """

    prices: tuple[HostPrice, ...] = ()


@dataclass(frozen=True, slots=True)
class NotRepacked:
    """No way was found: with the proof that there is none, or without.

    ``leases`` are how many would get other hosts in one that was found, where that is more than may.
    """

    proof: FullAt | NoArrangement | None = None
    leases: int = 0

    @property
    def full(self) -> FullAt | None:
        """Return the instant at which hosts are full, if that is the proof."""
        return self.proof if isinstance(self.proof, FullAt) else None
