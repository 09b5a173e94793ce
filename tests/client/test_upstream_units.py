# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the client in PyPI, unmodified, against ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import upstream

pytestmark = pytest.mark.slow

TOOLS = Path(__file__).with_name("unit-tests.txt")


def test_the_unit_tests_of_the_existing_client_pass(tmp_path):
    python = upstream.programs(TOOLS, upstream.ROOT / ".venv-client-units") / "python"
    here = tmp_path / "blazarclient"
    shutil.copytree(upstream.ROOT / "client" / "blazarclient", here)
    shutil.copytree(upstream.sources(tmp_path) / "blazarclient" / "tests", here / "tests")
    done = subprocess.run(
        [python, "-m", "testtools.run", "discover", "-t", ".", "-s", "blazarclient/tests"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Those that skip themselves are counted as well.
    assert int(re.search(r"Ran (\d+) tests", done.stdout + done.stderr)[1]) == 54
