# SPDX-License-Identifier: Apache-2.0
"""The handlers of the resources of any kind, for all versions: what differs between them is in a ``Form``.

Routes of hosts, of addresses, of parts of other packages and of ``/v1/resources`` share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from blazar.api.answers import Answer
from blazar.api.context import Call, identifier
from blazar.api.preconditions import Tags
from blazar.api.shapes import Json
from blazar.api.urls import link
from blazar.model.errors import PreconditionFailed
from blazar.model.requests import Registration, ResourceChange
from blazar.model.resource import Resource, ResourceKind, unknown


def resource_id(kind: ResourceKind, text: str) -> str:
    """Return the id of a resource from a path; NotFound if it cannot be one."""
    key = identifier(text)
    if key == "-":
        raise unknown(kind, text)
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How some routes speak of resources.

    ``kind`` and ``id_of`` read the kind and the id from the parameters of a path. ``registration`` and ``change`` make
    requests of a body that matches its schema; a change also of the edits that ``If-Match`` allows. ``url`` is the path
    of a resource, for the header ``Location`` (None: without it). With ``minor`` resources have strong tags of that
    minor version, and ``If-Match`` counts. With ``shown``, the answer of a GET can be sent back by a change.
    """

    kind: Callable[[Mapping[str, str]], ResourceKind]
    id_of: Callable[[Mapping[str, str]], str]
    registration: Callable[[Call, ResourceKind, Json], Registration]
    change: Callable[[Json, tuple[int, ...] | None], ResourceChange] | None = None
    url: Callable[[Resource], str] | None = None
    minor: int | None = None
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
        """List all resources, for 1.0; ``lists.resource_list`` makes the row of later ones."""
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
            current = partial(self._tags(found).check, found.edits)
            body = call.changes(partial(shown, call, found), sent, current=current)
            if not body:
                current()
                return self._answer(found)
        change = self._form.change(body, self._wanted(found))
        try:
            return self._answer(call.manager.resources.change(found.kind, found.external_id, change))
        except PreconditionFailed as error:
            raise self._tags(found).refused(error, found.edits) from error

    def delete(self, call: Call, **path: str) -> None:
        """Unregister a resource."""
        if self._form.minor is None:
            return call.manager.resources.unregister(self._form.kind(path), self._form.id_of(path))
        found = self._found(call, path)
        try:
            call.manager.resources.unregister(found.kind, found.external_id, edits=self._wanted(found))
        except PreconditionFailed as error:
            raise self._tags(found).refused(error, found.edits) from error

    def refresh(self, call: Call, **path: str) -> Resource:
        """Update what the cloud tells of a resource."""
        return call.manager.resources.refresh(self._form.kind(path), self._form.id_of(path))

    def _found(self, call: Call, path: Mapping[str, str]) -> Resource:
        return call.manager.resources.one(self._form.kind(path), self._form.id_of(path))

    def _answer(self, found: Resource, headers: Mapping[str, str] | None = None) -> Answer:
        etag = None if self._form.minor is None else self._tags(found).of(found.edits)
        return Answer(found, etag=etag, headers=headers or {})

    def _wanted(self, found: Resource) -> tuple[int, ...] | None:
        return None if self._form.minor is None else self._tags(found).wanted()

    def _tags(self, found: Resource) -> Tags:
        # With the label: a resource that was registered again counts from 0.
        return Tags(f".{found.label}.{self._form.minor}")
