# SPDX-License-Identifier: Apache-2.0
"""Reasons as a reader may see them, and the names of resources in them.

They are sentences from codes and numbers, which name nothing that is not the lease's own. Only operators get the text
that was recorded, which may name servers, hosts and leases of others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.api.http.shapes import NUMBER, TEXT, ZULU, Json, an_object
from blazar.api.leases.rules import View
from blazar.model.base.clock import zulu
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.leases.details import HeldResource, LeaseDetails
from blazar.model.leases.lease import Event, reason_of
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventType
from blazar.model.power.states import WakingHosts
from blazar.model.queue import FailedTry, TryFailure
from blazar.model.resources.resource import FLOATING_IP, HOST, NAMED_KINDS, noun, part_noun
from blazar.resources.floating_ips.registration import address_in

MOST_NAMES = 3
"""More resources than this are not named in a sentence."""


def resource(held: HeldResource, view: View) -> Json:
    """Return how a resource is named to a caller."""
    if view.operator:
        return {"id": held.external_id, "type": held.kind, "name": held.name, "label": held.label}
    if held.kind in NAMED_KINDS:
        name = address_in(held.name) if held.kind == FLOATING_IP else held.name
        return {"id": held.external_id, "type": held.kind, "name": name}
    return {"id": held.label, "type": held.kind, "name": held.name if view.names else None}


def name_resources(held: Collection[HeldResource], view: View) -> str:
    """Return the names of resources in brackets, as part of a sentence; empty if there are none."""
    shown = (resource(holding, view) for holding in held)
    names = sorted({str(named["name"] or named["id"]) for named in shown})
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return f" ({', '.join([*names[:MOST_NAMES], *more])})" if names else ""


_SENTENCES: Mapping[ReasonCode, str] = {
    ReasonCode.LEASE_ENDED: "the lease ended before it could start",
    ReasonCode.GIVEN_UP: "an operator gave it up",
    ReasonCode.NOT_FINISHED_AT_END: "it was not finished at the end of the lease",
    ReasonCode.INTERNAL_ERROR: "an internal error; an operator finds it in the log",
    ReasonCode.QUOTA_EXCEEDED: "a quota of the project is exceeded; delete something in it, or ask for a larger one",
    ReasonCode.ROLE_MISSING: "the service has no role in the project; an operator has to grant it",
    ReasonCode.SERVER_IN_THE_WAY: "a server that belongs to no reservation is in the way{}; an operator has to move it",
    ReasonCode.PREVIOUS_USER_NOT_LEFT: "the previous user has not left yet, or the resources are being cleaned{}",
    ReasonCode.RESOURCE_FAILED: "a resource of the reservation has failed{}; it is used again when it is back",
    ReasonCode.SAVE_FAILED: "the work could not be saved",
    ReasonCode.CLOUD_REFUSED: "the cloud refused a step",
    ReasonCode.CLOUD_UNAVAILABLE: "the cloud does not answer, or cannot do this yet",
    ReasonCode.NO_ROOM_MADE: "the servers of others could not be moved off its hosts in time",
    ReasonCode.MAKING_ROOM: "servers of others are being moved off its hosts",
    ReasonCode.HOST_WAKING: "what the reservation has is asleep, and is being woken{}",
    ReasonCode.RESOURCE_NOT_READY: "the resources are not ready yet{}",
    ReasonCode.REFERENT_FAILED: "another reservation of the lease, to which this one refers, could not start",
}
"""The gap is for names of resources of the lease itself."""
_OF_EVENT: Mapping[tuple[ReasonCode, str], str] = {
    (ReasonCode.LEASE_ENDED, EventType.BEFORE_END): "the lease was not in use by then; there was nothing to save",
    (ReasonCode.RESOURCE_NOT_READY, EventType.BEFORE_END): "another step of the lease is not finished yet",
    (ReasonCode.RESOURCE_NOT_READY, EventType.END): "another step of the lease is not finished yet",
}
"""What stands in their place for some events."""
_OF_SERVERS: Mapping[tuple[ReasonCode, str], str] = {
    (ReasonCode.MAKING_ROOM, EventType.START): "servers of others are being moved off its hosts, {} left",
    (ReasonCode.RESOURCE_NOT_READY, EventType.BEFORE_END): "its servers are still being saved, {} left",
    (ReasonCode.RESOURCE_NOT_READY, EventType.END): "its servers are still being deleted, {} left",
    (ReasonCode.SAVE_FAILED, EventType.BEFORE_END): "{} of its servers could not be saved",
    (ReasonCode.NOT_FINISHED_AT_END, EventType.BEFORE_END): "{} of its servers were not saved by the end of the lease",
}
"""Sentences about a number of servers of the lease."""


_OF_TRIES: Mapping[TryFailure, str] = {
    TryFailure.OTHERS_FASTER: "others were faster at each attempt to book what it needs",
    TryFailure.NOT_PREPARED: "what it needs before its start could not be made in the cloud",
    TryFailure.NOT_STARTED: "its start failed",
}


def of_event(event: Event, details: LeaseDetails, view: View) -> Json | None:
    """Return the reason of an event; None if it has none."""
    reason = reason_of(event)
    if reason is None:
        return None
    held = [holding for holding in details.held if holding.resource_id in reason.cause.resources]
    text = sentence(reason.cause, event.event_type, name_resources(held, view))
    return _render_reason(reason.cause.code, text, reason.text, view)


def of_try(failed: FailedTry, view: View) -> Json:
    """Return why a try of a lease failed. The text of a denial is for everybody."""
    text = failed.text if failed.why is TryFailure.DENIED else _OF_TRIES[failed.why]
    if failed.cause is not None:
        text = f"{text}: {sentence(Cause(failed.cause), EventType.START)}"
    shown: Json = {"code": failed.why.value, "message": text}
    return {**shown, "detail": failed.text or None} if view.operator else shown


def of_missing(reservation: Reservation, held: list[HeldResource], missing: int | None, view: View) -> Json:
    """Return why a reservation lacks resources: so many, None if its type does not count them.

    ``held`` is what it holds.
    """
    lost = [holding for holding in held if holding.resource_id in reservation.lost_ids]
    names = name_resources(lost, view)
    if not missing or not held:
        text = sentence(Cause(ReasonCode.RESOURCE_FAILED), EventType.START, names)
    else:
        text = sentence_of_missing(missing, max(missing, sum(holding.count for holding in held)), _word(held[0]), names)
    return _render_reason(ReasonCode.RESOURCE_FAILED, text, None, view)


def sentence_of_missing(missing: int, promised: int, word: str, names: str) -> str:
    """Return how many resources of a reservation have failed; ``word`` is for one of them."""
    plural = "s" * (promised != 1)
    have, they_are = ("has", "it is") if missing == 1 else ("have", "they are")
    return f"{missing} of {promised} {word}{plural} {have} failed{names}; {they_are} used again when {they_are} back"


def sentence(cause: Cause, event_type: str, names: str = "") -> str:
    """Return a cause as a sentence; ``names`` are those of its resources, in brackets."""
    if cause.servers and (text := _OF_SERVERS.get((cause.code, event_type))) is not None:
        return text.format(cause.servers)
    if cause.code is ReasonCode.PREVIOUS_USER_NOT_LEFT and cause.until is not None:
        return f"the resources are being cleaned after the previous user, until {zulu(cause.until)}"
    if cause.code is ReasonCode.HOST_WAKING and cause.until is not None:
        return f"{_SENTENCES[cause.code].format(names)}; it is ready at about {zulu(cause.until)}"
    return _OF_EVENT.get((cause.code, event_type), _SENTENCES[cause.code]).format(names)


WAKING: Json = {
    **an_object(
        {
            "hosts": {**NUMBER, "description": "how many of its hosts sleep"},
            "pools": {**NUMBER, "description": "how many of its pools of volumes sleep"},
            "ready_at": {**ZULU, "description": "when the last of them is awake, at about"},
            "message": TEXT,
        }
    ),
    "type": ["object", "null"],
    "description": "what its start would wait for, as hosts and pools that nobody needed sleep; null: nothing",
}


def render_waking(waking: WakingHosts | None) -> Json | None:
    """Return what a start waits for as JSON."""
    if waking is None:
        return None
    ready, number = zulu(waking.ready_at), waking.hosts + waking.pools
    parts = ((waking.hosts, "hosts"), (waking.pools, "volume pools"))
    what = " and ".join(f"{count} of its {words}" for count, words in parts if count)
    text = f"{what} {'sleeps, and is' if number == 1 else 'sleep, and are'} woken for it; it begins at about {ready}"
    return {"hosts": waking.hosts, "pools": waking.pools, "ready_at": ready, "message": text}


def _word(held: HeldResource) -> str:
    """Return the word for one of what a reservation holds: a resource, or what is on a shared one."""
    if held.per_instance is None:
        return noun(held.kind)
    return "server" if held.kind == HOST else part_noun(held.kind)


def _render_reason(code: ReasonCode, message: str, detail: str | None, view: View) -> Json:
    shown: Json = {"code": code.value, "message": message}
    return {**shown, "detail": detail} if view.operator else shown
