# SPDX-License-Identifier: Apache-2.0
"""The files of the web pages as they were built, read once at the start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

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


def built() -> Mapping[str, PageFile] | None:
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
