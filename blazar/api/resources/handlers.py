# SPDX-License-Identifier: Apache-2.0
"""Handlers of resources of any kind, in the form of each group of routes; and those of ``/v1/resources``.

Routes of kinds and of parts of other packages have the first ones, too. The others show members what is public.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from blazar.api.http.answers import Answer, Tags, link, self_link, weak_tag
from blazar.api.http.bodies import check
from blazar.api.http.context import Call, identifier
from blazar.api.http.shapes import Json
from blazar.api.resources import components, lists, requests
from blazar.api.resources.rules import PRIVATE, RULES
from blazar.model.base.errors import NotFound, PreconditionFailed
from blazar.model.base.values import dataclass
from blazar.model.calendar.allocations import ResourceAllocations
from blazar.model.calendar.views import Viewer
from blazar.model.resources.changes import Registration, ResourceChange
from blazar.model.resources.resource import GENERAL_FIELDS, Resource, ResourceKind, ResourceProperty, unknown_resource


def resource_id(kind: ResourceKind, text: str) -> str:
    """Return the id of a resource from a path; NotFound if it cannot be one."""
    key = identifier(text)
    if key == "-":
        raise unknown_resource(kind, text)
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How some routes speak of resources.

    ``kind`` and ``id_of`` read the kind and the id from the parameters of a path. ``registration`` and ``change`` make
    requests of a body that matches its schema; a change also of the revisions that ``If-Match`` allows. ``url`` is the
    path of a resource, for the header ``Location`` (None: without it). With ``tagged`` resources have strong tags, and
    ``If-Match`` counts. With ``shown``, the answer of a GET can be sent back by a change.
    """

    kind: Callable[[Mapping[str, str]], ResourceKind]
    id_of: Callable[[Mapping[str, str]], str]
    registration: Callable[[Call, ResourceKind, Json], Registration]
    change: Callable[[Json, tuple[int, ...] | None], ResourceChange] | None = None
    url: Callable[[Resource], str] | None = None
    tagged: bool = False
    shown: Callable[[Call, Resource], Json] | None = None


def form_of(
    kind: ResourceKind, key: str, registration: Callable[[Json], Registration] = Registration, **more: object
) -> Form:
    """Return the form of routes of one kind, with the id in the parameter ``key`` of the path."""
    values: dict[str, object] = {
        "kind": lambda _: kind,
        "id_of": lambda path: resource_id(kind, path[key]),
        "registration": lambda _call, _kind, body: registration(body),
    }
    return Form(**(values | more))  # type: ignore[arg-type]


class Handlers:
    """Handlers of resources in one form; each takes a call and the parameters of its path."""

    def __init__(self, form: Form) -> None:
        self._form = form

    def index(self, call: Call, **path: str) -> Sequence[Resource]:
        """List all resources, for 1.0; later ones have pages."""
        return call.manager.resources.all(self._form.kind(path))

    def create(self, call: Call, **path: str) -> Answer:
        """Register a resource."""
        kind = self._form.kind(path)
        found = call.manager.resources.register(kind, self._form.registration(call, kind, call.body()))
        url = self._form.url
        return self._answer(found, {} if url is None else {"Location": link(url(found))})

    def show(self, call: Call, **path: str) -> Answer:
        """Show a resource."""
        return self._answer(self._found(call, path))

    def update(self, call: Call, **path: str) -> Answer:
        """Change a resource; what is as it was shown stays."""
        found, shown = self._found(call, path), self._form.shown
        assert self._form.change is not None
        sent = call.read()
        if shown is None:
            body = call.checked(sent)
        else:
            current = partial(self._tags(found).check, found.revision)
            body = call.changes(partial(shown, call, found), sent, current=current)
            if not body:
                current()
                return self._answer(found)
        change = self._form.change(body, self._wanted(found))
        try:
            return self._answer(call.manager.resources.change(found.kind, found.external_id, change))
        except PreconditionFailed as error:
            raise self._tags(found).refused(error, found.revision) from error

    def delete(self, call: Call, **path: str) -> None:
        """Unregister a resource."""
        if not self._form.tagged:
            return call.manager.resources.unregister(self._form.kind(path), self._form.id_of(path))
        found = self._found(call, path)
        try:
            call.manager.resources.unregister(found.kind, found.external_id, revisions=self._wanted(found))
        except PreconditionFailed as error:
            raise self._tags(found).refused(error, found.revision) from error

    def refresh(self, call: Call, **path: str) -> Resource:
        """Update what the cloud tells of a resource."""
        return call.manager.resources.refresh(self._form.kind(path), self._form.id_of(path))

    def _found(self, call: Call, path: Mapping[str, str]) -> Resource:
        return call.manager.resources.one(self._form.kind(path), self._form.id_of(path))

    def _answer(self, found: Resource, headers: Mapping[str, str] | None = None) -> Answer:
        etag = self._tags(found).of(found.revision) if self._form.tagged else None
        return Answer(found, etag=etag, headers=headers or {})

    def _wanted(self, found: Resource) -> tuple[int, ...] | None:
        return self._tags(found).wanted() if self._form.tagged else None

    def _tags(self, found: Resource) -> Tags:
        # With the label: a resource that was registered again counts from 0. It is shown in the shape of 1.1.
        return Tags(f".{found.label}.1")


