# SPDX-License-Identifier: Apache-2.0
"""Messages to the receivers of subscriptions: each subscription is claimed while something is sent for it.

What is told is read from the journal after the place up to which the receiver has been told. If a manager dies before
it has written how far it got, another one sends that part again, with the same ids.

A receiver that does not answer must not delay others: those who have failed, or are slow, share a few threads, and no
host is called by more than two at a time. Mail has threads of its own, since a mail server that hangs is one for all.
However many wait for a place, those behind them that need another one get it.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from blazar.clouds.ports.people import NO_ADDRESS
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.runtime import Runtime
from blazar.manager.subscriptions.channels import Channels
from blazar.manager.subscriptions.sending import Sending
from blazar.model.base.errors import BlazarError, ClaimLost, CloudRefused, CloudUnavailable
from blazar.model.base.log_lines import log_level
from blazar.model.journal.entries import REPACKED_AGAIN, NumberedEntry
from blazar.model.journal.views import JournalPage, show_entry
from blazar.model.subscriptions.details import Channel, Digest, SendingLane, Subscription
from blazar.model.subscriptions.events import matches_event
from blazar.model.subscriptions.messages import Message, make_test_message
from blazar.model.subscriptions.rounds import Decision, ReceiverStanding, Round, decide_round, next_digest
from blazar.observe import metrics
from blazar.store.subscriptions.work import ClaimedSubscription, DueSubscription

LOG = logging.getLogger(__name__)

PAGE = 200
"""Subscriptions that are read at a time."""

MOST_ENTRIES = 200
"""Entries of the journal that one round tells at most."""

MOST_IN_MAIL = 2000
"""Entries of the journal that one mail tells at most."""

WELL, FAILING, MAILING = 6, 2, 2
"""Threads for receivers that do well, for those that fail or are slow, and for mail."""

PLACES = {SendingLane.WELL: WELL, SendingLane.FAILING: FAILING, SendingLane.MAIL: MAILING}

PER_HOST, PER_PROJECT = 2, 3
"""Threads that call one host, and of those for receivers that do well the ones that work for one project."""

SLOW_SECONDS = 3.0
"""A round whose calls took so long on average makes its host a slow one, until another one was faster."""

BROKEN = "the service cannot make or send a message; its operators find in its log why"
"""The reason that owners see for a message that fails for a reason that nobody has foreseen."""


class SendingPlaces:
    """Threads of a manager that are in use, by lane and by host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: Counter[SendingLane] = Counter()
        self._hosts: Counter[str] = Counter()
        self._projects: Counter[str | None] = Counter()
        self._busy: set[str] = set()
        self._slow: set[str] = set()

    def are_free(self, lane: SendingLane) -> bool:
        """Return whether a lane has a place for anybody."""
        with self._lock:
            return self._lanes[lane] < PLACES[lane]

    def take(self, due: DueSubscription) -> SendingLane | None:
        """Take a place for a subscription; return its lane, which is another one if its host is slow, or None."""
        host = host_of(due.url)
        with self._lock:
            lane = SendingLane.FAILING if due.lane is SendingLane.WELL and host in self._slow else due.lane
            # All mail goes to one server, and has its few places for that.
            full = self._lanes[lane] >= PLACES[lane] or (lane is not SendingLane.MAIL and self._hosts[host] >= PER_HOST)
            shared = lane is SendingLane.WELL
            if full or due.id in self._busy or (shared and self._projects[due.project_id] >= PER_PROJECT):
                return None
            self._lanes[lane] += 1
            self._hosts[host] += 1
            self._projects[due.project_id] += shared
            self._busy.add(due.id)
            return lane

    def give_back(self, due: DueSubscription, lane: SendingLane) -> None:
        """Give a place back."""
        host = host_of(due.url)
        with self._lock:
            self._lanes[lane] -= 1
            self._hosts[host] -= 1
            self._projects[due.project_id] -= lane is SendingLane.WELL
            # So that what is counted no more is forgotten.
            self._hosts, self._projects = +self._hosts, +self._projects
            self._busy.discard(due.id)

    def note_speed(self, url: str, seconds: float) -> None:
        """Remember whether a host is slow."""
        with self._lock:
            (self._slow.add if seconds > SLOW_SECONDS else self._slow.discard)(host_of(url))


