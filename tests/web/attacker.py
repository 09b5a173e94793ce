# SPDX-License-Identifier: Apache-2.0
"""Another web program that a user has open beside our pages, and what it tries with the user's session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Frame, Page
from werkzeug.serving import make_server

_REQUESTS = """async ([base, lease]) => {
    const seen = [];
    const tries = [
        ["GET", "/v1/leases", {}], ["GET", "/ui/session", {}],
        ["POST", "/v1/leases", {headers: {"Content-Type": "text/plain"}, body: lease}],
        ["POST", "/ui/session", {headers: {"Content-Type": "text/plain"}, body: "{}"}],
    ];
    for (const [method, path, more] of tries)
        for (const mode of ["no-cors", "cors"])
            try {
                const answer = await fetch(base + path, {method, mode, credentials: "include", ...more});
                seen.push([path, answer.type, (await answer.text()).length]);
            } catch (error) { seen.push([path, "refused", 0]); }
    return seen;
}"""
_FORM = """([base, name]) => {
    const form = document.createElement("form");
    Object.assign(form, {method: "POST", action: base + "/v1/leases", enctype: "text/plain"});
    const input = document.createElement("input");
    input.name = name; input.value = '"}';
    form.append(input); document.body.append(form); form.submit();
}"""
_FRAME = """url => new Promise(done => { const frame = document.createElement("iframe");
    frame.onload = frame.onerror = () => done(true); frame.src = url; document.body.append(frame); })"""


def served(app: Any) -> tuple[Any, str]:
    """Serve an application from a thread; return the server and its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


@contextmanager
def other_program() -> Iterator[str]:
    """Another web program of the same machine; yield its address."""

    def page(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<!doctype html><title>another program</title><body></body>"]

    server, url = served(page)
    try:
        yield url
    finally:
        server.shutdown()


def read_by(attacker: Page, url: str) -> set[str]:
    """Let a foreign page send requests to the service at `url`; return the paths whose answers it could read."""
    seen = attacker.evaluate(_REQUESTS, [url, '{"name": "forged"}'])
    assert seen
    return {path for path, kind, length in seen if length > 0 or kind not in ("opaque", "refused")}


def post_a_form(attacker: Page, url: str) -> None:
    """Let a foreign page post a form that reads as a lease."""
    with attacker.expect_navigation():
        attacker.evaluate(_FORM, [url, '{"name": "'])


def framed(attacker: Page, address: str) -> str:
    """Let a foreign page frame an address; return what is in the frame."""

    def in_the_frame(frame: Frame) -> bool:
        return frame.parent_frame is not None and frame.url not in ("", "about:blank")

    with attacker.expect_event("framenavigated", in_the_frame) as navigated:
        attacker.evaluate(_FRAME, address)
    return str(navigated.value.url)
