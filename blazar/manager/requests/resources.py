# SPDX-License-Identifier: Apache-2.0
"""The resource service: the operations of operators on the resources of each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.healing import Healing
from blazar.manager.health.monitor import Monitor
from blazar.manager.health.resource_states import ResourceEnabler
from blazar.manager.requests import resource_lists, visible_resources
from blazar.manager.requests.registration import ResourceRegistry
from blazar.manager.requests.resource_lists import page_of
from blazar.manager.requests.visible_resources import Visible
from blazar.model.base.clock import to_second
from blazar.model.base.errors import NotFound
from blazar.model.base.json_text import Json
from blazar.model.base.moments import NOW, Moment
from blazar.model.base.paging import Page
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPage, AllocationQuestion, ResourceAllocations
from blazar.model.calendar.views import Viewer
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.pages import (
    Candidate,
    PropertyPage,
    ResourcePage,
    ResourceQuestion,
    VisiblePage,
    VisibleResource,
)
from blazar.model.resources.resource import (
    KindList,
    PropertyValues,
    Resource,
    ResourceKind,
    ResourceProperty,
)
from blazar.resources.contract.kind import Kind, describe


class ResourceService:
    """Registers, changes and unregisters resources, and lists their allocations."""

    def __init__(
        self,
        runtime: Runtime,
        kinds: Mapping[ResourceKind, Kind],
        healing: Healing,
        monitor: Monitor,
        enabler: ResourceEnabler,
    ) -> None:
        self._runtime = runtime
        self._store = runtime.store.resources
        self._clock = runtime.clock
        self._kinds = kinds
        self._healing = healing
        self._registry = ResourceRegistry(runtime, monitor, enabler)

    def all(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources, oldest first, in one statement while none changes."""
        return tuple(sorted(self._store.catalog(self._of(kind).kind).resources, key=attrgetter("id")))

    def page(self, kind: ResourceKind, question: ResourceQuestion) -> ResourcePage:
        """Return a page of the registered resources, in two statements at most while none changes. InvalidInput."""
        catalog = self._store.catalog(self._of(kind).kind)
        within = _find_in_maintenance(self._runtime, kind, question.maintenance_before)
        return resource_lists.list_page(catalog, question, within=within)

    def one(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Return one resource; NotFound."""
        return self._store.one(self._of(kind).kind, resource_id)

    def kinds(self) -> KindList:
        """Return the kinds that are served; no statement."""
        types: dict[ResourceKind, dict[str, Json | None]] = defaultdict(dict)
        for name, type_ in self._runtime.types.items():
            types[type_.kind][name] = type_.schema
        return KindList(tuple(describe(plain, types[kind]) for kind, plain in sorted(self._kinds.items())))

    def visible_page(self, kind: ResourceKind, question: ResourceQuestion, viewer: Viewer) -> VisiblePage:
        """Return a page of the resources as a member may see them; one statement as for ``page``. InvalidInput."""
        return visible_resources.list_page(self._visible(kind, viewer), kind, question)

    def visible(self, kind: ResourceKind, resource_id: str, viewer: Viewer) -> VisibleResource:
        """Return one resource as a member may see it; NotFound if it may not."""
        return visible_resources.find_one(self._visible(kind, viewer), kind, resource_id)

    def candidates(self, kind: ResourceKind) -> tuple[Candidate, ...]:
        """Return what the cloud has of a kind, with the ids of those that are registered. CloudError."""
        plain, registered = self._of(kind), self._store.catalog(kind).resources
        with scope(limit=self._runtime.settings.request_limit):
            found = plain.candidates(registered)
        ids = {(resource.region, resource.name): resource.external_id for resource in registered}
        return tuple(replace(c, resource_id=c.resource_id or ids.get((c.region, c.name))) for c in found)

    def register(self, kind: ResourceKind, request: Registration) -> Resource:
        """Register a resource that is not in use. If this fails, changes of the cloud are undone."""
        return self._registry.register(self._of(kind), request)

    def change(self, kind: ResourceKind, resource_id: str, change: ResourceChange) -> Resource:
        """Set and remove capabilities, disable or enable, set the projects that may use it: all or nothing."""
        return self._registry.change(self._of(kind), resource_id, change)

    def refresh(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Update a resource from the cloud, and return it; NotFound. Its allocations stay."""
        return self._registry.refresh(self._of(kind), resource_id)

    def unregister(self, kind: ResourceKind, resource_id: str, *, revisions: tuple[int, ...] | None = None) -> None:
        """Unregister a resource. Conflict while it is allocated or in use; it then stays registered."""
        self._registry.unregister(self._of(kind), resource_id, revisions=revisions)

    def move(self, kind: ResourceKind, resource_id: str, reservation_id: str) -> ResourceAllocations:
        """Replace this resource of a reservation by another one."""
        self._healing.move_off(self.one(kind, resource_id), reservation_id)
        return self.allocations(kind, resource_id=resource_id)[0]

    def allocations(
        self,
        kind: ResourceKind,
        *,
        resource_id: str | None = None,
        lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by resource; for a given lease or reservation, past ones, too."""
        resources = self.all(kind) if resource_id is None else (self.one(kind, resource_id),)
        narrowed = lease_id is not None or reservation_id is not None
        allocations = self._runtime.store.calendar.load_live(
            kind,
            resource_id=None if resource_id is None else resources[0].id,
            lease_id=lease_id,
            reservation_id=reservation_id,
            ending_after=None if narrowed else self._clock.now(),
        )
        return _by_resource(resources, allocations)

    def allocation_page(self, kind: ResourceKind, question: AllocationQuestion) -> AllocationPage:
        """Return a page of the registered resources with their allocations, in two statements. InvalidInput."""
        with self._runtime.store.calendar.view_uses(self._of(kind).kind) as view:
            found = resource_lists.list_page(view.catalog, ResourceQuestion(question.page))
            narrowed = resource_lists.values_by_key(question.conditions)
            allocations = view.read_live(
                {"resource_id": [resource.id for resource in found.items], **narrowed},
                ending_after=None if narrowed else self._clock.now(),
            )
        return AllocationPage(_by_resource(found.items, allocations), found.following, found.count)

    def properties(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that resources have, with their values."""
        return self._store.property_values(self._of(kind).kind, include_private=include_private)

    def property_page(self, kind: ResourceKind, page: Page, *, include_private: bool) -> PropertyPage:
        """Return a page of these capabilities, in the order of their names; InvalidInput."""
        found = self.properties(kind, include_private=include_private)
        shown, following = page_of(found, page, value_of=_name_of, id_of=_name_of)
        return PropertyPage(tuple(shown), following, len(found) if page.with_count else None)

    def set_property(self, kind: ResourceKind, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to everybody, or to operators only; NotFound."""
        return self._store.set_property_private(self._of(kind).kind, name, private=private, at=self._clock.now())

    def _visible(self, kind: ResourceKind, viewer: Viewer) -> Visible:
        shape = self._of(kind).shape
        return Visible(self._store.catalog(kind), shape, viewer)

    def _of(self, kind: ResourceKind) -> Kind:
        if kind not in self._kinds:
            known = sorted(self._kinds)
            raise NotFound(
                f"resources of the kind {kind[:80]!r} are not served; served are {', '.join(known)}, and an "
                "operator can enable types of other kinds",
                code="kind_not_found",
                data={"kinds": known},
            )
        return self._kinds[kind]


def _find_in_maintenance(runtime: Runtime, kind: ResourceKind, before: Moment | None) -> Collection[int] | None:
    """Return the resources that are in maintenance now or before a moment, by id; None if that is not asked for."""
    if before is None:
        return None
    now = to_second(runtime.clock.now())
    end = now if before is NOW else before
    return runtime.store.maintenances.find_closed(kind, Window(now, max(end, now + timedelta(seconds=1))))


def _by_resource(resources: Iterable[Resource], allocations: Iterable[Allocation]) -> tuple[ResourceAllocations, ...]:
    found: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        found[allocation.resource_id].append(allocation)
    return tuple(ResourceAllocations(resource, tuple(found[resource.id])) for resource in resources)


def _name_of(values: PropertyValues) -> str:
    return values.property.name
