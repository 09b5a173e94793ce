# SPDX-License-Identifier: Apache-2.0
"""Read the files of the web pages, serve them at ``/ui/``, and lead browsers there."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import urlsplit

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.wrappers import Request, Response

from blazar.api.http.access import Wsgi
from blazar.api.http.answers import PAGES, prefers
from blazar.api.web.answers import SECURITY, prefix
from blazar.api.web.origin import origin_of
from blazar.model.base.values import dataclass

INDEX = "index.html"
MANIFEST = "manifest.json"
_PACKED = ".gz"

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "map": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file: its bytes, the same compressed by gzip if that was built, and how caches may keep it."""

    content: bytes
    packed: bytes | None
    content_type: str
    is_immutable: bool
    """Its name has a hash of its content, so what a cache has under this name stays right."""

    @property
    def etag(self) -> str:
        """A hash of the content, without quotes."""
        return hashlib.sha256(self.content).hexdigest()[:32]


def read_built() -> Mapping[str, PageFile] | None:
    """Return the files of this installation by their path below ``/ui/``; None if the pages were never built."""
    return read(resources.files(__package__).joinpath("dist"))


def read(folder: Traversable) -> Mapping[str, PageFile] | None:
    """Return the files of a folder by their path in it; None if it has no index.html."""
    if not folder.joinpath(INDEX).is_file():
        return None
    contents = dict(_contents(folder))
    hashed = json.loads(contents.get(MANIFEST, b"{}")).get("files", {}).keys() - {INDEX}
    return {
        name: PageFile(content, contents.get(name + _PACKED), _type(name), name in hashed)
        for name, content in contents.items()
        if not name.endswith(_PACKED)
    }


def _contents(folder: Traversable, path: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _contents(entry, f"{path}{entry.name}/")
        else:
            yield path + entry.name, entry.read_bytes()


def _type(name: str) -> str:
    return _TYPES.get(name.rpartition(".")[2], "application/octet-stream")


ROOT = "/ui/"
SESSION = "/ui/session"
_FOR_EVER = "public, max-age=31536000, immutable"
_RELATIVE = b'="./'
"""How index.html refers to its files; the server makes absolute paths of it, so that pages at any depth work."""


class Pages:
    """Serves the files at ``/ui/``; everything else, and ``/ui/session``, goes to the application behind it.

    A path that is no file and whose last part has no dot belongs to the pages' own navigation and gets index.html.
    """

    def __init__(self, app: Wsgi, files: Mapping[str, PageFile], *, public_url: str | None = None) -> None:
        """``public_url`` is where browsers reach the service; None to believe requests."""
        self._app = app
        self._files = files
        self._public_url = public_url
        self._index = lru_cache(maxsize=16)(self._index_below)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        path = environ.get("PATH_INFO", "")
        if path == "/":
            answer = self._lead(Request(environ))
        elif path == "/ui":
            answer = _redirect(self._address(environ), 308)
        elif path.startswith(ROOT) and path != SESSION and not path.startswith(f"{SESSION}/"):
            answer = self._serve(Request(environ), path.removeprefix(ROOT))
        else:
            answer = None
            environ[PAGES] = self._address(environ)
        app: Wsgi = self._app if answer is None else answer
        return app(environ, start_response)

    def _lead(self, request: Request) -> Response | None:
        """Return a redirect to the pages for a browser, None for a program, which gets the version document."""
        if request.method not in ("GET", "HEAD") or not prefers(request, "text/html"):
            return None
        return _redirect(self._address(request.environ), 302)

    def _address(self, environ: dict[str, Any]) -> str:
        """Return the address of the pages: without a public URL, a path on the host that was asked."""
        if self._public_url is None:
            return prefix(environ) + ROOT
        return origin_of(self._public_url) + prefix({"SCRIPT_NAME": urlsplit(self._public_url).path}) + ROOT

    def _serve(self, request: Request, name: str) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _plain(MethodNotAllowed(["GET", "HEAD"]).get_response(request.environ))
        if name == INDEX or (name not in self._files and "." not in name.rpartition("/")[2]):
            return _answer(request, self._index(urlsplit(self._address(request.environ)).path))
        if (file := self._files.get(name)) is None:
            return _plain(NotFound("The web pages have no such file.").get_response(request.environ))
        return _answer(request, file)

    def _index_below(self, root: str) -> PageFile:
        """Return index.html for pages at this path."""
        file = self._files[INDEX]
        content = file.content.replace(_RELATIVE, f'="{html.escape(root)}'.encode())
        return PageFile(content, gzip.compress(content, mtime=0), file.content_type, False)


def _answer(request: Request, file: PageFile) -> Response:
    packed = file.packed if file.packed is not None and request.accept_encodings.quality("gzip") > 0 else None
    answer = Response(file.content if packed is None else packed)
    # Set as it is: the library would append a charset to some types.
    answer.headers["Content-Type"] = file.content_type
    answer.headers["Cache-Control"] = _FOR_EVER if file.is_immutable else "no-cache"
    if file.packed is not None:
        answer.headers["Vary"] = "Accept-Encoding"
    if packed is not None:
        answer.headers["Content-Encoding"] = "gzip"
    # A strong tag belongs to one coding.
    answer.set_etag(file.etag if packed is None else f"{file.etag}-gzip")
    answer.headers.update(SECURITY)
    return answer.make_conditional(request)


def _plain(answer: Response) -> Response:
    answer.headers.update(SECURITY)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _redirect(location: str, status: int) -> Response:
    return _plain(Response(status=status, headers={"Location": location}))
