# SPDX-License-Identifier: Apache-2.0
"""A price that was quoted holds for some minutes, whatever list is published meanwhile."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from blazar.model.base.clock import zulu
from blazar.model.leases.requests import Actor
from blazar.store.store import Store
from tests.api.billing.test_prices import HOUR, MEMBER, a_lease, ask, http
from tests.api.conftest import app_of, client_of
from tests.observed import ObservedStore, before
from tests.prices import publish
from tests.world import NOON, World

__all__ = ["http"]

DEAR = [{"sku": "host", "measure": "host", "per_hour": "9.00"}]
HOLDS = timedelta(minutes=10)


def quote(http: Any, **more: Any) -> dict[str, Any]:
    """Return the price of a dry run."""
    return ask(http, "/v1/leases?dry_run=true", a_lease(**more)).json["lease"]["price"]


def publish_later(world: World, per_hour: str) -> None:
    """Publish a list a second later, by which a host costs that."""
    world.clock.by(seconds=1)
    publish(world, prices=[{"sku": "host", "measure": "host", "per_hour": per_hour}])


def book(http: Any, quoted_at: str | None, **more: Any) -> Any:
    told = {} if quoted_at is None else {"quoted_at": quoted_at}
    return ask(http, "/v1/leases", a_lease(**more, **told))


def test_a_quote_says_when_it_was_made_and_until_when_it_holds(http, world):
    publish(world)
    price = quote(http)
    assert (price["quoted_at"], price["held_until"]) == (zulu(NOON), zulu(NOON + HOLDS))
    assert "quoted_at" not in book(http, None).json["lease"]["price"]


@pytest.mark.parametrize(("after", "is_held"), [(timedelta(seconds=1), True), (HOLDS, True), (HOLDS * 1.01, False)])
def test_a_lease_has_the_price_that_was_quoted_for_its_minutes(http, world, after, is_held):
    publish(world)
    price = quote(http)
    publish_later(world, "9.00")
    world.clock.by(seconds=after.total_seconds() - 1)
    answer = book(http, price["quoted_at"])
    if is_held:
        assert answer.status_code == 201, answer.text
        assert answer.json["lease"]["price"]["amount"] == price["amount"]
        return
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["code"], error["pointer"]) == (409, "reservation.quote_lapsed", "/quoted_at")
    assert error["detail"] == (
        f"quoted_at: the quote of {zulu(NOON)} has lapsed, and the lease costs 72.00 EUR now, more than then; send the "
        "quoted_at of a new quote, or leave it out"
    )
    assert error["data"] == {"price": "72.00", "currency": "EUR"}
    assert ask(http, "/v1/leases", a_lease()).json["lease"]["price"]["amount"] == "72.00"


def test_a_quote_that_has_lapsed_is_not_in_the_way_of_what_costs_no_more(http, world):
    publish(world)
    price = quote(http)
    world.clock.by(seconds=3600)
    assert book(http, price["quoted_at"]).json["lease"]["price"]["amount"] == price["amount"]


def test_what_became_cheaper_since_it_was_quoted_costs_that(http, world):
    publish(world)
    price = quote(http)
    publish_later(world, "0.50")
    world.clock.by(seconds=60)
    assert book(http, price["quoted_at"]).json["lease"]["price"]["amount"] == "4.00"


def test_what_was_quoted_holds_for_all_that_is_charged(http, world):
    """Extended, it costs what is valid then; the rest stays as it was quoted."""
    publish(world)
    price = quote(http)
    publish_later(world, "9.00")
    world.clock.by(seconds=60)
    lease = book(http, price["quoted_at"]).json["lease"]
    longer = http.put(
        f"/v1/leases/{lease['id']}",
        json={"end_date": zulu(NOON + 53 * HOUR)},
        headers={"OpenStack-API-Version": "reservation 1.1", **MEMBER},
    )
    amount = Decimal(longer.json["lease"]["price"]["amount"])
    assert amount == Decimal(price["amount"]) + 2 * 9


def test_what_is_booked_later_costs_as_much_ahead_as_it_was_quoted(http, world):
    """A premium by the lead counts from the quote."""
    publish(world, lead=[{"below": "PT48H", "factor": "2"}])
    price = quote(http)
    world.clock.by(seconds=60)
    assert quote(http)["amount"] != price["amount"]
    assert book(http, price["quoted_at"]).json["lease"]["price"]["amount"] == price["amount"]


def test_a_list_that_is_published_while_a_lease_is_booked_does_not_count(http, world):
    publish(world)
    price = quote(http)

    def publish_dear() -> None:
        world.clock.by(seconds=5)
        world.another_manager(store=Store(world.engine)).price_lists.publish(
            {**world.manager.price_lists.all()[-1].document, "prices": DEAR}, Actor("olga", "operators")
        )

    manager = world.another_manager(store=ObservedStore(Store(world.engine), before("bookings.commit", publish_dear)))
    answer = book(client_of(app_of(manager)), price["quoted_at"])
    assert answer.json["lease"]["price"]["amount"] == price["amount"]


def test_before_there_were_prices_nothing_was_quoted(http, world):
    world.clock.by(seconds=60)
    publish(world)
    assert book(http, zulu(NOON)).json["lease"]["price"]["amount"] != "0.00"


@pytest.mark.parametrize(
    ("quoted_at", "said"), [("2031-01-01T00:00:00Z", "in the future"), ("soon", "quoted_at"), (5, "quoted_at")]
)
def test_what_is_no_instant_of_a_quote_is_refused(http, world, quoted_at, said):
    publish(world)
    answer = book(http, quoted_at)
    (error,) = answer.json["errors"]
    assert (answer.status_code, error["pointer"]) == (400, "/quoted_at")
    assert said in error["detail"]


@pytest.mark.parametrize("seed", range(8))
def test_nobody_pays_more_than_was_quoted_within_its_minutes_nor_than_today(http, world, seed):
    dice = random.Random(seed)
    publish(world, prices=[{**DEAR[0], "per_hour": "2.00"}])
    price = quote(http)
    for _ in range(dice.randint(1, 4)):
        publish_later(world, dice.choice(["0.50", "1.00", "3.00", "9.00"]))
        world.clock.by(seconds=dice.randint(0, 400))
    today, told = Decimal(quote(http)["amount"]), Decimal(price["amount"])
    answer = book(http, price["quoted_at"])
    if world.clock.now() - NOON > HOLDS and today > told:
        assert answer.status_code == 409
        return
    assert Decimal(answer.json["lease"]["price"]["amount"]) == min(today, told)
