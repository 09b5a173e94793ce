# SPDX-License-Identifier: Apache-2.0
"""What is shown of the use of one resource in a range: blocks, merged where they belong to others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

from blazar.model.base.amounts import NOTHING, Amounts
from blazar.model.base.window import Window
from blazar.model.calendar.views import Block, BlockKind, OutOfUse
from blazar.model.maintenance.windows import MaintenanceBlock
from blazar.model.resources.resource import Resource

Instant = TypeVar("Instant", datetime, int)


class Use(NamedTuple):
    """A use of a resource ``[start, end)`` and its cleaning until ``clean_at``; a tuple, as a page has so many.

    ``amounts`` are what it takes, None for all of the resource. ``lease_id`` is None for a use of others, of which
    nothing else is known.
    """

    resource_id: int
    start: datetime
    end: datetime
    clean_at: datetime
    amounts: Amounts | None = None
    lease_id: str | None = None
    reservation_id: str | None = None
    project_id: str | None = None


def blocks_for_member(uses: Sequence[Use], window: Window) -> list[Block]:
    """Return the blocks of the caller's own uses, and as few as possible for those of others, cut at the window."""
    own = [use for use in uses if use.lease_id is not None]
    found = list(_merge_uses([use for use in uses if use.lease_id is None] if own else uses, window))
    _add_blocks(found, own, BlockKind.MINE, window)
    found.sort(key=_ORDER)
    return found


def blocks_for_operator(uses: Sequence[Use], window: Window) -> list[Block]:
    """Return a block for each lease, whichever of its reservations takes the resource, cut at the window."""
    found: list[Block] = []
    _add_blocks(found, _join_by_lease(uses), BlockKind.LEASE, window)
    found.sort(key=_ORDER)
    return found


def _join_by_lease(uses: Sequence[Use]) -> Iterable[Use]:
    """Return uses with those as one that a lease has at one time."""
    if len({use.lease_id for use in uses}) == len(uses):
        return uses
    together: dict[tuple[str | None, datetime, datetime, datetime], Use] = {}
    for use in uses:
        key = use.lease_id, use.start, use.end, use.clean_at
        other = together.get(key)
        together[key] = use if other is None else _join_uses(use, other)
    return together.values()


def list_out_of_use(
    resource: Resource, window: Window, closed: Sequence[MaintenanceBlock] = (), *, reasons: bool
) -> list[Block]:
    """Return why a resource takes no new allocations in a window, a block for each cause; usually none.

    ``closed`` are its maintenance windows. The causes of today are taken to last: a resource that its operator has
    disabled until a date takes no new allocation before it is enabled, whatever the window, so that what is after the
    date is not free either.
    """
    if resource.reservable and not closed:
        return []
    found = [
        Block(
            BlockKind.OUT_OF_USE,
            max(block.window.start, window.start),
            min(block.window.end, window.end),
            code=OutOfUse.MAINTENANCE,
            reason=block.reason if reasons else None,
        )
        for block in closed
        if block.window.overlaps(window)
    ]
    return found + [
        Block(
            BlockKind.OUT_OF_USE,
            max(since or window.start, window.start),
            None if until is None else min(until, window.end),
            code=code,
            reason=reason if reasons else None,
        )
        for code, since, until, reason in _list_causes(resource)
        if (since is None or since < window.end) and (until is None or until > window.start)
    ]


def _list_causes(resource: Resource) -> Iterator[tuple[OutOfUse, datetime | None, datetime | None, str | None]]:
    """Yield the causes for which a resource is out of use: code, since, until, reason."""
    if resource.reservable:
        return
    until = resource.disabled_until
    if resource.disabled:
        since = resource.disabled_since
        yield OutOfUse.DISABLED, since and _second(since), until, resource.disabled_reason
    if resource.failed_since is not None:
        yield OutOfUse.FAILED, _second(resource.failed_since), None, resource.failure
    elif not resource.disabled or until is not None:
        if resource.withdrawn or not (resource.disabled or resource.evacuable):
            code = OutOfUse.BEING_REMOVED
        else:
            code = OutOfUse.EVACUABLE if resource.evacuable else OutOfUse.TO_BE_ENABLED
        yield code, until, None, resource.disabled_reason if code is OutOfUse.TO_BE_ENABLED else None


