# SPDX-License-Identifier: Apache-2.0
"""The calendar in the terminal: which lines a calendar, a range and a width make."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from blazarclient.calendar_text import PLAIN, chart
from blazarclient.library import Block, CalendarRow
from blazarclient.text_columns import columns_of
from blazarclient.time_axis import Axis

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def block(kind: str, start: str, end: str | None, **values: object) -> Block:
    instants = (None if text is None else at(text).astimezone(UTC) for text in (start, end))
    return Block(kind=kind, **dict(zip(("start", "end"), instants, strict=True)), **values)


TRAINING = CalendarRow(
    id="h-1",
    type="host",
    properties={"gpu": "A100"},
    blocks=(
        block("mine", "2026-11-23T00:00", "2026-11-26T00:00", name="gan-training"),
        block("cleaning", "2026-11-26T00:00", "2026-11-26T06:00"),
        block("other", "2026-11-30T00:00", "2026-12-02T14:00"),
    ),
)
BROKEN = CalendarRow(
    id="h-22", type="host", properties={"gpu": "H100"}, blocks=(block("out_of_use", "2026-11-23T00:00", None),)
)
SHARED = CalendarRow(
    id="h-3",
    type="host",
    capacity={"VCPU": 64},
    blocks=(
        block("other", "2026-11-24T00:00", "2026-11-25T00:00", used={"VCPU": 16}),
        block("mine", "2026-11-24T12:00", "2026-11-25T00:00", used={"VCPU": 16}),
    ),
)
ROWS = (TRAINING, BROKEN, SHARED)


def drawn(rows=ROWS, start="2026-11-23T00:00", end="2026-12-07T00:00", now=None, width=80, **options) -> list[str]:
    first = at(start)
    instant = first if now is None else at(now)
    return list(chart(rows, start=first, end=at(end), now=instant, width=width, **options))


def test_two_weeks_in_80_columns():
    assert drawn(properties=["gpu"], now="2026-11-25T10:00") == [
        "2026-11    23  24  25  26  27  28  29  30  01  02  03  04  05  06",
        "                    v now",
        "h-1   A100 █gan-train…█░···············▒▒▒▒▒▒▒▒▒▒+·················",
        "h-22  H100 ××××××××××××××××××××××××××××××××××××××××××××××××××××××××",
        "h-3        ····▂▂▄▄················································",
        "",
        "█ yours  ▒ of others  × out of use  ░ cleaning  + partly free",
        "▄ a part of it promised  · free",
        "A column is 6 hours.  Times of Europe/Berlin.",
    ]


def test_two_weeks_in_200_columns_have_days_and_hours():
    days, hours, training, *_ = drawn(rows=(TRAINING,), width=200)
    assert days.startswith("2026-11 Mon 11-23   Tue 11-24   Wed 11-25 ")
    assert hours.startswith("        00 06 12 18 00 06 12 18 ")
    assert training.startswith("h-1     █gan-training" + 23 * "█" + "░░░·")
    assert drawn(rows=(TRAINING,), width=200)[-1] == "A column is 2 hours.  Times of Europe/Berlin."


@pytest.mark.parametrize("width", [40, 60, 80, 81, 120, 200, 300])
def test_no_line_is_wider_than_the_terminal(width):
    for days in (1, 2, 7, 14, 31, 366):
        end = (datetime(2026, 11, 23) + timedelta(days=days)).isoformat()
        assert max(map(len, drawn(end=end, width=width, properties=["gpu"]))) <= width


def test_a_very_narrow_terminal_still_has_ten_cells():
    line = drawn(rows=(TRAINING,), width=12)[1]
    assert line == "h-1     █+·++··"


def test_a_day_of_23_hours_has_23_cells():
    days, hours, row, *_ = drawn(
        rows=(CalendarRow(id="h", type="host"),), start="2027-03-28", end="2027-03-29", width=40
    )
    assert hours.split() == ["03", "06", "09", "12", "15", "18", "21"]
    assert row.count("·") == 23


def test_a_day_of_25_hours_has_25_cells_and_names_the_hour_that_comes_twice():
    rows = (CalendarRow(id="h", type="host"),)
    assert drawn(rows, start="2026-10-25", end="2026-10-26", width=40)[2].count("·") == 25
    header = drawn(rows, start="2026-10-25T01:30", end="2026-10-25T04:00", width=60)[1]
    assert header.split() == ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00", "03:30"]


def test_a_column_in_which_something_is_free_is_not_drawn_as_taken():
    row = CalendarRow(id="h", type="host", blocks=(block("other", "2026-11-23T07:00", "2026-11-23T18:00"),))
    assert drawn(rows=(row,), end="2026-11-24T00:00", width=12)[2] == "h       ··+▒▒▒··"


def test_a_file_of_ascii_has_other_characters_and_no_color():
    text = "\n".join(drawn(glyphs=PLAIN))
    assert text.isascii()
    assert "#gan-train~#~" in text


def test_the_legend_has_only_what_is_drawn():
    row = CalendarRow(
        id="h", type="host", blocks=(block("mine", "2026-11-23T00:00", "2026-12-07T00:00", name="run+1234·"),)
    )
    assert drawn(rows=(row,), glyphs=PLAIN)[-2] == "# yours"
    assert drawn(rows=(row,))[-2] == "█ yours"


def test_colors_change_nothing_but_colors():
    colored = drawn(color=True)
    assert any("\x1b[32m" in line for line in colored)
    # The ground of a name is said as well: white on green is not read on a light terminal.
    assert any("\x1b[30;42mgan-" in line for line in colored)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in colored] == drawn()


def test_a_name_cannot_command_the_terminal():
    row = CalendarRow(
        id="h", type="host", blocks=(block("mine", "2026-11-23", "2026-12-07", name="\x1b[31mred\n\u202e名"),)
    )
    assert "█?[31mred??名█" in drawn(rows=(row,))[1]


@pytest.mark.parametrize("name", ["予約テスト", "e\u0301te\u0301", "名" * 40, "a" + "名" * 40])
@pytest.mark.parametrize("width", [40, 41, 80])
def test_characters_of_other_scripts_keep_the_columns_of_time(name: str, width: int) -> None:
    lease = block("mine", "2026-11-23T00:00", "2026-11-26T00:00", name=name)
    rows = tuple(CalendarRow(id=each, name=each, type="host", blocks=(lease,)) for each in ("h-1", "計算機"))
    lines = drawn(rows=rows, width=width)[1:3]
    assert all(name[0] in line for line in lines)
    assert len({columns_of(line) for line in lines}) == 1
    assert len({line.rstrip("·").endswith("█") for line in lines}) == 1


def test_in_ascii_they_are_question_marks() -> None:
    row = CalendarRow(id="h", type="host", blocks=(block("mine", "2026-11-23", "2026-12-07", name="予約"),))
    assert "#??#" in drawn(rows=(row,), glyphs=PLAIN)[1]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"])
@pytest.mark.parametrize("days", [1, 3, 14, 200])
@pytest.mark.parametrize("first", ["2026-10-24T13:07", "2027-03-13T00:00", "2027-04-03T22:59"])
@pytest.mark.parametrize("most", [10, 71, 190])
def test_cells_follow_each_other_and_fill_the_range(zone, days, first, most):
    start = at(first, ZoneInfo(zone))
    end = (start.astimezone(UTC) + timedelta(days=days)).astimezone(start.tzinfo)
    cells = Axis.of(start, end, most).cells
    assert 0 < len(cells) <= most
    assert (cells[0].start, cells[-1].end) == (start, end)
    assert all(before.end == after.start for before, after in pairwise(cells))
    assert all(cell.start < cell.end for cell in cells)
