# SPDX-License-Identifier: Apache-2.0
"""Measurements of what servers do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class Metrics(Protocol):
    """Tells how busy servers are, by one number each that an operator has chosen."""

    def of_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return the measured value of each server; one of which nothing certain is known is left out.

        The number of calls does not grow with the servers of a usual lease. CloudUnavailable if nothing is known of any
        of them: no answer never looks like a small number.
        """


class NoMetrics:
    """No source of measurements: nothing is known of any server."""

    def of_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return nothing."""
        return {}
