# SPDX-License-Identifier: Apache-2.0
"""The store of rules. A process knows those that hold, and reads them with the catalogs of resources."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import Conflict, InvalidInput, PreconditionFailed, check_revision
from blazar.model.journal.object_entries import tell_rule
from blazar.model.rules.documents import MOST_RULES, parse_rule
from blazar.model.rules.values import BookingRule, WrittenRule, unknown_rule
from blazar.store.billing.price_lists import outdate_plans
from blazar.store.journal.rows import write_entry
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import inventory_versions, rules
from blazar.store.sql.transactions import Clash, Transactions
from blazar.store.sql.versions import raise_version, select_version

_R = rules.c
_ALL = sa.select(rules).order_by(_R.name)
_RULES = "booking rules"
"""What has a version beside the kinds of resources; it can be the name of none."""
_REVISION = select_version(_RULES)
_STAMPED = sa.select(sa.func.coalesce(_REVISION, 0).label("stamp")).subquery()
_KNOWN = sa.select(_STAMPED.c.stamp, rules).select_from(_STAMPED.outerjoin(rules, sa.true())).order_by(_R.name)
_CHANGED = "the rule has changed meanwhile"

T = TypeVar("T")


class RuleCache:
    """The rules as they were when a catalog was last read."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Sequence[BookingRule]], None]] = []
        self._known: Sequence[BookingRule] = ()
        self._stamp = 0
        self._lock = threading.Lock()

    def listen(self, listener: Callable[[Sequence[BookingRule]], None]) -> None:
        """Tell a listener the rules that are known, and from now on when they are others."""
        with self._lock:
            self._listeners.append(listener)
            listener(self._known)

    def read(self, connection: Connection) -> None:
        """Read the rules in the transaction that reads a catalog; one statement."""
        rows = connection.execute(_KNOWN).all()
        with self._lock:
            # Of two readers the one with the older rules may come last.
            if rows[0].stamp > self._stamp:
                self._stamp = rows[0].stamp
                self._known = [_parse_row(row) for row in rows if row.name is not None]
                for listener in self._listeners:
                    listener(self._known)


class RuleStore:
    """Reads, writes and removes rules; ``listen`` tells those that hold."""

    def __init__(self, transactions: Transactions, cache: RuleCache) -> None:
        self._transactions = transactions
        self._cache = cache
        self.listen = cache.listen

    def all(self) -> tuple[BookingRule, ...]:
        """Return all rules by name; one statement."""
        return tuple(map(_parse_row, self._transactions.select(_ALL)))

    def one(self, name: str) -> BookingRule:
        """Return a rule; NotFound. One statement."""
        rows = self._transactions.select(_ALL.where(_R.name == name))
        if not rows:
            raise unknown_rule(name)
        return _parse_row(rows[0])

    def write(
        self, name: str, document: Mapping[str, Any], *, revisions: Sequence[int] | None, now: Callable[[], datetime]
    ) -> WrittenRule:
        """Write a rule, and return it.

        InvalidInput if there are ``MOST_RULES`` already; PreconditionFailed if it has none of these revisions; Conflict
        if somebody else has written one at the same time. What is planned is planned once more, and knows of it.
        """

        def work(connection: Connection) -> WrittenRule:
            revision = _raise_revision(connection)
            known = {row.name: _parse_row(row) for row in connection.execute(_ALL)}
            before = known.get(name)
            _check_revisions(before, revisions)
            if before is None and len(known) >= MOST_RULES:
                raise InvalidInput(
                    f"there are {MOST_RULES} rules already; delete one that is not needed",
                    code="out_of_bounds",
                    data={"maximum": MOST_RULES},
                )
            at = now()
            after = parse_rule(
                name,
                document,
                revision=revision,
                created_at=at if before is None else before.created_at,
                updated_at=None if before is None else at,
            )
            if before is None:
                connection.execute(rules.insert().values(**_row(after)))
            else:
                connection.execute(rules.update().where(_R.name == name).values(**_row(after)))
            write_entry(connection, tell_rule(before, after, at=at, by=current().actor))
            return WrittenRule(after, before is None)

        return self._write(work)

    def remove(self, name: str, *, revisions: Sequence[int] | None, now: Callable[[], datetime]) -> None:
        """Remove a rule; NotFound, PreconditionFailed."""

        def work(connection: Connection) -> None:
            _raise_revision(connection)
            row = connection.execute(_ALL.where(_R.name == name)).one_or_none()
            if row is None:
                raise unknown_rule(name)
            before = _parse_row(row)
            _check_revisions(before, revisions)
            connection.execute(rules.delete().where(_R.name == name))
            write_entry(connection, tell_rule(before, None, at=now(), by=current().actor))

        self._write(work)

    def _write(self, work: Callable[[Connection], T]) -> T:
        def whole(connection: Connection) -> T:
            done = work(connection)
            # Who is booking has either written before, or plans once more and knows of it.
            outdate_plans(connection)
            return done

        try:
            done = self._transactions.write(whole)
        except Clash:
            raise Conflict("another rule was written at the same time; send it again") from None
        with self._transactions.reading() as connection:
            self._cache.read(connection)
        return done


def _raise_revision(connection: Connection) -> int:
    """Return the revision of what is written: the only one at a time, as all who write a rule wait here."""
    kinds = connection.execute(sa.select(inventory_versions.c.kind)).scalars().all()
    # Every process reads the catalogs again, and the rules with them.
    for kind in sorted({*kinds, _RULES}):
        raise_version(connection, kind)
    return int(connection.execute(sa.select(_REVISION)).scalar_one())


def _check_revisions(before: BookingRule | None, revisions: Sequence[int] | None) -> None:
    if revisions is not None and before is None:
        raise PreconditionFailed("the rule is gone; send it without If-Match to write a new one")
    if before is not None:
        check_revision(before.revision, revisions, _CHANGED)


def _row(rule: BookingRule) -> Mapping[str, object]:
    return {
        "name": rule.name,
        "revision": rule.revision,
        "content": rule.content,
        "created_at": rule.created_at,
        "updated_at": rule.updated_at,
    }


def _parse_row(row: AnyRow) -> BookingRule:
    document = json.loads(row.content)
    return parse_rule(row.name, document, revision=row.revision, created_at=row.created_at, updated_at=row.updated_at)
