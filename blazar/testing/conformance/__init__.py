# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: what must hold of every resource type and its kind, of ours and of other packages.

A test of a package describes its type by a ``Harness``, and runs each of ``checks(harness)``, each on a cloud of its
own. A check raises ``NotConformant``, an AssertionError, with a sentence that says what is wrong.
``docs/contributing/add-a-resource-type.md`` has an example.
"""

from blazar.testing.conformance import (
    changes,
    children,
    crashes,
    demands,
    ensures,
    failures,
    fences,
    http,
    kinds,
    life,
    parameters,
    references,
    schemas,
    sweeping,
    visible,
)
from blazar.testing.conformance.catalogue import CATALOGUE, Check, NotConformant, checks, not_applicable
from blazar.testing.conformance.harness import (
    Harness,
    HasAccidents,
    HasChildren,
    HasFailures,
    HasLosses,
    HasSlowDeletions,
    HasUsers,
    Invalid,
    Site,
    Surroundings,
)

PARTS = (
    parameters,
    schemas,
    references,
    demands,
    children,
    ensures,
    fences,
    failures,
    kinds,
    changes,
    sweeping,
    life,
    crashes,
    visible,
    http,
)
"""The modules of the checks, in the order of a reservation's life."""

__all__ = [
    "CATALOGUE",
    "Check",
    "Harness",
    "HasAccidents",
    "HasChildren",
    "HasFailures",
    "HasLosses",
    "HasSlowDeletions",
    "HasUsers",
    "Invalid",
    "NotConformant",
    "PARTS",
    "Site",
    "Surroundings",
    "checks",
    "not_applicable",
]
