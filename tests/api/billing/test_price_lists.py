# SPDX-License-Identifier: Apache-2.0
"""``/v1/price-lists``: operators publish, all read, and a member sees no factor of another project."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from blazar.model.resources.resource import HOST
from tests.api.conftest import app_of, client_of, token
from tests.prices import a_document
from tests.statements import counted
from tests.world import PROJECT, a_host

OPERATOR, MEMBER = token("olga", "admin", "admin"), token("curie", PROJECT)
URL = "/v1/price-lists"
FACTORS = [{"project_id": PROJECT, "factor": "0.80"}, {"project_id": "chemistry", "factor": "0.50"}]


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def ask(http, method: str, path: str, body: Any = None, *, who=OPERATOR, version: str = "1.1"):
    return http.open(path, method=method, json=body, headers={"OpenStack-API-Version": f"reservation {version}", **who})


def test_a_list_is_published_and_read_by_all(http, world):
    document = a_document(projects=FACTORS)
    with counted(world.engine) as statements:
        made = ask(http, "POST", URL, document)
    assert (made.status_code, made.headers["Location"]) == (201, "http://localhost/v1/price-lists/1")
    assert made.json["price_list"] == {
        "version": 1,
        "published_at": "2030-04-01T12:00:00Z",
        "valid_from": "2030-03-01T00:00:00Z",
        "published_by": "olga",
        "digest": made.json["price_list"]["digest"],
        "currency": "EUR",
        "content": document,
    }
    assert {"field": "prices[host].per_hour", "before": None, "after": '"0.80"'} in made.json["changes"]
    assert statements.count < 34
    assert ask(http, "GET", f"{URL}/1").json["price_list"] == made.json["price_list"]
    assert [one["version"] for one in ask(http, "GET", URL, who=MEMBER).json["price_lists"]] == [1]


def test_a_member_sees_of_projects_only_the_own_entry(http):
    ask(http, "POST", URL, a_document(projects=FACTORS))
    seen = ask(http, "GET", f"{URL}/1", who=MEMBER).json["price_list"]
    assert seen["content"] == a_document(projects=FACTORS[:1])
    assert (seen["published_by"], seen["digest"]) == (None, None)


def test_a_dry_run_says_what_would_change_and_publishes_nothing(http):
    ask(http, "POST", URL, a_document(fee="1.00", projects=FACTORS))
    prices = [{"sku": "host", "measure": "host", "per_hour": "0.90"}]
    would = ask(http, "POST", f"{URL}?dry_run=true", a_document(prices=prices, projects=FACTORS[1:]))
    assert (would.status_code, would.json["price_list"]["version"]) == (200, 2)
    assert would.json["changes"] == [
        {"field": "prices[host].per_hour", "before": '"0.80"', "after": '"0.90"'},
        {"field": "fee", "before": '"1.00"', "after": None},
        {"field": f"projects[{PROJECT}].factor", "before": '"0.80"', "after": None},
    ]
    assert ask(http, "GET", f"{URL}/2").status_code == 404


@pytest.mark.parametrize(
    ("changed", "pointer", "sentence"),
    [
        ({"time_zone": "Mars/Olympus"}, "/time_zone", "time_zone"),
        ({"currency": "USD"}, "/currency", "EUR, which all price lists here have"),
        (
            {"prices": [{"sku": "host", "measure": "vcpu", "per_hour": "1"}]},
            "/prices/0/measure",
            "host, which host is a price of in version 1, or another sku",
        ),
        ({"fee": "5.0000001"}, "/fee", "at most 9 digits and 6 decimals"),
        ({"prices": [{"sku": "x", "measure": "hous", "per_hour": "1"}]}, "/prices/0/measure", "one of"),
        (
            {"prices": [{"sku": "x", "measure": "host", "per_hour": "1", "requirement": ["==", "$rack", "7"]}]},
            "/prices/0/requirement",
            "rack, which is private",
        ),
    ],
)
def test_a_wrong_list_is_refused_by_a_sentence_that_names_the_place(http, world, changed, pointer, sentence):
    ask(http, "PUT", "/v1/resources/host/1", {"properties": {"rack": "7"}})
    world.manager.resources.set_property(HOST, "rack", private=True)
    ask(http, "POST", URL, a_document())
    refused = ask(http, "POST", URL, a_document(**changed))
    assert refused.status_code == 400
    (error,) = refused.json["errors"]
    assert error["pointer"] == pointer
    assert sentence in error["detail"]
    assert len(ask(http, "GET", URL).json["price_lists"]) == 1


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"late": "maybe"}, "late is 'maybe', which is invalid; give free or charge, for the time"),
        ({"fee": None}, 'fee is null, which is invalid; give an amount as a string, such as "3.20", with at'),
        ({"decimals": True}, "decimals is true, which is invalid; give a whole number from 0 to 9"),
        ({"prices": [1]}, "prices[0] is 1, which is invalid; give an object with sku, measure, requirement, per_hour"),
        ({"hours": {}}, "hours is an object, which is invalid; give a list of factors by the local time"),
        ({"round_up": 60}, 'round_up is 60, which is invalid; give a duration as a string, such as "PT24H"'),
    ],
)
def test_a_sentence_says_what_to_give(http, changed, sentence):
    (error,) = ask(http, "POST", URL, a_document(**changed)).json["errors"]
    assert error["detail"].startswith(sentence)


WHOLE = {
    **{"fee": "5.00", "unused": "1", "early_return": "0", "pue": "1.4", "load": "0.6", "minimum": "PT1H"},
    **{"round_up": "PT1M", "lead": [{"below": "PT24H", "factor": "1.10"}], "amount": [{"above": 16, "factor": "1.20"}]},
    "hours": [{"from": "09:00", "to": "18:00", "factor": "1.25"}],
    "projects": [{"project_id": "physics", "factor": "0.80"}],
    "cancellation": [{"before_start": "P7D", "share": "0"}, {"share": "0.50"}],
}


@pytest.mark.parametrize("field", sorted(WHOLE))
def test_a_number_where_a_string_is_wanted_is_told_to_be_one_and_the_other_way_round(http, field):
    for place, swapped in swap_numbers(WHOLE[field]):
        (error,) = ask(http, "POST", f"{URL}?dry_run=true", a_document(**{field: swapped})).json["errors"]
        wanted = "without quotes" if place.endswith("above") else "as a string, such as"
        assert error["detail"].startswith(f"{field}{place} is ")
        assert wanted in error["detail"]


def swap_numbers(value):
    """Yield a value of the document with one number in or without quotes as is wrong, and where that is."""
    if isinstance(value, int):
        yield "", str(value)
    elif isinstance(value, str) and (value[0] == "P" or value.replace(".", "").isdigit()):
        yield "", 3600 if value[0] == "P" else float(value)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            for place, swapped in swap_numbers(item):
                yield f"[{number}]{place}", [*value[:number], swapped, *value[number + 1 :]]
    elif isinstance(value, dict):
        for key, item in value.items():
            for place, swapped in swap_numbers(item):
                yield f".{key}{place}", {**value, key: swapped}


def test_a_day_that_is_none_is_refused_as_it_was_written(http):
    (error,) = ask(http, "POST", URL, a_document(valid_from="2030-13-01")).json["errors"]
    assert error["detail"] == (
        "valid_from is '2030-13-01', which is invalid; give a day of the years 1970 to 8999, such as 2030-04-01"
    )


def test_nobody_else_publishes_and_before_1_1_there_are_none(http):
    assert ask(http, "POST", URL, a_document(), who=MEMBER).status_code == 403
    assert ask(http, "GET", URL, version="1.0").status_code == 404
    assert ask(http, "GET", f"{URL}/first").status_code == 404


def test_it_is_said_which_lists_that_were_published_ahead_a_list_replaces(http):
    ask(http, "POST", URL, a_document())
    for month in ("06", "05", "07"):
        assert ask(http, "POST", URL, a_document(valid_from=f"2030-{month}-01")).status_code == 201
    # That of May has taken the place of that of June, and holds until July.
    dry_run = f"{URL}?dry_run=true"
    assert ask(http, "POST", dry_run, a_document(valid_from="2030-08-01")).json["replaced"] == []
    assert ask(http, "POST", dry_run, a_document(valid_from="2030-06-15")).json["replaced"] == [4]
    assert ask(http, "POST", dry_run, a_document(valid_from="2030-05-01")).json["replaced"] == [3, 4]
    assert ask(http, "POST", URL, a_document()).json["replaced"] == [3, 4]
    assert ask(http, "POST", URL, a_document()).json["replaced"] == []


@pytest.mark.parametrize(
    ("requirements", "unmatched"),
    [
        ({"rack": "7"}, []),
        ({"rack": "8"}, ["rack"]),
        ({"rakc": "7"}, ["rack"]),
        ({"all": None, "rack": "7"}, ["rack"]),
        ({"rack": "7", "all": None}, []),
    ],
    ids=["fits", "of no resource", "misspelled", "behind one that fits all", "before it"],
)
def test_it_is_said_which_prices_no_resource_has(http, requirements, unmatched):
    ask(http, "PUT", "/v1/resources/host/1", {"properties": {"rack": "7"}})
    prices = [
        {"sku": "all", "measure": "host", "per_hour": "1"}
        if value is None
        else {"sku": "rack", "measure": "host", "per_hour": "2", "requirement": ["==", f"${name}", value]}
        for name, value in requirements.items()
    ]
    # Where there are no resources of the kind at all, nothing is said of their price.
    prices.append({"sku": "address", "measure": "floatingip", "per_hour": "1"})
    answer = ask(http, "POST", f"{URL}?dry_run=true", a_document(prices=prices))
    assert answer.json["unmatched"] == unmatched
    assert ask(http, "POST", URL, a_document(prices=prices)).json["unmatched"] == unmatched


def test_it_is_said_what_a_list_that_is_published_ahead_leaves_out(http):
    both = [{"sku": sku, "measure": "host", "per_hour": "0.90"} for sku in ("host", "host-2030")]
    assert ask(http, "POST", URL, a_document(prices=both)).json["left_out"] == []
    later = [{"sku": "host-may", "measure": "host", "per_hour": "0.90"}]
    ahead = a_document(valid_from="2030-05-01", prices=[*later, both[0]])
    assert ask(http, "POST", f"{URL}?dry_run=true", ahead).json["left_out"] == ["host-2030"]
    assert ask(http, "POST", URL, ahead).json["left_out"] == ["host-2030"]
    # One that holds at once leaves nothing out, as what is booked from then on has its prices.
    assert ask(http, "POST", f"{URL}?dry_run=true", a_document(prices=later)).json["left_out"] == []
    last = a_document(valid_from="2030-06-01", prices=both)
    assert ask(http, "POST", f"{URL}?dry_run=true", last).json["left_out"] == ["host-may"]


def test_a_dry_run_says_what_the_last_month_would_have_cost(http, world):
    assert ask(http, "POST", URL, a_document(fee="1.00")).json["last_month"] is None
    world.run_to(world.clock.now() + timedelta(seconds=1))
    world.lease(a_host(1), start=timedelta(hours=1), hours=10)
    world.run_to(datetime(2030, 5, 2, tzinfo=UTC))
    world.manager.closing.run_once()
    prices = [{"sku": "host", "measure": "host", "per_hour": "1.60"}]
    would = ask(http, "POST", f"{URL}?dry_run=true", a_document(fee="2.00", prices=prices)).json["last_month"]
    amounts = {"amount": "9.00", "new_amount": "18.00"}
    assert would == {
        "month": "2030-04",
        "currency": "EUR",
        **amounts,
        "leases": 1,
        "is_whole": True,
        "projects": [{"project_id": PROJECT, **amounts}],
    }
