# SPDX-License-Identifier: Apache-2.0
"""Render leases in full.

The result is a function of the lease's mark (``LeaseMark``), its price, the view and the URL of the service: pages are
kept by these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from blazar.api.http.answers import link
from blazar.api.http.shapes import Json
from blazar.api.leases.rules import View
from blazar.api.leases.v1_1 import reasons
from blazar.api.leases.v1_1.prices import render_price
from blazar.api.leases.v1_1.reasons import resource
from blazar.api.leases.v1_1.reminders import render_reminders
from blazar.model.base.clock import zulu
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.details import HeldResource, LeaseDetails
from blazar.model.leases.lease import Event, ExtendIfFree, Lease, TransferOffer, reason_of
from blazar.model.leases.reservation import SHOWN_IDS, TYPES, Reservation
from blazar.model.leases.states import HIDDEN_EVENTS, EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.queue import FailedTry
from blazar.model.resources.resource import FLOATING_IP
from blazar.resources.floating_ips.registration import address_in

MOST_PARTS = 100
"""More events and conditions than this are not shown."""
_REQUIREMENTS = ("hypervisor_properties", "network_properties", "resource_properties")
_OF_FLAVOR = "flavor:instance"
_AMOUNTS = ("min", "amount")
"""The parameters that say how many units are needed."""
_EVENT_CONDITIONS: Mapping[str, tuple[str | None, str | None]] = {
    EventType.START: ("start_failed", "start_delayed"),
    EventType.BEFORE_END: ("save_failed", None),
    EventType.END: (None, "end_delayed"),
}
"""The conditions that a failed and a repeated event make."""


def lease(details: LeaseDetails, view: View, *, planned: bool = False, base: str | None = None) -> Json:
    """Return a lease as JSON; of a ``planned`` one the ids are null. Who renders many finds the ``base`` URL once."""
    value, base = details.lease.as_estimated, link("") if base is None else base
    use = value.use
    shown: Json = {
        "id": value.id,
        "name": value.name,
        "project_id": value.project_id,
        "user_id": value.user_id,
        "status": value.status.value,
        "degraded": value.degraded,
        "revision": value.revision,
        "start_date": zulu(value.window.start),
        "end_date": zulu(value.window.end),
        "before_end_date": _instant(_time_of(value, EventType.BEFORE_END)),
        "created_at": zulu(value.created_at),
        "updated_at": _instant(value.updated_at),
        "deleted_at": _instant(value.deleted_at),
        "conditions": list(_conditions(details, view))[:MOST_PARTS],
        "reservations": [_reservation(reservation, details, view) for reservation in value.asked_for],
        "events": [_event(event, details, view) for event in _events_to_show(value.events)],
        "links": [{"rel": "self", "href": f"{base}/v1/leases/{value.id}"}],
        "kind": value.kind.value,
        "end_reason": value.end_reason.value if value.end_reason else None,
        "usage": None if use is None else use.usage.value,
        "used_at": _instant(None if use is None else use.used_at),
        "release_at": _instant(None if use is None else use.release_at),
        "held": None if use is None else use.held,
        "wait": _wait(value, view),
        **_terms(value),
        "reminders": render_reminders(value.reminders, value.window),
        "transfer": None if value.offer is None else offer(value.offer),
        "series_id": None if value.series is None else value.series.series_id,
        "recurrence_id": None if value.series is None else value.series.recurrence_id.isoformat(),
        "price": render_price(details.price),
        "waking": reasons.render_waking(details.waking),
        "moves_others": details.moves_others,
    }
    return _without_ids(shown) if planned else shown


def _terms(value: Lease) -> Json:
    """Return what becomes of a lease by itself, or of its hosts."""
    return {
        "extend_if_free": _extension(value.extend),
        "keep_hosts": value.keep_hosts,
        "confirm_by": _instant(value.confirm_by),
    }


def _extension(value: ExtendIfFree | None) -> Json | None:
    return None if value is None else {"until": zulu(value.until), "reason": value.reason}


def offer(value: TransferOffer) -> Json:
    """Return to whom a lease is offered, as JSON."""
    return {
        "project_id": value.project_id,
        "user_id": value.user_id,
        "message": value.message,
        "offered_at": zulu(value.offered_at),
        "expires_at": zulu(value.expires_at),
    }


_QUEUED = frozenset({LeaseStatus.WAITING, LeaseStatus.TIMED_OUT, LeaseStatus.IN_PROGRESS})
"""States of a lease that waits, or has waited in vain."""


def _wait(value: Lease, view: View) -> Json | None:
    """Return how a lease waits, or waited in vain or for its promised start; and how the tries went if it has some."""
    wait = value.wait
    shows = value.status in _QUEUED or value.is_promised
    if wait is None or not (shows or wait.tries is not None):
        return None
    return {
        "queued_at": zulu(wait.queued_at),
        "earliest": zulu(wait.earliest),
        "until": zulu(wait.until),
        "latest": _instant(wait.latest),
        "at_least": None if wait.shortest is None else _duration(wait.shortest),
        "position": wait.position,
        "estimated_start": _instant(wait.estimate),
        "reason": wait.reason,
        "advance": value.is_promised,
        "max_price": wait.max_price,
        "tries": wait.tries,
        "failed_tries": [_failed_try(failed_try, view) for failed_try in wait.failed],
    }


def _failed_try(failed: FailedTry, view: View) -> Json:
    return {"at": zulu(failed.at), "reason": reasons.of_try(failed, view)}


def _events_to_show(events: Sequence[Event]) -> list[Event]:
    """Return the events that are shown, in the order of time: of too many, those of the client's own types go."""
    shown = (event for event in events if event.event_type not in HIDDEN_EVENTS)
    ordered = sorted(shown, key=lambda event: (_instant(event.time) or "", event.id))
    if len(ordered) <= MOST_PARTS:
        return ordered
    known = frozenset(str(kind) for kind in EventType)
    # Sorting keeps the order of equals.
    first = sorted(range(len(ordered)), key=lambda number: str(ordered[number].event_type) not in known)
    return [ordered[number] for number in sorted(first[:MOST_PARTS])]


