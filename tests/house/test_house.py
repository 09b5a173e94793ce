# SPDX-License-Identifier: Apache-2.0
"""The house stands as the contributor page says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import blazarconformance
from blazar import __version__
from blazar.resources.contract.type import ResourceType, check_form

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("folder", [".", "conformance"])
def test_a_room_imports_only_rooms_below_it(folder):
    command = [Path(sys.executable).with_name("lint-imports"), "--config", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_nothing_imports_eventlet_and_threads_are_native():
    script = (
        "import pkgutil, importlib, sys, threading, socket, blazar\n"
        "for m in pkgutil.walk_packages(blazar.__path__, 'blazar.'):\n"
        "    if '.migrations.' not in m.name and '.wsgi.' not in m.name: importlib.import_module(m.name)\n"
        "assert sys.modules.get('eventlet') is None\n"
        "assert 'greenlet' not in type(threading.current_thread()).__module__\n"
        "assert socket.socket.__module__ == 'socket', socket.socket.__module__\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    sources = [p for folder in ("blazar", "conformance", "nova") for p in (ROOT / folder).rglob("*.py")]
    offenders = [p for p in sources if re.search(r"^\s*(import|from) eventlet", p.read_text(encoding="utf-8"), re.M)]
    assert offenders == []


def test_the_filter_does_not_need_the_service():
    for path in (ROOT / "nova").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) blazar\b", path.read_text(encoding="utf-8"), re.M), path


def test_the_conformance_suite_needs_the_service_of_its_version():
    project = tomllib.loads((ROOT / "conformance" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == [f"blazar=={__version__}"]
    assert blazarconformance.__version__ == __version__


def test_every_make_target_that_the_pages_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    names = ("README.md", "CONTRIBUTING.md", ".ci/run", ".ci/nightly")
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in names)
    named = set(re.findall(r"`?make ([a-z][a-z-]+)\b", pages)) | set(re.findall(r"^step ([a-z-]+)", pages, re.M))
    assert {"run", "test", "lint", "bench"} <= named
    assert named <= targets


def test_make_lists_its_targets():
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True).stdout
    for target in ("run", "test", "test-slow", "lint", "bench"):
        assert f"make {target} " in listed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "module"), [(".", "blazar"), ("nova", "blazarnova"), ("conformance", "blazarconformance")]
)
def test_the_distributions_can_be_built_and_carry_what_they_need(tmp_path, folder, module):
    copy = tmp_path / "copy"
    tracked = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.splitlines():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(copy / folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    inside = subprocess.run([sys.executable, "-m", "zipfile", "-l", str(wheel)], capture_output=True, text=True).stdout
    assert f"{module}/__init__.py" in inside
    assert f"{module}/py.typed" in inside
    if module == "blazar":
        assert "blazar/clouds/simulated/inventory.yaml" in inside
        assert "blazar/store/sql/migrations/versions/1001_first_release.py" in inside
        assert "blazar/store/sql/migrations/script.py.mako" in inside
        assert "tests/" not in inside


def test_every_file_says_under_which_licence_it_is():
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in tracked.splitlines()]
    heads = {path: path.read_text(encoding="utf-8")[:200] for path in files if path.exists()}
    assert heads
    assert [path for path, head in heads.items() if head and "SPDX-License-Identifier: Apache-2.0" not in head] == []


def test_entry_points_lead_somewhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    targets = list(project["scripts"].values()) + [
        t for group in project["entry-points"].values() for t in group.values()
    ]
    for target in targets:
        module, _, name = target.partition(":")
        assert getattr(__import__(module, fromlist=[name]), name)


def test_every_resource_type_offers_all_that_the_life_cycle_asks_of_one():
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    asked = ResourceType.needed
    assert {"parameters", "start", "end"} <= set(asked)
    for target in entry_points["blazar.resource.plugins"].values():
        module, _, name = target.partition(":")
        offered = getattr(__import__(module, fromlist=[name]), name)
        assert [each for each in asked if not hasattr(offered, each)] == [], target
        check_form(offered)
