# SPDX-License-Identifier: Apache-2.0
"""Every option does what its help says: ``options.txt`` names the test that observes its effect."""

from __future__ import annotations

import re
from pathlib import Path

from blazar.cmd import config

ROOT = Path(__file__).parents[2]


def listed() -> dict[str, str]:
    """Return the test of each option."""
    lines = Path(__file__).with_name("options.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" = ") for line in lines if line and not line.startswith("#")]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def test_every_option_is_listed_with_a_test_of_its_effect():
    ours = {
        f"[{group}] {option.name}"
        for group, options in config.GROUPS.items()
        for option in options
        if not option.deprecated_for_removal
    }
    assert listed().keys() == ours, "name in tests/house/options.txt the test that observes what the option does"


def test_the_tests_that_are_listed_are_there():
    for option, test in listed().items():
        file, _, name = test.partition("::")
        path = ROOT / file
        there = name and path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.M)
        assert there, f"{option}: {test}"
