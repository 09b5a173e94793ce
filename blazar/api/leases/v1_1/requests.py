# SPDX-License-Identifier: Apache-2.0
"""Turn requests about leases of 1.1 into requests to the manager."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from blazar.api.http.bodies import InvalidBody, check, gather, is_same
from blazar.api.http.identity import Caller
from blazar.api.http.queries import Query
from blazar.api.http.shapes import Json
from blazar.api.leases.limits import check_documents, check_text, check_text_after
from blazar.api.leases.rules import View
from blazar.api.leases.v1_1 import render, schemas
from blazar.api.leases.v1_1.reminders import parse_reminders
from blazar.model.base import dates
from blazar.model.base.dates import in_body
from blazar.model.base.errors import Denied, InvalidInput, pointer_to, pointing_at, query_field
from blazar.model.base.moments import NOW, BeforeEnd, Duration, End, Moment
from blazar.model.base.paging import Condition
from blazar.model.leases.details import LeaseDetails, LeaseFilter, LeaseState
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import (
    Actor,
    LeaseChange,
    LeaseDefaults,
    LeaseRequest,
    ReservationChange,
    ReservationRequest,
)
from blazar.model.leases.states import LeaseKind
from blazar.model.resources.requirements import parse_requirement
from blazar.resources.contract.parameters import check_unnamed
from blazar.resources.request_schemas import SCHEMAS, default_values

_REQUIREMENTS = ("hypervisor_properties", "network_properties", "resource_properties")
_NOTHING: Mapping[str, Any] = {}
GIVE_UP = "give_up"
"""The hosts that a change takes from a reservation; no parameter, as it is done once."""

Schemas = Mapping[str, Json]
"""What requests for reservations may have, by resource type."""

_PARTS = {"reservations": frozenset({"reservations", "conditions"}), "events": frozenset({"events", "conditions"})}
_EVENTS = _PARTS["events"] | {"before_end_date", "confirm_by"}


def new_lease(
    body: Json, caller: Caller, view: View, schemas_of: Schemas, *, dry_run: bool, defaults: LeaseDefaults
) -> LeaseRequest:
    """Return the request for a new lease. InvalidInput."""
    check_text(body)
    start, end, before_end = _dates(body)
    return LeaseRequest(
        name=body["name"],
        user_id=caller.user_id,
        project_id=caller.project_id,
        start=NOW if start is None else start,
        end=end or NOW,
        before_end=before_end,
        reservations=reservations(body["reservations"], view, schemas_of),
        operator=view.operator,
        exact=True,
        dry_run=dry_run,
        kind=LeaseKind(body.get("kind", defaults.kind)),
        wait_until=_until(body, "wait"),
        tries=(body.get("wait") or {}).get("tries"),
        latest_start=_latest(body),
        at_least=_at_least(body),
        extend_until=_until(body, "extend_if_free"),
        reminders=parse_reminders(body) or (),
        max_price=body.get("max_price"),
        keep_hosts=body.get("keep_hosts", defaults.keeps_hosts(names=view.names, operator=view.operator)),
        confirm_within=_confirm_within(body),
        quoted_at=parse_quoted_at(body),
    )


def reservations(items: Sequence[Json], view: View, schemas_of: Schemas) -> tuple[ReservationRequest, ...]:
    """Return the requests for reservations, with the defaults of their types; ``schemas_of`` are those of all types.

    The schema of the body has checked those of our types. InvalidInput if one of another package does not fit its
    schema, or if a requirement is malformed, or names hosts to somebody who may not see their names.
    """
    for number, item in enumerate(items):
        kind = item["resource_type"]
        if kind in schemas_of and kind not in SCHEMAS:
            given = {key: value for key, value in item.items() if key not in ("resource_type", "region")}
            check(given, schemas_of[kind], pointer=pointer_to(("reservations", number)))
        _check_names(item, kind, number, view)
    check_documents(items, schemas_of)
    return tuple(_reservation(item, schemas_of) for item in items)


def _check_names(item: Json, resource_type: str, number: int, view: View, before: Mapping[str, Any] = _NOTHING) -> None:
    """Check the requirements on hosts of a reservation; those that it has ``before`` a change may stay."""
    # Types of other packages check their own fields, those of ours that have no hosts name none, and ids of generic
    # resources and devices are everybody's to see.
    unchecked = ("generic", "device", "virtual:volume")
    known = {} if resource_type in unchecked else SCHEMAS.get(resource_type, {"properties": {}})["properties"]
    fields = [field for field in _REQUIREMENTS if field in known]
    with pointing_at(pointer_to(("reservations", number))):
        for field in fields:
            wanted = parse_requirement(item.get(field), field=field)
            if not (view.operator or view.names) and wanted != parse_requirement(before.get(field), field=field):
                check_unnamed(wanted, fields[: fields.index(field) + 1])


def _reservation(item: Json, schemas_of: Schemas) -> ReservationRequest:
    kind = item["resource_type"]
    given = {**default_values(schemas_of[kind]), **item} if kind in schemas_of else dict(item)
    if kind == "physical:host":
        given.setdefault("max", given["min"])
    return ReservationRequest(kind, _parameters(given))


def lease_change(
    body: Json, lease: Callable[[], LeaseDetails], caller: Caller, view: View, *, dry_run: bool
) -> LeaseChange:
    """Return the change of a lease that the caller asks for. InvalidInput for what the schema cannot say.

    The lease is read only if its reservations are to change: nothing else of a request depends on it.
    """
    items = body.get("reservations", [])
    if items:
        known = lease()
        items = _without_read_only(items, known, view)
        _check_changes(items, known.lease, view)
        check_text_after({**body, "reservations": items}, known.lease)
    start, end, before_end = _dates(body)
    return LeaseChange(
        name=body.get("name"),
        start=start,
        end=end,
        before_end=before_end,
        reservations=tuple(_change_of(item) for item in items),
        asked_by=Actor(caller.user_id, caller.project_id, view.operator),
        resets_before_end="before_end_date" in body and body["before_end_date"] is None,
        extend_until=_until(body, "extend_if_free"),
        stops_extending="extend_if_free" in body and body["extend_if_free"] is None,
        reminders=parse_reminders(body),
        revisions=view.tags.wanted(),
        exact=True,
        dry_run=dry_run,
        max_price=body.get("max_price"),
        keep_hosts=body.get("keep_hosts"),
        names=view.names,
    )


def _change_of(item: Json) -> ReservationChange:
    parameters = _parameters(item)
    given_up = parameters.pop(GIVE_UP, ())
    return ReservationChange(item["id"], parameters, item.get("resource_type"), tuple(given_up))


def _without_read_only(items: Sequence[Json], details: LeaseDetails, view: View) -> list[Json]:
    """Return the changes without what the service sets and the client has sent back as it was shown.

    Many clients send a reservation whole, as they have read it. What differs stays, and is refused.
    """
    by_id = {reservation.id: reservation for reservation in details.lease.asked_for}
    shown = {reservation["id"]: reservation for reservation in render.lease(details, view)["reservations"]}
    changes = []
    for item in items:
        if (known := by_id.get(item["id"])) is None:
            changes.append(item)
            continue
        schema = schemas.CHANGES.get(known.resource_type)
        given = known.shown_parameters.keys() if schema is None else schema["properties"].keys()
        kept, there = given | {"id", "resource_type"}, shown[known.id]
        changes.append({k: v for k, v in item.items() if k in kept or k not in there or not is_same(v, there[k])})
    return changes


def with_all_faults(error: InvalidBody, body: Json, lease: Callable[[], LeaseDetails], view: View) -> InvalidInput:
    """Return the error about a body with what is wrong with its reservations, too, as far as that can be told."""
    items = body.get("reservations")
    if not isinstance(items, list) or not all(isinstance(item, dict) and "id" in item for item in items):
        return error
    places = [fault.at.name for fault in error.faults(operator=False) if fault.at is not None]
    if any(place.startswith("/reservations") for place in places):
        return error
    known = lease()
    try:
        _check_changes(_without_read_only(items, known, view), known.lease, view)
    except InvalidInput as more:
        return gather([error, more])
    return error


def _check_changes(items: Sequence[Json], lease: Lease, view: View) -> None:
    types = {reservation.id: reservation.resource_type for reservation in lease.reservations}
    seen: set[str] = set()
    refused: list[InvalidInput] = []
    for number, item in enumerate(items):
        pointer = pointer_to(("reservations", number))
        if item["id"] in seen:
            sentence = f"reservations[{number}].id occurs twice; put all changes of a reservation into one item"
            raise InvalidInput(sentence, at=f"{pointer}/id")
        if item["id"] not in types:
            sentence = f"reservations[{number}].id: the lease has no such reservation; send the id of one that it has"
            raise InvalidInput(sentence, code="unknown_reference", at=f"{pointer}/id")
        seen.add(item["id"])
        before = next(r.parameters.values for r in lease.reservations if r.id == item["id"])
        try:
            if (schema := schemas.CHANGES.get(types[item["id"]])) is not None:
                check(item, schema, pointer=pointer)
            _check_names(item, types[item["id"]], number, view, before)
        except InvalidInput as error:
            refused.append(error)
    if refused:
        raise gather(refused) if len(refused) > 1 else refused[0]


def lease_filter(query: Query, caller: Caller, view: View) -> LeaseFilter:
    """Return which leases a list has. Denied if somebody asks for another project's."""
    conditions = tuple(_condition(condition, caller, view) for condition in query.conditions)
    fields = query.fields
    return LeaseFilter(
        state=LeaseState(query.one("state", LeaseState.CURRENT)),
        project_id=None if view.operator else caller.project_id,
        text=query.one("text"),
        begin=query.one("from"),
        end=query.one("to"),
        conditions=conditions,
        with_reservations=fields is None or bool(fields & _PARTS["reservations"]),
        with_events=fields is None or bool(fields & _EVENTS),
        with_prices=fields is None or "price" in fields,
    )


