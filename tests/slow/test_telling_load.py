# SPDX-License-Identifier: Apache-2.0
"""A hundred events a second for minutes, or an hour: bad receivers get all of it once they are well, others at once.

``FULL=1`` is an hour; ``BLAZAR_TELLING_SECONDS`` says another time, and ``BLAZAR_TELLING_RATE`` another rate.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import ssl
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.clock import SystemClock
from blazar.model.journal.entries import JournalEntry, ObjectType, Subject, Verb
from blazar.model.subscriptions.details import SubscriptionChange, SubscriptionRequest, SubscriptionState
from blazar.store.journal.rows import write_entries
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import journal
from blazar.store.store import Store
from tests.certificates import make_certificate
from tests.slow.test_kill_tellers import in_first_order, make_manager, running_managers

SECONDS = int(os.environ.get("BLAZAR_TELLING_SECONDS") or (3600 if os.environ.get("FULL") else 180))
RATE = int(os.environ.get("BLAZAR_TELLING_RATE") or 100)
KILLED_EVERY = 20.0
"""Seconds between two managers that are killed."""
LEASES = max(100, SECONDS * RATE // 500)
"""So many that no history becomes so long that its middle is left out: what is gone cannot be told."""
LONGEST = 90.0
"""Seconds within which a good receiver has each entry: on a busy machine it may miss two calls, which cost their time
and the first two pauses, and not a third."""
ILL = 0.6
"""The share of the time in which receivers are ill."""

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(3 * SECONDS + 900)]


class Receivers(ThreadingHTTPServer):
    """Receivers by path, each on connections that it keeps; while ``ill`` they do what their path says."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: str, certificate: tuple[Path, Path]) -> None:
        super().__init__((address, 0), Handler)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        self.ill = True
        self.connections = 0
        self.heard: dict[str, list[tuple[float, dict]]] = defaultdict(list)

    def get_request(self):
        wire, address = super().get_request()
        self.connections += 1
        wire.settimeout(20)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(wire, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request, client_address) -> None:
        """Say nothing: a manager that is killed hangs up at any time."""

    def url(self, path: str) -> str:
        host, port = self.server_address[:2]
        return f"https://{host}:{port}/{path}"


class Handler(BaseHTTPRequestHandler):
    """Accepts what comes, once it is well."""

    server: Receivers
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path, value = self.path[1:], json.loads(body)
        events = [event for event in (value if isinstance(value, list) else [value]) if "sequence" in event]
        if events and self.server.ill and path in ILLNESSES:
            ILLNESSES[path](self)
            return
        now = time.time()
        self.server.heard[path] += ((now, event) for event in events)
        self.answer(204)

    def answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def hang(handler: Handler) -> None:
    time.sleep(20)


def talk_nonsense(handler: Handler) -> None:
    handler.wfile.write(b"\xff\xfenonsense\r\n" * 9)
    handler.close_connection = True


def fail(handler: Handler) -> None:
    handler.answer(503)


def delay(handler: Handler) -> None:
    time.sleep(0.5)
    handler.answer(500)


ILLNESSES = {"silent": hang, "garbage": talk_nonsense, "failing": fail, "slow": delay}
INWARD = "redirect"
ILLNESSES_OF_EVER = {INWARD: lambda handler: handler.answer(307, Location="https://10.0.0.1/")}
ILLNESSES |= ILLNESSES_OF_EVER
GOOD = {"one": False, "batch": True}


class Writer(threading.Thread):
    """Writes entries about many leases at a rate, a few in each transaction, as changes of them do."""

    def __init__(self, store: Store) -> None:
        super().__init__(daemon=True)
        self._store, self._revisions, self._dice = store, [0] * LEASES, random.Random(3)
        self.written = 0

    def run(self) -> None:
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < SECONDS:
            entries = self.entries(int(passed * RATE) - self.written)
            if entries:
                self._store.transactions.write(partial(_write, entries))
                self.written += len(entries)
            time.sleep(0.05)

    def entries(self, count: int) -> list[JournalEntry]:
        made = []
        for _ in range(count):
            number = self._dice.randrange(LEASES)
            self._revisions[number] += 1
            about = Subject(ObjectType.LEASE, f"lease-{number}", "busy", "physics", "curie", self._revisions[number])
            made.append(JournalEntry(about, SystemClock().now(), Verb.CHANGED))
        return made


