# SPDX-License-Identifier: Apache-2.0
"""What is secret is found in a sentence in each form in which the sentence may have it, and nothing else is."""

from __future__ import annotations

import json

import pytest

from blazar.model.leases.secrets import HIDDEN, SECRET, remove_secrets, secret_texts
from blazar.resources.contract.parameters import quote

ODD = [
    'a "quoted" word',
    "it's",
    "two\nlines",
    "back\\slash",
    "é漢字",
    "tab\there",
    "right\u202eleft",
    " ".join(map(str, range(900))),
]


@pytest.mark.parametrize("part", ODD, ids=lambda part: repr(part)[:12])
@pytest.mark.parametrize("say", [str, json.dumps, quote, repr, lambda text: json.dumps(text, ensure_ascii=False)])
def test_a_secret_is_found_however_it_is_quoted(part, say):
    text = remove_secrets(f"there is no flavor {say(part)}; give another one", {part})
    assert text.startswith("there is no flavor ")
    assert text.endswith("; give another one")
    left = text.removeprefix("there is no flavor ").removesuffix("; give another one")
    assert left.strip("\"'") in (HIDDEN, f"{HIDDEN}...")


@pytest.mark.parametrize("part", ["a", "1", "on"])
def test_a_few_letters_are_no_part_of_a_word(part):
    said = "a volume cannot be made: its size is 11 GiB, on a host of region-one"
    left = remove_secrets(f"{said}; {part}", {part})
    assert left.endswith(f"; {HIDDEN}")
    assert "volume cannot be made: its size is 11 GiB" in left


def test_keys_of_what_is_secret_are_secret_but_not_those_that_are_shown():
    kept = {"parameters": {"word": HIDDEN}, SECRET: {"parameters": {"word": {"the key": ["the value"]}}}}
    assert secret_texts(kept) == {"the key", "the value"}
