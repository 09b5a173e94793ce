# SPDX-License-Identifier: Apache-2.0
"""The store of findings: what the last looks at the clouds have found, for all managers, and across their restarts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass, replace
from blazar.model.problems.problems import ProblemKind
from blazar.model.problems.troubles import CloudFinding
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import findings
from blazar.store.sql.transactions import Clash, Transactions

MOST = 1000
"""Findings of a kind in a region that are kept; users can write marks on more objects than anybody wants to read."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a region found, by reservation, of the types of resources that told what they have."""

    what: ProblemKind
    region: str
    at: datetime
    found: Mapping[str, CloudFinding]
    types: Collection[str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """All findings of a kind in a region after a look, in the order of keys, and the keys of those that are new."""

    findings: tuple[CloudFinding, ...]
    new: frozenset[str]


class FindingStore:
    """Reads and writes findings."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def record(self, look: Look) -> Recorded:
        """Write what a look found; return what is on record after it.

        What is known keeps its ``since`` and its ``tries``. What was not found is forgotten, unless its type did not
        tell this time. Five statements, and one more for each few hundred findings.
        """
        try:
            return self._transactions.write(lambda connection: _record_look(connection, look))
        except Clash:
            # Another manager has just found the same for the first time: it is known now.
            return self._transactions.write(lambda connection: _record_look(connection, look))

    def make_part(self, look: Look) -> Callable[[Connection], None]:
        """Return the part of a commit that writes what a look found; Clash if another does so at the same time."""

        def work(connection: Connection) -> None:
            _record_look(connection, look)

        return work

    def count_try(self, finding: CloudFinding, *, tries: int, next_at: datetime | None) -> None:
        """Write how many clean-ups have begun of the lease of a finding, and when the next one may."""
        f = findings.c
        mine = (f.what == str(finding.what), f.region == finding.region, f.lease_id == finding.lease_id)
        change = findings.update().where(*mine).values(tries=tries, next_at=next_at)
        self._transactions.write(lambda connection: connection.execute(change))

    def forget(self, finding: CloudFinding) -> None:
        """Forget a finding whose end has begun; a later look finds what is still there as something new."""
        f = findings.c
        mine = findings.delete().where(f.what == str(finding.what), f.region == finding.region, f.key == finding.key)
        self._transactions.write(lambda connection: connection.execute(mine))


def read_findings(connection: Connection, *where: sa.ColumnElement[bool], most: int = MOST) -> tuple[CloudFinding, ...]:
    """Return findings, the oldest first, in one statement."""
    f = findings.c
    query = sa.select(findings).where(*where).order_by(f.since, f.what, f.region, f.key).limit(most)
    return tuple(_finding(row) for row in connection.execute(query).mappings())


def _record_look(connection: Connection, look: Look) -> Recorded:
    """Write what a look found, as ``FindingStore.record`` does. Clash if another does so at the same time."""
    f = findings.c
    here = (f.what == str(look.what), f.region == look.region)
    known = {finding.key: finding for finding in read_findings(connection, *here, most=2 * MOST)}
    gone = sorted(key for key, old in known.items() if key not in look.found and old.resource_type in look.types)
    for part in chunks(gone):
        connection.execute(findings.delete().where(*here, f.key.in_(part)))
    seen = sorted(look.found.keys() & known.keys())
    for part in chunks(seen):
        connection.execute(findings.update().where(*here, f.key.in_(part)).values(seen_at=look.at))
    room = max(0, MOST - (len(known) - len(gone)))
    new = {key: look.found[key] for key in sorted(look.found.keys() - known.keys())[:room]}
    if new:
        connection.execute(findings.insert(), [_row(finding) for finding in new.values()])
    told = [key for key in seen if look.found[key].detail != known[key].detail]
    if told:
        connection.execute(_NEW_DETAIL, [_detail(look, key) for key in told])
    kept = {key: old for key, old in known.items() if key not in gone}
    kept |= {key: replace(kept[key], seen_at=look.at, detail=look.found[key].detail) for key in seen}
    every = {**kept, **new}
    return Recorded(tuple(every[key] for key in sorted(every)), frozenset(new))


_NEW_DETAIL = (
    findings.update()
    .where(
        findings.c.what == sa.bindparam("on_what"),
        findings.c.region == sa.bindparam("on_region"),
        findings.c.key == sa.bindparam("on_key"),
    )
    .values(detail=sa.bindparam("new_detail"))
)


def _detail(look: Look, key: str) -> dict[str, Any]:
    new = look.found[key].detail
    return {"on_what": str(look.what), "on_region": look.region, "on_key": key, "new_detail": new}


def _row(finding: CloudFinding) -> dict[str, Any]:
    return {
        "what": str(finding.what),
        "region": finding.region,
        "key": finding.key,
        "resource_type": finding.resource_type,
        "lease_id": finding.lease_id,
        "since": finding.since,
        "seen_at": finding.seen_at,
        "detail": finding.detail,
        "tries": finding.tries,
        "next_at": finding.next_at,
    }


def _finding(row: Any) -> CloudFinding:
    return CloudFinding(**{**row, "what": ProblemKind(row["what"])})
