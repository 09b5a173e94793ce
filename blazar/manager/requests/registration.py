# SPDX-License-Identifier: Apache-2.0
"""The registration of resources: what they are given, what is read of them again, and how they leave."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.health.monitor import Monitor
from blazar.manager.health.resource_states import VANISHED, ResourceEnabler
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import BlazarError, Conflict, InvalidInput, NotFound, check_revision
from blazar.model.energy.book import POWER_PROPERTIES, check_properties
from blazar.model.leases.reservation import Reservation
from blazar.model.resources.changes import Disabling, Registration, ResourceChange
from blazar.model.resources.pools import find_declared_twice, find_wrong_number
from blazar.model.resources.resource import (
    HOST,
    Resource,
    ResourceDetails,
    noun,
)
from blazar.resources.contract.kind import CloudResource, Kind, as_stored, details_with
from blazar.resources.contract.type import required_properties

LOG = logging.getLogger(__name__)

LONGEST_KEY = 64

RESERVED_IDS = frozenset({"allocations", "candidates", "properties"})
"""What stands in the place of an id in paths of the API."""


class ResourceRegistry:
    """Registers, changes and unregisters resources."""

    def __init__(self, runtime: Runtime, monitor: Monitor, enabler: ResourceEnabler) -> None:
        self._runtime = runtime
        self._store = runtime.store.resources
        self._clock = runtime.clock
        self._monitor = monitor
        self._enabler = enabler

    def register(self, plain: Kind, request: Registration) -> Resource:
        """Register a resource that is not in use. If this fails, changes of the cloud are undone."""
        request = plain.located(request)
        _check_keys(plain, request.capabilities)
        _check_of_host(plain, {}, request.capabilities)
        disabling = self._dated(request.disabling)
        with scope(limit=self._runtime.settings.request_limit):
            in_cloud = plain.find(request)
            if in_cloud.external_id in RESERVED_IDS:
                raise InvalidInput(f"the id {in_cloud.external_id} has a meaning of its own in paths of the API")
            if self._store.find_by_name(plain.kind, in_cloud.name, region=in_cloud.region) is not None:
                raise Conflict(f"{noun(plain.kind)} {in_cloud.name} is registered already", code="already_registered")
            details = plain.details(in_cloud)
            made = plain.enter(in_cloud)
            try:
                added = self._store.add(
                    plain.kind,
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
            self._enabler.wake()
            return added

    def change(self, plain: Kind, resource_id: str, change: ResourceChange) -> Resource:
        """Set and remove capabilities, disable or enable, set the projects that may use it: all or nothing.

        Conflict if a live reservation on the resource asks for a capability or an attribute, or more is promised than
        there would be. Its allocations stay. What it has already is no change.
        """
        if replace(change, revisions=None) == ResourceChange({}):
            raise InvalidInput("nothing to change: give at least one capability as key and value")
        _check_keys(plain, change.capabilities)
        resource = self._store.one(plain.kind, resource_id)
        _check_of_host(plain, resource.capabilities, change.capabilities)
        details: ResourceDetails | None = None
        if change.attributes:
            details = details_with(plain, resource, change.attributes)
            differ = {name for name in change.attributes if details.attributes[name] != resource.attributes[name]}
            # The others are of this moment: a change by somebody else meanwhile is not lost.
            change = replace(
                change,
                attributes={name: details.attributes[name] for name in differ},
                revisions=(resource.revision,) if change.revisions is None else change.revisions,
            )
        if change.disabling is not None:
            change = replace(change, disabling=self._dated(change.disabling))
        if change.is_made(resource):
            check_revision(resource.revision, change.revisions, "the resource has changed")
            return resource
        changed = self._store.change(
            resource.id,
            change,
            at=self._clock.now(),
            check=partial(self._check_not_required, noun(plain.kind)),
            details=details,
        )
        if changed.disabled_until is not None:
            self._enabler.wake()
        return changed

    def refresh(self, plain: Kind, resource_id: str) -> Resource:
        """Update a resource from the cloud (attributes, capacity, limits, traits) and return it; NotFound.

        Its allocations stay, even if it has less capacity now. If reservations in use lack it, it is assigned to them
        again; if it is not prepared for reservations any more, as after it had vanished from the cloud, it is prepared
        again. Its state, healthy or failed, is updated at once, without waiting for more polls.
        """
        with scope(limit=self._runtime.settings.request_limit):
            resource = self._store.one(plain.kind, resource_id)
            polled = plain.refresh(
                resource,
                self._monitor.polls.uses(plain.kind, resource.region),
                lambda in_cloud: self._enter_again(plain, resource, in_cloud),
            )
            if polled.details:
                self._store.refresh(plain.kind, polled.details, at=self._clock.now())
        failure = polled.failures.get(resource.name, VANISHED)
        if failure is not None:
            self._runtime.store.resource_health.set_failed(plain.kind, {resource.id: failure}, at=self._clock.now())
        else:
            self._runtime.store.resource_health.set_recovered(plain.kind, (resource.id,), at=self._clock.now())
        self._monitor.heal_soon()
        return self._store.one(plain.kind, resource_id)

    def unregister(self, plain: Kind, resource_id: str, *, revisions: tuple[int, ...] | None = None) -> None:
        """Unregister a resource. Conflict while it is allocated or in use; it then stays registered.

        PreconditionFailed if its revision is none of those that were asked for.
        """
        with scope(limit=self._runtime.settings.request_limit):
            resource = self._store.one(plain.kind, resource_id)
            # First, so that no allocation comes in between; after a crash the resource can be unregistered again.
            self._store.withdraw(resource.id, at=self._clock.now(), revisions=revisions)
            self._leave(plain, resource)
            self._store.retire(resource.id, at=self._clock.now())
            self._leave_again(plain, resource)

    def _dated(self, disabling: Disabling) -> Disabling:
        """Return a disabling with the instant until which it lasts. InvalidInput if that has passed."""
        now = to_second(self._clock.now())
        until = disabling.until
        if disabling.lasting is not None:
            try:
                until = disabling.lasting.after(now)
            except (OverflowError, ValueError):
                raise InvalidInput("disabled.until is beyond the last date", at="/disabled/until") from None
        if until is not None and until <= now:
            raise InvalidInput(
                f"disabled.until is {zulu(until)}, which has passed; give a later date, or null",
                code="date_in_past",
                at="/disabled/until",
                data={"now": zulu(now)},
            )
        return Disabling(disabling.reason, until)

    def _check_not_required(
        self, word: str, capabilities: frozenset[str], reservations: Collection[Reservation]
    ) -> None:
        for reservation in reservations:
            if needed := sorted(capabilities & required_properties(self._runtime.types, reservation)):
                raise Conflict(
                    f"{', '.join(needed)} cannot be changed: reservation {reservation.id} asks for it on this {word}",
                    code="resource_in_use",
                )

    def _enter_again(self, plain: Kind, resource: Resource, in_cloud: CloudResource) -> None:
        """Ensure that a resource that is back is prepared. NotFound if it was unregistered meanwhile."""
        plain.enter(in_cloud)
        try:
            self._store.one(resource.kind, resource.external_id)
        except NotFound:
            # Its deletion checked for the last time before this resource was prepared.
            plain.leave(in_cloud)
            raise

    def _leave(self, plain: Kind, resource: Resource) -> None:
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

    def _leave_again(self, plain: Kind, resource: Resource) -> None:
        """Ensure that an unregistered resource has left: a refresh may have prepared it meanwhile."""
        if not plain.has("enter"):
            return
        if self._store.find_by_name(resource.kind, resource.name, region=resource.region) is not None:
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


def _check_keys(kind: Kind, capabilities: Mapping[str, str | None]) -> None:
    for key in capabilities:
        if len(key) > LONGEST_KEY:
            raise InvalidInput(
                f"Extra capability key too long: {key[:80]!r} has {len(key)} characters, at most 64 fit",
                at="/properties",
            )
        if not key.strip():
            raise InvalidInput("a capability needs a name; its key is empty", at="/properties")
        if key in kind.own_properties:
            sentence = f"{key} is read from the cloud and cannot be set; choose another key"
            raise InvalidInput(sentence, at=f"/properties/{key}")
        if kind.kind == HOST and (wrong := find_wrong_number(key, capabilities[key])):
            raise InvalidInput(f"{key[:80]} is {capabilities[key]!r:.80}; {wrong}", at=f"/properties/{key}")


def _check_of_host(kind: Kind, before: Mapping[str, str], new: Mapping[str, str | None]) -> None:
    """Raise InvalidInput if the properties of a host would give two numbers for the cards of one class.

    The same if those that tell of its energy are changed to what cannot be read.
    """
    if kind.kind != HOST:
        return
    kept = {name: value for name, value in {**before, **new}.items() if value is not None}
    if not new.keys().isdisjoint(POWER_PROPERTIES):
        check_properties(kept)
    if (twice := find_declared_twice(kept)) is not None:
        sentence = f"{twice[0]} and {twice[1]} declare the same cards; remove one of them"
        raise InvalidInput(sentence, at=f"/properties/{twice[1]}")
