# SPDX-License-Identifier: Apache-2.0
"""The use of a project, computed in steps, is the one computed from all its pieces."""

from __future__ import annotations

import math
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from blazar.calendar.queue.overlay import count_totals
from blazar.calendar.queue.usage import Account, Rates, UsedShare, charge_for_returned, dominant_share, sum_use
from blazar.calendar.queue.values import DAY, HOUR, Inventory
from blazar.model.base.amounts import Amounts
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.demand import Demand, TraitRequirements
from blazar.model.resources.pools import CardPool
from blazar.model.resources.resource import FLOATING_IP, HOST
from tests.builders import a_host
from tests.cases import cases

NOW = 100 * DAY
WEEK = Rates(half_life=7 * DAY)


def test_everything_held_for_one_half_life_is_five_share_days():
    assert sum_use([UsedShare(1.0, NOW - 7 * DAY, NOW)], NOW, WEEK) / DAY == pytest.approx(5.05, abs=0.001)
    assert 7 / math.log(2) * 0.5 == pytest.approx(5.05, abs=0.001)


def test_after_another_half_life_it_counts_half():
    piece = UsedShare(1.0, NOW - 7 * DAY, NOW)
    assert sum_use([piece], NOW + 7 * DAY, WEEK) == pytest.approx(sum_use([piece], NOW, WEEK) / 2)


def test_what_is_booked_counts_at_once_and_in_full():
    assert sum_use([UsedShare(0.5, NOW + DAY, NOW + 3 * DAY)], NOW, WEEK) == DAY
    assert sum_use([UsedShare(0.5, NOW + DAY, NOW + 3 * DAY)], NOW, replace(WEEK, entry_penalty=0.0)) == 0


def test_what_is_given_back_early_is_charged_in_part():
    pieces = charge_for_returned(UsedShare(1.0, NOW, NOW + 10 * HOUR), NOW + 2 * HOUR, WEEK)
    assert pieces == (UsedShare(1.0, NOW, NOW + 2 * HOUR), UsedShare(0.25, NOW + 2 * HOUR, NOW + 10 * HOUR))
    assert sum_use(pieces, NOW, WEEK) == 4 * HOUR
    assert charge_for_returned(UsedShare(1.0, NOW, NOW + HOUR), NOW + HOUR, WEEK) == (UsedShare(1.0, NOW, NOW + HOUR),)


def test_four_of_four_scarce_resources_weigh_as_much_as_all_hosts():
    hosts = tuple(replace(a_host(n), traits=frozenset({"FPGA"} if n < 4 else ())) for n in range(400))
    totals = count_totals({HOST: Inventory(hosts), FLOATING_IP: Inventory(())})
    fpgas = Demand(HOST, 4, 4, traits=TraitRequirements(frozenset({"FPGA"})))
    assert dominant_share([fpgas], [4], "p", totals, WEEK) == 1.0
    assert dominant_share([Demand(HOST, 4, 4)], [4], "p", totals, WEEK) == 0.01
    servers = Demand(HOST, 16, 16, per_instance=Amounts.of({"VCPU": 2}))
    assert dominant_share([servers], [16], "p", totals, WEEK) == 0.01
    gpus = Amounts.of({"VCPU": 2, "VGPU": 1})
    cards = CardPool("VGPU", 1, 4)
    with_cards = tuple(replace(h, capacity=h.capacity + Amounts.of({"VGPU": 4 * (n < 4)})) for n, h in enumerate(hosts))
    some = count_totals({HOST: Inventory(tuple(replace(h, pools=(cards,)) for h in with_cards))})
    all_cards = Demand(HOST, 16, 16, per_instance=gpus, cards=(Cards("VGPU", 1),))
    assert dominant_share([all_cards], [16], "p", some, WEEK) == 1.0
    light = Rates(kind_weights={HOST: 0.1})
    assert dominant_share([fpgas, fpgas], [4, 4], "p", totals, light) == pytest.approx(0.2)


def test_a_rate_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="half-life"):
        Rates(half_life=0)
    with pytest.raises(ValueError, match="weight"):
        Rates(project_weights={"p": 0.0})


pieces = st.lists(
    st.tuples(st.floats(0.001, 1.0), st.integers(0, 20 * DAY), st.integers(1, 9 * DAY), st.floats(0.0, 1.3)), max_size=8
)


@settings(max_examples=cases(200), deadline=None)
@given(pieces, st.integers(1, DAY * 40))
def test_increments_give_what_a_computation_from_all_pieces_gives(drawn, until):
    """Each piece is booked, begins, and ends or is given back; the account moves from one of these to the next."""
    steps = []
    known = []
    for share_, begin, length, part in drawn:
        piece = UsedShare(share_, begin, begin + length)
        back = begin + int(part * length)
        steps.append((begin // 2, 0, "book", piece))
        steps.append((begin, 2, "begin", piece))
        if back < piece.end:
            steps.append((back, 3, "return", piece))
            known += charge_for_returned(piece, back, WEEK)
            steps.append((piece.end, 1, "end", replace(piece, share=piece.share * WEEK.unused_factor)))
        else:
            known.append(piece)
            steps.append((piece.end, 1, "end", piece))
    account = Account(0)
    for at, _, what, piece in sorted(steps, key=lambda step: step[:2]):
        account = account.later(at, WEEK)
        match what:
            case "book":
                account = account.booked(piece)
            case "begin":
                account = account.begun(piece.share)
            case "return":
                account = account.returned(piece, WEEK)
            case "end":
                account = account.ended(piece.share)
    at = max([until, *(at for at, *_ in steps)])
    account = account.later(at, WEEK)
    assert account.value(WEEK) == pytest.approx(sum_use(known, at, WEEK), rel=1e-6, abs=1e-3)
    assert account.rate == pytest.approx(0, abs=1e-9)


@settings(max_examples=cases(100), deadline=None)
@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.integers(0, 20 * DAY), st.integers(1, DAY)), max_size=8))
def test_an_account_that_is_rebuilt_in_the_middle_goes_on_the_same(drawn):
    known = [UsedShare(s, begin, begin + length) for s, begin, length in drawn]
    middle = 10 * DAY
    account = Account.of(known, middle, WEEK)
    changes = [(p.end, -p.share) for p in known if p.end > middle] + [
        (p.begin, p.share) for p in known if p.begin > middle
    ]
    for at, change in sorted(changes):
        account = account.later(at, WEEK)
        account = account.begun(change) if change > 0 else account.ended(-change)
    account = account.later(30 * DAY, WEEK)
    assert account.value(WEEK) == pytest.approx(sum_use(known, 30 * DAY, WEEK), rel=1e-6, abs=1e-3)
