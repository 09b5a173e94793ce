# SPDX-License-Identifier: Apache-2.0
"""A calendar that is kept answers as one that is read again."""

from __future__ import annotations

import random
import sys
from datetime import timedelta

import pytest

from blazar.calendar.kept import KeptCalendar, KeptResource, OwnUse
from blazar.calendar.occupancy import Occupancy
from blazar.calendar.timeline import OutsideUses, Timeline, TimelineTerms, Use, sort_uses
from blazar.model.base.amounts import Amounts

SMALL, LARGE = Amounts.of({"VCPU": 2}), Amounts.of({"VCPU": 3, "MEMORY_MB": 5})


def kept(uses: dict[int, list[Use]], left: dict[int, list[Use]] | None = None) -> KeptCalendar:
    gone = left or {}
    return KeptCalendar(
        {id_: KeptResource.of_uses(1, found, gone.get(id_, ())) for id_, found in uses.items()}, {7: ((5, 9),)}
    )


def test_a_change_leaves_what_was_seen_before_as_it_was():
    before = kept({1: [(0, 10, 1, None)], 2: []})
    after = before.replace({2: KeptResource.of_uses(2, [(0, 5, 1, None)])})
    terms = TimelineTerms(0)
    assert before.occupancy(0, 9, terms).taken == {1, 7}
    assert after.occupancy(0, 9, terms).taken == {1, 2, 7}
    assert (before.size, after.size) == (1, 2)


def test_who_should_have_left_is_in_the_way_until_it_has():
    calendar = kept({1: [(0, 10, 1, None), (30, 40, 1, None)], 2: [(0, 10, 1, None)]}, {3: []})
    assert calendar.find_late(9) == {}
    assert set(calendar.find_late(10)) == {1, 2}
    gone = calendar.replace({2: KeptResource.of_uses(1, [], [(0, 10, 1, None)])})
    assert set(gone.find_late(10)) == {1}
    late = gone.replace({3: KeptResource.of_uses(1, [(0, 12, 1, None)])})
    assert (set(late.find_late(11)), set(late.find_late(12)), set(late.find_late(45))) == ({1}, {1, 3}, {1, 3})


def test_a_lease_is_not_in_its_own_way_not_even_in_maintenance():
    use = (0, 10, 1, None)
    calendar = kept({7: [use], 8: [use]})
    terms = TimelineTerms(0)
    own = [OwnUse(7, use), OwnUse(8, use)]
    assert calendar.occupancy(2, 10, terms, own).taken == frozenset()
    assert calendar.occupancy(2, 10, terms).taken == {7, 8}
    assert calendar.timeline(2, 10, terms, own).uses == {}
    assert calendar.occupancy(2, 12, terms, [OwnUse(7, (0, 8, 1, None))]).taken == {7, 8}


def random_uses(dice: random.Random) -> list[Use]:
    found = []
    for _ in range(dice.randrange(5)):
        start = dice.randrange(40)
        found.append((start, start + dice.randrange(1, 9), dice.randrange(1, 4), dice.choice([None, SMALL, LARGE])))
    return found


def plain(uses: dict[int, list[Use]], terms: TimelineTerms) -> Timeline:
    """Return the timeline from now on, in which each use is looked at."""
    seen = {
        id_: [use if not terms.without_amounts else (*use[:2], 1, None) for use in found] for id_, found in uses.items()
    }
    late = {id_: [use for use in found if use[1] <= terms.now] for id_, found in seen.items()}
    some = {id_: [use for use in found if use[1] > terms.now] for id_, found in seen.items()}
    return Timeline(sort_uses(some), terms, OutsideUses({id_: found for id_, found in late.items() if found}))


def beside(occupancy: Occupancy) -> dict[int, timedelta]:
    """Return the gaps of what can be chosen."""
    return {id_: gap for id_, gap in occupancy.room.items() if id_ not in occupancy.taken}


@pytest.mark.parametrize("whole", [True, False])
def test_windows_and_ranges_are_as_those_of_which_all_uses_are_looked_at(whole: bool):
    dice = random.Random(5)
    for _ in range(200):
        terms = TimelineTerms(dice.randrange(20), dice.choice([0, 3]), whole)
        uses = {id_: random_uses(dice) for id_ in range(1, 8)}
        calendar = KeptCalendar({id_: KeptResource.of_uses(1, found) for id_, found in uses.items()}, {})
        first = dice.randrange(terms.now, 30)
        every, some = plain(uses, terms), calendar.timeline(first, 50, terms)
        for _ in range(10):
            start = dice.randrange(first, 48)
            end = dice.randrange(start + 1, 50)
            expected = every.occupancy(start, end)
            for found in (calendar.occupancy(start, end, terms), some.occupancy(start, end)):
                assert found.taken == expected.taken
                assert dict(found.peaks.items()) == dict(expected.peaks.items())
                assert beside(found) == beside(expected)


def test_a_use_takes_less_than_two_hundred_bytes():
    uses: list[Use] = [(2_000_000_000 + 1000 * n, 2_000_000_500 + 1000 * n, 1, None) for n in range(1000)]
    resource = KeptResource.of_uses(1, uses)
    instants = {id(at): at for use in uses for at in use[:2]}.values()
    parts = [*resource.uses, *instants, resource.uses, resource.starts, resource.reach]
    # What the collector of garbage adds to each tuple.
    assert sum(map(sys.getsizeof, parts)) + 16 * len(uses) < 200 * len(uses)
