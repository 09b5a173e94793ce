# SPDX-License-Identifier: Apache-2.0
"""Conversion of values of the model to and from strings on the message bus.

A message is data only: it is checked against the types of the interface, and cannot choose the code that runs.
"""

from __future__ import annotations

import base64
import inspect
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_type_hints

from pydantic import TypeAdapter, ValidationError

from blazar.model.base import errors
from blazar.model.base.errors import BlazarError, FaultPlace
from blazar.model.calendar.allocations import ResourceAllocations
from blazar.model.resources.resource import PropertyValues
from blazar.rpc.interface import NOUNS

COMPRESSED_FROM = 32 * 1024
"""Strings of more bytes are compressed; a long list repeats the same words."""

MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""Maximum bytes of a decompressed string: many times what the longest list needs, and less than a machine has."""

_PACKED = "z:"

CALLS: Mapping[str, Callable[..., Any]] = {
    f"{noun}.{name}": member
    for noun, protocol in NOUNS.items()
    for name, member in vars(protocol).items()
    if inspect.isfunction(member) and name[0] != "_"
}
"""The calls of a manager, by name; nothing else can be called."""

_ERRORS: Mapping[str, type[BlazarError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, BlazarError)
}

_PLACES: tuple[Literal["pointer", "parameter", "header"], ...] = ("pointer", "parameter", "header")
"""What an error may say of where it is in the request."""

_TEXTS = TypeAdapter(dict[str, str])


MAX_LIST_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a list in one message before compression: even if compression saves nothing, the message is smaller
than the 16 MiB that a message bus takes by default."""


class MalformedMessage(Exception):
    """A message does not match the interface."""


class UnknownCall(MalformedMessage):
    """A message has a call or an argument that the interface of this process does not have."""