class Delivery(DueWork[DueSubscription, ClaimedSubscription]):
    """Sends messages. Any number of managers may do so at a time."""

    page = PAGE

    def __init__(self, runtime: Runtime, *, chance: Callable[[], float] = random.random) -> None:
        super().__init__("subscriptions", runtime, work="Subscribers cannot be told")
        self._store = runtime.store.subscription_work
        self._chance = chance
        self._channels = Channels(runtime)
        self._places = SendingPlaces()
        self._senders = ThreadPoolExecutor(sum(PLACES.values()), thread_name_prefix="subscriptions")
        self._skipped = False
        runtime.signals.entries_numbered.connect(self.wake)
        runtime.signals.subscriptions_changed.connect(self.wake)

    def start(self) -> None:
        """Start the sending threads; none if there is neither a master secret to sign with nor a mail server."""
        if self._channels.enabled:
            super().start()

    def stop(self) -> None:
        """Finish the messages that are being sent, and return."""
        super().stop()
        self._senders.shutdown()

    def run_due(self) -> int:
        """Do the rounds that are due in this thread, one after the other; return how many these were.

        For tests with their own clock; the running threads do the same.
        """
        total = 0
        while due := self._due():
            total += sum(self.work_on(one) for one in due)
        return total

    def run_once(self) -> int:
        """Give what is due to the threads that have a place for it; return for how many. StoreUnavailable."""
        started, self._skipped = 0, False
        for lane in SendingLane:
            for due in self._find_due(lane):
                if self._stopping.is_set():
                    return started
                if not self._places.are_free(lane):
                    self._skipped = True
                    break
                if (place := self._places.take(due)) is None:
                    self._skipped = True
                    continue
                self._senders.submit(self._work_in_thread, due, place)
                started += 1
        return started

    def _round(self) -> float:
        self.run_once()
        longest = self._runtime.settings.longest_sleep
        if self._skipped:
            # Who gives a place back wakes this thread.
            return longest.total_seconds()
        due_at = self._next_due()
        wait = longest if due_at is None else min(longest, due_at - self._runtime.clock.now())
        # What is due by now has just been given to a thread, which claims it in a moment.
        return max(0.05, wait.total_seconds())

    def _due(self) -> Sequence[DueSubscription]:
        now = self._runtime.clock.now()
        return [due for lane in SendingLane for due in self._store.find_due(now, PAGE, lane)]

    def _find_due(self, lane: SendingLane) -> Iterator[DueSubscription]:
        """Yield all that is due of a lane, the longest waiting first; more is read when it is asked for."""
        now, last = self._runtime.clock.now(), None
        while page := self._store.find_due(now, PAGE, lane, after=last):
            yield from page
            if len(page) < PAGE:
                return
            last = page[-1]

    def _next_due(self) -> datetime | None:
        return self._store.next_due()

    def _claim(self, due: DueSubscription, claim: Claim) -> ClaimedSubscription | None:
        until = self._runtime.claims.begin(claim)
        return self._store.claim(due.id, claim.token, now=self._runtime.clock.now(), until=until)

    def _work_in_thread(self, due: DueSubscription, lane: SendingLane) -> None:
        try:
            self.work_on(due)
        except BlazarError as error:
            LOG.log(log_level(error), "Subscription %s is told later: %s", due.id, error.message)
            self._stopping.wait(1)
        except Exception:
            # The edge of a thread: its claim expires, and the same is tried again.
            LOG.exception("Subscription %s cannot be told; that is tried again", due.id)
            self._stopping.wait(1)
        finally:
            self._places.give_back(due, lane)
            self.wake()

    def work(self, claimed: ClaimedSubscription, claim: Claim) -> None:
        """Send what is to be told to the receiver of a claimed subscription, and write how far it got."""
        with self._runtime.claims.held(claim):
            try:
                if claimed.testing:
                    self._test(claimed, claim)
                else:
                    self._tell(claimed, claim)
            except ClaimLost as error:
                LOG.debug("Subscription %s: %s", claimed.subscription.id, error.message)

    def _test(self, claimed: ClaimedSubscription, claim: Claim) -> None:
        """Ask a receiver whether it is there, and wants to be told."""
        now, found = self._runtime.clock.now(), claimed.subscription
        source = self._runtime.settings.event_source
        number = int(now.timestamp())
        message = make_test_message(found.id, source=source, number=number, at=now, batch=found.batch)
        result = self._send(claimed, [message], through=found.position)
        # That it does not want a test is no reason to give the message up.
        if result.refused:
            result = Round(found.position, failure=result.refused[0].reason, failed=None)
        decision = decide_round(_standing_of(claimed), result, now=self._runtime.clock.now(), chance=self._chance())
        _count_deliveries(found.channel, result, decision)
        self._store.finish_test(found.id, claim.token, decision, now=self._runtime.clock.now())

    def _tell(self, claimed: ClaimedSubscription, claim: Claim) -> None:
        """Tell a receiver what comes after its place."""
        found, journal = claimed.subscription, self._runtime.store.journal
        last = journal.last_position()
        projects = None if found.project_id is None else (found.project_id,)
        most = MOST_IN_MAIL if found.channel is Channel.MAIL else MOST_ENTRIES
        own = found.user_id if found.own else None
        page = journal.entries_after(found.position, projects, most, user_id=own, reader_id=found.user_id)
        entries = page.items
        through = entries[-1].position if len(entries) == most else max([last, *(e.position for e in entries)])
        wanted = list(_select_wanted(found, page))
        if wanted and found.digest is Digest.DAILY:
            at = next_digest(wanted[0].past.at, found.time_zone)
            if at > self._runtime.clock.now():
                self._wait_for_digest(claimed, claim, before=wanted[0].position, at=at)
                return
        result = self._send_entries(claimed, wanted, through=max(found.position, through))
        now = self._runtime.clock.now()
        decision = decide_round(_standing_of(claimed), result, now=now, chance=self._chance())
        if found.channel is Channel.MAIL and decision.delivered:
            # What happens meanwhile is told in one mail.
            decision = replace(decision, pause=max(decision.pause or timedelta(0), self._runtime.settings.mail_pause))
        _count_deliveries(found.channel, result, decision)
        if decision.disabled:
            LOG.warning("Subscription %s is disabled: %s", found.id, decision.reason)
        self._store.finish(found.id, claim.token, decision, now=now)

    def _wait_for_digest(self, claimed: ClaimedSubscription, claim: Claim, *, before: int, at: datetime) -> None:
        """Let a subscription rest until its digest is due."""
        now, found = self._runtime.clock.now(), claimed.subscription
        standing = replace(_standing_of(claimed), position=max(found.position, before - 1))
        self._store.finish(found.id, claim.token, Decision(standing, at - now, reason=found.reason), now=now)

    def _send_entries(self, claimed: ClaimedSubscription, wanted: Sequence[NumberedEntry], *, through: int) -> Round:
        """Send what a receiver is to be told of; whatever fails about it is a failed round. ClaimLost."""
        first = wanted[0].position if wanted else None
        try:
            messages = self._channels.make_messages(claimed.subscription, wanted)
            if messages is None:
                return Round(through, failed=first, failure=NO_ADDRESS)
            return self._send(claimed, messages, through=through)
        except ClaimLost:
            raise
        except (CloudUnavailable, CloudRefused) as error:
            return Round(through, failed=first, failure=error.message)
        except BlazarError:
            raise
        except Exception:
            # It would fail in the same way at once again: so it is left alone for longer and longer, as a receiver.
            LOG.exception("Messages of subscription %s cannot be made or sent", claimed.subscription.id)
            return Round(through, failed=first, failure=BROKEN)

    def _send(self, claimed: ClaimedSubscription, messages: Sequence[Message], *, through: int) -> Round:
        found = claimed.subscription
        sending = Sending(partial(self._channels.open, found), self._runtime.clock, self._stopping)
        # One that has failed is asked by a single call whether it does well again.
        several = claimed.attempts == 0 and found.channel is Channel.WEBHOOK
        result = sending.send_all(messages, through=through, several=several)
        if sending.calls and found.url is not None:
            self._places.note_speed(found.url, sending.seconds / sending.calls)
        return result


