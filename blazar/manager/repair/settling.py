# SPDX-License-Identifier: Apache-2.0
"""What operators do about messages that receivers have refused, and about resources that have failed."""

from __future__ import annotations

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.resources import ResourceService
from blazar.model.problems.problems import RepairRequest, unknown_problem
from blazar.model.problems.troubles import DeadLetters, FailedResource
from blazar.model.resources.resource import ResourceKind
from blazar.model.subscriptions.details import SubscriptionState


class DeliveryRepairs:
    """Acts on messages that were refused for good. A receiver gets what is sent again with the same ids."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def retry(self, letters: DeadLetters, request: RepairRequest) -> tuple[str, ...]:
        """Have the receiver be told again from the first message on; return what was done, or would be. NotFound."""
        again = f"told again what has happened from position {letters.first} on, with the same ids"
        after = ", once the subscription is active" if letters.state != SubscriptionState.ACTIVE else ""
        if request.dry_run:
            return (f"The receiver would be {again}{after}.",)
        with scope(why=request.reason):
            found = self._runtime.store.dead_letters.retry(letters, now=self._runtime.clock.now())
        if not found:
            raise unknown_problem(letters.problem_id)
        self._runtime.signals.subscriptions_changed()
        return (f"The receiver is {again}{after}.",)

    def drop(self, letters: DeadLetters, request: RepairRequest) -> tuple[str, ...]:
        """Forget the messages; return what was done, or would be. NotFound."""
        named = f"{letters.number} messages are" if letters.number > 1 else "The message is"
        lost = "The receiver never gets them, unless it is told again from an earlier position on."
        if request.dry_run:
            return (f"Messages that would be forgotten: {letters.number}.", lost)
        with scope(why=request.reason):
            found = self._runtime.store.dead_letters.drop(letters, now=self._runtime.clock.now())
        if not found:
            raise unknown_problem(letters.problem_id)
        return (f"{named} forgotten.", lost)


class ResourceRepairs:
    """Acts on resources that have failed, as an operator's refresh of one does."""

    def __init__(self, resources: ResourceService) -> None:
        self._resources = resources

    def recheck(self, failed: FailedResource, request: RepairRequest) -> tuple[str, ...]:
        """Ask the cloud how a resource is, and believe it; return what was done, or would be. NotFound, CloudError."""
        named = f"{failed.kind} {failed.name}"
        if request.dry_run:
            return (f"The cloud would be asked how {named} is; where it is well, leases can have it again at once.",)
        with scope(why=request.reason):
            found = self._resources.refresh(ResourceKind(failed.kind), failed.external_id)
        if found.failure is not None:
            return (f"The cloud says of {named}: {found.failure}. It stays failed.",)
        return (f"{named} is well again, and leases can have it.",)
