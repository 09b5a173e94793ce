# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases/{lease_id}/energy``, from version 1.1 on: what a lease drew and emitted, past ones too."""

from __future__ import annotations

from blazar.api.http.context import Call
from blazar.api.http.routes import Caching, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import FLAG, LINKS, NUMBER, ZULU, Json, an_object, ref
from blazar.api.leases.rules import GET as SEE_LEASE
from blazar.api.leases.rules import visible
from blazar.model.base.clock import zulu
from blazar.model.energy.carbon import LeaseCarbon, LeaseEnergy
from blazar.model.energy.consumption import EnergySource

GET = Rule("blazar:leases:get_energy", all_of(SEE_LEASE), "Show what a lease drew and emitted.")

_COUNT: Json = {**NUMBER, "minimum": 0}
_COUNT_OR_NULL: Json = {"type": ["integer", "null"], "minimum": 0}
_CARBON: Json = {
    "gco2": {**_COUNT, "description": "grams of CO2e, those of the making of its hosts included"},
    "embodied_gco2": {**_COUNT, "description": "of these, the share of what it took to make its hosts"},
    "sci_mg": {**_COUNT_OR_NULL, "description": "Software Carbon Intensity: milligrams of CO2e per resource-hour"},
    "estimated": {**FLAG, "description": "some hours have the mean of that hour in the last seven days"},
    "complete": {**FLAG, "description": "all of the energy and its carbon is known"},
    "embodied_complete": {**FLAG, "description": "it is known of each host what it took to make it"},
}
COMPONENTS: Json = {
    "LeaseEnergy": an_object(
        {
            "computed_through": {**ZULU, "description": "until when it says what was"},
            "resource_seconds": {**_COUNT, "description": "seconds of whole hosts, from their hand-over on"},
            "energy_wh": {**_COUNT_OR_NULL, "description": "watt-hours; null: nothing is known of its hosts"},
            "source": {"enum": [*map(str, EnergySource), None], "description": "how it is known"},
            "unknown_seconds": {**_COUNT, "description": "of resource_seconds, what nothing is known of"},
            "carbon": {
                "anyOf": [an_object(_CARBON), {"type": "null"}],
                "description": "null: the site tells no carbon",
            },
        },
        example={
            "computed_through": "2030-04-26T13:00:00Z",
            "resource_seconds": 172800,
            "energy_wh": 14400,
            "source": "rated",
            "unknown_seconds": 0,
            "carbon": {
                "gco2": 5800,
                "embodied_gco2": 1480,
                "sci_mg": 120833,
                "estimated": False,
                "complete": True,
                "embodied_complete": True,
            },
        },
    ),
}


def show(call: Call, lease_id: str) -> Json:
    """Show what a lease drew and emitted."""
    found = call.manager.reports.lease_energy(visible(call, lease_id).id)
    return {"energy": _render(found), "links": []}


def _render(found: LeaseEnergy) -> Json:
    return {
        "computed_through": zulu(found.computed_through),
        "resource_seconds": found.resource_seconds,
        "energy_wh": found.energy_wh,
        "source": None if found.source is None else str(found.source),
        "unknown_seconds": found.unknown_seconds,
        "carbon": None if found.carbon is None else _render_carbon(found.carbon),
    }


def _render_carbon(carbon: LeaseCarbon) -> Json:
    return {
        "gco2": carbon.grams,
        "embodied_gco2": carbon.embodied,
        "sci_mg": carbon.sci_mg,
        "estimated": carbon.estimated,
        "complete": carbon.complete,
        "embodied_complete": carbon.embodied_complete,
    }


ROUTE = Route(
    root=Root.V1,
    method="GET",
    path="/leases/{lease_id}/energy",
    name="show_lease_energy",
    summary="Show what a lease drew and emitted",
    handler=show,
    rule=GET,
    on_target=True,
    caching=Caching.NONE,
    errors=(404,),
    answers={200: an_object({"energy": ref("LeaseEnergy"), "links": LINKS})},
    parameters=(in_path("lease_id", "the lease's id"),),
)
