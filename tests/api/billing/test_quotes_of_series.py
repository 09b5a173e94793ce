# SPDX-License-Identifier: Apache-2.0
"""A price that was quoted holds for the leases that are booked with a series, and for none that come later."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.clock import zulu
from blazar.model.series.checks import SeriesLimits
from tests.api.billing.test_most_of_series import COURSE, MEMBER_1_1, costs, http
from tests.api.billing.test_prices import PRICES, ask
from tests.api.billing.test_quotes import DEAR, HOLDS
from tests.api.conftest import app_of, client_of
from tests.prices import publish
from tests.world import NOON, World

__all__ = ["http"]

DAY = timedelta(days=1)
TOLD = ["13.00", "11.40", "11.40"]
NOW = {**COURSE, "quoted_at": zulu(NOON)}


def publish_dear(world: Any, *, after: timedelta = timedelta(seconds=1)) -> None:
    world.clock.by(seconds=after.total_seconds())
    publish(world, **{**PRICES, "prices": DEAR})


def test_each_lease_of_a_series_has_the_price_that_was_quoted(http, world):
    tried = ask(http, "/v1/series?dry_run=true", COURSE)
    assert costs(tried) == TOLD
    assert {one["price"]["quoted_at"] for one in tried.json["series"]["occurrences"]} == {zulu(NOON)}
    publish_dear(world)
    assert costs(ask(http, "/v1/series", NOW)) == TOLD


def test_a_quote_that_has_lapsed_refuses_a_series_that_costs_more_now(http, world):
    publish_dear(world, after=HOLDS * 1.01)
    answer = ask(http, "/v1/series", NOW)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"], error["pointer"]) == (409, "reservation.quote_lapsed", "/quoted_at")
    assert world.store.leases.of_project("physics") == ()
    assert ask(http, "/v1/series", COURSE).status_code == 201


def test_a_quote_that_has_lapsed_is_not_in_the_way_of_a_series_that_costs_no_more(http, world):
    world.clock.by(seconds=3600)
    assert costs(ask(http, "/v1/series", NOW)) == TOLD


def test_the_most_that_each_may_cost_is_compared_with_what_was_quoted(http, world):
    publish_dear(world)
    assert costs(ask(http, "/v1/series", {**NOW, "max_price": "13.00"})) == TOLD


def test_what_a_series_gets_by_a_change_has_the_price_of_that_day(http, world):
    publish_dear(world)
    made = ask(http, "/v1/series", NOW).json["series"]
    more = http.put(f"/v1/series/{made['id']}", json={"rule": "FREQ=DAILY;COUNT=4"}, headers=MEMBER_1_1)
    assert more.status_code == 200, more.text
    *_, last = costs(more)
    assert float(last) > 70


def test_what_a_series_without_an_end_gets_later_has_the_price_of_then(sqlite):
    world = World(sqlite, settings=Settings(series=SeriesLimits(horizon=7 * DAY)))
    publish(world, **PRICES)
    publish_dear(world)
    made = ask(client_of(app_of(world.manager)), "/v1/series", {**NOW, "rule": "FREQ=DAILY", "fit": "as_many"})
    assert costs(made) == [*TOLD, "13.00"]
    world.run_to(NOON + DAY + timedelta(hours=1))
    *_, last = world.manager.series.one(made.json["series"]["id"]).occurrences
    assert (last.start, last.price and last.price.amount) == (NOON + 8 * DAY, "95.00")


@pytest.mark.parametrize(("quoted_at", "said"), [("2031-01-01T00:00:00Z", "in the future"), ("soon", "quoted_at")])
def test_what_is_no_instant_of_a_quote_is_refused(http, quoted_at, said):
    answer = ask(http, "/v1/series", {**COURSE, "quoted_at": quoted_at})
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["pointer"]) == (400, "/quoted_at")
    assert said in error["detail"]
