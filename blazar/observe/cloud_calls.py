# SPDX-License-Identifier: Apache-2.0
"""Counts calls to what is not ours: services of clouds, hooks, filters of enforcement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from blazar.model.base.errors import BlazarError, ClaimLost, CloudUnavailable, TooLate, UsageDenied
from blazar.observe import metrics

Outcome = Literal["ok", "refused", "unavailable", "timeout", "not_sent"]


@dataclass(slots=True)
class CountedCall:
    """A call that is being made, and what is known to have become of it."""

    outcome: Outcome = "not_sent"


@contextmanager
def count_cloud_call(service: str, region: str = "") -> Iterator[CountedCall]:
    """Count a call; who makes it says what becomes of it. The time of one that was not sent is not noted."""
    call, begin = CountedCall(), time.perf_counter()
    try:
        yield call
    finally:
        metrics.CLOUD_REQUESTS.add(service, region, call.outcome)
        if call.outcome != "not_sent":
            metrics.CLOUD_REQUEST_DURATION.note(time.perf_counter() - begin, service)


@contextmanager
def judge_cloud_call(service: str, region: str = "") -> Iterator[None]:
    """Count a call that says by its error what became of it."""
    with count_cloud_call(service, region) as call:
        try:
            yield
        except (ClaimLost, TooLate):
            raise
        except CloudUnavailable:
            call.outcome = "unavailable"
            raise
        except BlazarError:
            call.outcome = "refused"
            raise
        call.outcome = "ok"


@contextmanager
def count_filter_call(filter_name: str, call: Literal["check", "commit", "end"]) -> Iterator[None]:
    """Count a question, or a message, to a filter of enforcement."""
    begin, outcome = time.perf_counter(), "unavailable"
    try:
        yield
        outcome = "ok"
    except UsageDenied:
        outcome = "denied"
        raise
    finally:
        metrics.ENFORCEMENT_REQUESTS.add(filter_name, call, outcome)
        metrics.ENFORCEMENT_REQUEST_DURATION.note(time.perf_counter() - begin, filter_name)
