# SPDX-License-Identifier: Apache-2.0
"""No file of the web pages imports one that imports it, neither at once nor in a circle, values or types alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "web" / "src"
IMPORTED = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']+)["']""")
"""What a file names by a path of its own: `import … from`, `export … from`, `import()` and `typeof import()`."""


def imports(folder: Path) -> Mapping[str, set[str]]:
    """Return the files of a folder, and which of them each one imports."""
    files = [path for path in folder.rglob("*") if path.suffix in (".ts", ".tsx")]
    found = {
        path: {(path.parent / named).resolve() for named in IMPORTED.findall(path.read_text(encoding="utf-8"))}
        for path in files
    }
    known = {path.resolve(): str(path.relative_to(folder)) for path in files}
    return {known[path.resolve()]: {known[one] for one in named if one in known} for path, named in found.items()}


def circle_in(imported: Mapping[str, set[str]]) -> list[str]:
    """Return the files of a circle, the first one also as the last; none if there is no circle."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_there_is_no_circle():
    found = imports(SOURCES)
    assert "pages/search/find.tsx" in found["pages.ts"]
    assert "pages/further.ts" in found["pages.ts"]
    assert circle_in(found) == []


@pytest.mark.parametrize(
    "back",
    [
        'import { a } from "../a.ts";',
        'import type { A } from "../a.ts";',
        'export * from "../a.ts"',
        'import("../a.ts")',
    ],
)
def test_a_circle_is_found_however_a_file_imports(tmp_path, back):
    (tmp_path / "below").mkdir()
    (tmp_path / "a.ts").write_text('import {\n  b,\n} from "./below/b.tsx";\n')
    (tmp_path / "below" / "b.tsx").write_text(f"{back}\n")
    assert set(circle_in(imports(tmp_path))) == {"a.ts", "below/b.tsx"}
