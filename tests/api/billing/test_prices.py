# SPDX-License-Identifier: Apache-2.0
"""What a lease costs is said before it is booked, and one that costs too much is refused with what does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.model.base.clock import zulu
from blazar.model.energy.book import EnergyTerms
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import metadata, planned
from tests.api.conftest import app_of, client_of, token
from tests.observed import ObservedStore, before
from tests.prices import publish
from tests.statements import counted
from tests.world import NOON, PROJECT, World

MEMBER = token("curie", PROJECT)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
PRICES = {
    "fee": "5.00",
    "hours": [{"days": ["MO", "TU", "WE", "TH", "FR"], "from": "09:00", "to": "18:00", "factor": "1.25"}],
    "cancellation": [{"before_start": "PT24H", "share": "0"}, {"share": "0.50"}],
}
TWO = [{"resource_type": "physical:host", "min": 2, "max": 2}]


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, path: str, body: Any, *, version: str = "1.1"):
    return http.post(path, json=body, headers={"OpenStack-API-Version": f"reservation {version}", **MEMBER})


def a_lease(start: datetime = NOON + 48 * HOUR, hours: float = 4, **more: Any) -> dict[str, Any]:
    dates = {"start_date": zulu(start), "end_date": zulu(start + hours * HOUR)}
    return {"name": "training", **dates, "reservations": TWO, **more}


@pytest.mark.parametrize(
    ("start", "hours", "status"),
    [(NOON + 48 * HOUR, 46, 201), (NOON + 48 * HOUR, 47, 400), (datetime(2030, 4, 29, 8, tzinfo=UTC), 80, 201)],
    ids=["as much as a month keeps", "more than that", "more than that in two months"],
)
def test_a_dry_run_refuses_what_no_ledger_can_keep_as_the_booking_does(http, world, start, hours, status):
    publish(world, prices=[{"sku": "host", "measure": "host", "per_hour": "99999999"}])
    tried, booked = (ask(http, path, a_lease(start, hours)) for path in ("/v1/leases?dry_run=true", "/v1/leases"))
    assert (tried.status_code, booked.status_code) == (200 if status == 201 else status, status)
    if status == 400:
        assert tried.json["errors"][0]["detail"] == booked.json["errors"][0]["detail"]


def test_a_dry_run_says_what_a_lease_costs_and_how_that_came_about(http, world):
    publish(world, **PRICES)
    # 12:00 to 16:00 UTC on a Wednesday is 14:00 to 18:00 in Berlin.
    price = ask(http, "/v1/leases?dry_run=true", a_lease()).json["lease"]["price"]
    assert price == {
        "amount": "13.00",
        "currency": "EUR",
        "price_list": 1,
        "fee": "5.00",
        "parts": [
            {
                "reservation": 0,
                "sku": "host",
                "measure": "host",
                "count": 2,
                "hours": "4",
                "per_hour": "0.80",
                "factor": "1.25",
                "amount": "8.00",
            }
        ],
        "if_cancelled": [
            {"until": "2030-04-02T12:00:00Z", "amount": "0.00"},
            {"until": "2030-04-03T12:00:00Z", "amount": "6.50"},
        ],
        "quoted_at": "2030-04-01T12:00:00Z",
        "held_until": "2030-04-01T12:10:00Z",
    }


POWER = [{"sku": "host", "measure": "host", "per_hour": "0.80"}, {"sku": "power", "measure": "kwh", "per_kwh": "0.30"}]


@pytest.fixture
def metered(a_world):
    """Return a world that records what its hosts draw: 300 W at half of their load, 320 W at 0.6 of it."""
    world = a_world(energy=EnergyTerms(records=True))
    for host in world.store.resources.catalog(HOST).resources:
        sheet = {"power_idle_w": "200", "power_max_w": "400"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(sheet))
    publish(world, **PRICES, prices=POWER, pue="1.5", load="0.6")
    return world


def test_a_quote_has_an_estimate_of_energy_and_says_that_it_is_one(metered):
    http = client_of(app_of(metered.manager))
    price = ask(http, "/v1/leases?dry_run=true", a_lease()).json["lease"]["price"]
    # 2 × 4 h × 320 W × 1.5 × 0.30 EUR are 1.152 EUR beside the 13.00 EUR.
    assert (price["amount"], price["estimated"]) == ("14.15", "1.15")
    assert price["parts"][1] == {
        "reservation": 0,
        "sku": "power",
        "measure": "kwh",
        "kwh": "2.56",
        "per_kwh": "0.30",
        "factor": "1.5",
        "amount": "1.152",
    }
    # What is not drawn is not given back either.
    assert price["if_cancelled"][-1]["amount"] == "6.50"
    booked = ask(http, "/v1/leases", a_lease(max_price="14.15")).json["lease"]["price"]
    assert (booked["amount"], booked["charged"], booked["estimated"]) == ("14.15", "0.00", "1.15")


@pytest.mark.parametrize("most", ["6.00", "9.00", "14.14"])
def test_what_is_said_to_fit_with_its_energy_is_accepted(metered, most):
    http = client_of(app_of(metered.manager))
    (error,) = ask(http, "/v1/leases?dry_run=true", a_lease(max_price=most)).json["errors"]
    assert error["data"]["price"] == "14.15"
    assert error["data"]["fits"]
    for fit in error["data"]["fits"]:
        changed = {key: fit[key] for key in ("start_date", "end_date") if key in fit}
        if "reservations" in fit:
            changed["reservations"] = [{**TWO[0], **one} for one in fit["reservations"]]
        answer = ask(http, "/v1/leases?dry_run=true", a_lease(max_price=most, **changed))
        assert answer.status_code == 200, (fit, answer.json)
        assert answer.json["lease"]["price"]["amount"] == fit["price"]


def test_a_list_that_is_published_while_a_lease_is_booked_is_that_of_its_price(http, world, monkeypatch):
    publish(world, **PRICES)
    limits = world.manager.leases.creator._price_limits
    check = limits.check

    def publish_before(*args: Any, **more: Any) -> Any:
        world.clock.by(seconds=5)
        publish(world, prices=[{"sku": "host", "measure": "host", "per_hour": "0.10"}])
        world.clock.by(seconds=5)
        # As the next try does, if somebody else was faster.
        world.store.resources.catalog("host")
        monkeypatch.undo()
        return check(*args, **more)

    monkeypatch.setattr(limits, "check", publish_before)
    refused = ask(http, "/v1/leases", a_lease(max_price="0.50"))
    assert (refused.status_code, refused.json["errors"][0]["data"]["price"]) == (409, "0.80")


def test_what_is_planned_for_the_account_of_a_lease_is_what_was_quoted(http, world):
    publish(world, **PRICES)
    quoted = ask(http, "/v1/leases?dry_run=true", a_lease(hours=31)).json["lease"]["price"]
    lease = ask(http, "/v1/leases", a_lease(hours=31, max_price=quoted["amount"])).json["lease"]
    with world.engine.connect() as connection:
        nano = connection.execute(sa.select(planned.c.nano).where(planned.c.lease_id == lease["id"])).scalars().all()
    exact = sum(Decimal(part["amount"]) for part in quoted["parts"]) + Decimal(quoted["fee"])
    assert Decimal(sum(nano)) / 10**9 == exact
    assert round(exact, 2) == Decimal(quoted["amount"])


def test_each_opening_says_what_it_costs_at_its_start(http, world):
    publish(world, **PRICES)
    question = {"reservations": TWO, "duration": "PT4H", "earliest": zulu(NOON + 48 * HOUR), "limit": 1}
    (opening,) = ask(http, "/v1/availability", question).json["availability"]["openings"]
    assert opening["price"]["amount"] == "13.00"
    assert opening["price"] == ask(http, "/v1/leases?dry_run=true", a_lease()).json["lease"]["price"]


def test_without_a_list_nothing_has_a_price_and_no_maximum_is_too_low(http, world):
    dry = ask(http, "/v1/leases?dry_run=true", a_lease(max_price="0.00"))
    assert (dry.status_code, dry.json["lease"]["price"]) == (200, None)
    old = {"start_date": "2030-04-03 12:00", "end_date": "2030-04-03 16:00", "events": []}
    reservation = {**TWO[0], "hypervisor_properties": "", "resource_properties": ""}
    made = ask(http, "/v1/leases", {**a_lease(), **old, "reservations": [reservation]}, version="1.0")
    assert (made.status_code, "price" in made.json["lease"]) == (201, False)


def test_one_that_costs_more_than_its_maximum_is_not_booked_and_is_told_what_fits(http, world):
    publish(world, **PRICES)
    refused = ask(http, "/v1/leases", a_lease(max_price="12.00"))
    assert refused.status_code == 409
    (error,) = refused.json["errors"]
    assert (error["code"], error["pointer"]) == ("reservation.price_exceeds_maximum", "/max_price")
    assert error["detail"] == (
        "max_price: the lease would cost 13.00 EUR, and at most 12.00 are allowed; 3 hours 30 minutes 9 seconds cost "
        "12.00, with 1 host it costs 9.00, a start at 2030-04-03T14:29:15Z costs 12.00"
    )
    assert error["data"]["fits"][1]["reservations"] == [{"min": 1, "max": 1}]
    assert world.store.leases.of_project(PROJECT) == ()
    assert ask(http, "/v1/leases", a_lease(max_price="13.00")).status_code == 201


@pytest.mark.parametrize("most", ["5.01", "7.77", "9.00", "12.34", "12.99", "640.00"])
def test_what_is_said_to_fit_is_accepted_and_one_step_more_is_not(http, world, most):
    publish(world, **PRICES)
    answer = ask(http, "/v1/leases?dry_run=true", a_lease(max_price=most))
    if answer.status_code == 200:
        assert float(answer.json["lease"]["price"]["amount"]) <= float(most)
        return
    fits = {fit["change"]: fit for fit in answer.json["errors"][0]["data"]["fits"]}
    assert "duration" in fits
    for fit in fits.values():
        kept = {key: fit[key] for key in ("start_date", "end_date")}
        counts = fit.get("reservations", [{}])
        asked = {**a_lease(max_price=most), **kept, "reservations": [{**TWO[0], **counts[0]}]}
        accepted = ask(http, "/v1/leases?dry_run=true", asked)
        assert accepted.json["lease"]["price"]["amount"] == fit["price"]
        more = {**asked, **_one_step_more(fit, kept)}
        assert ask(http, "/v1/leases?dry_run=true", more).status_code == 409


def _one_step_more(fit: dict[str, Any], kept: dict[str, str]) -> dict[str, Any]:
    start, end = (datetime.fromisoformat(kept[key]) for key in ("start_date", "end_date"))
    match fit["change"]:
        case "duration":
            return {"end_date": zulu(end + SECOND)}
        case "time":
            return {"start_date": zulu(start - SECOND), "end_date": zulu(end - SECOND)}
    return {"reservations": TWO}


@pytest.mark.parametrize("most", ["12,00", "-1", "1.1234567", "", 12])
def test_a_maximum_that_is_no_amount_is_refused(http, most):
    assert ask(http, "/v1/leases", a_lease(max_price=most)).status_code == 400


def test_a_lease_of_thousands_of_years_cannot_have_a_maximum(http, world):
    publish(world, **PRICES)
    endless = {**a_lease(max_price="100.00"), "end_date": "8998-01-01T00:00:00Z"}
    refused = ask(http, "/v1/leases?dry_run=true", endless)
    assert refused.status_code == 409
    assert "more than 20 years" in refused.json["errors"][0]["detail"]


def test_prices_cost_no_statement_once_they_are_known(http, world: World):
    def count(lease: dict[str, Any]) -> int:
        with counted(world.engine) as statements:
            assert ask(http, "/v1/leases?dry_run=true", lease).status_code == 200
        return statements.count

    count(a_lease())
    without = count(a_lease())
    publish(world, **PRICES)
    count(a_lease())
    assert count(a_lease(max_price="100.00")) == without


def show(http, lease: dict[str, Any], **more: str) -> Any:
    headers = {"OpenStack-API-Version": "reservation 1.1", **MEMBER, **more}
    return http.get(f"/v1/leases/{lease['id']}", headers=headers)


def list_leases(http, query: str = "") -> Any:
    answer = http.get(f"/v1/leases{query}", headers={"OpenStack-API-Version": "reservation 1.1", **MEMBER})
    assert answer.status_code == 200, answer.json
    return answer.json["leases"]


def test_what_a_lease_costs_is_not_read_again_once_it_is_booked(http, world):
    """What its booking writes says that: the two rows of its account are all that it costs."""

    def count(lease: dict[str, Any]) -> int:
        with counted(world.engine) as statements:
            assert ask(http, "/v1/leases", lease).status_code == 201
        return statements.count

    count(a_lease())
    without = count(a_lease(NOON + 60 * HOUR))
    publish(world, **PRICES)
    count(a_lease(NOON + 70 * HOUR))
    assert count(a_lease(NOON + 80 * HOUR)) == without + 2
    assert count(a_lease(NOON + 90 * HOUR, max_price="100.00")) == without + 2


def test_a_lease_that_is_changed_before_it_is_shown_costs_what_it_costs_then(http, world):
    publish(world, **PRICES)

    def extend() -> None:
        (lease,) = world.manager.leases.all(None)
        world.manager.leases.update(lease.id, LeaseChange(end=lease.window.end + HOUR))

    manager = world.another_manager(store=ObservedStore(world.store, before("lease_pages.one", extend)))
    made = ask(client_of(app_of(manager)), "/v1/leases", a_lease()).json["lease"]
    assert made["end_date"] == zulu(NOON + 53 * HOUR)
    assert made["price"]["amount"] == show(http, made).json["lease"]["price"]["amount"] == "14.60"


def test_a_lease_that_is_booked_says_what_it_costs_and_what_it_costs_to_cancel_it(http, world):
    publish(world, **PRICES)
    made = ask(http, "/v1/leases", a_lease()).json["lease"]
    assert made["price"] == {"amount": "13.00", "currency": "EUR", "charged": "0.00"}
    assert show(http, made).json["lease"]["price"] == {
        **made["price"],
        "if_cancelled": [
            {"until": "2030-04-02T12:00:00Z", "amount": "0.00"},
            {"until": "2030-04-03T12:00:00Z", "amount": "6.50"},
        ],
    }
    (listed,) = list_leases(http)
    assert listed["price"] == {"amount": "13.00", "currency": "EUR", "charged": "0.00"}
    assert list_leases(http, "?fields=price") == [{"id": made["id"], "price": listed["price"]}]
    world.clock.by(hours=30)
    (left,) = show(http, made).json["lease"]["price"]["if_cancelled"]
    assert left == {"until": "2030-04-03T12:00:00Z", "amount": "6.50"}


def test_what_a_lease_costs_is_what_was_charged_and_what_is_planned_after_each_change(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    headers = {"OpenStack-API-Version": "reservation 1.1", **MEMBER}
    world.clock.by(hours=40)
    one = {"reservations": [{"id": lease["reservations"][0]["id"], "min": 1, "max": 1}]}
    shrunk = http.put(f"/v1/leases/{lease['id']}", json=one, headers=headers).json["lease"]
    # Half of the price of the host that was given back, and the rest with the fee.
    assert (shrunk["price"]["amount"], shrunk["price"]["charged"]) == ("11.00", "2.00")
    assert [cost["amount"] for cost in shrunk["price"]["if_cancelled"]] == ["6.50"]
    deleted = http.delete(f"/v1/leases/{lease['id']}", headers=headers)
    assert deleted.status_code == 204
    assert show(http, lease).json["lease"]["price"] == {"amount": "6.50", "currency": "EUR", "charged": "6.50"}


def test_what_was_booked_without_a_price_has_none(http, world):
    made = ask(http, "/v1/leases", a_lease()).json["lease"]
    assert made["price"] is None
    publish(world, **PRICES)
    world.store.resources.catalog("host")
    assert show(http, made).json["lease"]["price"] is list_leases(http)[0]["price"] is None


def test_a_lease_of_which_not_all_is_planned_has_no_price(http, world):
    publish(world)
    long = ask(http, "/v1/leases", a_lease(hours=24 * 365 * 4)).json["lease"]
    assert long["price"] is show(http, long).json["lease"]["price"] is list_leases(http)[0]["price"] is None


def test_the_tag_of_a_lease_changes_with_its_price_and_still_allows_a_change(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    before = show(http, lease).headers["ETag"]
    assert show(http, lease, **{"If-None-Match": before}).status_code == 304
    world.clock.by(hours=30)
    assert show(http, lease).headers["ETag"] != before
    headers = {"OpenStack-API-Version": "reservation 1.1", "If-Match": before, **MEMBER}
    assert http.put(f"/v1/leases/{lease['id']}", json={"name": "other"}, headers=headers).status_code == 200


def test_a_lease_can_be_sent_back_as_it_was_read_whatever_it_costs_by_now(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    world.clock.by(hours=30)
    headers = {"OpenStack-API-Version": "reservation 1.1", **MEMBER}
    changed = http.put(f"/v1/leases/{lease['id']}", json={**lease, "name": "other"}, headers=headers)
    assert (changed.status_code, changed.json["lease"]["name"]) == (200, "other")


def test_a_lease_that_goes_to_another_project_costs_that_what_it_has_to_pay(http, world):
    publish(world, fee="5.00")
    lease = ask(http, "/v1/leases", a_lease(NOON + HOUR)).json["lease"]
    world.run_to(NOON + 3 * HOUR)
    theirs = {"OpenStack-API-Version": "reservation 1.1", **token("tesla", "chemistry")}
    offer = {"project_id": "chemistry"}
    mine = {"OpenStack-API-Version": "reservation 1.1", **MEMBER}
    assert http.post(f"/v1/leases/{lease['id']}/transfer", json=offer, headers=mine).status_code == 201
    taken = http.post(f"/v1/transfers/{lease['id']}/accept", headers=theirs)
    assert taken.status_code == 200, taken.json
    assert (taken.json["lease"]["price"]["amount"], taken.json["lease"]["price"]["charged"]) == ("3.20", "0.00")


def test_a_list_of_leases_reads_all_prices_in_one_statement(http, world):
    publish(world, **PRICES)
    ask(http, "/v1/leases", a_lease())
    with counted(world.engine) as one:
        list_leases(http)
    for number in range(3):
        ask(http, "/v1/leases", a_lease(NOON + (60 + 5 * number) * HOUR))
    with counted(world.engine) as four:
        list_leases(http)
    with counted(world.engine) as without:
        list_leases(http, "?fields=name,reservations,events")
    assert one.count == four.count == without.count + 1


def change(http, lease: dict[str, Any], *, dry_run: bool = False, **body: Any) -> Any:
    headers = {"OpenStack-API-Version": "reservation 1.1", **MEMBER}
    return http.put(f"/v1/leases/{lease['id']}{'?dry_run=true' * dry_run}", json=body, headers=headers)


def hosts(lease: dict[str, Any], count: int) -> list[dict[str, Any]]:
    return [{"id": lease["reservations"][0]["id"], "min": count, "max": count}]


CHANGED_IN_THESE_WAYS = {
    "longer": lambda lease: {"end_date": zulu(NOON + 55 * HOUR)},
    "shorter": lambda lease: {"end_date": zulu(NOON + 50 * HOUR)},
    "later": lambda lease: {"start_date": zulu(NOON + 70 * HOUR), "end_date": zulu(NOON + 74 * HOUR)},
    "more": lambda lease: {"reservations": hosts(lease, 3)},
    "fewer": lambda lease: {"reservations": hosts(lease, 1)},
    "renamed": lambda lease: {"name": "other"},
    "as it is": lambda lease: {"reservations": hosts(lease, 2)},
}


WHAT_HAS_STARTED_IS_NOT = ("later", "fewer")


@pytest.mark.parametrize(
    ("hours", "how"),
    [(h, how) for h in (0, 40, 49) for how in CHANGED_IN_THESE_WAYS if h < 49 or how not in WHAT_HAS_STARTED_IS_NOT],
)
def test_a_dry_run_of_a_change_says_what_the_lease_will_cost_and_how_much_more(http, world, how, hours):
    publish(world, **PRICES, early_return="0.25")
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    world.run_to(NOON + hours * HOUR)
    rows = _count_rows(world)
    asked = CHANGED_IN_THESE_WAYS[how](lease)
    before = show(http, lease).json["lease"]["price"]
    dry = change(http, lease, dry_run=True, **asked)
    assert dry.status_code == 200, dry.json
    price = dry.json["lease"]["price"]
    assert _count_rows(world) == rows
    assert show(http, lease).json["lease"]["price"] == before
    difference = price.pop("difference")
    assert change(http, lease, **asked).json["lease"]["price"] == price
    assert Decimal(price["amount"]) - Decimal(before["amount"]) == Decimal(difference)
    if how in ("longer", "more"):
        assert Decimal(difference) > 0


def test_a_dry_run_of_a_change_asks_once_which_price_list_is_the_newest(http, world):
    """The transaction that is tried does; only what has read no catalog asks before that."""
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]

    def count(**asked: Any) -> int:
        with counted(world.engine) as statements:
            world.manager.leases.change(lease["id"], LeaseChange(dry_run=True, **asked))
        # One that reads a catalog, too, asks for two versions.
        return sum(
            text.count("SELECT inventory_versions.version") == 1 == text.count("FROM") for text in statements.texts
        )

    more = ReservationChange(lease["reservations"][0]["id"], {"min": 3, "max": 3})
    assert count(end=NOON + 55 * HOUR) == 1
    assert count(reservations=(more,)) == 1
    assert count(end=NOON + 50 * HOUR) == 2


def _count_rows(world: World) -> dict[str, int]:
    with world.engine.connect() as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }


def test_a_change_that_makes_a_lease_cost_more_than_its_maximum_is_not_made(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    for dry_run in (True, False):
        refused = change(http, lease, dry_run=dry_run, reservations=hosts(lease, 3), max_price="15.00")
        assert refused.status_code == 409
        (error,) = refused.json["errors"]
        assert error["code"].endswith("price_exceeds_maximum")
        assert error["detail"] == (
            "max_price: the lease would cost 17.00 EUR, 4.00 more than now, and at most 15.00 are allowed; allow more, "
            "or change less"
        )
        assert error["data"] == {"price": "17.00", "currency": "EUR", "max_price": "15.00", "fits": []}
    assert show(http, lease).json["lease"]["reservations"] == lease["reservations"]
    assert change(http, lease, reservations=hosts(lease, 3), max_price="17.00").status_code == 200
    # That it costs too much already is said of any change.
    assert change(http, lease, name="other", max_price="16.99").status_code == 409


def test_a_lease_in_use_that_would_cost_too_much_gets_no_more_hosts(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease(NOON + HOUR)).json["lease"]
    world.run_to(NOON + 2 * HOUR)
    assert change(http, lease, reservations=hosts(lease, 3), max_price="13.00").status_code == 409
    assert len(show(http, lease).json["lease"]["reservations"][0]["allocations"]) == 2
    assert change(http, lease, reservations=hosts(lease, 3), max_price="20.00").status_code == 200


def test_without_a_price_any_maximum_of_a_change_will_do(http, world):
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    assert change(http, lease, reservations=hosts(lease, 3), max_price="0.00").status_code == 200


def test_a_change_after_which_not_all_is_planned_has_no_price_and_no_maximum_is_enough(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    long = {"end_date": zulu(NOON + 5 * 365 * 24 * HOUR)}
    assert change(http, lease, dry_run=True, **long).json["lease"]["price"] is None
    refused = change(http, lease, **long, max_price="1000000.00")
    assert (refused.status_code, "three years" in refused.json["errors"][0]["detail"]) == (409, True)


def test_who_is_offered_a_lease_sees_what_it_would_cost(http, world):
    publish(world, fee="5.00")
    lease = ask(http, "/v1/leases", a_lease(NOON + HOUR)).json["lease"]
    world.run_to(NOON + 3 * HOUR)
    theirs = {"OpenStack-API-Version": "reservation 1.1", **token("tesla", "chemistry")}
    mine = {"OpenStack-API-Version": "reservation 1.1", **MEMBER}
    http.post(f"/v1/leases/{lease['id']}/transfer", json={"project_id": "chemistry"}, headers=mine)
    dry = http.post(f"/v1/transfers/{lease['id']}/accept?dry_run=true", headers=theirs).json["lease"]["price"]
    assert (dry["amount"], dry["charged"], dry["difference"]) == ("3.20", "0.00", "3.20")


def test_each_occurrence_of_a_series_says_what_it_costs(http, world):
    publish(world, **PRICES)
    body = {
        "name": "course",
        "rule": "FREQ=DAILY;COUNT=3",
        "start": "2030-04-05T12:00",
        "duration": "PT4H",
        "reservations": TWO,
    }
    # The first day is a Friday, and the others are of the weekend.
    dry = ask(http, "/v1/series?dry_run=true", body).json["series"]["occurrences"]
    assert [one["price"]["amount"] for one in dry] == ["13.00", "11.40", "11.40"]
    with counted(world.engine) as three:
        made = ask(http, "/v1/series", body).json["series"]
    booked = [{"amount": one["price"]["amount"], "currency": "EUR", "charged": "0.00"} for one in dry]
    assert [one["price"] for one in made["occurrences"]] == booked
    more = {**body, "start": "2030-05-05T12:00", "rule": "FREQ=DAILY;COUNT=10"}
    # This question reads what the first series has changed.
    ask(http, "/v1/series?dry_run=true", more)
    with counted(world.engine) as ten:
        ask(http, "/v1/series", more)
    assert three.count == ten.count


def test_without_a_list_no_occurrence_has_a_price(http, world):
    body = {"name": "course", "rule": "FREQ=DAILY;COUNT=2", "start": "2030-04-05T12:00", "duration": "PT4H"}
    for path in ("/v1/series?dry_run=true", "/v1/series"):
        made = ask(http, path, {**body, "reservations": TWO}).json["series"]
        assert [one["price"] for one in made["occurrences"]] == [None, None]


def test_what_it_costs_to_cancel_is_said_by_lists_that_another_manager_has_published(http, world):
    publish(world, **PRICES)
    lease = ask(http, "/v1/leases", a_lease()).json["lease"]
    there = World(world.engine, register=False, cloud=world.simulated, clock=world.clock)
    world.clock.by(seconds=1)
    publish(there, **PRICES | {"cancellation": [{"share": "0.90"}]})
    world.clock.by(seconds=1)
    assert ask(http, f"/v1/leases/{lease['id']}/transfer", {"project_id": "biology"}).status_code == 201
    taker = {"OpenStack-API-Version": "reservation 1.1", **token("darwin", "biology")}
    path = f"/v1/transfers/{lease['id']}/accept"
    tried = http.post(f"{path}?dry_run=true", headers=taker).json["lease"]["price"]
    # The taker has the prices of now: 90 % of all, and not half of it, or nothing.
    assert [cost["amount"] for cost in tried["if_cancelled"]] == ["11.70"]
    assert client_of(app_of(there.manager)).post(path, headers=taker).status_code == 200
    shown = http.get(f"/v1/leases/{lease['id']}", headers=taker).json["lease"]["price"]
    assert shown["if_cancelled"] == tried["if_cancelled"]
