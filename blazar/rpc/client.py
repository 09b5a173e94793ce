# SPDX-License-Identifier: Apache-2.0
"""The manager's interface as the API calls it over the message bus."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import tenacity
from oslo_config import cfg

from blazar.context import current, has_changed, may_change
from blazar.messaging import explain_refusal, oslo_messaging, target
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import ManagerUnavailable, NothingDone, OtherVersion, OutOfTime, TooLate
from blazar.model.base.log_lines import Trouble
from blazar.model.leases.lease import Lease
from blazar.model.managers.presence import Pong
from blazar.model.resources.resource import HOST
from blazar.observe import metrics
from blazar.observe.spans import Side, parent_headers, span
from blazar.rpc import codec
from blazar.rpc.interface import (
    AvailabilitySearch,
    Calendar,
    Feeds,
    Leases,
    Resources,
    SeriesOfLeases,
)
from blazar.rpc.operations import (
    BookingRules,
    Budgets,
    Charges,
    Journal,
    Maintenances,
    PowerOfHosts,
    PriceLists,
    Problems,
    Reports,
    Service,
    Statements,
    Surgery,
    Transfers,
)
from blazar.rpc.reads import READS, share_wait
from blazar.rpc.subscriptions import Subscriptions


class ManagerClock:
    """Estimate of the managers' clock from their answers; deadlines of requests are given in it. Several threads.

    The clocks of two machines differ, and a manager reads a deadline on its own clock. Every answer has the manager's
    time at some moment between request and answer, which bounds its offset from a monotonic clock of this process. The
    lower bound is used, so that a deadline may be early, by the time that the answer took, and is never late.
    """

    def __init__(self, elapsed: Callable[[], float] = monotonic) -> None:
        self.elapsed = elapsed
        self._ahead: float | None = None
        self._lock = threading.Lock()

    def learn(self, now: float, *, asked: float, answered: float) -> None:
        """Record that a manager's time was ``now`` at some moment between a request and its answer."""
        least, most = now - answered, now - asked
        with self._lock:
            # An estimate stays while answers agree with it; after a clock has been set, the newest answer is used.
            if self._ahead is None or not least <= self._ahead <= most:
                self._ahead = least

    @property
    def known(self) -> bool:
        """Whether an answer has had the time of a manager."""
        return self._ahead is not None

    def after(self, seconds: float) -> float | None:
        """Return the managers' time in some seconds; None if it is unknown."""
        ahead = self._ahead
        return None if ahead is None else self.elapsed() + seconds + ahead


LOG = logging.getLogger(__name__)

PAGE = 500
"""Leases in one message."""

ANSWER_TIMEOUT = 30
"""Seconds that the API waits for a manager, unless ``rpc_response_timeout`` is set: twice what a manager may spend in
calls to the cloud before it answers."""

PATIENCE = 5.0
"""Seconds to wait for a manager that connects or reconnects; a request that no manager has taken has no effect."""

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
"""Another manager may support the request, and the answer corrects a deadline that was wrong."""

_NOT_BEGUN = frozenset({OtherVersion.__name__, TooLate.__name__})

_GREETING = "resources.properties"
_QUESTION: Mapping[str, Any] = {"kind": HOST, "include_private": False}

GREET_AGAIN = 60.0
"""Seconds after which managers are asked for their time again if they answered without it."""


class _Calls:
    """The calls of one part of the interface, each sent to a manager; ``Leases`` and ``Resources`` declare them."""

    def __init__(self, manager: RemoteManager, noun: str) -> None:
        self._manager = manager
        self._noun = noun

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = f"{self._noun}.{name}"
        if call not in codec.CALLS:
            raise AttributeError(f"a manager has no call {call}")
        return lambda *arguments, **more: self._manager.ask(call, **codec.name_arguments(call, arguments, more))


