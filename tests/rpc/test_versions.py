# SPDX-License-Identifier: Apache-2.0
"""API and manager of different versions, as during an upgrade: what one does not know is skipped, or has a default."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.details import LeaseDetails
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.resources.resource import Resource
from blazar.rpc import codec
from tests.cases import cases
from tests.rpc import values
from tests.rpc.test_codec import ANSWERS, ARGUMENTS, CALLS, same

NEW_KEY = "of_a_later_version"
LATER: Mapping[type, tuple[str, ...]] = {
    Event: ("cause", "trouble_since"),
    Reservation: ("failed", "missing_since", "changed_since"),
    Resource: ("label", "revision", "disabled_reason", "disabled_since", "disabled_until"),
}
"""Fields that values of calls of earlier versions have not had from the start."""


def with_more(value: Any, sent: Any) -> Any:
    """Return the JSON of a value with a key more in every object that is a value of the model."""
    if dataclasses.is_dataclass(value) and isinstance(sent, dict):
        names = [field.name for field in dataclasses.fields(value) if field.name in sent]
        return {NEW_KEY: {"x": 1}, **{name: with_more(getattr(value, name), sent[name]) for name in names}}
    if isinstance(value, list | tuple):
        return [with_more(*pair) for pair in zip(value, sent, strict=True)]
    if isinstance(value, Mapping):
        return {key: with_more(value[key], part) for key, part in sent.items()}
    return sent


def without_later(value: Any, sent: Any) -> Any:
    """Return the JSON of a value as an earlier version sends it."""
    if dataclasses.is_dataclass(value):
        left = LATER.get(type(value), ())
        return {name: without_later(getattr(value, name), part) for name, part in sent.items() if name not in left}
    if isinstance(value, list | tuple):
        return [without_later(*pair) for pair in zip(value, sent, strict=True)]
    return sent


def as_before(value: Any) -> Any:
    """Return a value with the defaults of the fields that an earlier version does not send."""
    if isinstance(value, tuple):
        return tuple(as_before(each) for each in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    left = LATER.get(type(value), ())
    fields = {field.name: field for field in dataclasses.fields(value)}
    parts = {name: as_before(getattr(value, name)) for name, field in fields.items() if field.init}
    return type(value)(**{name: part for name, part in parts.items() if name not in left})


def changed(text: str, change: Any) -> str:
    """Return a string of a message with other JSON."""
    return json.dumps(change(json.loads(text)))


@pytest.mark.sample(13)
@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=cases(10))
@given(data=st.data())
def test_an_api_skips_what_a_later_manager_tells_besides(call, data):
    given = data.draw(ANSWERS[call])
    message = codec.encode_answer(call, given)
    later = {**message, "answer": changed(message["answer"], lambda sent: with_more(given, sent))}
    assert same(codec.decode_answer(call, later), given)


@pytest.mark.sample(34)
@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=cases(10))
@given(data=st.data())
def test_a_manager_skips_what_a_later_api_asks_besides(call, data):
    sent = data.draw(st.fixed_dictionaries(ARGUMENTS[call]))
    message = codec.encode_arguments(call, sent)
    later = {name: changed(text, lambda part, name=name: with_more(sent[name], part)) for name, text in message.items()}
    assert same(codec.decode_arguments(call, later), sent)


@pytest.mark.parametrize(
    ("call", "answers"),
    [
        ("leases.one", values.leases),
        ("leases.details", values.details),
        ("resources.all", ANSWERS["resources.all"]),
    ],
)
@given(data=st.data())
def test_what_an_earlier_manager_does_not_tell_has_a_default(call, answers, data):
    given = data.draw(answers)
    assert isinstance(given, Lease | LeaseDetails | tuple)
    message = codec.encode_answer(call, given)
    earlier = {**message, "answer": changed(message["answer"], lambda sent: without_later(given, sent))}
    assert same(codec.decode_answer(call, earlier), as_before(given))


@given(data=st.data())
def test_a_code_of_a_later_manager_is_read_as_the_vaguest(data):
    event = dataclasses.replace(data.draw(values.events), cause=data.draw(values.causes))
    lease = dataclasses.replace(data.draw(values.leases), events=(event,))
    message = codec.encode_answer("leases.one", lease)

    def renamed(sent: Any) -> Any:
        sent["events"][0]["cause"]["code"] = "strike"
        return sent

    found = codec.decode_answer("leases.one", {"answer": changed(message["answer"], renamed)})
    assert found.events[0].cause == dataclasses.replace(event.cause, code=ReasonCode.RESOURCE_NOT_READY)