def _select_wanted(found: Subscription, page: JournalPage) -> Iterator[NumberedEntry]:
    """Yield what of a page a receiver wants to be told, and may be."""
    for entry in page.items:
        wanted = matches_event(found.events, str(entry.about.object_type), str(entry.past.verb))
        if found.own and entry.past.reason == REPACKED_AGAIN:
            continue
        if wanted and found.lease_id in (None, entry.about.id):
            project_id = entry.about.project_id if found.own else found.project_id
            yield entry if project_id is None else show_entry(entry, project_id, page.projects)


def _standing_of(claimed: ClaimedSubscription) -> ReceiverStanding:
    found = claimed.subscription
    return ReceiverStanding(found.position, claimed.attempts, claimed.refusals, found.failing_since)


def _count_deliveries(channel: Channel, result: Round, decision: Decision) -> None:
    """Count the messages of a round by what has become of them."""
    dead = len(decision.dead)
    retried = len(result.refused) - dead + (result.failure is not None)
    for outcome, number in (("delivered", result.accepted), ("retried", retried), ("dead", dead)):
        if number:
            metrics.DELIVERIES.add(channel, outcome, by=number)


def host_of(url: str) -> str:
    """Return the name of the host of a URL that was checked, in small letters."""
    return (urlsplit(url).hostname or "").rstrip(".")
