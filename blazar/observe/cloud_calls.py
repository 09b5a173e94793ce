# SPDX-License-Identifier: Apache-2.0
"""Counts calls to what is not ours: services of clouds, hooks, filters of enforcement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from blazar.model.base.errors import BlazarError, ClaimLost, CloudUnavailable, TooLate, UsageDenied
from blazar.model.base.values import dataclass
from blazar.observe import metrics

Outcome = Literal["ok", "refused", "unavailable", "timeout", "not_sent"]


@dataclass(slots=True)
class CountedCall:
    """A call that is being made; ``outcome`` is what is known to have become of it, None: its error says that."""

    outcome: Outcome | None = None


@contextmanager
def count_cloud_call(service: str, region: str = "") -> Iterator[CountedCall]:
    """Count a call by what becomes of it. The time of one that was not sent is not noted."""
    call, begin = CountedCall(), time.perf_counter()
    outcome: Outcome = "ok"
    try:
        yield call
    except BaseException as error:
        outcome = _judge(error)
        raise
    finally:
        outcome = call.outcome or outcome
        metrics.CLOUD_REQUESTS.add(service, region, outcome)
        if outcome != "not_sent":
            metrics.CLOUD_REQUEST_DURATION.note(time.perf_counter() - begin, service)


def _judge(error: BaseException) -> Outcome:
    """Return what the error of a call says of it."""
    if isinstance(error, CloudUnavailable):
        return "unavailable"
    return "refused" if isinstance(error, BlazarError) and not isinstance(error, ClaimLost | TooLate) else "not_sent"


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
