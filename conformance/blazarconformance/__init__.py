# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: what must hold of every resource type and its kind, of ours and of other packages.

A test of a package describes its type by a ``Harness``, and runs each of ``checks(harness)``, each on a cloud of its
own. A check raises ``NotConformant``, an AssertionError, with a sentence that says what is wrong.
``docs/contributing/add-a-resource-type.md`` has an example.

It is a separate distribution because only tests need it; tests also have ``clock`` and ``databases`` of it.
"""

from blazarconformance import (
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
from blazarconformance.catalogue import CATALOGUE, Check, NotConformant, checks, not_applicable
from blazarconformance.harness import (
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

__version__ = "0.1.0"

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