SORT_KEYS = ("name", "created_at", "label", "updated_at")


def kind_of(path: Mapping[str, str]) -> ResourceKind:
    """Return the kind that a path names; the manager knows if it is served."""
    return ResourceKind(identifier(path["kind"]))


def id_of(path: Mapping[str, str]) -> str:
    """Return the id that a path names; NotFound."""
    return resource_id(kind_of(path), path["resource_id"])


def registration(call: Call, kind: ResourceKind, body: Json) -> Registration:
    """Return the request to register a resource; InvalidInput if the body is not what the kind takes."""
    for described in call.manager.resources.kinds().items:
        if described.kind == kind:
            check(body, components.registration_schema(described), lasting=False)
    given = {name: value for name, value in body.items() if name not in GENERAL_FIELDS}
    return requests.registration(given, body)


class ResourceHandlers(Handlers):
    """Handlers that show members what is public of the resources that are open to their project."""

    def __init__(self) -> None:
        super().__init__(
            Form(
                kind=kind_of,
                id_of=id_of,
                registration=registration,
                change=requests.change,
                url=components.path_of,
                tagged=True,
                shown=_render,
            )
        )

    def page(self, call: Call, **path: str) -> Answer:
        """List resources in pages."""
        kind, question = kind_of(path), lists.resource_question(call, SORT_KEYS[0])
        resources = call.manager.resources
        found = (
            resources.page(kind, question)
            if _sees_private(call, kind)
            else resources.visible_page(kind, question, _viewer(call))
        )
        items = [call.asked.only(components.resource(item)) for item in found.items]
        return lists.page_answer("resources", items, found)

    def show(self, call: Call, **path: str) -> Answer:
        """Show a resource."""
        kind = kind_of(path)
        if _sees_private(call, kind):
            return super().show(call, **path)
        found = call.manager.resources.visible(kind, id_of(path), _viewer(call))
        return Answer(found, etag=weak_tag(json.dumps(components.resource(found))))


def _render(call: Call, found: Resource) -> Json:
    """Return a resource as the caller sees it."""
    if _sees_private(call, found.kind):
        return components.resource(found)
    return components.resource(call.manager.resources.visible(found.kind, found.external_id, _viewer(call)))


def kinds(call: Call) -> Json:
    """List the kinds that are served."""
    found = call.manager.resources.kinds().items
    shown = [components.kind(description, _allowing_rules(call, description.kind)) for description in found]
    return {"kinds": shown, "links": [self_link()]}


def allocations(call: Call, **path: str) -> ResourceAllocations:
    """Show the allocations of a resource."""
    return lists.allocations_of(call, kind_of(path), id_of(path))


def move(call: Call, **path: str) -> ResourceAllocations:
    """Move a reservation from a resource to another."""
    return lists.move_reservation(call, kind_of(path), id_of(path))


def candidates(call: Call, **path: str) -> Json:
    """List what the cloud has to register."""
    registered = call.asked.one("registered")
    found = call.manager.resources.candidates(kind_of(path))
    shown = [c for c in found if registered is None or registered == (c.resource_id is not None)]
    return {"candidates": [components.candidate(candidate) for candidate in shown], "links": [self_link()]}


def properties(call: Call, **path: str) -> Answer:
    """List the properties that operators have set, in pages; private ones for those who may see them."""
    kind = kind_of(path)
    found = call.manager.resources.property_page(
        kind, call.asked.page("name"), include_private=_sees_private(call, kind)
    )
    return lists.page_answer("properties", [components.property_values(values) for values in found.items], found)


def set_property(call: Call, name: str, **path: str) -> ResourceProperty:
    """Make a property public or private."""
    private = call.body()["private"]
    if "\0" in name or len(name) > 255:
        raise NotFound("no resource has ever had a property of this name", code="property_not_found")
    return call.manager.resources.set_property(kind_of(path), name, private=private)


def _sees_private(call: Call, kind: ResourceKind) -> bool:
    return call.allows(PRIVATE.name, _target(call, kind))


def _allowing_rules(call: Call, kind: ResourceKind) -> list[str]:
    """Return the rules that let the caller do something with resources of a kind."""
    target = _target(call, kind)
    return [rule.name for rule in (*RULES, PRIVATE) if call.allows(rule.name, target)]


def _target(call: Call, kind: ResourceKind) -> Mapping[str, str]:
    caller = call.caller
    return {"kind": kind, "project_id": caller.project_id, "user_id": caller.user_id}


def _viewer(call: Call) -> Viewer:
    return Viewer(call.caller.project_id)
