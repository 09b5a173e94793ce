# SPDX-License-Identifier: Apache-2.0
"""What all parts of a manager share."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.settings import Settings
from blazar.model.clock import Clock
from blazar.store.store import Store


@dataclass(frozen=True, slots=True)
class Runtime:
    """Database, clock, claims, settings and notifications of one manager."""

    store: Store
    clock: Clock
    claims: Claims
    settings: Settings
    notifier: Notifier
