# SPDX-License-Identifier: Apache-2.0
"""On whose behalf, until when and by which threads calls to a cloud are made, and until when a caller waits.

Set at the edges (an API request, an event that is worked on) and read by whatever calls out, so that no signature in
between has to carry it. Kept in context variables: each thread has its own.

``check_change`` is the fence: every call that changes a cloud passes it, in each adapter, right before it is sent.

``check_awaited`` is the deadline of a request's caller. A request may wait in a manager process that is paused.
Meanwhile its caller got a timeout, read the state and sent the request a second time: a manager that then continued
with the first one would do the same work twice.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from blazar.model.base.clock import Clock, monotonic
from blazar.model.base.errors import BlazarError, ClaimLost, CloudUnavailable, TooLate
from blazar.model.base.values import dataclass, field, replace
from blazar.model.leases.details import LeaseOwner
from blazar.model.leases.lease import Lease, unknown_lease
from blazar.model.leases.requests import Actor

RETRY_SECONDS = 5
"""Seconds after which a refused request that has changed nothing may be sent once more."""


class Fence(Protocol):
    """The right to change what somebody else would change otherwise."""

    @property
    def longest_call(self) -> float:
        """How many seconds a changing call may take."""

    def remaining(self) -> float:
        """Return for how many seconds nobody else has the right; 0 or less when it is over."""


class Crowd:
    """The threads of a pool at work: how many, and which calls they make or wait to make.

    ``changed`` guards the rest, and is notified whenever one that waits may have to go on.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.calls: Counter[Hashable] = Counter()
        self.line: list[Hashable] = []
        self._members: set[int] = set()
        self._leaving: set[int] = set()

    @property
    def busy(self) -> int:
        """How many threads are at work, without those that have just been refused a call, which will soon be idle."""
        return len(self._members - self._leaving)

    @contextmanager
    def member(self) -> Iterator[None]:
        """Count this thread as busy."""
        me = threading.get_ident()
        with self.changed:
            self._members.add(me)
            if self.line:
                self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self._members.discard(me)
                self._leaving.discard(me)

    def leaves(self, *, soon: bool) -> None:
        """Note whether this thread will soon be idle."""
        (self._leaving.add if soon else self._leaving.discard)(threading.get_ident())


@dataclass(frozen=True, slots=True)
class Pool:
    """Threads that do one kind of work, of which calls to services of a cloud never take the last ones.

    ``regions``: the number of regions whose work shares them. ``patience`` is how many seconds without an answer make a
    service silent.
    """

    name: str
    threads: int
    regions: int = 1
    patience: float = 1.0
    crowd: Crowd = field(default_factory=Crowd, compare=False, repr=False)


class CallerIds(NamedTuple):
    """The user who sent a request, and the project of the token."""

    user_id: str
    project_id: str


@dataclass(frozen=True, slots=True)
class Scope:
    """``request_id`` is passed on to other services as the global request id; ``deadline`` is in monotonic seconds.

    ``local_id`` is the id of the request in this service, None if it is the same; ``caller`` is who sent it, for logs.

    ``fence`` is what the work is done under; None where nothing is claimed, as when a host is registered. ``user_id``
    is who asks for it; None where no user does. ``pool`` is what the thread belongs to; None if it is one of its own.
    ``actor`` is whose request it is, for the history of leases, None for the service's own work; ``operation`` is what
    the request does, where its changes do not tell. ``owners`` is whose the leases were that the caller was allowed to
    see or to act on. ``why`` is what an operator says for it, in own words.
    """

    request_id: str | None = None
    deadline: float | None = None
    fence: Fence | None = None
    user_id: str | None = None
    pool: Pool | None = None
    actor: Actor | None = None
    operation: str | None = None
    owners: tuple[LeaseOwner, ...] = ()
    local_id: str | None = None
    caller: CallerIds | None = None
    why: str | None = None

    def remaining(self) -> float | None:
        """Return the seconds that are left, at least 0; None if there is no limit."""
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())


_CURRENT: ContextVar[Scope] = ContextVar("scope", default=Scope())  # noqa: B039 - Scope is frozen


def current() -> Scope:
    """Return the scope of this thread."""
    return _CURRENT.get()


def check_change() -> float | None:
    """Return how many seconds a call that changes the cloud may take from now on; None if there is no limit.

    ClaimLost if the work's claim ends before the longest call would: by the time the call takes effect, somebody else
    might be at work on the same. CloudUnavailable if the time for the request is over.
    """
    here = current()
    may_change()
    left = here.remaining()
    if left is not None and left <= 0:
        raise CloudUnavailable("the time for this request is over")
    if here.fence is None:
        return left
    if here.fence.remaining() < here.fence.longest_call:
        raise ClaimLost("this manager was held up for too long, and another one goes on with the work")
    return here.fence.longest_call if left is None else min(left, here.fence.longest_call)


