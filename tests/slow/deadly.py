# SPDX-License-Identifier: Apache-2.0
"""Processes that do what they are told, and kill themselves before one of their next statements or calls."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import sqlalchemy as sa

from tests.world import World


class Answer(NamedTuple):
    """What a process has to say: what it was asked for, in so many steps; or ``died_at`` which of them."""

    said: Any = None
    steps: int = 0
    died_at: str = ""


def _name_step(*args: Any) -> str:
    """Return the table that a statement writes to, the name of a call, or what else a step is."""
    text = next((arg for arg in args if isinstance(arg, str)), "COMMIT")
    words = text.split()
    return " ".join(words[: 3 if words[0] in ("INSERT", "DELETE") else 2]) if words[0] != "SELECT" else "SELECT"


def _obey(make_world: Callable[[], World], do: Callable[[World, Any], Any], orders: Connection) -> None:
    world, left = make_world(), 0

    def die_in_time(*args: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            orders.send(Answer(died_at=_name_step(*args)))
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(world.engine, "before_cursor_execute", die_in_time)
    sa.event.listen(world.engine, "commit", die_in_time)
    world.faults.on_call = die_in_time
    while True:
        instant, what, last = orders.recv()
        left = last
        world.clock.to(instant)
        said = do(world, what)
        orders.send(Answer(said, last - left))


class Workers:
    """Processes by name, each with a world of its own that ``make_world`` returns; ``do`` is what an order means.

    ``world`` is that of this process: what a new process has of its connections must not end them.
    """

    def __init__(self, world: World, make_world: Callable[[], World], do: Callable[[World, Any], Any]) -> None:
        self._world, self._make_world, self._do = world, make_world, do
        self._born: dict[str, tuple[multiprocessing.process.BaseProcess, Connection]] = {}

    def close(self) -> None:
        """End all of them."""
        for process, _ in self._born.values():
            process.kill()
            process.join()

    def _orders_of(self, name: str) -> Connection:
        if name not in self._born:
            self._world.engine.dispose()
            context = multiprocessing.get_context("fork")
            ours, theirs = context.Pipe()
            process = context.Process(target=_obey, args=(self._make_world, self._do, theirs), daemon=True)
            process.start()
            theirs.close()
            self._born[name] = process, ours
        return self._born[name][1]

    def order(self, what: Any, lasts: Mapping[str, int]) -> Mapping[str, Answer]:
        """Have some do something side by side, each at most until its last step (0: to the end)."""
        for name, last in lasts.items():
            self._orders_of(name).send((self._world.clock.now(), what, last))
        answers = {name: self._born[name][1].recv() for name in lasts}
        for name, answer in answers.items():
            if answer.died_at:
                process, _ = self._born.pop(name)
                process.join()
                assert process.exitcode == -signal.SIGKILL
        return answers
