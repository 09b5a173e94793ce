# SPDX-License-Identifier: Apache-2.0
"""Simulated measurements of servers: what a test or a demonstration says."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.model.errors import BlazarError


class SimulatedMetrics:
    """Measurements by server id; ``failure`` is raised instead, if it is set."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.failure: BlazarError | None = None
        self.asked: list[frozenset[str]] = []

    def of_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return what is set for these servers."""
        self.asked.append(frozenset(server_ids))
        if self.failure is not None:
            raise self.failure
        return {id_: self.values[id_] for id_ in server_ids if id_ in self.values}
