# SPDX-License-Identifier: Apache-2.0
"""Numbers among parameters, and the sentences that refuse them."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import InvalidInput
from blazar.resources.contract.parameters import whole_number


@pytest.mark.parametrize(("given", "number"), [(1, 1), ("7", 7), (2**31 - 1, 2**31 - 1)])
def test_numbers_and_their_texts_are_taken(given, number):
    assert whole_number(given, "min", least=1, what="a whole number of hosts") == number


@pytest.mark.parametrize("given", [0, -1, "x", None, True, 1.5, [], "1e3"])
def test_what_is_too_small_or_none_is_told_the_least_only(given):
    with pytest.raises(InvalidInput, match="give a whole number of hosts, at least 1$"):
        whole_number(given, "min", least=1, what="a whole number of hosts")


@pytest.mark.parametrize("given", [2**31, "2147483648", "9" * 500])
def test_what_is_too_large_is_told_the_most_only(given):
    with pytest.raises(InvalidInput, match="give a whole number of hosts, at most 2147483647$"):
        whole_number(given, "min", least=1, what="a whole number of hosts")


@pytest.mark.parametrize("given", [0, 4095, "x"])
def test_a_range_is_told_whole(given):
    with pytest.raises(InvalidInput, match="give the id of a vlan, a whole number from 1 to 4094$"):
        whole_number(given, "segment_id", least=1, what="the id of a vlan, a whole number", most=4094)
