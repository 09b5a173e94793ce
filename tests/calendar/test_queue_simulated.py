# SPDX-License-Identifier: Apache-2.0
"""Weeks of a small virtual cloud: nobody is served out of turn, and no promise is broken."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from bench.waiting.__main__ import main
from bench.waiting.baselines import queueing, refusing
from bench.waiting.estimates import Estimates, Said
from bench.waiting.fairness import Shares
from bench.waiting.models import models_of
from bench.waiting.plot import plot
from bench.waiting.traces import MIXES, Parameters, Request, trace
from bench.waiting.world import Waiting, measured
from blazar.calendar.queue.usage import ProjectUsage, Rates
from blazar.calendar.queue.values import DAY, HOUR, PlanBounds, Waiter
from blazar.model.calendar.demand import Demand
from blazar.model.resources.resource import HOST

SMALL = Parameters(days=16, hosts=60, projects=20, load=1.1, warm_up=4, early=0.2, patience=4 * 24, withdraw=0.4)


@pytest.fixture(scope="module")
def figures():
    return measured(SMALL, PlanBounds())


@pytest.mark.slow
def test_nobody_is_served_out_of_turn_and_no_promise_is_broken(figures):
    assert figures["waiters"] > 10, "the run is of use only if some wait"
    assert (figures["out_of_turn"], figures["broken"]) == (0, 0)


def test_who_has_waited_for_the_promise_age_is_promised_a_start_within_what_was_booked(figures):
    assert (figures["unpromised"], figures["beyond_bound"]) == (0, 0)


def test_more_is_used_than_if_what_does_not_fit_is_refused(figures):
    assert figures["utilization"] > figures["refuse_only"]


def test_some_are_flexible_and_some_are_withdrawn_while_they_wait(figures):
    requests = trace(SMALL)
    assert any(each.least < each.count for each in requests)
    assert any(each.shortest < each.length for each in requests)
    assert 0 < figures["withdrawn"] < sum(each.withdrawn is not None for each in requests)


def asked(id_, at, count, length, **changes):
    one = {"real": length, "least": count, "shortest": length}
    return Request(id_, "p", count, at, at, length, **{**one, **changes})


TEN = Parameters(days=1, hosts=10, warm_up=0, patience=100)
LINE = [asked("first", 0, 8, 10), asked("large", 1, 10, 5), asked("short", 2, 2, 8), asked("long", 2, 2, 9)]
"""The large one can begin at 10; the short one would be over by then, and the long one would not."""


@pytest.mark.parametrize(
    ("served", "used", "longest"),
    [
        # The large one from 10 to 15, both others then.
        (lambda requests: queueing(TEN, requests, fills=False), 80 + 50 + 16 + 18, 13),
        # The short one begins at 2, the long one after the large one.
        (lambda requests: queueing(TEN, requests, fills=True), 80 + 50 + 16 + 18, 13),
    ],
)
def test_a_queue_in_order_of_arrival(served, used, longest):
    assert served(LINE) == (pytest.approx(used / 240), longest)


def test_filling_in_lets_only_those_begin_who_do_not_delay_the_first():
    without_long = [each for each in LINE if each.id != "long"]
    assert queueing(TEN, without_long, fills=False)[1] == 13, "the short one waits for the large one"
    assert queueing(TEN, without_long, fills=True)[1] == 9, "it has begun, and the large one waits as before"


def test_a_queue_gives_flexible_requests_what_is_there_and_forgets_who_leaves():
    flexible = asked("flexible", 1, 4, 5, least=2)
    assert queueing(TEN, [LINE[0], flexible], fills=False) == (pytest.approx((80 + 10) / 240), 0)
    gone = asked("gone", 1, 10, 5, withdrawn=3)
    assert queueing(TEN, [LINE[0], gone], fills=False) == (pytest.approx(80 / 240), 0)


def test_what_does_not_fit_is_refused():
    assert refusing(TEN, LINE) == (pytest.approx((80 + 16) / 240), 0.5)


def test_fairness_is_that_of_the_projects_that_always_wait_by_their_weights():
    shares, rates = Shares(), Rates(project_weights={"heavy": 2.0})
    for _ in range(20):
        shares.look(ProjectUsage({"one": 1.0, "heavy": 6.0}, rates))
    shares.look(ProjectUsage({"one": 1.0, "heavy": 6.0, "seldom": 50.0}, rates))
    assert shares.fairness() == (pytest.approx(16 / 20), 2)


CROWDED = Parameters(
    days=30, hosts=8, warm_up=10, projects=2, load=2.0, mix="1-4", ahead=0.0, flexible=0.0, zipf=0.0, weights=2
)
"""Two projects that ask for twice as much as there is; the second one has twice the weight."""


@pytest.mark.slow
def test_projects_that_always_wait_have_their_share_by_weight_as_long_as_use_decides():
    fair = Waiting(CROWDED, PlanBounds(promises=0, promise_age=1000 * DAY)).run()
    assert fair.always_wait == 2
    assert fair.fairness >= 0.95


def test_estimates_of_what_is_probable_are_judged_beside_those_if_all_end_as_booked():
    told = Estimates(since=0)
    waiter = Waiter("l", "p", (Demand(HOST, 1, 1),), HOUR, queued_at=0)
    told.says("l", Said(0, 100 * HOUR, 90 * HOUR, in_time=True))
    told.judge(waiter, 80 * HOUR)
    assert (told.judged, told.good, told.good_expected) == (1, 0, 1)
    assert (told.late, told.late_expected) == (20, 10)


def test_nobody_asks_for_more_hosts_of_a_model_than_there_are():
    models = models_of(5, 500, MIXES["1-32"])
    assert [model.hosts for model in models] == [300, 100, 50, 40, 10]
    assert list(models[-1].sizes) == [1, 2, 4, 8]
    crowded = Parameters(days=40, models=5)
    asked = Counter[str]()
    for request in trace(crowded):
        asked[request.model] += request.count * request.length
    parts = [asked[model.name] / model.hosts for model in models[:-1]]
    assert max(parts) < 1.5 * min(parts), "the load of all models is about the same"


@pytest.mark.slow
def test_nobody_is_served_out_of_turn_if_hosts_are_of_several_models():
    figures = measured(replace(SMALL, models=5, days=8, hosts=100, warm_up=2), PlanBounds())
    assert figures["waiters"] > 0
    assert (figures["out_of_turn"], figures["broken"]) == (0, 0)
    assert (figures["unpromised"], figures["beyond_bound"]) == (0, 0)


def test_one_purpose_of_random_numbers_does_not_shift_the_others():
    def without_leads(requests):
        return [(each.project, each.count, each.at, each.length, each.real) for each in requests]

    ahead, now = (trace(Parameters(days=3, ahead=part)) for part in (0.5, 0.0))
    assert ahead != now
    assert without_leads(ahead) == without_leads(now)


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys):
    asked = ["waiting", "--mixes", "1-4", "--days", "21", "--load", "0.02", "--jobs", "1"]
    ran = []
    for seeds in ("1", "2"):
        monkeypatch.setattr("sys.argv", [*asked, "--json", str(tmp_path / "runs.json"), "--seeds", seeds])
        assert main() == 0
        ran.append([json.loads(line)["seed"] for line in capsys.readouterr().out.splitlines()])
    assert ran == [[1], [2]]


def test_the_plot_shows_means_and_spread(figures):
    drawn = plot([{"mix": "1-32", **figures}, {"mix": "1-4", **figures, "utilization": 0.5}])
    assert drawn.startswith("<svg ")
    assert drawn.index("1-4 hosts") < drawn.index("1-32 hosts")
    assert ">50.0</text>" in drawn
