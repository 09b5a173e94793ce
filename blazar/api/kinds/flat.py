# SPDX-License-Identifier: Apache-2.0
"""Routes of a kind as Chameleon's clients know them, up to version 1.0: capabilities are keys beside the attributes.

Networks and devices have them, each with a ``FlatKind``. Version 2 does not serve them; from 1.1 on ``/v1/resources``
serves these kinds as all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from blazar.api.http.bodies import Schema
from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import (
    ADMIN,
    Body,
    NounRows,
    Parameter,
    Part,
    Root,
    Route,
    Rule,
    in_path,
    in_query,
    only_at_1_0,
)
from blazar.api.http.shapes import RESERVATION_ID, Json, a_list, an_object, ref
from blazar.api.kinds.flat_answers import ALLOCATION, FlatAnswers
from blazar.api.resources.handlers import Handlers, form_of, resource_id
from blazar.api.resources.requests import CAPABILITY, CAPABILITY_CHANGE, FLAT_FIELDS, capabilities, flag, projects
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.lease import Lease
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import Resource, ResourceKind, ResourceProperty

MOST_LEASES = 1000
"""Leases of one call to the manager."""

_NONE: Json = {}
PROPERTY_UPDATE: Schema = {
    "type": "object",
    "required": ["private"],
    "additionalProperties": False,
    "properties": {"private": {"type": "boolean", "description": "true or false"}},
}
_MOVE: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
    "description": "an object with reservation_id, or with lease_id",
    "properties": {
        "reservation_id": {"type": "string", "maxLength": 255, "description": "the id of a reservation"},
        "lease_id": {"type": "string", "maxLength": 255, "description": "the id of a lease"},
    },
}
NARROWING = (
    in_query("lease_id", "only allocations of this lease"),
    in_query("reservation_id", "only allocations of this reservation"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatKind:
    """A kind in this form.

    ``one`` and ``many`` are the keys of answers, ``nouns`` the words for several resources, ``short`` that for one in
    a sentence. ``attributes`` are the schemas of the fields that name a resource to register, of which ``required``
    must be given; they cannot be changed. ``answers`` renders resources. With ``moves`` operators can have other
    resources take over.
    """

    kind: ResourceKind
    one: str
    many: str
    nouns: str
    short: str
    attributes: Schema
    required: Sequence[str]
    answers: FlatAnswers
    examples: tuple[Json, Json]
    moves: bool = False

    def part(self, *, reservations: Json, fields: Json, components: Json = _NONE) -> Part:
        """Return the part of the API; ``reservations`` and ``fields`` are those of its type."""
        rules = _Rules(self)
        rows = (*_rows(self, rules), *_allocation_rows(self, rules), *_property_rows(self, rules))
        return Part(
            self.many,
            routes=only_at_1_0(rows, instead=f"/v1/resources/{self.kind}"),
            rules=rules.all,
            components={**self.answers.components, **components},
            reservations=reservations,
            fields=fields,
        )

    @property
    def id(self) -> Parameter:
        """The parameter of paths."""
        return in_path(f"{self.one}_id", f"the id of the {self.short}")

    @property
    def title(self) -> str:
        """The first part of names of components."""
        return self.one.capitalize()


class _Rules:
    def __init__(self, flat: FlatKind) -> None:
        def rule(action: str, description: str) -> Rule:
            return Rule(f"blazar:{flat.many}:{action}", ADMIN, description)

        self.get = rule("get", f"List and show the {flat.nouns} that can be reserved.")
        self.post = rule("post", f"Register {flat.nouns}.")
        self.put = rule("put", f"Update the capabilities of {flat.nouns}.")
        self.delete = rule("delete", f"Unregister {flat.nouns}.")
        self.allocations = rule("get_allocations", f"List and show allocations of {flat.nouns}.")
        self.move = rule("reallocate", f"Have other {flat.nouns} take over.")
        self.properties = rule("get_resource_properties", f"List capabilities of {flat.nouns}.")
        self.patch = rule("update_resource_properties", "Make a capability of them public or private.")
        moving = (self.move,) if flat.moves else ()
        first = (self.get, self.post, self.put, self.delete, self.allocations)
        self.all = (*first, *moving, self.properties, self.patch)


class _Asked:
    """The handlers that only these routes have."""

    def __init__(self, flat: FlatKind) -> None:
        self._flat = flat
        self._kind = flat.kind
        self._key = flat.id.name

    def registration(self, body: Json) -> Registration:
        """Return the request to register a resource. InvalidInput."""
        given = {key: body[key] for key in self._flat.attributes if key in body}
        return Registration(
            given,
            self._capabilities(body),
            disabled=flag(body.get("disabled", False)),
            open_to=projects(body.get("authorized_projects")),
        )

    def update(self, call: Call, **path: str) -> Resource:
        """Set and remove capabilities."""
        flat, body = self._flat, call.body()
        found = call.manager.resources.one(self._kind, resource_id(self._kind, path[self._key]))
        for key in flat.attributes:
            if key in body and str(body[key]) != str(found.attributes[key]):
                raise InvalidInput(f"{key} of a {flat.short} cannot be changed; register another {flat.short}")
        given = {key: value for key, value in body.items() if key not in flat.attributes}
        if not given:
            return found
        texts = self._capabilities(given)
        change = ResourceChange(
            {key: None if given[key] is None else text for key, text in texts.items()},
            disabled=flag(body["disabled"]) if "disabled" in body else None,
            open_to=projects(body.get("authorized_projects")),
            sets_projects="authorized_projects" in body,
        )
        return call.manager.resources.change(self._kind, found.external_id, change)

    def allocations(self, call: Call) -> Sequence[Json]:
        """List the allocations of all resources; operators also see whose they are."""
        found = call.manager.resources.allocations(self._kind, **narrowing_query(call))
        leases: dict[str, Lease] | None = None
        if call.is_operator:
            ids = sorted({allocation.lease_id for one in found for allocation in one.allocations})
            parts = [ids[first : first + MOST_LEASES] for first in range(0, len(ids), MOST_LEASES)]
            leases = {lease.id: lease for part in parts for lease in call.manager.leases.by_id(part)}
        return [self._flat.answers.allocation(allocations, leases) for allocations in found]

    def one_allocation(self, call: Call, **path: str) -> Json:
        """Show the allocations of one resource."""
        key = resource_id(self._kind, path[self._key])
        found = call.manager.resources.allocations(self._kind, resource_id=key, **narrowing_query(call))
        return self._flat.answers.allocation(found[0])

    def move(self, call: Call, **path: str) -> Json:
        """Replace a resource in a reservation, or in all reservations of a lease."""
        resources, body = call.manager.resources, call.body()
        key = resources.one(self._kind, resource_id(self._kind, path[self._key])).external_id
        asked = {name: identifier(value) for name, value in body.items()}
        (held,) = resources.allocations(self._kind, resource_id=key, **asked)
        ids = dict.fromkeys(allocation.reservation_id for allocation in held.allocations)
        if not ids:
            ((name, value),) = asked.items()
            raise NotFound(
                f"{name.removesuffix('_id')} {value[:80]} has no allocation on {self._flat.short} {held.resource.name}",
                at=f"/{name}",
            )
        for reservation_id in ids:
            held = resources.move(self._kind, key, reservation_id)
        return self._flat.answers.allocation(held)

    def _capabilities(self, body: Json) -> dict[str, str]:
        """Return the keys that are capabilities, as strings; InvalidInput if one has the name of another key."""
        fields = self._flat.attributes.keys() | FLAT_FIELDS.keys()
        given = {key: value for key, value in body.items() if key not in fields}
        if taken := sorted(given.keys() & self._flat.answers.own_keys):
            raise InvalidInput(f"{taken[0]} is not a capability and cannot be changed; choose another key")
        return capabilities(given)


def list_properties(call: Call, *, kind: ResourceKind, shown: Callable[..., Json]) -> Sequence[Json]:
    """List capabilities."""
    # Any non-empty value counts as true, as in the existing Blazar: clients send True and never False.
    everything = bool(call.query.get("all")) and call.is_operator
    found = call.manager.resources.properties(kind, include_private=everything)
    return [shown(value, detail=bool(call.query.get("detail"))) for value in found]


def set_property(call: Call, name: str, *, kind: ResourceKind, short: str) -> ResourceProperty:
    """Make a capability public or private."""
    body = call.body()
    if "\0" in name or len(name) > 255:
        raise NotFound(f"no {short} has ever had a property of this name", code="property_not_found")
    return call.manager.resources.set_property(kind, name, private=body["private"])


def narrowing_query(call: Call) -> dict[str, str]:
    """Return the parameters that narrow a list of allocations, as far as they are sent."""
    return {p.name: identifier(call.query[p.name]) for p in NARROWING if p.name in call.query}


def _rows(flat: FlatKind, rules: _Rules) -> tuple[Route, ...]:
    asked, answers, short = _Asked(flat), flat.answers, flat.short
    handlers = Handlers(form_of(flat.kind, flat.id.name, asked.registration))
    rows = NounRows(
        root=Root.V1,
        path=f"/{flat.many}",
        key=flat.id,
        listed=an_object({flat.many: a_list(ref(answers.component))}),
        shown=an_object({flat.one: ref(answers.component)}),
        render=lambda found: {flat.one: answers.resource(found)},
    )
    created, changed = _bodies(flat)
    return (
        rows.list(
            handlers.index,
            rules.get,
            f"list_{flat.many}",
            f"List the {flat.nouns} that can be reserved",
            render=lambda found: {flat.many: [answers.resource(resource) for resource in found]},
        ),
        rows.create(handlers.create, rules.post, f"create_{flat.one}", f"Register a {short}", created),
        rows.show(handlers.show, rules.get, f"show_{flat.one}", f"Show a {short}"),
        rows.update(
            asked.update, rules.put, f"update_{flat.one}", f"Set and remove capabilities of a {short}", changed
        ),
        rows.delete(
            handlers.delete,
            rules.delete,
            f"delete_{flat.one}",
            f"Unregister a {short}",
            render=lambda _: {},
            answers={200: an_object({})},
        ),
    )


def _bodies(flat: FlatKind) -> tuple[Body, Body]:
    """Return the bodies that register a resource and change one."""

    def body(name: str, example: Json, value: Schema, **more: object) -> Body:
        schema = {
            "type": "object",
            "maxProperties": 500,
            "properties": {**flat.attributes, **FLAT_FIELDS},
            "additionalProperties": value,
            **more,
        }
        return Body(f"{flat.title}{name}", schema, (example,))

    created, changed = flat.examples
    of_one, text = list(flat.required), f"an object with at least one capability, for example {_first(changed)}"
    return (
        body("Create", created, CAPABILITY, required=of_one, description="an object of at most 500 keys"),
        body("Update", changed, CAPABILITY_CHANGE, minProperties=1, description=text),
    )


def _first(example: Json) -> str:
    name, value = next(iter(example.items()))
    return f'{{"{name}": "{value}"}}'


def _allocation_rows(flat: FlatKind, rules: _Rules) -> tuple[Route, ...]:
    asked = _Asked(flat)
    listed = partial(Route, root=Root.V1, method="GET", rule=rules.allocations, json_twin=True)
    rows = (
        listed(
            path=f"/{flat.many}/allocations",
            name=f"list_{flat.one}_allocations",
            summary=f"List the allocations of all {flat.nouns}",
            handler=asked.allocations,
            render=lambda found: {"allocations": found},
            answers={200: an_object({"allocations": a_list(ref(ALLOCATION))})},
            parameters=NARROWING,
        ),
        listed(
            path=f"/{flat.many}/{{{flat.id.name}}}/allocation",
            name=f"show_{flat.one}_allocation",
            summary=f"Show the allocations of a {flat.short}",
            handler=asked.one_allocation,
            render=lambda found: {"allocation": found},
            answers={200: an_object({"allocation": ref("Allocation")})},
            errors=(404,),
            parameters=(flat.id, *NARROWING),
        ),
    )
    return (*rows, _move_row(flat, rules, rows[-1])) if flat.moves else rows


def _move_row(flat: FlatKind, rules: _Rules, shown: Route) -> Route:
    """Return the row that moves what the row ``shown`` shows."""
    return replace(
        shown,
        method="PUT",
        name=f"move_{flat.one}_reservation",
        summary=f"Move a reservation, or those of a lease, from this {flat.short} to another",
        handler=_Asked(flat).move,
        rule=rules.move,
        body=Body(f"{flat.title}AllocationUpdate", _MOVE, ({"reservation_id": RESERVATION_ID},)),
        errors=(404, 409),
        parameters=(flat.id,),
    )


def _property_rows(flat: FlatKind, rules: _Rules) -> tuple[Route, ...]:
    answers = flat.answers
    return (
        Route(
            root=Root.V1,
            method="GET",
            path=f"/{flat.many}/properties",
            json_twin=True,
            name=f"list_{flat.one}_properties",
            summary=f"List the capabilities of {flat.nouns}",
            handler=partial(list_properties, kind=flat.kind, shown=answers.property_values),
            rule=rules.properties,
            render=lambda found: {"resource_properties": found},
            answers={200: an_object({"resource_properties": a_list(ref(answers.property_component))})},
            parameters=(
                in_query("detail", "any value: include values and the private flag"),
                in_query("all", "any value: include private capabilities (operators only)"),
            ),
        ),
        Route(
            root=Root.V1,
            method="PATCH",
            path=f"/{flat.many}/properties/{{name}}",
            name=f"set_{flat.one}_property",
            summary=f"Make a capability of {flat.nouns} public, or private to operators",
            handler=partial(set_property, kind=flat.kind, short=flat.short),
            rule=rules.patch,
            body=Body(f"{flat.title}PropertyUpdate", PROPERTY_UPDATE, ({"private": True},)),
            render=lambda changed: {"resource_property": answers.property(changed)},
            answers={200: an_object({"resource_property": ref("ResourceProperty")})},
            errors=(404,),
            parameters=(in_path("name", "a capability's name", policy_name="property_name"),),
        ),
    )
