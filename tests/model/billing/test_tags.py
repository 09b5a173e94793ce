# SPDX-License-Identifier: Apache-2.0
"""What a reservation has is charged by the prices by which it was booked; what was booked last goes first."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.billing.tags import PriceTag, TaggedShare, share_tags

NOW = datetime(2030, 4, 1, tzinfo=UTC)
OLD = PriceTag.of({"host": 2})
LATER = PriceTag.of({"host": 2}, NOW)
NEW = PriceTag.of({"host": 3}, NOW + timedelta(hours=1))
OTHER = PriceTag.of({"gpu": 2})


def a_share(amount, *before, new=NEW):
    return TaggedShare({"host": amount} if amount else {}, new, {tag: {"host": number} for tag, number in before})


def shared(shares, *gone):
    lost = [{tag: {"host": number}} for tag, number in gone]
    return [{tag: sizes["host"] for tag, sizes in found.items()} for found in share_tags(shares, lost)]


def test_a_share_that_grows_has_a_layer_more_and_one_that_shrinks_loses_the_last():
    assert shared([a_share(5, (OLD, 2))]) == [{OLD: 2, NEW: 3}]
    assert shared([a_share(3, (OLD, 2), (LATER, 3))]) == [{OLD: 2, LATER: 1}]


def test_what_takes_a_place_has_the_tag_of_that_and_the_first_place_first():
    assert shared([a_share(1), a_share(1)], (LATER, 1), (OLD, 1)) == [{OLD: 1}, {LATER: 1}]


def test_what_was_booked_first_stays_wherever_it_was():
    assert shared([a_share(1, (LATER, 1))], (OLD, 1)) == [{OLD: 1}]


def test_what_has_other_prices_is_not_exchanged():
    assert shared([a_share(1, (LATER, 1))], (OTHER, 1)) == [{LATER: 1}]


_TAGS = st.sampled_from([OLD, LATER, OTHER])
_LAYERS = st.dictionaries(_TAGS, st.integers(1, 4), max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), _LAYERS), max_size=4), st.lists(_LAYERS, max_size=3))
def test_each_share_is_tagged_in_whole_and_nothing_newer_is_kept_than_what_is_lost(shares, gone):
    found = shared(
        [a_share(number, *before.items()) for number, before in shares],
        *[pair for layers in gone for pair in layers.items()],
    )
    assert [sum(tags.values()) for tags in found] == [number for number, _ in shares]
    had: Counter[PriceTag] = Counter()
    for layers in [*gone, *(before for _, before in shares)]:
        had.update(layers)
    has: Counter[PriceTag] = Counter()
    for tags in found:
        has.update(tags)
    lost = had - has
    assert not has - had - Counter({NEW: has[NEW]})
    assert not (has[NEW] and lost)
    assert not (has[LATER] and lost[OLD])
