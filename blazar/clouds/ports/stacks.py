# SPDX-License-Identifier: Apache-2.0
"""What Heat says of stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource that a stack would have. What only its run tells is empty in ``properties``: null, "" or 0.

    ``parent`` is the resource, a group or a nested template, that it would be part of; empty for none.
    """

    name: str
    type: str
    properties: Mapping[str, object]
    parent: str = ""
