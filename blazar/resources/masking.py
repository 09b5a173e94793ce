# SPDX-License-Identifier: Apache-2.0
"""Masks what users keep secret in what a cloud says of the work on a reservation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from blazar.model.secrets import parts_of, untold, without
from blazar.resources.base import NotYet, Task

Of = TypeVar("Of")
Answer = TypeVar("Answer")
Rest = ParamSpec("Rest")


def masks_secrets(
    work: Callable[Concatenate[Of, Task, Rest], Answer],
) -> Callable[Concatenate[Of, Task, Rest], Answer]:
    """Mask what the reservation of a task keeps secret in errors of a method, and in why it has to wait."""

    @wraps(work)
    def masking(of: Of, task: Task, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Answer:
        kept = task.reservation.parameters.values
        with untold(lambda: parts_of(kept)):
            answer = work(of, task, *args, **kwargs)
        if isinstance(answer, NotYet) and (reason := without(answer.reason, parts_of(kept))) != answer.reason:
            return replace(answer, reason=reason)
        return answer

    return masking
