# SPDX-License-Identifier: Apache-2.0
"""Tables in a terminal: where cells are broken, and what is shown if no table is narrow enough."""

from __future__ import annotations

import pytest
from blazarclient.table_fit import FRAME, blocks, fitted
from blazarclient.text_columns import columns_of, harmless, wrapped

ID = "19cdf236-17af-49d8-8633-0d1945e7cce5"
LEASE = ("id", "name", "start_date", "end_date")
ROW = (ID, "gan-training-1120", "2026-12-01 09:00+01:00", "2026-12-03 09:00:30+01:00")


def lines(cell: object) -> list[str]:
    return str(cell).split("\n")


def taken(columns: tuple[str, ...], rows: list[list[object]]) -> int:
    widths = [
        max([len(column), *(columns_of(line) for row in rows for line in lines(row[at]))])
        for at, column in enumerate(columns)
    ]
    return sum(widths) + FRAME * len(columns) + 1


def test_what_fits_is_left_as_it_is() -> None:
    assert fitted(("id", "count"), [(ID, 3)], 80) == [[ID, 3]]


@pytest.mark.parametrize("width", range(64, 120))
def test_no_table_is_wider_than_the_terminal(width: int) -> None:
    found = fitted(LEASE, [ROW], width)
    assert found is not None
    assert taken(LEASE, found) <= width


@pytest.mark.parametrize("width", range(64, 120))
def test_nothing_is_lost_and_nothing_added_where_a_cell_is_broken(width: int) -> None:
    (found,) = fitted(LEASE, [ROW], width) or []
    assert [str(cell).replace("\n", "").replace(" ", "") for cell in found] == [cell.replace(" ", "") for cell in ROW]


def test_a_date_is_broken_between_day_and_time_and_an_id_at_its_hyphens() -> None:
    (found,) = fitted(LEASE, [ROW], 80) or []
    assert lines(found[0]) == ["19cdf236-17af-49d8-", "8633-0d1945e7cce5"]
    assert lines(found[1]) == ["gan-training-1120"]
    assert lines(found[3]) == ["2026-12-03", "09:00:30+01:00"]


def test_a_date_of_version_one_is_broken_before_its_time() -> None:
    (found,) = fitted(("id", "start_date"), [(ID, "2026-10-25T18:00:00.000000")], 40) or []
    assert lines(found[1]) == ["2026-10-25T", "18:00:00.000000"]


def test_if_that_is_not_enough_names_are_broken_at_marks_and_times_before_their_offset() -> None:
    (found,) = fitted(LEASE, [ROW], 58) or []
    assert lines(found[1]) == ["gan-", "training-", "1120"]
    assert lines(found[3]) == ["2026-12-03", "09:00:30", "+01:00"]


def test_a_word_without_marks_is_cut_only_if_nothing_else_helps() -> None:
    (found,) = fitted(("id", "name"), [(ID, "x" * 200)], 80) or []
    assert "".join(lines(found[1])) == "x" * 200
    assert taken(("id", "name"), [found]) <= 80


def test_wide_characters_take_two_columns() -> None:
    (found,) = fitted(("id", "name"), [(ID, "予約 の 名前 です が 長い 長い 名前")], 60) or []
    assert taken(("id", "name"), [found]) <= 60


def test_room_goes_to_the_column_that_makes_rows_tall() -> None:
    """A date in one line is no use beside an id in four."""
    dates = ("2026-11-23 02:45:20+01:00", "2027-11-23 02:45:20+01:00")
    (found,) = fitted(("id", "kind", "name", "created_at", "expires_at"), [(ID, "user", "my phone", *dates)], 80) or []
    assert max(len(lines(cell)) for cell in found) == 2


def test_a_number_stays_one_so_that_it_is_aligned_as_one() -> None:
    (found,) = fitted(("name", "count"), [("word " * 30, 3)], 40) or []
    assert found[1] == 3


def test_where_no_table_is_narrow_enough_there_is_none() -> None:
    columns = tuple(f"column_{n}" for n in range(10))
    assert fitted(columns, [columns], 80) is None


def test_blocks_have_a_line_for_each_value_and_an_empty_one_between_rows() -> None:
    found = list(blocks(("id", "reason"), [("1", "waits for spare disks of the vendor"), ("2", "")], 30))
    assert found == [
        "id      1",
        "reason  waits for spare disks",
        "        of the vendor",
        "",
        "id      2",
        "reason",
    ]


def test_sentences_are_broken_at_blanks_and_lists_stay_indented() -> None:
    assert wrapped("What would fit:\n  without gpu: 2026-11-23 02:49 to 2026-11-25", 30) == (
        "What would fit:\n  without gpu: 2026-11-23\n    02:49 to 2026-11-25"
    )


def test_a_line_of_a_log_goes_on_further_in() -> None:
    assert wrapped("03:17 ACTIVE, until tomorrow", 20, "  ") == "03:17 ACTIVE, until\n  tomorrow"


def test_what_somebody_may_copy_is_never_broken() -> None:
    address = "https://reservation.example/feeds/" + "x" * 60
    assert address in wrapped(f"Open {address} now", 40).split("\n")


@pytest.mark.parametrize(("text", "columns"), [("lease", 5), ("予約", 4), ("é", 1), ("e\u0301", 1), ("a\u200db", 2)])
def test_columns_of_a_text(text: str, columns: int) -> None:
    assert columns_of(text) == columns


def test_a_name_is_no_command_to_the_terminal() -> None:
    assert harmless("a\x1b[31mred\tb\u202e\x9b2J\nnext") == "a?[31mred?b??2J\nnext"


def test_sentences_with_wide_characters_are_as_wide_as_the_terminal() -> None:
    assert wrapped("予約テスト is known to be fine", 20).split("\n") == ["予約テスト is known", "to be fine"]
