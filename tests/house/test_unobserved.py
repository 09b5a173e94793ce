# SPDX-License-Identifier: Apache-2.0
"""What looks for options whose test observes nothing finds them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OBSERVED = "tests/cmd/test_config.py::test_extra_specs_are_allowed_as_configured"
LISTED = {
    "[nova] allowed_extra_specs": OBSERVED,
    "[nova] image_prefix": OBSERVED,
    "[nova] blazar_owner": "tests/cmd/test_config.py::test_that_is_not_there",
}


@pytest.mark.slow
def test_an_option_is_listed_whose_test_passes_without_it_or_does_not_pass_with_it():
    program = f"from tests.house import unobserved; unobserved.listed = lambda: {LISTED!r}; print(unobserved.main([]))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == [
        f"[nova] image_prefix = {OBSERVED} passes without the option",
        "[nova] blazar_owner = tests/cmd/test_config.py::test_that_is_not_there fails with the option, too",
        "2",
    ], done.stderr
