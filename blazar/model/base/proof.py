# SPDX-License-Identifier: Apache-2.0
"""What a refusal proves: that no arrangement of all leases would have room, or that none was found."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from blazar.model.base.clock import spell, zulu
from blazar.model.base.values import dataclass


class ProofCode(StrEnum):
    """What is known of a refusal."""

    FULL_AT = "full_at"
    NO_ARRANGEMENT = "no_arrangement"
    TOO_MANY_MOVES = "too_many_moves"
    NOT_PROVEN = "not_proven"


@dataclass(frozen=True, slots=True)
class FullInstant:
    """At an instant leases that can have no others hold ``promised`` of ``hosts``, and ``asked`` more are needed."""

    at: datetime
    hosts: int
    promised: int
    asked: int


@dataclass(frozen=True, slots=True)
class RefusalProof:
    """Why a request has no room even if other leases get other hosts.

    There is a ``full`` instant, or there is ``none`` of all arrangements though no instant is full, or one in which so
    many ``leases`` get other hosts as may not for one; else nothing is proven.
    """

    full: FullInstant | None = None
    none: bool = False
    leases: int = 0

    @property
    def code(self) -> ProofCode:
        """The word for programs."""
        if self.full is not None:
            return ProofCode.FULL_AT
        if self.none:
            return ProofCode.NO_ARRANGEMENT
        return ProofCode.TOO_MANY_MOVES if self.leases else ProofCode.NOT_PROVEN

    @property
    def sentence(self) -> str:
        """The sentence for people; it names nobody and no host."""
        full = self.full
        if full is None:
            return _SENTENCES[self.code].format(self.leases)
        return (
            f"At {spell(full.at)} UTC leases that can have no others hold {full.promised} of {full.hosts} hosts, and "
            f"{full.asked} more {'is' if full.asked == 1 else 'are'} needed."
        )

    def render(self) -> dict[str, Any]:
        """Return it as JSON."""
        full = self.full
        if full is None:
            return {"code": str(self.code), **({"moves_others": self.leases} if self.leases else {})}
        counts = {"hosts": full.hosts, "promised": full.promised, "asked": full.asked}
        return {"code": str(self.code), "at": zulu(full.at), **counts}


_SENTENCES = {
    ProofCode.NO_ARRANGEMENT: "However other leases get other hosts, none are free for all of that time.",
    ProofCode.TOO_MANY_MOVES: "It would fit if {} other leases got other hosts, which is more than may for one.",
    ProofCode.NOT_PROVEN: "Whether it would fit if other leases got other hosts was not found in the time of a search.",
}
