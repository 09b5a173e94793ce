# SPDX-License-Identifier: Apache-2.0
"""The power of hosts as JSON: how it is rendered, the schemas of requests, and the components of the document."""

from __future__ import annotations

from blazar.api.http.shapes import (
    FLAG,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.power.addresses import PowerAdapter
from blazar.model.power.hosts import ClassReport, PastMove, PoolReport, PoweredHost, PowerReport, PowerSums, StateCount
from blazar.model.power.settings import PowerMode, PowerPolicy, SpareSource
from blazar.model.power.states import HostPower, PowerReason, PowerState

LONGEST_TARGET = 1024

_STATUS: Json = {"state": "off", "since": "2030-05-01T08:00:00Z", "reason": "done"}
_HOST: Json = {
    "id": "12",
    "name": "cn12.example",
    "adapter": "redfish",
    "target": "https://10.30.0.11/redfish/v1/Systems/1",
    "policy": "auto",
    **_STATUS,
    "kept_until": None,
    "rehearsed": None,
}
KEYS = tuple(key for key in _HOST if key != "id")
_MOVE: Json = {
    "id": "4711",
    "at": "2030-05-01T08:00:00Z",
    "before": "going_off",
    "seconds": 184,
    "after": "off",
    "reason": "done",
    "rehearsed": False,
}
_SUMS: Json = {"slept_hours": 2304.5, "switched_off": 161, "woken": 150, "failed_wakes": 1, "missed_starts": 0}
_COUNT: Json = {"state": "off", "reason": "done", "hosts": 212}
_NOTHING: Json = {"hosts": [], "slept_hours": 0.0, **{key: 0 for key in _SUMS if key != "slept_hours"}}
_REPORT: Json = {
    "mode": "on",
    "from": "2030-04-01T08:00:00Z",
    "to": "2030-05-01T08:00:00Z",
    "switched_hosts": 500,
    "kept_hosts": 4,
    "done": {"hosts": [_COUNT], **_SUMS},
    "rehearsed": _NOTHING,
    "pools": {"switched": 4, "kept": 0, "asleep": 2, **_SUMS},
    "classes": [{"group": {}, "hosts": 500, "asleep": 212, "spare": 80, "lead_seconds": 1620, "wake_seconds": 420}],
}
_REPORT["classes"][0] |= {"spare_source": "asked", "spare_rule": None, "asked_at_once": 53}

_STATE: Json = {**one_of(PowerState), "description": "off: it sleeps, and has not failed"}
_REASON: Json = {**one_of(PowerReason), "description": "why it came into this state"}
_PROPERTIES: Json = {
    "id": {**TEXT, "description": "its id, as in /v1/resources/host or /v1/resources/volume"},
    "name": TEXT,
    "adapter": {
        "enum": [*map(str, PowerAdapter), None],
        "description": "by what it is switched; null: by nothing, so that it never sleeps",
    },
    "target": {**TEXT_OR_NULL, "description": "where: a URL, or the name or id of a node"},
    "policy": {**one_of(PowerPolicy), "description": "keep: it is never switched off"},
    "state": _STATE,
    "since": ZULU,
    "reason": _REASON,
    "kept_until": {**ZULU_OR_NULL, "description": "until when it stays on, though nobody needs it"},
    "rehearsed": {
        "anyOf": [an_object({"state": _STATE, "since": ZULU, "reason": _REASON}), {"type": "null"}],
        "description": "what a dry run would have it be; in truth it is on",
    },
}
_SUM_PROPERTIES: Json = {
    "slept_hours": {"type": "number", "description": "of all together within the period"},
    "switched_off": {**NUMBER, "description": "how often one was"},
    "woken": {**NUMBER, "description": "how often one was woken and was up in time"},
    "failed_wakes": {**NUMBER, "description": "how often one was not"},
    "missed_starts": {**NUMBER, "description": "how often one was not awake when a lease began that has it"},
}
_RESULTS = an_object(
    {
        "hosts": a_list(an_object({"state": _STATE, "reason": _REASON, "hosts": NUMBER})),
        **_SUM_PROPERTIES,
    }
)
COMPONENTS: Json = {
    "HostPower": an_object(_PROPERTIES, example=_HOST),
    "HostPowerInList": an_object(_PROPERTIES, optional=KEYS, example={"id": "12", "state": "off"}),
    "PowerMove": an_object(
        {
            "id": TEXT,
            "at": ZULU,
            "before": _STATE,
            "seconds": {**NUMBER, "description": "for how long it had been in the state before"},
            "after": _STATE,
            "reason": _REASON,
            "rehearsed": {**FLAG, "description": "a dry run would have done it; the host was on"},
        },
        example=_MOVE,
    ),
    "PowerOfPools": {
        **an_object(
            {
                "switched": {**NUMBER, "description": "pools of volumes with an adapter"},
                "kept": {**NUMBER, "description": "pools that are never switched off, by their policy"},
                "asleep": {**NUMBER, "description": "pools that sleep"},
                **_SUM_PROPERTIES,
            },
            example=_REPORT["pools"],
        ),
        "description": "pools of volumes; in a dry run what would be of them",
    },
    "PowerClass": an_object(
        {
            "group": {"type": "object", "description": "the properties that tell it from others, with their values"},
            "hosts": NUMBER,
            "asleep": {**NUMBER, "description": "hosts that sleep; in a dry run those that would"},
            "spare": {**NUMBER, "description": "how many free hosts stay awake for leases that start at once"},
            "spare_source": {
                **one_of(SpareSource),
                "description": "where that comes from; asked: half more than asked_at_once; share: a share of its "
                "hosts, as few were asked for at once",
            },
            "spare_rule": {**TEXT_OR_NULL, "description": "the rule of [power] spares by which it is fixed now"},
            "asked_at_once": {
                **NUMBER,
                "description": "the most that were asked for at once within an hour of the last 14 days, of working "
                "hours or of others; 0 if that does not count",
            },
            "lead_seconds": {**NUMBER, "description": "how long before a start its hosts are woken"},
            "wake_seconds": {**NUMBER, "description": "how long a wake takes, but for one of a hundred"},
        },
        example=_REPORT["classes"][0],
    ),
    "PowerResults": {**_RESULTS, "examples": [_REPORT["done"]]},
    "PowerReport": an_object(
        {
            "mode": {**one_of(PowerMode), "description": "[power] mode in blazar.conf"},
            "from": ZULU,
            "to": ZULU,
            "switched_hosts": {**NUMBER, "description": "hosts with an adapter"},
            "kept_hosts": {**NUMBER, "description": "hosts that are never switched off, by their policy"},
            "done": ref("PowerResults"),
            "rehearsed": ref("PowerResults"),
            "pools": ref("PowerOfPools"),
            "classes": {
                **a_list(ref("PowerClass")),
                "description": "hosts with the same values of the properties of [power] class_by; the largest first",
            },
        },
        example=_REPORT,
    ),
}
CHANGE: Json = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "an object with adapter and target, or policy",
    "properties": {
        "adapter": {
            "enum": [*map(str, PowerAdapter), None],
            "description": f"one of {', '.join(PowerAdapter)}; or null, so that the host is not switched",
        },
        "target": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": LONGEST_TARGET,
            "pattern": "^[!-~]+$",
            "description": f"a URL, a name or an id, of 1 to {LONGEST_TARGET} printable ASCII characters; or null",
        },
        "policy": {"enum": list(map(str, PowerPolicy)), "description": "auto, or keep: it is never switched off"},
    },
}
CHANGES: tuple[Json, ...] = (
    {"adapter": "redfish", "target": "https://10.30.0.11/redfish/v1/Systems/1"},
    {"policy": "keep"},
    {"adapter": None, "target": None},
)


