# SPDX-License-Identifier: Apache-2.0
"""The committed pages are what the sources give, and nothing that the browser's policy forbids is in the sources."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
BUILT = ROOT / "blazar" / "api" / "web"
DIST = BUILT / "dist"
MANIFEST: dict[str, str] = json.loads((DIST / "manifest.json").read_text(encoding="utf-8"))["files"]


def test_every_built_file_is_in_the_manifest_with_its_hash():
    names = {path.name for path in DIST.iterdir()} - {"manifest.json"}
    assert names == set(MANIFEST) | {f"{name}.gz" for name in MANIFEST}
    for name, expected in MANIFEST.items():
        content = (DIST / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == expected, name
        assert gzip.decompress((DIST / f"{name}.gz").read_bytes()) == content, name


def test_the_first_page_names_only_built_files():
    page = (DIST / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:src|href)="\./([^"]+)"', page))
    assert named
    assert named <= set(MANIFEST)


def test_the_first_page_is_small():
    """What is fetched before anything is seen; the rest of the pages comes when it is looked at."""
    page = (DIST / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:src|href)="\./([^"]+\.(?:js|css))"', page))
    assert sum((DIST / f"{name}.gz").stat().st_size for name in named) < 84_200


def test_the_names_of_built_files_change_with_their_content():
    assert [name for name in MANIFEST if name != "index.html" and not re.search(r"-[0-9A-Z]{8}\.", name)] == []


def test_no_source_holds_what_the_policy_of_the_pages_forbids():
    sources = [path for path in (WEB / "src").rglob("*") if path.suffix in (".ts", ".tsx", ".css", ".html")]
    assert len(sources) > 20
    forbidden = re.compile(
        r"""style=["']|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|https?://(?!www\.w3\.org/)"""
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if forbidden.search(line)
    ]
    assert found == []


def test_every_source_says_under_which_licence_it_is():
    sources = [path for folder in ("src", "tools", "dev", "test") for path in (WEB / folder).rglob("*")]
    sources = [path for path in sources if path.suffix in (".ts", ".tsx", ".mjs", ".css") and path.name != "files.d.ts"]
    heads = {path: path.read_text(encoding="utf-8")[:100] for path in sources}
    assert [path for path, head in heads.items() if "SPDX-License-Identifier: Apache-2.0" not in head] == []


def test_the_licences_of_packages_inside_are_kept():
    texts = {path.name for path in (BUILT / "LICENSES").iterdir()}
    versions = json.loads((WEB / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for name, version in versions.items():
        assert f"{name.replace('@', '').replace('/', '-')}-{version}.txt" in texts


@pytest.mark.web
def test_the_committed_pages_are_what_the_sources_give(tmp_path):
    if shutil.which("npm") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs Node 20 or newer to compare the committed pages with their sources")
        pytest.skip("Node is not installed, so the pages cannot be built and compared")
    # Another folder, fresh packages: neither may show in the result.
    copy = tmp_path / "web"
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=copy, check=True)
    subprocess.run(["node", "tools/build.mjs", str(tmp_path / "built")], cwd=copy, check=True)
    built = json.loads((tmp_path / "built" / "dist" / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert built == MANIFEST, "run `make web` and commit blazar/api/web"
    for path in (tmp_path / "built" / "LICENSES").iterdir():
        assert (BUILT / "LICENSES" / path.name).read_bytes() == path.read_bytes()
