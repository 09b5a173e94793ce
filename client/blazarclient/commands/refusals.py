# SPDX-License-Identifier: Apache-2.0
"""Refusals in the words of options: the service names a place in the request, which the user has not seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from blazarclient.exception import BlazarClientException, Fault

Places = Mapping[str, str]
"""By pointers into the request: what said that; nothing where the sentence is enough."""

_LIST = "/reservations/"
_HEAD = re.compile(r"(reservations|reminders)\[\d+\](\.|:? )")
"""How a sentence of the service begins that names a reservation, or a reminder, by its number, from 0 on."""

_NUMBERS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def of_reservations(options: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return the places of reservations that came from options, or a file, one after another.

    ``options``: what each is called, and how many came from it.
    """
    words = [
        f"{option}, {_ordinal(number)}" if count > 1 else option for option, count in options for number in range(count)
    ]
    return {f"{_LIST}{number}": each for number, each in enumerate(words)}


def of_reminders(count: int) -> dict[str, str]:
    """Return the places of so many reminders."""
    return {
        f"/reminders/{number}": f"--reminder, {_ordinal(number)}" if count > 1 else "--reminder"
        for number in range(count)
    }


def _ordinal(number: int) -> str:
    return f"the {_NUMBERS[number]}" if number < len(_NUMBERS) else f"number {number + 1}"


@contextmanager
def in_words_of(places: Places) -> Iterator[None]:
    """Have a refusal within say which option it is about, instead of where that is in the request."""
    try:
        yield
    except BlazarClientException as error:
        # Another message is not made of what the service found wrong, or is about more than that.
        if error.faults and str(error) == " ".join(map(str, error.faults)):
            error.args = (" ".join(_told(fault, places) for fault in error.faults),)
        raise


def _told(fault: Fault, places: Places) -> str:
    pointer = fault.pointer or ""
    found = next((place for place in places if pointer == place or pointer.startswith(f"{place}/")), None)
    if found is None:
        return str(fault)
    if not places[found]:
        return fault.detail
    field = pointer.strip("/").replace("/", ".")
    if "." in field and not field.startswith("reservations.") and fault.detail.startswith(f"{field} "):
        # An option of one word for what the service calls by two.
        return f"{places[found]}{fault.detail.removeprefix(field)}"
    detail = _HEAD.sub("", fault.detail, count=1) if _HEAD.match(fault.detail) else fault.detail
    among_others = found.startswith(_LIST) and sum(place.startswith(_LIST) for place in places) > 1
    key = next((part for part in pointer[len(found) :].split("/") if part and not part.isdigit()), None)
    # An id is what the option itself gives.
    named = key in (None, "id", "lease_id", "reservation_id") or re.search(rf"(?<!\w){re.escape(key)}(?!\w)", detail)
    if named and detail == fault.detail and not among_others and str(fault) == fault.detail:
        return detail
    return f"{places[found]}: {detail}" if named else f"{places[found]}, {key}: {detail}"
