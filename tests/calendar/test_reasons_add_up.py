# SPDX-License-Identifier: Apache-2.0
"""Reasons add up: each resource is taken away once, and what is left is what the demand could get."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from blazar.calendar.openings import Budget
from blazar.calendar.reasons import describe_requirement, explain_misfits, split_requirement
from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import Together, Topology
from blazar.model.resources.requirements import All, AnyOf, Comparison, Not
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import StepCode
from tests.builders import a_host
from tests.calendar.test_openings import CASES, RANGE, ZERO, Stock, Use, changes, questions


def explained(stock, end, start=0):
    """Return why each demand of a stock does not fit, None where it does."""
    search = stock.kind_search(Budget(10**6))
    parts = [split_requirement(demand.requirement) for demand in stock.demands]
    return explain_misfits(search, parts, ZERO + start, ZERO + end, ZERO + RANGE)


def check(stock, end):
    found = explained(stock, end)
    refused = stock.booked(0, end) is None
    assert not any(found) or refused, "what fits needs no reason"
    for demand, each in zip(stock.demands, found, strict=True):
        if each is None:
            continue
        assert 0 <= each.free < demand.min_count
        if not demand.whole:
            # Hosts are counted, and then servers.
            continue
        left = each.steps[0].remaining
        assert each.steps[0].code is StepCode.REGISTERED
        for step in each.steps[1:]:
            assert step.remaining <= left
            assert step.removed in (None, left - step.remaining)
            left = step.remaining
        assert left == each.free


@settings(max_examples=CASES)
@given(questions)
def test_steps_add_up_to_what_is_free(question):
    stocks, length = question
    for stock in stocks:
        check(stock, length)


@settings(max_examples=CASES)
@given(changes)
def test_steps_add_up_for_what_is_in_use(question):
    stocks, length = question
    for stock in stocks:
        check(stock, length)


def test_what_is_in_use_and_booked_by_others_is_counted_once():
    hosts = tuple(a_host(number) for number in range(1, 6))
    uses = tuple(Use(number, 4, 9) for number in range(1, 6))
    stock = Stock(HOST, hosts, uses, (Demand(HOST, 2, 2, pinned=frozenset({1, 2})),))
    (none,) = explained(stock, 6)
    assert none.message.startswith("5 hosts; 3 booked until ")
    assert none.message.endswith("; 2 in use by the reservation and promised to others; 0 free")
    (one,) = explained(replace(stock, uses=uses[:1]), 6)
    assert one.message == (
        "5 hosts; 1 in use by the reservation and promised to others; 3 that cannot replace what is in use; 1 free"
    )


def test_what_is_lost_in_use_is_the_reason_whatever_lies_where():
    """A pair of hosts in one rack, of which one has failed and is not returned in time."""
    hosts = (a_host(1, reservable=False, rack="r1"), a_host(2, rack="r1"))
    pair = Demand(HOST, 2, 2, pinned=frozenset({1}), topology=Topology(Together("rack", size=2)))
    stock = Stock(HOST, hosts, (Use(1, -9, -4, late=True),), (pair,))
    check(stock, 1)
    (why,) = explained(stock, 1)
    assert why.message == "2 hosts; 1 in use by the reservation and promised to others; 1 free"


def test_a_requirement_in_words_has_brackets_only_where_they_are_needed():
    def terms(*types):
        return tuple(Comparison("==", "node_type", each) for each in types)

    either, both = AnyOf(terms("compute", "storage")), All((Comparison(">=", "vcpus", "8"), *terms("gpu")))
    assert describe_requirement(either) == "node_type == compute or node_type == storage"
    assert describe_requirement(All((either, both))) == (
        "(node_type == compute or node_type == storage) and vcpus >= 8 and node_type == gpu"
    )
    assert describe_requirement(AnyOf((either, both))).endswith(" or (vcpus >= 8 and node_type == gpu)")
    assert describe_requirement(Not(either)) == "not (node_type == compute or node_type == storage)"