def render_host(found: PoweredHost) -> Json:
    """Return a host with its power, as operators see it."""
    power = found.power
    return {
        "id": found.host.external_id,
        "name": found.host.name,
        "adapter": None if power.address is None else str(power.address.adapter),
        "target": None if power.address is None else power.address.target,
        "policy": str(power.policy),
        **_render_status(power),
        "kept_until": zulu_or_none(power.kept_until),
        "rehearsed": None if found.rehearsed is None else _render_status(found.rehearsed),
    }


def _render_status(power: HostPower) -> Json:
    return {"state": str(power.state), "since": zulu(power.since), "reason": str(power.reason)}


def render_move(move: PastMove) -> Json:
    """Return what has become of the power of a host at a time."""
    return {
        "id": str(move.id),
        "at": zulu(move.at),
        "before": str(move.before),
        "seconds": int(move.lasted.total_seconds()),
        "after": str(move.after),
        "reason": str(move.reason),
        "rehearsed": move.rehearsed,
    }


def render_report(report: PowerReport) -> Json:
    """Return what sleeps, why, and what that has saved."""
    return {
        "mode": str(report.mode),
        "from": zulu(report.since),
        "to": zulu(report.now),
        "switched_hosts": report.switched,
        "kept_hosts": report.kept,
        "done": _render_results(report.hosts, report.sums),
        "rehearsed": _render_results(report.rehearsed_hosts, report.rehearsed_sums),
        "pools": _render_pools(report.pools),
        "classes": list(map(_render_class, report.classes)),
    }


def _render_class(found: ClassReport) -> Json:
    return {
        "group": dict(found.values),
        "hosts": found.hosts,
        "asleep": found.asleep,
        "spare": found.limits.spare,
        "spare_source": str(found.limits.spare_source),
        "spare_rule": found.limits.spare_rule or None,
        "asked_at_once": found.limits.asked_at_once,
        "lead_seconds": int(found.limits.lead.total_seconds()),
        "wake_seconds": int(found.limits.wake.total_seconds()),
    }


def _render_pools(found: PoolReport) -> Json:
    counts = {"switched": found.switched, "kept": found.kept, "asleep": found.asleep}
    return {**counts, **_render_sums(found.sums)}


def _render_results(hosts: tuple[StateCount, ...], sums: PowerSums) -> Json:
    counts = [{"state": str(one.state), "reason": str(one.reason), "hosts": one.hosts} for one in hosts]
    return {"hosts": counts, **_render_sums(sums)}


def _render_sums(sums: PowerSums) -> Json:
    return {
        "slept_hours": round(sums.slept.total_seconds() / 3600, 2),
        "switched_off": sums.switched_off,
        "woken": sums.woken,
        "failed_wakes": sums.failed,
        "missed_starts": sums.missed,
    }
