# SPDX-License-Identifier: Apache-2.0
"""What users give that nobody may see: kept apart from what is shown, by every resource type in the same way.

A type says what is secret by one function, ``masked``: it returns parameters as anybody may see them. What they had
besides is kept under one key, which is never shown or sent, and is null as soon as nobody needs it any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os.path import commonprefix
from typing import Any

from blazar.model.base.errors import BlazarError

Json = Mapping[str, Any]

SECRET = "secret"
"""The key of kept parameters under which those are that nobody may see; null once they are forgotten."""

UNSHOWN = frozenset({SECRET, "source_flavor", "gpu_meaning"})
"""Keys of kept parameters that are not shown; but for the secrets they are of no use to anybody."""

HIDDEN = "******"
"""What is shown in place of a part that is secret, as Heat does."""

BEGINNING = 16
"""Characters by which a longer secret is found in a text that may have been cut off in its midst."""

SHORTEST = 4
"""Characters of a secret that is found within a word: a letter or a small number is in many."""


def split_off_secrets(given: Json, masked: Json) -> tuple[Json, Json]:
    """Return parameters as they may be shown, and those of them that are secret, as they were given."""
    different = (key for key in given if key not in masked or masked[key] != given[key])
    return masked, {key: given[key] for key in different if given[key] is not None}


def seal(shown: Json, secret: Json) -> Json:
    """Return parameters as they are kept."""
    return {**shown, SECRET: dict(secret)} if secret else shown


def unseal(kept: Json) -> Json:
    """Return parameters as they were given; what was forgotten is left as it is shown."""
    secret = kept.get(SECRET)
    return {**{key: value for key, value in kept.items() if key != SECRET}, **(secret or {})}


def has_forgotten(kept: Json) -> bool:
    """Return whether there were secrets, which nobody knows any more."""
    return SECRET in kept and kept[SECRET] is None


def mask_secrets(kept: Json) -> Json:
    """Return kept parameters without what nobody may see."""
    return {key: value for key, value in kept.items() if key not in UNSHOWN}


def forget_secrets(kept: Json) -> Json:
    """Return kept parameters with null in place of what users have given as a secret."""
    return {**kept, SECRET: None} if kept.get(SECRET) is not None else kept


def secret_texts(kept: Json) -> frozenset[str]:
    """Return the texts that are secret of kept parameters: those that are not shown as well."""
    secret = kept.get(SECRET) or {}
    return frozenset(_list_texts(list(secret.values()))) - frozenset(_list_texts(mask_secrets(kept)))


def remove_secrets(text: str, parts: Iterable[str]) -> str:
    """Return a sentence of a cloud without secret texts.

    They are found in one line and quoted as well, and long ones by their beginning: clients bring errors in that form.
    """
    found = {form for part in parts for form in _list_encodings(part) if form}
    for part in sorted(found, key=len, reverse=True):
        if len(part) < SHORTEST:
            text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", HIDDEN, text)
            continue
        before, *after = text.split(part[:BEGINNING])
        text = before + "".join(HIDDEN + _remove_common_start(part[BEGINNING:], rest) for rest in after)
    return text


@contextmanager
def hide_secrets(parts: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Mask secret texts in what an error that ends a block says; where they come from is left out then."""
    try:
        yield
    except BlazarError as error:
        secret = frozenset(parts())
        message = remove_secrets(error.message, secret)
        if message != error.message:
            error.message, error.args = message, (message,)
            error.__cause__, error.__suppress_context__ = None, True
        if error.public is not None:
            error.public = remove_secrets(error.public, secret)
        raise


def _remove_common_start(secret: str, text: str) -> str:
    """Return a text without what it has at its beginning of a secret."""
    return text[len(commonprefix([secret, text])) :]


def _list_encodings(part: str) -> Iterator[str]:
    """Yield the forms in which a sentence may have a text: as it is, in one line, as JSON, and as Python shows it."""
    yield part
    yield " ".join(part.split())
    yield json.dumps(part)[1:-1]
    yield json.dumps(part, ensure_ascii=False)[1:-1]
    yield repr(part)[1:-1]


def _list_texts(value: object) -> Iterator[str]:
    """Yield the texts in a value; the keys of an object are among them."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        for part in value:
            yield from _list_texts(part)
    elif isinstance(value, str):
        yield value
