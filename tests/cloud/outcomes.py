# SPDX-License-Identifier: Apache-2.0
"""Reads what a run of tests told in the subunit protocol, with the Python of that run, and prints it as JSON.

.venv-tempest/bin/python tests/cloud/outcomes.py < run.subunit
"""

from __future__ import annotations

import json
import sys
from typing import Any

import subunit
import testtools


def main() -> None:
    found: dict[str, dict[str, Any]] = {}

    def note(test: dict[str, Any]) -> None:
        began, ended = test["timestamps"]
        found[test["id"]] = {
            "status": test["status"],
            "seconds": (ended - began).total_seconds() if began and ended else 0.0,
            "told": {key: text.as_text() for key, text in test["details"].items() if text.content_type.type == "text"},
        }

    listener = testtools.StreamToDict(note)
    listener.startTestRun()
    subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="output").run(listener)
    listener.stopTestRun()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
