# SPDX-License-Identifier: Apache-2.0
"""A store as one manager sees it, and a manager as one caller sees it: the test has its say in every call."""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from blazar.manager.service import ManagerService
from blazar.rpc.interface import NOUNS, Manager
from blazar.store.store import Store

Around = Callable[..., Any]
"""Called instead of every call: with its name, like ``leases.save``, the call, and its arguments."""


class Killed(BaseException):
    """What a kill -9 is to the code: nothing after it happens."""


def before(name: str, *acts: Callable[[], object]) -> Around:
    """Let each of these happen, one at a time, right before a call of this name; an error fails that call."""
    left = list(acts)

    def around(called: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        if called == name and left:
            left.pop(0)()
        return call(*arguments, **more)

    return around


def failing(error: BaseException) -> Callable[[], None]:
    """Return what does nothing but fail."""

    def fail() -> None:
        raise error

    return fail


def kill_at_one_of(points: Sequence[str], counts: Sequence[int], dice: random.Random) -> Around:
    """Return what kills its own process (kill -9) before or after a call of one of the points.

    Which point, which of its calls, one of the ``counts``, and on which side of it, is drawn.
    """
    point, left, after = dice.choice(points), itertools.count(dice.choice(counts), -1), dice.random() < 0.5

    def around(name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        last = name == point and next(left) == 1
        if last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*arguments, **more)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return around


class ObservedStore:
    """A store whose every operation goes through a function of the test."""

    def __init__(self, store: Store, around: Around) -> None:
        for noun, calls in vars(store).items():
            if noun != "transactions":
                setattr(self, noun, _Noun(noun, calls, around))


class ObservedManager:
    """A manager whose every call of the interface goes through a function of the test."""

    def __init__(self, manager: Manager | ManagerService, around: Around) -> None:
        for noun in NOUNS:
            setattr(self, noun, _Noun(noun, getattr(manager, noun), around))


class FailingManager(ObservedManager):
    """A manager of which some calls, by name, fail with an error each."""

    def __init__(self, manager: Manager | ManagerService, errors: Mapping[str, Exception]) -> None:
        def fail(name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
            if name in errors:
                raise errors[name]
            return call(*arguments, **more)

        super().__init__(manager, fail)


class _Noun:
    def __init__(self, noun: str, calls: object, around: Around) -> None:
        self._noun = noun
        self._calls = calls
        self._around = around

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._calls, name)
        # Who listens reads and writes nothing.
        return call if name == "listen" or not callable(call) else partial(self._around, f"{self._noun}.{name}", call)
