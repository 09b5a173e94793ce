# SPDX-License-Identifier: Apache-2.0
"""A filter that remembers what it was asked and told, and what tests look at."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

import pytest
import sqlalchemy as sa

from blazar.enforcement import FilterNotification, Occasion, Question
from blazar.model.base.errors import CloudUnavailable, EnforcementUnavailable, UsageDenied
from tests.world import World

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
DOWN = CloudUnavailable("the cloud does not answer")


@dataclass
class RecordingFilter:
    """A filter that remembers what it was asked and told, and objects as the test says."""

    needs_use: ClassVar[bool] = False
    occasions: frozenset[Occasion] = frozenset(Occasion)
    says: Callable[[Question], None] = lambda question: None
    deaf: int = 0
    asked: list[Question] = field(default_factory=list)
    told: list[FilterNotification] = field(default_factory=list)
    tries: int = 0

    def check(self, question: Question) -> None:
        self.asked.append(question)
        self.says(question)

    def notify(self, notification: FilterNotification) -> None:
        self.tries += 1
        if self.deaf:
            self.deaf -= 1
            raise EnforcementUnavailable("nobody listens")
        self.told.append(notification)

    @property
    def heard(self) -> list[str]:
        return [str(notification.occasion) for notification in self.told]


def rows(world: World, table: sa.Table) -> int:
    with world.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def left(denied: pytest.ExceptionInfo[UsageDenied]) -> str:
    found = re.search(r"(\S+) are left for it", denied.value.message)
    assert found
    return found[1]
