# SPDX-License-Identifier: Apache-2.0
"""Facts about the service that clients cannot know otherwise. No secrets."""

from __future__ import annotations

from blazar.enforcement import Enforcement
from blazar.manager.common.runtime import Runtime
from blazar.model.service import ServiceFacts
from blazar.resources.actions import action_of


class FactService:
    """Answers the calls about the service itself."""

    def __init__(self, runtime: Runtime, enforcement: Enforcement) -> None:
        self._runtime = runtime
        self._enforcement = enforcement

    def facts(self, project_id: str) -> ServiceFacts:
        """Return the facts that are the same for all leases of a project. No statement."""
        settings = self._runtime.settings
        return ServiceFacts(
            now=self._runtime.clock.now(),
            resource_types=tuple(self._runtime.types),
            before_end=str(action_of("default", settings.before_end)),
            lead=settings.before_end_lead,
            cleaning=self._runtime.store.calendar.cleaning_time,
            search_range=settings.search_range,
            reads=settings.reads,
            idempotency=settings.idempotency_retention,
            limits=(*settings.bounds.stated(), *self._enforcement.stated_limits(project_id)),
        )
