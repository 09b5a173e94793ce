# SPDX-License-Identifier: Apache-2.0
"""What goes over the message bus arrives as it was sent, and garbled messages are refused."""

from __future__ import annotations

import base64
import contextlib
import inspect
import json
import zlib
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.clouds.openstack.service import VersionMissing
from blazar.manager.billing.budgets import BudgetService
from blazar.manager.billing.price_lists import PriceListService
from blazar.manager.billing.statements import ChargeService, StatementService
from blazar.manager.journal.journal import JournalService
from blazar.manager.maintenance.service import MaintenanceService
from blazar.manager.power.service import PowerService
from blazar.manager.repair.problems import ProblemService
from blazar.manager.reports.service import ReportService
from blazar.manager.requests.calendar_view import CalendarService
from blazar.manager.requests.feeds import FeedService
from blazar.manager.requests.leases import LeaseService
from blazar.manager.requests.resources import ResourceService
from blazar.manager.requests.rules import RuleService
from blazar.manager.search.availability import AvailabilityService
from blazar.manager.series.service import SeriesService
from blazar.manager.service import FactService
from blazar.manager.subscriptions.service import SubscriptionService
from blazar.manager.surgery.service import SurgeryService
from blazar.manager.surgery.transfers import TransferService
from blazar.model.base import errors
from blazar.model.base.errors import BlazarError, CloudRefused, NotFound
from blazar.rpc import codec
from blazar.rpc.interface import NOUNS, Manager
from tests.cases import cases
from tests.rpc import availability_values, power_values, series_values, values

KINDS = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, BlazarError)]
CALLS = sorted(codec.CALLS)
ARGUMENTS = {
    **values.ARGUMENTS,
    **series_values.ARGUMENTS,
    **power_values.ARGUMENTS,
    "availability.find": {"question": availability_values.questions},
}
ANSWERS = {
    **values.ANSWERS,
    **series_values.ANSWERS,
    **power_values.ANSWERS,
    "availability.find": availability_values.answers,
}
MANAGER = {
    "leases": LeaseService,
    "journal": JournalService,
    "resources": ResourceService,
    "calendar": CalendarService,
    "availability": AvailabilityService,
    "feeds": FeedService,
    "subscriptions": SubscriptionService,
    "series": SeriesService,
    "maintenances": MaintenanceService,
    "problems": ProblemService,
    "budgets": BudgetService,
    "statements": StatementService,
    "charges": ChargeService,
    "reports": ReportService,
    "power": PowerService,
    "price_lists": PriceListService,
    "rules": RuleService,
    "surgery": SurgeryService,
    "transfers": TransferService,
    "service": FactService,
}
"""What the manager has for each part of the interface; the server makes calls with arguments by name."""


def hints_of(protocol: type) -> dict[str, dict[str, Any]]:
    """Return the type hints of the properties of a protocol."""
    return {
        name: get_type_hints(member.fget) for name, member in vars(protocol).items() if isinstance(member, property)
    }


def same(one: object, other: object) -> bool:
    """Tell whether two values are equal and print the same: to ``==``, 1 and True are one."""
    return one == other and printed(one).replace("TzInfo(0)", "datetime.timezone.utc") == printed(other)


def printed(value: object) -> str:
    """Print a value; sets in one order, as equal ones may have different orders."""
    match value:
        case frozenset():
            return f"frozenset({sorted(map(printed, value))})"
        case tuple() | list():
            return f"{type(value).__name__}({', '.join(map(printed, value))})"
        case dict():
            return str([(printed(key), printed(each)) for key, each in value.items()])
    if not is_dataclass(value):
        return repr(value)
    parts = (f"{field.name}={printed(getattr(value, field.name))}" for field in fields(value))
    return f"{type(value).__name__}({', '.join(parts)})"


def test_every_call_of_the_interface_can_be_made_and_no_other():
    parts = {name: hint["return"] for name, hint in hints_of(Manager).items()}
    assert parts == NOUNS
    members = {f"{noun}.{name}" for noun, part in parts.items() for name in vars(part) if name[0] != "_"}
    assert codec.CALLS.keys() == members == set(ARGUMENTS) == set(ANSWERS)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_from_afar_is_made_as_one_nearby(call):
    def shape(method: Any) -> list[tuple[str, object, object]]:
        return [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]

    noun, name = call.split(".")
    assert shape(getattr(MANAGER[noun], name)) == shape(codec.CALLS[call])


def test_the_arguments_of_a_call_are_named_as_in_the_interface():
    assert codec.name_arguments("leases.update", ("x",), {"change": None}) == {"lease_id": "x", "change": None}
    with pytest.raises(TypeError, match="lease"):
        codec.name_arguments("leases.update", (), {"lease": "x", "change": None})


@pytest.mark.sample(22)
@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=cases(25))
@given(data=st.data())
def test_arguments_arrive_as_they_were_sent(call, data):
    sent = data.draw(st.fixed_dictionaries(ARGUMENTS[call]))
    message = json.loads(json.dumps(codec.encode_arguments(call, sent)))
    assert same(codec.decode_arguments(call, message), sent)


@pytest.mark.sample(5)
@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=cases(25))
@given(data=st.data())
def test_an_answer_arrives_as_it_was_given(call, data):
    given = data.draw(ANSWERS[call])
    message = json.loads(json.dumps(codec.encode_answer(call, given)))
    assert same(codec.decode_answer(call, message), given)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_arrives_as_what_it_is(kind):
    with pytest.raises(kind) as raised:
        codec.decode_answer("leases.one", codec.encode_error(kind("what was wrong: ü\n")))
    assert (type(raised.value), raised.value.message) == (kind, "what was wrong: ü\n")