def _write(entries: Sequence[JournalEntry], connection: Connection) -> None:
    write_entries(connection, entries)


def wait_until(true, seconds: float, describe=lambda: "it did not come") -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, describe()
        time.sleep(0.2)


def describe_delays(heard: Sequence[tuple[float, dict]], written: dict[str, float]) -> tuple[float, float, float]:
    """Return the median, the 99th of a hundred and the longest of the delays with which each entry came first."""
    first: dict[str, float] = {}
    for at, event in heard:
        first.setdefault(event["id"], at - written[event["id"]])
    delays = sorted(first.values())
    return statistics.median(delays), delays[int(len(delays) * 0.99)], delays[-1]


def test_a_hundred_events_a_second_reach_all_receivers_whatever_some_of_them_do(postgresql_url, tmp_path):
    engine = make_engine(postgresql_url)
    upgrade(engine)
    store = Store(engine)
    paths = (*GOOD, *ILLNESSES)
    # Each on an address of its own, as another host.
    addresses = [f"127.0.0.{number}" for number in range(1, 1 + len(paths))]
    certificate = make_certificate(tmp_path, addresses)
    with contextlib.ExitStack() as stack:
        servers = {path: Receivers(address, certificate) for path, address in zip(paths, addresses, strict=True)}
        for server in servers.values():
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
        cafile = str(certificate[0])
        subscriptions = make_manager(postgresql_url, cafile).subscriptions
        made = {}
        for path, server in servers.items():
            # Who gets a message for each event alone, and is far behind, gets them in batches.
            batch = GOOD.get(path, True)
            request = SubscriptionRequest("physics", "curie", server.url(path), ("lease.*",), batch=batch)
            made[path] = subscriptions.create(request).subscription.id

        def behind(path: str) -> bool:
            found = store.subscriptions.one(made[path])
            return not found.confirmed or found.behind > 0

        def unnumbered() -> int:
            with engine.connect() as connection:
                return connection.scalar(sa.select(sa.func.count()).where(journal.c.position.is_(None)))

        def describe_lags() -> str:
            lags = {path: store.subscriptions.one(id_).behind for path, id_ in made.items()}
            return f"{unnumbered()} entries have no place; how many each is behind: {lags}"

        with running_managers(postgresql_url, cafile) as kill_one:
            wait_until(lambda: not any(map(behind, servers)), 60)
            writer = Writer(store)
            writer.start()
            begun = killed_at = time.monotonic()
            kills = 0
            while writer.is_alive():
                writer.join(0.5)
                if time.monotonic() - killed_at > KILLED_EVERY:
                    kills, killed_at = kills + 1, time.monotonic()
                    kill_one()
                if time.monotonic() - begun > ILL * SECONDS:
                    for path, server in servers.items():
                        server.ill = path in ILLNESSES_OF_EVER
            wait_until(lambda: not unnumbered() and not any(map(behind, GOOD)), 60, describe_lags)
            ill = [path for path in ILLNESSES if path not in ILLNESSES_OF_EVER]
            # Their owners need not wait for the next try, which may come after half an hour.
            for path in ill:
                subscriptions.change(made[path], SubscriptionChange(state=SubscriptionState.ACTIVE))
            wait_until(lambda: not any(map(behind, ill)), SECONDS + 120)
        with engine.connect() as connection:
            rows = connection.execute(
                sa.select(journal.c.id, journal.c.at).where(journal.c.object_type == "lease")
            ).all()
        written = {row.id: row.at.timestamp() for row in rows}
        assert len(written) >= writer.written >= SECONDS * RATE * 0.8
        for path in (*GOOD, *ill):
            heard = servers[path].heard[path]
            assert {event["id"] for _, event in heard} == set(written), path
            assert in_first_order([event for _, event in heard]), path
            median, most, longest = describe_delays(heard, written)
            print(
                f"{path}: {len(written)} entries, {kills} kills, {servers[path].connections} connections, "
                f"median {median:.2f} s, 99% {most:.2f} s, longest {longest:.2f} s, "
                f"{len(heard) / len(written) - 1:.1%} twice"
            )
            if path in GOOD:
                assert median < 2, path
                assert longest < LONGEST, path
        assert servers[INWARD].heard[INWARD] == []
        assert store.subscriptions.one(made[INWARD]).reason is not None
    engine.dispose()
