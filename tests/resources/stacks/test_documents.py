# SPDX-License-Identifier: Apache-2.0
"""Templates come from anybody: whatever they send is read within limits, as values that JSON has, or refused."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.errors import InvalidInput
from blazar.resources.stacks.documents import DEEPEST, LARGEST, MOST_VALUES, iterate_values, parse_document, pointer_of
from tests.cases import cases


def read(text):
    return parse_document(text, name="template", pointer="/template").value


def laughs(width, rows):
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, rows)]
    return "\n".join(lines)


def inside(value, times):
    for _ in range(times):
        value = {"a": value}
    return value


def test_yaml_is_read_as_heat_reads_it_with_dates_as_texts():
    text = "version: 2021-04-16\nplain: =\nfew: &f [1, 2.5, yes, ~]\nagain: *f\nmerged: {<<: {a: b}, c: d}"
    assert read(text) == {
        "version": "2021-04-16",
        "plain": "=",
        "few": [1, 2.5, True, None],
        "again": [1, 2.5, True, None],
        "merged": {"a": "b", "c": "d"},
    }


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        ("-190:20:30", "-190:20:30"),
        ("2021-04-16", "2021-04-16"),
        ("!!str 1:30", "1:30"),
        ("!!str 7", "7"),
        ("!!int '7'", 7),
        ("!!float 7", 7.0),
        ("! 7", "7"),
        ("<<", "<<"),
        ("0x_", "0x_"),
        ("0b", "0b"),
    ],
)
def test_what_is_read_by_rules_of_our_own(scalar, value):
    found = read(f"a: {scalar}")["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "scalar",
    [
        "0",
        "-0",
        "+7",
        "007",
        "08",
        "-017",
        "0o17",
        "0x1F",
        "-0x1f",
        "0b11",
        "-0b1_1",
        "1_000",
        "_1",
        "1__0_",
        "0_",
        "1e5",
    ]
    + ["1.5", "1.", ".5", "-.5", "+1.5", "1.5e+3", "1.5e3", "1.5E-3", "1_0.5", "1._5", "._5", ".", "+", "0.0.0"]
    + [
        "y",
        "n",
        "yes",
        "No",
        "TRUE",
        "tRUE",
        "on",
        "OFF",
        "~",
        "null",
        "Null",
        "nULL",
        "none",
        "",
        "'1'",
        '"yes"',
        "a b",
    ]
    + [
        "{<<: {a: 1}, a: 2}",
        "{a: 2, <<: {a: 1}}",
        "{<<: [{a: 1, b: 1}, {a: 2, c: 2}], c: 3}",
        "{<<: {a: 1}, <<: {a: 2}}",
    ]
    + ["{'<<': 1}", "{a: 1, a: 2}", "{a: }", "|\n  x\n  y", ">\n  x\n  y", "&x [1, *x2]", "{? a : b}"],
)
def test_all_else_is_read_as_the_library_of_heat_reads_it(scalar):
    text = f"x2: &x2 3\na: {scalar}"
    wanted = yaml.safe_load(text)
    assert json.dumps(read(text)) == json.dumps(wanted)


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("directive", ["%YAML 1.2", "%TAG !x! y", "%", "%x"])
def test_no_directive_reaches_the_library(directive, end):
    for text in (
        f"{directive}{end}---{end}a: b",
        f"\ufeff{directive}{end}---{end}a: b",
        f"a: b{end}...{end}{directive}{end}---",
    ):
        with pytest.raises(InvalidInput, match="directive"):
            read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (laughs(9, 9), "behind aliases"),
        (f"s: &s {'x' * 1000}\nl: [{', '.join(['*s'] * 2000)}]", "behind aliases"),
        ("a: " + "[" * 100_000, "deep"),
        ("a: " + "{a: " * 500, "deep"),
        ("".join(f"a{n}: &a{n} {{b: *a{n - 1}}}\n" if n else "a0: &a0 {b: c}\n" for n in range(100)), "deep"),
        ("a: &x [*x]", "part of itself"),
        ("a: *nowhere", "part of itself or of nothing"),
        ("a: " + "b" * LARGEST, "KiB"),
        ("".join(f"k{n}: v\n" for n in range(MOST_VALUES)), "values"),
        ("!!python/object/apply:os.system ['true']", "not YAML"),
        ("a: !!binary aGVsbG8=", "not YAML"),
        ("a: !Ref b", "not YAML"),
        ("a: " + "9" * 10_000, "not YAML"),
        ("a: [", "line 2"),
        ("a: b\n---\nc: d", "another document"),
        ("? [a]\n: b", "not YAML"),
        ("1: a", "put it in quotes"),
        ("on: a", "put it in quotes"),
        ("a: .inf", "finite"),
        ("a: -.INF", "finite"),
        ("a: .NaN", "finite"),
        ("a: 1" + "0" * 320, "put it in quotes"),
        ("a: 1" + "0" * 310, "300 digits"),
        ("a: !!float 1" + "0" * 310, "too large"),
        ("a: !!int 1:30", "tag"),
        ("a: !!int x", "tag"),
        ("a: !!map [b]", "tag"),
        ("a: {<<: 7}", "merge"),
        ('a: "\\0"', "NUL"),
        ("a: \x07", "not YAML"),
        ("a: \ud800", "surrogate"),
        ("- a", "not an object"),
        ("", "not an object"),
        ("just words", "not an object"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_hostile_text_is_refused_quickly_in_a_sentence(text, words):
    began = time.perf_counter()
    with pytest.raises(InvalidInput, match=words) as refused:
        read(text)
    assert time.perf_counter() - began < 2
    assert refused.value.pointer == "/template"
    assert len(refused.value.message) < 300
    assert refused.value.message.isprintable()


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": [{"b": math.inf}]}, "/template/a/0/b"),
        ({"a/b": {"c~d": "\0"}}, "/template/a~1b/c~0d"),
        ({"a": {"b\0": 1}}, "/template/a"),
        ({"a": "\ud800"}, "/template/a"),
        (inside(1, 5000), "/template"),
        ({"a": [1] * MOST_VALUES}, "/template"),
        ([], "/template"),
        (7, "/template"),
    ],
    ids=["number", "escaped", "key", "surrogate", "deep", "long", "list", "number alone"],
)
def test_hostile_objects_are_refused_where_the_fault_is(value, pointer):
    with pytest.raises(InvalidInput) as refused:
        read(value)
    assert refused.value.pointer == pointer


def test_what_is_within_the_limits_is_read():
    assert read(inside("x", DEEPEST)) == inside("x", DEEPEST)
    assert len(read("\n".join(f"k{n}: v" for n in range(MOST_VALUES // 2 - 1)))) == MOST_VALUES // 2 - 1
    assert read("a: " + "b" * (LARGEST - 3))["a"] == "b" * (LARGEST - 3)


SOUND = st.characters(exclude_categories=("Cs", "Cc"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(SOUND),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(SOUND), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(SOUND), JSON, max_size=5))
@settings(max_examples=cases(60))
def test_any_json_object_is_read_as_it_is_given_as_object_or_as_text(value):
    assert read(value) == value
    assert read(yaml.safe_dump(value)) == value


@given(st.text())
@settings(max_examples=cases(100))
def test_any_text_is_an_object_of_json_or_refused(text):
    with suppress(InvalidInput):
        found = read(text)
        assert json.loads(json.dumps(found)) == found


@given(
    st.lists(st.sampled_from(["a: ", "&a ", "*a", "[", "]", "{", "}", "- ", "\n", "  ", "<<: ", "x", ", ", "!!set "]))
)
@settings(max_examples=cases(100))
def test_any_pieces_of_yaml_are_an_object_of_json_or_refused(pieces):
    with suppress(InvalidInput):
        json.dumps(read("".join(pieces)))


@given(JSON)
@settings(max_examples=cases(60))
def test_paths_lead_to_the_values_that_they_come_with(value):
    for path, each in iterate_values(value):
        found = value
        for key in path:
            found = found[key]
        assert found is each
        assert pointer_of(path).count("/") == len(path)