def name_arguments(call: str, arguments: Sequence[Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call by name; TypeError if they do not match the interface."""
    given = _signature(call).bind(None, *arguments, **more).arguments
    return {name: value for name, value in given.items() if name != "self"}


@cache
def list_required(call: str) -> frozenset[str]:
    """Return the arguments without which a call cannot be made."""
    parameters = list(_signature(call).parameters.values())[1:]
    return frozenset(parameter.name for parameter in parameters if parameter.default is parameter.empty)


def encode_arguments(call: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of a call as strings."""
    hints = _hints(call)
    return {name: _pack(_adapter(hints[name]).dump_json(value)) for name, value in arguments.items()}


def decode_arguments(call: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a call; MalformedMessage if they do not match the interface."""
    if not isinstance(call, str) or call not in CALLS:
        raise UnknownCall(f"there is no call {call!r}")
    texts = _message(texts, f"the arguments of {call}")
    hints = _hints(call)
    unknown = texts.keys() - hints.keys() | texts.keys() & {"return"}
    if unknown or not texts.keys() >= list_required(call):
        raise UnknownCall(f"{call} takes {sorted(hints.keys() - {'return'})}, and was given {sorted(texts)}")
    return {name: _load(hints[name], text, f"{name} of {call}") for name, text in texts.items()}


def encode_answer(call: str, answer: object, *, after: str | None = None, skip: int = 0) -> dict[str, str]:
    """Return a call's answer as a message.

    A list begins after the item with the key ``after``, or at its start if that item is gone: the caller knows which
    items it has. For a caller of an earlier version, which sends no key, it begins after ``skip`` items. If the list is
    too long for one message, the message has its first part, and ``more``.
    """
    adapter = _adapter(_hints(call)["return"])
    if not isinstance(answer, tuple):
        return {"answer": _pack(adapter.dump_json(answer))}
    wanted = answer[skip:] if after is None else _following(answer, after)
    raw = adapter.dump_json(wanted)
    if len(raw) <= MAX_LIST_BYTES or len(wanted) < 2:
        return {"answer": _pack(raw)}
    fitting = _fitting([len(adapter.dump_json((item,))) for item in wanted])
    return {"answer": _pack(adapter.dump_json(wanted[:fitting])), "more": str(len(wanted) - fitting)}


def key_of(item: Any) -> str:
    """Return the key of an item of a list: it is unique in the list and never changes."""
    match item:
        case PropertyValues():
            return item.property.name
        case ResourceAllocations():
            return str(item.resource.id)
        case _:
            return str(item.id)


def _following(items: tuple[Any, ...], after: str) -> tuple[Any, ...]:
    return items[next((place for place, item in enumerate(items, 1) if key_of(item) == after), 0) :]


def _fitting(sizes: list[int]) -> int:
    """Return how many of these fit into one message, and 1 at least."""
    total = 0
    for number, size in enumerate(sizes):
        total += size
        if total > MAX_LIST_BYTES:
            return max(1, number)
    return len(sizes)


def is_cut(message: Mapping[str, str]) -> bool:
    """Return whether the list continues after this message."""
    return isinstance(message, Mapping) and "more" in message


def encode_error(error: BlazarError) -> dict[str, str]:
    """Return the error of a call as a message, with the name of the nearest class that every process has."""
    known = next(kind for kind in type(error).__mro__ if _ERRORS.get(kind.__name__) is kind)
    given = {
        "code": error.code,
        "public": error.public,
        "data": None if error.data is None else _pack(json.dumps(error.data).encode()),
        "retry_after": None if error.retry_after is None else str(error.retry_after),
    }
    if error.at is not None:
        given[error.at.kind] = error.at.name
    told = {name: text for name, text in given.items() if text is not None}
    return {"error": known.__name__, "message": error.message, **told}


def decode_answer(call: str, message: Mapping[str, str]) -> Any:
    """Return a call's answer, or raise its error; MalformedMessage if it is neither."""
    message = _message(message, f"the answer to {call}")
    if "error" in message:
        raise _error_of(message, call)
    if "answer" not in message:
        raise MalformedMessage(f"the answer to {call} has no content")
    return _load(_hints(call)["return"], message["answer"], f"answer to {call}")


def read_outcome(message: object) -> Literal["ok", "refused", "error"]:
    """Return whether an answer is one, a refusal of the request, or an error of the service."""
    name = message.get("error") if isinstance(message, Mapping) else None
    if name is None:
        return "ok"
    return "error" if _ERRORS.get(name, BlazarError).status >= 500 else "refused"


def _error_of(message: Mapping[str, str], call: str) -> BlazarError:
    data = _load(dict[str, Any], message["data"], f"the data of an error of {call}") if "data" in message else None
    kind = _ERRORS.get(message["error"], BlazarError)
    error = kind(
        message.get("message", "no reason given"),
        code=message.get("code"),
        at=next((FaultPlace(message[place], place) for place in _PLACES if place in message), None),
        data=data,
        public=message.get("public"),
    )
    if (seconds := message.get("retry_after", "")).isascii() and seconds.isdigit():
        error.retry_after = int(seconds)
    return error


def _load(hint: Any, text: str, what: str) -> Any:
    try:
        return _adapter(hint).validate_json(_unpack(text))
    except ValidationError as error:
        raise MalformedMessage(f"{what}: {error.errors(include_url=False, include_input=False)[:3]}") from None
    except (ValueError, zlib.error) as error:
        raise MalformedMessage(f"{what}: {error}") from None


def _message(given: object, what: str) -> dict[str, str]:
    try:
        return _TEXTS.validate_python(given, strict=True)
    except ValidationError:
        raise MalformedMessage(f"{what} should be strings by name") from None


@cache
def _signature(call: str) -> inspect.Signature:
    return inspect.signature(CALLS[call])


@cache
def _hints(call: str) -> Mapping[str, Any]:
    return get_type_hints(CALLS[call])


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def _pack(raw: bytes) -> str:
    if len(raw) <= COMPRESSED_FROM:
        return raw.decode()
    return _PACKED + base64.b64encode(zlib.compress(raw, 1)).decode()


def _unpack(text: str) -> bytes:
    if not text.startswith(_PACKED):
        return text.encode()
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(base64.b64decode(text.removeprefix(_PACKED), validate=True), MAX_UNPACKED_BYTES)
    if not unpacker.eof:
        raise ValueError("it is cut off, or too long when decompressed")
    return raw
