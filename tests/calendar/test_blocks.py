# SPDX-License-Identifier: Apache-2.0
"""Blocks of the calendar, against an oracle that asks minute by minute."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.calendar.blocks import Use, blocks_for_member, blocks_for_operator, list_out_of_use
from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.calendar.views import Block, BlockKind, OutOfUse
from tests.builders import NOON, a_host, hours

CASES = max(150, int(os.environ.get("BLAZAR_CASES", "150")) // 10)
MINUTE = timedelta(minutes=1)
SIZES = (None, Amounts.of({"VCPU": 1}), Amounts.of({"VCPU": 2, "MEMORY_MB": 512}), Amounts.of({"MEMORY_MB": 1024}))


def at(minute):
    return NOON + minute * MINUTE


@st.composite
def uses_of(draw, *, foreign):
    start = draw(st.integers(0, 20))
    length, cleaning = draw(st.integers(0, 8)), draw(st.integers(0, 3))
    lease_id = None if foreign and draw(st.booleans()) else draw(st.sampled_from("ab"))
    end = start + length
    return Use(
        1, at(start), at(end), at(end + cleaning), draw(st.sampled_from(SIZES)), lease_id, lease_id and f"{lease_id}-r"
    )


windows = st.tuples(st.integers(-2, 22), st.integers(1, 20)).map(lambda pair: Window(at(pair[0]), at(sum(pair))))


def used(uses, minute):
    """What is used at a minute: nothing, all (None), or the sum."""
    then = [use.amounts for use in uses if use.start <= minute < max(use.end, use.clean_at)]
    return None if None in then else sum(then, Amounts())


def minutes(window):
    return [window.start + number * MINUTE for number in range(int(window.duration / MINUTE))]


@settings(max_examples=CASES)
@given(st.lists(uses_of(foreign=True), max_size=7), windows)
def test_a_member_sees_what_others_use_at_each_minute_in_the_fewest_blocks(uses, window):
    foreign = [use for use in uses if use.lease_id is None]
    blocks = [block for block in blocks_for_member(uses, window) if block.kind is BlockKind.OTHER]
    expected = [used(foreign, minute) for minute in minutes(window)]
    for minute, amounts in zip(minutes(window), expected, strict=True):
        shown = [block for block in blocks if block.start <= minute < block.end]
        assert len(shown) == (amounts is None or bool(amounts))
        assert not shown or shown[0].used == amounts
    changes = sum(
        1 for before, now in zip([Amounts(), *expected], expected, strict=False) if before != now and now != Amounts()
    )
    assert len(blocks) == changes
    assert all(block.lease_id is None and block.reservation_id is None for block in blocks)


@settings(max_examples=CASES)
@given(st.lists(uses_of(foreign=True), max_size=7), windows)
def test_own_uses_and_their_cleaning_are_shown_each_by_itself(uses, window):
    own = [use for use in uses if use.lease_id is not None]
    blocks = [block for block in blocks_for_member(uses, window) if block.kind is not BlockKind.OTHER]
    for minute in minutes(window):
        shown = sorted(
            (block.kind, block.lease_id or "", str(block.used)) for block in blocks if block.start <= minute < block.end
        )
        in_use = [("mine", use.lease_id, str(use.amounts)) for use in own if use.start <= minute < use.end]
        cleaned = [("cleaning", "", str(use.amounts)) for use in own if use.end <= minute < use.clean_at]
        assert shown == sorted(in_use + cleaned)
    assert all(window.start <= block.start < block.end <= window.end for block in blocks)
    assert [block.start for block in blocks] == sorted(block.start for block in blocks)


@settings(max_examples=CASES)
@given(st.lists(uses_of(foreign=False), max_size=7), windows)
def test_an_operator_sees_each_lease_with_all_that_it_uses(uses, window):
    blocks = [block for block in blocks_for_operator(uses, window) if block.kind is BlockKind.LEASE]
    for minute in minutes(window):
        for lease in "ab":
            mine = [use.amounts for use in uses if use.lease_id == lease and use.start <= minute < use.end]
            shown = [b.used for b in blocks if b.lease_id == lease and b.start <= minute < b.end]
            assert (None in mine) == (None in shown)
            assert None in mine or sum(shown, Amounts()) == sum(mine, Amounts())
    assert len({(b.lease_id, b.start, b.end) for b in blocks}) <= len(blocks)


def test_two_reservations_of_a_lease_on_one_host_are_one_block_for_operators():
    small, large = SIZES[1:3]
    uses = [Use(1, at(0), at(5), at(5), size, "a", f"r-{size}") for size in (small, large)]
    assert blocks_for_operator(uses, hours(0, 1)) == [Block(BlockKind.LEASE, at(0), at(5), small + large, "a")]
    assert [block.reservation_id for block in blocks_for_member(uses, hours(0, 1))] == [
        f"r-{s}" for s in (small, large)
    ]


def test_touching_leases_of_others_are_one_block_with_their_cleaning():
    uses = [Use(1, at(0), at(5), at(7)), Use(1, at(7), at(9), at(11)), Use(1, at(12), at(13), at(13))]
    window = Window(at(3), at(60))
    assert blocks_for_member(uses, window) == [
        Block(BlockKind.OTHER, at(3), at(11)),
        Block(BlockKind.OTHER, at(12), at(13)),
    ]


def test_a_host_is_out_of_use_since_then_and_until_then():
    def shown(reasons=True, window=None, **condition):
        host = replace(a_host(1), reservable=False, **condition)
        return [
            (b.code, b.start, b.end, b.reason) for b in list_out_of_use(host, window or hours(0, 24), reasons=reasons)
        ]

    assert list_out_of_use(a_host(1), hours(0, 24), reasons=True) == []
    assert shown() == [(OutOfUse.BEING_REMOVED, NOON, None, None)]
    open_to_all = {"attributes": {"evacuable": True}}
    assert shown(**open_to_all) == [(OutOfUse.EVACUABLE, NOON, None, None)]
    assert shown(**open_to_all, withdrawn=True) == [(OutOfUse.BEING_REMOVED, NOON, None, None)]
    broken = {"failure": "down", "failed_since": NOON + 2 * MINUTE + timedelta(microseconds=7)}
    assert shown(**broken) == [(OutOfUse.FAILED, at(2), None, "down")]
    assert shown(reasons=False, **broken) == [(OutOfUse.FAILED, at(2), None, None)]
    assert shown(window=Window(at(-9), at(1)), **broken) == []
    disabled = {"disabled": True, "disabled_reason": "fan", "disabled_since": at(-60), "disabled_until": at(60)}
    later = (OutOfUse.TO_BE_ENABLED, at(60), None, "fan")
    assert shown(**disabled) == [(OutOfUse.DISABLED, NOON, at(60), "fan"), later]
    assert [reason for *_, reason in shown(reasons=False, **disabled)] == [None, None]
    assert shown(window=hours(0, 0.5), **disabled) == [(OutOfUse.DISABLED, NOON, at(30), "fan")]
    assert shown(window=hours(1, 2), **disabled) == [later]
    assert shown(window=hours(2, 3), **disabled) == [(OutOfUse.TO_BE_ENABLED, at(120), None, "fan")]
    assert shown(window=hours(-2, -1), **disabled) == []
    assert shown(**{**disabled, "disabled_until": None}) == [(OutOfUse.DISABLED, NOON, None, "fan")]
    for code, more in ((OutOfUse.EVACUABLE, open_to_all), (OutOfUse.BEING_REMOVED, {**open_to_all, "withdrawn": True})):
        assert shown(**disabled, **more)[1:] == [(code, at(60), None, None)]
    assert [code for code, *_ in shown(**disabled, **broken)] == [OutOfUse.DISABLED, OutOfUse.FAILED]


@pytest.mark.slow
@pytest.mark.parametrize(
    "comparison",
    [
        test_a_member_sees_what_others_use_at_each_minute_in_the_fewest_blocks,
        test_own_uses_and_their_cleaning_are_shown_each_by_itself,
        test_an_operator_sees_each_lease_with_all_that_it_uses,
    ],
)
def test_a_thousand_cases(comparison):
    """With BLAZAR_CASES=10000, as .ci/nightly runs it, each comparison above tries a thousand."""
    comparison()