def _without_ids(shown: Json) -> Json:
    events = [{**event, "id": None} for event in shown["events"]]
    reservations = [_reservation_without_ids(reservation) for reservation in shown["reservations"]]
    return {**shown, "id": None, "conditions": [], "links": [], "reservations": reservations, "events": events}


def _reservation_without_ids(shown: Json) -> Json:
    children = (
        {"children": [_reservation_without_ids(child) for child in shown["children"]]} if "children" in shown else {}
    )
    return {**shown, "id": None, "use": {**shown["use"], "scheduler_hints": {}}, **children}


def _reservation(value: Reservation, details: LeaseDetails, view: View) -> Json:
    held = [holding for holding in details.held if holding.reservation_id == value.id]
    allocations = [_allocation(holding, value, view) for holding in held]
    return {
        **_values_of_type(value),
        "id": value.id,
        "resource_type": value.resource_type,
        **({"region": value.region} if value.region else {}),
        "status": value.status.value,
        "missing_resources": value.missing_resources,
        "resources_changed": value.resources_changed,
        **parameters(value),
        "allocations": sorted(allocations, key=lambda allocation: str(allocation["resource"]["id"])),
        "use": _use(value, held),
        **({"cloud_ids": dict(value.cloud_ids.values)} if view.operator else {}),
        **_products(value),
        **_children(value, details, view),
        "created_at": zulu(value.created_at),
        "updated_at": _instant(value.updated_at),
    }


def _products(value: Reservation) -> Json:
    """Return what a reservation has made in the project, of types that make something there."""
    if value.resource_type not in TYPES:
        return {}
    gone = {thing.id: zulu(thing.since) for thing in value.gone}
    # At the end all of it is deleted, which nobody has to be told.
    there = () if value.status is ReservationStatus.DELETED else value.made_ids
    return {"made": [{"id": id_, "deleted_at": gone.get(id_)} for id_ in there]}


def _children(value: Reservation, details: LeaseDetails, view: View) -> Json:
    """Return what a reservation is made of, if it is made of others."""
    children = details.lease.children(value.id)
    return {"children": [_reservation(child, details, view) for child in children]} if children else {}


_IN_USE = frozenset({"flavor_id", "aggregate_id", "server_group_id", "network_id"})
"""Cloud ids that are shown in ``use``, or to operators."""


def _values_of_type(value: Reservation) -> Json:
    """Return what a type tells its users, as 1.0 shows it, and ``use`` does not have."""
    ids, ours = value.cloud_ids.values, SHOWN_IDS.get(value.resource_type)
    return {key: found for key, found in ids.items() if ours is None or key in frozenset(ours) - _IN_USE}


def parameters(value: Reservation) -> Json:
    """Return the parameters as requests have them, requirements as lists."""
    shown = dict(value.shown_parameters)
    if value.resource_type == _OF_FLAVOR:
        # What is kept of the flavor, not a requirement of the user.
        shown.pop("resource_properties", None)
    for key in _REQUIREMENTS:
        if key in shown:
            text = shown[key]
            shown[key] = json.loads(text) if isinstance(text, str) and text.strip() else (text or [])
    if shown.get("before_end") == "":
        shown["before_end"] = "notification"
    return shown


