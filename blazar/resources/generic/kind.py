# SPDX-License-Identifier: Apache-2.0
"""The kind ``generic``: what operators register, and how it is polled."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime

from oslo_config import cfg

from blazar.clouds.ports import Cloud, HookResult, Hooks
from blazar.context import current
from blazar.model.amounts import Amounts
from blazar.model.errors import BlazarError, CloudUnavailable, InvalidInput
from blazar.model.requests import Registration
from blazar.model.resource import GENERIC, PropertyValue, Resource, ResourceDetails, ResourceInventory
from blazar.resources.generic import messages
from blazar.resources.generic.parameters import CAPACITY, CLASS, HOOK_URL, NAME, class_name
from blazar.resources.kinds import LONGEST_NAME, CloudResource, Polled, Uses
from blazar.resources.parameters import text_of, whole_number

UNIT = "UNIT"
"""The resource class of which a thing has a capacity."""

ASKERS = 8
"""Threads that ask for the health of resources at the same time."""

ASKING_SECONDS = 30.0
"""How long one poll begins to ask; the resources that it does not reach come first in the next one."""


class GenericResources:
    """Things of any class. Their registration calls nobody."""

    kind = GENERIC
    own_properties = frozenset({NAME, CLASS, CAPACITY, HOOK_URL})

    def __init__(self, hooks: Hooks, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._hooks = hooks
        self._now = now
        self._asked: dict[str, float] = {}
        self._answered: dict[str, str | None] = {}
        self._lock = threading.Lock()

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> GenericResources:
        """Return the kind; its options are those of the hooks."""
        return cls(cloud.hooks)

    def find(self, request: Registration) -> CloudResource:
        """Return the thing that an operator describes, with a new id. InvalidInput."""
        name, url = text_of(request.given, NAME), text_of(request.given, HOOK_URL)
        if name is None or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise InvalidInput(
                f"name is missing or cannot be used; give a printable name of at most {LONGEST_NAME} characters",
                pointer=f"/{NAME}",
            )
        if CLASS not in request.given:
            raise InvalidInput("Missing parameter class; give the class of the resource, such as 'microscope'")
        if url is None:
            raise InvalidInput("Missing parameter hook_url; give the https:// URL of the hook of the resource")
        given = request.given.get(CAPACITY)
        capacity = 1 if given is None else whole_number(given, CAPACITY, least=1, what="a whole number of units")
        described: dict[str, PropertyValue] = {
            CLASS: class_name(request.given[CLASS]),
            CAPACITY: capacity,
            HOOK_URL: url,
        }
        return CloudResource(str(uuid.uuid4()), name, described)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes and the capacity of a thing whose hook may be called. InvalidInput."""
        self._hooks.check_hook(str(in_cloud.attributes[HOOK_URL]))
        capacity = int(in_cloud.attributes[CAPACITY] or 1)
        return ResourceDetails(in_cloud.attributes, ResourceInventory(Amounts.of({UNIT: capacity})))

    def poll(self, registered: Collection[Resource], uses: Uses) -> Polled:
        """Return which resources say that they are well, by their hooks.

        Those that were asked longest ago come first, for as long as there is time; for the others the last answer
        counts. CloudUnavailable if no hook of several can be reached: that is rather our own network.
        """
        in_turn = sorted(registered, key=lambda resource: self._asked.get(resource.external_id, 0.0))
        left = current().remaining()
        end = time.monotonic() + min(ASKING_SECONDS, ASKING_SECONDS if left is None else left / 2)
        with ThreadPoolExecutor(min(ASKERS, max(1, len(in_turn))), thread_name_prefix="hook-health") as pool:
            contexts = [copy_context() for _ in in_turn]
            asked = [
                pool.submit(context.run, self._ask, resource, end)
                for context, resource in zip(contexts, in_turn, strict=True)
            ]
            reached = [each.result() for each in asked]
        if len(reached) > 1 and not any(each is not False for each in reached):
            raise CloudUnavailable("no hook of any generic resource can be reached")
        known = {resource.external_id for resource in registered}
        if len(known) > 1:
            self._answered = {id_: answer for id_, answer in self._answered.items() if id_ in known}
            self._asked = {id_: at for id_, at in self._asked.items() if id_ in known}
        return Polled({r.name: self._answered.get(r.external_id, r.failure) for r in registered})

    def _ask(self, resource: Resource, end: float) -> bool | None:
        """Ask one resource, and keep its answer; return whether it could be reached, None if it was not asked."""
        if time.monotonic() >= end:
            return None
        failure: str | None = None
        reached = True
        try:
            answer = self._hooks.ask_hook(messages.health(resource, self._now()))
            if answer.result in (HookResult.UNUSABLE, HookResult.REFUSED):
                failure = answer.reason
        except CloudUnavailable as error:
            failure, reached = error.message, False
        except BlazarError as error:
            failure = error.message
        with self._lock:
            self._asked[resource.external_id] = time.monotonic()
            self._answered[resource.external_id] = failure
        return reached
