# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.model``: measure what requests cost, and write what that means for larger clouds as a page."""

from __future__ import annotations

import argparse
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import describe
from bench.model.costs import fit
from bench.model.measure import SAMPLES, SIZES, measure
from bench.model.page import write_page


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.model", description="Extrapolate what Blazar costs.")
    parser.add_argument("--database", default="postgresql")
    parser.add_argument("--sizes", default=",".join(f"{hosts}x{leases}" for hosts, leases in SIZES))
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--page", type=Path, help="write the page there, for example docs/speed.md")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    sizes = [(int(hosts), int(leases)) for hosts, leases in (size.split("x") for size in options.sizes.split(","))]
    points = []
    for point in measure(options.database, sizes, options.samples):
        points.append(point)
        print(point, flush=True)
    text = write_page(points, fit(points), f"{describe()}, {options.database}, {datetime.now(UTC):%Y-%m-%d}")
    if options.page is None:
        print(text)
    else:
        options.page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
