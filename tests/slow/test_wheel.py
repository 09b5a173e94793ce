# SPDX-License-Identifier: Apache-2.0
"""What users install: the wheel has everything that runs, and serves the pages from where it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests.cmd.conftest import Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
SOURCES = ("blazar", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Build the wheel of a copy of the sources: a build leaves files beside them."""
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory) -> Path:
    """Install the wheel into a folder of its own; what it needs is that of the tests."""
    folder = tmp_path_factory.mktemp("site")
    pip("install", "--no-deps", "--target", str(folder), str(wheel))
    return folder


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


def test_the_wheel_has_every_file_of_the_package_and_the_licences(wheel):
    here = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "blazar").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert {name for name in packed if name.startswith("blazar/")} == here
    for needed in (
        "blazar/api/web/dist/index.html",
        "blazar/api/web/dist/manifest.json",
        "blazar/store/migrations/env.py",
        "blazar/store/migrations/versions/0001_first_tables.py",
        "blazar/py.typed",
    ):
        assert needed in packed
    assert [name for name in packed if name.startswith("blazar/api/web/LICENSES/")]
    (licence,) = [name for name in packed if name.endswith("dist-info/licenses/LICENSE")]
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_installed_it_makes_its_database_and_serves_the_pages(site, tmp_path):
    # Without the folder in which it starts, which may be that of the sources.
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import blazar; print(blazar.__file__)"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.strip() == str(site / "blazar" / "__init__.py")
    program = Program("-m", "blazar.cmd.standalone", "--port", "0", "--data", str(tmp_path / "data"), **environment)
    url = program.says("on http://").partition(" on ")[2].partition(";")[0]
    program.says("Ctrl-C stops")

    def get(path: str) -> bytes:
        with urllib.request.urlopen(f"{url}{path}", timeout=30) as answer:
            content: bytes = answer.read()
        return content

    page, dist = get("/ui/").decode(), site / "blazar/api/web/dist"
    named = set(re.findall(r'(?:src|href)="/ui/([^"]+-[0-9A-Z]{8}\.\w+)"', page))
    files = set(json.loads((dist / "manifest.json").read_text(encoding="utf-8"))["files"]) - {"index.html"}
    assert named
    assert named <= files
    for name in files:
        assert get(f"/ui/{name}") == (dist / name).read_bytes(), name
    assert json.loads(get("/v1/leases"))["leases"] == []
    assert program.stop() == 0
