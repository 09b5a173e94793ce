# SPDX-License-Identifier: Apache-2.0
"""The manual of the ``blazar`` command is that of the commands as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from blazarclient import shell

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "client" / "man" / "blazar.1"


@pytest.fixture(scope="module")
def written() -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client"), "OS_CLOUD": "mine", "COLUMNS": "40"}
    command = [sys.executable, ROOT / "tools" / "client_manual.py"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_manual_is_up_to_date(written):
    assert PAGE.read_text(encoding="utf-8") == written, "run: make client-manual"


def test_every_command_is_in_it(written):
    headings = [
        line.removeprefix(".SS ").replace("\\-", "-") for line in written.splitlines() if line.startswith(".SS ")
    ]
    missing = [name for name in shell.COMMANDS if not any(f"{heading} ".startswith(f"{name} ") for heading in headings)]
    assert missing == []


def test_no_text_is_left_unfilled(written):
    assert "%(" not in written
