# SPDX-License-Identifier: Apache-2.0
"""The stacks port: Heat, as the service user in the project that a stack is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from blazar.model.base.errors import CloudRefused, Conflict
from blazar.model.base.values import dataclass, field

COMPLETE, FAILED, IN_PROGRESS = "COMPLETE", "FAILED", "IN_PROGRESS"
"""The states of an action on a stack."""

CREATE, DELETE = "CREATE", "DELETE"
"""Actions on a stack, of those that Heat has."""


class StackExists(Conflict):
    """The project has a stack of that name."""


class StackRefused(CloudRefused):
    """Heat does not take a template, or what goes with it; ``explanation`` is its sentence, for who wrote them."""

    def __init__(self, message: str, explanation: str) -> None:
        super().__init__(message)
        self.explanation = explanation


@dataclass(frozen=True, slots=True)
class StackPlan:
    """What Heat makes a stack of. The template, the environment and parameters are JSON objects; files have names.

    ``timeout`` is in minutes; None for that of Heat.
    """

    name: str
    template: Mapping[str, object]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)
    timeout: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource that a stack would have. What only its run tells is empty in ``properties``: null, "" or 0.

    ``parent`` is the resource, a group or a nested template, that it would be part of; empty for none.
    """

    name: str
    type: str
    properties: Mapping[str, object]
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack: ``state`` is that of the last ``action``, as ``CREATE`` and ``IN_PROGRESS``, ``reason`` says why."""

    id: str
    name: str
    action: str
    state: str
    reason: str = ""
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StackResource:
    """A resource of a stack, or of one nested in it. ``physical_id`` is its id in the cloud, empty if there is none."""

    name: str
    type: str
    physical_id: str
    state: str
    reason: str = ""


CHANGES = frozenset({"begin_stack", "begin_stack_deletion"})


class Stacks(Protocol):
    """Stacks of projects. All calls raise ``RoleMissing`` where the service user has no role in the project."""

    def preview_stack(self, project_id: str, plan: StackPlan) -> tuple[PlannedResource, ...]:
        """Return the resources that a stack would have, those of groups and nested templates included.

        StackRefused.
        """

    def begin_stack(self, project_id: str, plan: StackPlan, *, tags: frozenset[str]) -> str:
        """Begin to create a stack and return its id. What it has made stays if it fails. StackExists, StackRefused."""

    def stacks_tagged(self, project_id: str, tag: str) -> tuple[Stack, ...]:
        """Return the stacks of a project that have a tag. Members of the project can change tags."""

    def stacks_named(self, project_id: str, name: str) -> tuple[Stack, ...]:
        """Return the stacks of a project that have a name: one, but for what is being deleted."""

    def stack(self, project_id: str, stack_id: str) -> Stack | None:
        """Return a stack; None if there is none, or no longer."""

    def begin_stack_deletion(self, project_id: str, stack_id: str) -> None:
        """Begin to delete a stack in whatever state; NotFound if there is none."""

    def stack_resources(self, project_id: str, stack_id: str) -> tuple[StackResource, ...]:
        """Return the resources of a stack, those of nested ones included; none if there is no such stack."""
