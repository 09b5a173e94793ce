# SPDX-License-Identifier: Apache-2.0
"""What programs say when they are asked for their version."""

from __future__ import annotations

import subprocess
import sys

import pytest

from blazar import __version__

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["manager", "api", "status", "db_manage"])
def test_a_program_says_which_blazar_it_stands_for(name):
    command = [sys.executable, "-m", f"blazar.cmd.{name}", "--version"]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    program = "blazar-" + name.replace("_", "-")
    assert asked.stdout == f"{program} {__version__} (in the place of OpenStack's Blazar 18.0.0)\n"
