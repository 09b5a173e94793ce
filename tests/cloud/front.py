# SPDX-License-Identifier: Apache-2.0
"""One address for the services of a cloud, each below a path, as DevStack has them: /compute, /reservation."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import requests

OF_ONE_HOP = {"connection", "proxy-connection", "keep-alive", "transfer-encoding", "content-encoding", "content-length"}


class Front:
    """An HTTP proxy that answers for every address, and asks the service that the first part of the path names."""

    def __init__(self, services: Mapping[str, str]) -> None:
        self._services = services
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                front.pass_on(self)

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the services keep logs."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        asked = urlsplit(request.path)
        _, name, rest = asked.path.split("/", 2)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in OF_ONE_HOP | {"host"}}
        answer = requests.request(
            request.command,
            f"{self._services[name]}/{rest}?{asked.query}",
            headers=headers,
            data=body,
            timeout=60,
            allow_redirects=False,
        )
        request.send_response(answer.status_code)
        for key, value in answer.headers.items():
            if key.lower() not in OF_ONE_HOP | {"server", "date"}:
                request.send_header(key, value)
        if answer.status_code != 204:
            request.send_header("Content-Length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