def _condition(condition: Condition, caller: Caller, view: View) -> Condition:
    if view.operator:
        return condition
    if condition.key == "project_id" and set(condition.values) != {caller.project_id}:
        sentence = "leases of other projects are for operators; leave project_id out, or give your own project"
        raise Denied(sentence, at=query_field("project_id"))
    # Others know resources by their labels only, but for kinds whose ids everybody sees.
    return Condition("label", condition.operator, condition.values) if condition.key == "resource" else condition


def _until(body: Json, key: str, field: str = "until") -> datetime | Duration | None:
    """Return until when something is asked for: a date or a duration; None if it is not."""
    asked, place = body.get(key), in_body(key, field)
    if asked is None:
        return None
    zone = dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))
    until = dates.moment_or_duration(asked[field], place, zone=zone)
    if until is NOW:
        raise place.invalid("now", "a later date, or a duration such as +P3D")
    assert not isinstance(until, type(NOW))
    return until


def _latest(body: Json) -> datetime | Duration | None:
    """Return the latest start that will do for a lease that waits: a date, or a duration from its start."""
    wait = body.get("wait") or {}
    return _until(body, "wait", "latest") if "latest" in wait else None


def _at_least(body: Json) -> Duration | None:
    """Return how long a lease that waits has to be at least."""
    wait = body.get("wait") or {}
    if "at_least" not in wait:
        return None
    zone = dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))
    return dates.duration(wait["at_least"], in_body("wait", "at_least"), zone=zone)


