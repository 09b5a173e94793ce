# SPDX-License-Identifier: Apache-2.0
"""The HTTP server: nobody keeps others away by being connected, and a request ends where it says."""

from __future__ import annotations

import contextlib
import http.client
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from blazar.cmd import web
from tests.cmd.test_api import BUS, LOGIN

PATIENCE = 20
"""Seconds that a client waits. Idle connections of others used to be closed after 120."""


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Serve an application that answers what it was asked; return the port."""
    with contextlib.ExitStack() as stack:

        def begin(application=answer, **settings: int) -> int:
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            server = web.server(application, trusts_proxy=False, listener=listener, **{"threads": 4, **settings})
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(stop, server)
            return listener.getsockname()[1]

        yield begin


class HELD_BY_REQUEST:
    """The request that a test holds up in the application."""

    begun = threading.Event()
    go_on = threading.Event()


def answer(environ, start_response):
    body = environ["wsgi.input"].read()
    if environ["PATH_INFO"] == "/slow":
        HELD_BY_REQUEST.begun.set()
        HELD_BY_REQUEST.go_on.wait(PATIENCE)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {body!r}".encode()]


def stop(server) -> None:
    server.task_dispatcher.shutdown(timeout=1)

    def close_all() -> None:
        for channel in list(server._map.values()):
            channel.close()

    # In the server's own thread, whose loop ends with that and need not be waited for.
    server.trigger.pull_trigger(close_all)


def ask(port: int, raw: bytes = b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") -> str:
    """Send bytes; return all that comes until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(raw)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


@contextlib.contextmanager
def idle(port: int, count: int, begun: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open connections on which nothing is asked; ``begun`` is the beginning of a request."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            one.sendall(begun)
            sockets.append(one)
        yield sockets


@pytest.mark.sample(1)
@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nX-Slow: "], ids=["silent", "in the middle of a header"])
@pytest.mark.parametrize("connections", [50, 1000])
def test_idle_connections_keep_nobody_away(serve, connections, begun):
    port = serve(connections=connections)
    with idle(port, 500, begun):
        assert "GET /hello" in ask(port)


def test_those_that_were_idle_for_the_longest_make_room(serve):
    port = serve(connections=50)
    with idle(port, 40) as first, idle(port, 40) as second:
        ask(port)
        time.sleep(0.2)
        assert any(is_closed(one) for one in first)
        assert not any(is_closed(one) for one in second[-20:])


def test_a_connection_on_which_something_is_asked_is_not_idle(serve):
    port = serve(connections=50)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as busy:
        busy.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert HELD_BY_REQUEST.begun.wait(PATIENCE)
        with idle(port, 100) as others:
            ask(port)
            assert any(is_closed(one) for one in others)
            HELD_BY_REQUEST.go_on.set()
            told = b""
            while b"GET /slow" not in told:
                told += (some := busy.recv(65536))
                assert some, told


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"POST /one HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
        b"POST /one HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /one HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
        b"POST /one HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
    ],
    ids=["both", "the other way round", "HTTP/1.0", "two lengths", "two encodings"],
)
def test_a_request_with_two_ends_is_refused_and_the_connection_closed(serve, head):
    told = ask(serve(), head + b"0\r\n\r\n" + SMUGGLED)
    assert re.match(r"HTTP/1\.[01] (400|501) ", told)
    assert told.count("HTTP/1.") == 1
    assert "smuggled" not in told


def test_a_body_in_chunks_is_read_to_its_end(serve):
    head = b"POST /one HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert "POST /one b'abcde'" in ask(serve(), head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")


@pytest.mark.slow
def test_who_reads_slowly_holds_no_thread():
    started = threading.Semaphore(0)

    def large(environ, start_response):
        start_response("200 OK", [])
        started.release()
        return [b"x" * (20 * 1024 * 1024)] * 3

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = web.server(large, threads=2, trusts_proxy=False, listener=listener)
    threading.Thread(target=server.run, daemon=True).start()
    try:
        with idle(listener.getsockname()[1], 5, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            assert all(started.acquire(timeout=PATIENCE) for _ in range(5))
    finally:
        stop(server)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["api", "standalone"])
def test_both_programs_answer_at_once_beside_five_hundred_idle_connections(start, tmp_path, program, record_property):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if program == "api":
        start("api", *BUS, "host = 127.0.0.1", f"port = {port}", *LOGIN).says("is listening on")
    else:
        subprocess_of_standalone(start, tmp_path, port)
    with idle(port, 500):
        time.sleep(1)
        began = time.monotonic()
        # An API without a manager is not well.
        status = " 503 " if program == "api" else " 200 "
        assert status in ask(port, b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        took = time.monotonic() - began
        record_property("seconds", took)
        print(f"{program}: {took * 1000:.0f} ms beside 500 idle connections")


def subprocess_of_standalone(start, tmp_path, port: int) -> None:
    arguments = ("--port", str(port), "--data", str(tmp_path / "data"))
    start("standalone", arguments=arguments).says("Ctrl-C stops")


@contextlib.contextmanager
def kept_open(port: int) -> Iterator[http.client.HTTPConnection]:
    """A connection on which a proxy has sent a request, and will send others."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/first")
    assert connection.getresponse().read()
    yield connection
    connection.close()


@pytest.fixture
def stoppable() -> Iterator[tuple[web.Serving, int, threading.Thread]]:
    """A server that can be stopped as the process does; its port, and the thread that it runs in."""
    HELD_BY_REQUEST.begun.clear()
    HELD_BY_REQUEST.go_on.clear()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = web.server(answer, trusts_proxy=False, listener=listener, threads=4)
    serving = web.Serving(server)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    yield serving, listener.getsockname()[1], thread
    serving.begin_stop()
    thread.join(2 * web.PARTING + 5)
    assert not thread.is_alive()


def test_a_stopping_server_answers_what_a_proxy_sends_on_a_connection_that_it_has_kept(stoppable):
    serving, port, thread = stoppable
    with kept_open(port) as connection:
        serving.begin_stop()
        time.sleep(0.3)
        connection.request("POST", "/next", body=b"x")
        response = connection.getresponse()
        assert (response.status, response.read(), response.getheader("Connection")) == (
            200,
            b"POST /next b'x'",
            "close",
        )
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        thread.join(web.QUIET)
        assert not thread.is_alive()


@pytest.mark.slow
def test_a_stopping_server_ends_what_it_is_asked_and_closes_what_is_quiet(stoppable):
    serving, port, thread = stoppable
    with kept_open(port) as quiet, kept_open(port) as busy:
        busy.request("GET", "/slow")
        assert HELD_BY_REQUEST.begun.wait(PATIENCE)
        serving.begin_stop()
        assert quiet.sock.recv(1) == b""
        assert thread.is_alive()
        HELD_BY_REQUEST.go_on.set()
        assert busy.getresponse().read() == b"GET /slow b''"
        thread.join(PATIENCE)
        assert not thread.is_alive()