class _RemoteLeases(_Calls):
    """The calls about leases; long lists in pages, so that no message grows without bound."""

    def __init__(self, manager: RemoteManager) -> None:
        super().__init__(manager, "leases")

    def all(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of one project, or of all."""
        wanted = [revision.id for revision in self.revisions(project_id)]
        found = {lease.id: lease for lease in self.by_id(wanted)}
        return tuple(found[lease_id] for lease_id in wanted if lease_id in found)

    def by_id(self, lease_ids: Sequence[str]) -> tuple[Lease, ...]:
        """Return leases by their ids, in as few messages as they fit into."""
        left, found, page = list(lease_ids), list[Lease](), PAGE
        while left:
            asked, left = left[:page], left[page:]
            some, is_cut = self._manager.part("leases.by_id", lease_ids=asked)
            found += some
            page = min(PAGE, 2 * page)
            if is_cut:
                # The rest is requested by id, not by position, so that no lease is read twice.
                seen = {lease.id for lease in some}
                left = [*(lease_id for lease_id in asked if lease_id not in seen), *left]
                page = max(1, len(some))
        return tuple(found)


class RemoteManager:
    """Calls the manager that takes the message first.

    ManagerUnavailable if none answers in time. The message bus drops a request that no manager has taken by then; each
    request carries a deadline in the managers' own time, after which no work on it begins and nothing is booked. So a
    request has no effect after its caller has got an error. After NothingDone it may be sent again.
    """

    def __init__(self, conf: cfg.ConfigOpts, transport: Any, *, time: ManagerClock | None = None) -> None:
        self._client = oslo_messaging.get_rpc_client(
            transport,
            target(conf.manager.rpc_topic),
            retry=1,
            # So that a message that no queue takes fails at once, and not by a timeout.
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
        )
        self._conf = conf
        self._time = time or ManagerClock()
        self._greet_again = 0.0
        self._trouble = Trouble(LOG, "Managers can be reached over the message bus")
        self._first: threading.Thread | None = None
        self._lock = threading.Lock()
        self.leases: Leases = cast(Leases, _RemoteLeases(self))
        self.resources: Resources = cast(Resources, _Calls(self, "resources"))
        self.calendar: Calendar = cast(Calendar, _Calls(self, "calendar"))
        self.availability: AvailabilitySearch = cast(AvailabilitySearch, _Calls(self, "availability"))
        self.feeds: Feeds = cast(Feeds, _Calls(self, "feeds"))
        self.journal: Journal = cast(Journal, _Calls(self, "journal"))
        self.subscriptions: Subscriptions = cast(Subscriptions, _Calls(self, "subscriptions"))
        self.series: SeriesOfLeases = cast(SeriesOfLeases, _Calls(self, "series"))
        self.maintenances: Maintenances = cast(Maintenances, _Calls(self, "maintenances"))
        self.problems: Problems = cast(Problems, _Calls(self, "problems"))
        self.price_lists: PriceLists = cast(PriceLists, _Calls(self, "price_lists"))
        self.rules: BookingRules = cast(BookingRules, _Calls(self, "rules"))
        self.budgets: Budgets = cast(Budgets, _Calls(self, "budgets"))
        self.statements: Statements = cast(Statements, _Calls(self, "statements"))
        self.charges: Charges = cast(Charges, _Calls(self, "charges"))
        self.reports: Reports = cast(Reports, _Calls(self, "reports"))
        self.power: PowerOfHosts = cast(PowerOfHosts, _Calls(self, "power"))
        self.surgery: Surgery = cast(Surgery, _Calls(self, "surgery"))
        self.transfers: Transfers = cast(Transfers, _Calls(self, "transfers"))
        self.service: Service = cast(Service, _Calls(self, "service"))
        # Load balancers and clients usually give up after a minute; the API should answer before that.
        conf.set_default("rpc_response_timeout", ANSWER_TIMEOUT)

    def ask(self, call: str, **arguments: Any) -> Any:
        """Make a call and return its answer; a long list comes in several messages."""
        part, is_cut = self.part(call, **arguments)
        if not is_cut:
            return part
        # By key and not by position: items may come and go between two messages.
        found = {codec.key_of(item): item for item in part}
        while is_cut:
            # Managers of an earlier version know ``skip`` only.
            place = {"after": codec.key_of(part[-1]), "skip": str(len(found))}
            part, is_cut = self.part(call, place, **arguments)
            for item in part:
                found.setdefault(codec.key_of(item), item)
        return tuple(found.values())

    def part(self, call: str, place: Mapping[str, str] | None = None, **arguments: Any) -> tuple[Any, bool]:
        """Return the answer to a call, and whether it is a list that continues; ``place`` is where it begins."""
        texts = codec.encode_arguments(call, arguments)
        try:
            with span(f"rpc {call}", side=Side.CLIENT):
                self._wait_for_bus()
                message = _until_begun(lambda: self._message(call, texts, place or {}))
                return codec.decode_answer(call, message), codec.is_cut(message)
        except codec.MalformedMessage as error:
            LOG.error("Answer of a manager cannot be decoded: %s", error)
            raise ManagerUnavailable("the answer of blazar-manager cannot be understood") from error

    def _message(self, call: str, texts: Mapping[str, str], place: Mapping[str, str]) -> Any:
        """Return the answer of a manager. NothingDone if none takes the message, or none begins to work on it."""
        try:
            # A caller who waits a short time only waits as short a time for that.
            wait = sum(share_wait(call, self._conf.rpc_response_timeout))
            self._learn_the_time(wait)
            message = self._call_once_or_twice(call, texts, place, wait)
        except ManagerUnavailable:
            raise
        except oslo_messaging.MessageUndeliverable as error:
            self._trouble.log_failure("No blazar-manager is connected to the message bus")
            raise NothingDone("no blazar-manager is connected to the message bus; please try again") from error
        except oslo_messaging.MessagingTimeout as error:
            self._trouble.log_failure("No blazar-manager answered in time")
            raise _explain_silence(call) from error
        except (oslo_messaging.RemoteError, oslo_messaging.RPCDispatcherError) as error:
            # A manager of this version answers every call; the message came to a process of another version.
            LOG.error("Manager of another version refuses requests: %s", error)
            raise OtherVersion(
                "blazar-manager is of another version than blazar-api, as during an upgrade; nothing was done, please "
                "try again when all of them are upgraded"
            ) from error
        except Exception as error:
            # Drivers of the message bus raise the errors of their libraries, for example for a wrong password.
            self._trouble.log_failure(f"Message bus cannot be used: {type(error).__name__}: {explain_refusal(error)}")
            raise ManagerUnavailable("the message bus cannot be reached; please try again") from error
        self._trouble.log_recovery()
        if isinstance(message, Mapping) and message.get("error") in _NOT_BEGUN:
            codec.decode_answer(call, message)
        return message

    def _call_once_or_twice(self, call: str, texts: Mapping[str, str], place: Mapping[str, str], seconds: float) -> Any:
        """Send a message, and, if it only reads and no manager answers soon, once more: one may stand still.

        It goes to the queue of all managers again. What a manager that stands still has taken, no other one gets.
        """
        first, *more = share_wait(call, seconds)
        try:
            return _until_taken(lambda: self._call(call, texts, place, first))
        except oslo_messaging.MessagingTimeout:
            if not more:
                raise
        self._trouble.log_failure(
            f"A blazar-manager did not answer in {first:g} s, and another one is asked", level=logging.WARNING
        )
        return _until_taken(lambda: self._call(call, texts, place, more[0]))

    def _call(self, call: str, texts: Mapping[str, str], place: Mapping[str, str], timeout: float) -> Any:
        """Send one message and wait for its answer."""
        here = current()
        context: dict[str, Any] = {"request_id": here.request_id, **parent_headers(), **place}
        if here.local_id is not None:
            context["local_id"] = here.local_id
        if here.caller is not None:
            context["caller"] = list(here.caller)
        if (actor := here.actor) is not None:
            context["actor"] = {"user_id": actor.user_id, "project_id": actor.project_id, "operator": actor.operator}
        if owners := here.owners:
            context["owners"] = [[owner.id, owner.project_id, owner.user_id] for owner in owners]
        # At the deadline the caller has got an error, because no manager answered.
        deadline = self._time.after(timeout)
        if deadline is not None:
            context["deadline"] = repr(deadline)
        asked = self._time.elapsed()
        client = self._client.prepare(timeout=timeout)
        if call not in READS:
            may_change()
        message = self._count_call(lambda: client.call(context, "ask", call=call, arguments=texts))
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            self._time.learn(float(message["now"]), asked=asked, answered=self._time.elapsed())
        return message

    @staticmethod
    def _count_call(send: Callable[[], Any]) -> Any:
        """Send a message, and count what becomes of it."""
        # Whatever else goes wrong is the message bus.
        outcome = "undelivered"
        try:
            with metrics.RPC_CLIENT_CALL_DURATION.measure():
                message = send()
            outcome = codec.read_outcome(message)
        except oslo_messaging.MessagingTimeout:
            outcome = "timeout"
            raise
        finally:
            metrics.RPC_CLIENT_CALLS.add(outcome)
        return message

    def _learn_the_time(self, seconds: float) -> None:
        """Learn the managers' time by a call that changes nothing, so that no request is sent without a deadline."""
        if self._time.known or self._time.elapsed() < self._greet_again:
            return
        try:
            self._call_once_or_twice(_GREETING, codec.encode_arguments(_GREETING, _QUESTION), {}, seconds)
        except oslo_messaging.MessagingTimeout as error:
            raise NothingDone("no blazar-manager answered in time, and nothing was done; please try again") from error
        # Managers of an earlier version do not send their time, and have no deadlines either.
        self._greet_again = self._time.elapsed() + GREET_AGAIN

    def _wait_for_bus(self) -> None:
        """Wait for the first connection, but with a limit; the library has none, and cannot be interrupted.

        The first request connects, so that a WSGI server may fork after it has loaded the application.
        """
        first = self.connect()
        first.join(PATIENCE)
        if first.is_alive():
            metrics.RPC_CLIENT_CALLS.add("undelivered")
            self._trouble.log_failure("Message bus cannot be reached")
            raise NothingDone("the message bus cannot be reached; please try again")

    def connect(self) -> threading.Thread:
        """Connect in a thread, once, and log what is wrong; return the thread."""
        with self._lock:
            if self._first is None:
                self._first = threading.Thread(target=self._connect, name="connecting", daemon=True)
                self._first.start()
        return self._first

    def _connect(self) -> None:
        try:
            self._call(_GREETING, codec.encode_arguments(_GREETING, _QUESTION), {}, timeout=1)
        except (oslo_messaging.MessageUndeliverable, oslo_messaging.MessagingTimeout):
            self._trouble.log_failure("No blazar-manager answers over the message bus yet", level=logging.WARNING)
        except Exception as error:
            # As for requests, which are refused with 503 meanwhile.
            self._trouble.log_failure(f"Message bus cannot be used: {type(error).__name__}: {explain_refusal(error)}")


def _explain_silence(call: str) -> ManagerUnavailable:
    """Return the error for a call that no manager answered: what its caller may do depends on what it can have done."""
    if call in READS and not has_changed():
        return OutOfTime("no blazar-manager answered in time; nothing was changed, please try again")
    return ManagerUnavailable(
        "no blazar-manager answered in time; the request may or may not have been done: check before you repeat it"
    )


def ping_server(conf: cfg.ConfigOpts, transport: Any, server: str, seconds: float) -> Pong:
    """Return the answer of the manager with this name over the message bus. ManagerUnavailable if it comes too late."""
    client = oslo_messaging.get_rpc_client(transport, target(conf.manager.rpc_topic, server=server), timeout=seconds)
    try:
        message = client.call({}, "ask", call="service.ping", arguments={})
    except Exception as error:
        # As for requests: drivers of the message bus raise the errors of their libraries.
        raise ManagerUnavailable(
            f"no answer came back over the message bus: {type(error).__name__}: {explain_refusal(error)}"
        ) from error
    pong: Pong = codec.decode_answer("service.ping", message)
    return pong
