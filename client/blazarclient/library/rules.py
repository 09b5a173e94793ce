# SPDX-License-Identifier: Apache-2.0
"""Rules on when projects may have leases. Operators write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Json


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule by its name: opening ``hours``, or a ``gap`` between leases; ``applies_to`` says for whose it holds."""

    name: str
    kind: str
    active: bool
    revision: int
    created_at: datetime
    updated_at: datetime | None = None
    content: Json = field(default_factory=dict, hash=False)
    applies_to: Json = field(default_factory=dict, hash=False)


class Rules:
    """The rules of the service."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[Rule]:
        """Yield the rules by name; for members those that hold for their project."""
        for item in self._transport.pages("/rules", "rules"):
            yield decode(Rule, item)

    def get(self, name: str) -> Rule:
        """Return a rule; NotFound."""
        return decode(Rule, self._transport.ask("GET", _path(name)).part("rule"))

    def write(self, name: str, document: Mapping[str, Any]) -> Rule:
        """Write a rule of this name, a new one or another one. It holds for what is booked from then on."""
        answer = self._transport.ask("PUT", _path(name), body=document, repeatable=True)
        return decode(Rule, answer.part("rule"))

    def delete(self, name: str) -> None:
        """Delete a rule; NotFound."""
        self._transport.ask("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/rules/{part_of_path(name)}"
