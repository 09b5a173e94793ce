# SPDX-License-Identifier: Apache-2.0
"""What a resource type may do besides what every one must: the life cycle finds out by the members that it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from blazar.model.lease import Content, Json
from blazar.model.resource import Resource
from blazar.resources.base import Action, Progress, Task


@runtime_checkable
class ReportsUse(Protocol):
    """A type that can tell what is in use, so that this is not replaced. Without it nothing counts as in use."""

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return the count in use of each resource, by calendar id."""


@runtime_checkable
class Prepares(Protocol):
    """A type that makes something in the cloud before the start. Without it nothing is there until the start."""

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return whether a change before the start changes what ``prepare`` creates."""

    def prepare(self, task: Task) -> Content:
        """Ensure what must exist before the start; return the cloud ids to store."""


@runtime_checkable
class Divides(Protocol):
    """A type whose reservations can be divided before their start, as nothing is made for one as a whole by then.

    Without it they go to another lease as a whole, or not at all.
    """

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters of what stays, and of what goes with its resources; None if these cannot be divided."""


@runtime_checkable
class KeepsSecrets(Protocol):
    """A type whose users give something that nobody may see. Without it all that they give is shown.

    What ``masked`` leaves out or replaces is kept apart (``blazar.model.secrets``) for as long as a start may need it.
    """

    def masked(self, given: Json) -> Json:
        """Return the parameters of a request as anybody may see them; InvalidInput names the field."""


@runtime_checkable
class Transfers(Protocol):
    """A type whose reservations can go to another project. Without it they stay with the one that asked for them.

    ``prepare``, ``start`` and ``restore`` then give what exists already to the project that the lease has now, and take
    it from any other. Whether servers run in the reservation is asked by ``servers_in_use``.
    """

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project, as the end of a sentence that begins with its id.

        Empty if it can. Reads the cloud.
        """


@runtime_checkable
class ChoosesAction(Protocol):
    """A type whose reservations name their action before the end. Without it the notification is sent."""

    def action(self, parameters: Content) -> Action:
        """Return the action before the end of a reservation."""


@runtime_checkable
class SavesWork(Protocol):
    """A type that does more before the end than to notify."""

    def before_end(self, task: Task) -> Progress:
        """Do what the reservation's ``before_end`` action says."""


@runtime_checkable
class Restores(Protocol):
    """A type that undoes a failed change otherwise than by ``start`` with the resources from before it."""

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Undo a failed change: ensure the reservation as in ``task``, and that the ``surplus`` resources are
        returned."""


@runtime_checkable
class ReadsHistory(Protocol):
    """A type whose cloud cannot be asked what a reservation has: it is told what the reservation had before.

    Without it tasks have no ``former`` resources and no ``turns``: those cost a statement.
    """

    @property
    def reads_history(self) -> bool:
        """Return whether tasks need them."""


@runtime_checkable
class ReadsShares(Protocol):
    """A type with limits in the cloud that are for all reservations of a project together.

    Without it the ``shares`` of tasks are always empty.
    """

    @property
    def reads_shares(self) -> bool:
        """Return whether tasks need them."""


@runtime_checkable
class ListsProjects(Protocol):
    """A type that lets projects use something in the cloud which has no mark of a reservation, as a quota.

    Without it the sweep finds nothing of that.
    """

    def projects_in_cloud(self, resources: Collection[Resource]) -> Mapping[int, frozenset[str]]:
        """Return the projects that can use each resource, by calendar id; as ``reservations_in_cloud``."""


@runtime_checkable
class ListsReservations(Protocol):
    """A type that can list the reservations that have something in the cloud. Without it the sweep finds nothing."""

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations that have anything in the cloud.

        ``resources`` are all registered ones of its kind. The number of calls does not depend on that of reservations.
        """
