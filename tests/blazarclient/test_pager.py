# SPDX-License-Identifier: Apache-2.0
"""Long charts in a terminal: when they go through a pager, and which."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest
from blazarclient import pager

LONG = [f"line {n}" for n in range(100)]


class Terminal(io.StringIO):
    """A terminal of 80 columns and 24 lines."""

    encoding = "utf-8"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(pager, "width_of", lambda stream: 80 if isinstance(stream, Terminal) else None)
    monkeypatch.setattr(pager.shutil, "get_terminal_size", lambda: os.terminal_size((80, 24)))
    return Terminal()


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """The file to which the pager ``read`` of this folder writes what it gets, and its options."""
    program = tmp_path / "read"
    program.write_text(f'#!/bin/sh\necho "$LESS $*" > {tmp_path}/seen\ncat >> {tmp_path}/seen\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path / "seen"


def environment(seen: Path, **others: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PAGER": f"{seen.parent}/read -S", **others}


def test_what_is_longer_than_the_screen_goes_through_the_pager_and_keeps_its_colors(
    terminal: Terminal, seen: Path
) -> None:
    pager.page(LONG, terminal, environment(seen))
    assert seen.read_text(encoding="utf-8").split("\n") == ["FRX -S", *LONG, ""]
    assert terminal.getvalue() == ""


def test_options_of_less_are_those_of_the_user_if_there_are_some(terminal: Terminal, seen: Path) -> None:
    pager.page(LONG, terminal, environment(seen, LESS="M"))
    assert seen.read_text(encoding="utf-8").startswith("M -S\n")


def test_what_fits_is_printed(terminal: Terminal, seen: Path) -> None:
    pager.page(LONG[:23], terminal, environment(seen))
    assert terminal.getvalue().split("\n") == [*LONG[:23], ""]
    assert not seen.exists()


def test_a_file_gets_all_lines(terminal: Terminal, seen: Path) -> None:
    file = io.StringIO()
    pager.page(LONG, file, environment(seen))
    assert file.getvalue().split("\n") == [*LONG, ""]


def test_there_is_none_if_it_is_not_wanted(terminal: Terminal, seen: Path) -> None:
    pager.page(LONG, terminal, environment(seen), wanted=False)
    assert not seen.exists()
    assert terminal.getvalue().count("\n") == 100


@pytest.mark.parametrize("program", ["", "cat", "no-such-program", "an 'unclosed quote"])
def test_without_a_pager_that_runs_the_lines_are_printed(terminal: Terminal, program: str) -> None:
    pager.page(LONG, terminal, {"PATH": os.environ["PATH"], "PAGER": program})
    assert terminal.getvalue().count("\n") == 100


def test_leaving_the_pager_early_is_no_error(terminal: Terminal) -> None:
    pager.page(LONG * 10_000, terminal, {"PATH": os.environ["PATH"], "PAGER": "true"})
    assert terminal.getvalue() == ""
