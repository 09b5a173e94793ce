# SPDX-License-Identifier: Apache-2.0
"""What processes import when they start: large libraries only where they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNUSED = {
    "blazar.cmd.api": {"alembic", "openstack"},
    "blazar.cmd.manager": {"alembic", "flask"},
}


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(UNUSED))
def test_a_process_starts_without_the_libraries_that_it_does_not_use(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert not UNUSED[module] & set(loaded.stdout.split())


@pytest.mark.slow
def test_a_process_starts_for_a_user_without_a_home():
    code = """
import os, pwd
def none(uid): raise KeyError(uid)
pwd.getpwuid = none
os.environ.pop("HOME", None)
import blazar.cmd.manage, openstack.config
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
