# SPDX-License-Identifier: Apache-2.0
"""The resource service: the operations of operators on the resources of each kind."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.enabling import Enabling
from blazar.manager.health.healing import Healing
from blazar.manager.health.health import VANISHED
from blazar.manager.health.monitor import Monitor
from blazar.manager.requests import resource_lists, visible_lists
from blazar.manager.requests.pages import page_of
from blazar.manager.requests.visible import Visible
from blazar.model.calendar import Viewer
from blazar.model.clock import to_second, zulu
from blazar.model.demand import Allocation, ResourceAllocations
from blazar.model.errors import BlazarError, Conflict, InvalidInput, NotFound
from blazar.model.lease import Json, Reservation
from blazar.model.paging import Page
from blazar.model.requests import NOW, Disabling, Moment, Registration, ResourceChange
from blazar.model.resource import (
    PropertyValues,
    Resource,
    ResourceDetails,
    ResourceKind,
    ResourceProperty,
    check_edits,
    noun,
)
from blazar.model.resource_kinds import KindList
from blazar.model.resource_pages import (
    AllocationPage,
    AllocationQuestion,
    Candidate,
    PropertyPage,
    ResourcePage,
    ResourceQuestion,
    VisiblePage,
    VisibleResource,
)
from blazar.model.window import Window
from blazar.resources.complete import required_properties
from blazar.resources.kinds import CloudResource, CompleteKind, as_stored

LOG = logging.getLogger(__name__)

LONGEST_KEY = 64

RESERVED_IDS = frozenset({"allocations", "candidates", "properties"})
"""What stands in the place of an id in paths of the API."""


class ResourceService:
    """Registers, changes and unregisters resources, and lists their allocations."""

    def __init__(
        self,
        runtime: Runtime,
        kinds: Mapping[ResourceKind, CompleteKind],
        healing: Healing,
        monitor: Monitor,
        enabling: Enabling,
    ) -> None:
        self._runtime = runtime
        self._store = runtime.store.resources
        self._clock = runtime.clock
        self._kinds = kinds
        self._healing = healing
        self._monitor = monitor
        self._enabling = enabling

    def all(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources, oldest first."""
        return self._store.of_kind(self._of(kind).kind)

    def page(self, kind: ResourceKind, question: ResourceQuestion) -> ResourcePage:
        """Return a page of the registered resources, in two statements at most while none changes. InvalidInput."""
        catalog = self._store.catalog(self._of(kind).kind)
        return resource_lists.page(catalog, question, within=self._in_maintenance(kind, question.maintenance_before))

    def _in_maintenance(self, kind: ResourceKind, before: Moment | None) -> Collection[int] | None:
        """Return the resources that are in maintenance now or before a moment, by id; None if that is not asked for."""
        if before is None:
            return None
        now = to_second(self._clock.now())
        end = now if before is NOW else before
        return self._runtime.store.maintenances.closed(kind, Window(now, max(end, now + timedelta(seconds=1))))

    def one(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Return one resource; NotFound."""
        return self._store.one(self._of(kind).kind, resource_id)

    def kinds(self) -> KindList:
        """Return the kinds that are served; no statement."""
        types: dict[ResourceKind, dict[str, Json | None]] = defaultdict(dict)
        for name, each in self._runtime.types.items():
            types[each.kind][name] = each.schema
        return KindList(tuple(each.described(types[kind]) for kind, each in sorted(self._kinds.items())))

    def visible_page(self, kind: ResourceKind, question: ResourceQuestion, viewer: Viewer) -> VisiblePage:
        """Return a page of the resources as a member may see them; one statement as for ``page``. InvalidInput."""
        return visible_lists.page(self._visible(kind, viewer), kind, question)

    def visible(self, kind: ResourceKind, resource_id: str, viewer: Viewer) -> VisibleResource:
        """Return one resource as a member may see it; NotFound if it may not."""
        return visible_lists.one(self._visible(kind, viewer), kind, resource_id)

    def candidates(self, kind: ResourceKind) -> tuple[Candidate, ...]:
        """Return what the cloud has of a kind, with the ids of those that are registered. CloudError."""
        plain, registered = self._of(kind), self._store.catalog(kind).resources
        with scope(limit=self._runtime.settings.request_limit):
            found = plain.candidates(registered)
        ids = {(each.region, each.name): each.external_id for each in registered}
        return tuple(replace(each, resource_id=each.resource_id or ids.get((each.region, each.name))) for each in found)

    def register(self, kind: ResourceKind, request: Registration) -> Resource:
        """Register a resource that is not in use. If this fails, changes of the cloud are undone."""
        plain = self._of(kind)
        request = plain.located(request)
        _check_keys(plain, request.capabilities)
        disabling = self._dated(request.disabling)
        with scope(limit=self._runtime.settings.request_limit):
            in_cloud = plain.find(request)
            if in_cloud.external_id in RESERVED_IDS:
                raise InvalidInput(f"the id {in_cloud.external_id} has a meaning of its own in paths of the API")
            if self._store.named(kind, in_cloud.name, region=in_cloud.region) is not None:
                raise Conflict(f"{noun(kind)} {in_cloud.name} is registered already", code="already_registered")
            details = plain.details(in_cloud)
            made = plain.enter(in_cloud)
            try:
                added = self._store.add(
                    kind,
                    external_id=in_cloud.external_id,
                    name=in_cloud.name,
                    details=details,
                    capabilities=request.capabilities,
                    disabled=request.disabled,
                    open_to=request.open_to,
                    disabling=disabling,
                    region=in_cloud.region,
                    at=self._clock.now(),
                )
            except Conflict:
                # Another request registered it at the same time: what is in the cloud belongs to that registration.
                raise
            except Exception:
                if made:
                    plain.leave(in_cloud)
                raise
            self._enabling.wake()
            return added

    def change(self, kind: ResourceKind, resource_id: str, change: ResourceChange) -> Resource:
        """Set and remove capabilities, disable or enable, set the projects that may use it: all or nothing.

        Conflict if a live reservation on the resource asks for a capability or an attribute, or more is promised than
        there would be. Its allocations stay. What it has already is no change.
        """
        if replace(change, edits=None) == ResourceChange({}):
            raise InvalidInput("nothing to change: give at least one capability as key and value")
        plain = self._of(kind)
        _check_keys(plain, change.capabilities)
        resource = self.one(kind, resource_id)
        details: ResourceDetails | None = None
        if change.attributes:
            details = plain.redescribed(resource, change.attributes)
            differ = {name for name in change.attributes if details.attributes[name] != resource.attributes[name]}
            # The others are of this moment: a change by somebody else meanwhile is not lost.
            change = replace(
                change,
                attributes={name: details.attributes[name] for name in differ},
                edits=(resource.edits,) if change.edits is None else change.edits,
            )
        if change.disabling is not None:
            change = replace(change, disabling=self._dated(change.disabling))
        if change.is_made(resource):
            check_edits(resource.edits, change.edits)
            return resource
        changed = self._store.change(
            resource.id,
            change,
            at=self._clock.now(),
            check=partial(self._check_not_required, noun(kind)),
            details=details,
        )
        if changed.disabled_until is not None:
            self._enabling.wake()
        return changed

    def refresh(self, kind: ResourceKind, resource_id: str) -> Resource:
        """Update a resource from the cloud (attributes, capacity, limits, traits) and return it; NotFound.

        Its allocations stay, even if it has less capacity now. If reservations in use lack it, it is assigned to them
        again; if it is not prepared for reservations any more, as after it had vanished from the cloud, it is prepared
        again. Its state, healthy or failed, is updated at once, without waiting for more polls.
        """
        plain = self._of(kind)
        with scope(limit=self._runtime.settings.request_limit):
            resource = self.one(kind, resource_id)
            polled = plain.refresh(
                resource,
                self._monitor.uses(kind, resource.region),
                lambda in_cloud: self._enter_again(plain, resource, in_cloud),
            )
            if polled.details:
                self._store.refresh(kind, polled.details, at=self._clock.now())
        failure = polled.failures.get(resource.name, VANISHED)
        if failure is not None:
            self._store.set_failed(kind, {resource.id: failure}, at=self._clock.now())
        else:
            self._store.set_recovered(kind, (resource.id,), at=self._clock.now())
        self._monitor.heal_soon()
        return self.one(kind, resource_id)

    def unregister(self, kind: ResourceKind, resource_id: str, *, edits: tuple[int, ...] | None = None) -> None:
        """Unregister a resource. Conflict while it is allocated or in use; it then stays registered.

        PreconditionFailed if its edits are none of those that were asked for.
        """
        plain = self._of(kind)
        with scope(limit=self._runtime.settings.request_limit):
            resource = self.one(kind, resource_id)
            # First, so that no allocation comes in between; after a crash the resource can be unregistered again.
            self._store.withdraw(resource.id, at=self._clock.now(), edits=edits)
            self._leave(plain, resource)
            self._store.retire(resource.id, at=self._clock.now())
            self._leave_again(plain, resource)

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
        allocations = self._runtime.store.calendar.live(
            kind,
            resource_id=None if resource_id is None else resources[0].id,
            lease_id=lease_id,
            reservation_id=reservation_id,
            ending_after=None if narrowed else self._clock.now(),
        )
        return _by_resource(resources, allocations)

    def allocation_page(self, kind: ResourceKind, question: AllocationQuestion) -> AllocationPage:
        """Return a page of the registered resources with their allocations, in two statements. InvalidInput."""
        with self._runtime.store.calendar.over_time(self._of(kind).kind) as view:
            found = resource_lists.page(view.catalog, ResourceQuestion(question.page))
            narrowed = resource_lists.values_by_key(question.conditions)
            allocations = view.live(
                {"resource_id": [each.id for each in found.items], **narrowed},
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

    def _dated(self, disabling: Disabling) -> Disabling:
        """Return a disabling with the instant until which it lasts. InvalidInput if that has passed."""
        now = to_second(self._clock.now())
        until = disabling.until
        if disabling.lasting is not None:
            try:
                until = disabling.lasting.after(now)
            except (OverflowError, ValueError):
                raise InvalidInput("disabled.until is beyond the last date", pointer="/disabled/until") from None
        if until is not None and until <= now:
            raise InvalidInput(
                f"disabled.until is {zulu(until)}, which has passed; give a later date, or null",
                code="date_in_past",
                pointer="/disabled/until",
                data={"now": zulu(now)},
            )
        return Disabling(disabling.reason, until)

    def _visible(self, kind: ResourceKind, viewer: Viewer) -> Visible:
        shape = self._of(kind).shape
        return Visible(self._store.catalog(kind), shape, viewer)

    def _of(self, kind: ResourceKind) -> CompleteKind:
        if kind not in self._kinds:
            known = sorted(self._kinds)
            raise NotFound(
                f"resources of the kind {kind[:80]!r} are not served; served are {', '.join(known)}, and an "
                "operator can enable types of other kinds",
                code="kind_not_found",
                data={"kinds": known},
            )
        return self._kinds[kind]

    def _check_not_required(
        self, word: str, capabilities: frozenset[str], reservations: Collection[Reservation]
    ) -> None:
        for reservation in reservations:
            if needed := sorted(capabilities & required_properties(self._runtime.types, reservation)):
                raise Conflict(
                    f"{', '.join(needed)} cannot be changed: reservation {reservation.id} asks for it on this {word}",
                    code="resource_in_use",
                )

    def _enter_again(self, plain: CompleteKind, resource: Resource, in_cloud: CloudResource) -> None:
        """Ensure that a resource that is back is prepared. NotFound if it was unregistered meanwhile."""
        plain.enter(in_cloud)
        try:
            self._store.one(resource.kind, resource.external_id)
        except NotFound:
            # Its deletion checked for the last time before this resource was prepared.
            plain.leave(in_cloud)
            raise

    def _leave(self, plain: CompleteKind, resource: Resource) -> None:
        try:
            plain.check_unused(as_stored(resource))
            plain.leave(as_stored(resource))
        except Exception:
            # Whatever went wrong: the resource stays registered, and must take allocations again.
            try:
                plain.enter(plain.current(resource))
            except NotFound:
                LOG.warning(
                    "%s %s cannot be unregistered; it is not prepared again, as the cloud does not know it",
                    noun(resource.kind).capitalize(),
                    resource.name,
                )
            finally:
                self._store.set_reservable(resource.id, True, at=self._clock.now())
            raise

    def _leave_again(self, plain: CompleteKind, resource: Resource) -> None:
        """Ensure that an unregistered resource has left: a refresh may have prepared it meanwhile."""
        if not plain.enters:
            return
        if self._store.named(resource.kind, resource.name, region=resource.region) is not None:
            # It was registered again, and belongs there.
            return
        try:
            plain.leave(as_stored(resource))
        except BlazarError as error:
            LOG.warning(
                "%s %s is unregistered, but may still be prepared for reservations: %s",
                noun(resource.kind).capitalize(),
                resource.name,
                error.message,
            )


def _by_resource(resources: Iterable[Resource], allocations: Iterable[Allocation]) -> tuple[ResourceAllocations, ...]:
    found: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        found[allocation.resource_id].append(allocation)
    return tuple(ResourceAllocations(resource, tuple(found[resource.id])) for resource in resources)


def _name_of(values: PropertyValues) -> str:
    return values.property.name


def _check_keys(kind: CompleteKind, capabilities: Mapping[str, str | None]) -> None:
    for key in capabilities:
        if len(key) > LONGEST_KEY:
            raise InvalidInput(
                f"Extra capability key too long: {key[:80]!r} has {len(key)} characters, at most 64 fit",
                pointer="/properties",
            )
        if not key.strip():
            raise InvalidInput("a capability needs a name; its key is empty", pointer="/properties")
        if key in kind.own_properties:
            sentence = f"{key} is read from the cloud and cannot be set; choose another key"
            raise InvalidInput(sentence, pointer=f"/properties/{key}")