@contextmanager
def scope(
    *,
    request_id: str | None = None,
    limit: timedelta | None = None,
    fence: Fence | None = None,
    user_id: str | None = None,
    pool: Pool | None = None,
    actor: Actor | None = None,
    operation: str | None = None,
    owners: tuple[LeaseOwner, ...] = (),
    local_id: str | None = None,
    caller: CallerIds | None = None,
    why: str | None = None,
) -> Iterator[Scope]:
    """Narrow the scope: no later a deadline than ``limit`` from now, more ``owners``, and what else is given."""
    outer = _CURRENT.get()
    ends = [outer.deadline] if outer.deadline is not None else []
    if limit is not None:
        ends.append(monotonic() + limit.total_seconds())
    inner = Scope(
        request_id or outer.request_id,
        min(ends) if ends else None,
        fence or outer.fence,
        user_id or outer.user_id,
        pool or outer.pool,
        actor or outer.actor,
        operation or outer.operation,
        (*outer.owners, *owners),
        # The ids of a request are of one request.
        local_id if request_id else outer.local_id,
        caller or outer.caller,
        why or outer.why,
    )
    token = _CURRENT.set(inner)
    try:
        pool = None if inner.pool is outer.pool else inner.pool
        with nullcontext() if pool is None else pool.crowd.member():
            yield inner
    finally:
        _CURRENT.reset(token)


def note_caller(user_id: str, project_id: str) -> None:
    """Note for the rest of the scope who sent the request."""
    _CURRENT.set(replace(_CURRENT.get(), caller=CallerIds(user_id, project_id)))


def note_owner(owner: LeaseOwner) -> None:
    """Note for the rest of the scope whose a lease was when the caller was allowed to see it, or to act on it."""
    here = _CURRENT.get()
    _CURRENT.set(replace(here, owners=(*here.owners, owner)))


def check_owner(lease: Lease) -> None:
    """Raise NotFound if a lease has gone to another owner since the caller was allowed to see it, or to act on it.

    A request may wait while the lease goes. What the one owner may do says nothing of the other one's lease.
    """
    for owner in _CURRENT.get().owners:
        if owner.id == lease.id and (owner.project_id, owner.user_id) != (lease.project_id, lease.user_id):
            raise unknown_lease(lease.id)


@contextmanager
def by_itself() -> Iterator[None]:
    """Do what nobody asked for, as healing while a request is served: histories tell it as done by the service."""
    token = _CURRENT.set(replace(_CURRENT.get(), actor=None, operation=None, why=None))
    try:
        yield
    finally:
        _CURRENT.reset(token)


_AWAITED: ContextVar[tuple[datetime, Clock] | None] = ContextVar("awaited", default=None)


@contextmanager
def limit_wait(until: datetime | None, clock: Clock) -> Iterator[None]:
    """Run a request whose caller waits until ``until`` by that clock; None if unknown. TooLate if it has passed."""
    token = _AWAITED.set(None if until is None else (until, clock))
    try:
        check_awaited()
        yield
    finally:
        _AWAITED.reset(token)


def check_awaited() -> None:
    """Raise TooLate if the caller no longer waits. Call it before work begins, and right before it becomes durable."""
    if (known := _AWAITED.get()) is None:
        return
    until, clock = known
    if clock.now() >= until:
        raise TooLate(
            "the manager that took the request could not start it in time, and nothing was done; please try again"
        )


class Effects:
    """Whether a request may have changed anything yet."""

    def __init__(self) -> None:
        self.possible = False


_EFFECTS: ContextVar[Effects | None] = ContextVar("effects", default=None)


@contextmanager
def effects() -> Iterator[None]:
    """Serve a request: a 503 before anything may have changed says when to send the request once more."""
    found = Effects()
    token = _EFFECTS.set(found)
    try:
        yield
    except BlazarError as error:
        if error.status == 503 and not found.possible and error.retry_after is None:
            error.retry_after = RETRY_SECONDS
        raise
    finally:
        _EFFECTS.reset(token)


def may_change() -> None:
    """Note that from now on the request may have changed something, also if what follows fails."""
    if (found := _EFFECTS.get()) is not None:
        found.possible = True


def has_changed() -> bool:
    """Return whether the request may have changed something by now; False outside of requests."""
    return (found := _EFFECTS.get()) is not None and found.possible


def drop_deadline() -> None:
    """Drop the deadline because something durable was done: the rest is finished even if the caller has gone."""
    _AWAITED.set(None)
