# SPDX-License-Identifier: Apache-2.0
"""The manager's interface as the API calls it over the message bus."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

import tenacity
from oslo_config import cfg

from blazar.context import current
from blazar.messaging import oslo_messaging
from blazar.model.allocations import ResourceAllocations
from blazar.model.errors import ManagerUnavailable, NothingDone, OtherVersion, TooLate
from blazar.model.lease import Lease, LeaseRevision
from blazar.model.requests import FloatingIpRequest, HostChange, HostRequest, LeaseChange, LeaseRequest
from blazar.model.resource import PropertyValues, Resource, ResourceProperty
from blazar.rpc import codec
from blazar.rpc.target import target
from blazar.rpc.time_of_managers import TimeOfManagers

LOG = logging.getLogger(__name__)

PAGE = 500
"""Leases in one message."""

ANSWER_TIMEOUT = 30
"""Seconds that the API waits for a manager, unless ``rpc_response_timeout`` is set: twice what a manager may spend in
calls to the cloud before it answers."""

PATIENCE = 5.0
"""Seconds to wait for a manager that is about to connect (again): a request that nobody took has done nothing."""

_until_taken = tenacity.Retrying(
    retry=tenacity.retry_if_exception_type(oslo_messaging.MessageUndeliverable),
    stop=tenacity.stop_after_delay(PATIENCE),
    wait=tenacity.wait_fixed(0.2),
    reraise=True,
)

_until_begun = tenacity.Retrying(
    retry=tenacity.retry_if_exception_type((OtherVersion, TooLate)),
    stop=tenacity.stop_any(tenacity.stop_after_attempt(3), tenacity.stop_after_delay(PATIENCE)),
    wait=tenacity.wait_fixed(0.3),
    reraise=True,
)
"""Another manager may know what this one does not, and a deadline that was wrong is mended by the answer."""

_NOT_BEGUN = frozenset({OtherVersion.__name__, TooLate.__name__})

_QUESTION = {"include_private": False}

GREET_AGAIN = 60.0
"""Seconds after which managers are asked for their time again that have answered, and did not tell it."""


class RemoteManager:
    """Asks whichever manager takes the message first.

    ManagerUnavailable if none answers in time. A request that nobody has taken by then is dropped by the message bus;
    one that was taken carries a deadline, in the managers' own time, after which no work on it begins and nothing is
    booked. So nothing happens after its caller was told that it did not. NothingDone tells that it may be sent again.
    """

    def __init__(self, conf: cfg.ConfigOpts, transport: Any) -> None:
        self._client = oslo_messaging.get_rpc_client(
            transport,
            target(conf.manager.rpc_topic),
            retry=1,
            # So that a message that no queue takes is told of at once, and not by silence until the time is over.
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
        )
        self._conf = conf
        self._time = TimeOfManagers()
        self._greet_again = 0.0
        self._first: threading.Thread | None = None
        self._lock = threading.Lock()
        # Load balancers and clients usually give up after a minute: they should hear from us before.
        conf.set_default("rpc_response_timeout", ANSWER_TIMEOUT)

    def leases(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of one project, or of all: in pages, so that no message grows without bound."""
        wanted = [revision.id for revision in self.lease_revisions(project_id)]
        found = {lease.id: lease for lease in self.leases_by_id(wanted)}
        return tuple(found[lease_id] for lease_id in wanted if lease_id in found)

    def lease_revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the leases of one project, or of all."""
        return cast(tuple[LeaseRevision, ...], self._ask("lease_revisions", project_id=project_id))

    def leases_by_id(self, lease_ids: Sequence[str]) -> tuple[Lease, ...]:
        """Return leases by their ids: so many in a message as fit into it."""
        left, found, page = list(lease_ids), list[Lease](), PAGE
        while left:
            asked, left = left[:page], left[page:]
            some, is_cut = self._part("leases_by_id", lease_ids=asked)
            found += some
            page = min(PAGE, 2 * page)
            if is_cut:
                # Asked for again by id and not by place: what was answered is not read again.
                seen = {lease.id for lease in some}
                left = [*(lease_id for lease_id in asked if lease_id not in seen), *left]
                page = max(1, len(some))
        return tuple(found)

    def lease(self, lease_id: str) -> Lease:
        """Return one lease."""
        return cast(Lease, self._ask("lease", lease_id=lease_id))

    def create_lease(self, request: LeaseRequest) -> Lease:
        """Book a lease."""
        return cast(Lease, self._ask("create_lease", request=request))

    def update_lease(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease."""
        return cast(Lease, self._ask("update_lease", lease_id=lease_id, change=change))

    def delete_lease(self, lease_id: str) -> None:
        """End a lease for good."""
        self._ask("delete_lease", lease_id=lease_id)

    def hosts(self) -> tuple[Resource, ...]:
        """Return the registered hosts."""
        return cast(tuple[Resource, ...], self._ask("hosts"))

    def host(self, host_id: str) -> Resource:
        """Return one host."""
        return cast(Resource, self._ask("host", host_id=host_id))

    def create_host(self, request: HostRequest) -> Resource:
        """Register a host."""
        return cast(Resource, self._ask("create_host", request=request))

    def update_host(self, host_id: str, change: HostChange) -> Resource:
        """Change capabilities of a host."""
        return cast(Resource, self._ask("update_host", host_id=host_id, change=change))

    def refresh_host(self, host_id: str) -> Resource:
        """Read anew what the cloud tells of a host."""
        return cast(Resource, self._ask("refresh_host", host_id=host_id))

    def move_reservation(self, host_id: str, reservation_id: str) -> ResourceAllocations:
        """Give a reservation another host in the place of this one."""
        answer = self._ask("move_reservation", host_id=host_id, reservation_id=reservation_id)
        return cast(ResourceAllocations, answer)

    def delete_host(self, host_id: str) -> None:
        """Give a host back to the cloud."""
        self._ask("delete_host", host_id=host_id)

    def host_allocations(
        self, *, host_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by host."""
        answer = self._ask("host_allocations", host_id=host_id, lease_id=lease_id, reservation_id=reservation_id)
        return cast(tuple[ResourceAllocations, ...], answer)

    def host_properties(self, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the capabilities that hosts have."""
        return cast(tuple[PropertyValues, ...], self._ask("host_properties", include_private=include_private))

    def set_host_property(self, name: str, *, private: bool) -> ResourceProperty:
        """Show a capability to everybody or only to operators."""
        return cast(ResourceProperty, self._ask("set_host_property", name=name, private=private))

    def floating_ips(self) -> tuple[Resource, ...]:
        """Return the registered addresses."""
        return cast(tuple[Resource, ...], self._ask("floating_ips"))

    def floating_ip(self, floating_ip_id: str) -> Resource:
        """Return one address."""
        return cast(Resource, self._ask("floating_ip", floating_ip_id=floating_ip_id))

    def create_floating_ip(self, request: FloatingIpRequest) -> Resource:
        """Register an address."""
        return cast(Resource, self._ask("create_floating_ip", request=request))

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Forget an address."""
        self._ask("delete_floating_ip", floating_ip_id=floating_ip_id)

    def floating_ip_allocations(
        self, *, floating_ip_id: str | None = None, lease_id: str | None = None, reservation_id: str | None = None
    ) -> tuple[ResourceAllocations, ...]:
        """Return live allocations by address."""
        answer = self._ask(
            "floating_ip_allocations", floating_ip_id=floating_ip_id, lease_id=lease_id, reservation_id=reservation_id
        )
        return cast(tuple[ResourceAllocations, ...], answer)

    def _ask(self, call: str, **arguments: Any) -> Any:
        part, is_cut = self._part(call, **arguments)
        if not is_cut:
            return part
        # By key and not by place: items may go, and others come, between two messages.
        found = {codec.key_of(item): item for item in part}
        while is_cut:
            # Managers of an earlier version know only how many to skip.
            place = {"after": codec.key_of(part[-1]), "skip": str(len(found))}
            part, is_cut = self._part(call, place, **arguments)
            for item in part:
                found.setdefault(codec.key_of(item), item)
        return tuple(found.values())

    def _part(self, call: str, place: Mapping[str, str] | None = None, **arguments: Any) -> tuple[Any, bool]:
        """Return the answer to a call, and whether it is a list of which there is more; ``place``: from where on."""
        texts = codec.encode_arguments(call, arguments)
        self._wait_for_bus()
        try:
            message = _until_begun(lambda: self._message(call, texts, place or {}))
            return codec.decode_answer(call, message), codec.is_cut(message)
        except codec.Garbled as error:
            LOG.error("The answer of the manager can not be understood: %s", error)
            raise ManagerUnavailable("the answer of blazar-manager can not be understood") from error

    def _message(self, call: str, texts: Mapping[str, str], place: Mapping[str, str]) -> Any:
        """Return what a manager answers. NothingDone if none takes the message, or the one that does will not begin."""
        try:
            self._learn_the_time()
            message = _until_taken(lambda: self._call(call, texts, place))
        except ManagerUnavailable:
            raise
        except oslo_messaging.MessageUndeliverable as error:
            raise NothingDone("no blazar-manager is connected to the message bus; please try again") from error
        except oslo_messaging.MessagingTimeout as error:
            raise ManagerUnavailable(
                "no blazar-manager answered in time; what was asked for may or may not have been done: look before "
                "you try again"
            ) from error
        except (oslo_messaging.RemoteError, oslo_messaging.RPCDispatcherError) as error:
            # Our own server answers every question: this one came to a process of another age.
            LOG.error("A manager of another version refuses requests: %s", error)
            raise OtherVersion(
                "blazar-manager is of another version than blazar-api, as during an upgrade; nothing was done, please "
                "try again when all of them are upgraded"
            ) from error
        except Exception as error:
            # The border to a message bus: its drivers raise what their libraries do, as for a wrong password.
            LOG.error("The message bus does not work: %s: %s", type(error).__name__, error)
            raise ManagerUnavailable("the message bus can not be reached; please try again") from error
        if isinstance(message, Mapping) and message.get("error") in _NOT_BEGUN:
            codec.decode_answer(call, message)
        return message

    def _call(self, call: str, texts: Mapping[str, str], place: Mapping[str, str], timeout: float | None = None) -> Any:
        """Send one question and wait for its answer."""
        context = {"request_id": current().request_id, **place}
        # By then the caller has been told that nobody answered.
        deadline = self._time.after(timeout or self._conf.rpc_response_timeout)
        if deadline is not None:
            context["deadline"] = repr(deadline)
        asked = self._time.elapsed()
        client = self._client if timeout is None else self._client.prepare(timeout=timeout)
        message = client.call(context, "ask", call=call, arguments=texts)
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            self._time.learn(float(message["now"]), asked=asked, answered=self._time.elapsed())
        return message

    def _learn_the_time(self) -> None:
        """Ask what changes nothing, if no manager has told its time yet: no request goes out without a deadline."""
        if self._time.known or self._time.elapsed() < self._greet_again:
            return
        try:
            _until_taken(self._greet)
        except oslo_messaging.MessagingTimeout as error:
            raise NothingDone("no blazar-manager answered in time, and nothing was done; please try again") from error
        # Managers of an earlier version tell no time, and know no deadlines either.
        self._greet_again = self._time.elapsed() + GREET_AGAIN

    def _greet(self, timeout: float | None = None) -> None:
        self._call("host_properties", codec.encode_arguments("host_properties", _QUESTION), {}, timeout=timeout)

    def _wait_for_bus(self) -> None:
        """Wait for the first connection, but not for ever: the library would, and nobody can tell it to stop.

        Made with the first request and not before, so that a WSGI server may fork what it has loaded.
        """
        with self._lock:
            if self._first is None:
                self._first = threading.Thread(target=self._connect, name="connecting", daemon=True)
                self._first.start()
        self._first.join(PATIENCE)
        if self._first.is_alive():
            raise NothingDone("the message bus can not be reached; please try again")

    def _connect(self) -> None:
        # Whether and how it is answered is for the next questions to tell.
        with contextlib.suppress(Exception):
            self._greet(timeout=1)
