# SPDX-License-Identifier: Apache-2.0
"""Statements and charges: what projects have to pay, and corrections of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from blazar.manager.common.request_keys import do_once, find_record
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.errors import NotFound
from blazar.model.billing.charges import DECIMALS
from blazar.model.billing.statements import (
    ChargePage,
    ChargeQuestion,
    CorrectionRequest,
    MadeCharge,
    MonthCharges,
    Statement,
    StatementPage,
    StatementQuestion,
    spell_month,
)
from blazar.model.leases.requests import IdempotencyKey


class StatementService:
    """Answers the calls about statements."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store

    def page(self, question: StatementQuestion) -> StatementPage:
        """Return a page of statements; InvalidInput for an unknown marker. Four statements of SQL, or five."""
        page = self._store.charges.page_months(question)
        return StatementPage(self._make(page.items), page.following, page.count)

    def one(self, project_id: str, month: date) -> Statement:
        """Return the statement of a project and month, of which this is the first day; NotFound."""
        found = self._store.charges.find_month(project_id, month)
        if found is None:
            raise NotFound(
                f"statement {spell_month(month)} not found: nothing was charged in that month",
                code="statement_not_found",
            )
        return self._make([found])[0]

    def _make(self, months: Iterable[MonthCharges]) -> tuple[Statement, ...]:
        now = to_second(self._runtime.clock.now())
        lists = self._store.price_lists.read()
        # All lists of a site have the same decimals.
        decimals = lists[-1].decimals if lists else DECIMALS
        provider = self._runtime.settings.provider
        return tuple(one.make_statement(decimals, provider, now=now) for one in months)


class ChargeService:
    """Answers the calls about charges."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def page(self, question: ChargeQuestion) -> ChargePage:
        """Return a page of charges; InvalidInput for an unknown marker."""
        return self._runtime.store.charges.page(question)

    def replay(self, key: IdempotencyKey) -> MadeCharge | None:
        """Return the correction that was made with a key; None if there is none. Conflict."""
        record = find_record(self._runtime, key, "correction")
        return None if record is None else MadeCharge(self._runtime.store.charges.one(int(record.lease_id)), True)

    def correct(self, request: CorrectionRequest, key: IdempotencyKey | None = None) -> MadeCharge:
        """Answer a charge that was wrong by another one, once for each key, and return that; NotFound, InvalidInput."""
        store, now = self._runtime.store.charges, self._runtime.clock.now()
        return do_once(key, self.replay, lambda: MadeCharge(store.correct(request, key, now=now)))
