# SPDX-License-Identifier: Apache-2.0
"""What keeps reservations with their project."""

from __future__ import annotations

from blazar.model.lease import ReservationStatus
from blazar.resources.base import Task


def until_start(task: Task, has: str) -> str:
    """Return the obstacle of a reservation that in use ``has`` something in its project; empty before its start."""
    if task.reservation.status is ReservationStatus.PENDING:
        return ""
    return f"is in use, and {has}; it goes to another project before its start only"
