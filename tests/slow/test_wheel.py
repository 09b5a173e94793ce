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
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cmd.conftest import Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
BESIDE = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Callable[[Path, str], Path]:
    """Return what builds the wheel of a copy of a package and what is beside it: a build leaves files there."""

    def built(folder: Path, package: str) -> Path:
        source = tmp_path_factory.mktemp("source")
        shutil.copytree(folder / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in BESIDE:
            shutil.copy(folder / name, source / name)
        wheels = tmp_path_factory.mktemp("wheel")
        pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(source))
        (wheel,) = wheels.iterdir()
        return wheel

    return built


@pytest.fixture(scope="module")
def wheel(build) -> Path:
    return build(ROOT, "blazar")


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
        "blazar/store/sql/migrations/env.py",
        "blazar/store/sql/migrations/versions/1001_first_release.py",
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


def test_the_conformance_suite_is_installed_beside_it_and_runs(site, build, tmp_path):
    pip("install", "--no-deps", "--target", str(site), str(build(ROOT / "conformance", "blazarconformance")))
    script = (
        "import blazar, blazarconformance\n"
        "from harness import HARNESS\n"
        "assert blazarconformance.__version__ == blazar.__version__\n"
        "checks = blazarconformance.checks(HARNESS, slow=False)\n"
        "for check in checks[::10]: check(HARNESS)\n"
        "print(blazarconformance.__file__, len(checks))\n"
    )
    path = os.pathsep.join([str(site), str(ROOT / "examples" / "instruments")])
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    where, number = done.stdout.split()
    assert where == str(site / "blazarconformance" / "__init__.py")
    assert int(number) >= 60
