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
    """Why a request has no room even if other leases get other hosts; without a full instant nothing is proven."""

    full: FullInstant | None = None

    @property
    def code(self) -> ProofCode:
        """The word for programs."""
        return ProofCode.NOT_PROVEN if self.full is None else ProofCode.FULL_AT

    @property
    def sentence(self) -> str:
        """The sentence for people; it names nobody and no host."""
        if self.full is None:
            return "Whether it would fit if other leases got other hosts was not found in the time of a search."
        full = self.full
        return (
            f"At {spell(full.at)} UTC leases that can have no others hold {full.promised} of {full.hosts} hosts, and "
            f"{full.asked} more {'is' if full.asked == 1 else 'are'} needed."
        )

    def render(self) -> dict[str, Any]:
        """Return it as JSON."""
        if self.full is None:
            return {"code": str(self.code)}
        full = self.full
        counts = {"hosts": full.hosts, "promised": full.promised, "asked": full.asked}
        return {"code": str(self.code), "at": zulu(full.at), **counts}
