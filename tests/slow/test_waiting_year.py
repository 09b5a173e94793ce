# SPDX-License-Identifier: Apache-2.0
"""A year of 200 projects on 500 hosts, with all that ``docs/waiting.md`` promises of a waiting list."""

from __future__ import annotations

import pytest

from bench.waiting.traces import Parameters
from bench.waiting.world import measured
from blazar.calendar.queue.values import PlanBounds

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


@pytest.mark.parametrize(("mix", "gain"), [("1-4", 0.01), ("1-32", 0.08), ("4-128", 0.15)])
def test_a_year_without_starvation(mix, gain):
    # The targets of the gain are for requests that are not flexible: those who refuse serve more of flexible ones.
    figures = measured(Parameters(mix, days=365, ahead=0.0, flexible=0.0), PlanBounds())
    assert figures["waiters"] > 1000
    assert (figures["out_of_turn"], figures["broken"]) == (0, 0)
    assert (figures["unpromised"], figures["beyond_bound"]) == (0, 0)
    assert figures["utilization"] - figures["refuse_only"] >= gain
    assert figures["estimates_expected"] >= 0.8
    # What is told if all leases end as booked is later than that, and right less often.
    assert figures["estimates_expected"] > figures["estimates_good"] >= 0.75
    assert abs(figures["hours_late_expected"]) < figures["hours_late"]
