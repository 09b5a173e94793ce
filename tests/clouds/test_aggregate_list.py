# SPDX-License-Identifier: Apache-2.0
"""What is looked for in the aggregates of a cloud is what a search of the list finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blazar.clouds.ports.compute import Aggregate, AggregateList

WORDS = st.sampled_from("abcd")


@st.composite
def lists(draw):
    made = draw(st.lists(st.tuples(WORDS, st.lists(WORDS), st.dictionaries(WORDS, WORDS)), max_size=6))
    return AggregateList(
        Aggregate(number, name, None, tuple(dict.fromkeys(hosts)), keys)
        for number, (name, hosts, keys) in enumerate(made)
    )


@given(lists(), WORDS)
def test_what_is_found_is_what_a_search_of_the_list_finds_in_its_order(aggregates, word):
    assert aggregates.named(word) == next((a for a in aggregates if a.name == word), None)
    assert aggregates.with_host(word) == tuple(a for a in aggregates if word in a.hosts)
    assert aggregates.with_key(word) == tuple(a for a in aggregates if word in a.metadata)
