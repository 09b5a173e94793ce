# SPDX-License-Identifier: Apache-2.0
"""Finds words that the glossary has put out of use: ``python -m tests.house.words``, as a part of ``make lint``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "contributing" / "glossary.md"
KEEPS_OLD_NAMES = (
    # The page of words itself, and records of what was.
    "docs/contributing/glossary.md",
    "docs/better-than-before.md",
)


def out_of_use(page: str) -> Mapping[str, str]:
    """Return the words of the table below "Out" on the glossary page, and what to write instead."""
    table = page.partition("\n## Out\n")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return {word: instead for word, instead in rows if word not in ("out", "---")}


def findings(texts: Iterable[tuple[str, str]], words: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each line of these (path, text) that has such a word, also as a part of a name."""
    # Underscores separate the words of a name as blanks do those of a sentence.
    patterns = {
        word: re.compile(rf"(?<![a-z]){re.escape(word).replace(chr(92) + ' ', '[ _]')}s?(?![a-z])", re.IGNORECASE)
        for word in words
    }
    for path, text in texts:
        for number, line in enumerate(text.splitlines(), 1):
            for word, pattern in patterns.items():
                if pattern.search(line):
                    yield f"{path}:{number}: {word!r}; write: {words[word]}"


def main() -> int:
    """Print the findings in the files of the repository; return 1 if there are any."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [path for path in listed if path.endswith((".py", ".md")) and not path.startswith(KEEPS_OLD_NAMES)]
    texts = (
        (path, (ROOT / path).read_text("utf-8"))
        for path in paths
        if path not in ("tests/house/test_words.py", "tests/house/words.py")
    )
    found = list(findings(texts, out_of_use(GLOSSARY.read_text("utf-8"))))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
