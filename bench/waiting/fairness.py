# SPDX-License-Identifier: Apache-2.0
"""How evenly those are served that always wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from blazar.calendar.queue.usage import ProjectUsage

NEARLY_ALWAYS = 0.95


@dataclass(slots=True)
class Shares:
    """The use of each project for its weight at the passes at which it waited."""

    passes: int = 0
    waited: Counter[str] = field(default_factory=Counter)
    used: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def look(self, usage: ProjectUsage) -> None:
        """Note the uses of those that wait, which are those that have one."""
        self.passes += 1
        for project, value in usage.values.items():
            self.waited[project] += 1
            self.used[project] += value / usage.rates.weight(project)

    def fairness(self) -> tuple[float | None, int]:
        """Return Jain's index, 1 if all have the same, and of how many projects; None of fewer than two."""
        means = [self.used[each] / n for each, n in self.waited.items() if n >= NEARLY_ALWAYS * self.passes]
        if len(means) < 2:
            return None, len(means)
        return sum(means) ** 2 / (len(means) * sum(mean**2 for mean in means)), len(means)
