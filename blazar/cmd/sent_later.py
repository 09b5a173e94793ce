# SPDX-License-Identifier: Apache-2.0
"""Messages for others that leave by a bus, in a thread of their own: neither requests nor events wait for it."""

from __future__ import annotations

import atexit
import copy
import logging
import os
import queue
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from blazar.messaging import explain_refusal
from blazar.model.base.log_lines import Trouble

if TYPE_CHECKING:
    from blazar.manager.common.notifications import Send

LOG = logging.getLogger(__name__)

MOST = 1000
"""Messages that wait; further ones are lost."""

PARTING_SECONDS = 3.0
"""How long a process that ends sends what waits."""

_DRIVER_LOG = "oslo_messaging.notify.messaging"


class SentLater(logging.Filter):
    """Sends messages in their order. Those that cannot be sent are lost, which the log says in one sentence.

    ``what`` they are is how that begins; at most ``most`` wait. ``copied``: what they are made of changes later.
    It is a filter of the driver's log, too: that quotes each message that is lost, with a traceback.
    """

    def __init__(self, send: Send, what: str, *, most: int = MOST, copied: bool = False) -> None:
        super().__init__()
        self._send = send
        self._what = what
        self._copied = copied
        self._waiting: queue.Queue[tuple[Mapping[str, Any], str, Mapping[str, Any]]] = queue.Queue(most)
        self._trouble = Trouble(LOG, f"{what} can be sent")
        self._lock = threading.Lock()
        self._sender: threading.Thread | None = None
        self._pid = 0
        self._failed = False
        logging.getLogger(_DRIVER_LOG).addFilter(self)

    def notify(self, context: Mapping[str, Any], event_type: str, payload: Mapping[str, Any]) -> None:
        """Have a message sent soon."""
        self._start()
        try:
            self._waiting.put_nowait((context, event_type, copy.deepcopy(payload) if self._copied else payload))
        except queue.Full:
            self._trouble.log_failure(f"{self._what} are lost: {self._waiting.maxsize} wait for the bus")

    def wait_until_sent(self, seconds: float = PARTING_SECONDS) -> bool:
        """Wait until nothing waits any more, so long at most; return whether that is so."""
        with (over := self._waiting.all_tasks_done):
            return over.wait_for(lambda: not self._waiting.unfinished_tasks, seconds)

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a record of the driver out of the log if it is about one of these messages."""
        if threading.current_thread() is not self._sender:
            return True
        self._failed = True
        error = record.exc_info[1] if record.exc_info else None
        reason = record.getMessage() if error is None else f"{type(error).__name__}: {explain_refusal(error)}"
        self._trouble.log_failure(f"{self._what} cannot be sent, and are lost meanwhile: {reason}")
        return False

    def _start(self) -> None:
        """Start the thread in this process: a WSGI server may have forked since."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._sender = threading.Thread(target=self._send_all, name="sent later", daemon=True)
                self._sender.start()
                atexit.register(self.wait_until_sent)

    def _send_all(self) -> None:
        while True:
            context, event_type, payload = self._waiting.get()
            self._failed = False
            try:
                self._send(context, event_type, payload)
            except Exception as error:
                # The edge of the thread: whatever a driver raises, the next message is sent.
                self._failed = True
                self._trouble.log_failure(f"{self._what} cannot be sent, and are lost meanwhile", error)
            finally:
                self._waiting.task_done()
            if not self._failed:
                self._trouble.log_recovery()
