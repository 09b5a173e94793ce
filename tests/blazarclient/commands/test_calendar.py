# SPDX-License-Identifier: Apache-2.0
"""``calendar`` and ``capacity``: what they ask, and what they write where."""

from __future__ import annotations

import argparse
import io
import json
from typing import Any

import pytest
from blazarclient.commands import calendar, capacity
from blazarclient.library.supply import Series
from blazarclient.requirement_text import read_requirements

from tests.blazarclient.commands.conftest import URL, Run, says

BLOCK = {
    "kind": "mine",
    "start": "2026-11-24T11:00:00Z",
    "end": "2026-11-26T23:00:00Z",
    "used": None,
    "lease_id": "5f0c2b1e-8f0e-4c55-9d57-2d0f6a0e7a11",
    "name": "training",
    "status": "PENDING",
}


def a_row(number: int, **values: Any) -> dict[str, Any]:
    return {"id": f"h-{number}", "type": "host", "name": None, "reservable": True, "blocks": [BLOCK], **values}


@pytest.fixture
def rows(requests_mock: Any) -> Any:
    body = {"resources": [a_row(1), a_row(2, blocks=[])], "links": []}
    requests_mock.get(f"{URL}/calendar", **says("calendar", body))
    return requests_mock


def test_a_file_gets_a_chart_without_colors(run: Run, rows: Any) -> None:
    code, out, err = run("calendar", "--from", "2026-11-24 00:00", "--to", "+4d", "--width", "40")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "2026-11 Tue 24  Wed 25  Thu 26  Fri 27",
        "        00      00      00      00",
        "h-1     ····█training███████████········",
        "h-2     ································",
        "",
        "█ yours  · free",
        "A column is 3 hours.",
        "Times of Europe/Paris.",
    ]


def test_a_chart_of_two_regions_says_which_host_of_one_name_is_where(run: Run, requests_mock: Any) -> None:
    named = [a_row(n, name="node-1", blocks=[], properties={"region": region}) for n, region in enumerate(("R1", "R2"))]
    requests_mock.get(f"{URL}/calendar", **says("calendar", {"resources": named, "links": []}))
    _, out, _ = run("calendar", "--from", "2026-11-24 00:00", "--to", "+4d", "--width", "40")
    assert [line.split()[:2] for line in out.splitlines() if "node" in line] == [["node-1", "R1"], ["node-1", "R2"]]
    requests_mock.get(f"{URL}/calendar", **says("calendar", {"resources": named[:1], "links": []}))
    _, out, _ = run("calendar", "--from", "2026-11-24 00:00", "--to", "+4d", "--width", "40")
    assert "R1" not in out


def test_a_line_for_each_period_has_its_seconds(run: Run, requests_mock: Any) -> None:
    blocks = [{**BLOCK, "end": "2026-11-26T23:00:07Z"}]
    body = {"resources": [a_row(1, blocks=blocks)], "links": []}
    requests_mock.get(f"{URL}/calendar", **says("calendar", body))
    _, out, _ = run("calendar", "-f", "value", "-c", "start", "-c", "end")
    assert out == "2026-11-24 12:00+01:00 2026-11-27 00:00:07+01:00\n"


def test_a_range_may_lie_in_the_hour_that_comes_twice(run: Run, rows: Any) -> None:
    code, out, err = run("calendar", "--from", "2026-10-25 02:30", "--to", "+1h")
    assert (code, err) == (0, "")
    [request] = rows.request_history
    assert (request.qs["from"], request.qs["to"]) == (["2026-10-25t00:30:00z"], ["2026-10-25t01:30:00z"])


