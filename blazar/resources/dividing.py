# SPDX-License-Identifier: Apache-2.0
"""How the numbers that a reservation asks for are divided with its resources. Pure."""

from __future__ import annotations

from collections.abc import Collection

from blazar.model.lease import Content
from blazar.model.resource import Resource

MIN, MAX = "min", "max"


def divided_bounds(
    parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
) -> tuple[Content, Content]:
    """Return parameters with ``min`` and ``max`` divided: what goes asks for just that, and the sum of both stays.

    Only a ``min`` above what the reservation got is less then, and one of what stays is 1 at least.
    """
    values = parameters.values
    least, most = int(str(values[MIN])), int(str(values[MAX]))
    held = len(kept) + len(gone)
    stays = {MIN: max(1, min(least, held) - len(gone)), MAX: max(1, most - len(gone))}
    goes = {MIN: len(gone), MAX: len(gone)}
    return Content({**values, **stays}), Content({**values, **goes})
