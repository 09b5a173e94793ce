# SPDX-License-Identifier: Apache-2.0
"""The check of words finds those of the glossary's table, in sentences and in names."""

from __future__ import annotations

import pytest

from tests.house.words import GLOSSARY, findings, out_of_use

WORDS = out_of_use(GLOSSARY.read_text("utf-8"))


def test_the_table_of_the_glossary_is_what_is_checked():
    assert WORDS["can not"] == "cannot"
    assert {"anew", "whoever", "memo"} <= WORDS.keys()


@pytest.mark.parametrize("line", ["It can not be.", "def test_it_can_not_be():", "MEMO = 1", "a memo_of"])
def test_a_word_that_is_out_is_found(line):
    (found,) = findings([("a.py", "fine\n" + line)], WORDS)
    assert found.startswith("a.py:2: ")
    assert "write: " in found


@pytest.mark.parametrize("line", ["It cannot be.", "memory_mb", "memorable", "renewed", "significant not least"])
def test_other_words_are_not(line):
    assert list(findings([("a.py", line)], WORDS)) == []
