# SPDX-License-Identifier: Apache-2.0
"""What a lease has of hosts, network segments and devices, at 1.0: three routes that Chameleon's clients call.

From 1.1 on the ``allocations`` in the lease itself say it. Members see no more here than anywhere else: what is for
operators is null, and the id is the label where ids are for operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import Root, Route, in_path
from blazar.api.http.shapes import EXAMPLE_TIMESTAMPS, FLAG, SPACED_OR_NULL, TEXT, Json, a_list, an_object, or_null, ref
from blazar.api.leases.rules import GET, NAMES
from blazar.model.base.clock import spaced_or_none, spaced_text
from blazar.model.base.paging import Condition, Operator, Page
from blazar.model.base.values import dataclass
from blazar.model.calendar.views import Viewer
from blazar.model.leases.details import HeldResource
from blazar.model.leases.lease import unknown_lease
from blazar.model.resources.pages import ResourceQuestion, VisibleResource
from blazar.model.resources.resource import NAMED_KINDS, Resource, ResourceKind

_MOST = 100_000
"""Resources of one lease; there cannot be so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindInLease:
    """A kind in these routes: the key of the answer, the attributes that are shown, and which of them is the name.

    Any attribute may be null here: where it is for operators, and where the resource has none.
    """

    kind: ResourceKind
    many: str
    nouns: str
    component: str
    attributes: Json
    named_by: str | None
    example: Json

    def index(self, call: Call, lease_id: str) -> Sequence[Resource | VisibleResource]:
        """List what the lease has of the kind, now or promised; what it has given back is left out."""
        found = call.manager.leases.details(identifier(lease_id))
        lease = found.lease
        if lease.deleted_at is not None:
            raise unknown_lease(lease_id)
        call.authorize({"project_id": lease.project_id, "user_id": lease.user_id})
        held = [holding for holding in found.held if holding.kind == self.kind and not holding.released]
        return self._seen(call, held) if held else ()

    def _seen(self, call: Call, held: Sequence[HeldResource]) -> Sequence[Resource | VisibleResource]:
        """Return what the caller sees of resources, by the names by which he knows them."""
        by_name = call.is_operator or call.allows(NAMES) or self.kind in NAMED_KINDS
        names = tuple(sorted({holding.name if by_name else holding.label for holding in held}))
        ids = frozenset(holding.external_id if by_name else holding.label for holding in held)
        # Hosts of several regions may have one name.
        question = ResourceQuestion(Page(_MOST, "name"), (Condition("name", Operator.IN, names),))
        resources = call.manager.resources
        if call.is_operator:
            every = resources.page(self.kind, question).items
            return [resource for resource in every if resource.external_id in ids]
        viewer = Viewer(call.caller.project_id or "", names=call.allows(NAMES))
        return [r for r in resources.visible_page(self.kind, question, viewer).items if r.id in ids]

    def enclosed(self, found: Sequence[Resource | VisibleResource]) -> Json:
        """Render a list of them."""
        return {self.many: [self.shown(resource) for resource in found]}

    def shown(self, value: Resource | VisibleResource) -> Json:
        """Render a resource, with its capabilities as keys beside its attributes."""
        nothing = dict.fromkeys((*self.attributes, "created_at", "updated_at"))
        attributes = {key: attribute for key, attribute in value.attributes.items() if key in self.attributes}
        if isinstance(value, VisibleResource):
            name = {} if self.named_by is None else {self.named_by: value.name}
            return {
                **value.properties,
                **nothing,
                **attributes,
                **name,
                "id": value.id,
                "reservable": value.reservable,
            }
        return {
            **value.capabilities,
            **nothing,
            **attributes,
            "id": value.external_id,
            "reservable": value.reservable,
            "created_at": spaced_text(value.created_at),
            "updated_at": spaced_or_none(value.updated_at),
        }

    @property
    def row(self) -> Route:
        """The route."""
        return _on_lease(
            path=f"/leases/{{lease_id}}/{self.many}",
            name=f"list_{self.many}_in_lease",
            summary=f"List the {self.nouns} that a lease has",
            handler=self.index,
            render=self.enclosed,
            answers={200: an_object({self.many: a_list(ref(self.component))})},
        )

    @property
    def schema(self) -> Json:
        """The schema of one of them."""
        return an_object(
            {
                "id": TEXT,
                **{name: or_null(schema) for name, schema in self.attributes.items()},
                "reservable": {**FLAG, "description": "accepts new leases"},
                "created_at": SPACED_OR_NULL,
                "updated_at": SPACED_OR_NULL,
            },
            more={**TEXT, "description": "a capability"},
            example={**self.example, "reservable": True, **EXAMPLE_TIMESTAMPS},
        )


_on_lease = partial(
    Route,
    root=Root.V1,
    method="GET",
    rule=GET,
    parameters=(in_path("lease_id", "the lease's id"),),
    on_target=True,
    errors=(404,),
    json_twin=True,
)
