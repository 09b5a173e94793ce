# SPDX-License-Identifier: Apache-2.0
"""What other people make to be used with us: clients of PyPI, unmodified, in a virtual environment of their own."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = Path(__file__).with_name("upstream.txt")
CLIENT = ROOT / ".venv-client"
DASHBOARD_REQUIREMENTS = REQUIREMENTS.with_name("dashboard.txt")
DASHBOARD = ROOT / ".venv-dashboard"
FOCUS_REQUIREMENTS = REQUIREMENTS.with_name("focus.txt")
FOCUS = ROOT / ".venv-focus"
PACKAGE = "python-blazarclient"


def ours(folder: Path) -> Path:
    """Install our client into a new folder, to go before all others in ``PYTHONPATH``, and return the folder."""
    # Builds leave files beside the sources.
    sources = shutil.copytree(ROOT / "client", folder / "sources", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    target = folder / "installed"
    _pip("install", "--no-deps", "--target", str(target), str(sources))
    return target


def sources(folder: Path = CLIENT) -> Path:
    """Return the folder with the sources of PyPI's client, tests included; they are downloaded at the first call."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    (name,) = [line for line in lines if line.startswith(PACKAGE)]
    unpacked = folder / name.replace("-", "_").replace("==", "-")
    if not unpacked.exists():
        _pip("download", "--no-deps", "--no-binary", PACKAGE, "--dest", str(folder), name)
        with tarfile.open(f"{unpacked}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return unpacked


def _pip(*arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *arguments], check=True, timeout=900)


def programs(requirements: Path = REQUIREMENTS, folder: Path = CLIENT, *, python: str = sys.executable) -> Path:
    """Return the folder of the installed programs; they are installed at the first call, for this Python."""
    stamp = folder / f"installed-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    with _alone(folder):
        if not stamp.exists():
            # The pip that runs here serves: to make one in the new environment would take longer than all the rest.
            subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
            _pip("--python", str(folder), "install", "-r", str(requirements))
            stamp.touch()
    return folder / "bin"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time install into a folder: tests that want it begin in several at once."""
    folder.mkdir(exist_ok=True)
    with (folder / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
