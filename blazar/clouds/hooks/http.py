# SPDX-License-Identifier: Apache-2.0
"""Hooks over HTTP. A receiver is trusted as little as possible: ``outgoing.posting`` makes the calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from oslo_config import cfg

from blazar.clouds.hooks.options import SECTION
from blazar.clouds.outgoing import signing
from blazar.clouds.outgoing.addresses import Allowed
from blazar.clouds.outgoing.posting import FAILURES, NotAllowed, Poster, describe_error
from blazar.clouds.ports.hooks import HookAction, HookAnswer, HookCall, HookResult
from blazar.context import check_change, current
from blazar.model.base.clock import Clock, SystemClock, zulu
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.base.json_text import Json
from blazar.observe.cloud_calls import count_cloud_call

HEALTH_SECONDS = 5.0
"""The time limit for a question about health: many may have to be asked in a minute."""


class HttpHooks:
    """Calls hooks over HTTP."""

    def __init__(
        self,
        masters: Sequence[str],
        allowed: Allowed,
        *,
        timeout: float = 15.0,
        cafile: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        signing.check_master_lengths(masters)
        self._masters = tuple(masters)
        self._allowed = allowed
        self._poster = Poster(allowed, cafile)
        self._timeout = timeout
        self._now = now

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, clock: Clock | None = None) -> HttpHooks:
        """Return the adapter as configured; InvalidInput names the option.

        Messages are dated by the clock: receivers refuse those of a machine whose own is off.
        """
        dated = clock or SystemClock()
        options = conf[SECTION]
        allowed = Allowed.of(options.allowed_hosts, options.allowed_networks, http=options.allow_http)
        return cls(
            options.master_secrets,
            allowed,
            timeout=options.timeout,
            cafile=conf.cafile,
            now=lambda: dated.now().timestamp(),
        )

    def check_hook(self, url: str) -> None:
        """Raise InvalidInput if calls to this URL are not allowed, or could not be signed."""
        if not self._masters:
            raise InvalidInput(
                "hook_url: calls of hooks are signed, and [generic] master_secrets is not set in blazar.conf"
            )
        self._allowed.check_url(url)

    def call_hook(self, call: HookCall) -> HookAnswer:
        """Hand over, take back, or announce the end."""
        return self._post(call, min(self._timeout, check_change() or self._timeout))

    def ask_hook(self, call: HookCall) -> HookAnswer:
        """Ask for the health of things with one hook."""
        left = current().remaining()
        return self._post(call, min(HEALTH_SECONDS, self._timeout if left is None else left))

    def _post(self, call: HookCall, seconds: float) -> HookAnswer:
        try:
            self.check_hook(call.url)
            parts = self._allowed.check_url(call.url)
        except InvalidInput as error:
            # The operator has changed the options since it was registered.
            raise CloudRefused(error.message) from error
        body = json.dumps({"type": str(call.action), "timestamp": zulu(call.at), "data": call.data}).encode()
        secrets = [signing.derive_secret(master, thing) for master in self._masters for thing in call.things]
        signed = signing.sign(secrets, message_id=call.message_id, timestamp=int(self._now()), body=body)
        headers = {"Content-Type": "application/json", "Accept": "application/json", **signed}
        with count_cloud_call("hooks"):
            try:
                reply = self._poster.post(parts, headers, body, seconds)
            except NotAllowed as error:
                raise CloudRefused(f"its hook is not called: {error}") from error
            except FAILURES as error:
                # Without the library's own message, which may have the URL.
                raise CloudUnavailable(f"its hook {describe_error(error)}") from None
            now = datetime.fromtimestamp(self._now(), UTC)
            return read_answer(call.action, reply.status, reply.retry_after, reply.body, now)


LONGEST_REASON = 200

PASSING = frozenset({408, 425, 429})
"""Statuses below 500 that may change on a retry."""

SOONEST, USUAL, LATEST = timedelta(seconds=1), timedelta(seconds=10), timedelta(hours=1)
"""When a hook that answers 202 is asked again: bounds of its ``Retry-After``, and the time without one."""

DEEPEST = 20
LARGEST = 2**53


MAY_BE_UNUSABLE = frozenset({HookAction.START, HookAction.HEALTH})
"""What a hook may answer 409 to because of the state of its resource."""


def read_answer(
    action: HookAction, status: int, retry_after: str | None, body: bytes | None, now: datetime
) -> HookAnswer:
    """Return what an answer means; ``body`` None if it is too long, or did not arrive whole. CloudUnavailable."""
    if status == 202:
        return HookAnswer(HookResult.NOT_YET, "it is not ready yet (202)", after=read_retry_after(retry_after, now))
    if 200 <= status < 300:
        return HookAnswer(HookResult.DONE, content=None if status == 204 else read_content(body))
    said = _read_refusal(body)
    if status >= 500 or status in PASSING:
        raise CloudUnavailable(f"its hook answered {status}{said}")
    if 300 <= status < 400:
        return HookAnswer(
            HookResult.REFUSED, f"its hook answered {status}, a redirect, which is never followed; correct the URL"
        )
    if status == 409 and action in MAY_BE_UNUSABLE:
        return HookAnswer(HookResult.UNUSABLE, f"its hook says that it cannot be used at present (409){said}")
    return HookAnswer(HookResult.REFUSED, f"its hook refuses the call ({status}){said}")


def read_retry_after(retry_after: str | None, now: datetime) -> timedelta:
    """Return the time of a ``Retry-After``, seconds or a date, within the bounds."""
    wanted = USUAL
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        wanted = timedelta(seconds=min(int(text[:9]), LATEST.total_seconds()))
    elif text:
        try:
            date = parsedate_to_datetime(text)
            wanted = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
        except (TypeError, ValueError, OverflowError):
            wanted = USUAL
    return min(LATEST, max(SOONEST, wanted))


def read_content(body: bytes | None) -> Json | None:
    """Return the JSON object of an answer if any database can store it and any client read it; else None."""
    try:
        found = json.loads(body or b"", parse_constant=_refuse_constant)
        if not isinstance(found, dict) or not found or not _is_plain(found, 0):
            return None
        # Half a surrogate pair is no text.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _is_plain(value: object, depth: int) -> bool:
    """Return whether a value has only moderate numbers and depth, and texts without NUL, which PostgreSQL refuses."""
    match value:
        case str():
            return "\0" not in value
        case bool() | None:
            return True
        case int() | float():
            return -LARGEST <= value <= LARGEST
        case dict():
            return depth < DEEPEST and all("\0" not in k and _is_plain(v, depth + 1) for k, v in value.items())
        case list():
            return depth < DEEPEST and all(_is_plain(part, depth + 1) for part in value)
    return False


def _read_refusal(body: bytes | None) -> str:
    """Return what a refusal says, as the end of a sentence: one short printable line."""
    content = read_content(body)
    said = next(
        (t for key in ("message", "error", "detail", "reason") if isinstance(t := (content or {}).get(key), str)), ""
    )
    line = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return f": {line[:LONGEST_REASON]}" if line else ""
