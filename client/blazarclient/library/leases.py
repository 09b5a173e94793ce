# SPDX-License-Identifier: Apache-2.0
"""Leases: make, read, list, change, end, wait."""

from __future__ import annotations

import dataclasses
import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from blazarclient.exception import (
    BlazarClientException,
    Conflict,
    InvalidRequest,
    NotFound,
    NoUniqueMatch,
    PreconditionFailed,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Uncertain,
)
from blazarclient.library.connections import NotTrusted, leaves_open
from blazarclient.library.decoding import decode
from blazarclient.library.transport import (
    LONGEST_PAUSE,
    Answer,
    Transport,
    exactly,
    is_uuid,
    named,
    part_of_path,
    patience_for,
)
from blazarclient.library.values import Lease
from blazarclient.library.waiting import EVERY, Outages, looks
from blazarclient.library.written import Date, checked, id_of, in_capitals, in_seconds, written

SETTLED = frozenset({"PENDING", "ACTIVE", "TERMINATED", "ERROR", "TIMED_OUT"})
"""Statuses in which a lease stays by itself."""

CHANGES = 5
"""How often a change of dates is tried while others change the lease."""

PAUSE = 1.0
"""Seconds before a change of dates is tried again that the service could not make, unless it says how many."""


class Leases:
    """Leases of the project of the session."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._sleep = sleep

    def create(
        self,
        name: str,
        *,
        reservations: Sequence[Mapping[str, Any]],
        end_date: Date,
        start_date: Date = "now",
        before_end_date: Date | None = None,
        time_zone: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        kind: str | None = None,
        wait_until: Date | None = None,
        tries: int | None = None,
        latest_start: Date | None = None,
        at_least: str | None = None,
        extend_until: Date | None = None,
        reminders: Sequence[Mapping[str, Any]] = (),
        max_price: str | None = None,
        quoted_at: Date | None = None,
        keep_hosts: bool | None = None,
        confirm_within: str | None = None,
    ) -> Lease:
        """Book a lease. NotEnoughResources or LimitExceeded if it is refused.

        ``kind``: ``scheduled``, ``immediate``, ``retries`` or ``best_effort``. An immediate lease is returned when it
        is ACTIVE, or refused: Conflict, within a minute. ``wait_until``: if not enough is free, the lease is returned
        WAITING, and waits for its turn until then; one of the kind ``retries`` goes back to that when it cannot be
        started, until so many ``tries`` have failed. It starts no later than ``latest_start``, and is ``at_least`` so
        long, such as ``PT4H``, if it cannot be as long as it asks for. ``extend_until``: up to then it is prolonged by
        itself if nobody else wants its resources. ``reminders``: each with ``at``, as ``-PT2H`` before the end,
        ``text``, and ``from`` where it counts from the other date. ``max_price``: Conflict if it costs more, such as
        ``640.00``. ``quoted_at``, of the ``price`` of a dry run or an opening: it costs no more than that until its
        ``held_until``. ``keep_hosts``: it does not get others before its start for the sake of another lease.
        ``confirm_within``, such as ``PT10M``: it is deleted then, unless it is confirmed with ``confirm`` before.

        ``time_zone``: an IANA name, for dates without offset and for days of durations. With one ``idempotency_key``
        at most one lease is made, however often and wherever this is called. Uncertain if no answer came after some
        tries: its key tells the lease, if there is one. ``dry_run``: nothing is booked.
        """
        body: dict[str, Any] = {
            "name": name,
            "start_date": written(start_date),
            "end_date": written(end_date),
            "reservations": [dict(reservation) for reservation in reservations],
        }
        if before_end_date is not None:
            body["before_end_date"] = written(before_end_date)
        if time_zone is not None:
            body["time_zone"] = time_zone
        if kind is not None:
            body["kind"] = kind
        if wait_until is not None:
            latest = None if latest_start is None else written(latest_start)
            more = {"tries": tries, "latest": latest, "at_least": at_least}
            given = {key: value for key, value in more.items() if value is not None}
            body["wait"] = {"until": written(wait_until), **given}
        elif any(each is not None for each in (tries, latest_start, at_least)):
            raise ValueError("tries, latest_start and at_least are for a lease that waits; give wait_until, too")
        if extend_until is not None:
            body["extend_if_free"] = {"until": written(extend_until)}
        if reminders:
            body["reminders"] = [dict(reminder) for reminder in reminders]
        rest: dict[str, object] = {"max_price": max_price, "keep_hosts": keep_hosts, "confirm_within": confirm_within}
        rest["quoted_at"] = None if quoted_at is None else written(quoted_at)
        body |= {key: value for key, value in rest.items() if value is not None}
        key = checked(idempotency_key or str(uuid.uuid4()))
        try:
            answer = self._transport.ask(
                "POST",
                "/leases",
                body=body,
                query={"dry_run": True} if dry_run else None,
                headers={"Idempotency-Key": f'"{key}"'},
                repeatable=True,
                patience=patience_for(kind),
            )
        except BlazarClientException as error:
            if not leaves_open(error):
                raise
            lost = Uncertain(
                f"It is not known whether lease {name} was booked: {error}",
                faults=error.faults,
                request_id=error.request_id,
            )
            lost.idempotency_key = key
            raise lost from error
        return _lease(answer)

    def get(self, lease: Lease | str) -> Lease:
        """Return a lease, also a past one. NotFound."""
        return _lease(self._transport.ask("GET", _path(lease)))

    def find(self, name_or_id: str) -> Lease:
        """Return the lease of this id, or the current one of this name. NotFound; NoUniqueMatch."""
        named(name_or_id)
        if is_uuid(name_or_id):
            try:
                return self.get(name_or_id)
            except NotFound:
                pass
        found = list(itertools.islice(self.list(name=name_or_id, fields=("id", "name"), limit=10), 10))
        if not found:
            raise NotFound(f"There is no lease {name_or_id}")
        if len(found) > 1:
            raise NoUniqueMatch(
                f"Several leases are called {name_or_id}; give an id: {', '.join(str(each.id) for each in found)}"
            )
        return self.get(str(found[0].id))

    def list(
        self,
        /,
        *,
        state: str | None = None,
        status: str | Sequence[str] | None = None,
        name: str | None = None,
        text: str | None = None,
        resource_type: str | None = None,
        region: str | None = None,
        kind: str | None = None,
        project_id: str | None = None,
        user_id: str | None = None,
        overlapping: tuple[Date | None, Date | None] = (None, None),
        sort_key: str | None = None,
        sort_dir: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        **filters: Any,
    ) -> Iterator[Lease]:
        """Yield leases, reading page by page; ``limit`` is the size of a page.

        ``state``: ``current`` (the default), ``past`` or ``all``. ``name``: the whole name. ``fields``: what to tell of
        each; the less, the faster. ``region``: those with a reservation there.
        """
        since, until = overlapping
        query = {
            "state": state,
            "status": status if status is None or isinstance(status, str) else "in:" + ",".join(status),
            "name": None if name is None else exactly(name),
            "text": text,
            "resource_type": resource_type,
            "region": None if region is None else exactly(region),
            "kind": kind,
            "project_id": project_id,
            "user_id": user_id,
            "from": None if since is None else written(since),
            "to": None if until is None else written(until),
            "sort_key": sort_key,
            "sort_dir": sort_dir,
            "fields": fields,
            "limit": limit,
            **filters,
        }
        for item in self._transport.pages("/leases", "leases", query=query):
            yield decode(Lease, item)

    def change(
        self,
        lease: Lease | str,
        *,
        name: str | None = None,
        start_date: Date | None = None,
        end_date: Date | None = None,
        before_end_date: Date | None = None,
        reset_before_end: bool = False,
        time_zone: str | None = None,
        reservations: Sequence[Mapping[str, Any]] | None = None,
        if_match: str | None = None,
        dry_run: bool = False,
        extend_until: Date | None = None,
        stop_extending: bool = False,
        reminders: Sequence[Mapping[str, Any]] | None = None,
        max_price: str | None = None,
        keep_hosts: bool | None = None,
    ) -> Lease:
        """Change what is given and return the lease. PreconditionFailed if it changed since ``if_match`` was read.

        ``reset_before_end``: warn again as long before the end as the operator has set, instead of at a date.
        ``extend_until`` is as in ``create``; with ``stop_extending`` it is not prolonged by itself any more.
        ``reminders`` take the place of all that it has. ``max_price``: Conflict if it costs more then, such as
        ``"640.00"``. ``keep_hosts`` is as in ``create``.
        """
        if reset_before_end and before_end_date is not None:
            raise ValueError("before_end_date and reset_before_end exclude each other")
        dates = {"start_date": start_date, "end_date": end_date, "before_end_date": before_end_date}
        body: dict[str, Any] = {key: written(value) for key, value in dates.items() if value is not None}
        if reset_before_end:
            body["before_end_date"] = None
        if extend_until is not None or stop_extending:
            body["extend_if_free"] = None if extend_until is None else {"until": written(extend_until)}
        rest: dict[str, Any] = {
            "name": name,
            "time_zone": time_zone,
            "reservations": reservations,
            "reminders": reminders,
        }
        rest |= {"max_price": max_price, "keep_hosts": keep_hosts}
        body |= {key: value for key, value in rest.items() if value is not None}
        answer = self._transport.ask(
            "PUT",
            _path(lease),
            body=body,
            query={"dry_run": True} if dry_run else None,
            headers={"If-Match": if_match} if if_match else None,
            # A change that was made has another tag: only without one is it the same when it is sent again.
            repeatable=if_match is None,
        )
        return _lease(answer)

    def change_dates(
        self,
        read: Lease,
        *,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        dry_run: bool = False,
    ) -> Lease:
        """Change dates of a lease that ``get`` or ``find`` returned before, and return it as it is then.

        What others change meanwhile is kept; PreconditionFailed if they change one of these dates. A change whose
        answer was lost is not made twice.
        """
        given = {"start_date": start_date, "end_date": end_date}
        wanted: dict[str, Any] = {key: in_seconds(value) for key, value in given.items() if value is not None}
        lease = read
        lost = False
        for tries_left in reversed(range(CHANGES)):
            try:
                return self.change(str(read.id), **wanted, if_match=lease.etag, dry_run=dry_run)
            except (PreconditionFailed, ServiceUnavailable) as error:
                # If there is still no connection, this raises the error that says so.
                lease = self.get(str(read.id))
                present = {key: getattr(lease, key) for key in wanted}
                lost = lost or leaves_open(error)
                # If no answer was lost, it is somebody else who wanted the same, such as one hour more.
                if present == wanted and lost and not dry_run:
                    return lease
                if present != {key: getattr(read, key) for key in wanted}:
                    raise _moved(lease, error) from error
                if not tries_left:
                    raise
                if isinstance(error, ServiceUnavailable):
                    self._sleep(min(error.retry_after or PAUSE, LONGEST_PAUSE))
        raise AssertionError("the last try returns or raises")

    def extend(self, lease: Lease | str, by: timedelta) -> Lease:
        """Move the end of a lease by a time that passes, and return the lease. To a date: ``change(end_date=…)``.

        It is counted from the end as it is now. Somebody else's change is kept; PreconditionFailed if it is of the end.
        """
        read = self.get(lease)
        if read.end_date is None:
            raise BlazarClientException(f"The service tells no end of lease {read.id}", code=502)
        try:
            later = read.end_date + by
        except OverflowError:
            raise InvalidRequest(f"{by} is too long: there is no such year") from None
        return self.change_dates(read, end_date=later)

    def end(self, lease: Lease | str) -> Lease:
        """End an active lease now, and keep it in the history. One that is over already is returned as it is."""
        try:
            return self.change(lease, end_date="now")
        except Conflict as error:
            # It may have ended by itself, or by a try whose answer was lost.
            if any(fault.code == "reservation.lease_ended" for fault in error.faults):
                return self.get(lease)
            raise

    def confirm(self, lease: Lease | str) -> Lease:
        """Confirm a lease that was booked to be; once more changes nothing. Conflict if it is firm, or too late."""
        return _lease(self._transport.ask("POST", f"{_path(lease)}/confirm"))

    def keep(self, lease: Lease | str) -> Lease:
        """Keep a lease that nobody uses from being released. Conflict if nothing threatens it, or a second time."""
        return _lease(self._transport.ask("POST", f"{_path(lease)}/keep"))

    def hold(self, lease: Lease | str) -> Lease:
        """As an operator, keep a lease from ever being released for not being used. Conflict if nobody looks at it."""
        return _lease(self._transport.ask("PUT", f"{_path(lease)}/hold"))

    def let_go(self, lease: Lease | str) -> Lease:
        """As an operator, hold a lease no longer."""
        return _lease(self._transport.ask("DELETE", f"{_path(lease)}/hold"))

    def delete(self, lease: Lease | str, *, if_match: str | None = None) -> None:
        """Delete a lease; what it holds is given back. One that is deleted already is left alone."""
        headers = {"If-Match": if_match} if if_match else None
        # As with a change: a deletion that was made has another tag.
        self._transport.ask("DELETE", _path(lease), headers=headers, repeatable=if_match is None)

    def watch(
        self,
        lease: Lease | str,
        *,
        every: float = EVERY,
        when_silent: Callable[[ServiceUnavailable], None] | None = None,
    ) -> Iterator[Lease]:
        """Yield a lease as it is now and each time it has changed, without end; NotFound if it is not there.

        Of one that waits for its turn that is also when its place or its estimate has changed. With ``when_silent`` an
        outage of the service after the first look does not end it: it is called once with the error.
        """
        etag = None
        seen: Lease | None = None
        outages = Outages(when_silent)
        while True:
            with outages.bridge():
                answer = self._transport.ask("GET", _path(lease), headers={"If-None-Match": etag} if etag else None)
                if answer.status != 304:
                    now = _lease(answer)
                    # A place in line changes while the lease, and so its tag, remains the same.
                    etag = None if now.status == "WAITING" else answer.etag
                    if now != seen:
                        seen = now
                        yield now
            self._sleep(every)

    def wait(
        self,
        lease: Lease | str,
        statuses: str | Iterable[str] = ("ACTIVE",),
        *,
        failures: str | Iterable[str] = ("ERROR",),
        timeout: float | None = None,
        every: float = EVERY,
        progress: Callable[[Lease], None] = lambda lease: None,
    ) -> Lease:
        """Return the lease once it is in one of the ``statuses``, or ``failures``, or over, or has waited in vain.

        Timeout after ``timeout`` seconds. ``progress`` is called with each state that is seen. Once it was seen, times
        in which the service does not answer are waited for, too.
        """
        hoped = in_capitals(statuses)
        wanted = {*hoped, *in_capitals(failures), "TERMINATED", "TIMED_OUT"}
        seen: Lease | None = None

        def look() -> Lease | None:
            try:
                return self.get(lease)
            except (ServiceUnavailable, TooManyRequests) as error:
                # Before it was seen, the address may be wrong.
                if seen is None or isinstance(error, NotTrusted):
                    raise
                return None

        for now in looks(look, timeout=timeout, every=every, clock=self._clock, sleep=self._sleep):
            if now is None:
                continue
            seen = now
            progress(now)
            if now.status in wanted or now.deleted_at is not None:
                return now
        raise Timeout(f"Lease {id_of(lease)} was not {' or '.join(hoped) or 'over'} within {timeout:g} s")


def _moved(lease: Lease, error: BlazarClientException) -> PreconditionFailed:
    """Return the error for a change of dates that others have changed."""
    start, end = (written(date) if date else "an unknown time" for date in (lease.start_date, lease.end_date))
    # Without an answer it may have been done, and have been changed after that.
    nothing = "Nothing was done; look" if isinstance(error, PreconditionFailed) else "Look"
    return PreconditionFailed(
        f"Lease {lease.name} has been changed meanwhile: it lasts from {start} to {end}. {nothing} at it and try again",
        faults=error.faults,
        request_id=error.request_id,
    )


def _lease(answer: Answer) -> Lease:
    return dataclasses.replace(decode(Lease, answer.part("lease")), etag=answer.etag)


def _path(lease: Lease | str) -> str:
    return f"/leases/{part_of_path(id_of(lease))}"