def _add_blocks(found: list[Block], uses: Iterable[Use], kind: BlockKind, window: Window) -> None:
    """Add the blocks of uses, and those of the cleaning after them, as far as they are in the window."""
    first, last, is_mine = window.start, window.end, kind is BlockKind.MINE
    for _, start, end, clean_at, amounts, lease_id, reservation_id, _ in uses:
        since, until = start if start > first else first, end if end < last else last
        if since < until:
            found.append(Block(kind, since, until, amounts, lease_id, reservation_id if is_mine else None))
        if clean_at > end:
            since, until = max(end, first), min(clean_at, last)
            if since < until:
                found.append(Block(BlockKind.CLEANING, since, until, amounts))


def _join_uses(one: Use, other: Use) -> Use:
    """Return two uses of one lease at one time as one."""
    amounts = None if one.amounts is None or other.amounts is None else one.amounts + other.amounts
    return Use(one.resource_id, one.start, one.end, one.clean_at, amounts, one.lease_id, one.reservation_id)


def _merge_uses(uses: Iterable[Use], window: Window) -> Iterator[Block]:
    """Yield the times in which the sum of what is used, cleaning included, does not change."""
    whole: list[tuple[datetime, datetime]] = []
    shared: list[tuple[datetime, datetime, Amounts]] = []
    first, last = window.start, window.end
    for _, start, end, clean_at, amounts, *_ in uses:
        end = max(end, clean_at) if clean_at != end else end
        since, until = start if start > first else first, end if end < last else last
        if since < until:
            if amounts is None:
                whole.append((since, until))
            else:
                shared.append((since, until, amounts))
    spans = join_spans(whole)
    if not shared:
        for start, end in spans:
            yield Block(BlockKind.OTHER, start, end)
        return
    yield from _sum_shares(spans, shared)


def join_spans(spans: list[tuple[Instant, Instant]]) -> list[tuple[Instant, Instant]]:
    """Return the fewest spans that cover the same time."""
    spans.sort()
    found: list[tuple[Instant, Instant]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def _sum_shares(
    whole: Iterable[tuple[datetime, datetime]], shared: Iterable[tuple[datetime, datetime, Amounts]]
) -> Iterator[Block]:
    """Yield a block for each run of instants at which the same is used of a resource that is shared."""
    places: dict[Amounts | None, int] = {}
    changes: list[tuple[datetime, int, int]] = []
    for start, end, amounts in chain(((*span, None) for span in whole), shared):
        place = places.setdefault(amounts, len(places))
        changes += ((start, place, 1), (end, place, -1))
    changes.sort()
    sizes, counts = tuple(places), [0] * len(places)
    since: datetime | None = None
    used: Amounts | None = NOTHING
    for instant, group in groupby(changes, itemgetter(0)):
        for _, place, change in group:
            counts[place] += change
        now = _sum_used(sizes, tuple(counts))
        if now != used:
            if since is not None:
                yield Block(BlockKind.OTHER, since, instant, used)
            since, used = None if now == NOTHING else instant, now


# Hosts that are alike are used alike: it is summed once for all of them.
@lru_cache(maxsize=1024)
def _sum_used(sizes: tuple[Amounts | None, ...], counts: tuple[int, ...]) -> Amounts | None:
    """Return what so many uses of these sizes take together; None if one takes the whole resource."""
    total = NOTHING
    for size, count in zip(sizes, counts, strict=True):
        if size is None and count:
            return None
        if size is not None:
            total += size.times(count)
    return total


_ORDER = itemgetter(*map(Block._fields.index, ("start", "end", "kind", "lease_id")))
"""The order of uses; of two of one kind both have a lease, or neither has."""


def _second(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)
