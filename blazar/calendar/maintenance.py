# SPDX-License-Identifier: Apache-2.0
"""The plan of a maintenance window: which parts of leases leave its hosts, and for which others. Pure.

Only what is on the hosts in the window moves, never in time. Whole hosts are matched along augmenting paths, as in
``placement``; what finds none so may take the host of one other lease that has not started, if that one finds another.
For windows that all overlap the matching is exact; for others it is a good guess, and never promises anything twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from blazar.calendar.occupancy import Occupancy
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.demand import Affinity
from blazar.model.resources.resource import Resource

MOST_STEPS = 1_000_000
"""How many resources are looked at, in all, for what finds no free one at once: a second or two."""

Span = tuple[int, int]
"""Start and end, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class PromisedPiece:
    """What one reservation has of one resource from ``start`` to ``end``, in seconds since the epoch.

    ``end`` includes the cleaning after it. ``movable``: its lease has not started, and its owner is not bound to this
    resource. ``per_instance`` None is the whole resource. Pieces of one ``group`` have the same candidates; of those
    without one nothing is known. With ``stays_for_others`` it leaves a resource that is in maintenance, but never one
    that somebody else needs.
    """

    lease_id: str
    reservation_id: str
    resource_id: int
    start: int
    end: int
    count: int = 1
    per_instance: Amounts | None = None
    affinity: Affinity = Affinity.ANY
    movable: bool = False
    group: str = ""
    stays_for_others: bool = False

    def meets(self, span: Span) -> bool:
        """Return whether the piece and a span share an instant."""
        return self.start < span[1] and span[0] < self.end


Targets = tuple[tuple[int, int], ...]
"""Resources with the count that each takes."""


