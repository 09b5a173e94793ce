# SPDX-License-Identifier: Apache-2.0
"""Reasons and alternatives as JSON, in answers and in the data of refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blazar.model.availability import Alternative, Reason, Step
from blazar.model.clock import zulu
from blazar.model.window import Window

Json = dict[str, Any]


def reasons(values: Sequence[Reason]) -> list[Json]:
    """Render why reservations do not fit."""
    return [
        {
            "pointer": each.pointer,
            "window": window(each.window),
            "asked": each.asked,
            "free": each.free,
            "steps": [_step(step) for step in each.steps],
            "message": each.message,
        }
        for each in values
    ]


def alternatives(values: Sequence[Alternative]) -> list[Json]:
    """Render what would fit: each has what to put over the question."""
    return [_alternative(each) for each in values]


def _step(value: Step) -> Json:
    shown: Json = {"code": str(value.code)}
    if value.pointer is not None:
        shown["pointer"] = value.pointer
    if value.removed is not None:
        shown["removed"] = value.removed
    shown["remaining"] = value.remaining
    if value.until is not None:
        shown["until"] = zulu(value.until)
    return shown


def _alternative(value: Alternative) -> Json:
    shown: Json = {"change": str(value.change), **window(value.window)}
    if value.counts is not None:
        shown["reservations"] = [dict(each) for each in value.counts]
    if value.drop is not None:
        shown["drop"] = value.drop
    return shown


def window(value: Window) -> Json:
    """Render a window."""
    return {"start_date": zulu(value.start), "end_date": zulu(value.end)}
