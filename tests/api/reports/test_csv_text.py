# SPDX-License-Identifier: Apache-2.0
"""Reports as CSV: what any reader of CSV reads is what the rows have, and no name is a formula."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest
from flask import Flask
from hypothesis import example, given
from hypothesis import strategies as st

from blazar.api.http.csv_text import (
    Column,
    _spread,
    answer_csv,
    flatten_row,
    render_csv,
    spell_cell,
    stream_csv,
    wants_csv,
)

COLUMNS = (Column("day"), Column("project_name"), Column("reserved", is_time=True), Column("leases"))
FORMULAS = "=+-@\t\r\n"
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
TRICKY = st.builds(str.__add__, st.sampled_from([*FORMULAS, '"', ",", "'", " ", "é"]), NAMES)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"project_name": st.none() | NAMES | TRICKY, "leases": st.integers(-5, 10**6)},
        optional={"day": st.dates().map(str), "reserved": st.integers(-(10**6), 10**12)},
    ),
    max_size=6,
)


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@given(ROWS)
@example([{"project_name": '=cmd|"/C calc"!A0', "leases": -1}])
def test_a_reader_of_csv_gets_the_rows_and_no_cell_of_text_is_a_formula(rows):
    head, *lines = read(render_csv(COLUMNS, rows))
    assert head == ["day", "project_name", "reserved_seconds", "reserved_hours", "leases"]
    assert len(lines) == len(rows)
    for row, (day, name, seconds, hours, leases) in zip(rows, lines, strict=True):
        given_name = row["project_name"] or ""
        assert name == (f"'{given_name}" if given_name[:1] in set(FORMULAS) else given_name)
        assert not name.startswith(tuple(FORMULAS))
        assert (day, int(leases)) == (row.get("day", ""), row["leases"])
        if "reserved" not in row:
            assert (seconds, hours) == ("", "")
            continue
        assert int(seconds) == row["reserved"]
        assert abs(Decimal(hours) * 3600 - row["reserved"]) <= 18
        assert len(hours.partition(".")[2]) == 2


@given(st.lists(st.tuples(*[st.none() | NAMES | TRICKY | st.decimals(allow_nan=False, allow_infinity=False)] * 3)))
@example([("1E-9", Decimal("0E-9"), Decimal("-1E+3"))])
@example([(None, Decimal("1"), Decimal("1.0"))] * 501)
def test_a_file_that_is_sent_while_it_is_read_has_the_same_bytes(rows):
    keys = ("a", "=b", "c,d")
    spelled = ({key: spell_cell(cell) for key, cell in zip(keys, row, strict=True)} for row in rows)
    whole = render_csv(list(map(Column, keys)), [dict(zip(keys, row, strict=True)) for row in rows])
    assert stream_csv("f", keys, spelled).get_data() == whole.encode()


def test_lines_end_as_rfc_4180_has_it_and_hours_are_rounded_half_up():
    rows = [{"day": "2026-11-01", "project_name": 'a, "b"', "reserved": 54, "leases": 1}]
    text = render_csv(COLUMNS, rows)
    assert text == ('day,project_name,reserved_seconds,reserved_hours,leases\r\n2026-11-01,"a, ""b""",54,0.02,1\r\n')


def test_a_report_without_rows_has_a_head():
    assert read(render_csv(COLUMNS, [])) == [["day", "project_name", "reserved_seconds", "reserved_hours", "leases"]]


def test_what_a_property_is_called_is_no_formula_either():
    assert read(render_csv((Column("@gpu"),), [{"@gpu": True}])) == [["'@gpu"], ["true"]]


@pytest.mark.parametrize(
    ("query", "accept", "expected"),
    [
        ("csv", None, True),
        ("csv", "application/json", True),
        ("json", "text/csv", False),
        (None, None, False),
        (None, "*/*", False),
        (None, "text/csv", True),
        (None, "text/csv;q=0.5, application/json", False),
        (None, "application/json;q=0.5, text/csv", True),
        (None, "text/html", False),
        (None, "text/csv, " * 200, False),
    ],
)
def test_csv_is_asked_for_by_parameter_or_by_header(query, accept, expected):
    headers = {} if accept is None else {"Accept": accept}
    with Flask("t").test_request_context("/", headers=headers):
        assert wants_csv(query) is expected


def test_a_browser_saves_it_under_its_name_and_as_what_it_is():
    answer = answer_csv("blazar-usage-2026-11-01", COLUMNS, [{"project_name": "Zürich", "leases": 1}])
    assert answer.headers["Content-Disposition"] == 'attachment; filename="blazar-usage-2026-11-01.csv"'
    assert answer.content_type == "text/csv; charset=utf-8; header=present"
    assert "Zürich" in answer.get_data().decode("utf-8")


def test_objects_in_rows_become_columns_each_once():
    rows = [flatten_row({"a": {"VCPU": {"free": 3600}}, "n": 1}), flatten_row({"a": {"DISK_GB": {"free": 1}}})]
    columns = [*_spread(Column("a", is_time=True), rows), *_spread(Column("n"), rows)]
    assert read(render_csv(columns, rows)) == [
        ["a.DISK_GB.free_seconds", "a.DISK_GB.free_hours", "a.VCPU.free_seconds", "a.VCPU.free_hours", "n"],
        ["", "", "3600", "1.00", "1"],
        ["1", "0.00", "", "", ""],
    ]
