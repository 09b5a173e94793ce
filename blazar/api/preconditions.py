# SPDX-License-Identifier: Apache-2.0
"""``If-Match``: a change of an object only if it is still as the caller has seen it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from flask import request

from blazar.api.routes import in_header
from blazar.model.errors import InvalidInput, PreconditionFailed

_HEADER = "If-Match"
IF_MATCH = in_header(_HEADER, "tags of earlier answers: a 412 if the object has changed since")
_TAG = re.compile(r'(W/)?"([^"]*)"')
LONGEST_TAGS = 8 * 1024
"""Characters of tags in a header; a tag has some dozens."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The strong tags of one object: each is a revision and an ``ending``, which stays the same.

    With ``parted`` an answer also shows what changes without a new revision: a tag may have a part for it, which
    tells answers apart and is no condition of a change.
    """

    ending: str
    parted: bool = False

    def of(self, revision: int, shown: str = "") -> str:
        """Return the tag of a revision; ``shown`` is what else is in the answer."""
        part = f".{hashlib.sha256(shown.encode()).hexdigest()[:12]}" if shown else ""
        return f'"{revision}{part}{self.ending}"'

    def wanted(self) -> tuple[int, ...] | None:
        """Return the revisions that ``If-Match`` allows; None: any. InvalidInput if it is too long."""
        sent = request.headers.get(_HEADER)
        if sent is None or sent.strip() == "*":
            return None
        if len(sent) > LONGEST_TAGS:
            raise InvalidInput(
                f"{_HEADER} has {len(sent)} characters; send at most {LONGEST_TAGS}, the ETag of one answer",
                header=_HEADER,
            )
        part = r"(?:\.[0-9a-f]{12})?" if self.parted else ""
        ours = re.compile(rf"(\d{{1,18}}){part}{re.escape(self.ending)}")
        matches = (ours.fullmatch(tag) for weak, tag in _TAG.findall(sent) if not weak)
        return tuple(int(match[1]) for match in matches if match is not None)

    def check(self, revision: int) -> None:
        """Raise PreconditionFailed unless ``If-Match`` allows this revision, of an object that is not changed."""
        wanted = self.wanted()
        if wanted is not None and revision not in wanted:
            raise self.refused(PreconditionFailed("it has changed; read it, and send its present tag"), revision)

    def refused(self, error: PreconditionFailed, revision: int = 0) -> PreconditionFailed:
        """Return the error for tags that do not match, with the present one; the error knows the revision best."""
        present = int((error.data or {}).get("revision", revision))
        message = error.message
        if self.wanted() == ():
            sent = request.headers.get(_HEADER, "")
            what = "only a weak tag, which never matches" if "W/" in sent else "no tag that an answer had in its ETag"
            message = f"{_HEADER} has {what}; read what is to be changed again, and send the ETag of that answer"
        return PreconditionFailed(message, header=_HEADER, data={"etag": self.of(present), "revision": present})