def parse_quoted_at(body: Json) -> datetime | None:
    """Return when the price was quoted of what a request books; None: it does not say. InvalidInput."""
    return dates.date(body["quoted_at"], in_body("quoted_at")) if "quoted_at" in body else None


def _confirm_within(body: Json) -> Duration | None:
    """Return within what time a lease has to be confirmed; None: it is firm."""
    if "confirm_within" not in body:
        return None
    zone = dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))
    return dates.duration(body["confirm_within"], in_body("confirm_within"), zone=zone)


def _dates(body: Json) -> tuple[Moment | None, End | None, BeforeEnd]:
    zone = dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))
    start = dates.moment(body["start_date"], in_body("start_date"), zone=zone) if "start_date" in body else None
    end = dates.moment_or_duration(body["end_date"], in_body("end_date"), zone=zone) if "end_date" in body else None
    text = body.get("before_end_date")
    if text is None:
        return start, end, None
    before_end = dates.moment_or_duration(text, in_body("before_end_date"), zone=zone, backward=True)
    if before_end is NOW:
        raise in_body("before_end_date").invalid(text, "a date, a duration with its sign, or null")
    assert not isinstance(before_end, type(NOW))
    return start, end, before_end


def _parameters(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a reservation with requirements as text, as they are kept."""
    given = {key: value for key, value in item.items() if key not in ("id", "resource_type")}
    for key in _REQUIREMENTS:
        if key in given and not isinstance(given[key], str):
            given[key] = json.dumps(given[key]) if given[key] else ""
    return given
