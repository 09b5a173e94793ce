# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.beside COMMIT``: this tree and another commit, measured in turn, with the ratio of each request.

A machine that does other things slows both alike. It fails if a request takes a fifth longer than at the other commit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

MOST = 1.2
Runs = Sequence[Mapping[str, float]]
"""The median of each request, run by run."""


def ratios(ours: Runs, theirs: Runs) -> dict[str, float]:
    """Return how long each request takes by how long it took there: the median over pairs of runs."""
    found = defaultdict(list)
    for our, their in zip(ours, theirs, strict=True):
        for name in our.keys() & their.keys():
            found[name].append(our[name] / their[name])
    return {name: statistics.median(values) for name, values in sorted(found.items())}


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check out a commit beside this tree, and take it away afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(path), commit], check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], check=True)


def measure(tree: Path, arguments: Sequence[str]) -> dict[str, float]:
    """Return the median milliseconds of each request, of the bench of a tree: the present folder comes first."""
    command = [sys.executable, "-m", "bench", "--only", "grid", "--json", *arguments]
    done = subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    return {
        f"{f['database']} {f['type']} {f['request']} {f['hosts']} × {f['leases']}": f["median_ms"]
        for f in json.loads(done.stdout)["requests"]
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.beside", description="Compare this tree with another commit.")
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=5)
    options, arguments = parser.parse_known_args()
    with worktree(options.commit) as there:
        pairs = [(measure(Path.cwd(), arguments), measure(there, arguments)) for _ in range(options.rounds)]
    found = ratios(*([pair[side] for pair in pairs] for side in (0, 1)))
    for name, ratio in found.items():
        print(f"{ratio:5.2f}  {name}")
    return int(any(ratio > MOST for ratio in found.values()))


if __name__ == "__main__":
    sys.exit(main())
