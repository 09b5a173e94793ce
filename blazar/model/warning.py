# SPDX-License-Identifier: Apache-2.0
"""When to warn before the end of a lease whose dates change. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.model.window import Window

SHORTEST = timedelta(seconds=1)


def moved_warning(warning: datetime, before: Window, after: Window, lead: timedelta) -> datetime:
    """Return when to warn before the end of a lease that had another window: as long before the end as it was.

    A warning that the start had cut off is ``lead`` before the end again, the operator's time; zero: there is none.
    None is before the start.
    """
    if after == before:
        return warning
    distance = before.end - warning
    if lead and _is_cut_off(warning, before, lead):
        distance = lead
    return after.start if distance >= after.duration else after.end - distance


def _is_cut_off(warning: datetime, window: Window, lead: timedelta) -> bool:
    # What is asked for is after the start; so is the operator's time where a change asks for it.
    return warning <= window.start or (warning <= window.start + SHORTEST and window.end - warning < lead)
