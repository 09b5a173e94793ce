# SPDX-License-Identifier: Apache-2.0
"""What other people make to be used with us: clients of PyPI, unmodified, in a virtual environment of their own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = Path(__file__).with_name("upstream.txt")
CLIENT = ROOT / ".venv-client"


def programs(requirements: Path = REQUIREMENTS, folder: Path = CLIENT) -> Path:
    """Return the folder of the installed programs; they are installed at the first call."""
    stamp = folder / f"installed-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    if not stamp.exists():
        # The pip that runs here serves: one in the new environment would take longer to make than all the rest of it.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(folder), "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-r", str(requirements)], check=True, timeout=900)
        stamp.touch()
    return folder / "bin"