@dataclass(frozen=True, slots=True)
class PieceMove:
    """A piece that leaves its resource, and where it goes. ``makes_room``: its resource is not in maintenance."""

    piece: PromisedPiece
    targets: Targets
    makes_room: bool = False


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The moves in the order in which they can be made, and the affected pieces that stay where they are.

    ``fixed`` are those that may not move, ``left`` those for which nothing is free.
    """

    moves: tuple[PieceMove, ...] = ()
    fixed: tuple[PromisedPiece, ...] = ()
    left: tuple[PromisedPiece, ...] = ()


Candidates = Callable[[PromisedPiece], Sequence[Resource]]
"""Returns the resources that a piece could have if they were free, the first the best."""


def plan_moves(
    pieces: Iterable[PromisedPiece],
    candidates: Candidates,
    closed: Mapping[int, Sequence[Span]],
    window: Span,
    hosts: frozenset[int],
    *,
    move: bool = True,
    used: Iterable[PromisedPiece] = (),
) -> MovePlan:
    """Return what becomes of the pieces on ``hosts`` that meet the window.

    ``closed`` has, by resource, the times of other maintenance windows. Without ``move`` all stay, but those ``used``:
    leases in use that may go elsewhere, for which there is what the others leave.
    """
    board = _Board(pieces, closed, dict.fromkeys(hosts, window))
    affected = [p for host in sorted(hosts) for p in board.on(host) if p.meets(window)]
    fixed = [piece for piece in affected if not (piece.movable and move)]
    moving = [piece for piece in affected if piece.movable and move]
    for piece in moving:
        board.lift(piece)
    search = _Search(board, candidates, hosts)
    left = [piece for piece in search.in_order(moving) if not search.place(piece)]
    left = [piece for piece in left if not search.make_room(piece)]
    # What has made room may have made more than was needed.
    left = [piece for piece in left if not search.place(piece)]
    for piece in used:
        board.lift(piece)
        if not search.place(piece):
            board.put(piece, piece.resource_id)
    fixed = [piece for piece in fixed if piece not in search.placed]
    order = {piece: number for number, piece in enumerate(affected)}
    placed = sorted(search.placed, key=lambda piece: order[piece])
    return MovePlan(
        (*search.room, *(PieceMove(piece, search.placed[piece]) for piece in placed)),
        tuple(fixed),
        tuple(sorted(left, key=lambda piece: order[piece])),
    )


class _Board:
    """What is on each resource while the plan is made."""

    def __init__(
        self, pieces: Iterable[PromisedPiece], closed: Mapping[int, Sequence[Span]], window: Mapping[int, Span]
    ) -> None:
        self._on: dict[int, list[PromisedPiece]] = defaultdict(list)
        self._closed: dict[int, list[Span]] = {id_: list(spans) for id_, spans in closed.items()}
        for id_, span in window.items():
            self._closed.setdefault(id_, []).append(span)
        for piece in pieces:
            self._on[piece.resource_id].append(piece)

    def on(self, resource_id: int) -> Sequence[PromisedPiece]:
        """Return what is on a resource."""
        return self._on.get(resource_id, ())

    def is_closed(self, resource_id: int, span: Span) -> bool:
        """Return whether a resource is in maintenance at any time of a span."""
        return any(begin < span[1] and span[0] < end for begin, end in self._closed.get(resource_id, ()))

    def conflicts(self, resource_id: int, piece: PromisedPiece, most: int) -> list[PromisedPiece]:
        """Return what is on a resource in the time of a piece; no more than one more than ``most``."""
        found = []
        start, end = piece.start, piece.end
        for other in self._on.get(resource_id, ()):
            if other.start < end and start < other.end:
                found.append(other)
                if len(found) > most:
                    break
        return found

    def lift(self, piece: PromisedPiece) -> None:
        """Take a piece from where it is."""
        self._on[piece.resource_id].remove(piece)

    def put(self, piece: PromisedPiece, resource_id: int) -> None:
        """Put a piece on a resource."""
        self._on[resource_id].append(piece)

    def take(self, piece: PromisedPiece, resource_id: int) -> None:
        """Take a piece from a resource on which it was put."""
        self._on[resource_id].remove(piece)

    def fits(self, resource: Resource, piece: PromisedPiece) -> int:
        """Return how many instances of a piece fit on a resource in its time."""
        if self.is_closed(resource.id, (piece.start, piece.end)):
            return 0
        met = self.conflicts(resource.id, piece, len(self._on.get(resource.id, ())))
        if piece.per_instance is None:
            return int(not met)
        if any(other.per_instance is None for other in met):
            return 0
        uses = [
            (other.start, other.end, other.count, other.per_instance) for other in met if other.per_instance is not None
        ]
        return Occupancy.of_uses((), {resource.id: uses} if uses else {}).count_free(resource, piece.per_instance)


@dataclass(slots=True)
class _Search:
    """The places found so far. ``room`` are the moves of leases that are not affected themselves.

    These are made first, so none of them goes to ``hosts``, which others have not left by then.
    """

    board: _Board
    candidates: Candidates
    hosts: frozenset[int]
    placed: dict[PromisedPiece, Targets] = field(default_factory=dict)
    room: list[PieceMove] = field(default_factory=list)
    _gone: set[PromisedPiece] = field(default_factory=set)
    _steps: int = 0
    _in_vain: dict[tuple[str, str], list[Span]] = field(default_factory=dict)

    def in_order(self, pieces: Iterable[PromisedPiece]) -> list[PromisedPiece]:
        """Return pieces, those with the fewest places first, then the earliest, then the largest."""

        def key(piece: PromisedPiece) -> tuple[float, int, int, str, int]:
            places = sum(1 for _ in self._list_free_hosts(piece)) / max(piece.count, 1)
            return places, piece.start, -piece.count, piece.reservation_id, piece.resource_id

        return sorted(pieces, key=key)

    def place(self, piece: PromisedPiece) -> bool:
        """Place a piece, for which others that were placed before may move on; return whether that succeeded."""
        return self._place_matched(piece) if piece.per_instance is None else self._place_packed(piece)

    def make_room(self, piece: PromisedPiece) -> bool:
        """Place a piece on a resource whose only other use in that time finds another one; a whole resource only."""
        if piece.per_instance is not None or self._steps >= MOST_STEPS or self._is_in_vain("room", piece):
            return False
        touched = {move.piece.lease_id for move in self.room} | {piece.lease_id for piece in self.placed}
        options = list(self._list_exchanges(piece))
        # As few leases as possible are touched.
        options.sort(key=lambda option: option[0].lease_id not in touched)
        for other, resource_id in options:
            free = self._find_other_place(other)
            if free is not None:
                self._in_vain.clear()
                self.board.take(other, resource_id)
                self.board.put(other, free.id)
                self._gone.add(other)
                self.room.append(PieceMove(other, ((free.id, 1),), makes_room=True))
                self._put(piece, resource_id)
                return True
        self._note_failure("room", piece)
        return False

    def _find_other_place(self, piece: PromisedPiece) -> Resource | None:
        """Return a free resource for a piece that is to make room; it is not where it is now."""
        if self._is_in_vain("elsewhere", piece):
            return None
        found = None
        for resource in self._list_open_hosts(piece):
            self._steps += 1
            if resource.id not in self.hosts and not self.board.conflicts(resource.id, piece, 0):
                found = resource
                break
        if found is None:
            self._note_failure("elsewhere", piece)
        return found

    def _is_in_vain(self, what: str, piece: PromisedPiece) -> bool:
        """Tell whether a search has failed for a piece that has the same candidates and needs no more time.

        While pieces are only added, it fails again.
        """
        spans = self._in_vain.get((what, piece.group), ()) if piece.group else ()
        return any(piece.start <= start and end <= piece.end for start, end in spans)

    def _note_failure(self, what: str, piece: PromisedPiece) -> None:
        if piece.group:
            self._in_vain.setdefault((what, piece.group), []).append((piece.start, piece.end))

    def _list_exchanges(self, piece: PromisedPiece) -> Iterator[tuple[PromisedPiece, int]]:
        """Yield what stands alone in the way of a piece and could move, with the resource."""
        for resource in self._list_open_hosts(piece):
            self._steps += 1
            met = self.board.conflicts(resource.id, piece, 1)
            if len(met) == 1 and met[0].movable and not met[0].stays_for_others and met[0].per_instance is None:
                other = met[0]
                if other not in self.placed and other not in self._gone:
                    yield other, resource.id

    def _list_open_hosts(self, piece: PromisedPiece) -> Iterator[Resource]:
        """Yield the candidates of a piece that are not in maintenance in its time."""
        span = piece.start, piece.end
        return (r for r in self.candidates(piece) if not self.board.is_closed(r.id, span))

    def _list_free_hosts(self, piece: PromisedPiece) -> Iterator[Resource]:
        """Yield the candidates on which a piece, or a part of it, fits now."""
        if piece.per_instance is None:
            return (r for r in self._list_open_hosts(piece) if not self.board.conflicts(r.id, piece, 0))
        return (r for r in self.candidates(piece) if self.board.fits(r, piece))

    def _put(self, piece: PromisedPiece, resource_id: int) -> None:
        self.board.put(piece, resource_id)
        self.placed[piece] = ((resource_id, 1),)

    def _place_matched(self, piece: PromisedPiece) -> bool:
        """Place a whole piece along the shortest augmenting path, breadth first."""
        if self._is_in_vain("path", piece):
            return False
        came_by: dict[PromisedPiece, tuple[PromisedPiece, int]] = {}
        seen: set[int] = set()
        queue = [piece]
        for at in queue:
            if at is not piece:
                self._steps += len(self.candidates(at))
                if self._steps >= MOST_STEPS:
                    break
            steps: list[tuple[PromisedPiece, int]] = []
            for resource in self._list_open_hosts(at):
                if resource.id in seen:
                    continue
                met = self.board.conflicts(resource.id, at, 1)
                if not met:
                    self._shift_pieces(piece, at, resource.id, came_by)
                    return True
                other = met[0]
                if len(met) == 1 and other in self.placed and other.per_instance is None and other not in came_by:
                    steps.append((other, resource.id))
            for other, resource_id in steps:
                if other not in came_by and other is not piece and resource_id not in seen:
                    # A resource is on one path only: else two pieces of the path could meet there.
                    seen.add(resource_id)
                    came_by[other] = at, resource_id
                    queue.append(other)
        self._note_failure("path", piece)
        return False

    def _shift_pieces(
        self,
        piece: PromisedPiece,
        last: PromisedPiece,
        free: int,
        came_by: Mapping[PromisedPiece, tuple[PromisedPiece, int]],
    ) -> None:
        """Put the last piece of a path on the free resource, and each earlier one where the next one was."""
        target = free
        if last != piece:
            self._in_vain.clear()
        while last != piece:
            before, resource_id = came_by[last]
            self.board.take(last, resource_id)
            self._put(last, target)
            last, target = before, resource_id
        self._put(piece, target)

    def _place_packed(self, piece: PromisedPiece) -> bool:
        """Place all instances of a piece on what is free of shared resources, or none."""
        missing = piece.count
        targets: list[tuple[int, int]] = []
        own = {other.resource_id for other in self._list_siblings(piece)} if piece.affinity is Affinity.APART else set()
        for resource in self.candidates(piece):
            if not missing or resource.id in own:
                continue
            fits = min(missing, self.board.fits(resource, piece))
            if piece.affinity is Affinity.APART:
                fits = min(fits, 1)
            elif piece.affinity is Affinity.TOGETHER and fits < piece.count:
                fits = 0
            if fits:
                targets.append((resource.id, fits))
                missing -= fits
        if missing:
            return False
        for resource_id, count in targets:
            self.board.put(_make_part(piece, resource_id, count), resource_id)
        self.placed[piece] = tuple(targets)
        return True

    def _list_siblings(self, piece: PromisedPiece) -> Iterator[PromisedPiece]:
        """Yield the other pieces of a reservation, where they are now."""
        for resource in self.candidates(piece):
            for other in self.board.on(resource.id):
                if other.reservation_id == piece.reservation_id and other is not piece:
                    yield _make_part(other, resource.id, other.count)


def _make_part(piece: PromisedPiece, resource_id: int, count: int) -> PromisedPiece:
    """Return a part of a piece on another resource."""
    return PromisedPiece(
        piece.lease_id,
        piece.reservation_id,
        resource_id,
        piece.start,
        piece.end,
        count,
        piece.per_instance,
        piece.affinity,
    )
