# SPDX-License-Identifier: Apache-2.0
"""The requirements language."""

from __future__ import annotations

import contextlib
import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blazar.model.base.errors import InvalidInput
from blazar.model.resources.requirements import Anything, join_requirements, matches, parse_requirement, property_keys

HOST = {"vcpus": 16, "name": "node-1", "gpus": "9", "zone": "az-1", "reservable": True, "status": None, "ratio": 1.5}


def holds(source: object, properties: dict = HOST) -> bool:
    return matches(parse_requirement(source, field="resource_properties"), properties)


@pytest.mark.parametrize("source", [None, "", "[]", [], " [] "])
def test_nothing_asked_is_anything(source):
    assert parse_requirement(source, field="f") == Anything()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (["==", "$vcpus", "16"], True),
        (["=", "$vcpus", "16"], True),
        (["==", "$vcpus", 16], True),
        (["==", "$vcpus", "16.0"], True),
        ([">=", "$vcpus", "9"], True),
        (["<", "$vcpus", "9"], False),
        ([">", "$gpus", "10"], False),
        (["<", "$gpus", "10"], True),
        (["!=", "$zone", "az-2"], True),
        ([">", "$name", "node-0"], True),
        (["==", "$nothing", "x"], False),
        (["!=", "$nothing", "x"], False),
        (["not", ["==", "$nothing", "x"]], True),
        (["==", "$status", "null"], True),
        (["!=", "$status", "null"], False),
        (["!=", "$zone", "null"], True),
        (["==", "$status", "x"], False),
        (["!=", "$status", "x"], False),
        (["==", "$reservable", "True"], True),
        (["==", "$reservable", "1"], True),
        (["==", "$reservable", False], False),
        (["==", "$reservable", "perhaps"], False),
        (["==", "$ratio", "1.50"], True),
        ([">", "$vcpus", "99999999999999999999"], False),
        (["in", "$zone", ["az-2", "az-1"]], True),
        (["in", "$zone", "az-2", "az-3"], False),
        (["in", "$vcpus", [8, 16]], True),
        (["and", ["==", "$zone", "az-1"], [">=", "$vcpus", "32"]], False),
        (["or", ["==", "$zone", "az-2"], [">=", "$vcpus", "16"]], True),
        (["and", ["and", ["==", "$zone", "az-1"], ["==", "$vcpus", "99"]]], False),
        (["and", []], True),
        (["or", ["not", ["in", "$zone", ["az-1"]]], ["and", ["==", "$name", "node-1"], []]], True),
    ],
)
def test_a_requirement_holds_or_not(source, expected):
    assert holds(source) is expected
    assert holds(json.dumps(source)) is expected


def test_keys_are_what_is_asked_about():
    source = ["and", ["==", "$a", "1"], ["or", ["in", "$b", [1]], ["not", ["<", "$c", "1"]]], []]
    assert property_keys(parse_requirement(source, field="f")) == {"a", "b", "c"}


def test_requirements_are_joined_without_loss():
    one, other = parse_requirement(["==", "$a", "1"], field="f"), parse_requirement(["==", "$b", "2"], field="f")
    both = join_requirements(one, Anything(), join_requirements(other, one))
    assert matches(both, {"a": "1", "b": "2"})
    assert not matches(both, {"a": "1", "b": "3"})
    assert join_requirements() == Anything()
    assert join_requirements(one) == one


@pytest.mark.parametrize(
    "source",
    [
        "x",
        "{}",
        "5",
        "null",
        '["and"]',
        '["xor", []]',
        '["==", "a", "b"]',
        '["==", "$a", ""]',
        '["==", "$a", Infinity]',
        5,
    ]
    + [["in", "$a", []], ["not", [], []], ["and", "x"], "[" * 99999, ["in", "$a", list(range(1001))], "x" * 70000],
)
def test_what_is_malformed_is_told_with_the_field_and_an_example(source):
    with pytest.raises(InvalidInput, match="resource_properties is malformed: .*Example: "):
        parse_requirement(source, field="resource_properties")


def test_nesting_and_size_are_bounded():
    deep: list = ["==", "$a", "1"]
    for _ in range(15):
        deep = ["not", deep]
    parse_requirement(deep, field="f")
    with pytest.raises(InvalidInput, match="nested deeper"):
        parse_requirement(["not", deep], field="f")
    with pytest.raises(InvalidInput, match="parts"):
        parse_requirement(["or", *[["==", "$a", "1"]] * 1000], field="f")


leaves = st.one_of(
    st.tuples(
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.sampled_from(["$a", "$b"]), st.integers(-3, 3)
    ).map(list),
    st.tuples(st.just("in"), st.sampled_from(["$a", "$b"]), st.lists(st.integers(-3, 3), min_size=1)).map(list),
)
requirements = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: ["and", *terms]),
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: ["or", *terms]),
        inner.map(lambda term: ["not", term]),
    ),
    max_leaves=8,
)


def oracle(source: list, host: dict[str, int]) -> bool:
    op, *rest = source
    if op in ("and", "or"):
        return (all if op == "and" else any)([oracle(term, host) for term in rest])
    if op == "not":
        return not oracle(rest[0], host)
    told = host.get(rest[0][1:])
    if told is None:
        return False
    if op == "in":
        return told in rest[1]
    return {
        "==": told == rest[1],
        "!=": told != rest[1],
        "<": told < rest[1],
        "<=": told <= rest[1],
        ">": told > rest[1],
        ">=": told >= rest[1],
    }[op]


@given(requirements, st.dictionaries(st.sampled_from(["a", "b"]), st.integers(-3, 3)))
def test_any_requirement_means_what_it_says(source, host):
    assert holds(source, host) is oracle(source, host)
    assert holds(json.dumps(source), {key: str(value) for key, value in host.items()}) is oracle(source, host)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.text(), st.integers()), lambda s: st.lists(s), max_leaves=9
    )
)
def test_no_input_does_more_than_be_refused(source):
    for given_ in (source, json.dumps(source)):
        with contextlib.suppress(InvalidInput):
            matches(parse_requirement(given_, field="f"), HOST)
