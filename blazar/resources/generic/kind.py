# SPDX-License-Identifier: Apache-2.0
"""The kind ``generic``: what operators register, and how it is polled."""

from __future__ import annotations

import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime

from oslo_config import cfg

from blazar.clouds.hooks.addresses import LONGEST_URL
from blazar.clouds.ports import Cloud, HookAnswer, HookResult, Hooks
from blazar.context import current
from blazar.model.amounts import Amounts
from blazar.model.errors import BlazarError, CloudUnavailable, InvalidInput
from blazar.model.requests import Registration
from blazar.model.resource import GENERIC, PropertyValue, Resource, ResourceDetails, ResourceInventory
from blazar.model.resource_kinds import KindShape
from blazar.resources.generic import messages
from blazar.resources.generic.parameters import CAPACITY, CLASS, HOOK_URL, NAME, class_name, thing_name
from blazar.resources.kinds import CloudResource, Polled, Uses
from blazar.resources.parameters import MOST, text_of, whole_number

UNIT = "UNIT"
"""The resource class of which a thing has a capacity."""

MOST_ASKED = 40
"""Resources that one question names: each adds a signature to a header."""

LONGEST_FAILURE = 200

ASKERS = 8
"""Threads that ask hooks at the same time."""

SHAPE = KindShape(
    "generic resource",
    "generic resources",
    registration={
        "type": "object",
        "description": "an object",
        "required": [NAME, CLASS, HOOK_URL],
        "additionalProperties": False,
        "properties": {
            NAME: {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "description": "its name, without blanks, which users see",
            },
            CLASS: {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "its class, such as microscope, for which users ask",
            },
            CAPACITY: {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST,
                "description": f"its number of units, a whole number from 1 to {MOST}; 1 by default",
            },
            HOOK_URL: {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_URL,
                "description": "the URL of its hook, which only operators see",
            },
        },
    },
    attributes={CLASS: {"type": "string"}, CAPACITY: {"type": "integer"}, HOOK_URL: {"type": "string"}},
    public=(CLASS, CAPACITY),
    shown=(CLASS, CAPACITY),
    named=True,
)

ASKING_SECONDS = 30.0
"""How long one poll begins to ask; the hooks that it does not reach come first in the next one."""


class GenericResources:
    """Things of any class. Their registration calls nobody."""

    kind = GENERIC
    shape = SHAPE
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
        name, url = thing_name(request.given.get(NAME)), text_of(request.given, HOOK_URL)
        if CLASS not in request.given:
            raise InvalidInput("Missing parameter class; give the class of the resource, such as 'microscope'")
        if url is None:
            raise InvalidInput("Missing parameter hook_url; give the https:// URL of the hook of the resource")
        units = request.given.get(CAPACITY, 1)
        capacity = whole_number(units, CAPACITY, least=1, what="a whole number of units")
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
        """Return which resources are well, by their hooks: a call for each hook and each ``MOST_ASKED`` resources.

        Hooks that were asked longest ago come first, for as long as there is time; for the others the last answer
        counts. CloudUnavailable if none of several hooks can be reached: that is rather our own network.
        """
        groups = sorted(_by_hook(registered), key=lambda group: self._asked.get(group[0].external_id, 0.0))
        left = current().remaining()
        end = time.monotonic() + min(ASKING_SECONDS, ASKING_SECONDS if left is None else left / 2)
        with ThreadPoolExecutor(min(ASKERS, max(1, len(groups))), thread_name_prefix="hook-health") as pool:
            asked = [pool.submit(copy_context().run, self._ask, group, end) for group in groups]
            reached = [each.result() for each in asked]
        if len(registered) > 1 and not any(each is not False for each in reached):
            raise CloudUnavailable("no hook of any generic resource can be reached")
        if len(registered) > 1:
            known = {resource.external_id for resource in registered}
            self._answered = {id_: answer for id_, answer in self._answered.items() if id_ in known}
            self._asked = {id_: at for id_, at in self._asked.items() if id_ in known}
        return Polled({r.name: self._answered.get(r.external_id, r.failure) for r in registered})

    def _ask(self, group: Sequence[Resource], end: float) -> bool | None:
        """Ask one hook, and keep its answer; return whether it could be reached, None if it was not asked."""
        if time.monotonic() >= end:
            return None
        failures: Mapping[str, str | None]
        reached = True
        try:
            failures = _failures(group, self._hooks.ask_hook(messages.health(group, self._now())))
        except CloudUnavailable as error:
            failures, reached = dict.fromkeys((each.external_id for each in group), error.message), False
        except BlazarError as error:
            failures = dict.fromkeys((each.external_id for each in group), error.message)
        with self._lock:
            self._asked |= dict.fromkeys((each.external_id for each in group), time.monotonic())
            self._answered |= failures
        return reached


def _by_hook(resources: Collection[Resource]) -> list[Sequence[Resource]]:
    """Return resources by their hooks, so many in each group as one question may name."""
    groups: dict[str, list[Resource]] = defaultdict(list)
    for resource in sorted(resources, key=lambda each: each.id):
        groups[messages.url_of(resource)].append(resource)
    return [
        group[first : first + MOST_ASKED] for group in groups.values() for first in range(0, len(group), MOST_ASKED)
    ]


def _failures(group: Sequence[Resource], answer: HookAnswer) -> Mapping[str, str | None]:
    """Return why resources have failed, by their ids; None for those that are well."""
    if answer.result in (HookResult.UNUSABLE, HookResult.REFUSED):
        return dict.fromkeys((each.external_id for each in group), answer.reason)
    told = (answer.content or {}).get("failures")
    known = told if isinstance(told, dict) else {}
    ids = (each.external_id for each in group)
    # Null is how JSON says that there is no failure.
    return {id_: None if known.get(id_) is None else _sentence(known[id_]) for id_ in ids}


def _sentence(text: object) -> str:
    """Return what a hook says of a failure as one short line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line[:LONGEST_FAILURE] or "its hook says that it has failed"
