# SPDX-License-Identifier: Apache-2.0
"""The stored form of what a lease on the waiting list asks for besides its place, and of its failed tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from blazar.model.lease import FailedTry, TryFailure, Wait
from blazar.model.reasons import ReasonCode


def terms_json(wait: Wait) -> dict[str, Any] | None:
    """Return what is stored beside the columns of a wait; None for nothing."""
    stored: dict[str, Any] = {}
    if wait.tries is not None:
        stored["tries"] = wait.tries
    if wait.failed:
        stored["failed"] = [
            [each.at.isoformat(), str(each.why), each.text, None if each.cause is None else str(each.cause)]
            for each in wait.failed
        ]
    if wait.advance:
        stored["advance"] = True
    if wait.latest is not None:
        stored["latest"] = wait.latest.isoformat()
    if wait.shortest is not None and wait.longest is not None:
        stored["length"] = [int(wait.shortest.total_seconds()), int(wait.longest.total_seconds())]
    return stored or None


def with_terms(wait: Wait, stored: Mapping[str, Any] | None) -> Wait:
    """Return a wait with what is stored beside its columns."""
    if not stored:
        return wait
    failed = tuple(
        FailedTry(datetime.fromisoformat(at), TryFailure(why), text, None if cause is None else ReasonCode(cause))
        for at, why, text, cause in stored.get("failed", ())
    )
    latest = stored.get("latest")
    shortest, longest = (timedelta(seconds=each) for each in stored["length"]) if "length" in stored else (None, None)
    return replace(
        wait,
        tries=stored.get("tries"),
        failed=failed,
        advance=bool(stored.get("advance")),
        latest=None if latest is None else datetime.fromisoformat(latest),
        shortest=shortest,
        longest=longest,
    )
