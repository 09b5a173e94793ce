# SPDX-License-Identifier: Apache-2.0
"""``/v1/maintenances``, from version 1.1 on: operators book hosts out for a time, over existing leases."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache, partial

from blazar.api.http.answers import IF_MATCH, Answer, Tags, link, link_pages
from blazar.api.http.bodies import normalize
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import filter_by, option, paging
from blazar.api.http.readers import Choice, Flag
from blazar.api.http.routes import ADMIN, Body, Caching, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import LINKS, NUMBER, Json, a_list, an_object, ref
from blazar.api.kinds.hosts.requests import PUT as UPDATE_HOST
from blazar.api.kinds.hosts.routes import MOVE
from blazar.api.maintenance.components import CHANGE, CHANGES, COMPONENTS, CREATE, CREATED, KEYS
from blazar.model.base import dates
from blazar.model.base.dates import in_body
from blazar.model.base.errors import InvalidInput, PreconditionFailed
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.maintenance.windows import (
    ActivePolicy,
    Maintenance,
    MaintenanceChange,
    MaintenanceQuestion,
    MaintenanceRequest,
    MaintenanceStatus,
    PendingPolicy,
    affected_lease_json,
    impact_json,
    maintenance_json,
)

GET = Rule("blazar:maintenances:get", ADMIN, "List and show maintenance windows, with the leases that they affect.")
# A window takes hosts out of use, as a change of a host does, and moves reservations to other hosts.
_HOSTS = f"{ADMIN} and {all_of(UPDATE_HOST, MOVE)}"
POST = Rule("blazar:maintenances:post", _HOSTS, "Open a maintenance window, or see what it would do.")
PATCH = Rule("blazar:maintenances:update", _HOSTS, "Change the time or the name of a maintenance window.")
DELETE = Rule("blazar:maintenances:delete", _HOSTS, "Cancel a maintenance window that has not begun.")
END = Rule("blazar:maintenances:end", _HOSTS, "End a maintenance window that has begun before its time.")

# What becomes of leases goes on without a new revision of the window.
_TAGS = Tags("-m", parted=True)


def index(call: Call) -> Answer:
    """List maintenance windows, without their leases."""
    asked = call.asked
    wanted = [set(condition.values) for condition in asked.conditions if condition.key == "status"]
    statuses = tuple(status for status in MaintenanceStatus if all(str(status) in values for values in wanted))
    if wanted and not statuses:
        return link_pages({"maintenances": [], **({"count": 0} if asked.one("with_count", False) else {})}, None)
    question = MaintenanceQuestion(asked.page("created_at"), statuses if wanted else ())
    page = call.manager.maintenances.page(question)
    found: Json = {"maintenances": [asked.only(dict(maintenance_json(maintenance))) for maintenance in page.items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


def show(call: Call, maintenance_id: str) -> Answer:
    """Show a maintenance window with its leases."""
    return _written(call.manager.maintenances.one(identifier(maintenance_id)))


def create(call: Call) -> Answer:
    """Open a maintenance window; with ``dry_run`` show what it would do."""
    dry_run = call.asked.one("dry_run", False)
    body = call.checked(normalize(call.read()))
    found = call.manager.maintenances.create(_request(body), dry_run=dry_run)
    if found.maintenance is None:
        return Answer({"impact": impact_json(found.impact)}, status=200)
    headers = {"Location": link(f"/v1/maintenances/{found.maintenance.id}")}
    return _written(found.maintenance, headers=headers)


def change(call: Call, maintenance_id: str) -> Answer:
    """Change a maintenance window; with ``dry_run`` show what that would do. What is as it was shown stays."""
    dry_run = call.asked.one("dry_run", False)
    read = cache(lambda: call.manager.maintenances.one(identifier(maintenance_id)))

    def current() -> None:
        _TAGS.check(read().revision)

    body = call.changes(lambda: _render(read()), current=current)
    if not body and not dry_run:
        current()
        return _written(read())
    wanted = MaintenanceChange(
        name=body.get("name"),
        start=_start(body) if "start_date" in body else None,
        end=_end(body) if "end_date" in body else None,
        impact_id=body.get("impact_id"),
        revisions=_TAGS.wanted(),
    )
    try:
        found = call.manager.maintenances.change(identifier(maintenance_id), wanted, dry_run=dry_run)
    except PreconditionFailed as error:
        raise _TAGS.refused(error) from error
    if found.maintenance is None:
        return Answer({"impact": impact_json(found.impact)})
    return _written(found.maintenance)


def end(call: Call, maintenance_id: str) -> Answer:
    """End a maintenance window now."""
    try:
        return _written(call.manager.maintenances.end(identifier(maintenance_id), _TAGS.wanted()))
    except PreconditionFailed as error:
        raise _TAGS.refused(error) from error


def delete(call: Call, maintenance_id: str) -> None:
    """Cancel a maintenance window."""
    try:
        call.manager.maintenances.delete(identifier(maintenance_id), _TAGS.wanted())
    except PreconditionFailed as error:
        raise _TAGS.refused(error) from error


def _request(body: Json) -> MaintenanceRequest:
    """Return the request for a window. InvalidInput."""
    if ("hosts" in body) == ("requirement" in body):
        both = "both hosts and requirement are given; leave one of them out"
        neither = "hosts is missing; give the ids of hosts, or a requirement"
        raise InvalidInput(
            both if "hosts" in body else neither,
            code="invalid_value" if "hosts" in body else "missing_field",
            at="/requirement" if "hosts" in body else "/hosts",
        )
    if body.get("active") == "end":
        raise InvalidInput(
            "active is end, which this service does not do: it ends no lease for maintenance; give list or migrate",
            at="/active",
        )
    requirement = body.get("requirement")
    return MaintenanceRequest(
        name=body["name"],
        reason=body.get("reason"),
        start=_start(body),
        end=_end(body),
        hosts=tuple(body.get("hosts", ())),
        requirement=requirement if requirement is None or isinstance(requirement, str) else json.dumps(requirement),
        pending=PendingPolicy(body.get("pending", PendingPolicy.MOVE)),
        disable_service=body.get("disable_service", False),
        impact_id=body.get("impact_id"),
        active=ActivePolicy(body.get("active", ActivePolicy.LIST)),
    )


def _start(body: Json) -> Moment:
    return dates.moment(body["start_date"], in_body("start_date"))


def _end(body: Json) -> datetime | Duration:
    place = in_body("end_date")
    found = dates.moment_or_duration(body["end_date"], place)
    if found is NOW:
        raise place.invalid("now", "a later date, or a duration such as +PT12H; POST …/end ends a window now")
    assert isinstance(found, datetime | Duration)
    return found


def _render(maintenance: Maintenance) -> Json:
    return {**maintenance_json(maintenance), "leases": [affected_lease_json(lease) for lease in maintenance.leases]}


def _written(maintenance: Maintenance, *, headers: dict[str, str] | None = None) -> Answer:
    value = {"maintenance": _render(maintenance)}
    leases = json.dumps(value["maintenance"]["leases"], sort_keys=True)
    return Answer(value, etag=_TAGS.of(maintenance.revision, leases), headers=headers or {})


_ID = in_path("maintenance_id", "the id of the maintenance window")
_DRY_RUN = option("dry_run", Flag(), "only say what would come of it; nothing is changed")
_ONE = an_object({"maintenance": ref("Maintenance")})
_IMPACT = an_object({"impact": ref("MaintenanceImpact")})
_EITHER = an_object(
    {"maintenance": ref("Maintenance"), "impact": ref("MaintenanceImpact")}, optional=("maintenance", "impact")
)
_route = partial(Route, root=Root.V1, caching=Caching.NONE)
_on_list = partial(_route, path="/maintenances")
_on_one = partial(_route, path="/maintenances/{maintenance_id}", parameters=(_ID,), errors=(404,))

PART = Part(
    "maintenances",
    routes=(
        _on_list(
            method="GET",
            name="list_maintenances",
            summary="List maintenance windows",
            handler=index,
            rule=GET,
            answers={
                200: an_object(
                    {"maintenances": a_list(ref("MaintenanceInList")), "count": NUMBER, "links": LINKS},
                    optional=("count",),
                )
            },
            parameters=(
                filter_by("status", Choice(tuple(map(str, MaintenanceStatus))), "the status"),
                *paging(["created_at"], fields=KEYS),
            ),
        ),
        _on_list(
            method="POST",
            name="create_maintenance",
            summary="Book hosts out for a time, over existing leases",
            handler=create,
            rule=POST,
            body=Body("MaintenanceCreate", CREATE, CREATED),
            answers={201: _ONE, 200: _IMPACT},
            errors=(409,),
            parameters=(_DRY_RUN,),
        ),
        _on_one(
            method="GET",
            name="show_maintenance",
            summary="Show a maintenance window with the leases that it affects",
            handler=show,
            rule=GET,
            answers={200: _ONE},
            caching=Caching.STRONG,
        ),
        _on_one(
            method="PATCH",
            name="update_maintenance",
            summary="Change the time or the name of a maintenance window",
            handler=change,
            rule=PATCH,
            body=Body("MaintenanceUpdate", CHANGE, CHANGES),
            answers={200: _EITHER},
            errors=(404, 409, 412),
            parameters=(_ID, _DRY_RUN, IF_MATCH),
        ),
        _on_one(
            method="DELETE",
            name="delete_maintenance",
            summary="Cancel a maintenance window that has not begun",
            handler=delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 409, 412),
            parameters=(_ID, IF_MATCH),
        ),
        _on_one(
            method="POST",
            path="/maintenances/{maintenance_id}/end",
            name="end_maintenance",
            summary="End a maintenance window before its time",
            handler=end,
            rule=END,
            answers={200: _ONE},
            errors=(404, 409, 412),
            parameters=(_ID, IF_MATCH),
        ),
    ),
    rules=(GET, POST, PATCH, DELETE, END),
    components=COMPONENTS,
)
