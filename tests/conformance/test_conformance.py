# SPDX-License-Identifier: Apache-2.0
"""Every resource type does what all types must: ours, and that of the example package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from blazarconformance import Check, Harness, checks
from tests.conformance.regional import REGIONAL
from tests.conformance.sites import OURS
from tests.conformance.stacks import STACKS

sys.path.append(str(Path(__file__).parents[2] / "examples" / "instruments"))

from harness import HARNESS as INSTRUMENTS

EVERY = (*OURS, STACKS, INSTRUMENTS)


def cases(*harnesses: Harness, slow: bool) -> list[object]:
    return [pytest.param(h, check, id=f"{h}-{check}") for h in harnesses for check in checks(h, slow=slow)]


@pytest.mark.share(6)
@pytest.mark.sample(52)
@pytest.mark.parametrize(("harness", "check"), cases(*EVERY, slow=False))
def test_a_type_does_what_all_types_must(harness: Harness, check: Check):
    check(harness)


@pytest.mark.share(5)
@pytest.mark.slow
@pytest.mark.parametrize(("harness", "check"), cases(*EVERY, slow=True))
def test_a_type_does_what_all_types_must_at_every_step(harness: Harness, check: Check):
    check(harness)


@pytest.mark.share(6)
@pytest.mark.slow
@pytest.mark.parametrize(("harness", "check"), cases(*REGIONAL, slow=False))
def test_a_type_does_in_regions_what_all_types_must(harness: Harness, check: Check):
    check(harness)
