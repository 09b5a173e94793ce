# SPDX-License-Identifier: Apache-2.0
"""Problems: what an operator may have to act on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that an operator may have to act on; ``actions`` are those that make sense."""

    id: str
    kind: str = ""
    since: datetime | None = None
    summary: str = ""
    explanation: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    lease_id: str | None = None
    region: str = ""
    resource_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What was done about a problem, or would be, as sentences."""

    problem_id: str
    action: str
    dry_run: bool
    said: tuple[str, ...] = ()


class Problems:
    """What is in trouble, for operators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, /, **filters: Any) -> Iterator[Problem]:
        """Yield the problems, the oldest first.

        Filters: ``kind``, ``lease_id``, ``region``, ``older_than``, ``limit``.
        """
        for item in self._transport.pages("/problems", "problems", query=filters):
            yield decode(Problem, item)

    def get(self, problem_id: str) -> Problem:
        """Return a problem. NotFound if there is none, or no longer."""
        answer = self._transport.ask("GET", _path(problem_id))
        return decode(Problem, answer.part("problem"))

    def act(
        self, problem_id: str, action: str, *, reason: str, dry_run: bool = True, confirm: str | None = None
    ) -> Repair:
        """Do something about a problem, one of its ``actions``. NotFound, Conflict.

        By default it only says what would be done. ``reason`` goes into the history of the lease. ``confirm`` is the
        id of a reservation that is not on record, once more, to end it.
        """
        body = {"reason": reason, "dry_run": dry_run, **({} if confirm is None else {"confirm": confirm})}
        answer = self._transport.ask("POST", f"{_path(problem_id)}/{part_of_path(action)}", body=body)
        return decode(Repair, answer.part("repair"))


def _path(problem_id: str) -> str:
    return f"/problems/{part_of_path(problem_id)}"
