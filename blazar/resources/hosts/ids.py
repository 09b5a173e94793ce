# SPDX-License-Identifier: Apache-2.0
"""The ids of hosts in the API: the number of the hypervisor in its Nova, after the name of a region but the first."""

from __future__ import annotations

HOST_ID = "^([A-Za-z0-9][A-Za-z0-9_.-]{0,39}:)?[0-9]+$"
HOST_ID_DESCRIPTION = "the number of the hypervisor in Nova, of another region than the first as RegionTwo:7"


def normal(given: str | float) -> str:
    """Return an id that matches ``HOST_ID``, or is a whole number, as it is stored: without leading zeros."""
    # For a JSON schema 7.0 is an integer, too.
    if isinstance(given, float):
        given = int(given)
    region, colon, number = str(given).rpartition(":")
    return f"{region}{colon}{int(number)}"
