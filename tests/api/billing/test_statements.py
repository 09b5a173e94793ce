# SPDX-License-Identifier: Apache-2.0
"""``/v1/statements`` and ``/v1/charges``: what is to be paid, in each form, and corrections of it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from blazar.api.http.csv_text import Column, render_csv, spell_cell, stream_csv
from blazar.api.http.identity import StandaloneIdentity
from blazar.manager.common.settings import Settings
from blazar.model.billing.focus import COLUMNS, Issuer, list_rows
from blazar.model.leases.requests import Actor
from blazar.model.surgery import OfferRequest, Terms
from tests.api.conftest import app_of, client_of, token
from tests.manager.billing.ledger import HOUR, close, publish
from tests.model.billing.builders import APRIL, a_charge, a_correction, a_statement
from tests.model.billing.focus_check import check_bill
from tests.model.billing.test_focus import an_energy, some_lines
from tests.model.billing.test_rating import WORKING_HOURS, a_list
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

OPERATOR, CURIE, STRANGER = token("root", "admin", "admin"), token("curie", PROJECT), token("bohr", "biology")
OVER = NOON + 31 * 24 * HOUR


@pytest.fixture
def world(engine):
    """A project had two hosts for ten hours, another one a host for an hour and a half; it is May."""
    world = World(engine)
    publish(world, fee="5.00", prices=[{"sku": "host", "measure": "host", "per_hour": "0.333333"}])
    world.lease(a_host(2), start=HOUR, hours=10)
    world.lease(a_host(), start=13 * HOUR, hours=1.5, project="biology")
    close(world, OVER)
    return world


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, url: str, *, who=CURIE, **headers: str):
    return http.get(url, headers={"OpenStack-API-Version": "reservation 1.1", **who, **headers})


def correct(http, body, *, who=OPERATOR, **headers: str):
    return http.post("/v1/charges", json=body, headers={"OpenStack-API-Version": "reservation 1.1", **who, **headers})


def refused(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error["detail"]


def recompute(charge) -> Decimal:
    """Return the amount of a charge by what the charge itself says."""
    hours = Fraction(charge["resource_seconds"], 3600) if charge["sku"] else 1
    nano = round(Fraction(charge["unit_price"]) * Fraction(charge["factor"]) * hours * 10**9)
    return Decimal(nano).scaleb(-9)


def test_a_statement_has_all_charges_of_the_month_and_anybody_can_recompute_it(http):
    answer = ask(http, "/v1/statements/2030-04")
    assert answer.status_code == 200, answer.text
    statement = answer.json["statement"]
    assert (statement["id"], statement["state"], statement["currency"]) == ("2030-04/physics", "final", "EUR")
    assert (statement["amount"], statement["rounding"]) == ("11.67", "0.003340000")
    assert [(one["category"], one["sku"], one["amount"]) for one in statement["totals"]] == [
        ("usage", "host", "6.666660000"),
        ("fee", None, "5.000000000"),
    ]
    assert [recompute(charge) for charge in statement["charges"]] == [
        Decimal(c["amount"]) for c in statement["charges"]
    ]
    total = sum(Decimal(charge["amount"]) for charge in statement["charges"])
    assert total + Decimal(statement["rounding"]) == Decimal(statement["amount"])


def test_the_list_has_each_month_with_its_totals(http):
    (statement,) = ask(http, "/v1/statements").json["statements"]
    assert (statement["month"], statement["amount"], statement["project_id"]) == ("2030-04", "11.67", PROJECT)
    everybody = ask(http, "/v1/statements?all_projects=true", who=OPERATOR).json["statements"]
    assert [(one["project_id"], one["amount"]) for one in everybody] == [(PROJECT, "11.67"), ("biology", "5.50")]


def test_as_csv_it_has_a_line_for_each_charge(http):
    shown = ask(http, "/v1/statements/2030-04").json["statement"]["charges"]
    for answer in (
        ask(http, "/v1/statements/2030-04?format=csv"),
        ask(http, "/v1/statements/2030-04", Accept="text/csv"),
    ):
        assert answer.headers["Content-Disposition"] == 'attachment; filename="blazar-statement-2030-04.csv"'
        lines = list(csv.DictReader(io.StringIO(answer.text)))
        assert [(line["id"], line["amount"], line["from"]) for line in lines] == [
            (str(charge["id"]), charge["amount"], charge["from"]) for charge in shown
        ]


def test_as_csv_a_credit_is_a_number_below_zero_and_all_add_up(http):
    charge = ask(http, "/v1/charges?category=usage").json["charges"][0]
    for amount in ("-11.50", "0.25"):
        assert correct(http, {"corrects": charge["id"], "amount": amount, "reason": "=slow"}).status_code == 201
    lines = list(csv.DictReader(io.StringIO(ask(http, "/v1/statements/2030-05?format=csv").text)))
    assert [(line["amount"], line["reason"]) for line in lines] == [
        ("-11.500000000", "'=slow"),
        ("0.250000000", "'=slow"),
    ]
    assert str(sum(Decimal(line["amount"]) for line in lines)) == "-11.250000000"


def test_as_focus_it_passes_the_strict_check(http):
    answer = ask(http, "/v1/statements/2030-04?format=focus")
    rows = check_bill(answer.text, amount="11.67", currency="EUR")
    assert [row["SkuId"] for row in rows] == ["lease-fee", "host", ""] or [row["SkuId"] for row in rows] == [
        "host",
        "lease-fee",
        "",
    ]
    assert {row["InvoiceId"] for row in rows} == {"2030-04/physics"}


def test_cells_that_rows_share_are_spelled_as_in_each_row():
    prices = [a_list(hours=[WORKING_HOURS], early_return="0.5", round_up="PT1H", fee="5.00")]
    lines = [*some_lines(prices[0]), an_energy(), an_energy(gco2=None, wh=0)]
    names = ('a,"b"\r\nc', "=1+1", None)
    charges = [a_charge(one, id, lease_name=names[id % 3], region="") for id, one in enumerate(lines, 1) if one]
    bill = (charges + [a_correction(-7), a_correction(1, of=APRIL)]) * 40
    issuer = Issuer("@home", "-p", 'the "p"')
    whole = list_rows(a_statement(bill), bill, prices, issuer, lambda cell: cell)
    spelled = list_rows(a_statement(bill), bill, prices, issuer, spell_cell)
    assert stream_csv("f", COLUMNS, spelled).get_data() == render_csv(list(map(Column, COLUMNS)), whole).encode()
    assert len(bill) > 500


def test_a_month_is_open_until_it_is_over_and_all_of_it_is_charged(world, http):
    assert ask(http, "/v1/statements/2030-04").json["statement"]["state"] == "final"
    world.lease(a_host(), hours=1)
    close(world, world.clock.now() + 2 * HOUR)
    assert ask(http, "/v1/statements/2030-05").json["statement"]["state"] == "open"


def test_a_correction_is_in_the_statement_of_the_month_in_which_it_is_made(world, http):
    charge = next(one for one in ask(http, "/v1/charges").json["charges"] if one["category"] == "usage")
    body = {"corrects": charge["id"], "amount": "-1.25", "reason": "the hosts were slow"}
    answer = correct(http, body)
    assert answer.status_code == 201, answer.text
    made = answer.json["charge"]
    assert (made["category"], made["amount"], made["month"]) == ("correction", "-1.250000000", "2030-05")
    assert (made["corrects"], made["reason"], made["from"]) == (charge["id"], "the hosts were slow", charge["from"])
    assert ask(http, "/v1/statements/2030-04").json["statement"]["amount"] == "11.67"
    assert ask(http, "/v1/statements/2030-05").json["statement"]["amount"] == "-1.25"
    (row,) = check_bill(ask(http, "/v1/statements/2030-05?format=focus").text, amount="-1.25", currency="EUR")
    assert (row["ChargeCategory"], row["ChargeClass"]) == ("Credit", "Correction")
    world.manager.journal_numbering.run_once()
    history = ask(http, "/v1/history?object_type=charge&by=root", who=OPERATOR).json["history"]
    assert [(one["verb"], one["object"]["id"], one["project_id"]) for one in history] == [
        ("created", str(made["id"]), PROJECT)
    ]
    (error,) = correct(http, {**body, "corrects": made["id"]}).json["errors"]
    assert (error["status"], error["pointer"]) == (400, "/corrects")
    assert f"corrects is {made['id']}" in error["detail"]
    assert f"a correction of {charge['id']}" in error["detail"]


def test_a_correction_that_is_sent_again_with_its_key_is_made_once(http):
    body = {"corrects": 1, "amount": "-1.25", "reason": "the hosts were slow"}
    key = {"Idempotency-Key": '"slow-april"'}
    first, again = correct(http, body, **key), correct(http, body, **key)
    assert first.status_code == again.status_code == 201
    assert first.json == again.json
    assert [one.headers.get("Idempotency-Replayed") for one in (first, again)] == [None, "true"]
    assert refused(correct(http, {**body, "amount": "-2"}, **key))[:2] == (409, "idempotency_key_reused")
    assert correct(http, body, **{"Idempotency-Key": "no spaces"}).status_code == 400
    assert correct(http, body).json["charge"]["id"] != first.json["charge"]["id"]
    charges = ask(http, "/v1/charges?category=correction&all_projects=true", who=OPERATOR).json["charges"]
    assert [one["amount"] for one in charges] == ["-1.250000000"] * 2


@pytest.mark.parametrize(
    ("changes", "status", "word", "pointer"),
    [
        ({"amount": "0"}, 400, "amount is 0", "/amount"),
        ({"amount": "1.0000000001"}, 400, "amount", "/amount"),
        ({"amount": "1e9"}, 400, "amount", "/amount"),
        ({"amount": "-13"}, 400, "amount is -13, which gives more back than project ", "/amount"),
        ({"amount": "9999999999"}, 400, "at most 9 digits and 9 decimals", "/amount"),
        ({"amount": -1}, 400, "give an amount as a string", "/amount"),
        ({"reason": ""}, 400, "reason", "/reason"),
        ({"reason": " \n"}, 400, "reason", "/reason"),
        ({"corrects": 4711}, 404, "charge 4711 not found", None),
    ],
)
def test_a_wrong_correction_is_refused(http, changes, status, word, pointer):
    answer = correct(http, {"corrects": 1, "amount": "-1", "reason": "slow", **changes})
    assert refused(answer)[0] == status
    assert word in refused(answer)[2]
    assert answer.json["errors"][0].get("pointer") == pointer


def test_no_more_is_given_back_for_a_lease_than_it_was_charged(http):
    lease_id = ask(http, "/v1/charges").json["charges"][0]["lease_id"]
    charges = ask(http, f"/v1/charges?lease_id={lease_id}").json["charges"]
    whole, body = sum(Decimal(one["amount"]) for one in charges), {"corrects": charges[0]["id"], "reason": "slow"}
    assert correct(http, {**body, "amount": f"{1 - whole}"}).status_code == 201
    (_, _, says) = refused(correct(http, {**body, "amount": "-1.01"}))
    assert says.endswith("corrections included: that is 1 EUR; give at most that back")
    assert correct(http, {**body, "amount": "-1"}).status_code == 201
    assert correct(http, {**body, "amount": "1"}).status_code == 201


def test_a_statement_may_be_of_more_than_one_amount_can_be(http):
    charge = ask(http, "/v1/charges").json["charges"][0]
    body = {"corrects": charge["id"], "amount": "999999999", "reason": "a slip"}
    assert [correct(http, body).status_code for _ in range(11)] == [201] * 11
    assert ask(http, "/v1/statements/2030-05").json["statement"]["amount"] == "10999999989.00"
    assert correct(http, {**body, "amount": "-999999999"}).status_code == 201
    assert ask(http, "/v1/statements/2030-05").json["statement"]["amount"] == "9999999990.00"


def test_only_operators_correct_charges_and_see_those_of_others(http):
    assert correct(http, {"corrects": 1, "amount": "-1", "reason": "slow"}, who=CURIE).status_code == 403
    for url in ("/v1/statements/2030-04?", "/v1/statements?", "/v1/charges?"):
        assert refused(ask(http, f"{url}project_id=biology"))[0] == 403
        assert ask(http, f"{url}project_id=biology", who=OPERATOR).status_code == 200
    assert {one["project_id"] for one in ask(http, "/v1/charges", who=STRANGER).json["charges"]} == {"biology"}


def test_who_gave_a_lease_away_does_not_see_how_it_is_called_since(world, http):
    lease = world.lease(a_host(), hours=10, name="ours")
    world.run_to(OVER + 5 * HOUR)
    world.manager.transfers.offer(lease.id, OfferRequest("biology"), Terms(Actor("curie", PROJECT)))
    world.manager.transfers.accept(lease.id, Terms(Actor("bohr", "biology")))
    world.change(lease, name="not yours")
    close(world, OVER + 31 * 24 * HOUR)
    url = f"/v1/charges?category=usage&lease_id={lease.id}"
    assert [one["lease_name"] for one in ask(http, url, who=CURIE).json["charges"]] == [None]
    assert [one["lease_name"] for one in ask(http, url, who=STRANGER).json["charges"]] == ["not yours"]
    assert "not yours" not in ask(http, "/v1/statements/2030-05?format=focus").text


@pytest.mark.parametrize(
    ("url", "status", "word"),
    [
        ("/v1/statements/2030-13", 400, "2030-04"),
        ("/v1/statements/April", 400, "2030-04"),
        ("/v1/statements/2031-01", 404, "nothing was charged in that month"),
        ("/v1/statements/2030-04?format=pdf", 400, "format"),
        ("/v1/charges?month=2030", 400, "2030-04"),
        ("/v1/charges?marker=x", 400, "marker"),
    ],
)
def test_what_is_not_there_or_malformed_is_said(http, url, status, word):
    found = refused(ask(http, url))
    assert found[0] == status
    assert word in found[2]


def test_charges_are_listed_in_pages_by_lease_month_and_category(http):
    everything = ask(http, "/v1/charges?all_projects=true&with_count=true", who=OPERATOR).json
    assert everything["count"] == len(everything["charges"]) == 4
    ids = [one["id"] for one in everything["charges"]]
    assert ids == sorted(ids)
    first = ask(http, "/v1/charges?all_projects=true&limit=3", who=OPERATOR).json
    following = next(link["href"] for link in first["links"] if link["rel"] == "next").partition("/v1")[2]
    second = ask(http, f"/v1{following}", who=OPERATOR).json
    assert [one["id"] for one in (*first["charges"], *second["charges"])] == ids
    backward = ask(http, "/v1/charges?all_projects=true&sort_dir=desc", who=OPERATOR).json["charges"]
    assert [one["id"] for one in backward] == ids[::-1]
    lease = everything["charges"][0]["lease_id"]
    found = ask(http, f"/v1/charges?all_projects=true&lease_id={lease}&category=fee&month=2030-04", who=OPERATOR).json
    assert [(one["lease_id"], one["category"]) for one in found["charges"]] == [(lease, "fee")]


def test_statements_are_listed_in_pages_the_latest_first(http):
    for charge in ask(http, "/v1/charges?all_projects=true&category=usage", who=OPERATOR).json["charges"]:
        assert correct(http, {"corrects": charge["id"], "amount": "1", "reason": "more"}).status_code == 201
    for order in ("", "&sort_dir=asc"):
        url = f"/v1/statements?all_projects=true{order}"
        everything = ask(http, f"{url}&with_count=true", who=OPERATOR).json
        ids = [one["id"] for one in everything["statements"]]
        assert everything["count"] == len(ids) == 4
        assert ids == sorted(ids, reverse=not order)
        found, more = [], f"{url}&limit=3"
        while more:
            page = ask(http, more, who=OPERATOR).json
            found += page["statements"]
            links = [link["href"] for link in page["links"] if link["rel"] == "next"]
            more = f"/v1{links[0].partition('/v1')[2]}" if links else ""
        assert found == everything["statements"]
        after = ask(http, f"{url}&marker={ids[1]}", who=OPERATOR).json["statements"]
        assert [one["id"] for one in after] == ids[2:]
    assert ask(http, "/v1/statements?marker=x").status_code == 400


def test_who_is_to_be_paid_is_named_as_the_operators_say_and_the_project_as_its_token(world):
    world = World(world.engine, settings=Settings(provider="Cloud of Bern"), register=False, clock=world.clock)

    class Named(StandaloneIdentity):
        def authenticate(self, headers):
            return replace(super().authenticate(headers), project_name="Physics")

    http = client_of(app_of(world.manager, Named()))
    assert ask(http, "/v1/statements/2030-04").json["statement"]["provider"] == "Cloud of Bern"
    bill = list(csv.DictReader(io.StringIO(ask(http, "/v1/statements/2030-04?format=focus").text)))
    assert {(row["ProviderName"], row["InvoiceIssuerName"], row["SubAccountName"]) for row in bill} == {
        ("Cloud of Bern", "Cloud of Bern", "Physics")
    }
    assert {(row["BillingAccountId"], row["BillingAccountName"]) for row in bill} == {(PROJECT, "Physics")}
    other = ask(http, "/v1/statements/2030-04?format=focus&project_id=biology", who=OPERATOR).text
    assert "Physics" not in other


def test_a_list_of_statements_takes_the_same_statements_of_sql_however_many_there_are(engine, http):
    with counted(engine) as statements:
        ask(http, "/v1/statements?all_projects=true", who=OPERATOR)
    assert statements.count == 4


def test_nothing_was_charged_where_no_list_was_published(engine):
    http = client_of(app_of(World(engine).manager))
    assert ask(http, "/v1/statements").json["statements"] == []
    assert ask(http, "/v1/charges").json["charges"] == []