def _allocation(held: HeldResource, reservation: Reservation, view: View) -> Json:
    if held.released:
        status = "released"
    elif held.resource_id in reservation.lost_ids:
        status = "failed"
    else:
        status = "in_use" if reservation.status is ReservationStatus.ACTIVE else "promised"
    used = None if held.per_instance is None else dict(held.per_instance.times(held.count).items)
    return {"resource": resource(held, view), "count": held.count, "used": used, "status": status}


def _use(value: Reservation, held: list[HeldResource]) -> Json:
    by_hint = value.resource_type == "physical:host"
    return {
        "scheduler_hints": {"reservation": value.id} if by_hint else {},
        "flavor_id": value.cloud_ids.values.get("flavor_id"),
        "server_group_id": value.cloud_ids.values.get("server_group_id"),
        "network_id": value.cloud_ids.values.get("network_id"),
        "addresses": sorted(address_in(h.name) for h in held if h.kind == FLOATING_IP and not h.released),
    }


def _conditions(details: LeaseDetails, view: View) -> Iterator[Json]:
    """Yield what is not as it was promised, with the reason."""
    value = details.lease
    for reservation in value.reservations:
        # What an earlier version wrote has no time of its own.
        otherwise = reservation.updated_at or value.updated_at or value.created_at
        if reservation.missing_resources:
            held = [one for one in details.held if one.reservation_id == reservation.id]
            missing = _missing(reservation, held)
            reason = reasons.of_missing(reservation, held, missing, view)
            yield _condition(
                "missing_resources", reservation.id, reservation.missing_since or otherwise, missing, reason
            )
        if reservation.resources_changed:
            yield _condition("resources_changed", reservation.id, reservation.changed_since or otherwise, None, None)
    for event in value.events:
        if (name := _condition_of(event)) is not None:
            since = event.trouble_since or event.updated_at or event.time or value.created_at
            yield _condition(name, None, since, None, reasons.of_event(event, details, view))


def _condition_of(event: Event) -> str | None:
    # Events of the client's own types have no entry here.
    failed, delayed = _EVENT_CONDITIONS.get(event.event_type, (None, None))
    if event.status is not EventStatus.ERROR:
        return delayed if _is_repeated(event) else None
    why = reason_of(event)
    unused = why is not None and why.cause.code is ReasonCode.LEASE_ENDED
    # What was not in use had no work to save.
    return None if unused and event.event_type == EventType.BEFORE_END else failed


def _condition(name: str, reservation_id: str | None, since: datetime, count: int | None, reason: Json | None) -> Json:
    return {"type": name, "reservation_id": reservation_id, "since": zulu(since), "count": count, "reason": reason}


def _missing(value: Reservation, held: list[HeldResource]) -> int | None:
    """Return how many units a reservation lacks; None if its type does not count them."""
    wanted = next((n for key in _AMOUNTS if isinstance(n := value.parameters.values.get(key), int)), None)
    if wanted is None:
        return None
    lost = sum(holding.count for holding in held if holding.resource_id in value.lost_ids)
    # It may have got more than it needs, and what is gone of that is missing, too.
    return max(lost, wanted - sum(holding.count for holding in held) + lost)


def _event(value: Event, details: LeaseDetails, view: View) -> Json:
    over = value.status in (EventStatus.DONE, EventStatus.ERROR)
    # While it is claimed, its time is that of the claim.
    waits = not over and value.claimed_by is None and value.reason is not None
    return {
        "id": value.id,
        "event_type": str(value.event_type),
        "time": _instant(value.time),
        "status": None if value.status is None else value.status.value,
        "finished_at": _instant(value.updated_at) if over else None,
        "attempts": value.attempts,
        "next_attempt_at": _instant(value.due_at) if waits else None,
        "reason": reasons.of_event(value, details, view),
    }


def _is_repeated(event: Event) -> bool:
    return event.status in (EventStatus.UNDONE, EventStatus.IN_PROGRESS) and event.reason is not None


def _time_of(value: Lease, kind: EventType) -> datetime | None:
    event = value.event(kind)
    return None if event is None else event.time


def _instant(value: Any) -> str | None:
    return None if value is None else zulu(value)


def _duration(length: timedelta) -> str:
    """Return a length as an ISO 8601 duration in hours, minutes and seconds: a day is not always 24 hours long."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
    return "PT" + "".join(f"{count}{unit}" for count, unit in parts if count)