def test_an_error_that_only_the_manager_knows_arrives_as_the_nearest_that_all_know():
    with pytest.raises(CloudRefused, match="too old") as raised:
        codec.decode_answer("leases.one", codec.encode_error(VersionMissing("Nova is too old")))
    assert type(raised.value) is CloudRefused


def test_an_error_that_nobody_knows_is_a_bug_and_no_code_of_that_name_is_run():
    with pytest.raises(BlazarError) as raised:
        codec.decode_answer("leases.one", {"error": "SystemExit", "message": "1"})
    assert type(raised.value) is BlazarError


def test_a_long_text_travels_packed():
    ids = [f"{number:036}" for number in range(5000)]
    sent = codec.encode_arguments("leases.by_id", {"lease_ids": ids})
    assert len(sent["lease_ids"]) < codec.COMPRESSED_FROM
    assert codec.decode_arguments("leases.by_id", sent) == {"lease_ids": ids}


def test_a_text_that_looks_packed_is_not_taken_for_it():
    sent = codec.encode_arguments("leases.one", {"lease_id": "z:abc"})
    assert codec.decode_arguments("leases.one", sent) == {"lease_id": "z:abc"}


def test_a_packed_text_that_unpacks_without_end_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(codec, "MAX_UNPACKED_BYTES", 1000)
    bomb = "z:" + base64.b64encode(zlib.compress(b'"' + b"a" * 2000 + b'"')).decode()
    with pytest.raises(codec.MalformedMessage, match="too long when decompressed"):
        codec.decode_arguments("leases.one", {"lease_id": bomb})


@pytest.mark.parametrize(
    "call",
    [
        "start",
        "engine",
        "__init__",
        "__class__",
        "_leases",
        "",
        "leases.one ",
        "LEASES.ONE",
        "leases",
        "leases.__class__",
        "claims.stop",
        None,
        5,
        ["leases.one"],
    ],
    ids=repr,
)
def test_there_is_no_other_call(call):
    with pytest.raises(codec.MalformedMessage, match="there is no call"):
        codec.decode_arguments(call, {})


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        "text",
        ["lease_id"],
        {},
        {"lease_id": None},
        {"lease_id": 5},
        {"lease_id": b'"x"'},
        {"lease_id": "no JSON"},
        {"lease_id": "5"},
        {"lease_id": '["x"]'},
        {"lease_id": "z:"},
        {"lease_id": "z:!!!"},
        {"lease_id": "z:AAAA"},
        {"lease_id": "[" * 100_000},
        {"lease_id": '"\\ud800"'},
        {"lease_id": '"x"', "more": '"y"'},
        {"lease_id": '"x"', "self": '"y"'},
        {"lease_id": '"x"', "return": "null"},
        {5: '"x"'},
    ],
    ids=lambda value: repr(value)[:40],
)
def test_garbled_arguments_are_refused(arguments):
    with pytest.raises(codec.MalformedMessage):
        codec.decode_arguments("leases.one", arguments)


@pytest.mark.parametrize(
    ("call", "name", "text"),
    [
        ("leases.create", "request", "{}"),
        ("leases.create", "request", '{"name": "n"}'),
        ("leases.update", "change", '{"start": "soon"}'),
        ("resources.properties", "include_private", '"perhaps"'),
        ("leases.by_id", "lease_ids", '"abc"'),
        ("resources.register", "request", '{"given": {}, "capabilities": {"gpu": 5}}'),
    ],
)
def test_values_that_the_interface_does_not_have_are_refused(call, name, text):
    others = dict.fromkeys(codec.list_required(call) - {name}, '"x"')
    with pytest.raises(codec.MalformedMessage, match=f"{name} of {call}"):
        codec.decode_arguments(call, {name: text, **others})


@pytest.mark.parametrize(
    "message",
    [None, "answer", [], {}, {"answer": 5}, {"answer": ""}, {"answer": "{}"}, {"error": 5}, {"error": ["NotFound"]}],
    ids=repr,
)
def test_a_garbled_answer_is_refused(message):
    with pytest.raises(codec.MalformedMessage):
        codec.decode_answer("leases.one", message)


def test_a_window_that_cannot_be_is_refused():
    text = '{"id":"a","name":"","user_id":"","project_id":"","status":"PENDING","created_at":"2030-01-01T00:00:00Z",'
    backwards = '"window":{"start":"2030-01-02T00:00:00Z","end":"2030-01-01T00:00:00Z"}}'
    with pytest.raises(codec.MalformedMessage, match="is not after the start"):
        codec.decode_answer("leases.one", {"answer": text + backwards})


@settings(max_examples=cases(200))
@given(call=st.sampled_from(CALLS), text=st.text(max_size=30) | st.binary(max_size=30).map(lambda raw: f"z:{raw!r}"))
def test_whatever_arrives_is_a_value_or_garbled(call, text):
    with contextlib.suppress(codec.MalformedMessage):
        codec.decode_answer(call, {"answer": text})


def test_what_is_told_of_a_garbled_message_holds_nothing_of_its_content():
    with pytest.raises(codec.MalformedMessage) as refused:
        codec.decode_arguments("leases.create", {"request": '{"name": {"pass": "geheim"}}'})
    assert "geheim" not in str(refused.value)


def test_an_error_without_a_sentence_is_still_that_error():
    with pytest.raises(NotFound, match="no reason given"):
        codec.decode_answer("leases.one", {"error": "NotFound"})
