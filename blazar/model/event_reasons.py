# SPDX-License-Identifier: Apache-2.0
"""Reasons of events: a reason is kept as its text, for operators, and as its cause beside it.

The cause of a reason that is on record as text only is told from its words: it was written before there were causes, or
by a manager of an earlier version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from blazar.model.lease import Event, EventType
from blazar.model.reasons import Cause, Reason, ReasonCode

_WORDS: tuple[tuple[str, ReasonCode], ...] = (
    (r"ended before it could start|when its before_end event was due", ReasonCode.LEASE_ENDED),
    (r"^not (finished|undone) (at|before) the end", ReasonCode.NOT_FINISHED_AT_END),
    (r"internal error", ReasonCode.INTERNAL_ERROR),
    (r"quota", ReasonCode.QUOTA_EXCEEDED),
    (
        r"being cleaned|released late|has not (left|returned)|still (use|has|hold)|waits for",
        ReasonCode.PREVIOUS_USER_NOT_LEFT,
    ),
    (r"belong to no reservation|runs servers|in the way", ReasonCode.SERVER_IN_THE_WAY),
    (r"has failed|is (down|disabled|dead)|does not (exist|report)", ReasonCode.RESOURCE_FAILED),
    (r" refused ", ReasonCode.CLOUD_REFUSED),
    (r"not available|does not answer|timed? ?out|unavailable|retry later|try again", ReasonCode.CLOUD_UNAVAILABLE),
)
_OTHERWISE: Mapping[str, ReasonCode] = {
    EventType.BEFORE_END: ReasonCode.SAVE_FAILED,
    EventType.START: ReasonCode.RESOURCE_NOT_READY,
    EventType.END: ReasonCode.CLOUD_UNAVAILABLE,
}


def reason_of(event: Event) -> Reason | None:
    """Return the reason of an event; None if it has none."""
    if event.reason is None:
        return None
    return Reason(event.reason, event.cause or Cause(_code_of(event.reason, event.event_type)))


def with_reason(event: Event, reason: Reason | None) -> Event:
    """Return the event with this reason, or with none."""
    if reason is None:
        return replace(event, reason=None, cause=None)
    return replace(event, reason=reason.text, cause=reason.cause)


def _code_of(text: str, event_type: str) -> ReasonCode:
    for words, code in _WORDS:
        if re.search(words, text, re.IGNORECASE):
            return code
    return _OTHERWISE.get(event_type, ReasonCode.INTERNAL_ERROR)
