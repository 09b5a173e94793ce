# SPDX-License-Identifier: Apache-2.0
"""Heat, by the service user as a member of the project that a stack is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import CloudService, Explained, Json, TypedConflict
from blazar.clouds.ports.stacks import (
    COMPLETE,
    DELETE,
    FAILED,
    IN_PROGRESS,
    PlannedResource,
    Stack,
    StackExists,
    StackPlan,
    StackRefused,
    StackResource,
)
from blazar.model.base.errors import NotFound

_LEVELS = 5
"""The most levels of nested stacks that Heat has by default."""

_EXISTS = "StackExists"


class OpenStackStacks:
    """Implements the stacks port."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def preview_stack(self, project_id: str, plan: StackPlan) -> tuple[PlannedResource, ...]:
        """Return the resources of a plan."""
        answer = self._send(project_id, "/stacks/preview", _body(plan))
        return tuple(_iterate_planned(answer["stack"]["resources"]))

    def begin_stack(self, project_id: str, plan: StackPlan, *, tags: frozenset[str]) -> str:
        """Begin to create a stack."""
        # Without a rollback, so that the resource that failed is there to be looked at.
        body = {**_body(plan), "tags": ",".join(sorted(tags)), "disable_rollback": True}
        try:
            return str(self._send(project_id, "/stacks", body)["stack"]["id"])
        except TypedConflict as error:
            if error.type == _EXISTS:
                raise StackExists(error.message, public=error.public) from error
            raise

    def stacks_tagged(self, project_id: str, tag: str) -> tuple[Stack, ...]:
        """Return the stacks with a tag."""
        return _stacks(self._heat(project_id), tags=tag)

    def stacks_named(self, project_id: str, name: str) -> tuple[Stack, ...]:
        """Return the stacks with a name."""
        return _stacks(self._heat(project_id), name=name)

    def stack(self, project_id: str, stack_id: str) -> Stack | None:
        """Return a stack."""
        return _find_stack(self._heat(project_id), stack_id)

    def begin_stack_deletion(self, project_id: str, stack_id: str) -> None:
        """Begin to delete a stack."""
        heat = self._heat(project_id)
        heat.call("DELETE", _path(heat, stack_id))

    def stack_resources(self, project_id: str, stack_id: str) -> tuple[StackResource, ...]:
        """Return the resources of a stack."""
        heat = self._heat(project_id)
        try:
            answer = heat.get(f"{_path(heat, stack_id)}/resources", params={"nested_depth": _LEVELS})
        except NotFound:
            return ()
        return tuple(_resource(item) for item in answer["resources"])

    def _heat(self, project_id: str) -> CloudService:
        return self._access.in_project(project_id, recent=True).orchestration

    def _send(self, project_id: str, path: str, body: Json) -> Json:
        """Send a template; what Heat says against it is for who wrote it."""
        try:
            return self._heat(project_id).call("POST", path, body=body)
        except Explained as error:
            raise StackRefused(error.message, error.explanation).because(error.cause) from error


def _stacks(heat: CloudService, **filters: str) -> tuple[Stack, ...]:
    """Return stacks; a list without a limit comes in one page."""
    found = [_stack(item) for item in heat.get("/stacks", params=filters)["stacks"]]
    # For a moment Heat lists a stack that it has deleted.
    return tuple(stack for stack in found if (stack.action, stack.state) != (DELETE, COMPLETE))


def _find_stack(heat: CloudService, stack_id: str) -> Stack | None:
    """Return a stack, which by its id alone is found in a list only."""
    return next(iter(_stacks(heat, id=stack_id)), None)


def _path(heat: CloudService, stack_id: str) -> str:
    """Return the path of a stack, which needs its name, too; NotFound."""
    found = _find_stack(heat, stack_id)
    if found is None:
        raise NotFound(f"Heat has no stack {stack_id}")
    return f"/stacks/{found.name}/{found.id}"


def _body(plan: StackPlan) -> Json:
    body: Json = {
        "stack_name": plan.name,
        "template": dict(plan.template),
        "files": dict(plan.files),
        "environment": dict(plan.environment),
        "parameters": dict(plan.parameters),
    }
    return body if plan.timeout is None else {**body, "timeout_mins": plan.timeout}


def _iterate_planned(items: Any) -> Iterator[PlannedResource]:
    """Yield resources of a preview, in which those of a group or of a nested template are a list in their place."""
    for item in items:
        if isinstance(item, list):
            yield from _iterate_planned(item)
        else:
            parent = str(item.get("parent_resource") or "")
            yield PlannedResource(item["resource_name"], item["resource_type"], item["properties"], parent)


def _stack(item: Json) -> Stack:
    action, state = _split_status(item["stack_status"])
    reason = str(item.get("stack_status_reason") or "")
    return Stack(item["id"], item["stack_name"], action, state, reason, frozenset(item.get("tags") or ()))


def _resource(item: Json) -> StackResource:
    return StackResource(
        item["resource_name"],
        item["resource_type"],
        str(item.get("physical_resource_id") or ""),
        _split_status(item["resource_status"])[1],
        str(item.get("resource_status_reason") or ""),
    )


def _split_status(status: str) -> tuple[str, str]:
    """Return action and state of a status such as ``CREATE_IN_PROGRESS``."""
    for state in (COMPLETE, FAILED, IN_PROGRESS):
        if status.endswith(f"_{state}"):
            return status.removesuffix(f"_{state}"), state
    return status, ""