@pytest.mark.parametrize(
    ("environment", "encoding"),
    [
        ({}, "utf-8"),
        ({"LANG": "C.UTF-8"}, "utf-8"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "ascii"),
        ({"LANG": "POSIX"}, "ascii"),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, "utf-8"),
    ],
)
def test_a_chart_is_in_ascii_where_the_locale_has_no_more(environment: dict[str, str], encoding: str) -> None:
    """Python writes UTF-8 in the locale C as well."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert calendar.encoding_of(out, environment) == encoding


def test_the_range_is_in_the_zone_of_the_user(run: Run, rows: Any) -> None:
    run("calendar", "--from", "2026-11-24", "--to", "+4d", "--mine", "--resource", "h-1", "--resource", "h-2")
    [request] = rows.request_history
    assert request.qs["from"] == ["2026-11-23t23:00:00z"]
    assert request.qs["to"] == ["2026-11-27t23:00:00z"]
    assert request.qs["occupied_by"] == ["me"]
    assert request.qs["resource"] == ["in:h-1,h-2"]


def test_a_range_may_be_over(run: Run, rows: Any) -> None:
    assert run("calendar", "--from", "-2d", "--to", "-1h")[0] == 0
    [request] = rows.request_history
    assert (request.qs["from"], request.qs["to"]) == (["2026-11-21t10:15:42z"], ["2026-11-23t09:15:42z"])


def test_programs_get_the_resources_with_their_blocks(run: Run, rows: Any) -> None:
    _, out, _ = run("calendar", "-f", "json")
    first, second = json.loads(out)
    assert (first["id"], first["blocks"][0]["start"]) == ("h-1", "2026-11-24T11:00:00Z")
    assert second["blocks"] == []


def test_csv_has_a_line_for_each_block(run: Run, rows: Any) -> None:
    _, out, _ = run("calendar", "-f", "csv", "-c", "resource", "-c", "kind", "-c", "end")
    assert out.splitlines()[1:] == ['"h-1","mine","2026-11-26T23:00:00Z"']


def test_more_resources_than_asked_for_are_told_of(run: Run, rows: Any) -> None:
    code, out, err = run("calendar", "--limit", "1")
    assert code == 0
    assert "h-2" not in out
    assert err == "There are more than 1; --limit shows more, --requirement fewer.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--to", "2020-01-01"), "The range ends before it begins"),
        (("--from", "once"), "--from: 'once' is no time"),
        (("--to", "someday"), "--to: 'someday' is no time"),
        (("--timezone", "Mars/Base"), "There is no time zone 'Mars/Base'"),
        (("--limit", "0"), "--limit is at least 1"),
        (("--requirement", "gpu"), "'gpu' is no requirement"),
        (("--requirement", "[gpu"), "is no JSON"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_sentence(run: Run, rows: Any, words: Any, sentence: str) -> None:
    code, out, err = run("calendar", *words)
    assert code in (1, 2)
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert not rows.request_history


def test_a_service_without_a_calendar_is_told_of_in_a_sentence(run: Run, requests_mock: Any) -> None:
    missing = {"error_code": 404, "error_message": "404 Not Found", "error_name": 404}
    requests_mock.get(f"{URL}/calendar", json=missing, status_code=404, headers={"Content-Type": "application/json"})
    code, out, err = run("calendar")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "does not speak microversion" in err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "no_color", "environment", "colored"),
    [
        (Terminal(), False, {}, True),
        (Terminal(), True, {}, False),
        (Terminal(), False, {"NO_COLOR": "1"}, False),
        (Terminal(), False, {"NO_COLOR": ""}, True),
        (Terminal(), False, {"TERM": "dumb"}, False),
        (io.StringIO(), False, {}, False),
    ],
)
def test_only_a_terminal_gets_colors(out: Any, no_color: bool, environment: Any, colored: bool) -> None:
    assert calendar.colors(out, argparse.Namespace(no_color=no_color), environment) is colored


@pytest.mark.parametrize(("encoding", "plain"), [("utf-8", False), ("ascii", True), ("nix", True), (None, True)])
def test_characters_are_those_of_the_encoding(encoding: str | None, plain: bool) -> None:
    assert calendar.glyphs_for(encoding).free.isascii() is plain


@pytest.mark.parametrize(
    ("texts", "requirement"),
    [
        ([], None),
        (["gpu=A100"], ["==", "$gpu", "A100"]),
        (["gpu == A100"], ["==", "$gpu", "A100"]),
        (["vcpus>=32"], [">=", "$vcpus", "32"]),
        (["rack!=r 1=2"], ["!=", "$rack", "r 1=2"]),
        (['["in", "$gpu", ["A100"]]'], ["in", "$gpu", ["A100"]]),
        (["gpu=A100", "vcpus<64"], ["and", ["==", "$gpu", "A100"], ["<", "$vcpus", "64"]]),
    ],
)
def test_requirements_are_written_short_or_as_json(texts: list[str], requirement: Any) -> None:
    read = read_requirements(texts)
    assert (None if read is None else json.loads(read)) == requirement


def test_capacity_is_counted_by_property(run: Run, requests_mock: Any) -> None:
    series = [{"group": {"gpu": "A100"}, "total": [8, 8], "free": [8, 3], "promised": [0, 5], "out_of_use": [0, 0]}]
    body = {"as_of": "2026-11-23T10:15:42Z", "from": "2026-11-23T10:15:42Z", "to": "2026-12-07T10:15:42Z"}
    requests_mock.get(f"{URL}/capacity", **says("capacity", {**body, "step_seconds": 43200, "series": series}))
    _, out, _ = run("capacity", "--group-by", "gpu", "-f", "value")
    assert out == "A100 8 8 3 8 █▃\n"
    assert requests_mock.request_history[0].qs["group_by"] == ["gpu"]
    _, out, _ = run("capacity", "--group-by", "gpu", "-f", "json")
    assert json.loads(out)[0]["promised"] == [0, 5]


@pytest.mark.parametrize(("words", "header"), [((), "free now"), (("--from", "2026-11-24"), "free then")])
def test_what_is_free_at_first_is_not_the_least_of_the_first_step(
    run: Run, requests_mock: Any, words: tuple[str, ...], header: str
) -> None:
    def answer(**values: Any) -> dict[str, Any]:
        series = [{"group": {"gpu": None}, "total": [8, 8], "promised": [0, 5], "out_of_use": [0, 0], **values}]
        body = {"as_of": "2026-11-23T10:15:42Z", "from": "2026-11-23T10:15:42Z", "to": "2026-12-07T10:15:42Z"}
        return says("capacity", {**body, "step_seconds": 43200, "series": series})

    requests_mock.get(f"{URL}/capacity", **answer(free=[2, 3]))
    requests_mock.get(f"{URL}/capacity?step=1m", **answer(free=[6]))
    _, out, _ = run("capacity", "--group-by", "gpu", *words)
    assert [cell.strip() for cell in out.splitlines()[1].split("|")[3:6]] == [header, "least", "most"]
    assert [cell.strip() for cell in out.splitlines()[3].split("|")[3:6]] == ["6", "2", "3"]
    first = requests_mock.request_history[-1].qs
    minutes = {"t10:15:42z": "t10:16:42z", "t23:00:00z": "t23:01:00z"}
    assert first["to"][0][-10:] == minutes[first["from"][0][-10:]]


@pytest.mark.parametrize(("free", "mark"), [(0, "_"), (1, "▁"), (50, "▄"), (99, "▇"), (100, "█")])
def test_a_mark_is_full_only_if_all_is_free_and_low_only_if_nothing_is(free: int, mark: str) -> None:
    series = Series(group={}, total=(100,), free=(free,), promised=(100 - free,), out_of_use=(0,))
    assert capacity.marks(series, "_▁▂▃▄▅▆▇█") == mark
