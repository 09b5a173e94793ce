# SPDX-License-Identifier: Apache-2.0
"""What the README lets a user type runs as it stands there, and its picture loads fast."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cmd.test_standalone import begun, call

pytestmark = pytest.mark.timeout(60)
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HERE = "http://127.0.0.1:1234"
INSTALLED = "pip install ./client\n"
KILOBYTE = 1000


def typed(section: str, url: str) -> str:
    """Return what the blocks of a section have a user type, for a service at another URL."""
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)).replace(HERE, url)


@pytest.mark.slow
def test_the_first_lease_is_made_by_the_client_and_by_curl(tmp_path):
    program, url = begun(tmp_path)
    # The client is in the environment of the tests, which a user's login must not reach.
    mine = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    environment = {**mine, "PATH": f"{Path(sys.executable).parent}:{mine['PATH']}", "HOME": str(tmp_path)}
    script = typed("Your first lease", url)
    assert INSTALLED in script
    command = ["bash", "-euo", "pipefail", "-c", script.replace(INSTALLED, "").replace("curl -s", "curl -sf")]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50)
        assert done.returncode == 0, done.stdout + done.stderr
        until = time.monotonic() + 10
        while statuses(url) != {"first": "ACTIVE", "second": "ACTIVE"}:
            assert time.monotonic() < until, statuses(url)
            time.sleep(0.1)
    finally:
        assert program.stop() == 0


def statuses(url: str) -> dict[str, str]:
    return {lease["name"]: lease["status"] for lease in call(f"{url}/v1/leases")["leases"]}


def test_pictures_of_the_readme_are_small():
    (picture,) = re.findall(r"^!\[.+\]\((.+)\)$", README, re.M)
    assert (ROOT / picture).stat().st_size < 150 * KILOBYTE
