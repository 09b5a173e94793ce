# SPDX-License-Identifier: Apache-2.0
"""Values of the model as hypothesis makes them up: everything that a call may carry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from blazar.model.amounts import Amounts
from blazar.model.demand import Allocation, ResourceAllocations
from blazar.model.lease import (
    Content,
    Event,
    EventStatus,
    EventType,
    Lease,
    LeaseRevision,
    LeaseStatus,
    Reservation,
    ReservationStatus,
    SavedAllocation,
    SavedState,
)
from blazar.model.requests import (
    NOW,
    Actor,
    EventRequest,
    LeaseChange,
    LeaseRequest,
    Registration,
    ReservationChange,
    ReservationRequest,
    ResourceChange,
)
from blazar.model.resource import KINDS, PropertyValues, Resource, ResourceProperty, UnitLimits
from blazar.model.window import Window

texts = st.text(max_size=12)
numbers = st.integers(-(2**63), 2**63)
floats = st.floats(allow_nan=False, allow_infinity=False)
instants = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1)).map(
    lambda instant: instant.replace(microsecond=0, fold=0, tzinfo=UTC)
)
moments = instants | st.just(NOW)
windows = st.builds(
    lambda start, seconds: Window(start, start + timedelta(seconds=seconds)), instants, st.integers(1, 10**8)
)
json = st.recursive(
    st.none() | st.booleans() | numbers | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
parameters = st.dictionaries(texts, json, max_size=4)
facts = st.dictionaries(texts, st.none() | st.booleans() | numbers | floats | texts, max_size=5)
words = st.dictionaries(texts, texts, max_size=3)
amounts = st.dictionaries(texts, st.integers(0, 2**40), max_size=3).map(Amounts.of)


def several(strategy: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


contents = parameters.map(Content)
saved_states = st.builds(
    SavedState,
    allocations=st.none() | several(st.builds(SavedAllocation, texts, numbers, numbers, st.none() | amounts), 2),
    undone=st.integers(0, 9),
    action_asked_at=st.none() | instants,
)
maybe_text = st.none() | texts
maybe_instant = st.none() | instants


events = st.builds(
    Event,
    id=texts,
    event_type=st.sampled_from([kind.value for kind in EventType]) | texts,
    time=maybe_instant,
    status=st.none() | st.sampled_from(EventStatus),
    created_at=instants,
    updated_at=maybe_instant,
    due_at=maybe_instant,
    claimed_by=maybe_text,
    claimed_at=maybe_instant,
    attempts=st.integers(0, 99),
    reason=maybe_text,
    saved_state=st.none() | saved_states,
)
reservations = st.builds(
    Reservation,
    id=texts,
    resource_type=texts,
    resource_id=maybe_text,
    status=st.sampled_from(ReservationStatus),
    created_at=instants,
    updated_at=maybe_instant,
    missing_resources=st.booleans(),
    resources_changed=st.booleans(),
    parameters=contents,
    cloud_ids=contents,
    # One at most: the order in which a set prints is not that of another with the same members.
    unassigned=st.frozensets(numbers, max_size=1),
)
leases = st.builds(
    Lease,
    id=texts,
    name=texts,
    user_id=texts,
    project_id=texts,
    window=windows,
    status=st.sampled_from(LeaseStatus),
    created_at=instants,
    updated_at=maybe_instant,
    trust_id=maybe_text,
    degraded=st.booleans(),
    deleted_at=maybe_instant,
    revision=st.integers(0, 2**31),
    reservations=several(reservations, 2),
    events=several(events, 2),
)
revisions = st.builds(LeaseRevision, id=texts, revision=st.integers(0, 2**31))
lease_requests = st.builds(
    LeaseRequest,
    name=texts,
    user_id=texts,
    project_id=texts,
    start=moments,
    end=moments,
    before_end=maybe_instant,
    reservations=several(st.builds(ReservationRequest, texts, parameters)),
    events=several(st.builds(EventRequest, texts, maybe_instant)),
    operator=st.booleans(),
)
lease_changes = st.builds(
    LeaseChange,
    name=maybe_text,
    start=st.none() | moments,
    end=st.none() | moments,
    before_end=maybe_instant,
    reservations=several(st.builds(ReservationChange, texts, parameters, maybe_text)),
    asked_by=st.none() | st.builds(Actor, texts, texts, st.booleans()),
)
resources = st.builds(
    Resource,
    id=st.integers(1, 2**31),
    kind=st.sampled_from(KINDS),
    external_id=texts,
    name=texts,
    attributes=facts,
    capabilities=words,
    capacity=amounts,
    reservable=st.booleans(),
    created_at=instants,
    updated_at=maybe_instant,
    limits=st.dictionaries(texts, st.builds(UnitLimits, *[st.integers(1, 2**31)] * 3), max_size=2),
    # Of several, equal sets would not always print the same.
    traits=st.frozensets(texts, max_size=1),
    disabled=st.booleans(),
    failure=maybe_text,
    failed_since=maybe_instant,
    authorized_projects=st.none() | st.frozensets(texts, max_size=1),
)
allocations = st.builds(
    Allocation,
    resource_id=st.integers(1, 2**31),
    lease_id=texts,
    reservation_id=texts,
    window=windows,
    count=st.integers(1, 99),
    per_instance=st.none() | amounts,
)
properties = st.builds(
    ResourceProperty,
    id=texts,
    kind=st.sampled_from(KINDS),
    name=texts,
    private=st.booleans(),
    created_at=instants,
    updated_at=maybe_instant,
)

projects = st.none() | several(texts)
registrations = st.builds(Registration, parameters, words, st.booleans(), projects)
resource_changes = st.builds(
    ResourceChange,
    st.dictionaries(texts, maybe_text, max_size=3),
    st.none() | st.booleans(),
    projects,
    st.booleans(),
)

kinds = st.sampled_from(KINDS)
ARGUMENTS: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "leases.all": {"project_id": maybe_text},
    "leases.revisions": {"project_id": maybe_text},
    "leases.by_id": {"lease_ids": st.lists(texts)},
    "leases.one": {"lease_id": texts},
    "leases.create": {"request": lease_requests},
    "leases.update": {"lease_id": texts, "change": lease_changes},
    "leases.delete": {"lease_id": texts},
    "resources.all": {"kind": kinds},
    "resources.one": {"kind": kinds, "resource_id": texts},
    "resources.register": {"kind": kinds, "request": registrations},
    "resources.change": {"kind": kinds, "resource_id": texts, "change": resource_changes},
    "resources.refresh": {"kind": kinds, "resource_id": texts},
    "resources.unregister": {"kind": kinds, "resource_id": texts},
    "resources.move": {"kind": kinds, "resource_id": texts, "reservation_id": texts},
    "resources.allocations": {
        "kind": kinds,
        "resource_id": maybe_text,
        "lease_id": maybe_text,
        "reservation_id": maybe_text,
    },
    "resources.properties": {"kind": kinds, "include_private": st.booleans()},
    "resources.set_property": {"kind": kinds, "name": texts, "private": st.booleans()},
}
ANSWERS: dict[str, st.SearchStrategy[object]] = {
    "leases.all": several(leases),
    "leases.revisions": several(revisions),
    "leases.by_id": several(leases),
    "leases.one": leases,
    "leases.create": leases,
    "leases.update": leases,
    "leases.delete": st.none(),
    "resources.all": several(resources),
    "resources.one": resources,
    "resources.register": resources,
    "resources.change": resources,
    "resources.refresh": resources,
    "resources.unregister": st.none(),
    "resources.move": st.builds(ResourceAllocations, resources, several(allocations)),
    "resources.allocations": several(st.builds(ResourceAllocations, resources, several(allocations))),
    "resources.properties": several(st.builds(PropertyValues, properties, several(texts))),
    "resources.set_property": properties,
}
