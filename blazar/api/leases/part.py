# SPDX-License-Identifier: Apache-2.0
"""The part of the API that the leases are: routes of all versions, rules and components."""

from __future__ import annotations

from blazar.api.http.routes import Part, only_at_1_0
from blazar.api.leases.rules import BEST_EFFORT, CONFIRM, DELETE, GET, HOLD, KEEP, POST, PUT
from blazar.api.leases.v1_0 import components, schemas
from blazar.api.leases.v1_0.held import KindInLease
from blazar.api.leases.v1_0.routes import ROUTES_OF_V1, ROUTES_OF_V2
from blazar.api.leases.v1_1 import routes as full_routes
from blazar.api.leases.v1_1.components import COMPONENTS


def make_part(*kinds: KindInLease) -> Part:
    """Return the part; at 1.0 it shows what a lease has of these kinds."""
    return Part(
        "leases",
        routes=(
            *ROUTES_OF_V1,
            *only_at_1_0((kind.row for kind in kinds), instead="/v1/leases/{lease_id}"),
            *full_routes.ROUTES,
            *ROUTES_OF_V2,
        ),
        rules=(GET, POST, PUT, DELETE, CONFIRM, KEEP, HOLD),
        views=(BEST_EFFORT,),
        components={**COMPONENTS, **{kind.component: kind.schema for kind in kinds}},
        fields=schemas.FIELDS,
        controller="leases",
        make_components=components.components,
    )
