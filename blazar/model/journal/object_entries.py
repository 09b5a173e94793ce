# SPDX-License-Identifier: Apache-2.0
"""What the journal says of all that is no lease: resources, properties, maintenance windows, series, feeds, prices, and
options.

Values that a type keeps for itself, which may be secrets, are not among the fields: neither the parameters of a series
nor the link of a feed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from blazar.model.base.clock import zulu
from blazar.model.billing.charges import Charge, format_nano, sum_lines
from blazar.model.billing.ledger import Closing
from blazar.model.billing.published import Publication
from blazar.model.feeds import Feed
from blazar.model.journal.entries import (
    ENDS_AT,
    LIMIT,
    LONGEST,
    MOST_CHANGES,
    PERIOD_END,
    PERIOD_START,
    SAVED,
    SHARE,
    TAKEN,
    UNIT,
    FieldChange,
    JournalEntry,
    ObjectType,
    Subject,
    Verb,
)
from blazar.model.leases.requests import Actor
from blazar.model.maintenance.windows import Maintenance, MaintenanceStatus
from blazar.model.power.hosts import PoweredHost
from blazar.model.power.states import HostPower
from blazar.model.resources.resource import Resource, ResourceProperty
from blazar.model.rules.values import BookingRule
from blazar.model.series.details import Series, SeriesStatus
from blazar.model.series.rule_text import rule_text
from blazar.model.use.preemption import Preemption
from blazar.model.use.resource_hours import ReachedShare

Fields = Mapping[str, object]
"""The fields of an object that entries show; a value of None is none."""


def compare_fields(before: Fields, after: Fields) -> tuple[FieldChange, ...]:
    """Return the fields that differ, as texts, in the order of ``after``; those that are only ``before`` come last."""
    names = [*after, *(name for name in before if name not in after)]
    pairs = ((name, _text(before.get(name)), _text(after.get(name))) for name in names)
    return tuple(FieldChange(name, was, became) for name, was, became in pairs if was != became)[:MOST_CHANGES]


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            return zulu(value)
        case frozenset():
            return ", ".join(sorted(value))[:LONGEST]
    return str(value)[:LONGEST]


def _describe(resource: Resource) -> Subject:
    """Return a resource as the subject of an entry; its id is as in the paths of the API: ``host/7``."""
    return Subject(ObjectType.RESOURCE, f"{resource.kind}/{resource.external_id}", resource.name)


def tell_resource(before: Resource | None, after: Resource, *, at: datetime, by: Actor | None) -> JournalEntry | None:
    """Return what a registration or a change of a resource adds; None if nothing has changed that is told."""
    was, became = {} if before is None else _list_resource(before), _list_resource(after)
    changes = compare_fields(was, became)
    if before is None:
        verb = Verb.REGISTERED
    elif before.disabled != after.disabled:
        verb = Verb.DISABLED if after.disabled else Verb.ENABLED
    elif changes:
        verb = Verb.CHANGED
    else:
        return None
    return JournalEntry(_describe(after), at, verb, by, changes, snapshot=_snapshot(after))


def tell_failure(resource: Resource, failure: str | None, *, at: datetime) -> JournalEntry:
    """Return that the service has found a resource failed, for a reason, or well again (None)."""
    verb = Verb.RECOVERED if failure is None else Verb.FAILED
    changes = compare_fields({"failure": resource.failure}, {"failure": failure})
    return JournalEntry(_describe(resource), at, verb, None, changes, snapshot=_snapshot(resource))


def tell_power(before: PoweredHost, after: PoweredHost, *, at: datetime, by: Actor | None) -> JournalEntry | None:
    """Return what an operator has changed of the power of a host; None if it was so before."""
    changes = compare_fields(_list_power(before.power), _list_power(after.power))
    about, snapshot = _describe(after.host), _snapshot(after.host)
    return JournalEntry(about, at, Verb.CHANGED, by, changes, snapshot=snapshot) if changes else None


def _list_power(power: HostPower) -> Fields:
    address = power.address
    return {
        "power.policy": power.policy,
        "power.adapter": None if address is None else address.adapter,
        "power.target": None if address is None else address.target,
        "power.state": power.state,
        "power.kept_until": power.kept_until,
    }


def tell_removal(resource: Resource, *, at: datetime, by: Actor | None) -> JournalEntry:
    """Return that a resource is not registered any more."""
    return JournalEntry(_describe(resource), at, Verb.REMOVED, by, snapshot=_snapshot(resource))


def _snapshot(resource: Resource) -> Mapping[str, str]:
    """Return what a message shows of a resource besides its name: what users see of it, and where it is."""
    return {"label": resource.label, "region": resource.region}


def _list_resource(resource: Resource) -> Fields:
    capacity = {f"capacity.{name}": amount for name, amount in resource.capacity.items}
    properties = {f"properties.{name}": value for name, value in resource.capabilities.items()}
    attributes = {f"attributes.{name}": value for name, value in resource.attributes.items()}
    return {
        "disabled": resource.disabled,
        "disabled_reason": resource.disabled_reason,
        "disabled_until": resource.disabled_until,
        "authorized_projects": resource.authorized_projects,
        **properties,
        **capacity,
        **attributes,
    }


def tell_property(
    before: ResourceProperty, after: ResourceProperty, *, at: datetime, by: Actor | None
) -> JournalEntry | None:
    """Return that a property is shown to all, or only to operators, from now on; None if it was so before."""
    changes = compare_fields({"private": before.private}, {"private": after.private})
    about = Subject(ObjectType.PROPERTY, f"{after.kind}/{after.name}", after.name)
    return JournalEntry(about, at, Verb.CHANGED, by, changes) if changes else None


_OF_STATUS = {
    MaintenanceStatus.ACTIVE: Verb.STARTED,
    MaintenanceStatus.DONE: Verb.ENDED,
    MaintenanceStatus.CANCELLED: Verb.DELETED,
}


def tell_maintenance(
    before: Maintenance | None, after: Maintenance, *, at: datetime, by: Actor | None
) -> JournalEntry | None:
    """Return what a write of a maintenance window adds; None if nothing has happened that is told."""
    changes = compare_fields({} if before is None else _list_maintenance(before), _list_maintenance(after))
    verb: Verb | None = Verb.CREATED if before is None else None
    if before is not None and before.status is not after.status:
        verb = _OF_STATUS.get(after.status)
    if verb is None and changes:
        verb = Verb.CHANGED
    if verb is None:
        return None
    about = Subject(ObjectType.MAINTENANCE, after.id, after.name, revision=after.revision)
    return JournalEntry(about, at, verb, by, changes, snapshot={"status": str(after.status)})


def _list_maintenance(maintenance: Maintenance) -> Fields:
    return {
        "name": maintenance.name,
        "start_date": maintenance.window.start,
        "end_date": maintenance.window.end,
        "reason": maintenance.reason,
        "hosts": frozenset(host.name for host in maintenance.hosts),
        "requirement": maintenance.requirement,
        "pending": maintenance.pending,
        "active": maintenance.active,
        "disable_service": maintenance.disable_service,
    }


_OF_SERIES = {
    SeriesStatus.ENDED: Verb.ENDED,
    SeriesStatus.FAILED: Verb.FAILED,
    SeriesStatus.DELETING: Verb.DELETED,
    SeriesStatus.DELETED: Verb.DELETED,
}
_GOING = (SeriesStatus.DELETING, SeriesStatus.DELETED)


def tell_series(before: Series | None, after: Series, *, at: datetime, by: Actor | None) -> JournalEntry | None:
    """Return what a write of a series adds; None if nothing has happened that is told. Its leases have their own."""
    changes = compare_fields({} if before is None else _list_series(before), _list_series(after))
    if before is None:
        verb: Verb | None = Verb.CREATED
    elif before.status is not after.status and after.status in _OF_SERIES:
        # A deletion is told when it begins.
        verb = None if before.status in _GOING else _OF_SERIES[after.status]
    else:
        verb = Verb.CHANGED if changes else None
    if verb is None:
        return None
    about = Subject(ObjectType.SERIES, after.id, after.name, after.project_id, after.user_id)
    return JournalEntry(about, at, verb, by, changes, snapshot={"status": str(after.status)})


def _list_series(series: Series) -> Fields:
    recurrence = series.recurrence
    return {
        "name": series.name,
        "start": recurrence.start.isoformat(timespec="minutes"),
        "time_zone": recurrence.zone,
        "rule": rule_text(recurrence.rule),
        "fit": series.fit,
        "previous_id": series.previous_id,
    }


def tell_feed(feed: Feed, verb: Verb, *, at: datetime, by: Actor | None) -> JournalEntry:
    """Return that a feed was made or removed. Its link, which is a secret, is nowhere."""
    fields: Fields = {"name": feed.name, "kind": feed.kind, "resource": feed.resource, "expires_at": feed.expires_at}
    about = Subject(ObjectType.FEED, feed.id, feed.name, feed.project_id, feed.user_id)
    return JournalEntry(about, at, verb, by, compare_fields({}, fields) if verb is Verb.CREATED else ())


def tell_price_list(publication: Publication, *, by: Actor | None) -> JournalEntry:
    """Return that a price list was published, with what differs from the one before it."""
    new = publication.new
    changes = tuple(
        FieldChange(
            change.field[:LONGEST],
            None if change.before is None else change.before[:LONGEST],
            None if change.after is None else change.after[:LONGEST],
        )
        for change in publication.changes[:MOST_CHANGES]
    )
    about = Subject(ObjectType.PRICE_LIST, new.id, f"version {new.version}")
    return JournalEntry(about, new.published_at, Verb.CREATED, by, changes)


def tell_rule(before: BookingRule | None, after: BookingRule | None, *, at: datetime, by: Actor | None) -> JournalEntry:
    """Return that a rule was written, changed or deleted."""
    one = after or before
    assert one is not None
    verb = Verb.CREATED if before is None else Verb.DELETED if after is None else Verb.CHANGED
    fields = [{} if rule is None else json.loads(rule.content) for rule in (before, after)]
    texts = [{key: json.dumps(value, ensure_ascii=False) for key, value in some.items()} for some in fields]
    changes = () if after is None else compare_fields(*texts)
    return JournalEntry(Subject(ObjectType.RULE, one.name, one.name), at, verb, by, changes)


def tell_correction(charge: Charge, *, by: Actor | None) -> JournalEntry:
    """Return that a charge was answered by another one: which, by how much, and why."""
    fields = {"corrects": str(charge.corrects), "amount": format_nano(charge.line.nano), "currency": charge.currency}
    changes = compare_fields({}, {**fields, "reason": (charge.reason or "")[:LONGEST]})
    about = Subject(ObjectType.CHARGE, str(charge.id), project_id=charge.project_id)
    return JournalEntry(about, charge.at, Verb.CREATED, by, changes)


def tell_reached(reached: ReachedShare, *, at: datetime) -> JournalEntry:
    """Return that a project has reached a share of a budget, which is told once: the entry has an id by that.

    Of a budget that has another limit meanwhile it is another share.
    """
    period = reached.window
    key = json.dumps([reached.project_id, reached.limit_name, reached.unit, zulu(period.start), zulu(period.end)])
    id_ = uuid.uuid5(uuid.NAMESPACE_URL, key)
    fields: Fields = {
        SHARE: reached.share,
        LIMIT: reached.limit,
        TAKEN: reached.taken,
        UNIT: reached.unit,
        PERIOD_START: period.start,
        PERIOD_END: period.end,
    }
    name = f"of {reached.unit} from {period.start:%Y-%m-%d} on"
    about = Subject(ObjectType.BUDGET, str(id_), name, reached.project_id)
    own_id = str(uuid.uuid5(id_, f"{reached.share} % of {reached.limit}"))
    return JournalEntry(about, at, Verb.REACHED, None, compare_fields({}, fields), id=own_id)


def tell_preemption(preemption: Preemption, *, at: datetime, withdrawn: bool = False) -> JournalEntry:
    """Return that the owner of a server was told when it is deleted, or that it stays after all."""
    server = preemption.server
    about = Subject(ObjectType.SERVER, server.id, server.name, server.project_id, server.user_id)
    if withdrawn:
        return JournalEntry(about, at, Verb.KEPT)
    changes = compare_fields({}, {ENDS_AT: preemption.ends_at, SAVED: server.saved})
    return JournalEntry(about, at, Verb.BEFORE_END, None, changes)


def tell_closing(closing: Closing, currency: str, *, at: datetime) -> JournalEntry | None:
    """Return that an account is closed up to an instant, and what its project is charged since; None: nothing."""
    account = closing.account
    if not closing.lines:
        return None
    amount = format_nano(sum_lines(closing.lines))
    fields = {"amount": amount, "currency": currency, "closed_until": account.closed_until}
    about = Subject(ObjectType.CHARGE, account.lease_id, project_id=account.project_id)
    return JournalEntry(about, at, Verb.CREATED, None, compare_fields({}, fields))


SERVICE_ID = "blazar"
"""The only object of its type: managers of one database are one service."""

SET = "set"
"""Stands for each value; an option with its default has none."""
VERSION = "version"
_OPTIONS = "options"


def tell_configuration(
    before: Mapping[str, Any] | None, options: Mapping[str, str], *, version: str, at: datetime
) -> JournalEntry | None:
    """Return that the service runs with other options than before, or in another version; None if it does not.

    ``options`` are fingerprints of the values that are set, by name. ``before`` is the snapshot of the last such entry,
    None if there is none: then all that is set is told.
    """
    snapshot = {VERSION: version, _OPTIONS: dict(sorted(options.items()))}
    if before == snapshot:
        return None
    earlier: Mapping[str, str] = {} if before is None else before[_OPTIONS]
    last = None if before is None else before[VERSION]
    changes = [] if last == version else [FieldChange(VERSION, last, version)]
    changes += [
        FieldChange(name, SET if name in earlier else None, SET if name in options else None)
        for name in sorted({*earlier, *options})
        if earlier.get(name) != options.get(name)
    ]
    about = Subject(ObjectType.SERVICE, SERVICE_ID)
    return JournalEntry(about, at, Verb.CONFIGURED, None, tuple(changes[:MOST_CHANGES]), snapshot=snapshot)
