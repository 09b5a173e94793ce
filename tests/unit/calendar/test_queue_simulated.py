# SPDX-License-Identifier: Apache-2.0
"""Weeks of a small virtual cloud: nobody is served out of turn, and no promise is broken."""

from __future__ import annotations

import pytest

from bench.waiting.plot import plot
from bench.waiting.traces import Parameters, trace
from bench.waiting.world import measured
from blazar.calendar.queue.values import Limits

SMALL = Parameters(days=16, hosts=60, projects=20, load=1.1, warm_up=4, early=0.2, patience=4 * 24)


@pytest.fixture(scope="module")
def figures():
    return measured(SMALL, Limits())


def test_nobody_is_served_out_of_turn_and_no_promise_is_broken(figures):
    assert figures["waiters"] > 10, "the run is of use only if some wait"
    assert (figures["out_of_turn"], figures["broken"]) == (0, 0)


def test_who_has_waited_for_the_promise_age_is_promised_a_start_within_what_was_booked(figures):
    assert (figures["unpromised"], figures["beyond_bound"]) == (0, 0)


def test_more_is_used_than_if_what_does_not_fit_is_refused(figures):
    assert figures["utilization"] > figures["refuse_only"]


def test_one_purpose_of_random_numbers_does_not_shift_the_others():
    def without_leads(requests):
        return [(each.project, each.count, each.at, each.length, each.real) for each in requests]

    ahead, now = (trace(Parameters(days=3, ahead=part)) for part in (0.5, 0.0))
    assert ahead != now
    assert without_leads(ahead) == without_leads(now)


def test_the_plot_shows_means_and_spread(figures):
    drawn = plot([{"mix": "1-32", **figures}, {"mix": "1-4", **figures, "utilization": 0.5}])
    assert drawn.startswith("<svg ")
    assert drawn.index("1-4 hosts") < drawn.index("1-32 hosts")
    assert ">50.0</text>" in drawn
