# SPDX-License-Identifier: Apache-2.0
"""Booking of a lease so that it is known in the end whether there is one, and waiting until it has begun."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blazarclient.exception import BlazarClientException, ServiceUnavailable, Timeout, Uncertain
from blazarclient.text_columns import harmless, width_of
from blazarclient.utils import read_date

if TYPE_CHECKING:
    from blazarclient.library.transport import Transport

FAILED = frozenset({"ERROR", "TIMED_OUT"})
OVER = FAILED | {"TERMINATED"}


@dataclass(frozen=True)
class Booked:
    """A lease that was booked; ``again``: an earlier request with the key had booked it."""

    id: str
    again: bool


def book(transport: Transport, body: Mapping[str, Any], key: str, again: str = "") -> Booked:
    """Book a lease under an idempotency key; ``again``: the command that sends the same request once more.

    Uncertain if no answer came, ServiceUnavailable if nothing was sent. After Ctrl-C it is asked for once more with
    the key, for only that tells for certain; what only this has booked is deleted again, and the KeyboardInterrupt
    says what has become of it.
    """
    try:
        return _sent(transport, body, key, again)
    except KeyboardInterrupt:
        raise _stopped(transport, body, key, again) from None


def _sent(transport: Transport, body: Mapping[str, Any], key: str, again: str) -> Booked:
    headers = {"Idempotency-Key": f'"{key}"'}
    try:
        # Loaded only where something is booked: the list of commands does not need it.
        from blazarclient.library.transport import patience_for

        answer = transport.ask(
            "POST",
            "/leases",
            body=dict(body),
            headers=headers,
            repeatable=True,
            patience=patience_for(body.get("kind")),
        )
        lease_id = str(answer.part("lease", "id"))
    except BlazarClientException as error:
        if not may_be_booked(error):
            raise
        raise _uncertain(body, key, str(error), again) from error
    return Booked(lease_id, answer.headers.get("Idempotency-Replayed") == "true")


def may_be_booked(error: BlazarClientException) -> bool:
    """Return whether there may be a lease, though this came instead of it."""
    from blazarclient.library.connections import leaves_open

    # 502: an answer of success that has no lease.
    return leaves_open(error) or error.code == 502


def _uncertain(body: Mapping[str, Any], key: str, why: str, again: str) -> Uncertain:
    name = body["name"]
    again = again or f"the same command once more with --idempotency-key {key}"
    lost = Uncertain(
        f"It is not known whether lease {name} was booked: {why}\n"
        f"Give {again}\nIt finds the lease, or books it, and never books two."
    )
    lost.idempotency_key = key
    return lost


def _stopped(transport: Transport, body: Mapping[str, Any], key: str, again: str) -> BaseException:
    name = body["name"]
    try:
        found = _sent(transport, body, key, again)
        if found.again:
            return KeyboardInterrupt(f"Stopped, but lease {name} was booked already: {found.id}")
    except Uncertain as error:
        return error
    except KeyboardInterrupt:
        return _uncertain(body, key, "stopped before the answer came", again)
    except ServiceUnavailable as error:
        return _uncertain(body, key, str(error), again)
    except BlazarClientException as error:
        return KeyboardInterrupt(f"Stopped; lease {name} is not booked, and would not be: {error}")
    try:
        transport.ask("DELETE", f"/leases/{found.id}")
    except (BlazarClientException, KeyboardInterrupt) as error:
        why = str(error) or "stopped again"
        return KeyboardInterrupt(f"Stopped, but lease {name} was booked and may still be: {found.id}. {why}")
    return KeyboardInterrupt(f"Stopped; lease {name} is not booked.")


def uncertain_of_old(name: str, why: str) -> Uncertain:
    """Return the error for a booking at microversion 1.0, which has no keys, of which no answer came."""
    return Uncertain(
        f"It is not known whether lease {name} was booked: {why}\n"
        "At microversion 1.0 nothing keeps the same command from booking once more: see the list of leases first."
    )


class Progress:
    """A line on a terminal that says how it stands; where nobody looks on, nothing."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = 0
        self._terminal = bool(getattr(self._stream, "isatty", lambda: False)())

    def show(self, text: str) -> None:
        """Put a text in the place of the one before."""
        if self._terminal:
            # What goes on in the next line could not be taken away again; the last column is the cursor's.
            text = harmless(text).replace("\n", " ")
            text = text[: (width_of(self._stream) or len(text) + 1) - 1]
            self._stream.write("\r" + text.ljust(self._shown))
            self._stream.flush()
            self._shown = len(text)

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0


def wait_active(
    look: Callable[[], Mapping[str, Any]],
    *,
    timeout: float | None,
    progress: Progress,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Mapping[str, Any]:
    """Return a lease, as microversion 1.0 tells it, once it is ACTIVE or over.

    Timeout after so many seconds. Faults that pass are waited for. ``waits`` of a lease says how it waits in line.
    """
    # It comes with all of the library, which the list of commands does not need.
    from blazarclient.library.waiting import looks

    begun = clock()
    lease = None
    try:
        for lease in looks(functools.partial(_looked, look), timeout=timeout, clock=clock, sleep=sleep):
            if lease is not None and (lease["status"] == "ACTIVE" or lease["status"] in OVER):
                return lease
            progress.show(_line(lease, clock() - begun))
    finally:
        progress.end()
    raise Timeout(_too_long(lease, timeout or 0))


def _too_long(lease: Mapping[str, Any] | None, waited: float) -> str:
    if lease is None:
        return f"The lease has not begun after {waited:g} s; it stays booked"
    told = f"The lease is {lease['status']} after {waited:g} s"
    if lease.get("waits"):
        return f"{told}, {lease['waits']}. Nothing is booked for it yet, and it keeps its place"
    return f"{told}; it stays booked"


def _looked(look: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    try:
        return look()
    except ServiceUnavailable:
        return None


def _line(lease: Mapping[str, Any] | None, waited: float) -> str:
    if lease is None:
        return f"The service does not answer; waiting for {waited:.0f} s"
    if lease.get("waits"):
        return f"{lease['status']}, {lease['waits']}; waiting for {waited:.0f} s"
    left = read_date(str(lease["start_date"])) - datetime.now(timezone.utc)
    begins = f", begins in {str(left).partition('.')[0]}" if left.total_seconds() > 0 else ""
    return f"{lease['status']}{begins}; waiting for {waited:.0f} s"
